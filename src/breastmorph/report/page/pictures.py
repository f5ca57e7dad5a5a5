"""Pictures inside the page's own text."""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from html import escape

from breastmorph.report.page.content import Figure

_UNITS = {"": 1.0, "px": 1.0, "pt": 96 / 72, "in": 96.0, "mm": 96 / 25.4, "cm": 96 / 2.54}  # in CSS pixels
_WIDEST = 1000  # CSS pixels: pictures for print have more pixels than a screen shows


def image_html(figure: Figure, alt: str, name: str = "") -> str:
    """Markup of a picture, of a class ``name``."""
    width, height = _size(figure)
    # Decoded with the page around it: never an empty frame, neither on the screen nor on paper.
    # As an image, a drawing can neither run scripts nor fetch anything, whatever stands in it.
    address = f"data:{figure.kind};base64,{b64encode(figure.data).decode()}"
    size = f' width="{width}" height="{height}"' if width else ""
    named = f' class="{name}"' if name else ""
    return f'<img{named} decoding="sync"{size} alt="{escape(alt)}" src="{address}">'


def _size(figure: Figure) -> tuple[int, int]:
    """Width and height in CSS pixels, (0, 0) where the file does not say; keeps the place until it is decoded."""
    if figure.kind == "image/png" and len(figure.data) >= 24:
        width, height = struct.unpack(">II", figure.data[16:24])
        shrink = max(1.0, width / _WIDEST)
        return round(width / shrink), round(height / shrink)
    if figure.kind == "image/svg+xml":
        head = figure.data[:8192].decode("utf-8", "replace").partition("<svg")[2].partition(">")[0]
        sides = [re.search(rf'\b{side}="([0-9.]+)(px|pt|in|mm|cm|)"', head) for side in ("width", "height")]
        if all(sides):
            width, height = (round(float(side[1]) * _UNITS[side[2]]) for side in sides if side)
            return width, height
    return 0, 0
