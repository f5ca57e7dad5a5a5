"""Sheets of new shapes: an edit, features at several values, a fit; and of scans with their landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.clinical.edit import Edit
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.messages import READERS, sentences
from breastmorph.foundation.terms import measure_in_words
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.fitting import Fit
from breastmorph.report.document import Identity, Page, Panels, Text
from breastmorph.report.examination_sheet import FROM_THREE_SIDES, SIDES_NOTE
from breastmorph.report.measure_tables import EDITED, table_of
from breastmorph.report.prediction_sheet import disclaimer
from breastmorph.report.render import (
    AMOUNT,
    Camera,
    ColourScale,
    Marker,
    Picture,
    View,
    box_around,
    cameras_around,
    colormap,
    corners_of,
    render,
    round_end,
    save_picture_grid,
    views_of,
    visible_surface,
    with_sides_and_scale,
)
from breastmorph.report.sheet import Layout, print_page
from breastmorph.scan.scan import Landmarks

_EDIT_VIEWS, _EDIT_SIZE = (View(), View(yaw=45.0), View(yaw=90.0)), (330, 310)
_GRID_VIEW, _GRID_SIZE = View(yaw=20.0), (230, 230)
_FULL = 10.0  # mm: least movement that gets the strongest colour, so that tiny ones stay pale

_FIT_VIEWS, _FIT_SIZE = (View(), View(yaw=45.0), View(yaw=-45.0)), (380, 380)
_FIT_MARGIN = 45.0  # mm around the fit
_FIT_ENDS = (1.0, 15.0)  # mm: where the colours of the residuals may end
_FOUND = (0.10, 0.35, 0.85)
_UNSEEN = np.array([0.80, 0.80, 0.80])
_DOT = 1.6  # mm, half the size of a point of a cloud
_MOST_DOTS = 20_000

_MARK_SIZE = (420, 420)
_SURE, _DOUBTFUL, _SET = "#0072B2", "#D55E00", "#009E73"
_RING = 1.96  # deviations that a ring shows: nineteen of twenty landmarks lie within
_HIDDEN = 12.0  # mm that a landmark may lie under the surface and still be drawn


def editing_page(edit: Edit, faces: Ints, identity: Identity, warning: str = "") -> Page:
    """One edit as a page: before, after, movement, and the measures.

    Parameters
    ----------
    edit : Edit
    faces : (m, 3) int
    identity : Identity
    warning : str
        What must not be overlooked, for example that the model is a synthetic one.
    """
    cameras = cameras_around(np.vstack([edit.before, edit.shape]), _EDIT_VIEWS, _EDIT_SIZE)
    moved = np.linalg.norm(edit.shape - edit.before, axis=1)
    scale = ColourScale(0.0, max(float(np.quantile(moved, 0.999)), _FULL), AMOUNT)
    rows = (
        ("Before", edit.before, None),
        ("After", edit.shape, None),
        (f"Movement: pale 0, dark blue {scale.high:.0f} mm", edit.shape, scale.of(moved)),
    )
    regions = ", ".join(f"{region} {value:.1f} mm" for region, value in edit.movements.items())
    notes = [SIDES_NOTE]
    if regions:
        notes.append(f"Movement, root mean square: {regions}.")
    if edit.plausibility is not None:
        notes.append(
            f"{edit.plausibility.level.capitalize()}: {edit.plausibility.finding.cause.text(READERS)}."
        )
    if edit.basis:
        notes.append(f"Trained on {edit.basis}.")
    notes += [f"Warning: {sentence}." for sentence in sentences(edit.warnings, READERS)]
    requested = (m for m in edit.changes if m.requested is not None and not m.held)
    return Page(
        f"{identity.patient}: {', '.join(measure_in_words(measure.name) for measure in requested)}",
        (
            *(
                Panels(label, views_of(TriangleMesh(shape, faces), cameras, colors))
                for label, shape, colors in rows
            ),
            table_of(edit.changes, EDITED, lambda measure: measure.requested is not None),
            Text((*notes, disclaimer(warning))),
        ),
        f"{edit.method.capitalize()} edit: a change of {edit.length:.1f} standard deviations of the model. "
        "Distances are straight unless marked tape.",
        notice=warning,
        identity=identity,
    )


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
    cells = [cell for row in rows for cell in row]
    box = box_around([shape for shape, _ in cells if shape is not None])
    pictures = [
        np.full((*_GRID_SIZE[::-1], 3), 255, np.uint8)
        if shape is None
        else render(TriangleMesh(shape, faces), _GRID_VIEW, size=_GRID_SIZE, box=box)
        for shape, _ in cells
    ]
    save_picture_grid(pictures, [caption for _, caption in cells], path, len(rows[0]))


def fit_sheet(name: str, target: TriangleMesh | Floats, fit: Fit, path: Path) -> None:
    """Write a PNG: columns are the scan, the fit and the residual; rows are three views.

    The landmarks that the fit began from are drawn on the scan: red those that were set, blue those that were found.

    Parameters
    ----------
    name : str
        Of the scan.
    target : TriangleMesh or (m, 3) float
        What the model was fitted to.
    fit : Fit
    path : Path
    """
    # The model stands upright, so its frame is the one to look at; the size stays the patient's.
    upright = Similarity(scale=fit.transform.scale).after(fit.transform.inverse())
    shown = fit.mesh.with_vertices(upright.apply(fit.mesh.vertices))
    red, marks = Marker(np.zeros(3)).color, fit.landmarks
    markers = [Marker(upright.apply(marks[mark]), _FOUND if mark in marks.found else red) for mark in marks]
    box = corners_of(shown.vertices.min(axis=0) - _FIT_MARGIN, shown.vertices.max(axis=0) + _FIT_MARGIN)
    known = np.isfinite(fit.residuals)
    end = float(np.clip(round_end(fit.residuals, 0.95), *_FIT_ENDS))
    scale = ColourScale.signed(
        end, "mm; blue: the fit lies inside the scan, red: outside, grey: nothing seen there"
    )
    colors = scale.of(fit.residuals, otherwise=_UNSEEN)
    mean = float(np.abs(fit.residuals[known]).mean()) if known.any() else float("nan")
    marked = ""
    if marks.found:
        doubtful = f", doubtful: {len(marks.doubtful)}" if marks.doubtful else ""
        marked = f" (landmarks found by the program: blue{doubtful})"
    titles = (
        f"{'scan' if isinstance(target, TriangleMesh) else 'point cloud'}{marked}",
        f"fit ({fit.mahalanobis:.1f} sd from the mean)",
        f"residual, mean {mean:.2f} mm where seen ({fit.covered:.0%})",
    )
    rows: list[Panels] = []
    for camera in cameras_around(box, _FIT_VIEWS, _FIT_SIZE):
        scan = _turned(target, upright, camera)
        pictures = (
            *views_of(scan, [camera], markers=markers),
            *views_of(shown, [camera]),
            *views_of(shown, [camera], colors),
        )
        rows.append(Panels("", pictures, () if rows else titles, scale))
    print_page(Page(name, tuple(rows)), path.with_suffix(""), ("png",), Layout((11.4, 11.2), dpi=100))


def _turned(target: TriangleMesh | Floats, upright: Similarity, camera: Camera) -> TriangleMesh:
    """A scan upright; of a cloud a small triangle a point, turned to the camera, brighter where it is nearer."""
    if isinstance(target, TriangleMesh):
        return target.with_vertices(upright.apply(target.vertices))
    points = upright.apply(target[:: max(len(target) // _MOST_DOTS, 1)])
    right, up, towards = camera.axes
    n = len(points)
    vertices = np.concatenate([points + _DOT * corner for corner in (-right - up, right - up, 1.4 * up)])
    faces = np.column_stack([np.arange(n), np.arange(n) + n, np.arange(n) + 2 * n])
    depth = points @ towards
    far, near = np.quantile(depth, (0.02, 0.98))
    shade = np.round(0.75 * 255 * colormap(depth, float(far), float(near) + 1.0, "bone")).astype(np.uint8)
    return TriangleMesh(vertices, faces, np.tile(np.column_stack([shade, np.full(n, 255, np.uint8)]), (3, 1)))


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
        For example what was left out and why.
    """
    corners = corners_of(np.nanmin(upright.vertices, axis=0), np.nanmax(upright.vertices, axis=0))
    pictures = tuple(
        _with_landmarks(upright, landmarks, camera)
        for camera in cameras_around(corners, list(FROM_THREE_SIDES.values()), _MARK_SIZE)
    )
    words = []
    for mark in landmarks:
        found = landmarks.found.get(mark)
        sure = (
            "set"
            if found is None
            else f"\N{PLUS-MINUS SIGN}{found.sd:.0f} mm{', doubtful' if found.doubtful else ''}"
        )
        words.append(f"{mark.replace('_', ' ')} {sure}")
    texts = (
        " \N{MIDDLE DOT} ".join(words),
        "Rings contain the landmark nineteen times in twenty; dashed: doubtful, look at it.",
        *([note] if note else []),
    )
    page = Page(name, (Panels("", pictures, tuple(FROM_THREE_SIDES)), Text(texts)))
    print_page(page, path.with_suffix(""), ("png",), Layout((13.2, 5.9), dpi=100))


def _with_landmarks(upright: TriangleMesh, landmarks: Landmarks, camera: Camera) -> Picture:
    """A scan with a cross at every landmark that is in sight, and a ring where it was found by the program."""
    from PIL import Image, ImageDraw

    depth = visible_surface(upright, camera).depth
    image = Image.fromarray(with_sides_and_scale(render(upright, camera=camera), camera))
    draw = ImageDraw.Draw(image)
    for mark, (x, y, near) in zip(landmarks, camera.project(landmarks.points), strict=True):
        i, j = int(y), int(x)
        if not (0 <= i < depth.shape[0] and 0 <= j < depth.shape[1]) or near <= depth[i, j] - _HIDDEN:
            continue
        found = landmarks.found.get(mark)
        colour = _SET if found is None else _DOUBTFUL if found.doubtful else _SURE
        draw.line([(x - 5, y), (x + 5, y)], fill=colour, width=2)
        draw.line([(x, y - 5), (x, y + 5)], fill=colour, width=2)
        if found is not None:
            radius = _RING * found.sd / camera.pixel
            arc = 12 if found.doubtful else 20  # degrees of every 20
            for start in range(0, 360, 20):
                box = [(x - radius, y - radius), (x + radius, y + radius)]
                draw.arc(box, start, start + arc, fill=colour, width=2)
    return np.asarray(image)
