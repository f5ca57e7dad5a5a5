"""The sheet of a fit: scan, fit and signed residual side by side, upright, with a colour bar and the sides marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.model.fit_result import Fit
from breastmorph.report.figures.picture_panels import mark_sides, round_end
from breastmorph.report.figures.printing import save_png
from breastmorph.report.render import Marker, Picture, View, colormap, render
from breastmorph.scan.landmarks import Landmarks

_VIEWS = (View(), View(yaw=45.0), View(yaw=-45.0))
_SIZE = (380, 380)
_UNSEEN = (0.80, 0.80, 0.80)
_DOT = 1.6  # mm, half the size of a point of a cloud
_MOST_DOTS = 20_000
_ENDS = (1.0, 15.0)  # mm: where the colours may end


def fit_sheet(
    name: str, target: TriangleMesh | Floats, fit: Fit, path: Path, landmarks: Landmarks | None = None
) -> None:
    """Write a PNG: columns are the scan, the fit and the residual; rows are three views.

    Parameters
    ----------
    name : str
        Of the scan.
    target : TriangleMesh or (m, 3) float
        What the model was fitted to.
    fit : Fit
    path : Path
    landmarks : Landmarks, optional
        In the target's frame; drawn on the scan.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    # The model stands upright, so its frame is the one to look at; the size stays the patient's.
    upright = Similarity(scale=fit.transform.scale).after(fit.transform.inverse())
    shown = fit.mesh.with_vertices(upright.apply(fit.mesh.vertices))
    markers = [] if landmarks is None else [Marker(upright.apply(point)) for point in landmarks.points]
    low, high = shown.vertices.min(axis=0) - 45.0, shown.vertices.max(axis=0) + 45.0
    seen = np.isfinite(fit.residuals)
    limit = float(np.clip(round_end(fit.residuals, 0.95), *_ENDS))
    colors = np.where(seen[:, None], colormap(np.where(seen, fit.residuals, 0.0), -limit, limit), _UNSEEN)
    figure = Figure(figsize=(11.4, 12.0))
    axes = figure.subplots(len(_VIEWS), 3, gridspec_kw={"wspace": 0.02, "hspace": 0.02})
    for row, view in zip(axes, _VIEWS, strict=True):
        pictures = (
            _seen_target(target, upright, view, (low, high), markers),
            render(shown, view, size=_SIZE, box=(low, high)),
            render(shown, view, size=_SIZE, box=(low, high), colors=colors),
        )
        for axis, picture in zip(row, pictures, strict=True):
            axis.imshow(picture)
            axis.set_axis_off()
            mark_sides(axis, view.axes(), size=12)
    mean = float(np.abs(fit.residuals[seen]).mean()) if seen.sum() else float("nan")
    titles = (
        "scan" if isinstance(target, TriangleMesh) else "point cloud",
        f"fit ({fit.mahalanobis:.1f} sd from the mean)",
        f"residual, mean {mean:.2f} mm where seen ({fit.covered:.0%})",
    )
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=11)
    figure.suptitle(name, fontsize=13, y=0.94)
    scale = ScalarMappable(Normalize(-limit, limit), "coolwarm")
    bar = figure.colorbar(scale, ax=axes, orientation="horizontal", fraction=0.025, pad=0.02)
    bar.set_label("mm; blue: the fit lies inside the scan, red: outside, grey: nothing seen there")
    save_png(figure, path, dpi=100, bbox_inches="tight")


def _seen_target(
    target: TriangleMesh | Floats,
    upright: Similarity,
    view: View,
    box: tuple[Floats, Floats],
    markers: list[Marker],
) -> Picture:
    if isinstance(target, TriangleMesh):
        mesh = target.with_vertices(upright.apply(target.vertices))
        return render(mesh, view, size=_SIZE, box=box, markers=markers)
    points = upright.apply(target[:: max(len(target) // _MOST_DOTS, 1)])
    right, up, towards = view.axes()
    corners = [-right - up, right - up, 1.4 * up]
    vertices = np.concatenate([points + _DOT * corner for corner in corners])
    n = len(points)
    faces = np.column_stack([np.arange(n), np.arange(n) + n, np.arange(n) + 2 * n])
    depth = points @ towards
    far, near = np.quantile(depth, (0.02, 0.98))
    shade = colormap(depth, float(far), float(near) + 1.0, "bone") * 0.75
    dots = TriangleMesh(vertices, faces)
    return render(dots, view, size=_SIZE, box=box, markers=markers, colors=np.tile(shade, (3, 1)))
