"""What is installed is pinned, listed and under permissive licences."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


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
