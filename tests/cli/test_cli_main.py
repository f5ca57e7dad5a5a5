from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import breastmorph
from breastmorph.cli import _COMMANDS, main


def test_help_lists_every_command():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in _COMMANDS)


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_has_help_with_an_example(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Example" in result.output


@pytest.mark.parametrize(
    "name", ["check", "register", "measure", "predict", "fit", "edit", "evaluate", "paper", "template"]
)
def test_every_command_that_reads_scans_can_scale_them(name):
    assert "--scale-by" in CliRunner().invoke(main, [name, "--help"]).output


def test_a_users_mistake_is_a_message_and_exit_code_two(tmp_path):
    result = CliRunner().invoke(main, ["check", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "no such file" in result.output
    assert "Traceback" not in result.output


def test_unknown_command_is_a_usage_error():
    assert CliRunner().invoke(main, ["dance"]).exit_code == 2


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import breastmorph, sys; print([m for m in ('numpy', 'scipy', 'igl', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_resolve():
    for name in breastmorph.__all__:
        assert getattr(breastmorph, name) is not None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a full disk at hand")
def test_results_that_do_not_fit_on_the_disk_are_no_traceback(tmp_path):
    code = f"from breastmorph.cli import main; main(['check', {str(tmp_path / 'scan.ply')!r}, '--json'])"
    (tmp_path / "scan.ply").write_bytes(b"ply")
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_the_output_cannot_show_does_not_end_the_command(tmp_path):
    (tmp_path / "\u60a3\u8005.ply").write_bytes(
        b"ply"
    )  # on Windows a redirected output often knows Latin letters only
    code = f"from breastmorph.cli import main; main(['check', {str(tmp_path)!r}])"
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode == 1, done.stderr
    assert b"\\u60a3\\u8005" in done.stdout
    assert b"Traceback" not in done.stderr
