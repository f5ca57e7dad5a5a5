"""Shaded pictures of meshes without any graphics library: the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.machine import compiled
from breastmorph.mesh.geometry import rotation_about, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh

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


def colormap(values: Floats, low: float, high: float, name: str = "coolwarm") -> Floats:
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
