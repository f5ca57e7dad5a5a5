"""Shell completion: what Tab offers, and that the lines of the documentation set it up in a real bash."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from breastmorph.cli import _COMMANDS, main
from breastmorph.registration.parameters import PRESETS

PAGE = (Path(__file__).parents[2] / "docs" / "shell-completion.md").read_text(encoding="utf-8")
PROGRAM = Path(sys.executable).with_name("breastmorph")
# Tab, by hand: what bash sets before it calls the function, and what it has afterwards.
TAB = """. ~/.bashrc
compopt() { echo "by the shell: ${@: -1}"; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_breastmorph_completion breastmorph
printf '%s\\n' "${COMPREPLY[@]}"
"""


def told(shell: str, what: str, *words: str) -> str:
    """What the program says to a shell."""
    asked = {
        "_BREASTMORPH_COMPLETE": f"{shell}_{what}",
        "COMP_WORDS": " ".join(["breastmorph", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" and words else str(len(words)),
    }
    result = CliRunner().invoke(main, env=asked, prog_name="breastmorph")
    assert result.exit_code == 0, result.output
    return result.stdout


def offered(*words: str) -> list[str]:
    """What bash is offered for the last word, ``""`` where nothing is typed yet."""
    return [line.removeprefix("plain,") for line in told("bash", "complete", *words).split()]


def test_all_commands_are_offered():
    assert offered("") == list(_COMMANDS)
    assert offered("re") == [name for name in _COMMANDS if name.startswith("re")]
    assert "--version" in offered("--")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("register", "scans/", "--preset", ""), list(PRESETS)),
        (("predict", "model.h5", "scan.ply", "--missing", "r"), ["right"]),
        (("edit", "model.h5", "--set", "sn-n"), ["SN-NL=", "SN-NR="]),
        (("edit", "model.h5", "--hold", "t"), ["thorax"]),
        (("edit", "model.h5", "--grid", "NL-NR,volume"), ["NL-NR,volume-left", "NL-NR,volume-right"]),
        (("paper", "--only", "model-p"), ["model-paper-masks", "model-paper-no-masks"]),
        (("check", ""), ["file,"]),
        (("fit", "model.h5", ""), ["file,"]),
        (("fit", "model.h5", "scan.ply", "--out", ""), ["dir,"]),
        (("measure", "--landmark-i"), ["--landmark-ids"]),
    ],
)
def test_what_a_place_can_be_is_offered(words, found):
    assert offered(*words) == found


def test_commands_are_offered_without_loading_them():
    code = (
        "import sys, os\n"
        "from breastmorph.cli import main\n"
        "try: main(prog_name='breastmorph')\n"
        "except SystemExit: print([m for m in ('numpy', 'scipy', 'breastmorph.paper') if m in sys.modules])"
    )
    asked = {"_BREASTMORPH_COMPLETE": "bash_complete", "COMP_WORDS": "breastmorph ", "COMP_CWORD": "1"}
    environment = {**os.environ, **asked, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "plain,register" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script_and_its_lines(shell):
    assert "_BREASTMORPH_COMPLETE=" in told(shell, "source")
    assert f"_BREASTMORPH_COMPLETE={shell}_source breastmorph > ~/" in PAGE
    assert "register" in told(shell, "complete", "regi")
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=told(shell, "source"), text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("bash") is None or not PROGRAM.exists(), reason="needs bash and the command on the path"
)
def test_the_lines_for_bash_make_tab_work(tmp_path):
    lines = re.search(r"bash, version.*?```console\n(.*?)```", PAGE, re.DOTALL)[1]
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path}

    def bash(script: str, *words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "--norc", "-c", script, "bash", *words], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    bash(lines)
    assert bash(TAB, "breastmorph", "regi") == ["register"]
    assert bash(TAB, "breastmorph", "register", "scans/", "--preset", "") == list(PRESETS)
    assert bash(TAB, "breastmorph", "check", "sca") == ["by the shell: default", ""]  # files
    assert bash(TAB, "breastmorph", "build", "reg") == ["by the shell: dirnames", ""]
