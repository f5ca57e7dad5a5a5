"""The one renderer of printed sheets: a page of texts, tables and pictures as PDF, PNG or SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.report.document import Block, Chart, Page, Panels, Table, Text, flat
from breastmorph.report.printing import figure_bytes, house_style, save_figure
from breastmorph.report.render import ColourScale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}  # inches
_INK, _FAINT, _BAND, _MARKED = "#222222", "#444444", "#F3F3F3", "#DCE6F2"
_WARNING = {"facecolor": "#FFE8CC", "edgecolor": "#D9480F", "boxstyle": "round,pad=0.3"}
_MARGIN, _GAP, _FOOT = 0.5, 0.1, 0.35  # inches: at the sides, between blocks, at the foot
_TITLE = 58  # letters of a title in full size
_MOST_ROWS = 32  # of a table
_LINE = 0.178  # inches: a row of a table
_LABEL, _TITLES, _NOTE = 0.19, 0.16, 7.5  # inches of a row's label and of its titles; points of a note
_FIRST, _COLUMN = 2.45, 1.6  # inches: the first column of a table at least, the others at most
_LETTER = 0.52  # mean width of a letter by its height
_BETWEEN, _LEGEND = 0.06, 0.4  # inches between panels, and below a chart
_BAR = 0.8  # inches beside pictures for a colour bar with its numbers and its label


@dataclass(frozen=True)
class Layout:
    """How a page is printed.

    Attributes
    ----------
    size : (width, height) in inches
    number : function
        Gives a text's numbers as the page's language writes them.
    translated : function
        Gives a label of the sheet in the page's language.
    dpi : int
        Of a PNG.
    """

    size: tuple[float, float] = PAPERS["A4"]
    number: Callable[[str], str] = str
    translated: Callable[[str], str] = str
    dpi: int = 150


_A4 = Layout()


def print_page(
    page: Page, path: Path, kinds: Sequence[str] = ("png", "pdf"), layout: Layout = _A4
) -> list[Path]:
    """Write a page as ``<path>.<kind>`` for every kind; returns the files.

    Parameters
    ----------
    page : Page
        Of texts, tables, panels, and sections of these. All panels share the height that the others leave.
    path : Path
        Without an ending.
    kinds : sequence of {"pdf", "png", "svg"}
    layout : Layout
    """
    with house_style():
        return save_figure(printed_figure(page, layout), path, kinds, layout.dpi)


def page_png(page: Page, layout: Layout = _A4) -> bytes:
    """A page as a PNG."""
    with house_style():
        return figure_bytes(printed_figure(page, layout), "png", layout.dpi)


def printed_figure(page: Page, layout: Layout = _A4) -> Figure:
    """A page as a figure; call it within the house style."""
    sheet = _Sheet(layout)
    sheet.heading(page)
    blocks = flat(page.blocks)
    rows = [block for block in blocks if isinstance(block, Panels)]
    left = sheet.y - _FOOT - sum(sheet.height(block) for block in blocks)
    bar = _BAR if any(row.scale is not None for row in rows) else 0.0
    for block in blocks:
        match block:
            case Text():
                sheet.text(block)
            case Table():
                sheet.table(block)
            case Panels():
                sheet.panels(block, left / len(rows), bar)
    return sheet.figure


class _Sheet:
    """A sheet that is filled from top to bottom; lengths are inches."""

    def __init__(self, layout: Layout) -> None:
        from matplotlib.figure import Figure

        self.figure, self.layout = Figure(figsize=layout.size), layout
        self.wide = layout.size[0] - 2 * _MARGIN
        self.y = layout.size[1] - 0.4  # where the next block begins

    def write(self, x: float, text: str, size: float, *, down: float = 0.0, **how: Any) -> None:
        """Text with its upper left corner ``x`` from the margin, and ``down`` from where the next block begins."""
        at = (_MARGIN + x) / self.layout.size[0], (self.y - down) / self.layout.size[1]
        self.figure.text(*at, text, fontsize=size, **{"color": _INK, "va": "top"} | how)

    def axes(self, x: float, down: float, width: float, height: float) -> Axes:
        """Axes with their upper left corner at a place."""
        across, up = self.layout.size
        axes = self.figure.add_axes(
            ((_MARGIN + x) / across, (self.y - down - height) / up, width / across, height / up)
        )
        axes.axis("off")
        return axes

    def heading(self, page: Page) -> None:
        """Title, the notice that must not be overlooked, what the page is about, and whose it is."""
        if page.notice:
            style: dict[str, Any] = {"weight": "bold", "ha": "right", "bbox": _WARNING}
            self.write(self.wide, page.notice, 10, down=-0.25, **style)
        if page.title:
            title = shorten(page.title, 2 * _TITLE, placeholder=" ...")
            self.write(0.0, title, 14 * min(1.0, _TITLE / len(title)), weight="bold")
            self.y -= 0.31
        lines = [page.subtitle] if page.subtitle else []
        if page.identity is not None:
            lines += page.identity.lines(self.layout.translated)
        self.write(0.0, "\n".join(lines), 9, color=_FAINT)
        self.y -= 0.155 * len(lines) + _GAP

    def height(self, block: Block) -> float:
        """What a block takes; of panels their texts alone."""
        match block:
            case Text():
                return 0.141 * len(self._lines(block)) + _GAP
            case Table():
                return _LINE * (min(len(block.rows), _MOST_ROWS) + 1) + _GAP if block.rows else 0.0
            case Panels():
                return bool(block.label) * _LABEL + bool(block.titles) * _TITLES + _GAP
        return 0.0

    def _lines(self, text: Text) -> list[str]:
        letters = int(self.wide * 72 / (_LETTER * _NOTE))
        return [
            line
            for paragraph in text.paragraphs
            for line in wrap(paragraph, letters, subsequent_indent=3 * " ")
        ]

    def text(self, text: Text) -> None:
        """Paragraphs in small letters."""
        self.write(0.0, "\n".join(self._lines(text)), _NOTE, linespacing=1.35)
        self.y -= self.height(text)

    def table(self, table: Table) -> None:
        """Columns of numbers behind one of words; where rows do not fit, the last one says how many there are more."""
        if not table.rows:
            return
        from matplotlib.patches import Rectangle

        titles, rows = table.texts()
        if len(rows) > _MOST_ROWS:
            rest = len(rows) - _MOST_ROWS + 1
            rows = [*rows[: _MOST_ROWS - 1], [f"{rest} more measures are in the JSON file"]]
        column = min(_COLUMN, (self.wide - _FIRST) / (len(titles) - 1))
        first = self.wide - column * (len(titles) - 1)
        longest = max(len(cell) for row in [titles, *rows] for cell in row[1:])
        size = min(8.0, 72 * column / (1.2 * _LETTER * longest))
        across, up = self.layout.size
        for k, row in enumerate([titles, *rows]):
            marked = k - 1 in table.marked
            if marked or k % 2:
                corner = _MARGIN / across, (self.y - _LINE + 0.03) / up
                colour = _MARKED if marked else _BAND
                self.figure.add_artist(
                    Rectangle(corner, self.wide / across, _LINE / up, color=colour, lw=0, zorder=-1)
                )
            style: dict[str, Any] = {"weight": "bold"} if marked or not k else {}
            for c, cell in enumerate(row):
                x = 0.04 if c == 0 else first + column * c - 0.04
                self.write(x, cell, size, ha="right" if c else "left", **style)
            self.y -= _LINE
        self.y -= _GAP

    def panels(self, row: Panels, height: float, bar: float) -> None:
        """Pictures as large as the height and the width allow, beside each other in the middle."""
        if row.label:
            self.write(0.0, row.label, 9, weight="bold")
            self.y -= _LABEL
        down = _TITLES if row.titles else 0.0
        shares = [
            1.0 if isinstance(panel, Chart) else panel.shape[1] / panel.shape[0] for panel in row.panels
        ]
        spare = self.wide - bar - _BETWEEN * (len(shares) - 1)
        tall = min(height, spare / sum(shares))
        x = (spare - tall * sum(shares)) / 2
        last = max((k for k, panel in enumerate(row.panels) if not isinstance(panel, Chart)), default=-1)
        for k, (panel, share) in enumerate(zip(row.panels, shares, strict=True)):
            if row.titles:
                self.write(x, row.titles[k], 8.5, weight="bold")
            if isinstance(panel, Chart):
                panel.draw(self.axes(x, down, tall - _BETWEEN, tall - _LEGEND))
            else:
                self.axes(x, down, share * tall, tall).imshow(panel, aspect="auto")
            x += share * tall + _BETWEEN
            if k == last:
                if row.scale is not None:
                    self.colour_bar(x, down + 0.1 * tall, 0.8 * tall, row.scale)
                x += bar
        self.y -= down + tall + _GAP

    def colour_bar(self, x: float, down: float, height: float, scale: ColourScale) -> None:
        """A standing bar with its numbers and its label on the right."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        signed = scale.low < 0.0
        bar = self.figure.colorbar(
            ScalarMappable(Normalize(scale.low, scale.high), scale.colours),
            cax=self.axes(x, down, 0.09, height),
            ticks=np.linspace(scale.low, scale.high, 5 if signed else 3),
            extend="both" if signed else "max",
        )
        bar.ax.set_axis_on()
        numbers = [f"{tick:+g}" if signed and tick else f"{tick:g}" for tick in bar.get_ticks()]
        bar.ax.set_yticklabels([self.layout.number(text) for text in numbers], fontsize=6.5)
        bar.ax.tick_params(length=2)
        letters = max(int(72 * height / (_LETTER * 6.5)), 10)
        bar.set_label("\n".join(wrap(scale.label, letters)), fontsize=6.5)
