"""The written cohort: same bytes whatever the jobs, truth that fits the scans, the command."""

import csv
import json
from hashlib import sha256

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli.phantom import command
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.skin import to_lab
from breastmorph.phantom import topology, write_cohort
from breastmorph.scan.scan import REQUIRED, SIGN

pytestmark = pytest.mark.slow


def digests(folder):
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("cohort")
    done = []
    rows = write_cohort(out, 2, 4, jobs=2, one_sided=1, on_done=done.append)
    assert done == [1, 2]
    return out, rows


def test_files_are_complete(written):
    out, rows = written
    assert sorted(digests(out)) == [
        "cohort.csv",
        "landmarks/000.json",
        "landmarks/001.json",
        "scans/000.ply",
        "scans/001.ply",
        "truth/000.npz",
        "truth/001.npz",
        "truth/topology.npz",
    ]
    with open(out / "cohort.csv", newline="") as file:
        assert list(csv.DictReader(file)) == rows


def test_truth_fits_scan_and_table(written):
    out, rows = written
    fixed = np.load(out / "truth" / "topology.npz")
    np.testing.assert_array_equal(fixed["faces"], topology())
    for row in rows:
        truth = np.load(out / "truth" / f"{row['id']}.npz")
        mesh = load_mesh(out / "scans" / f"{row['id']}.ply")
        marks = json.loads((out / "landmarks" / f"{row['id']}.json").read_text())
        surface = Surface(mesh)
        assert surface.closest(truth["points"][truth["visible"]].astype(float)).distances.max() < 3.0
        assert surface.closest(np.array(list(marks.values()))).distances.max() < 1e-3
        assert list(truth["landmark_names"]) == list(marks)
        assert fixed["mean"].shape == truth["points"].shape == truth["bare"].shape
        for side in ("left", "right"):
            if side != row["absent"]:
                assert float(row[f"volume_{side}"]) == pytest.approx(truth[f"volume_{side}"], abs=0.06)


def test_truth_names_the_folds_and_whether_the_scan_shows_them(written):
    out, rows = written
    for row in rows:
        truth = np.load(out / "truth" / f"{row['id']}.npz")
        names = truth["fixed_names"].tolist()
        assert names == ["imf_left", "imf_right", "nipple_left", "nipple_right", "sternal_notch", "xiphoid"]
        fixed = dict(zip(names, truth["fixed_points"], strict=True))
        on_scan = dict(zip(names, truth["fixed_on_scan"].tolist(), strict=True))
        for name, point in zip(truth["landmark_names"].tolist(), truth["landmark_true"], strict=True):
            if name in fixed:
                np.testing.assert_allclose(fixed[name], point, atol=1e-3)
        surface = Surface(load_mesh(out / "scans" / f"{row['id']}.ply"))
        away = surface.closest(truth["fixed_points"].astype(float)).distances
        assert (away[truth["fixed_on_scan"]] < 3.0).all()
        assert on_scan["sternal_notch"]
        for side in ("left", "right"):
            # Where breast and chest meet: the fixed point lies on the border of the breast, below the nipple.
            upright = truth["rotation"].T @ (fixed[f"imf_{side}"] - fixed[f"nipple_{side}"])
            depth = -float(truth[f"below_fold_{side}"])
            assert abs(-upright[1] - depth) < 25.0
            if side == row["absent"]:
                assert not on_scan[f"imf_{side}"]
                assert not on_scan[f"nipple_{side}"]
                assert str(truth["removed_side"]) == side


def test_coloured_cohort_carries_its_colours(written, tmp_path):
    result = CliRunner().invoke(command, ["--n", "1", "--seed", "4", "--colour", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lab = to_lab(load_mesh(tmp_path / "scans" / "000.ply").colors[:, :3])
    truth = np.load(tmp_path / "truth" / "000.npz")
    assert np.abs(np.median(lab, axis=0) - truth["skin_tone"]).max() < 5.0
    out, _ = written
    assert load_mesh(out / "scans" / "000.ply").colors is None
    assert "skin_tone" not in np.load(out / "truth" / "000.npz")


def test_one_sided_subject_on_disk(written):
    out, rows = written
    assert [bool(row["absent"]) for row in rows] == [False, True]
    row = rows[1]
    side = row["absent"]
    assert row[f"volume_{side}"] == ""
    marks = json.loads((out / "landmarks" / "001.json").read_text())
    assert not any(name.endswith(side) for name in marks)
    assert len(marks) == len(REQUIRED) - 3
    truth = np.load(out / "truth" / "001.npz")
    assert str(truth["absent"]) == side
    gone = np.linalg.norm(truth["whole"] - truth["points"], axis=1)
    assert gone[truth[f"breast_{side}"]].max() > 10.0
    sign = SIGN[side] * (truth["bare"] - truth["translation"]) @ truth["rotation"][:, 0]
    assert gone[sign < -20.0].max() < 1e-3
    assert 0.0 < truth["remaining_volume"] < 0.41 * truth[f"volume_{side}"]
    assert "whole" not in np.load(out / "truth" / "000.npz")


def test_command_gives_the_same_bytes_with_one_job(written, tmp_path):
    out, _ = written
    arguments = ["--n", "2", "--seed", "4", "--one-sided", "1", "--jobs", "1", "--out", str(tmp_path / "one")]
    result = CliRunner().invoke(command, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert digests(tmp_path / "one") == digests(out)
    told = json.loads(result.stdout)
    assert told["summary"]["counts"]["one-sided"] == 1
    assert [subject["id"] for subject in told["subjects"]] == ["000", "001"]


def test_foreign_scans_in_the_folder_are_not_mixed_in(tmp_path):
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "patient.ply").write_text("ply")
    with pytest.raises(FileProblem, match="other scans"):
        write_cohort(tmp_path, 1, 1)


def test_command_refuses_wrong_usage(tmp_path):
    runner = CliRunner()
    assert runner.invoke(command, ["--n", "0", "--out", str(tmp_path)]).exit_code == 2
    assert runner.invoke(command, ["--n", "1", "--one-sided", "2", "--out", str(tmp_path)]).exit_code == 2
    assert runner.invoke(command, []).exit_code == 2
    shown = runner.invoke(command, ["--help"])
    assert shown.exit_code == 0
    assert "breastmorph phantom --n 12" in shown.output
