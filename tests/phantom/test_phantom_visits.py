"""The same person scanned again: another posture and breath, the breasts as they were or one of them changed."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.phantom import VisitParameters, draw_cohort, later_visit, torso, write_cohort


@pytest.fixture(scope="module")
def subject():
    return draw_cohort(1, 5)[0]


def test_an_unchanged_person_keeps_her_volumes_but_stands_and_breathes_differently(subject):
    visit = later_visit(subject, np.random.default_rng(1), VisitParameters(changed=0.0))
    before, after = torso(subject), torso(visit.subject)
    assert visit.changed == ""
    for side in ("left", "right"):
        assert after.volumes[side] == pytest.approx(before.volumes[side], abs=0.01)
    moved = np.linalg.norm(after.mesh.vertices - before.mesh.vertices, axis=1)
    assert 1.0 < moved.mean() < 15.0
    arms = ("arm_raise_left", "arm_raise_right", "shoulder_height", "kyphosis", "chest_depth")
    assert all(getattr(visit.subject.thorax, name) != getattr(subject.thorax, name) for name in arms)
    assert visit.subject.thorax.stature == subject.thorax.stature


def test_a_real_change_is_of_one_side_and_has_the_volume_that_is_told(subject):
    visit = later_visit(subject, np.random.default_rng(2), VisitParameters(changed=1.0))
    other = {"left": "right", "right": "left"}[visit.changed]
    by = visit.subject.breast(visit.changed).volume - subject.breast(visit.changed).volume
    assert 10.0 < abs(by) <= 0.4 * subject.breast(visit.changed).volume
    assert visit.subject.breast(other).volume == subject.breast(other).volume
    assert torso(visit.subject).volumes[visit.changed] == pytest.approx(
        subject.breast(visit.changed).volume + by, abs=0.01
    )


def test_the_absent_side_of_a_person_does_not_change():
    subject = draw_cohort(1, 5, one_sided=1)[0]
    found = {
        later_visit(subject, np.random.default_rng(k), VisitParameters(changed=1.0)).changed for k in range(8)
    }
    assert found == {"left", "right"} - {subject.absent}


def test_no_visit_at_all_is_refused(tmp_path):
    with pytest.raises(BreastMorphError, match="0 visits"):
        write_cohort(tmp_path, 1, 1, visits=0)


@pytest.mark.slow
def test_files_of_two_visits_hold_the_change_and_the_first_is_that_of_one_visit(tmp_path):
    result = CliRunner().invoke(
        main,
        [
            "phantom",
            "--n",
            "1",
            "--seed",
            "3",
            "--visits",
            "2",
            "--changed",
            "1",
            "--out",
            str(tmp_path / "two"),
        ],
    )
    assert result.exit_code == 0, result.output
    write_cohort(tmp_path / "one", 1, 3)
    first, second = (tmp_path / "two" / "scans" / f"000_{k}.ply" for k in (1, 2))
    assert first.read_bytes() == (tmp_path / "one" / "scans" / "000.ply").read_bytes() != second.read_bytes()
    rows = list(csv.DictReader((tmp_path / "two" / "cohort.csv").open()))
    assert [(row["person"], row["visit"]) for row in rows] == [("000", "1"), ("000", "2")]
    with np.load(tmp_path / "two" / "truth" / "000_2.npz") as truth:
        change = {side: float(truth[f"volume_change_{side}"]) for side in ("left", "right")}
        assert float(truth["breathing_mm"]) != 0.0
    for side, by in change.items():
        assert float(rows[1][f"volume_{side}"]) - float(rows[0][f"volume_{side}"]) == pytest.approx(
            by, abs=0.11
        )
    assert sorted(abs(by) > 10.0 for by in change.values()) == [False, True]
