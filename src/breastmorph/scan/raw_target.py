"""Raw data to fit a model to: a surface or a point cloud in millimetres, with landmarks: set, or else found."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import FileProblem, LandmarkProblem, MeshProblem, error_context
from breastmorph.foundation.files import printable, read_bytes
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Finding, note, repair
from breastmorph.foundation.text import name_of
from breastmorph.mesh.files import load_mesh_or_points
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import BODY_EXTENT, MEASURE_IT, UNITS, enough_landmarks, unit_of_extent
from breastmorph.scan.check import (
    CheckParameters,
    in_mm,
    note_landmarks,
    repaired,
    scale_by,
    scale_of,
    upright_scan,
    with_found,
)
from breastmorph.scan.frame import Reference
from breastmorph.scan.landmark_files import LandmarkFile, read_landmarks
from breastmorph.scan.scan import STERNUM, Landmarks, Note

_POINT_SUFFIXES = (".xyz", ".csv", ".txt", ".asc", ".pts")
_LEAST_FINITE = 0.98  # of a cloud's points
_FEWEST = 100  # points
_NO_FACES = np.zeros((0, 3), np.int64)
_EXAMPLE = N_("Write one point a line: x y z, or x,y,z")


@dataclass(frozen=True, eq=False)
class RawTarget:
    """What a model can be fitted to.

    Attributes
    ----------
    id : str
        The file's stem.
    shape : TriangleMesh or (m, 3) float
        A surface or a point cloud, in mm.
    landmarks : Landmarks
        In the same frame; those that no person set as the program found them.
    to_file : Similarity
        Takes these coordinates back to the file's axes and unit.
    findings : tuple of Finding
    """

    id: str
    shape: TriangleMesh | Floats
    landmarks: Landmarks
    to_file: Similarity = field(default_factory=Similarity)
    findings: tuple[Finding, ...] = ()


def load_target(
    path: Path,
    landmarks: Path | Landmarks | None = None,
    parameters: CheckParameters | None = None,
    reference: Reference | None = None,
) -> RawTarget:
    """Read a scan or a point cloud.

    Landmarks that are not set are found. A surface then passes the same check as any scan; where none can be found,
    three that are set will do.

    Parameters
    ----------
    path : Path
        A mesh file, a mesh file without faces, or a table of x, y, z (.xyz, .csv, .txt, .asc, .pts).
    landmarks : Path or Landmarks, optional
        In the file's coordinates.
    parameters : CheckParameters, optional
    reference : (TriangleMesh, Landmarks), optional
        An upright torso, for the check.

    Raises
    ------
    BreastMorphError
    """
    p, name = parameters or CheckParameters(), name_of(path.stem)
    given, where = LandmarkFile(Landmarks.of({})), None
    if isinstance(landmarks, Landmarks):
        given = LandmarkFile(landmarks, space=landmarks.space)
    elif landmarks is not None:
        given, where = read_landmarks(landmarks, p.landmark_order), landmarks
    findings: list[Finding] = []
    with error_context(path), error_context(where, LandmarkProblem):
        if landmarks is not None and not given.landmarks:
            raise LandmarkProblem(
                "no landmark of the file is known{but_found}",
                "Rename the labels as in docs/landmarks.md",
                code="missing-landmarks/none-known",
                but_found=given.labels_not_understood,
            )
        if path.suffix.lower() in _POINT_SUFFIXES:
            mesh = TriangleMesh(load_points(path), _NO_FACES)
        else:
            mesh = load_mesh_or_points(path)
        if not mesh.n_faces:
            return _cloud(name, mesh, given, p, findings)
        mesh = repaired(mesh, p, findings.append)
        given = with_found(mesh, given, p, findings.append, _enough)
        if not enough_landmarks(given.landmarks):  # for the check: the surface stays in its file's axes
            mm = _mm_per_unit(mesh.vertices, given, p, findings.append)
            mesh, placed, mm = in_mm(mesh, given, mm, p.landmark_distance, findings.append)
            return RawTarget(name, mesh, placed, Similarity(scale=1.0 / mm), tuple(findings))
        scan = upright_scan(name, mesh, given, p, reference, findings.append, {})
        return RawTarget(scan.id, scan.mesh, scan.landmarks, scan.to_file, tuple(findings))


def target_of(shape: TriangleMesh | Floats, landmarks: Landmarks | None = None) -> RawTarget:
    """A surface or points (m, 3) in mm as a target; landmarks that are not set are found.

    Raises
    ------
    MeshProblem
        It is unusable, or shows no torso on which landmarks could be found.
    """
    shape = _sound(shape)
    mesh = shape if isinstance(shape, TriangleMesh) else TriangleMesh(shape, _NO_FACES)
    given = LandmarkFile(Landmarks.of({}) if landmarks is None else landmarks)
    findings: list[Finding] = []
    given = with_found(mesh, given, CheckParameters(unit="mm"), findings.append, _enough)
    return RawTarget("", shape, given.landmarks, findings=tuple(findings))


def _sound(shape: TriangleMesh | Floats) -> TriangleMesh | Floats:
    if isinstance(shape, TriangleMesh):
        if not shape.n_faces or not np.isfinite(shape.vertices).all():
            raise MeshProblem(
                "the surface has no faces or is not finite", "Check the scan", code="unusable-surface/empty"
            )
        return shape
    points = np.asarray(shape, dtype=np.float64)
    if points.ndim != 2 or points.shape[1:] != (3,):
        raise MeshProblem("points have shape {shape}, expected (m, 3)", shape=points.shape)
    finite = np.isfinite(points).sum(axis=1) == 3
    if finite.mean() < 0.9 if len(points) else True:
        raise MeshProblem(
            "{finite:,} of {n_points:,} points have finite coordinates",
            "Export the point cloud again",
            code="non-finite-vertices",
            finite=int(finite.sum()),
            n_points=len(points),
        )
    return _enough_points(points[finite])


def _enough_points(points: Floats) -> Floats:
    """The different ones of some points, which are some hundred at least."""
    points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
    if len(points) < _FEWEST:
        raise MeshProblem(
            "{n_points} different points are too few (at least {fewest})",
            "Give a denser point cloud",
            code="too-few-points",
            n_points=len(points),
            fewest=_FEWEST,
        )
    return points


def _enough(landmarks: Landmarks) -> bool:
    """Where none can be found, three landmarks that are given are enough for a fit."""
    return len(landmarks) >= 3 or enough_landmarks(landmarks)


def load_points(path: Path) -> Floats:
    """Points of a text table, (m, 3): the first three columns, or those named x, y and z."""
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    if "\0" in text:
        raise FileProblem("the file is not text", _EXAMPLE, path)
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#/"]
    if lines and len(lines[0].split()) == 1 and lines[0].strip().isdigit():
        lines = lines[1:]  # some exporters write the number of points first
    if not lines:
        raise MeshProblem("the file holds no points", _EXAMPLE, path, code="too-few-points")
    mark = next((mark for mark in ";\t," if mark in lines[0]), None)
    columns = (0, 1, 2)
    try:  # columns may be set apart by any number of blanks
        header = next(csv.reader(lines[:1], delimiter=mark)) if mark else lines[0].split()
    except csv.Error as error:
        raise FileProblem("the file is no table of points ({why})", _EXAMPLE, path, why=str(error)) from error
    header = [name.strip().strip('"').lower() for name in header]
    if {"x", "y", "z"} <= set(header):
        columns, lines = (header.index("x"), header.index("y"), header.index("z")), lines[1:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty table is found below
            points = np.loadtxt(lines, delimiter=mark, usecols=columns, ndmin=2, dtype=np.float64)
    except (ValueError, IndexError) as error:
        reason = printable(str(error).split("(")[0].strip().rstrip(".;"), 160)
        raise FileProblem(
            "the file is no table of points ({reason})", _EXAMPLE, path, reason=reason
        ) from error
    return points.reshape(-1, 3)


def _cloud(
    name: str, cloud: TriangleMesh, given: LandmarkFile, p: CheckParameters, findings: list[Finding]
) -> RawTarget:
    """A point cloud in its file's axes."""
    finite = _finite(cloud.vertices, findings.append)
    points = _enough_points(cloud.vertices[finite])
    colours = None if cloud.colors is None else cloud.colors[finite]
    shown = TriangleMesh(cloud.vertices[finite], _NO_FACES, colors=colours)
    given = with_found(shown, given, p, findings.append, _enough)
    mm = _mm_per_unit(points, given, p, findings.append)
    points = points * mm
    landmarks = given.landmarks.transformed(Similarity(scale=mm))
    _require_near(points, landmarks, p.landmark_distance)
    return RawTarget(name, points, landmarks, Similarity(scale=1.0 / mm), tuple(findings))


def _finite(points: Floats, add: Note) -> Bools:
    if not len(points):
        raise MeshProblem("the file holds no points", _EXAMPLE, code="too-few-points")
    finite: Bools = np.isfinite(points).sum(axis=1) == 3
    bad = int((~finite).sum())
    if bad > (1.0 - _LEAST_FINITE) * len(points):
        raise MeshProblem(
            "{bad:,} of {n_points:,} points are not finite",
            "Export the point cloud again",
            code="non-finite-vertices",
            bad=bad,
            n_points=len(points),
        )
    if bad:
        add(repair("non-finite-vertices/points", "{n:,} points that are not finite removed", n=bad))
    return finite


def _mm_per_unit(points: Floats, given: LandmarkFile, p: CheckParameters, add: Note) -> float:
    """By a measured distance, or the unit as the user says it; for "auto" by the sternum or, without it, the size."""
    if given.assumed_order:
        note_landmarks(given, add)
    if p.scale_by:
        return scale_by(p.scale_by, given.landmarks, add)
    if all(name in given.landmarks for name in STERNUM):
        return scale_of(given.landmarks, p, add)[0]
    unit = _unit_by_size(points) if p.unit == "auto" else p.unit
    if p.unit == "auto" and unit != "mm":
        add(note("unit/size", "unit taken as {unit} from the size", unit=unit))
    return UNITS[unit]


def _unit_by_size(points: Floats) -> str:
    low, high = np.quantile(points, (0.01, 0.99), axis=0)  # a stray point far off must not decide
    extent = float((high - low).max())
    unit = unit_of_extent(extent)
    if unit is None:
        least, most = BODY_EXTENT
        raise MeshProblem(
            "the data extend over {extent:.3g} in the file's unit; a torso's {least:.0f}-{most:.0f} "
            "mm fit neither mm, cm nor m",
            "Check that it is a torso, or give its unit; where the scale of the file is not known, "
            "set two landmarks, {scale_by}",
            code="unknown-unit/extent",
            extent=extent,
            least=least,
            most=most,
            scale_by=MEASURE_IT,
        )
    return unit


def _require_near(points: Floats, landmarks: Landmarks, allowed: float) -> None:
    """Refuse landmarks that lie off a cloud by more than its own holes explain."""
    tree = cKDTree(points)
    spacing = float(np.median(tree.query(points[:2000], 2)[0][:, 1])) if len(points) > 1 else 0.0
    distances = tree.query(landmarks.points)[0]
    limit = allowed + 2.0 * spacing
    if np.median(distances) > limit:
        worst = int(distances.argmax())
        raise LandmarkProblem(
            "most landmarks lie off the points, {name:landmark} by {distance:.0f} mm",
            "Check that they belong to this scan and were picked in its coordinates",
            code="landmark-off-surface/points",
            name=landmarks.names[worst],
            distance=float(distances[worst]),
        )
