"""Shaded pictures of meshes, drawn without a graphics library: the same on every machine."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.foundation.kernels import compiled
from breastmorph.mesh.geometry import rotation_about, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh

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
_DOT_DEPTH = 8.0  # mm that a marker may lie under the surface and still be drawn
_ENDS_OF_BAR = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
BAR_LENGTH = 50.0  # mm: the scale bar


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
class VisibleSurface:
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
        height, width = self.depth.shape
        margin = int(radius) + 3
        for marker in markers:
            column, row, depth = self.camera.project(marker.position[None])[0] - [0.5, 0.5, 0.0]
            i, j = round(row), round(column)
            if not (0 <= i < height and 0 <= j < width) or depth < self.depth[i, j] - _DOT_DEPTH:
                continue
            top, left = max(i - margin, 0), max(j - margin, 0)
            window = picture[top : i + margin, left : j + margin]
            r, c = np.mgrid[: window.shape[0], : window.shape[1]]
            away = np.hypot(r + top - row, c + left - column)
            window[away <= radius + 1.5] = 1.0
            window[away <= radius] = marker.color


def visible_surface(mesh: TriangleMesh, camera: Camera) -> VisibleSurface:
    """Find what a camera sees of a mesh."""

    points = np.ascontiguousarray(camera.project(mesh.vertices))
    face, second, third, depth = nearest_triangles(points, mesh.faces, *camera.size)
    hit = face >= 0
    u, v = second[hit], third[hit]
    return VisibleSurface(mesh, camera, hit, face[hit], np.column_stack([1.0 - u - v, u, v]), depth)


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
        camera = Camera.around(corners_of(low, high), view or View(), size)
    seen = visible_surface(mesh, camera.finer(_FINE))
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


def corners_of(low: Floats, high: Floats) -> Floats:
    """The corners (8, 3) of a box."""
    return np.array([[(low, high)[(k >> d) & 1][d] for d in range(3)] for k in range(8)])


def box_around(shapes: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Lowest and highest corner, (3,) each, of a box that holds all shapes."""
    points = np.concatenate(shapes)
    return points.min(axis=0), points.max(axis=0)


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


def round_end(values: Floats, share: float = 0.99) -> float:
    """A round number that a share of the values lies below: the end of a colour range, above 0."""
    finite = np.abs(values[np.isfinite(values)])
    most = float(np.quantile(finite, share)) if len(finite) else 0.0
    if most <= 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(most))
    return float(next(step * power for step in _ENDS_OF_BAR if step * power >= most * (1 - 1e-9)))


@dataclass(frozen=True)
class ColourScale:
    """What the colours of a picture mean.

    Attributes
    ----------
    low, high : float
        Values of the first and the last colour.
    colours : str
        ``AMOUNT`` or ``SIGNED``.
    label : str
        Of the colour bar, with the unit.
    """

    low: float
    high: float
    colours: str
    label: str = "mm"

    @classmethod
    def signed(cls, end: float, label: str) -> Self:
        """From minus to plus a value."""
        return cls(-end, end, SIGNED, label)

    def of(self, values: Floats, where: Bools | None = None, otherwise: Floats | None = None) -> Floats:
        """Colours (n, 3) of values (n,): skin, or colours given, where a value is unknown or not asked for."""
        shown = np.isfinite(values) if where is None else where & np.isfinite(values)
        colors = colormap(np.where(shown, values, self.low), self.low, self.high, self.colours)
        return np.where(shown[:, None], colors, SKIN if otherwise is None else otherwise)


def cameras_around(points: Floats, views: Sequence[View], size: tuple[int, int]) -> list[Camera]:
    """One camera a view, all at one scale, in which every view of the points (k, 3) has its place."""
    cameras = [Camera.around(points, view, size) for view in views]
    pixel = max(camera.pixel for camera in cameras)
    return [replace(camera, pixel=pixel) for camera in cameras]


def views_of(
    mesh: TriangleMesh,
    cameras: Sequence[Camera],
    colors: Floats | None = None,
    *,
    markers: Sequence[Marker] = (),
    relief: float = 1.0,
) -> tuple[Picture, ...]:
    """Pictures of one mesh by several cameras, each with the patient's sides and a scale bar; see :func:`render`."""
    return tuple(
        with_sides_and_scale(
            render(mesh, camera=camera, colors=colors, markers=markers, relief=relief), camera
        )
        for camera in cameras
    )


def sides_seen(axes: Floats) -> tuple[str, str] | None:
    """Letters of the patient's sides on the left and right of a picture along axes (3, 3); None from the side."""
    towards_left = float(axes[0, 0])  # how much of the patient's left is the picture's right
    if abs(towards_left) < 0.3:
        return None
    return ("R", "L") if towards_left > 0 else ("L", "R")


def with_sides_and_scale(picture: Picture, camera: Camera) -> Picture:
    """A picture with L and R of the patient in its upper corners, but from the side, and a bar of 5 cm below."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    draw, (width, height) = ImageDraw.Draw(image), camera.size
    for letter, x in zip(sides_seen(camera.axes) or (), (14, width - 14), strict=False):
        draw.text((x, 16), letter, fill="black", anchor="mm", font=ImageFont.load_default(size=18))
    end = width - 20
    start = end - BAR_LENGTH / camera.pixel
    draw.line([(start, height - 14), (end, height - 14)], fill="black", width=3)
    font = ImageFont.load_default(size=14)
    draw.text(
        ((start + end) / 2, height - 27), f"{BAR_LENGTH / 10:g} cm", fill="black", anchor="mm", font=font
    )
    return np.asarray(image)


def save_picture_grid(pictures: Sequence[Picture], captions: Sequence[str], path: Path, columns: int) -> None:
    """Write pictures of equal size in a grid, a caption under each, as a PNG."""
    make_folder(path.parent)
    write_file(path, picture_grid(pictures, captions, columns))


def picture_grid(
    pictures: Sequence[Picture], captions: Sequence[str], columns: int, letters: int = 14
) -> bytes:
    """A PNG of pictures of equal size in a grid, a caption under each; ``letters`` are so many pixels high."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=letters)
    height, width = pictures[0].shape[:2]
    strip = letters + 8
    grid = Image.new("RGB", (columns * width, -(-len(pictures) // columns) * (height + strip)), "white")
    draw = ImageDraw.Draw(grid)
    for k, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        left, top = k % columns * width, k // columns * (height + strip)
        grid.paste(Image.fromarray(picture), (left, top))
        draw.text((left + width / 2, top + height + strip / 2), caption, fill="black", anchor="mm", font=font)
    data = io.BytesIO()
    grid.save(data, "PNG")
    return data.getvalue()
