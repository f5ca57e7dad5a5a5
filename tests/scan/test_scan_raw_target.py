"""What a model can be fitted to: with all landmarks, with a few, with none; surfaces and points."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem, MeshProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan import raw_target
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.raw_target import load_target
from breastmorph.scan.scan import STERNUM
from torso import torso


@pytest.fixture
def files(tmp_path):
    """A scan in cm whose axes are not ours, and its landmarks in the same coordinates."""
    mesh, landmarks = torso(edge=7)
    turned = mesh.vertices[:, [2, 0, 1]] / 10.0
    save_mesh(TriangleMesh(turned, mesh.faces), tmp_path / "a.ply")
    np.savetxt(tmp_path / "a.xyz", turned)
    save_landmarks(
        type(landmarks)(landmarks.names, landmarks.points[:, [2, 0, 1]] / 10.0), tmp_path / "a.json"
    )
    return tmp_path, turned


@pytest.mark.parametrize(
    ("scan", "names"),
    [
        pytest.param("a.ply", None, marks=pytest.mark.slow),
        pytest.param("a.xyz", None, marks=pytest.mark.slow),
        pytest.param("a.ply", STERNUM, marks=pytest.mark.slow),
        ("a.xyz", ("nipple_left",)),
        ("a.ply", "all"),
        ("a.xyz", "all"),
    ],
)
def test_every_target_is_in_mm_and_knows_the_way_back(files, scan, names):
    folder, turned = files
    marks = folder / "a.json"
    whole = load_landmarks(marks)
    if names is None:
        marks = None
    elif names != "all":
        save_landmarks(whole.only(names), marks)
    target = load_target(folder / scan, marks)
    points = target.shape.vertices if isinstance(target.shape, TriangleMesh) else target.shape
    assert np.allclose(target.to_file.apply(points), turned, atol=1e-6)
    assert target.to_file.scale == pytest.approx(0.1)
    assert [finding.message[-7:] for finding in target.findings if finding.code == "unit"] == ["sternum"]
    here = target.landmarks.transformed(target.to_file)
    placed = whole.only({None: (), "all": whole.names}.get(names, names))
    assert {name for name in here if name not in here.found} == set(placed)
    assert np.allclose(here.array(placed), placed.points, atol=1e-6)
    wanted = whole.only(
        STERNUM + ("nipple_left",)
    )  # the rest of this plain torso is doubtful, and said to be
    assert np.linalg.norm(here.array(wanted) - wanted.points, axis=1).max() < 4.0  # cm
    told = [finding.code for finding in target.findings]
    assert ("landmarks-found" in told) == (names != "all")


@pytest.mark.parametrize("scan", ["a.ply", "a.xyz"])
def test_three_landmarks_are_enough_where_none_can_be_found(files, scan, monkeypatch):
    folder, _ = files

    def refuses(*_, **__):
        raise MeshProblem("no torso", code="not-a-torso")

    monkeypatch.setattr("breastmorph.scan.check.find_landmarks", refuses)
    three = load_landmarks(folder / "a.json").only(("xiphoid", "nipple_left", "nipple_right"))
    save_landmarks(three, folder / "a.json")
    target = load_target(folder / scan, folder / "a.json")
    assert target.landmarks.names == three.names
    assert "not-a-torso" in [finding.code for finding in target.findings]
    save_landmarks(three.only(three.names[:2]), folder / "a.json")
    with pytest.raises(MeshProblem) as caught:
        load_target(folder / scan, folder / "a.json")
    assert caught.value.code == "not-a-torso"


def test_a_checked_surface_is_read_once(files, monkeypatch):
    folder, _ = files
    read = []
    monkeypatch.setattr(
        "breastmorph.mesh.files.read_bytes",
        lambda path, kept=raw_target.read_bytes: read.append(path) or kept(path),
    )
    target = load_target(folder / "a.ply", folder / "a.json")
    assert target.landmarks["nipple_left"][0] > 50  # upright: it passed the check
    assert read == [folder / "a.ply"]


@pytest.mark.parametrize("scan", ["a.ply", "a.xyz"])
def test_a_landmark_file_without_a_known_name_is_refused(files, scan):
    folder, _ = files
    (folder / "a.json").write_text('{"left thing": [1, 2, 3]}')
    with pytest.raises(LandmarkProblem, match="left thing") as caught:
        load_target(folder / scan, folder / "a.json")
    assert caught.value.where == folder / "a.json"


@pytest.mark.parametrize("scan", ["a.ply", "a.xyz"])
def test_problems_name_the_file_that_has_them(files, scan):
    folder, _ = files
    off = load_landmarks(folder / "a.json").only(("nipple_left", "nipple_right"))
    save_landmarks(type(off)(off.names, off.points + 50.0), folder / "a.json")
    with pytest.raises(LandmarkProblem, match=r"lie off|off the surface") as caught:
        load_target(folder / scan, folder / "a.json")
    assert caught.value.where == folder / "a.json"
    (folder / scan).write_text("")
    with pytest.raises(BreastMorphError) as caught:
        load_target(folder / scan)
    assert caught.value.where == folder / scan


@pytest.mark.parametrize(
    ("scan", "names"),
    [
        pytest.param("a.ply", "all", marks=pytest.mark.slow),
        ("a.xyz", "all"),
        pytest.param("a.xyz", ("nipple_left", "nipple_right"), marks=pytest.mark.slow),
        pytest.param("a.ply", ("nipple_left", "nipple_right"), marks=pytest.mark.slow),
    ],
)
def test_a_measured_distance_scales_clouds_and_surfaces_in_no_unit(files, scan, names):
    folder, turned = files
    whole = load_landmarks(folder / "a.json")
    small = Similarity(scale=1 / 12.5)  # no torso is as small as that in cm, nor as large in m
    save_landmarks((whole if names == "all" else whole.only(names)).transformed(small), folder / "a.json")
    save_mesh(TriangleMesh(turned / 12.5, torso(edge=7)[0].faces), folder / "a.ply")
    np.savetxt(folder / "a.xyz", turned / 12.5)
    with pytest.raises(BreastMorphError, match=r"scale_by=\"NL-NR=21cm\""):
        load_target(folder / scan, folder / "a.json")
    apart = np.linalg.norm(whole["nipple_left"] - whole["nipple_right"])
    known = CheckParameters(scale_by=f"NL-NR={apart}cm")
    target = load_target(folder / scan, folder / "a.json", known)
    assert target.to_file.scale == pytest.approx(1 / 125)
    assert "scaled" in [finding.code for finding in target.findings]
    if scan == "a.xyz":  # between landmarks that are found, too
        assert load_target(folder / scan, None, known).to_file.scale == pytest.approx(1 / 125, rel=0.1)
    with pytest.raises(LandmarkProblem, match="is not set"):
        load_target(folder / scan, None, CheckParameters(scale_by="NL-navel=21cm"))


@pytest.mark.parametrize(
    "head", ["x y z nx ny nz", "  x   y   z   nx  ny  nz", "x,y,z,nx,ny,nz", '"nx" "ny"  "nz"  "x"  "y" "z"']
)
def test_named_columns_are_found_however_they_are_set_apart(head, tmp_path):
    points = np.random.default_rng(0).normal(size=(5, 3)).round(3)
    rows = np.hstack([np.full((5, 3), 9.0), points] if "nx" in head[:4] else [points, np.full((5, 3), 9.0)])
    mark = "," if "," in head else "   "
    lines = [head, *(mark.join(map(str, row)) for row in rows.tolist())]
    (tmp_path / "cloud.txt").write_text("\n".join(lines))
    assert np.array_equal(raw_target.load_points(tmp_path / "cloud.txt"), points)
