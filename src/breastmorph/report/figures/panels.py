"""What figures are made of: sizes, fonts, colours, panels with pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.render import Camera, Picture, View, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------------------------
# How figures are printed: one style, one palette, one way to write them as vector graphics and PNG
# --------------------------------------------------------------------------------------------------------------------

WIDE, NARROW = 7.2, 3.5  # inches: two columns and one column of a journal
# Okabe and Ito's colours, which people with any colour vision tell apart; lines differ by their dashes too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
GREY = "#555555"
SMALL = 7.0  # points
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
_DPI = 200
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
    """A figure to draw on, written as ``<path>.svg`` and ``<path>.png`` when the block ends.

    Parameters
    ----------
    path : Path
        Without an ending; its folder is made.
    size : (width, height) in inches
    free : bool
        Panels are placed by hand; otherwise matplotlib makes room for their labels.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout=None if free else "constrained")
        yield figure
        save_figure(figure, path)


def save_figure(
    figure: Figure, path: Path, kinds: Sequence[str] = ("svg", "png"), dpi: int = _DPI
) -> list[Path]:
    """Write a figure as ``<path>.<kind>`` for every kind; returns the files. Call it within the house style.

    The same figure gives the same bytes: no dates, no random names inside.
    """
    make_folder(path.parent)
    _take_as_written(figure)
    written = []
    for kind in kinds:
        for axes in figure.axes:
            for image in axes.images:  # all pixels into vector files, as many as needed into a PNG
                image.set_interpolation("antialiased" if kind == "png" else "none")
        data = io.BytesIO()
        figure.savefig(data, format=kind, dpi=dpi, metadata=_DATES[kind])
        written.append(path.with_name(f"{path.name}.{kind}"))
        write_file(written[-1], data.getvalue().replace(_BLOCKY, b""))
    return written


def save_png(figure: Figure, path: Path, dpi: int, **how: Any) -> None:
    """Write a figure as one PNG file, with what else ``savefig`` can be told."""
    make_folder(path.parent)
    _take_as_written(figure)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=dpi, metadata=_DATES["png"], **how)
    write_file(path, data.getvalue())


def _take_as_written(figure: Figure) -> None:
    """Names come from people's files: two dollar signs in one must not be taken for a formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


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


# --------------------------------------------------------------------------------------------------------------------
# Pictures of meshes as panels of a figure: one scale, the patient's sides, scale and colour bars
# --------------------------------------------------------------------------------------------------------------------

RELIEF = 0.55  # of pictures whose colours mean numbers
# Colour maps from 0 to the most, and both ways from 0: readable in grey and for any colour vision, and nowhere as
# white as the paper, so that shapes keep their outline.
SPREAD, SIGNED = "YlOrRd", "coolwarm"
_PER_INCH = 300  # pixels of a picture
_MARGIN = 0.03  # of a panel's width around the shapes
_TINY = 6.5  # points
_BAR = 50.0  # mm


def cameras(
    groups: Sequence[tuple[View, Sequence[Floats]]], width: float, *, one_height: bool = False
) -> list[Camera]:
    """One camera for every group of shapes, all at one scale with pictures of one width.

    Parameters
    ----------
    groups : sequence of (view, shapes)
        Shapes (n, 3) seen from there; the picture is centred on all of them together.
    width : float
        Of a panel, inches.
    one_height : bool
        Pictures are equally high too; otherwise as high as their shapes.
    """
    pixels = round(width * _PER_INCH)
    seen = []
    for view, shapes in groups:
        axes = view.axes()
        flat = [(shape @ axes.T)[:, :2] for shape in shapes]
        low, high = (pick([pick(one, axis=0) for one in flat], axis=0) for pick in (np.min, np.max))
        seen.append((axes, (low + high) / 2, high - low))
    most = np.max([extent for _, _, extent in seen], axis=0)
    pixel = float(most[0]) * (1 + 2 * _MARGIN) / pixels
    return [
        Camera(axes, centre, pixel, (pixels, math.ceil(up / pixel + 2 * _MARGIN * pixels)))
        for axes, centre, extent in seen
        for up in [float(most[1] if one_height else extent[1])]
    ]


def height_of(camera: Camera) -> float:
    """Of a camera's picture, inches."""
    return camera.size[1] / _PER_INCH


def levelled(shapes: Sequence[Floats], upright: Floats | None) -> list[Floats]:
    """Shapes (n, 3) turned together so that the first stands as an upright one does, for example the model's mean."""
    if upright is None:
        return list(shapes)
    turn = Similarity.fit(shapes[0], upright, with_scale=False)
    return [turn.apply(shape) for shape in shapes]


@dataclass(frozen=True, eq=False)
class PanelPage:
    """A figure whose panels are placed in inches from its upper left corner.

    Attributes
    ----------
    figure : Figure
    """

    figure: Figure

    def panel(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes at a place."""
        across, down = self.figure.get_size_inches()
        return self.figure.add_axes(
            (left / across, 1.0 - (top + height) / down, width / across, height / down)
        )

    def picture(self, picture: Picture, camera: Camera, left: float, top: float) -> Axes:
        """A picture with the patient's sides, as large as its pixels; data coordinates are pixels."""
        height, width = picture.shape[:2]
        axes = self.panel(left, top, width / _PER_INCH, height / _PER_INCH)
        axes.imshow(picture, extent=(0.0, width, height, 0.0), aspect="auto")
        axes.set_axis_off()
        mark_sides(axes, camera.axes)
        return axes

    def text(self, left: float, top: float, words: str, **style: Any) -> None:
        """Words at a place, centred unless told otherwise."""
        across, down = self.figure.get_size_inches()
        how: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, **style}
        self.figure.text(left / across, 1.0 - top / down, words, **how)

    def scale_bar(self, left: float, top: float, camera: Camera) -> None:
        """A line of 50 mm at the scale of a camera's pictures."""
        from matplotlib.lines import Line2D

        across, down = self.figure.get_size_inches()
        right = left + _BAR / camera.pixel / _PER_INCH
        ends = [left / across, right / across], [1.0 - top / down] * 2
        self.figure.add_artist(Line2D(*ends, color="black", lw=1.2, solid_capstyle="butt"))
        self.text(right + 0.05, top, f"{_BAR:.0f} mm", ha="left", va="center_baseline", fontsize=_TINY)

    def colour_bar(
        self,
        left: float,
        top: float,
        height: float,
        ends: tuple[float, float],
        name: str,
        label: str,
        shown: Floats | None = None,
    ) -> Axes:
        """A standing colour bar with its label on the right; where values shown go past an end, its number says so."""
        low, high = ends
        axes = self.panel(left, top, 0.10, height)
        ramp = np.linspace(high, low, 256)[:, None]
        axes.imshow(ramp, cmap=name, vmin=low, vmax=high, aspect="auto", extent=(0.0, 1.0, low, high))
        axes.grid(False)
        axes.set_xticks([])
        axes.yaxis.set_ticks_position("right")
        axes.yaxis.set_label_position("right")
        axes.tick_params(labelsize=SMALL, length=2.5)
        axes.set_ylabel(label, fontsize=SMALL)
        step = _tick_step(high)
        ticks = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) + 0.0  # no -0
        words = [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks]
        if shown is not None and np.nanmin(shown) < low:
            words[0] = f"\N{LESS-THAN OR EQUAL TO} {words[0]}"
        if shown is not None and np.nanmax(shown) > high:
            words[-1] = f"\N{GREATER-THAN OR EQUAL TO} {words[-1]}"
        axes.set_yticks(ticks, words)
        axes.spines[:].set(visible=True, linewidth=0.5)
        return axes


def mark_sides(axes: Axes, view: Floats, size: float = _TINY) -> None:
    """Write L and R, the patient's, into the upper corners of a picture seen along the axes (3, 3) of a view."""
    towards_left = float(view[0, 0])  # how much of the patient's left is the picture's right
    if abs(towards_left) < 0.3:  # from the side: one is behind the other
        return
    letters = ("R", "L") if towards_left > 0 else ("L", "R")
    for across, letter, side in zip((0.05, 0.95), letters, ("left", "right"), strict=True):
        axes.text(
            across, 0.99, letter, ha=side, va="top", fontsize=size, color=GREY, transform=axes.transAxes,
        )  # fmt: skip


def round_end(values: Floats, share: float = 0.99) -> float:
    """A round number that a share of the values lies below: the end of a colour range, above 0."""
    finite = np.abs(values[np.isfinite(values)])
    most = float(np.quantile(finite, share)) if len(finite) else 0.0
    if most <= 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(most))
    return float(
        next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= most * (1 - 1e-9))
    )


def _tick_step(end: float) -> float:
    """Distance between numbers on a colour bar that has one at its end."""
    power = 10.0 ** np.floor(np.log10(end))
    for step in (1.0, 2.0, 0.5, 0.2, 0.1):
        parts = end / (step * power)
        if abs(parts - round(parts)) < 1e-6 and 2 <= round(parts) <= 7:
            return float(step * power)
    return end / 2.0


def draw_levels(
    axes: Axes,
    mesh: TriangleMesh,
    camera: Camera,
    values: Floats,
    levels: Sequence[float],
) -> None:
    """Draw lines of equal value (n,) on the surface of a picture's mesh, where the camera sees it."""
    image = look(mesh, camera).as_image(values)
    if not (np.nanmin(image) < min(levels) <= np.nanmax(image)):
        levels = [level for level in levels if np.nanmin(image) < level < np.nanmax(image)]
    if not len(levels):
        return
    height, width = image.shape
    across, down = np.arange(width) + 0.5, np.arange(height) + 0.5
    axes.contour(across, down, np.ma.masked_invalid(image), levels, colors="black", linewidths=0.6)
    axes.set(xlim=(0, width), ylim=(height, 0))
