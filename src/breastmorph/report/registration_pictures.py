"""Pictures of one registration: its quality sheet and its thumbnail, the scan beside the template in its shape."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.mask import IN_BREAST
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_angles, face_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.report.render import (
    AMOUNT,
    SKIN,
    Camera,
    Marker,
    Picture,
    View,
    as_picture,
    colormap,
    picture_grid,
    render,
    visible_surface,
)
from breastmorph.scan.scan import Scan

_VIEWS = (View(), View(yaw=45.0), View(pitch=-35.0))
_SIZE = (300, 300)
_MARGIN = 15.0  # mm around the result
_RANGE = 3.0  # mm: ends of the signed distance's colours
_ANGLE = 30.0  # degrees: a triangle whose smallest angle falls below is shown dark

_CELL = (150, 160)  # pixels of one of the two pictures
SIZE = (2 * _CELL[0], _CELL[1])
_FINE = 2  # rays per pixel along each side
_LIGHT = (-0.42, 0.51, 0.75)  # from above left of the camera
_RINGS = (IN_BREAST, 0.3, 0.4)  # levels of the mask
_TINT = (0.80, 0.90, 1.0)
_RING_WIDTH = 1.6  # fine pixels
_RING = (0.16, 0.32, 0.52)
_DOT = 4.0  # fine pixels: radius of a landmark


def quality_sheet_png(scan: Scan, result: Registration) -> bytes:
    """A PNG: rows are the scan, the result, signed distance, triangle quality; from three views."""
    box = result.vertices.min(axis=0) - _MARGIN, result.vertices.max(axis=0) + _MARGIN
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
            f"smallest angle, dark blue below {_ANGLE:g} degrees; flipped {result.metrics['flipped_percent']:.2f} %",
            result.mesh,
            colormap(2 * _ANGLE - by_vertex, 0.0, 2 * _ANGLE, AMOUNT),
            [],
        ),
    ]
    cells: list[Picture] = []
    for _, mesh, colors, marks in rows:
        views = [render(mesh, view, size=_SIZE, colors=colors, markers=marks, box=box) for view in _VIEWS]
        cells.append(np.concatenate(views, axis=1))
    return picture_grid(cells, [caption for caption, *_ in rows], columns=2)


def _signed_distance(scan: TriangleMesh, points: Floats) -> Floats:
    """Distance of points to a scan's surface in mm, negative inside the body; 0 beyond its border, (n,)."""
    found = Surface(scan).closest(points)
    normals = face_normals(scan.vertices, scan.faces)[found.faces]
    side = np.sign(((points - found.points) * normals).sum(axis=1))
    return np.where(found.on_boundary, 0.0, side * found.distances)


@dataclass(frozen=True)
class ScanPictures:
    """Which pictures belong to a scan; called where the scan is registered, so that it can be sent there.

    Attributes
    ----------
    quality_sheet : bool
        Also the large sheet, :func:`quality_sheet_png`.
    """

    quality_sheet: bool = False

    def __call__(self, scan: Scan, result: Registration) -> dict[str, bytes]:
        """PNG files by their place in the output folder."""

        made = {thumbnail_place(scan.id): thumbnail(scan, result)}
        if self.quality_sheet:
            made[f"sheets/{scan.id}.png"] = quality_sheet_png(scan, result)
        return made

    def places(self, scan_id: str) -> tuple[str, ...]:
        """The files that a call will give for a scan."""
        return (thumbnail_place(scan_id), *((f"sheets/{scan_id}.png",) if self.quality_sheet else ()))


def thumbnail_place(scan_id: str) -> str:
    """Where a scan's thumbnail lies in the output folder."""
    return f"thumbnails/{scan_id}.png"


def thumbnail(scan: Scan, result: Registration) -> bytes:
    """A PNG of the scan with its landmarks and of the result with the template's rings, from the front."""
    from PIL import Image, ImageDraw, ImageFont

    camera = Camera.around(result.vertices, View(), _CELL).finer(_FINE)
    cells = [
        _draw(scan.mesh, camera, scan.landmarks.points),
        _draw(result.mesh, camera, scan.landmarks.points, result.template_mask),
    ]
    picture = Image.fromarray(np.concatenate(cells, axis=1))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=13)
    for left in (0, _CELL[0]):  # seen from the front, the patient's right is on the left
        draw.text((left + 5, 3), "R", fill="black", font=font)
        draw.text((left + _CELL[0] - 13, 3), "L", fill="black", font=font)
    buffer = io.BytesIO()
    picture.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG")
    return buffer.getvalue()


def _draw(mesh: TriangleMesh, camera: Camera, landmarks: Floats, mask: Floats | None = None) -> Picture:
    visible = visible_surface(mesh, camera)
    # Both sides are lit alike: at this size the inside behind a hole is for the large sheet.
    light = np.abs(face_normals(mesh.vertices, mesh.faces[visible.faces]) @ _LIGHT)
    picture = np.ones((*visible.hit.shape, 3))
    picture[visible.hit] = (0.35 + 0.65 * light)[:, None] * SKIN
    if mask is not None:
        level = np.where(visible.hit, visible.as_image(mask), 0.0)
        picture[level > _RINGS[0]] *= _TINT
        slope = np.maximum(np.hypot(*np.gradient(level)), 1e-9)
        for ring in _RINGS:
            picture[visible.hit & (np.abs(level - ring) < _RING_WIDTH / 2 * slope)] = _RING
    visible.mark(picture, [Marker(point) for point in landmarks], _DOT)
    return as_picture(picture, _FINE)
