"""Landmark files of every program we know."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from breastmorph.foundation.checks import AnyPath, check_path, check_type
from breastmorph.foundation.errors import FileProblem, LandmarkProblem
from breastmorph.foundation.files import in_utf8, printable, problems_of, read_bytes, write_file
from breastmorph.foundation.messages import Finding, Message, note
from breastmorph.foundation.safe_parsing import parse_xml
from breastmorph.mesh.files import ply
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import NAMES, RBSM_ORDER, Found, Landmarks, canonical_name

Point = tuple[float, float, float]


@dataclass(frozen=True)
class LabelledPoints:
    """The content of a landmark file.

    Attributes
    ----------
    points : tuple of (label, (x, y, z))
        Points that are set, with their labels as written; the label is empty in a bare list.
    space : str
        "LPS" or "RAS" where declared, otherwise empty.
    unit : str
        As declared, otherwise empty.
    found : mapping from label to Found
        What it says of those that the program found.
    """

    points: tuple[tuple[str, Point], ...]
    space: str = ""
    unit: str = ""
    found: Mapping[str, Found] = field(default_factory=dict)


def point_of(label: str, coordinates: Any) -> Point:
    """Three finite numbers from whatever a file gave for a landmark."""
    shown = f"landmark {label[:60]!r}"
    if not isinstance(coordinates, list | tuple) or len(coordinates) != 3:
        raise LandmarkProblem("{shown} does not have three coordinates", "Give x, y and z", shown=shown)
    point = []
    for value in coordinates:
        try:
            if isinstance(value, bool):
                raise TypeError
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise LandmarkProblem(
                "{shown} has the coordinate {value!r}, which is not a number",
                "Correct it in the file",
                shown=shown,
                value=str(value)[:40],
            ) from None
        if not math.isfinite(number):
            raise LandmarkProblem(
                "{shown} has a coordinate that is not finite ({number})",
                "Remove the landmark or place it again",
                shown=shown,
                number=number,
            )
        point.append(number)
    return point[0], point[1], point[2]


def listed(landmarks: Landmarks) -> list[tuple[str, list[float]]]:
    """Names and coordinates of landmarks that are to be written."""
    return list(zip(landmarks.names, landmarks.points.tolist(), strict=True))


def space_of(text: str) -> str:
    """ "LPS" or "RAS" from a name or from 3D Slicer's old numbers; empty for anything else."""
    return {"LPS": "LPS", "RAS": "RAS", "1": "LPS", "0": "RAS"}.get(text.strip().upper(), "")


def _declared_space(declared: str) -> str:
    space = space_of(declared)
    if not space:
        raise LandmarkProblem(
            "the coordinate system {declared!r} is not known", "Use LPS or RAS", declared=declared[:40]
        )
    return space


_SLICER_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/"
    "markups-schema-v1.0.3.json#"
)


def read_json(text: str) -> LabelledPoints:
    """Points from a JSON text, whichever of the three layouts it has."""
    try:
        content = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise FileProblem(
            "the JSON text breaks off or is not well formed (line {line}: {why})",
            "Copy or export the file again",
            line=error.lineno,
            why=error.msg,
        ) from error
    if isinstance(content, dict) and "markups" in content:
        return _from_slicer(content["markups"])
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        return _from_scalismo(content)
    if isinstance(content, dict):
        return _from_ours(content)
    raise FileProblem(
        "the JSON text holds no landmarks",
        'Expected are {"name": [x, y, z], ...}, 3D Slicer markups or a Scalismo landmark list',
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise LandmarkProblem("{name!r} is given twice", "Keep one entry per name", name=name[:60])
        found[name] = value
    return found


_ABOUT_FOUND = ("uncertainty", "covariance", "found", "doubtful")  # beside points that the program found


def _from_ours(content: dict[str, Any]) -> LabelledPoints:
    unit, space = content.get("unit"), content.get("space")
    points = tuple(
        (name, point_of(name, value))
        for name, value in content.items()
        if value is not None
        and not (name in ("unit", "space") and isinstance(value, str))
        and not (name in _ABOUT_FOUND and isinstance(value, dict | list))
    )
    return LabelledPoints(
        points,
        space_of(space) if isinstance(space, str) else "",
        unit if isinstance(unit, str) else "",
        _found_in({name: content.get(name) or {} for name in _ABOUT_FOUND}),
    )


def _found_in(entries: dict[str, Any]) -> dict[str, Found]:
    """What our layout says of landmarks that the program found."""
    how = entries["found"]
    doubtful = entries["doubtful"] or []
    if not isinstance(how, dict) or not isinstance(doubtful, list):
        raise _unusable("found" if isinstance(doubtful, list) else "doubtful")
    found = {}
    for name, method in how.items():
        if method == "set":
            continue
        try:
            sd = float(entries["uncertainty"][name])
            covariance = np.array(entries["covariance"].get(name, np.diag([sd * sd] * 3).tolist()), float)
            sound = 0.0 <= sd < math.inf and covariance.shape == (3, 3) and np.isfinite(covariance).all()
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise _unusable(f"uncertainty of {name[:60]}")
        found[name] = Found(str(method)[:60], sd, covariance, name in doubtful)
    return found


def _unusable(key: str) -> LandmarkProblem:
    return LandmarkProblem(
        "what the file says of found landmarks cannot be used ({key})",
        "Write the file again, or remove that entry",
        code="unusable-landmarks/found",
        key=key,
    )


def _from_slicer(markups: Any) -> LabelledPoints:
    if not isinstance(markups, list) or not all(isinstance(markup, dict) for markup in markups):
        raise FileProblem("'markups' is not a list of markups", "Save the file again with 3D Slicer")
    points: list[tuple[str, Point]] = []
    frames: set[tuple[str, str]] = set()
    for markup in markups:
        controls = markup.get("controlPoints") or []
        if not isinstance(controls, list):
            raise FileProblem("'controlPoints' is not a list", "Save the file again with 3D Slicer")
        space = _declared_space(str(markup.get("coordinateSystem", "LPS")))  # LPS is the schema's default
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
        raise FileProblem(
            "control point {number} is not an object", "Save the file again with 3D Slicer", number=number
        )
    label = str(control.get("label") or control.get("id") or number)
    if control.get("positionStatus", "defined") in ("undefined", "preview", "missing"):
        return None
    return label, point_of(label, control.get("position"))


def _from_scalismo(content: list[dict[str, Any]]) -> LabelledPoints:
    points = []
    for number, item in enumerate(content, 1):
        if "id" not in item or "coordinates" not in item:
            raise FileProblem(
                "entry {number} of the list has no 'id' or no 'coordinates'",
                "Export the file again",
                number=number,
            )
        label = str(item["id"])
        points.append((label, point_of(label, item["coordinates"])))
    return LabelledPoints(tuple(points))


def ours(landmarks: Landmarks, absent: Sequence[str] = ()) -> str:
    """Our own layout, one landmark a line, with null for those that are absent; the frame is that of the scan."""
    content: dict[str, Any] = dict(listed(landmarks)) | dict.fromkeys(absent)
    if landmarks.found:
        known = {name: landmarks.found[name] for name in landmarks.names if name in landmarks.found}
        content["uncertainty"] = {name: round(one.sd, 2) for name, one in known.items()}
        content["covariance"] = {name: one.covariance.round(3).tolist() for name, one in known.items()}
        content["found"] = {name: known[name].how if name in known else "set" for name in landmarks.names}
        content["doubtful"] = list(landmarks.doubtful)
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _scalismo_text(landmarks: Landmarks, space: str) -> str:
    """Scalismo's list of landmarks."""
    points = [{"id": name, "coordinates": point} for name, point in listed(landmarks)]
    return json.dumps(points, indent=1) + "\n"


def _slicer_text(landmarks: Landmarks, space: str) -> str:
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


def read_picked_points(text: str) -> LabelledPoints:
    """Points that are active, from a .pp text."""
    root = parse_xml(text.encode(), allow_bare_doctype=True)
    if root.tag != "PickedPoints":
        raise FileProblem(
            "the XML text holds {tag!r}, not MeshLab's PickedPoints",
            "Save the points as .pp",
            tag=root.tag[:40],
        )
    points = []
    for number, point in enumerate(root.iter("point"), 1):
        if point.get("active", "1").strip() == "0":
            continue  # a name of the template that was never placed
        label = point.get("name", "").strip() or str(number)
        points.append((label, point_of(label, [point.get(axis) for axis in "xyz"])))
    return LabelledPoints(tuple(points))


def _picked_points_text(landmarks: Landmarks, space: str) -> str:
    """The .pp text; the format has no axes."""
    lines = ["<!DOCTYPE PickedPoints>", "<PickedPoints>", " <DocumentData/>"]
    lines += [
        f' <point active="1" name={quoteattr(name)} x="{x!r}" y="{y!r}" z="{z!r}"/>'
        for name, (x, y, z) in listed(landmarks)
    ]
    return "\n".join([*lines, "</PickedPoints>"]) + "\n"


FCSV = re.compile(
    r"(?im)^#\s*(markups fiducial file version|columns\s*=|coordinatesystem\s*=|fiducial list file)"
)
_FCSV_HEADER = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
_FCSV_COLUMNS = _FCSV_HEADER.split(",")
_FCSV_STATUS = 14  # an unnamed column that Slicer 5 appends: 2 is a placed point
_LABELS = ("name", "label", "landmark", "landmarks", "id", "point")
# Slicer's "control points to CSV" names the axes it uses.
_AXES = {("x", "y", "z"): "", ("r", "a", "s"): "RAS", ("l", "p", "s"): "LPS"}


def read_fcsv(text: str) -> LabelledPoints:
    """Points from 3D Slicer's .fcsv."""
    space, columns = "RAS", _FCSV_COLUMNS  # files without the line come from versions that only knew RAS
    rows = []
    for line in text.splitlines():
        if line.startswith("#"):
            key, equals, value = line[1:].partition("=")
            if equals and key.strip().lower() == "coordinatesystem":
                space = _declared_space(value.strip())
            elif equals and key.strip().lower() == "columns":
                columns = [name.strip() for name in value.split(",")]
        elif line.strip():
            rows.append(line)
    if not {"x", "y", "z"} <= set(columns):
        raise FileProblem("the columns x, y and z are missing", "Save the file again with 3D Slicer")
    points: list[tuple[str, Point]] = []
    for number, row in enumerate(csv.reader(rows), 1):
        fields = dict(zip(columns, row, strict=False))
        label = (fields.get("label") or fields.get("id") or str(number)).strip()
        if (
            columns == _FCSV_COLUMNS
            and len(row) > _FCSV_STATUS
            and row[_FCSV_STATUS].strip() not in ("", "2")
        ):
            continue
        points.append((label, point_of(label, [fields.get(axis) for axis in "xyz"])))
    return LabelledPoints(tuple(points), space)


def read_table(text: str) -> LabelledPoints:
    """Points from a table: ``name,x,y,z`` or bare ``x,y,z``; commas, semicolons, tabs or blanks between."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise FileProblem("the file holds no landmarks", "Lines of name,x,y,z are expected")
    mark = next((mark for mark in (";", "\t", ",") if mark in lines[0]), None)
    if mark is None:
        rows = [line.split() for line in lines]
    else:
        rows = [[field.strip() for field in row] for row in csv.reader(lines, delimiter=mark)]
    if mark in (";", "\t"):  # a comma is then a decimal comma
        decimal = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
        rows = [
            [field.replace(",", ".") if decimal.fullmatch(field) else field for field in row] for row in rows
        ]
    rows = [row for row in rows if any(row)]
    header = [field.lower() for field in rows[0]]
    label_at, axes_at, defined_at, space = 0, [1, 2, 3], None, ""
    if not any(_is_number_or_empty(field) for field in rows[0][-3:]) or header[0] in _LABELS:
        rows = rows[1:]
        axes = next((axes for axes in _AXES if set(axes) <= set(header)), None)
        if axes is None:
            raise FileProblem(
                "the table begins with {header!r}, which are not the columns name, x, y, z",
                "Write lines of name,x,y,z",
                header=", ".join(header)[:60],
            )
        space, axes_at = _AXES[axes], [header.index(axis) for axis in axes]
        named = [header.index(name) for name in _LABELS if name in header]
        label_at = named[0] if named else -1
        defined_at = header.index("defined") if "defined" in header else None
    elif len(rows[0]) == 3:
        label_at, axes_at = -1, [0, 1, 2]
    points: list[tuple[str, Point]] = []
    for number, row in enumerate(rows, 1):
        label = row[label_at] if 0 <= label_at < len(row) else ""
        if len(row) <= max(axes_at):
            raise LandmarkProblem(
                "line {number} of the table ({label!r}) has {n_row} fields",
                "Write lines of name,x,y,z",
                number=number,
                label=(label or row[0])[:40],
                n_row=len(row),
            )
        values = [row[at] for at in axes_at]
        not_placed = defined_at is not None and defined_at < len(row) and row[defined_at] == "0"
        if not_placed or not any(values):  # an empty row of coordinates: the landmark is absent
            continue
        points.append((label, point_of(label or f"number {number}", values)))
    return LabelledPoints(tuple(points), space)


def _is_number_or_empty(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True


def _table_text(landmarks: Landmarks, space: str) -> str:
    """The table ``name,x,y,z``."""
    return "name,x,y,z\n" + "".join(f"{name},{x!r},{y!r},{z!r}\n" for name, (x, y, z) in listed(landmarks))


def _fcsv_text(landmarks: Landmarks, space: str) -> str:
    """3D Slicer's .fcsv."""
    lines = [
        "# Markups fiducial file version = 4.11",
        f"# CoordinateSystem = {space}",
        f"# columns = {_FCSV_HEADER}",
    ]
    lines += [
        f"{number},{x!r},{y!r},{z!r},0,0,0,1,1,1,0,{name},,"
        for number, (name, (x, y, z)) in enumerate(listed(landmarks), 1)
    ]
    return "\n".join(lines) + "\n"


_LARGEST = 16 * 1024**2  # bytes
_WRITERS: dict[str, Callable[[Landmarks, str], str]] = {
    ".mrk.json": _slicer_text,
    ".json": lambda landmarks, space: ours(landmarks),
    ".csv": _table_text,
    ".pp": _picked_points_text,
    ".fcsv": _fcsv_text,
    "scalismo": _scalismo_text,
}
WRITABLE = tuple(name for name in _WRITERS if name.startswith("."))
READABLE = (*WRITABLE, ".txt", ".xyz", ".pts")
APART = (*READABLE, ".ply")  # in a folder of their own; among scans a .ply is a scan
_GIVE_LANDMARKS = "Give Landmarks: of a scan, or Landmarks.of({'nipple_left': [x, y, z], ...})"
_MOST_POINTS = 100  # of a .ply: more are a cloud, not landmarks


@dataclass(frozen=True, eq=False)
class LandmarkFile:
    """What a landmark file says, in its own coordinates.

    Attributes
    ----------
    landmarks : Landmarks
        The points whose labels are known, under our names.
    unknown : tuple of str
        Labels that are not known, as written.
    space : str
        "LPS" or "RAS" where the file declares its axes, otherwise empty.
    unit : str
        As the file declares it ("mm"), otherwise empty.
    assumed_order : tuple of str
        The names that points without names were given, in their order; empty where the file or the user names them.
    """

    landmarks: Landmarks
    unknown: tuple[str, ...] = ()
    space: str = ""
    unit: str = ""
    assumed_order: tuple[str, ...] = ()

    @property
    def labels_not_understood(self) -> Finding | str:
        """The unknown labels as the end of a message; empty where there are none."""
        labels = [repr(label[:40]) for label in self.unknown[:8]]
        return note("but-found", "; labels not understood: {labels}", labels=labels) if labels else ""


def load_landmarks(path: AnyPath, order: Sequence[str] | None = None) -> Landmarks:
    """Read landmarks; the content decides the format.

    Parameters
    ----------
    path : path
        Our JSON, CSV (``name,x,y,z``), MeshLab ``.pp``, 3D Slicer ``.mrk.json`` or ``.fcsv``, Scalismo JSON,
        or points without names: a bare list of x,y,z, a .pp with numbers for names, the vertices of a .ply.
    order : sequence of str, optional
        The names of the points, in the file's order, where the file has none that are known. Without it four or six
        points without names are taken in the order of the RBSM programs; ``notes`` says so.

    Returns
    -------
    Landmarks
        Coordinates exactly as in the file: axes are not flipped, units not changed. ``notes`` says what was odd.

    Raises
    ------
    FileProblem
        The file is missing, a folder, empty, too large, cut off or damaged.
    LandmarkProblem
        A landmark is given twice or has no proper coordinates, or a bare list comes without an order.

    Examples
    --------
    >>> bm.load_landmarks("landmarks/s0.json")["sternal_notch"].shape
    (3,)
    """
    found = read_landmarks(path, order)
    notes = [str(found.labels_not_understood).removeprefix("; ")] if found.unknown else []
    if found.assumed_order:
        notes.append(f"points without names taken in the order {', '.join(found.assumed_order)}")
    return replace(found.landmarks, space=found.space, notes=tuple(notes))


def read_landmarks(path: AnyPath, order: Sequence[str] | None = None) -> LandmarkFile:
    """What :func:`load_landmarks` reads, with every detail of the file."""
    path = check_path(path)
    data = read_bytes(path, _LARGEST)
    with problems_of(path, "landmark"):
        found = _labelled(data, path)
        assumed: tuple[str, ...] = ()
        if order is not None and not any(canonical_name(label) for label, _ in found.points):
            found = _named(found, order)
        # MeshLab numbers points without names.
        elif len(found.points) in (4, 6) and all(not label or label.isdecimal() for label, _ in found.points):
            assumed = RBSM_ORDER[: len(found.points)]
            found = _named(found, assumed)
        elif any(not label for label, _ in found.points):
            raise LandmarkProblem(
                "the file is a list of coordinates without names",
                "Give the order of the names, or write lines of name,x,y,z",
                code="unusable-landmarks/bare-list",
            )
        return replace(_recognised(found), assumed_order=assumed)


def _vertices(mesh: TriangleMesh) -> LabelledPoints:
    if mesh.n_faces or mesh.n_vertices > _MOST_POINTS:
        what = "a surface" if mesh.n_faces else f"{mesh.n_vertices:,} points"
        raise FileProblem(
            "the file holds {what}, not landmarks",
            "Give a .ply with the landmarks alone, as its vertices",
            what=what,
        )
    return LabelledPoints(
        tuple(("", point_of(f"number {number}", row)) for number, row in enumerate(mesh.vertices.tolist(), 1))
    )


def _labelled(data: bytes, path: Path) -> LabelledPoints:
    if re.match(rb"ply\s", data):
        return _vertices(ply.read(data, path))
    try:
        text = in_utf8(data).decode()
    except UnicodeDecodeError as error:
        raise FileProblem("the file is not UTF-8 text", "Save the landmarks as UTF-8 text") from error
    if "\0" in text:
        raise FileProblem("the file is not text", "Save the landmarks as UTF-8 text")
    start = text.lstrip()[:1]
    if not start:
        raise FileProblem("the file holds only blanks", "Export the landmarks again")
    if start in "{[":
        return read_json(text)
    if start == "<":
        return read_picked_points(text.lstrip())
    if FCSV.search(text[:4096]):
        return read_fcsv(text)
    return read_table(text)


def _named(found: LabelledPoints, order: Sequence[str]) -> LabelledPoints:
    strange = [name for name in order if canonical_name(name) is None]
    if strange:
        raise LandmarkProblem(
            "the order names {strange!r}, which is no landmark",
            "Known names: {names}",
            strange=strange[0],
            names=", ".join(NAMES),
        )
    if len(order) != len(found.points):
        raise LandmarkProblem(
            "the order names {n_order} landmarks, the file has {n_points} points",
            "Give one name per point",
            n_order=len(order),
            n_points=len(found.points),
        )
    points = tuple((name, point) for name, (_, point) in zip(order, found.points, strict=True))
    return LabelledPoints(points, found.space, found.unit)


def _recognised(found: LabelledPoints) -> LandmarkFile:
    label_of: dict[str, str] = {}
    points, unknown = {}, []
    for label, point in found.points:
        name = canonical_name(label)
        if name is None:
            unknown.append(label)
        elif name in points:
            first, second = printable(label_of[name]), printable(label)
            both = f"{first!r} and {second!r}" if first != second else f"as {first!r}"
            raise LandmarkProblem(
                "landmark {name} is given twice ({both})", "Keep one point per name", name=name, both=both
            )
        else:
            points[name], label_of[name] = point, label
    known = {name: found.found[label] for name, label in label_of.items() if label in found.found}
    landmarks = replace(Landmarks.of(points), found=known)
    return LandmarkFile(landmarks, tuple(unknown), found.space, found.unit)


def save_landmarks(
    landmarks: Landmarks, path: AnyPath, *, format: str | None = None, space: str | None = None
) -> None:
    """Write landmarks; the extension of the name decides the format.

    Parameters
    ----------
    landmarks : Landmarks
        Written as they are.
    path : path
        ``.json`` (ours), ``.csv``, ``.pp``, ``.mrk.json`` or ``.fcsv``. An existing file is replaced in one
        step.
    format : str, optional
        One of these extensions, or "scalismo", where the name should not decide.
    space : str, optional
        The axes that the two formats of 3D Slicer declare; those of the file that the landmarks were read from, or
        LPS, when not given. Slicer takes meshes without a declaration for LPS, so this keeps landmarks on a mesh
        that is saved in the same frame.

    Examples
    --------
    >>> bm.save_landmarks(scan.landmarks, "upright.csv")
    >>> bm.load_landmarks("upright.csv").names == scan.landmarks.names
    True
    """
    path = check_path(path)
    landmarks = check_type(landmarks, Landmarks, "what shall be saved", _GIVE_LANDMARKS)
    space = space or landmarks.space or "LPS"
    known = [suffix for suffix in _WRITERS if path.name.lower().endswith(suffix)]
    chosen = format or (known[0] if known else "")
    if chosen not in _WRITERS:
        raise FileProblem(
            "landmarks are not written as {format}",
            "Choose one of {writers}",
            path,
            format=format or path.suffix or Message("names without extension"),
            writers=", ".join(_WRITERS),
        )
    if space not in ("LPS", "RAS"):
        raise LandmarkProblem("the axes {space!r} are not known", "Use LPS or RAS", path, space=space)
    bad = [name for name, point in landmarks.items() if not np.all(np.isfinite(point))]
    if bad:
        raise LandmarkProblem("landmark {bad} is not finite", "Remove it or place it again", path, bad=bad[0])
    write_file(path, _WRITERS[chosen](landmarks, space).encode())
