"""A one-page sheet for the clinic: rows of pictures, a table of measures, notes; as PNG and PDF (A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.printing import house_style, save_figure
from breastmorph.report.render import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_A4 = (8.27, 11.69)  # inches
_MARGIN = 0.06  # of the width
_LINE = 0.0155  # of the height: one row of the table
_MOST_ROWS = 26
_NAMES = 0.34  # of the table's width: the first column
_TITLE = 58  # letters of a title in full size
_FAINT, _STRONG = "#F3F3F3", "#DCE6F2"

_SIDES = "Left and right are the patient's: from the front, her left is on the right of the picture."


def caution(model: ShapeModel) -> str:
    """What nobody may overlook on a sheet made with a model; empty for most."""
    return "Synthetic model: not for planning." if model.is_synthetic else ""


@dataclass(frozen=True, eq=False)
class ClinicalSheet:
    """What stands on the page.

    Attributes
    ----------
    title, subtitle : str
    pictures : sequence of (label, pictures)
        Rows of pictures of equal size.
    columns : sequence of str
        Of the table.
    rows : sequence of sequences of str
    marked : set of int
        Rows of the table that stand out.
    notes : sequence of str
        Below the table, for example warnings.
    warning : str
        What nobody may overlook, in the title's line.
    """

    title: str
    subtitle: str
    pictures: Sequence[tuple[str, Sequence[Picture]]]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()
    notes: Sequence[str] = ()
    warning: str = ""


def disclaimer(warning: str) -> str:
    """What every sheet of a computed shape says; one with a warning does not speak of planning."""
    purpose = "" if warning else " for planning talks"
    return f"A computed shape{purpose}; no prediction of the result of an operation."


def save_clinical_sheet(sheet: ClinicalSheet, folder: Path, name: str = "sheet") -> list[Path]:
    """Write the page as ``name.png`` and ``name.pdf``; returns the files."""
    with house_style():
        return save_figure(_figure(sheet), folder / name, ("png", "pdf"), dpi=150)


def _figure(sheet: ClinicalSheet) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    figure = Figure(figsize=_A4)
    title = shorten(sheet.title, 2 * _TITLE, placeholder=" ...")
    size = 14 * min(1.0, _TITLE / len(title)) if title else 14
    figure.text(_MARGIN, 0.965, title, fontsize=size, weight="bold", va="top")
    figure.text(_MARGIN, 0.937, sheet.subtitle, fontsize=9, va="top", color="#444444")
    if sheet.warning:
        box = {"facecolor": "#FFE8CC", "edgecolor": "#D9480F", "boxstyle": "round,pad=0.3"}
        figure.text(
            1 - _MARGIN, 0.99, sheet.warning, fontsize=10, weight="bold", va="top", ha="right", bbox=box
        )
    shown = list(sheet.rows[:_MOST_ROWS])
    notes = [line for note in (_SIDES, *sheet.notes) for line in wrap(note, 125, subsequent_indent="   ")]
    if len(sheet.rows) > _MOST_ROWS:
        notes.append(f"{len(sheet.rows) - _MOST_ROWS} more measures are in the JSON file.")
    table_height = _LINE * (len(shown) + 1) if shown else 0.0
    notes_height = 0.013 * len(notes)
    bottom = 0.03 + notes_height + 0.012 + table_height + 0.012
    _draw_pictures(figure, sheet.pictures, bottom, 0.918)
    if shown:
        axes = figure.add_axes((_MARGIN, bottom - 0.012 - table_height, 1 - 2 * _MARGIN, table_height))
        axes.axis("off")
        table = axes.table(
            cellText=[list(row) for row in shown],
            colLabels=list(sheet.columns),
            colWidths=[_NAMES, *[(1 - _NAMES) / (len(sheet.columns) - 1)] * (len(sheet.columns) - 1)],
            cellLoc="right",
            colLoc="right",
            bbox=Bbox.unit(),
        )
        table.auto_set_font_size(False)
        table.set_fontsize(8)
        for (row, column), cell in table.get_celld().items():
            cell.set_linewidth(0.0)
            cell.set_facecolor(_STRONG if row - 1 in sheet.marked else _FAINT if row % 2 else "white")
            cell.get_text().set_fontweight("bold" if row == 0 or row - 1 in sheet.marked else "normal")
            if column == 0:
                cell.get_text().set_horizontalalignment("left")
    figure.text(_MARGIN, 0.03 + notes_height, "\n".join(notes), fontsize=7.5, va="top", linespacing=1.35)
    return figure


def _draw_pictures(
    figure: Figure, rows: Sequence[tuple[str, Sequence[Picture]]], bottom: float, top: float
) -> None:
    """Pictures as large as the place between two heights of the page allows."""
    if not rows:
        return
    label, gap = 0.016, 0.006
    height = (top - bottom) / len(rows) - label - gap
    for k, (text, pictures) in enumerate(rows):
        strip = np.concatenate(list(pictures), axis=1)
        upper = top - k * (label + height + gap)
        figure.text(_MARGIN, upper - label / 2, text, fontsize=9, weight="bold", va="center")
        axes = figure.add_axes((_MARGIN, upper - label - height, 1 - 2 * _MARGIN, height))
        axes.imshow(strip)
        axes.axis("off")
