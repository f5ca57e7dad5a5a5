"""Landmark files: ``load_landmarks`` looks at the content, ``save_landmarks`` at the name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from breastmorph.errors import FileProblem, LandmarkProblem
from breastmorph.mesh.files import ply
from breastmorph.mesh.files.reading import in_utf8, printable, problems_of, read_bytes
from breastmorph.mesh.files.writing import write_file
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.files import json_layouts, picked_points, tables
from breastmorph.scan.files.labelled import LabelledPoints, point_of
from breastmorph.scan.landmarks import NAMES, RBSM_ORDER, Landmarks, canonical_name

__all__ = ["APART", "READABLE", "WRITABLE", "LandmarkFile", "load_landmarks", "save_landmarks"]

_LARGEST = 16 * 1024**2  # bytes
_WRITERS: dict[str, Callable[[Landmarks, str], str]] = {
    ".mrk.json": json_layouts.slicer,
    ".json": json_layouts.ours,
    ".csv": tables.plain,
    ".pp": picked_points.text_of,
    ".fcsv": tables.fcsv,
    "scalismo": json_layouts.scalismo,
}
WRITABLE = tuple(name for name in _WRITERS if name.startswith("."))
READABLE = (*WRITABLE, ".txt", ".xyz", ".pts")
APART = (*READABLE, ".ply")  # in a folder of their own; among scans a .ply is a scan
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
    def labels_not_understood(self) -> str:
        """The unknown labels as the end of a message; empty where there are none."""
        labels = ", ".join(repr(label[:40]) for label in self.unknown[:8])
        return f"; labels not understood: {labels}" if labels else ""


def load_landmarks(path: str | Path, order: Sequence[str] | None = None) -> LandmarkFile:
    """Read landmarks; the content decides the format.

    Parameters
    ----------
    path : str or Path
        Our JSON, CSV (``name,x,y,z``), MeshLab ``.pp``, 3D Slicer ``.mrk.json`` or ``.fcsv``, Scalismo JSON,
        or points without names: a bare list of x,y,z, a .pp with numbers for names, the vertices of a .ply.
    order : sequence of str, optional
        The names of the points, in the file's order, where the file has none that are known. Without it four or six
        points without names are taken in the order of the RBSM programs; ``assumed_order`` says so.

    Returns
    -------
    LandmarkFile
        Coordinates exactly as in the file: axes are not flipped, units not changed.

    Raises
    ------
    FileProblem
        The file is missing, a folder, empty, too large, cut off or damaged.
    LandmarkProblem
        A landmark is given twice or has no proper coordinates, or a bare list comes without an order.
    """
    path = Path(path)
    data = read_bytes(path, _LARGEST)
    with problems_of(path, "landmark"):
        found = _labelled(data, path)
        assumed: tuple[str, ...] = ()
        if order is not None and not any(canonical_name(label) for label, _ in found.points):
            found = _named(found, order)
        elif len(found.points) in (4, 6) and all(_no_name(label) for label, _ in found.points):
            assumed = RBSM_ORDER[: len(found.points)]
            found = _named(found, assumed)
        elif any(not label for label, _ in found.points):
            raise LandmarkProblem(
                "the file is a bare list of coordinates without names",
                "Give the order of the names (--landmark-order), or write lines of name,x,y,z",
            )
        return replace(_recognised(found), assumed_order=assumed)


def _no_name(label: str) -> bool:
    """Whether a point has no name: nothing, or the number that MeshLab gives it."""
    return not label or label.isdecimal()


def _vertices(mesh: TriangleMesh) -> LabelledPoints:
    if mesh.n_faces or mesh.n_vertices > _MOST_POINTS:
        what = "a surface" if mesh.n_faces else f"{mesh.n_vertices:,} points"
        raise FileProblem(
            f"the file holds {what}, not landmarks", "Give a .ply with the landmarks alone, as its vertices"
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
        return json_layouts.read(text)
    if start == "<":
        return picked_points.read(text.lstrip())
    if tables.FCSV.search(text[:4096]):
        return tables.read_fcsv(text)
    return tables.read(text)


def _named(found: LabelledPoints, order: Sequence[str]) -> LabelledPoints:
    strange = [name for name in order if canonical_name(name) is None]
    if strange:
        raise LandmarkProblem(
            f"the order names {strange[0]!r}, which is no landmark", f"Known are {', '.join(NAMES)}"
        )
    if len(order) != len(found.points):
        raise LandmarkProblem(
            f"the order names {len(order)} landmarks, the file has {len(found.points)} points",
            "Give one name per point",
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
            raise LandmarkProblem(f"landmark {name} is given twice ({both})", "Keep one point per name")
        else:
            points[name], label_of[name] = point, label
    return LandmarkFile(Landmarks.of(points), tuple(unknown), found.space, found.unit)


def save_landmarks(
    landmarks: Landmarks, path: str | Path, *, format: str | None = None, space: str = "LPS"
) -> None:
    """Write landmarks; the extension of the name decides the format.

    Parameters
    ----------
    landmarks : Landmarks
        Written as they are.
    path : str or Path
        ``.json`` (ours), ``.csv``, ``.pp``, ``.mrk.json`` or ``.fcsv``. An existing file is replaced in one
        step.
    format : str, optional
        One of these extensions, or "scalismo", where the name should not decide.
    space : str
        The axes that the two formats of 3D Slicer declare. It takes meshes without a declaration for LPS, so
        the default keeps landmarks on a mesh that is saved in the same frame.
    """
    path = Path(path)
    known = [suffix for suffix in _WRITERS if path.name.lower().endswith(suffix)]
    chosen = format or (known[0] if known else "")
    if chosen not in _WRITERS:
        raise FileProblem(
            f"landmarks are not written as {format or path.suffix or 'names without extension'}",
            f"Choose one of {', '.join(_WRITERS)}",
            path,
        )
    if space not in ("LPS", "RAS"):
        raise LandmarkProblem(f"the axes {space!r} are not known", "Use LPS or RAS", path)
    bad = [name for name, point in landmarks.items() if not np.all(np.isfinite(point))]
    if bad:
        raise LandmarkProblem(f"landmark {bad[0]} is not finite", "Remove it or place it again", path)
    write_file(path, _WRITERS[chosen](landmarks, space).encode())
