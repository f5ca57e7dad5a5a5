"""`check` on a folder of broken inputs: the right verdict for each, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from torso import torso

Made = tuple[TriangleMesh, Landmarks]


@dataclass(frozen=True)
class Case:
    """How to break a sound scan, and what the check must say."""

    verdict: str
    code: str  # of a finding that must be there; empty when none is due
    change: Callable[[TriangleMesh, Landmarks], Made] = lambda mesh, landmarks: (mesh, landmarks)
    spoil: Callable[[Path, Path], None] = lambda scan, landmarks: None  # the written files


def moved(landmarks: Landmarks, name: str, shift: tuple[float, float, float]) -> Landmarks:
    return Landmarks.of({n: landmarks[n] + (shift if n == name else (0, 0, 0)) for n in landmarks})


def without(landmarks: Landmarks, *names: str) -> Landmarks:
    return landmarks.only([name for name in landmarks if name not in names])


def renamed(landmarks: Landmarks, old: str, new: str) -> Landmarks:
    return Landmarks.of({new if n == old else n: landmarks[n] for n in landmarks})


def exchanged(landmarks: Landmarks, one: str, other: str) -> Landmarks:
    other_name = {one: other, other: one}
    return Landmarks.of({n: landmarks[other_name.get(n, n)] for n in landmarks})


def swapped(landmarks: Landmarks) -> Landmarks:
    mirrored = landmarks.mirrored()
    return Landmarks(mirrored.names, mirrored.points * [-1, 1, 1])


def scaled(mesh: TriangleMesh, landmarks: Landmarks, factor: float) -> Made:
    return mesh.with_vertices(mesh.vertices * factor), landmarks.transformed(Similarity(scale=factor))


def with_nan(mesh: TriangleMesh, share: float) -> TriangleMesh:
    vertices = mesh.vertices.copy()
    some = np.random.default_rng(0).choice(len(vertices), max(1, int(share * len(vertices))), replace=False)
    vertices[some, 1] = np.nan
    vertices[some[0]] = np.inf
    return mesh.with_vertices(vertices)


def more_faces(mesh: TriangleMesh, faces: list[list[int]]) -> TriangleMesh:
    return replace(mesh, faces=np.concatenate([mesh.faces, faces]))


def joined(mesh: TriangleMesh, other: trimesh.Trimesh) -> TriangleMesh:
    vertices = np.concatenate([mesh.vertices, other.vertices])
    return TriangleMesh(vertices, np.concatenate([mesh.faces, np.asarray(other.faces) + mesh.n_vertices]))


def ball(radius: float, centre: tuple[float, float, float]) -> trimesh.Trimesh:
    return trimesh.creation.icosphere(3, radius).apply_translation(centre)


def soup(mesh: TriangleMesh) -> TriangleMesh:
    return TriangleMesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * mesh.n_faces).reshape(-1, 3))


def some_turned(mesh: TriangleMesh) -> TriangleMesh:
    faces = mesh.faces.copy()
    faces[::7] = faces[::7, ::-1]
    return replace(mesh, faces=faces)


def fins(mesh: TriangleMesh, share: float) -> TriangleMesh:
    some = mesh.faces[:: int(1 / share)]
    vertices = np.concatenate([mesh.vertices, mesh.vertices[some].mean(axis=1) + np.array([0, 0, 9])])
    tips = mesh.n_vertices + np.arange(len(some))
    return TriangleMesh(vertices, np.concatenate([mesh.faces, np.column_stack([some[:, :2], tips])]))


def cut_in_two(mesh: TriangleMesh) -> TriangleMesh:
    return mesh.kept(np.abs(mesh.vertices[mesh.faces].mean(axis=1)[:, 1] - 20) > 12)


def pinched(mesh: TriangleMesh) -> TriangleMesh:
    around = np.flatnonzero((mesh.faces == 2050).any(axis=1))
    first = mesh.faces[around[0]]
    opposite = next(k for k in around if len(np.intersect1d(mesh.faces[k], first)) == 1)
    keep = np.ones(mesh.n_faces, bool)
    keep[around] = False
    keep[[around[0], opposite]] = True
    return mesh.kept(keep)


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def on_mesh(
    change: Callable[..., TriangleMesh], *values: object
) -> Callable[[TriangleMesh, Landmarks], Made]:
    return lambda mesh, landmarks: (change(mesh, *values), landmarks)


def on_marks(change: Callable[..., Landmarks], *values: object) -> Callable[[TriangleMesh, Landmarks], Made]:
    return lambda mesh, landmarks: (mesh, change(landmarks, *values))


def in_scale(factor: float) -> Callable[[TriangleMesh, Landmarks], Made]:
    return lambda mesh, landmarks: scaled(mesh, landmarks, factor)


def holed(mesh: TriangleMesh) -> TriangleMesh:
    return mesh.kept(np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1) - [0, -160, 100], axis=1) > 20)


def with_stray(mesh: TriangleMesh) -> TriangleMesh:
    return replace(mesh, vertices=np.concatenate([mesh.vertices, [[0, 0, 9e5]]]))


def at_the_notch(landmarks: Landmarks, name: str, shift: tuple[float, float, float]) -> Landmarks:
    return Landmarks.of(
        {n: landmarks["sternal_notch"] + shift if n == name else landmarks[n] for n in landmarks}
    )


def misspelt(path: Path) -> None:
    path.write_text(path.read_text().replace("nipple_left", "left thing"))


def worded(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "xiphoid": ["a", 1, 2]}))


def found(*names: str) -> Case:
    """Only these landmarks are set; the program finds the others."""
    return Case("usable", "landmarks-found", on_marks(Landmarks.only, names))


RIGHT = ("nipple_right", "lower_pole_right", "lateral_pole_right")
LEFT = ("nipple_left", "lower_pole_left", "lateral_pole_left")
ENDS = ("sternal_notch", "xiphoid")
BALL = ball(150, (0, 0, 0))
OTHER_PLACE = Similarity(translation=np.array([0.0, 60.0, 70.0]))
CASES = {
    "sound": Case("usable", ""),
    "metres": Case("usable", "unit", in_scale(0.001)),
    "centimetres": Case("usable", "unit", in_scale(0.1)),
    "one-sided": Case("usable", "absent-side", on_marks(without, *RIGHT)),
    "holed": Case("usable", "holes", on_mesh(holed)),
    "aliased": Case(
        "usable", "", on_marks(lambda k: renamed(renamed(k, "sternal_notch", "SN"), "xiphoid", "XI"))
    ),
    "few-nan": Case("repaired", "non-finite-vertices", on_mesh(with_nan, 0.002)),
    "seams": Case("repaired", "duplicate-vertices", on_mesh(soup)),
    "slivers": Case("repaired", "degenerate-faces", on_mesh(more_faces, [[5, 5, 6], [7, 8, 7]])),
    "doubled": Case("repaired", "duplicate-faces", on_mesh(lambda m: more_faces(m, m.faces[:20].tolist()))),
    "stray-vertices": Case("repaired", "unreferenced-vertices", on_mesh(with_stray)),
    "finned": Case("repaired", "non-manifold-edges", on_mesh(fins, 0.002)),
    "pinched": Case("repaired", "pinched-vertices", on_mesh(pinched)),
    "inside-out": Case("repaired", "inverted-orientation", on_mesh(TriangleMesh.flipped)),
    "patchwork": Case("repaired", "inconsistent-orientation", on_mesh(some_turned)),
    "crumbs": Case("repaired", "several-components", on_mesh(joined, ball(8, (260, 0, 0)))),
    "units-mixed": Case("repaired", "units-differ", on_mesh(lambda m: m.with_vertices(m.vertices * 0.001))),
    "mostly-nan": Case("refused", "non-finite-vertices", on_mesh(with_nan, 0.3)),
    "all-fins": Case("refused", "non-manifold-edges", on_mesh(fins, 0.3)),
    "cut-in-two": Case("refused", "landmarks-on-several-pieces", on_mesh(cut_in_two)),
    "background": Case("refused", "several-components", on_mesh(joined, ball(400, (0, 0, -900)))),
    "swapped": Case("refused", "sides-swapped", on_marks(swapped)),
    "mirrored": Case("refused", "sides-swapped", lambda m, k: (m.mirrored(), swapped(k.mirrored()))),
    "no-nipple": found(*ENDS, *RIGHT, *LEFT[1:]),
    "no-notch": found("xiphoid", *RIGHT, *LEFT),
    "no-xiphoid": found("sternal_notch", *RIGHT, *LEFT),
    "no-poles": found(*ENDS, "nipple_left", "nipple_right"),
    "one-nipple-and-no-midline": found("sternal_notch", "nipple_left"),
    "no-sides": found(*ENDS),
    "misnamed": Case("usable", "landmarks-found", spoil=lambda s, k: misspelt(k)),
    "off-surface": Case("refused", "landmark-off-surface", on_marks(moved, "lower_pole_left", (0, 0, 60))),
    "other-scan": Case("refused", "landmark-off-surface", on_marks(Landmarks.transformed, OTHER_PLACE)),
    "odd-unit": Case("refused", "unknown-unit", in_scale(1 / 25.4 / 12)),
    "child-sized": Case("refused", "unknown-unit", in_scale(0.5)),
    "notch-as-nipple": Case(
        "refused", "implausible-anatomy", on_marks(at_the_notch, "nipple_left", (25, 0, -3))
    ),
    "pole-above-nipple": Case(
        "refused", "implausible-anatomy", on_marks(at_the_notch, "lower_pole_left", (0, 0, 0))
    ),
    "lower-poles-swapped": Case("refused", "implausible-anatomy", on_marks(exchanged, LEFT[1], RIGHT[1])),
    "lateral-poles-swapped": Case("refused", "implausible-anatomy", on_marks(exchanged, LEFT[2], RIGHT[2])),
    "poles-of-one-side-swapped": Case("refused", "implausible-anatomy", on_marks(exchanged, *LEFT[1:])),
    "nipple-and-pole-swapped": Case("refused", "implausible-anatomy", on_marks(exchanged, LEFT[0], LEFT[2])),
    "sternum-swapped": Case("refused", "sternum-exchanged", on_marks(exchanged, *ENDS)),
    "coarse": Case("refused", "too-coarse", lambda m, k: torso(edge=14)),
    "a-ball": Case(
        "refused", "landmark-off-surface", on_mesh(lambda _: TriangleMesh(BALL.vertices, BALL.faces))
    ),
    "points-only": Case("refused", "no-faces", spoil=lambda s, k: s.write_bytes(POINTS)),
    "truncated": Case("refused", "unreadable", spoil=lambda s, k: truncated(s)),
    "empty": Case("refused", "unreadable", spoil=lambda s, k: s.write_bytes(b"")),
    "not-a-mesh": Case(
        "refused", "unreadable", spoil=lambda s, k: s.write_bytes(b"\x89PNG\r\n" + bytes(300))
    ),
    "bad-index": Case("refused", "unusable-surface", spoil=lambda s, k: s.write_bytes(BAD_INDEX)),
    "landmarks-truncated": Case("refused", "unreadable", spoil=lambda s, k: truncated(k)),
    "landmarks-missing": Case("usable", "landmarks-found", spoil=lambda s, k: k.unlink()),
    "landmarks-twice": Case(
        "refused", "ambiguous-landmarks", spoil=lambda s, k: k.with_suffix(".csv").write_text("SN,0,0,0\n")
    ),
    "landmark-text": Case("refused", "unusable-landmarks", spoil=lambda s, k: worded(k)),
}
HEADER = b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
POINTS = HEADER + b"end_header\n0 0 0\n1 0 0\n0 1 0\n"
BAD_INDEX = (
    HEADER
    + b"element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 9\n"
)


TABLED = ("one-sided", "swapped", "truncated")  # whom the table for people is made of


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """One run of the command over all cases: a batch goes on whatever one of them does."""
    folder = tmp_path_factory.mktemp("broken")
    sound = torso(edge=7.0)
    for name, case in CASES.items():
        mesh, landmarks = case.change(*sound)
        scan, points = folder / "scans" / f"{name}.ply", folder / "landmarks" / f"{name}.json"
        scan.parent.mkdir(exist_ok=True)
        points.parent.mkdir(exist_ok=True)
        save_mesh(mesh, scan)
        save_landmarks(landmarks, points)
        case.spoil(scan, points)
    arguments = ["check", str(folder / "scans"), "--landmarks", str(folder / "landmarks")]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    for path in (*(folder / "scans").iterdir(), *(folder / "landmarks").iterdir()):
        if path.stem not in TABLED:
            path.unlink()
    table = CliRunner().invoke(main, arguments)
    return {"exit": result.exit_code, "table": table, **json.loads(result.stdout)}


@pytest.mark.parametrize("name", CASES)
def test_verdict(report, name):
    record = next(scan for scan in report["scans"] if scan["id"] == name)
    case = CASES[name]
    findings = {finding["code"]: finding for finding in record["findings"]}
    assert record["verdict"] == case.verdict, record["findings"]
    if case.code:
        assert case.code in findings, record["findings"]
    if case.verdict == "refused":
        assert findings[case.code]["remedy"]
    if name == "sound":
        assert record["findings"] == []


def test_the_batch_goes_on_and_the_exit_code_is_one(report):
    assert report["exit"] == 1
    assert len(report["scans"]) == len(CASES)


def test_the_table_names_file_cause_and_remedy_without_traceback(report):
    table = report["table"]
    assert table.exit_code == 1
    assert "Traceback" not in table.output
    flat = " ".join(table.output.replace("│", " ").split())
    assert "right side absent" in flat
    assert "swapped.json" in flat
    assert "sides swapped" in flat
