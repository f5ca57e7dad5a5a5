"""Which triangle is seen at every pixel: the one compiled loop behind the pictures of meshes."""

from __future__ import annotations

import math

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.registration.compiled import compiled


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
