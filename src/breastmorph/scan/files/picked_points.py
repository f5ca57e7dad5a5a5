"""Landmarks in MeshLab's PickedPoints (.pp)."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.xml_tree import parse_xml
from breastmorph.scan.files.labelled import LabelledPoints, listed, point_of
from breastmorph.scan.landmarks import Landmarks


def read(text: str) -> LabelledPoints:
    """Points that are active, from a .pp text."""
    root = parse_xml(text.encode(), allow_bare_doctype=True)
    if root.tag != "PickedPoints":
        raise FileProblem(
            f"the XML text holds {root.tag[:40]!r}, not MeshLab's PickedPoints", "Save the points as .pp"
        )
    points = []
    for number, point in enumerate(root.iter("point"), 1):
        if point.get("active", "1").strip() == "0":
            continue  # a name of the template that was never placed
        label = point.get("name", "").strip() or str(number)
        points.append((label, point_of(label, [point.get(axis) for axis in "xyz"])))
    return LabelledPoints(tuple(points))


def text_of(landmarks: Landmarks, space: str) -> str:
    """The .pp text; the format has no axes."""
    lines = ["<!DOCTYPE PickedPoints>", "<PickedPoints>", " <DocumentData/>"]
    lines += [
        f' <point active="1" name={quoteattr(name)} x="{x!r}" y="{y!r}" z="{z!r}"/>'
        for name, (x, y, z) in listed(landmarks)
    ]
    return "\n".join([*lines, "</PickedPoints>"]) + "\n"
