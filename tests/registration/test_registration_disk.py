"""A full disk and a folder that cannot be written to: a clear error, nothing damaged, and the run goes on later."""

from __future__ import annotations

import errno
import os
import subprocess

import pytest
from click.testing import CliRunner

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess, LocalProcesses
from breastmorph.cli import main
from breastmorph.foundation import files
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.scan.landmark_files import save_landmarks
from tiny_cohort import Troubles, meshes, require_whole, tiny_recipe, write_scans
from torso import torso

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a megabyte, where the system lets us make one; the value mounts it with other options."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options):
        done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", place], capture_output=True)
        if done.returncode:
            pytest.skip("file systems cannot be mounted here")

    try:
        mount("-o", "size=512k")
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    yield place, mount
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(small_disk, tmp_path):
    disk, mount = small_disk
    found = write_scans(tmp_path / "scans", 8)
    rules, out = tiny_recipe(Troubles()), disk / "out"
    with pytest.raises(FileProblem, match=r"No space left") as caught:
        register_batch(found, rules, out, LocalProcesses(2))
    assert (caught.value.code, caught.value.finding.name) == ("unwritable", "unwritable/stopped")
    n_done = require_whole(out)
    assert 0 < n_done < 8
    assert not list(out.rglob(".*.part"))
    assert not (out / "failed").exists()  # the scan is not to blame
    mount("-o", "remount,size=8m")
    statuses = [outcome.status for outcome in register_batch(found, rules, out, InProcess())]
    assert statuses.count("unchanged") == n_done
    assert require_whole(out) == 8


def test_a_folder_on_a_read_only_disk(small_disk, tmp_path):
    disk, mount = small_disk
    found = write_scans(tmp_path / "scans", 2)
    rules, out = tiny_recipe(), disk / "out"
    register_batch(found, rules, out, InProcess())
    before = meshes(out)
    mount("-o", "remount,ro")
    with pytest.raises(FileProblem, match=r"out: the folder cannot be written to \(Read-only"):
        register_batch(found, rules, out, InProcess(), force=True)
    with pytest.raises(FileProblem, match=r"cannot be made \(Read-only"):
        register_batch(found, rules, disk / "new", InProcess())
    assert meshes(out) == before
    assert require_whole(out) == 2


def test_the_command_says_so_and_can_go_on(tmp_path, monkeypatch):
    """The same where nothing can be mounted: the disk gives up in the middle of the run."""
    scans = tmp_path / "scans"
    write_scans(scans, 3, edge=6.0)
    mesh, landmarks = torso(edge=11.0)
    save_mesh(mesh, tmp_path / "template.ply")
    save_landmarks(landmarks, tmp_path / "template.json")
    template = [
        "--template",
        str(tmp_path / "template.ply"),
        "--template-landmarks",
        str(tmp_path / "template.json"),
    ]
    arguments = ["register", str(scans), "--out", str(tmp_path / "out"), *template, "--jobs", "1"]
    sync, count = os.fsync, []

    def gives_up(descriptor):
        count.append(descriptor)
        if len(count) > 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(files.os, "fsync", gives_up)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert os.strerror(errno.ENOSPC) in result.stderr
    assert "run the same command again" in result.stderr
    assert "Traceback" not in result.output
    monkeypatch.undo()
    done = len(meshes(tmp_path / "out"))
    assert 0 < done < 3
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.output
    assert f"{3 - done} registered, {done} unchanged, 0 failed" in again.output
