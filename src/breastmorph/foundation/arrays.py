"""What values are made of: arrays, and mappings that cannot be changed; and how they show themselves."""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jinja2 import Environment


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


# Python does not know how to send one to another process; without this no result could come back from a worker.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))


@cache
def templates() -> Environment:
    """The templates of pages, by their place in the package; every value in them is escaped, a missing one is an error.

    Data for a page's scripts are written by ``tojson``: no text in them can end their element.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: few commands write a page

    made = Environment(
        loader=PackageLoader("breastmorph", ""),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "separators": (",", ":"),
        "allow_nan": False,
    }
    return made


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
