"""What is installed is what was pinned, its licences bind nobody, and the code has no door to the outside."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Modules that run what a file says, or that talk to other machines.
UNSAFE = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "ftplib",
    "smtplib",
    "telnetlib",
    "requests",
}
UNSAFE |= {"http.client", "urllib.request", "httpx", "aiohttp", "xmlrpc", "xml.sax", "xml.dom", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__"}
OPTIONS = ("shell", "allow_pickle")
WORDS = re.compile(
    rf"\b({'|'.join({name.split('.')[0] for name in UNSAFE} | {*OPTIONS})})\b|(?<![.\w])({'|'.join(CALLS)})\b"
)


def pins(name):
    found = {}
    for line in (ROOT / name).read_text().splitlines():
        pin = re.match(r"([A-Za-z0-9][\w.-]*)==([^\s;]+)", line)
        if pin:
            found[pin.group(1).lower()] = pin.group(2)
    return found


def script(name, *words):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *map(str, words)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_the_lock_has_every_pinned_version_with_hashes_and_no_address():
    text = (ROOT / "requirements.lock").read_text()
    assert pins("requirements.lock") == pins("requirements.txt")
    for block in re.split(r"\n(?=[A-Za-z])", text.split("\n", 2)[2]):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
    assert "://" not in text


def test_everything_that_is_required_is_pinned():
    """Or pip would take whatever is newest, and refuse an installation by hashes."""
    pinned = {canonicalize_name(name) for name in pins("requirements.txt")}
    missing = set()
    for name in pinned:
        for requirement in map(Requirement, requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                missing |= {canonicalize_name(requirement.name)} - pinned
    assert missing == set()


def test_the_lock_is_made_of_the_wheels_at_hand(tmp_path):
    (tmp_path / "requirements.txt").write_text("Some.Thing==1.0\n")
    words = [tmp_path, "--requirements", tmp_path / "requirements.txt", "--out", tmp_path / "lock"]
    assert "no wheel of Some.Thing==1.0" in script("lock.py", *words).stderr
    (tmp_path / "some_thing-1.0-py3-none-any.whl").write_bytes(b"abc")
    assert script("lock.py", *words).returncode == 0
    assert (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in (tmp_path / "lock").read_text()
    )


def test_the_lowest_versions_are_those_that_the_package_asks_for():
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = dict(dependency.lower().split(">=") for dependency in asked)
    assert pins("requirements-lowest.txt") == bounds


@pytest.mark.slow
def test_licences_are_stated_and_none_is_copyleft():
    done = script("licences.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing under GPL" in done.stdout


def test_the_bill_of_materials_names_every_package(tmp_path):
    assert script("sbom.py", "--out", tmp_path / "sbom.json").returncode == 0
    bill = json.loads((tmp_path / "sbom.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {one["name"].lower(): one["version"] for one in bill["components"]}
    assert listed == {name: version(name) for name in pins("requirements.txt")}
    assert all(one["licenses"] for one in bill["components"])


def test_no_module_runs_what_a_file_says_or_calls_out():
    assert len(SOURCES) > 100
    found = {path.name: unsafe_parts(path) for path in SOURCES}
    found["workers.py"] -= {"pickle"}  # between a process and its own children only
    assert {name: parts for name, parts in found.items() if parts} == {}


def unsafe_parts(path: Path) -> set[str]:
    """Unsafe modules, calls and options in a source file."""
    found: set[str] = set()
    text = path.read_text(encoding="utf-8")
    if not WORDS.search(text):  # most files, which need not be parsed
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & UNSAFE
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)} & UNSAFE
        elif isinstance(node, ast.Call):
            found |= {getattr(node.func, "id", "")} & CALLS
            found |= {
                f"{key.arg}=True"
                for key in node.keywords
                if key.arg in OPTIONS and getattr(key.value, "value", None) is True
            }
    return found
