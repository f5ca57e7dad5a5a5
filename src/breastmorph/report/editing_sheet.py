"""Pictures of edits: one edit before and after on a page for the clinic, and the paper's grid of edited features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.clinical.edit.result import Change, Edit
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.report.clinical_sheet import ClinicalSheet, disclaimer, save_clinical_sheet
from breastmorph.report.contact_sheet import save_sheet
from breastmorph.report.measure_words import in_cm, in_words, with_unit
from breastmorph.report.render import View, box_around, colormap, render

_VIEWS = (View(), View(yaw=45.0), View(yaw=90.0))
_SIZE = (330, 310)
_OBLIQUE = View(yaw=20.0)
_CELL = (230, 230)
_FULL = 10.0  # mm: least movement that gets the strongest colour, so that tiny ones stay pale


def save_editing_sheet(edit: Edit, faces: Ints, title: str, folder: Path, warning: str = "") -> list[Path]:
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
        [change_row(change, for_people=True) for change in edit.changes],
        frozenset(k for k, change in enumerate(edit.changes) if change.requested is not None),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder)


def change_row(change: Change, *, for_people: bool) -> list[str]:
    """A measure as text: name, before, requested, after, difference; see :mod:`breastmorph.report.measure_words`."""

    def cell(value: float | None, digits: int = 1, sign: str = "") -> str:
        if value is None:
            return ""
        return (
            in_cm(value, change.unit, 2, sign) if for_people else with_unit(value, change.unit, digits, sign)
        )

    wanted = "held" if change.held else cell(change.requested)
    if not wanted and change.requested is not None:  # a column of the cohort's table, which no shape tells
        wanted = "changed"
    name = in_words(change.name) if for_people else change.name
    return [name, cell(change.before), wanted, cell(change.after), cell(change.error, 2, "+")]


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
        np.full((_CELL[1], _CELL[0], 3), 255, np.uint8)
        if shape is None
        else render(TriangleMesh(shape, faces), _OBLIQUE, size=_CELL, box=box)
        for shape in shapes
    ]
    save_sheet(cells, [caption for row in rows for _, caption in row], path, columns=len(rows[0]))
