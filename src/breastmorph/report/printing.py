"""How figures are printed: one style, one palette, one way to write PDF, SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.files import csv_text, make_folder, write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDE, NARROW = 175.0 / 25.4, 85.0 / 25.4  # inches: two columns and one column of a journal
# Okabe and Ito's colours, distinct for any colour vision; lines differ by their dashes too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
GREY = "#555555"
SMALL = 7.0  # points: nothing is written smaller
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.5,
    "figure.constrained_layout.w_pad": 0.06,  # inches
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
    "svg.hashsalt": "breastmorph",  # the same numbers give the same file
}
_DPI = 300
_KINDS = ("svg", "pdf", "png")
_DATES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "BreastMorph"},
    "pdf": {"CreationDate": None},
    "png": {"Software": "BreastMorph"},
}
# What matplotlib says of pictures in vector files: pixels as squares. Ours are photographs, so to speak.
_BLOCKY = b' style="image-rendering:crisp-edges;image-rendering:pixelated"'


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in our style, whatever the user has set up for matplotlib."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]):
        yield


@contextmanager
def printed(path: Path, size: tuple[float, float], *, free: bool = False) -> Iterator[Figure]:
    """A figure to draw on, written as ``<path>.svg``, ``.pdf`` and ``.png`` when the block ends.

    Parameters
    ----------
    path : Path
        Without an ending; its folder is made.
    size : (width, height) in inches
    free : bool
        Panels are placed by hand; otherwise matplotlib leaves space for their labels.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout=None if free else "constrained")
        yield figure
        save_figure(figure, path)


def save_figure(figure: Figure, path: Path, kinds: Sequence[str] = _KINDS, dpi: int = _DPI) -> list[Path]:
    """Write a figure as ``<path>.<kind>`` for every kind; returns the files. Call it within the house style."""
    make_folder(path.parent)
    files = [path.with_name(f"{path.name}.{kind}") for kind in kinds]
    for file, kind in zip(files, kinds, strict=True):
        write_file(file, figure_bytes(figure, kind, dpi))
    return files


def figure_bytes(figure: Figure, kind: str, dpi: int = _DPI) -> bytes:
    """A figure as a file of a kind: the same figure gives the same bytes, without dates and random names inside."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):  # two dollar signs in the name of a file are no formula
        text.set_parse_math(False)
    for axes in figure.axes:
        for image in axes.images:  # all pixels into vector files, as many as needed into a PNG
            image.set_interpolation("antialiased" if kind == "png" else "none")
    data = io.BytesIO()
    figure.savefig(data, format=kind, dpi=dpi, metadata=_DATES[kind])
    return data.getvalue().replace(_BLOCKY, b"")


def save_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the numbers behind a figure as ``<path>.csv``."""
    make_folder(path.parent)
    write_file(path.with_name(f"{path.name}.csv"), csv_text(columns, rows).encode())


def count_components(panel: Axes) -> None:
    """Make the horizontal axis that of the number of components of the lines drawn: whole numbers from 0."""
    from matplotlib.ticker import MaxNLocator

    counts = np.concatenate(
        [np.zeros(0), *(np.asarray(line.get_xdata(), dtype=float) for line in panel.lines)]
    )
    least, most = (float(counts.min()), float(counts.max())) if len(counts) else (0.0, 1.0)
    panel.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    panel.set_xlabel("number of components")
    panel.set_xlim((0.0, most * 1.02) if most > least else (least - 0.5, least + 0.5))
