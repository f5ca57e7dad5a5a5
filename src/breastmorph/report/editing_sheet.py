"""Pictures of edits: one edit before and after on a page for the clinic, and the paper's grid of edited features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.clinical.edit.result import Change, Edit
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.report.clinical_sheet import ClinicalSheet, disclaimer, save_clinical_sheet
from breastmorph.report.contact_sheet import save_sheet
from breastmorph.report.render import View, box_around, colormap, render

_VIEWS = (View(), View(yaw=45.0), View(yaw=90.0))
_SIZE = (330, 310)
_CELL = (230, 230)
_FULL = 10.0  # mm: least movement that gets the strongest colour, so that tiny ones stay pale


def save_editing_sheet(
    edit: Edit, faces: Ints, title: str, folder: Path, name: str = "sheet", warning: str = ""
) -> list[Path]:
    """Write one edit as a page: before, after, movement, and the measures; PNG and PDF.

    ``warning`` is what nobody may overlook, for example that the model is a synthetic one.
    """
    box = box_around([edit.before, edit.shape])
    moved = np.linalg.norm(edit.shape - edit.before, axis=1)
    most = max(float(np.quantile(moved, 0.999)), _FULL)
    rows: list[tuple[str, Floats, Floats | None]] = [
        ("Before", edit.before, None),
        ("After", edit.shape, None),
        (f"Movement: white 0, dark red {most:.0f} mm", edit.shape, colormap(moved, 0.0, most, "Reds")),
    ]
    pictures = [
        (
            label,
            [render(TriangleMesh(shape, faces), view, size=_SIZE, colors=colors, box=box) for view in _VIEWS],
        )
        for label, shape, colors in rows
    ]
    regions = ", ".join(f"{region} {value:.1f} mm" for region, value in edit.movements.items())
    notes = [f"Movement, root mean square: {regions}."] if regions else []
    notes += [f"Trained on {edit.basis}."] if edit.basis else []
    notes += [f"Warning: {warning}." for warning in edit.warnings]
    notes.append(disclaimer(warning))
    sheet = ClinicalSheet(
        title,
        f"{edit.method.capitalize()} edit: a change of {edit.length:.1f} standard deviations of the model. "
        "Distances are straight unless marked tape.",
        pictures,
        ["measure", "before", "requested", "after", "difference"],
        [change_row(change) for change in edit.changes],
        frozenset(k for k, change in enumerate(edit.changes) if change.requested is not None),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder, name)


def change_row(change: Change) -> list[str]:
    """A measure as text: name, before, requested, after, difference."""
    unit = f" {change.unit}" if change.unit else ""
    wanted = "" if change.requested is None else "held" if change.held else _number(change.requested, unit)
    if not change.held and change.requested is not None and not np.isfinite(change.requested):
        wanted = "changed"
    error = (
        ""
        if change.error is None or not np.isfinite(change.error)
        else f"{round(change.error, 2) + 0.0:+.2f}{unit}"
    )
    return [change.name, _number(change.before, unit), wanted, _number(change.after, unit), error]


def _number(value: float, unit: str) -> str:
    return f"{round(value, 1) + 0.0:.1f}{unit}" if np.isfinite(value) else ""


def save_feature_grid(
    rows: Sequence[Sequence[tuple[Floats | None, str]]], faces: Ints, path: Path, view: View | None = None
) -> None:
    """Write the figure of edited features: one row a feature, from low to high; a caption under each shape.

    Parameters
    ----------
    rows : sequence of sequences of (shape, caption)
        Of equal length; a place without a shape stays white.
    faces : (m, 3) int
    path : Path
        PNG.
    view : View, optional
        Somewhat from the side when not given.
    """
    shapes = [shape for row in rows for shape, _ in row]
    box, camera = box_around([shape for shape in shapes if shape is not None]), view or View(yaw=20.0)
    cells = [
        np.full((_CELL[1], _CELL[0], 3), 255, np.uint8)
        if shape is None
        else render(TriangleMesh(shape, faces), camera, size=_CELL, box=box)
        for shape in shapes
    ]
    save_sheet(cells, [caption for row in rows for _, caption in row], path, columns=len(rows[0]))
