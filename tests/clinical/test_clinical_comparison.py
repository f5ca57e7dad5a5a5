"""Scans of one person at several times: real changes are found, noise is not called one, mistakes are told."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.clinical.comparer import APART, Comparer, _grades
from breastmorph.clinical.comparison import Comparison, as_record
from breastmorph.clinical.data_dictionary import dictionary
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.repeatability import (
    Repeatability,
    VolumeNoise,
    builtin_repeatability,
    load_repeatability,
    repeat_study,
    repeated_people,
)
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.errors import FileProblem, LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.registration.pipeline import Registrar
from breastmorph.report.measure_tables import in_cm
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import template_from
from breastmorph.usecases import compare
from refusals import refused
from torso import torso

EDGE = 7.0  # mm, of scans
TEMPLATE = 10.0


def person(left: float = 0.8, right: float = 0.8, edge: float = EDGE) -> tuple[TriangleMesh, Landmarks]:
    """A torso whose breasts project by their own factors."""
    (one, marks), (other, more) = torso(edge, left), torso(edge, right)

    def mixed(a, b):
        share = 1.0 / (1.0 + np.exp(-a[:, :1] / 6.0))
        return share * a + (1.0 - share) * b

    mesh = one.with_vertices(mixed(one.vertices, other.vertices))
    return mesh, Landmarks(marks.names, mixed(marks.points, more.points))


def scanned(mesh: TriangleMesh, landmarks: Landmarks, name: str, seed: int = 0) -> Scan:
    """A scan in another pose, with noise, as the check would give it: upright but for a small turn."""
    rng = np.random.default_rng(seed)
    pose = Similarity(rotation_about(rng.normal(size=3), 3.0), rng.normal(scale=8.0, size=3))
    noise = 0.2 * rng.normal(size=(mesh.n_vertices, 1)) * vertex_normals(mesh.vertices, mesh.faces)
    return Scan(
        name,
        mesh.with_vertices(pose.apply(mesh.vertices + noise)),
        landmarks.transformed(pose),
        pose.inverse(),
    )


@pytest.fixture(scope="module")
def template():
    return template_from(*torso(TEMPLATE))


@pytest.fixture(scope="module")
def compared(template):
    """Compares scans with a small template."""
    comparer, registrar = Comparer(template), Registrar(template)
    return lambda *scans: comparer.compare(scans, registrar.register(scans[0]))


@pytest.fixture(scope="module")
def grown(compared) -> Comparison:
    """One breast larger at the second visit, back at the third."""
    before, after = person(), person(left=1.0)
    return compared(scanned(*before, "a"), scanned(*after, "b", 1), scanned(*person(edge=6.0), "c", 2))


def true_change() -> float:
    """By the same definition of volume, with every vertex of the template at its true place."""
    volumes = BreastVolumes(*torso(TEMPLATE))
    return volumes.cc(person(left=1.0, edge=TEMPLATE)[0].vertices, "left") - volumes.cc(
        person(edge=TEMPLATE)[0].vertices, "left"
    )


def test_a_real_change_is_found_on_its_side_and_the_other_side_stays(grown):
    left, right = grown.changes[0].volumes["left"], grown.changes[0].volumes["right"]
    assert left.change == pytest.approx(true_change(), rel=0.15)
    assert left.exceeds
    assert abs(right.change) < 8.0
    assert right.exceeds is False


def test_a_person_in_another_pose_and_triangulation_did_not_change(grown):
    assert all(abs(one.change) < 8.0 and one.exceeds is False for one in grown.last.volumes.values())
    notch = next(one for one in grown.last.measures if (one.name, one.kind) == ("SN-NL", "straight"))
    assert abs(notch.change) < 2.0


def test_the_map_is_outwards_where_the_breast_grew_and_still_elsewhere(grown, template):
    across = grown.changes[0].skin.across
    at = template.landmark_ids
    assert (
        5.0 < across[at["nipple_left"]] < 11.0
    )  # 0.2 of the projection is 11 mm; its foot moves the wall a little
    assert abs(across[at["nipple_right"]]) < 1.5
    assert np.isnan(across[at["sternal_notch"]])
    assert abs(grown.changes[0].stance.posture) < 1.5


@pytest.mark.slow
def test_there_and_back_give_opposite_changes(compared, grown):
    back = compared(scanned(*person(left=1.0), "b", 1), scanned(*person(), "a"))
    assert back.last.volumes["left"].change == pytest.approx(
        -grown.changes[0].volumes["left"].change, rel=0.12
    )


@pytest.mark.slow
def test_breath_is_told_apart_from_the_breast(compared):
    mesh, marks = person()
    deeper = np.array([1.0, 1.0, 1.03])
    breathing = scanned(
        mesh.with_vertices(mesh.vertices * deeper), Landmarks(marks.names, marks.points * deeper), "in"
    )
    found = compared(scanned(*person(), "out"), breathing).last
    assert found.stance.depth == pytest.approx(3.0, abs=1.2)
    # The breast itself is stretched by 3 %, the chest in front moves by as much as its skin.
    assert all(abs(one.change) < 0.06 * one.before for one in found.volumes.values())


@pytest.mark.slow
def test_another_scale_is_warned_of_or_refused(compared):
    first = scanned(*person(), "a")

    def larger(by):
        mesh, marks = person()
        return scanned(mesh.with_vertices(by * mesh.vertices), Landmarks(marks.names, by * marks.points), "b")

    assert [w.code for w in compared(first, larger(1.07)).warnings] == ["odd-size"]
    with refused("other-size"):
        compared(first, larger(1.2))


@pytest.mark.slow
def test_another_person_is_warned_of(compared):
    mesh, marks = person()
    other = np.array([1.12, 1.0, 0.75])
    broad = scanned(
        mesh.with_vertices(mesh.vertices * other), Landmarks(marks.names, marks.points * other), "b"
    )
    assert "odd-person" in [w.code for w in compared(scanned(*person(), "a"), broad).warnings]


@pytest.mark.slow
def test_exchanged_sides_are_warned_of_and_exchanged_names_refused(compared):
    mesh, marks = person(left=1.0, right=0.6)
    first = scanned(mesh, marks, "a")
    mirrored = TriangleMesh(mesh.vertices * MIRROR, mesh.faces[:, ::-1].copy())
    found = compared(first, scanned(mirrored, marks.mirrored(), "b"))
    assert "odd-sides" in [w.code for w in found.warnings]
    assert "odd-sides" not in [w.code for w in compared(first, scanned(mesh, marks, "b", 1)).warnings]
    swapped = [
        name.replace("left", "RIGHT").replace("right", "left").replace("RIGHT", "right")
        for name in marks.names
    ]
    with pytest.raises(LandmarkProblem, match="sides swapped"):
        compared(first, scanned(mesh, Landmarks(tuple(swapped), marks.points), "b"))


@pytest.mark.slow
def test_a_side_that_is_absent_at_one_visit_is_not_compared(compared):
    mesh, marks = person(right=0.0)
    kept = marks.only(name for name in marks if not name.endswith("right"))
    found = compared(scanned(*person(), "a"), scanned(mesh, kept, "b"))
    assert found.last.volumes["right"].exceeds is None
    assert abs(found.last.volumes["left"].change) < 15.0
    assert "side-not-compared" in [w.code for w in found.warnings]
    assert as_record(found)["volume_change_right"] is None


def test_one_scan_is_not_enough(compared):
    with refused("too-few-visits"):
        compared(scanned(*person(), "a"))


def test_the_spread_grows_with_size_hidden_skin_and_posture():
    noise = VolumeNoise(5.0, 0.01, 0.1, 1.0)
    assert noise.sd(0.0, 0.0, 0.0) == 5.0
    plain = noise.sd(400.0, 0.0, 0.0)
    assert noise.sd(800.0, 0.0, 0.0) > plain < noise.sd(400.0, 0.3, 0.0)
    assert noise.sd(400.0, 0.0, 5.0) > plain
    assert noise.times(2.0).sd(400.0, 0.3, 5.0) == pytest.approx(2 * noise.sd(400.0, 0.3, 5.0))


def test_the_built_in_spread_knows_every_measure_of_the_dictionary():
    known = builtin_repeatability()
    assert known.people >= 10
    measures = {f"{one.name} {kind}" for one in dictionary() for kind in one.kinds.split(" and ")}
    volumes = {"volume-left volume", "volume-right volume"}  # whose spread is no single number
    assert measures - volumes <= set(known.measures)
    assert "volume left minus right" in known.measures
    assert 3.0 < known.volume.sd(400.0, 0.1, 3.0) < 25.0


def test_every_measure_of_the_dictionary_is_compared_with_its_spread(grown):
    found = {(one.name, one.kind): one for one in grown.last.all}
    wanted = {(one.name, kind) for one in dictionary() for kind in one.kinds.split(" and ")}
    assert set(found) == wanted | {("volume", APART)}
    assert all(one.sd > 0 for one in found.values() if np.isfinite(one.change))
    first, later = (visit.volumes["left"] for visit in grown.changes)
    changed = {(one.name, one.kind): one for one in grown.changes[0].all}
    # The left breast projects a quarter more: all that follows from it says so, the right side does not.
    for name in ("projection-left", "surface-left", "volume-inner-border-left", "volume-flat-wall-left"):
        (kind,) = (kind for other, kind in changed if other == name)
        assert changed[name, kind].exceeds, name
        other = changed[name.replace("left", "right"), kind]
        assert not other.exceeds, name
    assert changed["volume", APART].change == pytest.approx(
        first.change - grown.changes[0].volumes["right"].change
    )
    assert changed["mirror deviation", "mean"].change > 1.0
    assert abs(found["mirror deviation", "mean"].change) < 1.0  # and back at the third visit
    assert abs(later.change) < 15.0


def test_another_grade_of_ptosis_counts_only_where_the_nipple_moved_beyond_noise(grown):
    visit, one = grown.changes[0], grown.visits[0]
    height = next(m for m in visit.measures if m.name == "nipple-above-fold-left")
    graded = replace(one, ptosis=tuple(replace(p, grade="none") for p in one.ptosis))
    lower = replace(one, ptosis=tuple(replace(p, grade="I") for p in one.ptosis))
    for moved, exceeds in ((0.5, False), (5.0, True)):
        change = replace(height, beside={"before": 0.0, "after": -moved * height.sd * 1.96})
        found = _grades(graded, lower, [change])
        assert (found["left"].before, found["left"].after, found["left"].exceeds) == ("none", "I", exceeds)
        assert _grades(graded, graded, [change])["left"].exceeds is False
        assert found["right"].exceeds is None  # nobody knows its height's spread
    unknown = replace(one, ptosis=tuple(replace(p, grade="not determinable") for p in one.ptosis))
    assert not _grades(graded, unknown, [height])


@pytest.mark.slow
def test_landmarks_that_were_found_widen_the_spread_of_a_distance(compared):
    from breastmorph.scan.scan import Found

    first, later = scanned(*person(), "a"), scanned(*person(), "b", 1)
    found = Found("shape", 4.0, 8.0 * np.eye(3), False)
    vague = replace(later, landmarks=replace(later.landmarks, found={"nipple_left": found}))
    sure, unsure = (
        next(
            one
            for one in compared(first, scan).last.measures
            if (one.name, one.kind) == ("SN-NL", "straight")
        )
        for scan in (later, vague)
    )
    assert unsure.sd == pytest.approx(np.hypot(sure.sd, 4.0))


def invented(grown: Comparison, changes: list[float]) -> Comparison:
    """A comparison whose left volumes differ from the first visit's 400 cc by given amounts."""
    visits = []
    for change in changes:
        left = Measure.compared("volume-left", "volume", "cc", 400.0, 400.0 + change, 10.0)
        length = Measure.compared("SN-NL", "straight", "mm", 200.0, 200.0 + change / 10.0, 1.0)
        none = Measure.compared("volume-right", "volume", "cc", np.nan, np.nan, np.nan)
        visits.append(replace(grown.changes[0], volumes={"left": left, "right": none}, measures=(length,)))
    return replace(grown, changes=tuple(visits))


def test_a_study_gives_within_subject_spread_and_scales_that_of_volumes(grown):
    pairs = {
        name: invented(grown, [change])
        for name, change in zip("abcd", (10.0, -10.0, 20.0, -20.0), strict=True)
    }
    study = repeat_study(pairs, "four")
    volume = next(one for one in study.measures if one.name == "volume-left")
    within = np.sqrt(np.mean([50.0, 50.0, 200.0, 200.0]))  # half of the squared differences
    assert volume.within_sd == pytest.approx(within)
    assert volume.coefficient == pytest.approx(1.96 * np.sqrt(2.0) * within)
    assert study.repeatability.measures["SN-NL straight"] == pytest.approx(within / 10.0)
    visit = grown.changes[0]
    assert study.repeatability.volume.sd(400.0, visit.hidden["left"], visit.stance.posture) == pytest.approx(
        np.sqrt(250.0), rel=0.03
    )
    assert [w.code for w in study.warnings] == ["few-repeated"]


def test_three_scans_of_one_person_count_as_three_not_as_two_pairs(grown):
    study = repeat_study({"a": invented(grown, [10.0, -10.0])}, "one")
    assert study.measures[0].within_sd == pytest.approx(np.std([400.0, 410.0, 390.0], ddof=1))


def test_a_study_is_read_back_and_other_files_are_refused(tmp_path):
    known = Repeatability({"SN-NL straight": 1.25}, VolumeNoise(5.0, 0.01, 0.1, 1.0), 12, "volunteers")
    known.save(tmp_path / "r.json")
    assert load_repeatability(tmp_path / "r.json") == known
    older = (tmp_path / "r.json").read_text().replace("within_subject_sd", "within_subject_sd_mm")
    (tmp_path / "older.json").write_text(older)
    assert load_repeatability(tmp_path / "older.json") == known
    for content in ('{"people": 3}', "[1]", '{"volume_change_sd": {"floor_cc": -1}}', "nonsense"):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(FileProblem):
            load_repeatability(tmp_path / "other.json")


def test_people_are_told_apart_by_folder_or_by_number(tmp_path):
    mesh, _ = torso(40.0)
    names = [f"flat/{name}" for name in ("x_1", "x_2", "x_10", "y_1", "plain")]
    for name in (*names, "deep/p017/1", "deep/p017/2", "deep/p018/1"):
        place = tmp_path / f"{name}.ply"
        place.parent.mkdir(parents=True, exist_ok=True)
        save_mesh(mesh, place)
    (found,) = repeated_people(tmp_path / "flat").items()
    assert (found[0], [files.id for files in found[1]]) == ("x", ["x_1", "x_2", "x_10"])
    assert list(repeated_people(tmp_path / "deep")) == ["p017"]
    with refused("nothing-repeated"):
        repeated_people(tmp_path / "deep" / "p018")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("visits")
    for name, left, seed in (
        ("a_1", 0.8, 0),
        ("a_2", 0.8, 1),
        ("b_1", 0.9, 2),
        ("b_2", 0.9, 3),
        ("later", 1.0, 4),
    ):
        scan = scanned(*person(left=left), name, seed)
        save_mesh(scan.mesh, folder / f"{name}.ply")
        save_landmarks(scan.landmarks, folder / f"{name}.json")
    return folder


@pytest.fixture
def command(template, monkeypatch):
    monkeypatch.setattr(compare, "default_template", lambda: template)
    return lambda *words: CliRunner().invoke(main, ["compare", *map(str, words)])


def test_the_command_writes_page_sheet_json_and_csv_that_agree(files, command, tmp_path, blank_pictures):
    result = command(files / "a_1.ply", files / "later.ply", "--out", tmp_path / "c", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert record == json.loads(result.stdout)
    assert record["volume_change_left"] == pytest.approx(true_change(), abs=15.0)  # cc
    assert record["volume_change_left_exceeds_repeatability"]
    assert not record["volume_change_right_exceeds_repeatability"]
    assert record["volume_change_left_sd"] > 0
    rows = (tmp_path / "c" / "comparison.csv").read_text().splitlines()
    assert f"{record['volume_change_left']:.2f}" in rows[1]
    assert len(rows) == 1 + len(record["changes"][0]["measures"]) + len(record["changes"][0]["ptosis"])
    page = (tmp_path / "c" / "comparison.html").read_text()
    assert f"+{record['volume_change_left']:.0f} ± {record['volume_change_left_sd']:.0f} cc" in page
    shown = [
        one for one in record["changes"][0]["measures"] if one["kind"] != "tape" and one["change"] is not None
    ]
    assert {"mirror deviation", "surface-left", "volume-flat-wall-right"} <= {one["name"] for one in shown}
    for one in shown:
        digits = 2 if one["kind"] == "mean" else 1
        number, unit = in_cm(one["change"], one["unit"], digits, "+").rsplit(" ", 1)
        assert f"{number} ± {in_cm(one['sd'], one['unit'], digits).rsplit(' ', 1)[0]} {unit}" in page, one[
            "name"
        ]
    assert (tmp_path / "c" / "comparison.pdf").read_bytes().startswith(b"%PDF")
    assert str(files) not in page


@pytest.mark.slow
def test_a_study_of_repeated_scans_feeds_a_later_comparison(files, command, tmp_path, blank_pictures):
    result = command("--repeat", files, "--out", tmp_path / "s")
    assert result.exit_code == 0, result.output
    assert "only 2 people were scanned again" in result.stderr
    assert "Bland-Altman" in (tmp_path / "s" / "repeatability.html").read_text()
    study = tmp_path / "s" / "repeatability.json"
    result = command(
        files / "a_1.ply", files / "later.ply", "--repeatability", study, "--out", tmp_path / "c", "--json"
    )
    assert json.loads(result.stdout)["repeatability"]["people"] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("one.ply",), "two or more scans"),
        (("one.ply", "two.ply", "--repeat", "x"), "not both"),
        (("one.ply", "two.ply", "three.ply", "--landmarks", "a", "--landmarks", "b"), "once for every scan"),
    ],
)
def test_wrong_usage_is_told(words, told):
    result = CliRunner().invoke(main, ["compare", *words, "--out", "out"])
    assert result.exit_code == 2
    assert told in result.stderr
