"""Thumbnails of registrations: the scan beside the template in its shape, drawn in a few hundredths of a second.

The rings on the right belong to the template (levels of its breast mask). Where the correspondence is right they lie
around the nipple on the breast; where points slid, they sit beside it, however well the surface fits.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.registration.result import IN_BREAST, Registration
from breastmorph.report.rasteriser import nearest_triangles
from breastmorph.report.render import SKIN, Picture
from breastmorph.scan.scan import Scan

_CELL = (150, 160)  # pixels of one of the two pictures
SIZE = (2 * _CELL[0], _CELL[1])
_FINE = 2  # rays per pixel along each side
_MARGIN = 10.0  # mm around the template
_LIGHT = (-0.42, 0.51, 0.75)  # from above left of the camera
_RINGS = (IN_BREAST, 0.3, 0.4)  # levels of the mask
_TINT = (0.80, 0.90, 1.0)
_RING_WIDTH = 1.6  # fine pixels
_RING = (0.16, 0.32, 0.52)
_DOT = (0.80, 0.15, 0.15)


@dataclass(frozen=True)
class Pictures:
    """Which pictures belong to a scan; called where the scan is registered, so that it can be sent there.

    Attributes
    ----------
    quality_sheet : bool
        Also the large sheet of :mod:`breastmorph.report.quality_sheet`.
    """

    quality_sheet: bool = False

    def __call__(self, scan: Scan, result: Registration) -> dict[str, bytes]:
        """PNG files by their place in the output folder."""
        from breastmorph.report.quality_sheet import quality_sheet_png

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

    camera = _Camera.around(result.vertices)
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


@dataclass(frozen=True)
class _Camera:
    """From the front, orthographic: pixel = (x - left, top - y) / pixel size."""

    left: float
    top: float
    pixel: float

    @classmethod
    def around(cls, vertices: Floats) -> _Camera:
        low, high = vertices.min(axis=0) - _MARGIN, vertices.max(axis=0) + _MARGIN
        width, height = _CELL[0] * _FINE, _CELL[1] * _FINE
        pixel = max((high[0] - low[0]) / width, (high[1] - low[1]) / height)
        centre = (low + high) / 2
        return cls(centre[0] - pixel * width / 2, centre[1] + pixel * height / 2, pixel)

    def project(self, points: Floats) -> Floats:
        """Column, row and depth towards the camera, in pixels, (k, 3)."""
        shifted = (points - [self.left, self.top, 0.0]) / self.pixel
        shifted[:, 1] *= -1.0
        return shifted


def _draw(mesh: TriangleMesh, camera: _Camera, landmarks: Floats, mask: Floats | None = None) -> Picture:
    width, height = _CELL[0] * _FINE, _CELL[1] * _FINE
    values = np.zeros(mesh.n_vertices) if mask is None else mask
    points = camera.project(mesh.vertices)
    face, second, third, depth = nearest_triangles(points, mesh.faces, width, height)
    hit = face >= 0
    # Both sides are lit alike: at this size the inside behind a hole is for the large sheet.
    light, level = np.zeros(hit.shape), np.zeros(hit.shape)
    light[hit] = np.abs(face_normals(points, mesh.faces) @ [_LIGHT[0], -_LIGHT[1], _LIGHT[2]])[face[hit]]
    i, j, k = values[mesh.faces[face[hit]]].T
    level[hit] = i + second[hit] * (j - i) + third[hit] * (k - i)
    picture = np.where(hit, 0.35 + 0.65 * light, 1.0)[:, :, None] * np.where(hit[:, :, None], SKIN, 1.0)
    if mask is not None:
        picture[hit & (level > _RINGS[0])] *= _TINT
        slope = np.maximum(np.hypot(*np.gradient(level)), 1e-9)
        for ring in _RINGS:
            picture[hit & (np.abs(level - ring) < _RING_WIDTH / 2 * slope)] = _RING
    for column, row, towards in camera.project(landmarks):
        _dot(picture, depth, column, row, towards)
    pairs = picture.reshape(_CELL[1], _FINE, _CELL[0], _FINE, 3)
    fine = sum(pairs[:, i, :, j] for i in range(_FINE) for j in range(_FINE)) / _FINE**2
    return np.round(255 * fine).astype(np.uint8)


def _dot(picture: Floats, depth: Floats, column: float, row: float, towards: float) -> None:
    """A landmark, unless the surface hides it."""
    radius = 2.2 * _FINE
    y, x = int(row), int(column)
    if not (0 <= y < depth.shape[0] and 0 <= x < depth.shape[1]) or depth[y, x] > towards + 3 * radius:
        return
    top, left = max(y - 8, 0), max(x - 8, 0)
    window = picture[top : y + 9, left : x + 9]
    rows, columns = np.mgrid[: window.shape[0], : window.shape[1]]
    window[np.hypot(rows + top + 0.5 - row, columns + left + 0.5 - column) <= radius] = _DOT
