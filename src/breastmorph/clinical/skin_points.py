"""Points that stick to the skin: places on triangles, which move with the vertices, and values that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.scan.scan import Landmarks


@dataclass(frozen=True, eq=False)
class Reading:
    """A feature's value and how it changes with the shape.

    Attributes
    ----------
    value : float
        In the feature's unit.
    vertices : (k,) int
        The vertices it depends on.
    gradient : (k, 3) float
        Change of the value per mm that these vertices move.
    """

    value: float
    vertices: Ints
    gradient: Floats


Function = Callable[[NDArray[Any]], NDArray[Any]]  # of points (k, 3), real or complex, to a number
_OFF_SKIN = 20.0  # mm between a landmark and the skin: not this mesh's landmark
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
        """Landmarks moved onto a surface, which they must nearly touch.

        Those that the program found (a fold that no view shows is an estimate) are left out where they do not.
        """
        if len(landmarks):
            far = surface.closest(landmarks.points).distances
            off = {name: d for name, d in zip(landmarks.names, far, strict=True) if d > _OFF_SKIN}
            set_ones = {name: d for name, d in off.items() if name not in landmarks.found}
            if set_ones:
                name = max(set_ones, key=lambda one: float(set_ones[one]))
                raise LandmarkProblem(
                    "landmark {name:landmark} lies {distance:.0f} mm off the surface",
                    "Give the landmarks of this mesh, in its unit and frame",
                    code="unusable-landmarks/off-mesh",
                    name=name,
                    distance=float(set_ones[name]),
                )
            landmarks = landmarks.only(name for name in landmarks.names if name not in off)
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
    far = surface.closest(landmarks.points).distances > _OFF_SKIN
    return landmarks.only(
        name
        for name, beyond in zip(landmarks.names, far, strict=True)
        if not (beyond and name.startswith("lateral_pole"))
    )
