from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a full disk at hand")
def test_results_that_do_not_fit_on_the_disk_are_no_traceback(tmp_path):
    code = f"from breastmorph.cli import main; main(['check', {str(tmp_path / 'scan.ply')!r}, '--json'])"
    (tmp_path / "scan.ply").write_bytes(b"ply")
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
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


NAMES = (b"M\xfcller", "Zoe\u0301".encode(), b"=1+1")
_PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # nothing but ASCII


def in_shell(tail, *arguments, **environment):
    """What a command of ours says and how it ends, in a shell with something behind it."""
    code = "import sys; from breastmorph.cli import main; main(sys.argv[1:])"
    script = f'"$0" -c "{code}" "$@" {tail}'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, sys.executable, *arguments],
        capture_output=True, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def oddly_named(tmp_path_factory):
    """Scans that are all refused, for reasons of their own, under names that cause trouble."""
    folder = os.fsencode(tmp_path_factory.mktemp("scans"))
    for name in NAMES:
        with open(folder + b"/" + name + b".ply", "wb") as file:
            file.write(b"ply")
    os.symlink("nowhere", folder + b"/link.ply")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
@pytest.mark.parametrize(
    "environment", [pytest.param({}, marks=pytest.mark.slow), _PLAIN], ids=["utf-8", "ascii"]
)
def test_odd_names_in_json_are_text_and_every_scan_is_judged(oddly_named, environment):
    done = in_shell("", b"check", oddly_named, b"--json", **environment)
    assert done.returncode == 1, done.stderr
    scans = json.loads(done.stdout.decode("ascii"))["scans"]
    names = ["=1+1", "M%FCller", "Zoe%CC%81" if environment else "Zo\u00e9", "link"]
    assert [scan["id"] for scan in scans] == names
    assert scans[-1]["findings"][0]["message"] == "this link leads to a file that is not there"
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
@pytest.mark.slow
@pytest.mark.parametrize(("environment", "tail"), [(_PLAIN, ""), ({}, ">&- 2>&-")], ids=["ascii", "closed"])
def test_odd_names_do_not_end_a_registration_nor_does_silence(oddly_named, tmp_path, environment, tail):
    out = os.fsencode(tmp_path / "out") + b"\xfc"
    done = in_shell(tail, b"register", oddly_named, b"--out", out, b"--jobs", b"1", **environment)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr
    assert tail or b"failed M%FCller: M%FCller.ply: " in done.stderr
    for name in (b"summary.csv", b"summary.html", b"failed/M%FCller.json"):
        with open(out + b"/" + name, encoding="utf-8") as file:
            text = file.read()
        assert "M%FCller" in text
    with open(out + b"/summary.csv", encoding="utf-8") as file:
        assert "\n'=1+1,failed" in file.read()


@pytest.mark.skipif(os.name != "posix", reason="asks a Unix shell")
@pytest.mark.parametrize(
    ("command", "tail"),
    [
        ("--help", "2>&1 | head -c 0"),
        pytest.param("check", "<&- >&-", marks=pytest.mark.slow),
        pytest.param("check --json", ">&-", marks=pytest.mark.slow),
    ],
)
def test_whoever_stops_listening_gets_no_traceback(oddly_named, command, tail):
    name, *options = command.split()
    done = in_shell(tail, name, *([] if name == "--help" else [oddly_named]), *options)
    assert done.returncode in (0, 1)
    assert done.stdout == done.stderr == b""
