"""The quality sheet of a registration: scan, result, signed distance, triangle quality."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_angles, face_normals
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.report.contact_sheet import sheet_png
from breastmorph.report.render import Marker, Picture, View, colormap, render
from breastmorph.scan.scan import Scan

_VIEWS = (View(), View(yaw=45.0), View(pitch=-35.0))
_SIZE = (300, 300)
_RANGE = 3.0  # mm: ends of the signed distance's colours
_ANGLE = 30.0  # degrees: a triangle whose smallest angle falls below is shown in red


def quality_sheet_png(scan: Scan, result: Registration) -> bytes:
    """A PNG: rows are the scan, the result, signed distance, triangle quality; from three views."""
    margin = 15.0
    box = result.vertices.min(axis=0) - margin, result.vertices.max(axis=0) + margin
    distance = _signed_distance(scan.mesh, result.vertices)
    smallest = np.degrees(face_angles(result.vertices, result.mesh.faces).min(axis=1))
    by_vertex = np.full(result.mesh.n_vertices, 60.0)
    np.minimum.at(by_vertex, result.mesh.faces.ravel(), np.repeat(smallest, 3))
    markers = [Marker(point) for point in scan.landmarks.points]
    rows: list[tuple[str, TriangleMesh, Floats | None, list[Marker]]] = [
        (f"{scan.id}: scan and landmarks", scan.mesh, None, markers),
        ("template in this shape, with the scan's landmarks", result.mesh, None, markers),
        (
            f"signed distance, blue inside and red outside the scan by {_RANGE:g} mm; "
            f"mean in the breast {result.metrics['distance_inside']:.2f} mm",
            result.mesh,
            colormap(distance, -_RANGE, _RANGE),
            [],
        ),
        (
            f"smallest angle, red below {_ANGLE:g} degrees; flipped {result.metrics['flipped_percent']:.2f} %",
            result.mesh,
            colormap(by_vertex, 0.0, 2 * _ANGLE, "RdYlGn"),
            [],
        ),
    ]
    cells: list[Picture] = []
    for _, mesh, colors, marks in rows:
        views = [render(mesh, view, size=_SIZE, colors=colors, markers=marks, box=box) for view in _VIEWS]
        cells.append(np.concatenate(views, axis=1))
    return sheet_png(cells, [caption for caption, *_ in rows], columns=2)


def _signed_distance(scan: TriangleMesh, points: Floats) -> Floats:
    """Distance of points to a scan's surface in mm, negative inside the body; 0 beyond its border, (n,)."""
    found = Surface(scan).closest(points)
    normals = face_normals(scan.vertices, scan.faces)[found.faces]
    side = np.sign(((points - found.points) * normals).sum(axis=1))
    return np.where(found.on_boundary, 0.0, side * found.distances)
