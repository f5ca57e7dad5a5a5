"""The 3D view of the pages: one script for the report and the explorer, with three.js, without network."""

from __future__ import annotations

from importlib.resources import files

# A page needs all, in this order.
SCRIPTS = ("three.min.js", "colours.js", "surface.js", "overlay.js", "mesh.js", "camera.js", "viewer.js")
STYLES = ("viewer.css",)


def asset(name: str) -> str:
    """Text of a script or style sheet of the viewer, for a page that holds everything itself."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
