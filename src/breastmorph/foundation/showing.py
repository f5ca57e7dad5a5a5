"""Values that show themselves in a notebook, without knowing how: the package above all layers does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def doubted(warnings: Sequence[object]) -> str:
    """How many warnings there are, as the end of a line; empty without any."""
    return f", {len(warnings)} warning{'s' if len(warnings) > 1 else ''}" if warnings else ""


class Shown:
    """What a notebook shows as a 3D view, or as a picture where scripts are blocked; see ``report/notebook.py``."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self._repr_html_(), "image/png": self._repr_png_()}

    def _repr_png_(self) -> bytes:
        import breastmorph

        png: bytes = breastmorph._shown(self, "png")
        return png

    def _repr_html_(self) -> str:
        import breastmorph

        html: str = breastmorph._shown(self, "html")
        return html
