"""A plain torso-like surface with landmarks for tests: quick to make, every landmark at a known place."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import Landmarks

LEAN = 21.0  # degrees the sternum leans back


def torso(edge: float = 5.0, size: float = 1.0) -> tuple[TriangleMesh, Landmarks]:
    """An open front half of a trunk with two breasts, upright, in mm.

    Parameters
    ----------
    edge : float
        Approximate edge length.
    size : float
        Scales the breasts' projection.
    """
    angles = np.radians(np.linspace(-105, 105, round(500 / edge)))
    heights = np.linspace(-210, 130, round(340 / edge))
    angle, height = np.meshgrid(angles, heights)
    vertices = _surface(angle.ravel(), height.ravel(), size)
    rows, columns = angle.shape
    a = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = np.concatenate(
        [np.column_stack([a, a + 1, a + columns + 1]), np.column_stack([a, a + columns + 1, a + columns])]
    )

    def at(x_angle: float, y: float) -> np.ndarray:
        return _surface(np.array([np.radians(x_angle)]), np.array([y]), size)[0]

    points = {"sternal_notch": at(0, 95), "xiphoid": at(0, -85)}
    for side, sign in (("left", 1), ("right", -1)):
        points |= {
            f"nipple_{side}": at(38 * sign, -70),
            f"lower_pole_{side}": at(38 * sign, -115),
            f"lateral_pole_{side}": at(85 * sign, -70),
        }
    return TriangleMesh(vertices, faces), Landmarks.of(points)


def _surface(angle: np.ndarray, height: np.ndarray, size: float) -> np.ndarray:
    lean = np.tan(np.radians(LEAN)) * np.maximum(height + 85, 0)
    x = 150 * np.sin(angle)
    z = 100 * np.cos(angle) - lean * np.cos(angle) ** 2
    for sign in (1, -1):
        across, up = (angle - np.radians(38) * sign) / np.radians(24), (height + 70) / 50
        bump = 55 * size * np.exp(-(across**2) - up**2)
        x, z = x + bump * np.sin(angle) * 0.7, z + bump * np.cos(angle)
    return np.column_stack([x, height, z])
