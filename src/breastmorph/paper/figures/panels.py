"""Pictures of meshes as panels of a figure: one scale, the patient's sides, scale and colour bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.printing import GREY, SMALL
from breastmorph.report.render import BAR_LENGTH, Camera, Picture, View, sides_seen, visible_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RELIEF = 0.55  # of pictures whose colours mean numbers
_PER_INCH = 300  # pixels of a picture
_AROUND = 0.03  # of a panel's width around the shapes


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
    pixel = float(most[0]) * (1 + 2 * _AROUND) / pixels
    return [
        Camera(axes, centre, pixel, (pixels, math.ceil(up / pixel + 2 * _AROUND * pixels)))
        for axes, centre, extent in seen
        for up in [float(most[1] if one_height else extent[1])]
    ]


def height_of(camera: Camera) -> float:
    """Of a camera's picture, inches."""
    return camera.size[1] / _PER_INCH


def width_of(camera: Camera) -> float:
    """Of a camera's picture, inches."""
    return camera.size[0] / _PER_INCH


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
        """Words at a place, centred unless ``style`` says otherwise."""
        across, down = self.figure.get_size_inches()
        how: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, **style}
        self.figure.text(left / across, 1.0 - top / down, words, **how)

    def scale_bar(self, left: float, top: float, camera: Camera) -> None:
        """A line of 50 mm at the scale of a camera's pictures."""
        from matplotlib.lines import Line2D

        across, down = self.figure.get_size_inches()
        right = left + BAR_LENGTH / camera.pixel / _PER_INCH
        ends = [left / across, right / across], [1.0 - top / down] * 2
        self.figure.add_artist(Line2D(*ends, color="black", lw=1.2, solid_capstyle="butt"))
        self.text(right + 0.05, top, f"{BAR_LENGTH:.0f} mm", ha="left", va="center_baseline")

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


def mark_sides(axes: Axes, view: Floats, size: float = SMALL) -> None:
    """Write L and R, the patient's, into the upper corners of a picture seen along the axes (3, 3) of a view."""
    for across, letter, side in zip((0.05, 0.95), sides_seen(view) or (), ("left", "right"), strict=False):
        axes.text(
            across, 0.99, letter, ha=side, va="top", fontsize=size, color=GREY, transform=axes.transAxes,
        )  # fmt: skip


def _tick_step(end: float) -> float:
    """Distance between numbers on a colour bar that has one at its end."""
    power = 10.0 ** np.floor(np.log10(end))
    for step in (1.0, 2.0, 0.5, 0.2, 0.1):
        parts = end / (step * power)
        if abs(parts - round(parts)) < 1e-6 and 2 <= round(parts) <= 7:
            return float(step * power)
    return end / 2.0


def draw_levels(
    axes: Axes, mesh: TriangleMesh, camera: Camera, values: Floats, levels: Sequence[float]
) -> None:
    """Draw lines of equal value (n,) on the surface of a picture's mesh, where the camera sees it."""
    image = visible_surface(mesh, camera).as_image(values)
    if not (np.nanmin(image) < min(levels) <= np.nanmax(image)):
        levels = [level for level in levels if np.nanmin(image) < level < np.nanmax(image)]
    if not len(levels):
        return
    height, width = image.shape
    across, down = np.arange(width) + 0.5, np.arange(height) + 0.5
    axes.contour(across, down, np.ma.masked_invalid(image), levels, colors="black", linewidths=0.6)
    axes.set(xlim=(0, width), ylim=(height, 0))
