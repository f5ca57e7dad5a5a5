"""Thumbnails of registrations: the scan beside the template in its shape, drawn in a few hundredths of a second.

The rings on the right belong to the template (levels of its breast mask). Where the correspondence is right they lie
around the nipple on the breast; where points slid, they sit beside it, however well the surface fits.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from breastmorph.mask import IN_BREAST
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.report.render import SKIN, Camera, Marker, Picture, View, as_picture, look
from breastmorph.scan.scan import Scan

_CELL = (150, 160)  # pixels of one of the two pictures
SIZE = (2 * _CELL[0], _CELL[1])
_FINE = 2  # rays per pixel along each side
_LIGHT = (-0.42, 0.51, 0.75)  # from above left of the camera
_RINGS = (IN_BREAST, 0.3, 0.4)  # levels of the mask
_TINT = (0.80, 0.90, 1.0)
_RING_WIDTH = 1.6  # fine pixels
_RING = (0.16, 0.32, 0.52)
_DOT = 4.0  # fine pixels: radius of a landmark


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
    seen = look(mesh, camera)
    # Both sides are lit alike: at this size the inside behind a hole is for the large sheet.
    light = np.abs(face_normals(mesh.vertices, mesh.faces[seen.faces]) @ _LIGHT)
    picture = np.ones((*seen.hit.shape, 3))
    picture[seen.hit] = (0.35 + 0.65 * light)[:, None] * SKIN
    if mask is not None:
        level = np.where(seen.hit, seen.as_image(mask), 0.0)
        picture[level > _RINGS[0]] *= _TINT
        slope = np.maximum(np.hypot(*np.gradient(level)), 1e-9)
        for ring in _RINGS:
            picture[seen.hit & (np.abs(level - ring) < _RING_WIDTH / 2 * slope)] = _RING
    seen.mark(picture, [Marker(point) for point in landmarks], _DOT)
    return as_picture(picture, _FINE)
