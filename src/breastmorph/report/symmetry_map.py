"""A picture of a subject's symmetry: where each breast lies outside or inside the mirror image of the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from breastmorph.clinical.measure.symmetry import Symmetry
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.figures.picture_panels import mark_sides, round_end
from breastmorph.report.figures.printing import save_png
from breastmorph.report.render import SKIN, View, colormap, render

_VIEWS = (
    (View(yaw=-45.0), "from the patient's right"),
    (View(), "from the front"),
    (View(yaw=45.0), "from the patient's left"),
)
_SIZE = (360, 360)
_MAP = "coolwarm"
_ENDS = (2.0, 50.0)  # mm: where the colours may end


def save_symmetry_map(mesh: TriangleMesh, symmetry: Symmetry, path: Path, title: str = "") -> None:
    """Write a PNG of the signed deviation from three views, with sides and a colour bar in mm.

    Parameters
    ----------
    mesh : TriangleMesh
        The subject, upright, in mm.
    symmetry : Symmetry
        Of that mesh.
    path : Path
    title : str
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    on_breast = np.isfinite(symmetry.signed)
    limit = float(np.clip(round_end(symmetry.signed, 0.95), *_ENDS))
    shown = np.where(on_breast, symmetry.signed, 0.0)
    colors = np.where(on_breast[:, None], colormap(shown, -limit, limit, _MAP), SKIN)
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    axes = figure.subplots(1, len(_VIEWS))
    for axis, (view, words) in zip(axes, _VIEWS, strict=True):
        axis.imshow(render(mesh, view, size=_SIZE, colors=colors))
        axis.set_axis_off()
        axis.set_title(words, fontsize=9)
        mark_sides(axis, view.axes(), size=12)
    bar = figure.colorbar(
        ScalarMappable(Normalize(-limit, limit), _MAP), ax=list(axes), shrink=0.85, pad=0.01, extend="both"
    )
    bar.set_label("outside (+) or inside (-) the mirror image\nof the other side, mm", fontsize=9)
    heading = f"Mean deviation {symmetry.deviation:.1f} mm"
    figure.suptitle(f"{title}: {heading[0].lower()}{heading[1:]}" if title else heading, fontsize=11)
    save_png(figure, path, dpi=110)
