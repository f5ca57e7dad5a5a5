"""One page for each new shape: an edit, a fit; and for landmarks that were found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.clinical.edit import Edit
from breastmorph.clinical.measure_table import Measure
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import measure_in_words, sentences
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.fitting import Fit
from breastmorph.report.clinical_sheet import (
    ClinicalSheet,
    disclaimer,
    fields,
    in_cm,
    save_clinical_sheet,
    save_sheet,
    with_sides_and_scale,
    with_spread,
)
from breastmorph.report.render import (
    AMOUNT,
    SIGNED,
    Camera,
    Marker,
    Picture,
    Seen,
    View,
    box_around,
    colormap,
    look,
    mark_sides,
    render,
    round_end,
    save_png,
)
from breastmorph.scan.scan import Landmarks

# --------------------------------------------------------------------------------------------------------------------
# Pictures of edits: one edit before and after on a page for the clinic, and the paper's grid of edited features
# --------------------------------------------------------------------------------------------------------------------

_EDIT_VIEWS = (View(), View(yaw=45.0), View(yaw=90.0))
_EDIT_SIZE = (330, 310)
_OBLIQUE = View(yaw=20.0)
_EDIT_CELL = (230, 230)
_FULL = 10.0  # mm: least movement that gets the strongest colour, so that tiny ones stay pale


def save_editing_sheet(
    edit: Edit, faces: Ints, title: str, folder: Path, warning: str = "", made_with: str = ""
) -> list[Path]:
    """Write one edit as a page: before, after, movement, and the measures; PNG and PDF.

    ``warning`` is what nobody may overlook, for example that the model is a synthetic one; ``made_with`` the model's
    name.
    """
    both = np.vstack([edit.before, edit.shape])
    cameras = [Camera.around(both, view, _EDIT_SIZE) for view in _EDIT_VIEWS]
    moved = np.linalg.norm(edit.shape - edit.before, axis=1)
    most = max(float(np.quantile(moved, 0.999)), _FULL)
    rows: list[tuple[str, Floats, Floats | None]] = [
        ("Before", edit.before, None),
        ("After", edit.shape, None),
        (f"Movement: pale 0, dark blue {most:.0f} mm", edit.shape, colormap(moved, 0.0, most, AMOUNT)),
    ]
    pictures = [
        (
            label,
            [
                with_sides_and_scale(render(TriangleMesh(shape, faces), colors=colors, camera=one), one)
                for one in cameras
            ],
        )
        for label, shape, colors in rows
    ]
    regions = ", ".join(f"{region} {value:.1f} mm" for region, value in edit.movements.items())
    notes = [f"Movement, root mean square: {regions}."] if regions else []
    if edit.standing is not None:
        notes.append(f"{edit.standing.level.capitalize()}: {edit.standing.finding.said('page').cause}.")
    notes += [f"Trained on {edit.basis}."] if edit.basis else []
    notes += [f"Warning: {sentence}." for sentence in sentences(edit.warnings, "page")]
    notes.append(disclaimer(warning))
    sheet = ClinicalSheet(
        title,
        f"{edit.method.capitalize()} edit: a change of {edit.length:.1f} standard deviations of the model. "
        f"Distances are straight unless marked tape.\n{fields(made_with)}",
        pictures,
        ["measure", "before", "requested", "after", "difference"],
        [change_row(change, in_words=True) for change in edit.changes],
        frozenset(k for k, change in enumerate(edit.changes) if change.requested is not None),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder)


def change_row(change: Measure, *, in_words: bool) -> list[str]:
    """A measure as text: name, before, requested, after with its standard deviation, difference.

    See :mod:`breastmorph.report.clinical_sheet` for the units.
    """

    def cell(value: float | None, sign: str = "", sd: float = math.nan) -> str:
        if value is None:
            return ""
        return with_spread(in_cm(value, change.unit, 2, sign), sd, change.unit)

    wanted = "held" if change.held else cell(change.requested)
    if not wanted and change.requested is not None:  # a column of the cohort's table, which no shape tells
        wanted = "changed"
    name = measure_in_words(change.name) if in_words else change.name
    after = cell(change.after, sd=change.sd)
    return [name, cell(change.before), wanted, after, cell(change.error, "+")]


def save_feature_grid(rows: Sequence[Sequence[tuple[Floats | None, str]]], faces: Ints, path: Path) -> None:
    """Write the figure of edited features: one row a feature, from low to high; a caption under each shape.

    Parameters
    ----------
    rows : sequence of sequences of (shape, caption)
        Of equal length; a place without a shape stays white.
    faces : (m, 3) int
    path : Path
        PNG.
    """
    shapes = [shape for row in rows for shape, _ in row]
    box = box_around([shape for shape in shapes if shape is not None])
    cells = [
        np.full((_EDIT_CELL[1], _EDIT_CELL[0], 3), 255, np.uint8)
        if shape is None
        else render(TriangleMesh(shape, faces), _OBLIQUE, size=_EDIT_CELL, box=box)
        for shape in shapes
    ]
    save_sheet(cells, [caption for row in rows for _, caption in row], path, columns=len(rows[0]))


# --------------------------------------------------------------------------------------------------------------------
# The sheet of a fit: scan, fit and signed residual side by side, upright, with a colour bar and the sides marked
# --------------------------------------------------------------------------------------------------------------------

_FIT_VIEWS = (View(), View(yaw=45.0), View(yaw=-45.0))
_FIT_SIZE = (380, 380)
_FOUND = (0.10, 0.35, 0.85)
_UNSEEN = (0.80, 0.80, 0.80)
_DOT = 1.6  # mm, half the size of a point of a cloud
_MOST_DOTS = 20_000
_ENDS = (1.0, 15.0)  # mm: where the colours may end


def fit_sheet(name: str, target: TriangleMesh | Floats, fit: Fit, path: Path) -> None:
    """Write a PNG: columns are the scan, the fit and the residual; rows are three views.

    The landmarks that it began from are drawn on the scan: red those that were set, blue those that were found.

    Parameters
    ----------
    name : str
        Of the scan.
    target : TriangleMesh or (m, 3) float
        What the model was fitted to.
    fit : Fit
    path : Path
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    # The model stands upright, so its frame is the one to look at; the size stays the patient's.
    upright = Similarity(scale=fit.transform.scale).after(fit.transform.inverse())
    shown = fit.mesh.with_vertices(upright.apply(fit.mesh.vertices))
    red, marks = Marker(np.zeros(3)).color, fit.landmarks
    markers = [Marker(upright.apply(marks[name]), _FOUND if name in marks.found else red) for name in marks]
    low, high = shown.vertices.min(axis=0) - 45.0, shown.vertices.max(axis=0) + 45.0
    seen = np.isfinite(fit.residuals)
    limit = float(np.clip(round_end(fit.residuals, 0.95), *_ENDS))
    colors = np.where(seen[:, None], colormap(np.where(seen, fit.residuals, 0.0), -limit, limit), _UNSEEN)
    figure = Figure(figsize=(11.4, 12.0))
    axes = figure.subplots(len(_FIT_VIEWS), 3, gridspec_kw={"wspace": 0.02, "hspace": 0.02})
    for row, view in zip(axes, _FIT_VIEWS, strict=True):
        pictures = (
            _seen_target(target, upright, view, (low, high), markers),
            render(shown, view, size=_FIT_SIZE, box=(low, high)),
            render(shown, view, size=_FIT_SIZE, box=(low, high), colors=colors),
        )
        for axis, picture in zip(row, pictures, strict=True):
            axis.imshow(picture)
            axis.set_axis_off()
            mark_sides(axis, view.axes(), size=12)
    mean = float(np.abs(fit.residuals[seen]).mean()) if seen.sum() else float("nan")
    titles = (
        f"{'scan' if isinstance(target, TriangleMesh) else 'point cloud'}{_marked(marks)}",
        f"fit ({fit.mahalanobis:.1f} sd from the mean)",
        f"residual, mean {mean:.2f} mm where seen ({fit.covered:.0%})",
    )
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=11)
    figure.suptitle(name, fontsize=13, y=0.94)
    scale = ScalarMappable(Normalize(-limit, limit), SIGNED)
    bar = figure.colorbar(scale, ax=axes, orientation="horizontal", fraction=0.025, pad=0.02)
    bar.set_label("mm; blue: the fit lies inside the scan, red: outside, grey: nothing seen there")
    save_png(figure, path, dpi=100, bbox_inches="tight")


def _marked(landmarks: Landmarks) -> str:
    if not landmarks.found:
        return ""
    doubtful = f", doubtful: {len(landmarks.doubtful)}" if landmarks.doubtful else ""
    return f" (landmarks found by the program: blue{doubtful})"


def _seen_target(
    target: TriangleMesh | Floats,
    upright: Similarity,
    view: View,
    box: tuple[Floats, Floats],
    markers: list[Marker],
) -> Picture:
    if isinstance(target, TriangleMesh):
        mesh = target.with_vertices(upright.apply(target.vertices))
        return render(mesh, view, size=_FIT_SIZE, box=box, markers=markers)
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
    return render(dots, view, size=_FIT_SIZE, box=box, markers=markers, colors=np.tile(shade, (3, 1)))


# --------------------------------------------------------------------------------------------------------------------
# Landmarks on the scan, each with how sure it is
# --------------------------------------------------------------------------------------------------------------------

_MARK_VIEWS = (View(yaw=-45.0), View(), View(yaw=45.0))
_MARK_SIZE = (420, 420)
_SURE, _DOUBTFUL, _SET = "#0072B2", "#D55E00", "#009E73"
_RING = 1.96  # deviations that a ring shows: nineteen of twenty landmarks lie within


def landmark_sheet(
    name: str, upright: TriangleMesh, landmarks: Landmarks, path: Path, note: str = ""
) -> None:
    """Write a PNG: the scan from three sides, on it each landmark in a ring within which it should lie.

    Parameters
    ----------
    name : str
        Of the scan.
    upright : TriangleMesh
        In mm, x to the patient's left, y up.
    landmarks : Landmarks
        In the same frame.
    path : Path
    note : str
        Below the pictures, for example what was left out and why.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    low, high = np.nanmin(upright.vertices, axis=0), np.nanmax(upright.vertices, axis=0)
    corners = np.array([[(low, high)[(k >> d) & 1][d] for d in range(3)] for k in range(8)])
    figure = Figure(figsize=(13.2, 5.4))
    axes = figure.subplots(1, 3, gridspec_kw={"wspace": 0.02})
    for axis, view in zip(axes, _MARK_VIEWS, strict=True):
        camera = Camera.around(corners, view, _MARK_SIZE)
        seen = look(upright, camera)
        axis.imshow(render(upright, camera=camera))
        axis.set_axis_off()
        axis.set_autoscale_on(False)
        mark_sides(axis, view.axes(), size=12)
        for mark, (column, row, depth) in zip(landmarks, camera.project(landmarks.points), strict=True):
            if not _in_sight(seen, column, row, depth):
                continue
            found = landmarks.found.get(mark)
            colour = _SET if found is None else _DOUBTFUL if found.doubtful else _SURE
            axis.plot(column, row, "+", color=colour, markersize=7, markeredgewidth=1.4)
            if found is not None:
                dashed = "--" if found.doubtful else "-"
                ring = Circle(
                    (column, row), _RING * found.sd / camera.pixel, fill=False, ec=colour, lw=1.1, ls=dashed
                )
                axis.add_patch(ring)
    figure.suptitle(name, fontsize=13)
    figure.text(0.5, 0.045, _told(landmarks), ha="center", va="top", fontsize=9)
    if note:
        figure.text(0.5, -0.06, note, ha="center", va="top", fontsize=9, color=_DOUBTFUL)
    save_png(figure, path, dpi=100, bbox_inches="tight")


def _in_sight(seen: Seen, column: float, row: float, depth: float) -> bool:
    """Whether a point lies in the picture and not behind the surface."""
    high, wide = seen.depth.shape
    i, j = int(row), int(column)
    return 0 <= i < high and 0 <= j < wide and bool(depth > seen.depth[i, j] - 12.0)


def _told(landmarks: Landmarks) -> str:
    """The landmarks in words: which are set, and how sure the others are."""
    words = []
    for name in landmarks:
        found = landmarks.found.get(name)
        sure = "set" if found is None else f"\u00b1{found.sd:.0f} mm{', doubtful' if found.doubtful else ''}"
        words.append(f"{name.replace('_', ' ')} {sure}")
    half = (len(words) + 1) // 2
    rings = "Rings hold the landmark nineteen times in twenty; dashed: doubtful, look at it."
    return "\n".join([" \u00b7 ".join(words[:half]), " \u00b7 ".join(words[half:]), rings])
