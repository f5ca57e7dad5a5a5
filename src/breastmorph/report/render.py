"""Pictures for people: shaded meshes without any graphics library, and the figures and sheets they are printed on.

The same on every machine.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.files import csv_text, make_folder, write_file
from breastmorph.foundation.machine import compiled
from breastmorph.mesh.geometry import Similarity, rotation_about, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --------------------------------------------------------------------------------------------------------------------
# Which triangle is seen at every pixel: the one compiled loop behind the pictures of meshes
# --------------------------------------------------------------------------------------------------------------------


@compiled()
def nearest_triangles(
    points: Floats, faces: Ints, width: int, height: int
) -> tuple[Ints, Floats, Floats, Floats]:
    """The triangle nearest to the camera at the centre of every pixel.

    Parameters
    ----------
    points : (n, 3) float
        Column, row (the first pixel spans 0 to 1) and depth, larger nearer to the camera.
    faces : (m, 3) int
    width, height : int

    Returns
    -------
    face : (height, width) int
        -1 where there is none.
    second, third : (height, width) float
        Barycentric weights of the face's second and third corner.
    depth : (height, width) float
        -inf where there is none.
    """
    face = np.full((height, width), -1, np.int64)
    second = np.zeros((height, width))
    third = np.zeros((height, width))
    depth = np.full((height, width), -np.inf)
    for f in range(len(faces)):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        x0, y0, z0 = points[i, 0], points[i, 1], points[i, 2]
        ax, ay, az = points[j, 0] - x0, points[j, 1] - y0, points[j, 2] - z0
        bx, by, bz = points[k, 0] - x0, points[k, 1] - y0, points[k, 2] - z0
        twice_area = ax * by - ay * bx
        if not abs(twice_area) > 1e-12:  # seen edge-on, or a corner is NaN
            continue
        first_row = max(math.ceil(y0 + min(0.0, ay, by) - 0.5), 0)
        last_row = min(math.floor(y0 + max(0.0, ay, by) - 0.5), height - 1)
        first_column = max(math.ceil(x0 + min(0.0, ax, bx) - 0.5), 0)
        last_column = min(math.floor(x0 + max(0.0, ax, bx) - 0.5), width - 1)
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                x, y = column + 0.5 - x0, row + 0.5 - y0
                u, v = (x * by - y * bx) / twice_area, (y * ax - x * ay) / twice_area
                # A hair of tolerance: no pixel between two triangles may be missed by both.
                if u < -1e-9 or v < -1e-9 or u + v > 1.0 + 1e-9:
                    continue
                z = z0 + u * az + v * bz
                if z > depth[row, column]:
                    depth[row, column] = z
                    face[row, column] = f
                    second[row, column] = u
                    third[row, column] = v
    return face, second, third, depth


@compiled()
def interpolated(values: Floats, faces: Ints, face: Ints, weights: Floats) -> Floats:
    """Values of vertices (n, c) at points of faces (k,) with barycentric weights (k, 3): (k, c)."""
    out = np.empty((len(face), values.shape[1]))
    for p in range(len(face)):
        i, j, k = faces[face[p], 0], faces[face[p], 1], faces[face[p], 2]
        for c in range(values.shape[1]):
            out[p, c] = (
                weights[p, 0] * values[i, c] + weights[p, 1] * values[j, c] + weights[p, 2] * values[k, c]
            )
    return out


# --------------------------------------------------------------------------------------------------------------------
# Shaded pictures of meshes without any graphics library: the same on every machine
# --------------------------------------------------------------------------------------------------------------------

Picture = NDArray[np.uint8]  # (height, width, 3)

SKIN = (0.86, 0.72, 0.63)
INSIDE = (0.45, 0.47, 0.52)  # the surface seen from behind, through a hole or past a border
# The colour convention of all pictures, sheets and pages, for any colour vision and in grey: amounts from 0 on
# (distance, spread, uncertainty, probability) darken; what has a sign goes from blue (inwards, less) to red.
# ``viewer/colours.js`` has the same two as "light" and "diverging".
AMOUNT, SIGNED = "YlGnBu", "coolwarm"
_BACKGROUND = 1.0
_KEY, _FILL = (-0.45, 0.55, 0.70), (0.70, -0.10, 0.70)  # lights: right, up and towards the camera
_MARGIN = 1.04
_FINE = 2  # points looked at per pixel along each side


@dataclass(frozen=True)
class View:
    """An orthographic camera in the canonical frame.

    Attributes
    ----------
    yaw : float
        Degrees about the vertical: 0 from the front, 45 shows the patient's left side.
    pitch : float
        Degrees: positive looks down from above, negative up from below.
    """

    yaw: float = 0.0
    pitch: float = 0.0

    def axes(self) -> Floats:
        """Rows: right, up and towards the camera, (3, 3)."""
        turn = rotation_about(np.array([0.0, 1.0, 0.0]), self.yaw)
        nod = rotation_about(np.array([1.0, 0.0, 0.0]), -self.pitch)
        return (turn @ nod).T


@dataclass(frozen=True, eq=False)
class Camera:
    """A view with its place and scale: what turns positions into pixels.

    Attributes
    ----------
    axes : (3, 3) float
        Of the view.
    centre : (2,) float
        Of the picture, right and up, mm.
    pixel : float
        Side of a pixel, mm.
    size : (width, height) in pixels
    """

    axes: Floats
    centre: Floats
    pixel: float
    size: tuple[int, int]

    @classmethod
    def around(cls, points: Floats, view: View, size: tuple[int, int]) -> Self:
        """The camera that fits points (k, 3) into a picture of a given size."""
        axes = view.axes()
        seen = (points @ axes.T)[:, :2]
        low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
        return cls(axes, (low + high) / 2, float(((high - low) / size).max()) * _MARGIN, size)

    def finer(self, times: int) -> Camera:
        """The same picture with so many pixels instead of each along a side."""
        return Camera(
            self.axes, self.centre, self.pixel / times, (self.size[0] * times, self.size[1] * times)
        )

    def narrowed(self, share: float) -> Camera:
        """The middle of the picture, so much of its width."""
        return Camera(self.axes, self.centre, self.pixel, (math.ceil(share * self.size[0]), self.size[1]))

    def project(self, points: Floats) -> Floats:
        """Column, row (the first pixel spans 0 to 1) and depth towards the camera in mm, (k, 3)."""
        seen = points @ self.axes.T
        seen[:, 0] = (seen[:, 0] - self.centre[0]) / self.pixel + self.size[0] / 2
        seen[:, 1] = (self.centre[1] - seen[:, 1]) / self.pixel + self.size[1] / 2
        return seen


@dataclass(frozen=True)
class Marker:
    """A dot drawn over the picture at a 3D position, hidden where the surface covers it."""

    position: Floats
    color: tuple[float, float, float] = (0.80, 0.15, 0.15)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a camera sees of a mesh, pixel by pixel.

    Attributes
    ----------
    mesh : TriangleMesh
    camera : Camera
    hit : (height, width) bool
        Where there is surface; the arrays below are of these pixels, row by row.
    faces : (k,) int
    weights : (k, 3) float
        Barycentric weights of the face's corners.
    depth : (height, width) float
        Towards the camera, mm; -inf where there is nothing.
    """

    mesh: TriangleMesh
    camera: Camera
    hit: Bools
    faces: Ints
    weights: Floats
    depth: Floats

    def at_pixels(self, values: Floats) -> Floats:
        """Values of the vertices, (n,) or (n, c), at the pixels with surface, (k,) or (k, c)."""

        # A fresh array: the kernel is compiled for one kind of memory.
        columns = np.array(values, dtype=float, order="C").reshape(len(values), -1)
        found = interpolated(columns, self.mesh.faces, self.faces, self.weights)
        return found.reshape(len(found), *values.shape[1:])

    def as_image(self, values: Floats) -> Floats:
        """Values of the vertices (n,) as an image (height, width), NaN where there is nothing."""
        image = np.full(self.hit.shape, np.nan)
        image[self.hit] = self.at_pixels(values)
        return image

    def shaded(self, base: Floats, relief: float = 1.0) -> Floats:
        """The lit picture (height, width, 3), 0..1, of colours at the pixels with surface, (k, 3).

        With less ``relief`` shadows are paler and colours come nearer to those of a colour bar.
        """
        mesh, towards = self.mesh, self.camera.axes[2]
        normals = self.at_pixels(vertex_normals(mesh.vertices, mesh.faces))
        normals /= np.maximum(np.sqrt((normals * normals) @ np.ones((3, 1))), 1e-12)
        behind = normals @ towards < 0
        normals[behind] *= -1.0
        light = _light(normals, self.camera.axes)
        if relief < 1.0:
            light = 1.0 + relief * (light / _light(towards[None], self.camera.axes) - 1.0)
        colors = np.array(np.broadcast_to(base, normals.shape))
        colors[behind] = INSIDE
        colors *= light[:, None]
        picture = np.full((*self.hit.shape, 3), _BACKGROUND)
        picture[self.hit] = np.minimum(colors, 1.0, out=colors)
        return picture

    def mark(self, picture: Floats, markers: Sequence[Marker], radius: float) -> None:
        """Draw the markers that the surface does not hide into a picture (height, width, 3), ``radius`` in pixels."""
        for marker in markers:
            column, row, depth = self.camera.project(marker.position[None])[0] - [0.5, 0.5, 0.0]
            _dot(picture, self.depth, column, row, depth, marker.color, radius)


def look(mesh: TriangleMesh, camera: Camera) -> Seen:
    """Find what a camera sees of a mesh."""

    points = np.ascontiguousarray(camera.project(mesh.vertices))
    face, second, third, depth = nearest_triangles(points, mesh.faces, *camera.size)
    hit = face >= 0
    u, v = second[hit], third[hit]
    return Seen(mesh, camera, hit, face[hit], np.column_stack([1.0 - u - v, u, v]), depth)


def render(
    mesh: TriangleMesh,
    view: View | None = None,
    *,
    size: tuple[int, int] = (360, 400),
    colors: Floats | None = None,
    markers: Sequence[Marker] = (),
    box: tuple[Floats, Floats] | None = None,
    camera: Camera | None = None,
    relief: float = 1.0,
) -> Picture:
    """Render a mesh.

    Parameters
    ----------
    mesh : TriangleMesh
        In the canonical frame.
    view : View, optional
        From the front when not given.
    size : (width, height) in pixels
    colors : (n, 3) float, optional
        RGB in 0..1 per vertex; the mesh's own colours or a skin tone otherwise.
    markers : sequence of Marker
        For example landmarks.
    box : (low, high), optional
        Corners of the region to fit into the picture, (3,) each; the mesh's own bounds otherwise.
    camera : Camera, optional
        Instead of ``view``, ``size`` and ``box``.
    relief : float
        Strength of the shading, 0 to 1; less where colours have to be compared with a colour bar.
    """
    if camera is None:
        low, high = box or (np.nanmin(mesh.vertices, axis=0), np.nanmax(mesh.vertices, axis=0))
        corners = np.array([[(low, high)[(k >> d) & 1][d] for d in range(3)] for k in range(8)])
        camera = Camera.around(corners, view or View(), size)
    seen = look(mesh, camera.finer(_FINE))
    if colors is None and mesh.colors is not None:
        colors = mesh.colors[:, :3] / 255.0
    base = np.array([SKIN]) if colors is None else seen.at_pixels(colors)
    picture = seen.shaded(base, relief)
    seen.mark(picture, markers, 3.2 * _FINE)
    return as_picture(picture, _FINE)


def as_picture(fine: Floats, times: int) -> Picture:
    """A picture from one with so many pixels for each along a side, colours 0..1."""
    height, width = fine.shape[0] // times, fine.shape[1] // times
    blocks = fine.reshape(height, times, width, times, 3)
    mean = sum(blocks[:, i, :, j] for i in range(times) for j in range(times)) / times**2
    return np.round(mean * 255).astype(np.uint8)


def box_around(shapes: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Lowest and highest corner, (3,) each, of a box that holds all shapes."""
    return np.min([shape.min(axis=0) for shape in shapes], axis=0), np.max(
        [shape.max(axis=0) for shape in shapes], axis=0
    )


def colormap(values: Floats, low: float, high: float, name: str = SIGNED) -> Floats:
    """RGB colours in 0..1 of scalar values, (n, 3), by a matplotlib colour map."""
    import matplotlib

    scaled = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.asarray(matplotlib.colormaps[name](scaled))[:, :3]


def _light(normals: Floats, axes: Floats) -> Floats:
    """Brightness under a key light from above left of the camera and a soft fill light."""
    key, fill = (np.array(way) / np.linalg.norm(way) @ axes for way in (_KEY, _FILL))
    light: Floats = 0.30 + 0.62 * np.maximum(normals @ key, 0.0) + 0.20 * np.maximum(normals @ fill, 0.0)
    return light


def _dot(
    picture: Floats,
    depths: Floats,
    column: float,
    row: float,
    depth: float,
    color: tuple[float, float, float],
    radius: float,
) -> None:
    height, width = depths.shape
    if not (0 <= round(row) < height and 0 <= round(column) < width):
        return
    if depth < depths[round(row), round(column)] - 8.0:  # behind the surface
        return
    margin = int(radius) + 3
    top, left = max(round(row) - margin, 0), max(round(column) - margin, 0)
    window = picture[top : round(row) + margin, left : round(column) + margin]
    r, c = np.mgrid[: window.shape[0], : window.shape[1]]
    away = np.hypot(r + top - row, c + left - column)
    window[away <= radius + 1.5] = 1.0
    window[away <= radius] = color


# --------------------------------------------------------------------------------------------------------------------
# How figures are printed: one style, one palette, one way to write them as vector graphics and PNG
# --------------------------------------------------------------------------------------------------------------------

WIDE, NARROW = 175.0 / 25.4, 85.0 / 25.4  # inches: two columns and one column of a journal
# Okabe and Ito's colours, which people with any colour vision tell apart; lines differ by their dashes too.
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
        Panels are placed by hand; otherwise matplotlib makes room for their labels.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout=None if free else "constrained")
        yield figure
        save_figure(figure, path)


def save_figure(figure: Figure, path: Path, kinds: Sequence[str] = _KINDS, dpi: int = _DPI) -> list[Path]:
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


def save_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the numbers behind a figure as ``<path>.csv``."""
    make_folder(path.parent)
    write_file(path.with_name(f"{path.name}.csv"), csv_text(columns, rows).encode())


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
_PER_INCH = 300  # pixels of a picture
_AROUND = 0.03  # of a panel's width around the shapes
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
        self.text(right + 0.05, top, f"{_BAR:.0f} mm", ha="left", va="center_baseline")

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
