"""Landmarks in tables: CSV with names, 3D Slicer's .fcsv, and bare lists of coordinates."""

from __future__ import annotations

import csv
import re

from breastmorph.errors import FileProblem, LandmarkProblem
from breastmorph.scan.files.labelled import LabelledPoints, Point, listed, point_of, space_of
from breastmorph.scan.landmarks import Landmarks

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
                space = space_of(value)
                if not space:
                    raise LandmarkProblem(
                        f"the coordinate system {value.strip()[:40]!r} is not known", "Use LPS or RAS"
                    )
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


def read(text: str) -> LabelledPoints:
    """Points from a table: ``name,x,y,z`` or bare ``x,y,z``; commas, semicolons, tabs or blanks between."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise FileProblem("the file holds no landmarks", "Expected are lines of name,x,y,z")
    mark = next((mark for mark in (";", "\t", ",") if mark in lines[0]), None)
    if mark is None:
        rows = [line.split() for line in lines]
    else:
        rows = [[field.strip() for field in row] for row in csv.reader(lines, delimiter=mark)]
    if mark in (";", "\t"):  # a comma is then a decimal comma
        rows = [[_decimal_point(field) for field in row] for row in rows]
    rows = [row for row in rows if any(row)]
    header = [field.lower() for field in rows[0]]
    label_at, axes_at, defined_at, space = 0, [1, 2, 3], None, ""
    if not any(_is_number(field) for field in rows[0][-3:]) or header[0] in _LABELS:
        rows = rows[1:]
        axes = next((axes for axes in _AXES if set(axes) <= set(header)), None)
        if axes is None:
            raise FileProblem(
                f"the table begins with {', '.join(header)[:60]!r}, which are not the columns name, x, y, z",
                "Write lines of name,x,y,z",
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
                f"line {number} of the table ({(label or row[0])[:40]!r}) has {len(row)} fields",
                "Write lines of name,x,y,z",
            )
        values = [row[at] for at in axes_at]
        not_placed = defined_at is not None and defined_at < len(row) and row[defined_at] == "0"
        if not_placed or not any(values):  # an empty row of coordinates: the landmark is absent
            continue
        points.append((label, point_of(label or f"number {number}", values)))
    return LabelledPoints(tuple(points), space)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True


def _decimal_point(text: str) -> str:
    return text.replace(",", ".") if re.fullmatch(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?", text) else text


def plain(landmarks: Landmarks, space: str) -> str:
    """The table ``name,x,y,z``."""
    return "name,x,y,z\n" + "".join(f"{name},{x!r},{y!r},{z!r}\n" for name, (x, y, z) in listed(landmarks))


def fcsv(landmarks: Landmarks, space: str) -> str:
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
