"""Landmarks in JSON: our own layout, 3D Slicer's markups and Scalismo's list."""

from __future__ import annotations

import json
from typing import Any

from breastmorph.errors import FileProblem, LandmarkProblem
from breastmorph.scan.files.labelled import LabelledPoints, Point, listed, point_of, space_of
from breastmorph.scan.landmarks import Landmarks

_SLICER_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/"
    "markups-schema-v1.0.3.json#"
)


def read(text: str) -> LabelledPoints:
    """Points from a JSON text, whichever of the three layouts it has."""
    try:
        content = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise FileProblem(
            f"the JSON text breaks off or is not well formed (line {error.lineno}: {error.msg})",
            "Copy or export the file again",
        ) from error
    if isinstance(content, dict) and "markups" in content:
        return _slicer(content["markups"])
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        return _scalismo(content)
    if isinstance(content, dict):
        return _ours(content)
    raise FileProblem(
        "the JSON text holds no landmarks",
        'Expected are {"name": [x, y, z], ...}, 3D Slicer markups or a Scalismo landmark list',
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise LandmarkProblem(f"{name[:60]!r} is given twice", "Keep one entry per name")
        found[name] = value
    return found


def _ours(content: dict[str, Any]) -> LabelledPoints:
    unit, space = content.get("unit"), content.get("space")
    points = tuple(
        (name, point_of(name, value))
        for name, value in content.items()
        if value is not None and not (name in ("unit", "space") and isinstance(value, str))
    )
    return LabelledPoints(
        points, space_of(space) if isinstance(space, str) else "", unit if isinstance(unit, str) else ""
    )


def _slicer(markups: Any) -> LabelledPoints:
    if not isinstance(markups, list) or not all(isinstance(markup, dict) for markup in markups):
        raise FileProblem("'markups' is not a list of markups", "Save the file again with 3D Slicer")
    points: list[tuple[str, Point]] = []
    frames: set[tuple[str, str]] = set()
    for markup in markups:
        controls = markup.get("controlPoints") or []
        if not isinstance(controls, list):
            raise FileProblem("'controlPoints' is not a list", "Save the file again with 3D Slicer")
        declared = str(markup.get("coordinateSystem", "LPS"))  # LPS is the schema's default
        space = space_of(declared)
        if not space:
            raise LandmarkProblem(f"the coordinate system {declared[:40]!r} is not known", "Use LPS or RAS")
        unit = markup.get("coordinateUnits", "")
        unit = unit[0] if isinstance(unit, list) and unit else unit  # ["mm", "UCUM", "millimeter"]
        placed = [_control(control, number) for number, control in enumerate(controls, 1)]
        chosen = [point for point in placed if point is not None]
        if chosen:
            frames.add((space, unit if isinstance(unit, str) else ""))
        points += chosen
    if len(frames) > 1:
        raise LandmarkProblem(
            "the markups use different coordinate systems or units",
            "Save them with one coordinate system and unit",
        )
    space, unit = frames.pop() if frames else ("", "")
    return LabelledPoints(tuple(points), space, unit)


def _control(control: Any, number: int) -> tuple[str, Point] | None:
    if not isinstance(control, dict):
        raise FileProblem(f"control point {number} is not an object", "Save the file again with 3D Slicer")
    label = str(control.get("label") or control.get("id") or number)
    if control.get("positionStatus", "defined") in ("undefined", "preview", "missing"):
        return None
    return label, point_of(label, control.get("position"))


def _scalismo(content: list[dict[str, Any]]) -> LabelledPoints:
    points = []
    for number, item in enumerate(content, 1):
        if "id" not in item or "coordinates" not in item:
            raise FileProblem(
                f"entry {number} of the list has no 'id' or no 'coordinates'", "Export the file again"
            )
        label = str(item["id"])
        points.append((label, point_of(label, item["coordinates"])))
    return LabelledPoints(tuple(points))


def ours(landmarks: Landmarks, space: str) -> str:
    """Our own layout, one landmark a line. It has no axes: the frame is that of the scan."""
    lines = [f"  {json.dumps(name)}: {json.dumps(list(point))}" for name, point in listed(landmarks)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def scalismo(landmarks: Landmarks, space: str) -> str:
    """Scalismo's list of landmarks."""
    return (
        json.dumps([{"id": name, "coordinates": point} for name, point in listed(landmarks)], indent=1) + "\n"
    )


def slicer(landmarks: Landmarks, space: str) -> str:
    """3D Slicer's markups: one list of points, in millimetres."""
    controls = [
        {
            "id": str(number),
            "label": name,
            "position": point,
            "selected": True,
            "locked": False,
            "visibility": True,
            "positionStatus": "defined",
        }
        for number, (name, point) in enumerate(listed(landmarks), 1)
    ]
    markup = {
        "type": "Fiducial",
        "coordinateSystem": space,
        "coordinateUnits": "mm",
        "labelFormat": "%N-%d",
        "controlPoints": controls,
    }
    return json.dumps({"@schema": _SLICER_SCHEMA, "markups": [markup]}, indent=1) + "\n"
