"""What is looked at: two shapes and where they differ, left against right, lines with their values, a ruler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.distance_meter import densely, tape_lines
from breastmorph.clinical.distances import DISTANCES, DRAWN, KINDS
from breastmorph.clinical.examination import UNKNOWN, SymmetryMeter, both_sides
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.explorer.answers import bad_request, not_now, packed
from breastmorph.explorer.app import Asked
from breastmorph.explorer.model_view import measured
from breastmorph.explorer.shapes import NamedShape, patient_shape, shape_of, skin_arrays
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import Message
from breastmorph.mask import breast_regions, completed_landmarks
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import Landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

_STEP = 4.0  # mm between the points of a line that is drawn
_LARGEST = 1e5  # mm: no coordinate of a body in any unit is larger


@lru_cache(maxsize=4)
def _thorax(model: ShapeModel) -> Bools:
    """Vertices that no breast moves; all of them where the model does not know its landmarks."""
    try:
        regions = breast_regions(model.mean_mesh, completed_landmarks(model.mean_mesh, model.landmarks))
    except BreastMorphError:
        return np.ones(model.n_vertices, bool)
    found: Bools = ~(regions["left"] | regions["right"])
    return found


@lru_cache(maxsize=4)
def _symmetry_meter(model: ShapeModel) -> SymmetryMeter:
    return SymmetryMeter(model.mean_mesh, completed_landmarks(model.mean_mesh, model.landmarks), model.mirror)


def aligned(model: ShapeModel, shape: NamedShape, other: NamedShape) -> Floats:
    """The other shape where the first one is shown, (n, 3): the thorax on the thorax, at its own size."""
    first, second = shape.to_shown.apply(shape.vertices), other.to_shown.apply(other.vertices)
    thorax = _thorax(model)
    return Similarity.fit(second[thorax], first[thorax], with_scale=False).apply(second)


def compare(asked: Asked) -> bytes:
    """The second shape aligned with the first, with its skin, and how far the first lies before (+) or behind it."""
    model, (shape, other) = asked.session.view.model, _two(asked)
    second = aligned(model, shape, other)
    away = shape.to_shown.apply(shape.vertices) - second
    difference = (away * vertex_normals(second, model.faces)).sum(axis=1)
    return packed({"vertices": second, "difference": difference, **skin_arrays(other.skin)})


def compare_measures(asked: Asked) -> dict[str, Any]:
    """All measures of two shapes with their difference; its spread where two scans were measured."""
    view, (shape, other) = asked.session.view, _two(asked)
    tape = asked.values.get("tape") is True
    first, second = (
        {(row["name"], row["kind"]): row for row in view.measures(each, tape=tape)["measures"]}
        for each in (shape, other)
    )
    apart = shape.source != other.source  # of one scan both have the same errors of its points
    rows = []
    for key, row in first.items():
        other_row = second.get(key)
        if other_row is None or row["value"] is None or other_row["value"] is None:
            continue
        sd = [
            each["sd"] for each in (row, other_row) if each["sd"] is not None and (apart or each["predicted"])
        ]
        difference = {
            "value": row["value"] - other_row["value"],
            "sd": float(np.linalg.norm(sd)) if sd else None,
        }
        rows.append(row | {"other": other_row, "difference": row | difference})
    return {"rows": rows}


def symmetry(asked: Asked) -> bytes:
    """How far each breast lies outside (+) or inside (-) the mirror image of the other one, mm, and that image."""
    shape = shape_of(asked.session, asked.case, asked.values.get("shape"))
    if shape.absent_side:
        raise not_now("a breast is missing", "Predict it first, then compare the sides", code="one-sided")
    found = _symmetry_meter(asked.session.view.model).of(shape.to_shown.apply(shape.vertices))
    return packed({"symmetry": found.signed, "vertices": found.mirrored.vertices})


def _two(asked: Asked) -> tuple[NamedShape, NamedShape]:
    shape, other = (
        shape_of(asked.session, asked.case, asked.values.get(name)) for name in ("shape", "other")
    )
    return shape, other


def lines(asked: Asked) -> dict[str, Any]:
    """Lines of the main measures on a shape, or on a raw scan between its landmarks, where they are shown."""
    if "scan" in asked.values:
        return _lines_on_scan(asked.session.open(str(asked.values["scan"])))
    session, view = asked.session, asked.session.view
    shape = shape_of(session, asked.case, asked.values.get("shape"))
    marks = (shape.landmarks or view.examiner.landmarks(shape.vertices, shape.absent_side)).without(
        shape.absent_side
    )
    places = marks.at(shape.vertices)
    found = view.examiner.measured(shape.vertices, marks, shape.absent_side, KINDS, shape.predicted)
    values = {(measure.name, measure.kind): measured(measure) for measure in found}
    mesh = TriangleMesh(shape.vertices, view.model.faces)
    drawn = _drawn(Surface(mesh), places)
    to = shape.to_shown
    return {
        "lines": [
            {
                "name": name,
                "values": [values[name, kind] for kind in KINDS if (name, kind) in values],
                "points": to.apply(points).tolist(),
            }
            for name, points in drawn.items()
        ],
        "folds": _folds(places, to),
    }


def _lines_on_scan(case: Case) -> dict[str, Any]:
    """The same on a scan that is not registered yet: straight and along its skin, without a spread."""
    places = case.picks.landmarks
    drawn = _drawn(case.required_scan.surface, places)
    out = []
    for name, points in drawn.items():
        straight = float(np.linalg.norm(points[-1] - points[0]))
        along = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
        out.append(
            {
                "name": name,
                "values": [
                    {"name": name, "kind": kind, "value": value, "unit": "mm", "sd": None, "predicted": False}
                    for kind, value in (("straight", straight), ("tape", along))
                ],
                "points": points.tolist(),
            }
        )
    return {"lines": out, "folds": _folds(places, Similarity())}


def _drawn(surface: Surface, places: Landmarks) -> dict[str, Floats]:
    """Lines along the skin by the names of their measures; straight where the skin does not join the ends."""
    names = [name for name in DRAWN if all(end in places for end in DISTANCES[name].landmarks[:2])]
    if not names:
        return {}
    starts, ends = (np.array([places[DISTANCES[name].landmarks[k]] for name in names]) for k in (0, 1))
    found = {}
    for name, start, end in zip(names, starts, ends, strict=True):
        path = along_skin(surface, start, end)
        found[name] = densely(np.array([start, end]) if path is None else path, _STEP)
    return found


def along_skin(surface: Surface, start: Floats, end: Floats) -> Floats | None:
    """The shortest path over the skin, (k, 3); None where there is none."""
    a, b = (SkinPoints.on(surface, point[None]) for point in (start, end))
    try:
        line = tape_lines(surface, a, b)[0]
    except BreastMorphError:
        return None
    return None if line is None else line.points.at(surface.mesh.vertices)


def _folds(places: Landmarks, to_shown: Similarity) -> list[dict[str, Any]]:
    """The fold of each breast, its nipple and how it hangs."""
    found = []
    for breast in both_sides(places):
        nipple, fold = places.get(f"nipple_{breast.side}"), places.get(f"imf_{breast.side}")
        if nipple is None or fold is None or breast.grade == UNKNOWN:
            continue
        level = np.array([nipple[0], fold[1], max(nipple[2], fold[2])])
        found.append(
            {
                "side": breast.side,
                "grade": breast.grade,
                "above_fold": plain(breast.above_fold),
                "fold": to_shown.apply(fold[None])[0].tolist(),
                "nipple": to_shown.apply(nipple[None])[0].tolist(),
                "level": to_shown.apply(level[None])[0].tolist(),
            }
        )
    return found


def ruler(asked: Asked) -> dict[str, Any]:
    """Straight and along the skin between two points of what is shown: ``scan`` or ``shape``, and ``points``."""
    values = asked.values
    given = values.get("points")
    if not isinstance(given, Sequence) or len(given) != 2 or not all(map(_is_point, given)):
        raise bad_request("a ruler needs two points")
    points = np.array(given, dtype=float)
    if "scan" in values:
        surface = asked.session.open(str(values["scan"])).required_scan.surface
    else:
        shape = shape_of(asked.session, asked.case, values.get("shape"))
        surface = Surface(TriangleMesh(shape.to_shown.apply(shape.vertices), asked.session.view.model.faces))
    on_skin = surface.closest(points).points
    path = along_skin(surface, *on_skin)
    length = None if path is None else float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    reason = (
        None if path is not None else Message("two points lie on pieces of the surface that are not joined")
    )
    return {
        "straight": float(np.linalg.norm(on_skin[1] - on_skin[0])),
        "along": length,
        "reason": reason,
        "points": on_skin.tolist(),
        "way": [] if path is None else densely(path, _STEP).tolist(),
    }


def _is_point(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and len(given) == 3
        and all(isinstance(value, (int, float)) and abs(value) < _LARGEST for value in given)
    )


def other_kinds(session: Session, case: Case, spec: Mapping[str, Any]) -> NamedShape:
    """A shape of another open scan (``case``), or the mirror image of the patient's torso (``reflected``)."""
    if spec["kind"] == "case":
        other = session.workspace.cases.get(str(spec.get("scan", "")))
        if other is None or other.patient is None:
            raise not_now("this scan is not registered yet", "Register it first", code="not-registered")
        return patient_shape(session.view.model, other)
    patient = shape_of(session, case, {"kind": "patient"})
    if patient.absent_side:
        raise not_now("a breast is missing", "Predict it first", code="one-sided")
    mirrored = _symmetry_meter(session.view.model).of(patient.vertices).mirrored.vertices
    return NamedShape(
        f"{patient.name}-reflected", mirrored, patient.to_shown, patient.to_file, source=patient.source
    )
