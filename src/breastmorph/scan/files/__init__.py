"""Landmark files: ``load_landmarks`` looks at the content, ``save_landmarks`` at the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from breastmorph.errors import FileProblem, LandmarkProblem
from breastmorph.mesh.files.reading import in_utf8, printable, problems_of, read_bytes
from breastmorph.mesh.files.writing import write_file
from breastmorph.scan.files import json_layouts, picked_points, tables
from breastmorph.scan.files.labelled import LabelledPoints
from breastmorph.scan.landmarks import NAMES, Landmarks, canonical_name

__all__ = ["READABLE", "WRITABLE", "LandmarkFile", "load_landmarks", "save_landmarks"]

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
    """

    landmarks: Landmarks
    unknown: tuple[str, ...] = ()
    space: str = ""
    unit: str = ""

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
        or a bare list of x,y,z.
    order : sequence of str, optional
        The names of the points, in the file's order, where the file has none that are known.

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
        found = _labelled(data)
        if order is not None and not any(canonical_name(label) for label, _ in found.points):
            found = _named(found, order)
        elif any(not label for label, _ in found.points):
            raise LandmarkProblem(
                "the file is a bare list of coordinates without names",
                "Give the order of the names (--landmark-order), or write lines of name,x,y,z",
            )
        return _recognised(found)


def _labelled(data: bytes) -> LabelledPoints:
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
