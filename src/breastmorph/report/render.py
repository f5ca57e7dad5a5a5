"""Shaded pictures of meshes by ray casting: no graphics libraries needed, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_normals, vertex_normals
from breastmorph.mesh.similarity import rotation_about
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh

Picture = NDArray[np.uint8]  # (height, width, 3)

SKIN = (0.86, 0.72, 0.63)
INSIDE = (0.45, 0.47, 0.52)  # the surface seen from behind, through a hole or past a border
_BACKGROUND = 1.0


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


@dataclass(frozen=True)
class Marker:
    """A dot drawn over the picture at a 3D position, hidden where the surface covers it."""

    position: Floats
    color: tuple[float, float, float] = (0.80, 0.15, 0.15)


def render(
    mesh: TriangleMesh,
    view: View | None = None,
    *,
    size: tuple[int, int] = (360, 400),
    colors: Floats | None = None,
    markers: Sequence[Marker] = (),
    box: tuple[Floats, Floats] | None = None,
    flat: bool = False,
    supersample: int = 2,
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
    flat : bool
        Shade by face, which shows the triangles.
    supersample : int
        Rays per pixel along each side.
    """
    axes = (view or View()).axes()
    low, high = box or (np.nanmin(mesh.vertices, axis=0), np.nanmax(mesh.vertices, axis=0))
    width, height = size[0] * supersample, size[1] * supersample
    corners = (
        np.array([[low, high][(k >> d) & 1][d] for k in range(8) for d in range(3)]).reshape(8, 3) @ axes.T
    )
    centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
    extent = corners.max(axis=0) - corners.min(axis=0)
    pixel = max(extent[0] / width, extent[1] / height) * 1.04
    depth = float(corners[:, 2].max() + extent[2] + 10.0)

    columns = (np.arange(width) - (width - 1) / 2) * pixel + centre[0]
    rows = ((height - 1) / 2 - np.arange(height)) * pixel + centre[1]
    x, y = np.meshgrid(columns, rows)
    origins = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, depth)]) @ axes
    surface = Surface(mesh)
    faces, distance, weights = surface.first_hit(origins, np.broadcast_to(-axes[2], origins.shape))
    hit = faces >= 0
    corner_ids = mesh.faces[faces[hit]]
    blend = weights[hit][:, :, None]
    if flat:
        normals = face_normals(mesh.vertices, mesh.faces)[faces[hit]]
    else:
        normals = (vertex_normals(mesh.vertices, mesh.faces)[corner_ids] * blend).sum(axis=1)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    facing = normals @ axes[2]
    base = np.full((hit.sum(), 3), SKIN)
    if colors is None and mesh.colors is not None:
        colors = mesh.colors[:, :3] / 255.0
    if colors is not None:
        base = (colors[corner_ids] * blend).sum(axis=1)
    base[facing < 0] = INSIDE
    normals[facing < 0] *= -1.0
    shaded = np.full((width * height, 3), _BACKGROUND)
    shaded[hit] = np.clip(base * _light(normals, axes)[:, None], 0.0, 1.0)
    reach = np.where(hit, distance, np.inf).reshape(height, width)
    picture: Floats = shaded.reshape(height, width, 3)
    for marker in markers:
        across, up, towards = marker.position @ axes.T
        column, row = (across - columns[0]) / pixel, (rows[0] - up) / pixel
        _dot(picture, reach, column, row, depth - towards, marker.color, 3.2 * supersample)
    picture = picture.reshape(size[1], supersample, size[0], supersample, 3).mean(axis=(1, 3))
    return np.round(picture * 255).astype(np.uint8)


def colormap(values: Floats, low: float, high: float, name: str = "coolwarm") -> Floats:
    """RGB colours in 0..1 of scalar values, (n, 3), by a matplotlib colour map."""
    import matplotlib

    scaled = np.clip((values - low) / (high - low), 0.0, 1.0)
    return np.asarray(matplotlib.colormaps[name](scaled))[:, :3]


def _light(normals: Floats, axes: Floats) -> Floats:
    """Brightness under a key light from above left of the camera and a soft fill light."""
    key = np.array([-0.45, 0.55, 0.70]) / np.linalg.norm([-0.45, 0.55, 0.70]) @ axes
    fill = np.array([0.70, -0.10, 0.70]) / np.linalg.norm([0.70, -0.10, 0.70]) @ axes
    return 0.30 + 0.62 * np.maximum(normals @ key, 0.0) + 0.20 * np.maximum(normals @ fill, 0.0)


def _dot(
    picture: Floats,
    reach: Floats,
    column: float,
    row: float,
    depth: float,
    color: tuple[float, float, float],
    radius: float,
) -> None:
    height, width = reach.shape
    if not (0 <= round(row) < height and 0 <= round(column) < width):
        return
    if depth > reach[round(row), round(column)] + 8.0:  # behind the surface
        return
    margin = int(radius) + 3
    top, left = max(round(row) - margin, 0), max(round(column) - margin, 0)
    window = picture[top : round(row) + margin, left : round(column) + margin]
    r, c = np.mgrid[: window.shape[0], : window.shape[1]]
    away = np.hypot(r + top - row, c + left - column)
    window[away <= radius + 1.5] = 1.0
    window[away <= radius] = color
