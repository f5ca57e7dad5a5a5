"""Points that stick to the skin: landmarks as places on triangles, so that they move with the vertices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.features import Reading
from breastmorph.errors import LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.scan.landmarks import Landmarks

Function = Callable[[NDArray[Any]], NDArray[Any]]  # of points (k, 3), real or complex, to a number
_FAR = 20.0  # mm between a landmark and the skin: not this mesh's landmark
_STEP = 1e-30  # of the complex step, which needs no difference of near-equal numbers


@dataclass(frozen=True, eq=False)
class SkinPoints:
    """Points on triangles.

    Attributes
    ----------
    corners : (k, 3) int
        Vertices of the triangle each point lies in.
    weights : (k, 3) float
        Barycentric.
    """

    corners: Ints
    weights: Floats

    def __len__(self) -> int:
        return len(self.corners)

    def at(self, vertices: Floats) -> Floats:
        """Positions in a shape (n, 3), (k, 3)."""
        return np.einsum("kc,kcd->kd", self.weights, vertices[self.corners])

    def chosen(self, ids: Iterable[int]) -> SkinPoints:
        """Some of the points, in the order asked for."""
        index = list(ids)
        return SkinPoints(self.corners[index], self.weights[index])

    def followed_by(self, other: SkinPoints) -> SkinPoints:
        """These points and then others."""
        return SkinPoints(
            np.concatenate([self.corners, other.corners]), np.concatenate([self.weights, other.weights])
        )

    def reading(self, value: float, by_point: Floats) -> Reading:
        """A value with its derivative by the vertices, from that by the points (k, 3)."""
        ids, place = np.unique(self.corners, return_inverse=True)
        gradient = np.zeros((len(ids), 3))
        np.add.at(gradient, place.ravel(), (self.weights[:, :, None] * by_point[:, None, :]).reshape(-1, 3))
        return Reading(value, ids, gradient)

    @classmethod
    def of_vertices(cls, ids: Iterable[int]) -> SkinPoints:
        """Points that are vertices."""
        index = np.array(list(ids), dtype=np.int64).reshape(-1, 1)
        return cls(np.repeat(index, 3, axis=1), np.tile([1.0, 0.0, 0.0], (len(index), 1)))

    @classmethod
    def on(cls, surface: Surface, points: Floats) -> SkinPoints:
        """The points of a surface that are closest to given ones (k, 3)."""
        found = surface.closest(points)
        return cls(surface.mesh.faces[found.faces], found.weights)


@dataclass(frozen=True, eq=False)
class SkinLandmarks:
    """Landmarks on the skin.

    Attributes
    ----------
    names : tuple of str
    points : SkinPoints
    """

    names: tuple[str, ...]
    points: SkinPoints

    @classmethod
    def on(cls, surface: Surface, landmarks: Landmarks) -> SkinLandmarks:
        """Landmarks moved onto a surface, which they must nearly touch."""
        if len(landmarks):
            far = surface.closest(landmarks.points).distances
            if far.max() > _FAR:
                raise LandmarkProblem(
                    f"landmark {landmarks.names[int(far.argmax())]} lies {far.max():.0f} mm off the surface",
                    "Give the landmarks of this mesh, in its unit and frame",
                )
        return cls(landmarks.names, SkinPoints.on(surface, landmarks.points))

    @classmethod
    def of_vertices(cls, ids: Mapping[str, int]) -> SkinLandmarks:
        """Landmarks that are vertices of a template or model."""
        return cls(tuple(ids), SkinPoints.of_vertices(ids.values()))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def chosen(self, names: Iterable[str]) -> SkinPoints:
        """The named landmarks."""
        return self.points.chosen(self.names.index(name) for name in names)


def derivative(function: Function, points: Floats) -> Floats:
    """Exact derivative of a smooth function by points (k, 3), by the complex step; (k, 3)."""
    out = np.empty(points.size)
    for i in range(points.size):
        shifted = points.astype(complex).ravel()
        shifted[i] += 1j * _STEP
        out[i] = function(shifted.reshape(points.shape)).imag / _STEP
    return out.reshape(points.shape)


def reached(surface: Surface, landmarks: Landmarks) -> Landmarks:
    """Without lateral poles beyond a surface: a registered mesh ends before that of a wide chest."""
    far = surface.closest(landmarks.points).distances > _FAR
    return landmarks.only(
        name
        for name, beyond in zip(landmarks.names, far, strict=True)
        if not (beyond and name.startswith("lateral_pole"))
    )
