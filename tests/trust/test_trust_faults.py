"""Faults around the computing: dates, disks, kills and runs side by side leave no wrong result behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.cli import main
from breastmorph.cohort import load_cohort, packed
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.model.files import load_model
from small_cohort import random_shapes, write_registered
from tiny_cohort import tiny_recipe, write_scans

COMMAND = [sys.executable, "-c", "from breastmorph.cli import main; main()"]


def start(*words) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def folder(tmp_path):
    write_registered(tmp_path / "out", random_shapes(6))
    return tmp_path / "out"


@pytest.mark.parametrize("moment", [0, 4102444800], ids=["1970", "2100"])
def test_dates_of_files_do_not_matter_to_a_cohort(moment, folder):
    before = load_cohort(folder).fingerprint()
    for path in (folder / "registered").iterdir():
        os.utime(path, (moment, moment))
    assert load_cohort(folder).fingerprint() == before


@pytest.mark.skipif(os.name == "nt", reason="Windows does not keep the time of an inode's change")
def test_a_mesh_changed_behind_an_old_date_is_read_again(folder):
    load_cohort(folder)
    path = folder / "registered" / "002.ply"
    stat, mesh = path.stat(), load_mesh(path)
    save_mesh(mesh.with_vertices(mesh.vertices[:, [1, 0, 2]]), path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as a backup or a clock that went back leaves it
    assert path.stat().st_size == stat.st_size
    np.testing.assert_allclose(load_cohort(folder).shape(2), mesh.vertices[:, [1, 0, 2]], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 4102444800], ids=["1970", "2100"])
def test_dates_of_files_do_not_matter_to_a_registration(moment, tmp_path):
    found, rules = write_scans(tmp_path / "scans", 2), tiny_recipe()
    register_batch(found, rules, tmp_path / "out", InProcess())
    for path in [*(tmp_path / "scans").iterdir(), *(tmp_path / "out" / "registered").iterdir()]:
        os.utime(path, (moment, moment))
    assert {o.status for o in register_batch(found, rules, tmp_path / "out", InProcess())} == {"unchanged"}


def test_a_read_only_cohort_is_packed_elsewhere_and_says_so(folder, tmp_path, monkeypatch, caplog):
    expected = load_cohort(folder, packed_in=tmp_path / "here").array()

    def read_only(path):
        if path.is_relative_to(folder):
            raise FileProblem("the folder cannot be made", "", path) from OSError(30, "Read-only file system")
        path.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(packed, "make_folder", read_only)
    monkeypatch.setattr(packed, "TemporaryDirectory", lambda **_: _Temporary(tmp_path / "elsewhere"))
    found = load_cohort(folder)
    assert "read-only" in caplog.text
    assert str(tmp_path) not in caplog.text  # where things lie is nobody's business
    np.testing.assert_array_equal(found.array(), expected)  # although the file has no name any more
    assert not (folder / "cohort").exists()
    assert not (tmp_path / "elsewhere").exists()


class _Temporary:
    """A temporary folder whose place is known."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.path.mkdir()
        return str(self.path)

    def __exit__(self, *_):
        for path in self.path.iterdir():
            path.unlink()
        self.path.rmdir()


def test_build_from_a_disk_that_is_really_read_only(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mounted = (
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True).returncode == 0
        )
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("file systems cannot be mounted here")
    try:
        write_registered(place / "out", random_shapes(5))
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        result = CliRunner().invoke(main, ["build", str(place / "out"), "-o", str(tmp_path / "m.h5")])
        assert result.exit_code == 0, result.output
        assert load_model(tmp_path / "m.h5").n_components == 4
        bad = CliRunner().invoke(main, ["build", str(place / "out"), "-o", str(place / "m.h5")])
        assert bad.exit_code == 2
        assert "Read-only" in bad.stderr
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_model_that_cannot_be_written_leaves_the_old_one(folder, tmp_path, monkeypatch):
    words = ["build", str(folder), "-o", str(tmp_path / "m.h5")]
    assert CliRunner().invoke(main, words).exit_code == 0
    before = (tmp_path / "m.h5").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("breastmorph.foundation.files.os.fsync", full)
    result = CliRunner().invoke(main, [*words, "--components", "2"])
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert (tmp_path / "m.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["m.h5"]


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_killed_build_leaves_a_whole_model_or_none(folder, tmp_path):
    dice = random.Random(3)
    for how in (signal.SIGTERM, signal.SIGKILL):
        run = start("build", folder, "-o", tmp_path / "m.h5")
        time.sleep(dice.uniform(0.2, 2.5))
        run.send_signal(how)
        run.communicate()
        if (tmp_path / "m.h5").exists():
            assert load_model(tmp_path / "m.h5").n_components == 5
    done = CliRunner().invoke(main, ["build", str(folder), "-o", str(tmp_path / "m.h5")])
    assert (done.exit_code, done.stderr) == (0, "")
    assert load_model(tmp_path / "m.h5").n_components == 5


@pytest.mark.slow
def test_builds_side_by_side_give_the_same_model(folder, tmp_path):
    runs = [start("build", folder, "-o", tmp_path / f"{i}.h5") for i in range(2)]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said
    contents = {load_model(tmp_path / f"{i}.h5").info["content"] for i in range(2)}
    assert len(contents) == 1
    assert len(list((folder / "cohort").glob("*.npy"))) == 1


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_killed_evaluation_leaves_whole_files_or_none(folder, tmp_path):
    assert CliRunner().invoke(main, ["build", str(folder), "-o", str(tmp_path / "m.h5")]).exit_code == 0
    words = ["evaluate", tmp_path / "m.h5", "--cohort", folder, "--samples", 5, "--no-surface"]
    run = start(*words, "--out", tmp_path / "e")
    time.sleep(2.0)
    run.kill()
    run.communicate()
    for path in (tmp_path / "e").glob("*.json"):
        assert path.read_text().rstrip().endswith("}")
    result = CliRunner().invoke(main, [*map(str, words), "--out", str(tmp_path / "e")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "e" / "metrics.json").read_text().rstrip().endswith("}")
