"""Similarity transforms as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats

_LARGEST = 1e9  # of a coordinate or a scale in a file
_SKEW = 1e-3  # deviation from a rotation that a file may have


@dataclass(frozen=True, eq=False)
class Similarity:
    """x -> scale * rotation @ x + translation.

    Attributes
    ----------
    rotation : (3, 3) float
        Proper rotation, determinant +1.
    translation : (3,) float
    scale : float
    """

    rotation: Floats = field(default_factory=lambda: np.eye(3))
    translation: Floats = field(default_factory=lambda: np.zeros(3))
    scale: float = 1.0

    def apply(self, points: Floats) -> Floats:
        """Transform points, (..., 3)."""
        return self.scale * points @ self.rotation.T + self.translation

    def inverse(self) -> Self:
        """The transform that undoes this one."""
        return type(self)(self.rotation.T, -(self.translation @ self.rotation) / self.scale, 1.0 / self.scale)

    def after(self, first: Similarity) -> Self:
        """The transform that applies ``first`` and then this one."""
        return type(self)(
            self.rotation @ first.rotation,
            self.scale * self.rotation @ first.translation + self.translation,
            self.scale * first.scale,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "rotation": self.rotation.tolist(),
            "translation": self.translation.tolist(),
            "scale": float(self.scale),
        }

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """The transform that :meth:`as_dict` wrote.

        Raises
        ------
        ValueError, KeyError, TypeError
            A part is missing, or the parts are no similarity that a scan can have.
        """
        try:
            rotation, translation, scale = (
                np.array(parts[name], dtype=np.float64) for name in ("rotation", "translation", "scale")
            )
        except OverflowError as error:
            raise ValueError("a number of the frame is beyond the range") from error
        shapes = (rotation.shape, translation.shape, scale.shape)
        numbers = np.concatenate([rotation.ravel(), translation.ravel(), scale.ravel()])
        if (
            shapes != ((3, 3), (3,), ())
            or not (np.abs(numbers) <= _LARGEST).all()
            or scale < 1.0 / _LARGEST
            or np.abs(rotation @ rotation.T - np.eye(3)).max() > _SKEW
            or np.linalg.det(rotation) < 0.0  # a mirror image
        ):
            raise ValueError("the frame is no similarity transform")
        return cls(rotation, translation, float(scale))

    @classmethod
    def fit(
        cls, source: Floats, target: Floats, weights: Floats | None = None, *, with_scale: bool = True
    ) -> Self:
        """Best similarity (or rigid motion) of ``source`` onto ``target`` in the least-squares sense.

        Parameters
        ----------
        source, target : (n, 3) float
        weights : (n,) float, optional
        with_scale : bool
            False keeps the scale at 1.
        """
        w = np.ones(len(source)) if weights is None else np.asarray(weights, dtype=float)
        w = w / w.sum()
        source_centre, target_centre = w @ source, w @ target
        a, b = source - source_centre, target - target_centre
        u, singular, vt = np.linalg.svd((b * w[:, None]).T @ a)
        sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt)) or 1.0])
        rotation = (u * sign) @ vt
        spread = (w * (a**2).sum(axis=1)).sum()
        scale = float((singular * sign).sum() / spread) if with_scale and spread > 0 else 1.0
        return cls(rotation, target_centre - scale * rotation @ source_centre, scale)


def rotation_about(axis: Floats, degrees: float) -> Floats:
    """Rotation matrix about an axis (right-hand rule), (3, 3)."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = np.radians(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
