"""Contact sheets: many small pictures with captions on one page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.report.render import Marker, Picture, View, render
from breastmorph.scan.scan import Scan

_VIEWS = (View(), View(yaw=45.0))


def scan_sheet(scans: Sequence[Scan], path: Path, columns: int = 3) -> None:
    """Write a PNG of scans with their landmarks, each from the front and from 45 degrees.

    All pictures share one scale, so that sizes can be compared.
    """
    box = _common_box(scans)
    cells, captions = [], []
    for scan in scans:
        markers = [Marker(point) for point in scan.landmarks.points]
        views = [
            render(scan.mesh, view, size=(300, 230), markers=markers, box=_around(scan, box))
            for view in _VIEWS
        ]
        cells.append(np.concatenate(views, axis=1))
        captions.append(scan.id)
    save_sheet(cells, captions, path, columns)


def save_sheet(cells: Sequence[Picture], captions: Sequence[str], path: Path, columns: int) -> None:
    """Lay pictures of equal size out in a grid, a caption under each, and write a PNG."""
    make_folder(path.parent)
    write_file(path, sheet_png(cells, captions, columns))


def sheet_png(cells: Sequence[Picture], captions: Sequence[str], columns: int) -> bytes:
    """The same as the bytes of a PNG file."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=14)
    height, width = cells[0].shape[:2]
    strip = 22
    n_rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (columns * width, n_rows * (height + strip)), "white")
    draw = ImageDraw.Draw(sheet)
    for k, (cell, caption) in enumerate(zip(cells, captions, strict=True)):
        left, top = k % columns * width, k // columns * (height + strip)
        sheet.paste(Image.fromarray(cell), (left, top))
        draw.text((left + width / 2, top + height + strip / 2), caption, fill="black", anchor="mm", font=font)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _common_box(scans: Sequence[Scan]) -> Floats:
    """Half the largest extents among the scans, (3,)."""
    half: Floats = np.max([np.ptp(scan.mesh.vertices, axis=0) for scan in scans], axis=0) / 2
    return half


def _around(scan: Scan, half: Floats) -> tuple[Floats, Floats]:
    middle = (scan.mesh.vertices.min(axis=0) + scan.mesh.vertices.max(axis=0)) / 2
    return middle - half, middle + half
