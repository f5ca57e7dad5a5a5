"""The summary: what is unusual in a cohort is flagged, above all a wrong correspondence on the right surface."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from breastmorph.batch import stretch
from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.stretch import unexplained_stretch
from breastmorph.batch.summary import FIGURES, summarise, write_summary
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.registration import Registrar
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import template_from
from torso import torso

GOOD = {
    "distance_inside": 0.02,
    "distance_outside": 0.3,
    "overlap": 0.9,
    "angle_distortion": 6.5,
    "flipped_percent": 0.0,
    "smallest_area_ratio": 0.3,
    "residual_nipple_left": 0.001,
    "residual_nipple_right": 0.001,
}


def healthy(n: int = 20, seed: int = 0) -> list[Outcome]:
    """Good registrations whose figures scatter by a tenth."""
    rng = np.random.default_rng(seed)
    return [
        Outcome(
            f"{k:02d}", "registered", {"metrics": {n: v * rng.uniform(0.9, 1.1) for n, v in GOOD.items()}}
        )
        for k in range(n)
    ]


def with_figure(outcomes: list[Outcome], index: int, **figures: float | None) -> list[Outcome]:
    changed = list(outcomes)
    changed[index].record["metrics"].update(figures)
    return changed


def flagged(rows) -> dict[str, list[str]]:
    return {row.id: [flag.figure for flag in row.flags] for row in rows if row.flags}


@pytest.mark.parametrize(
    ("figure", "bad"),
    [
        ("distance_inside", 0.8),
        ("distance_outside", 4.0),
        ("overlap", 0.6),
        ("angle_distortion", 13.0),
        ("flipped_percent", 0.3),
        ("smallest_area_ratio", 0.001),
        ("residual_nipple_left", 3.0),
        ("residual_nipple_right", 3.0),
    ],
)
def test_a_bad_figure_is_flagged_in_words_and_only_towards_its_bad_side(figure, bad):
    rows = summarise(with_figure(healthy(), 7, **{figure: bad}))
    assert flagged(rows) == {"07": [figure]}
    text = rows[7].flags[0].text
    assert f"{bad:.2g}" in text
    assert "usual" in text
    assert ";" in text  # what it means; where to look
    good = {"overlap": 1.0, "smallest_area_ratio": 0.9}.get(figure, 0.0)
    assert flagged(summarise(with_figure(healthy(), 7, **{figure: good}))) == {}


def test_a_cohort_of_twins_flags_no_noise():
    twins = [Outcome(f"{k}", "registered", {"metrics": dict(GOOD)}) for k in range(10, 30)]
    twins[3].record["metrics"].update(distance_inside=0.021, overlap=0.899, smallest_area_ratio=0.28)
    assert flagged(summarise(twins)) == {}


def test_a_few_scans_say_nothing_about_what_is_usual():
    assert flagged(summarise(with_figure(healthy(7), 3, distance_inside=9.0))) == {}
    assert flagged(summarise(with_figure(healthy(8), 3, distance_inside=9.0))) == {"03": ["distance_inside"]}


def test_missing_figures_and_failed_scans_take_no_part():
    outcomes = with_figure(healthy(), 4, residual_nipple_left=None, distance_outside=float("nan"))
    outcomes.append(Outcome("zz", "failed", {}, "no landmarks", "missing-landmarks"))
    rows = summarise(outcomes)
    assert flagged(rows) == {}
    assert rows[4].figures.keys() == GOOD.keys() - {"residual_nipple_left", "distance_outside"}
    assert (rows[-1].status, rows[-1].figures, rows[-1].message) == ("failed", {}, "no landmarks")


def test_many_outliers_do_not_hide_each_other():
    outcomes = healthy(20)
    for k in range(4):  # a fifth of the cohort
        with_figure(outcomes, k, angle_distortion=15.0 + k)
    assert flagged(summarise(outcomes)).keys() == {f"{k:02d}" for k in range(4)}


def test_the_csv_file_keeps_what_people_write(tmp_path):
    outcomes = with_figure(healthy(), 2, distance_inside=2.5)
    outcomes.append(Outcome('a,"b"\nc', "failed", {}, 'no; "quotes", please'))
    outcomes.append(Outcome("=1+1", "failed", {}, "@sum(A1)"))
    write_summary(reversed(outcomes), tmp_path / "summary.csv")
    with open(tmp_path / "summary.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows][:-2] == sorted(outcome.id for outcome in outcomes)[:-2]
    assert (rows[-2]["id"], rows[-2]["message"]) == ("'=1+1", "'@sum(A1)")  # no table program computes it
    assert [name for name in rows[0]] == [
        "id", "status", *(figure.name for figure in FIGURES), "seconds", "flags", "message",
    ]  # fmt: skip
    assert "2.5 mm from the scan" in rows[2]["flags"]
    assert rows[-1]["message"] == 'no; "quotes", please'


def test_an_empty_folder_has_an_empty_summary(tmp_path):
    assert write_summary([], tmp_path / "summary.csv") == []
    assert (tmp_path / "summary.csv").read_text().count("\n") == 1


# -- correspondence ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def template():
    return template_from(*torso(edge=11))


def bodies(n: int, seed: int = 0, edge: float = 11.0) -> list[tuple]:
    """Torsos that differ in girth, height, depth and breasts: (mesh, landmarks)."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        mesh, landmarks = torso(edge, size=rng.uniform(0.4, 1.6))
        stretch = 1.0 + 0.08 * rng.normal(size=3)
        made.append(
            (
                mesh.with_vertices(mesh.vertices * stretch),
                Landmarks(landmarks.names, landmarks.points * stretch),
            )
        )
    return made


def stretch_flags(shapes, template, absent=None):
    found = unexplained_stretch(shapes, template, absent or [""] * len(shapes))
    ids = [f"{k:02d}" for k in range(len(shapes))]
    outcomes = [Outcome(i, "registered", {"metrics": dict(GOOD)}) for i in ids]
    return flagged(summarise(outcomes, dict(zip(ids, found, strict=True))))


def slid(mesh, degrees: float):
    """Every point moved around the chest on the same surface."""
    turned = mesh.vertices @ rotation_about(np.array([0.0, 1.0, 0.0]), degrees).T
    found = Surface(mesh).closest(turned)
    return found.points


def test_points_that_slid_around_the_chest_are_flagged_although_the_surface_is_right(template):
    made = bodies(16)
    shapes = [mesh.vertices for mesh, _ in made]
    before = stretch_flags(shapes, template).keys()
    assert len(before - {"05"}) == len(before) <= 1  # the most extreme body of all may ask for a look
    shapes[5] = slid(made[5][0], 8.0)
    assert Surface(made[5][0]).closest(shapes[5]).distances.max() < 1e-9
    assert stretch_flags(shapes, template).keys() - before == {"05"}


@pytest.mark.slow
def test_a_misplaced_landmark_is_flagged_although_the_surface_fits(template):
    registrar = Registrar(template)
    scans = [Scan(f"{k:02d}", *body) for k, body in enumerate(bodies(12, seed=3, edge=9.0))]
    wrong = 4
    points = scans[wrong].landmarks.points.copy()
    nipple = scans[wrong].landmarks.names.index("nipple_left")
    points[nipple] += [35.0, 0.0, 0.0]
    points[nipple] = Surface(scans[wrong].mesh).closest(points[nipple][None]).points[0]
    good = [registrar.register(scan) for scan in scans]
    bad = registrar.register(Scan("bad", scans[wrong].mesh, Landmarks(scans[wrong].landmarks.names, points)))
    assert bad.metrics["distance_inside"] < good[wrong].metrics["distance_inside"] + 0.1
    shapes = [result.vertices for result in good]
    assert f"{wrong:02d}" not in stretch_flags(shapes, template)
    shapes[wrong] = bad.vertices
    assert "stretch_left" in stretch_flags(shapes, template)[f"{wrong:02d}"]


def test_pose_unit_and_order_do_not_matter(template):
    shapes = [mesh.vertices for mesh, _ in bodies(10)]
    first = unexplained_stretch(shapes, template, [""] * 10)
    moved = [
        Similarity(
            rotation_about(np.array([1.0, 2.0, 3.0]), 40.0 * k), np.full(3, 9.0), 0.001 * (k + 1)
        ).apply(s)
        for k, s in enumerate(shapes)
    ]
    again = unexplained_stretch(moved[::-1], template, [""] * 10)[::-1]
    for one, other in zip(first, again, strict=True):
        assert one.keys() == {"left", "right", "outside"}
        assert list(one.values()) == pytest.approx(list(other.values()), rel=1e-3)


def test_the_figure_is_the_residual_of_a_regression_on_all_others(template):
    shapes = [mesh.vertices for mesh, _ in bodies(9)]
    shapes[2] = slid(bodies(9)[2][0], 5.0)
    found = unexplained_stretch(shapes, template, [""] * 9)
    ends, regions = stretch._neighbours(template)
    data = np.array([stretch._log_lengths(shape, ends) for shape in shapes])[:, regions["outside"]]
    data -= np.median(data, axis=0)
    others = np.delete(data, 2, axis=0)
    ridge = data.shape[1] * stretch.StretchParameters().noise ** 2
    share = np.linalg.solve(others @ others.T + ridge * np.eye(8), others @ data[2])
    expected = 100.0 * np.sqrt(((data[2] - share @ others) ** 2).mean())
    assert found[2]["outside"] == pytest.approx(expected, rel=1e-4)


def test_an_absent_breast_is_no_wrong_correspondence(template):
    made = bodies(14)
    shapes = [mesh.vertices for mesh, _ in made]
    flat = torso(11, size=0.0)[0].vertices
    left = shapes[6][:, 0] > 0
    shapes[6] = np.where(left[:, None], flat, shapes[6])
    absent = ["left" if k == 6 else "" for k in range(14)]
    found = unexplained_stretch(shapes, template, absent)
    assert found[6].keys() == {"right", "outside"}
    assert all(one.keys() == {"left", "right", "outside"} for k, one in enumerate(found) if k != 6)


def test_too_few_subjects_predict_nothing(template):
    shapes = [mesh.vertices for mesh, _ in bodies(7)]
    assert unexplained_stretch(shapes, template, [""] * 7) == [{}] * 7
    assert unexplained_stretch([], template, []) == []
