"""Thumbnails of registrations: the scan beside the template in its shape, drawn in a few hundredths of a second.

The rings on the right belong to the template (levels of its breast mask). Where the correspondence is right they lie
around the nipple on the breast; where points slid, they sit beside it, however well the surface fits.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.registration.result import IN_BREAST, Registration
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
    light, level, depth = _rasterise(camera.project(mesh.vertices), mesh.faces, values, width, height)
    hit = depth > -np.inf
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


@njit(cache=True)
def _rasterise(
    points: Floats, faces: Ints, values: Floats, width: int, height: int
) -> tuple[Floats, Floats, Floats]:
    """Brightness, interpolated value and depth (-inf for nothing) of the nearest triangle at every pixel, (h, w)."""
    light = np.zeros((height, width))
    level = np.zeros((height, width))
    depth = np.full((height, width), -np.inf)
    for f in range(len(faces)):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        x0, y0, z0 = points[i, 0], points[i, 1], points[i, 2]
        ax, ay, az = points[j, 0] - x0, points[j, 1] - y0, points[j, 2] - z0
        bx, by, bz = points[k, 0] - x0, points[k, 1] - y0, points[k, 2] - z0
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        if not abs(nz) > 1e-12:
            continue
        # Both sides are lit alike: at this size the inside behind a hole is for the large sheet.
        bright = abs(_LIGHT[0] * nx - _LIGHT[1] * ny + _LIGHT[2] * nz) / math.sqrt(
            nx * nx + ny * ny + nz * nz
        )
        first_row = max(math.ceil(y0 + min(0.0, ay, by) - 0.5), 0)
        last_row = min(math.floor(y0 + max(0.0, ay, by) - 0.5), height - 1)
        first_column = max(math.ceil(x0 + min(0.0, ax, bx) - 0.5), 0)
        last_column = min(math.floor(x0 + max(0.0, ax, bx) - 0.5), width - 1)
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                x, y = column + 0.5 - x0, row + 0.5 - y0
                u, v = (x * by - y * bx) / nz, (y * ax - x * ay) / nz
                if u < 0.0 or v < 0.0 or u + v > 1.0:
                    continue
                z = z0 + u * az + v * bz
                if z > depth[row, column]:
                    depth[row, column] = z
                    light[row, column] = bright
                    level[row, column] = (1.0 - u - v) * values[i] + u * values[j] + v * values[k]
    return light, level, depth
