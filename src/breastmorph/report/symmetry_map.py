"""A picture of a subject's symmetry: where each breast lies outside or inside the mirror image of the other."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from breastmorph.clinical.measure.symmetry import Symmetry
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.render import SKIN, View, colormap, render

_VIEWS = (
    (View(yaw=-45.0), "from the patient's right"),
    (View(), "from the front"),
    (View(yaw=45.0), "from the patient's left"),
)
_SIZE = (360, 360)
_MAP = "coolwarm"
_ROUND = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0)  # mm at the ends of the colours


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
    largest = float(np.quantile(np.abs(symmetry.signed[on_breast]), 0.95))
    limit = next((end for end in _ROUND if largest <= end), _ROUND[-1])
    shown = np.where(on_breast, symmetry.signed, 0.0)
    colors = np.where(on_breast[:, None], colormap(shown, -limit, limit, _MAP), SKIN)
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    axes = figure.subplots(1, len(_VIEWS))
    for k, (axis, (view, words)) in enumerate(zip(axes, _VIEWS, strict=True)):
        axis.imshow(render(mesh, view, size=_SIZE, colors=colors))
        axis.set_axis_off()
        axis.set_title(words, fontsize=9)
        if k == 1:  # the patient's left is on the viewer's right
            for across, letter in ((0.03, "R"), (0.97, "L")):
                axis.text(
                    across, 0.5, letter, transform=axis.transAxes, fontsize=16, weight="bold", ha="center"
                )
    bar = figure.colorbar(
        ScalarMappable(Normalize(-limit, limit), _MAP), ax=list(axes), shrink=0.85, pad=0.01, extend="both"
    )
    bar.set_label("outside (+) or inside (-) the mirror image\nof the other side, mm", fontsize=9)
    heading = f"Mean deviation {symmetry.deviation:.1f} mm"
    figure.suptitle(f"{title}: {heading[0].lower()}{heading[1:]}" if title else heading, fontsize=11)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    make_folder(path.parent)
    write_file(path, picture.getvalue())
