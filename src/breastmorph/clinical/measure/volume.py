"""Breast volume: what lies between the skin and the virtual chest wall, with its gradient and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from breastmorph.clinical.features import Reading
from breastmorph.clinical.measure.chest_wall import ChestWall, WallParameters, chest_walls
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.model.regions import Footprint, RegionParameters
from breastmorph.scan.landmarks import Landmarks

_CC = 1.0 / 6000.0  # from six times a tetrahedron's volume in cubic mm to cc
_SHIFT = 8.0  # mm that the region's border is moved in and out to see how much of the volume depends on it
_SHIFT_OF_LEVEL = 1.4  # factor of the mask's level that moves its contour about as far


@dataclass(frozen=True)
class Volume:
    """A breast's volume.

    Attributes
    ----------
    cc : float
    uncertainty : float
        Half of what the volume changes when the border of the breast region moves in and out, cc.
    """

    cc: float
    uncertainty: float


class BreastVolumes:
    """Volumes of shapes in correspondence: prepared once per template or model, asked for every shape.

    Parameters
    ----------
    mesh : TriangleMesh
        The template or the model's mean: upright, in mm. It says which vertices are breast and which bare chest.
    landmarks : Landmarks
        As for :func:`breastmorph.model.regions.breast_regions`.
    parameters : WallParameters, optional
    """

    def __init__(
        self, mesh: TriangleMesh, landmarks: Landmarks, parameters: WallParameters | None = None
    ) -> None:
        self._footprint = Footprint.of(mesh, landmarks)
        self._parameters = parameters or WallParameters()
        self.walls: Mapping[str, ChestWall] = chest_walls(self._footprint, self._parameters)

    def cc(self, shape: Floats, side: str) -> float:
        """Volume of a shape's breast, (n, 3) in mm and in any pose; in cc."""
        return _volume(*_closed(shape, self.walls[side]))

    def read(self, shape: Floats, side: str) -> Reading:
        """The volume in cc with its exact derivative by the vertices it depends on, cc per mm."""
        wall = self.walls[side]
        points, faces = _closed(shape, wall)
        by_point = _volume_gradient(points, faces)
        gradient = by_point[: len(shape)]
        gradient[wall.bare] += wall.pulled_back(by_point[len(shape) :])
        touched = np.union1d(wall.ids, wall.bare)
        return Reading(_volume(points, faces), touched, gradient[touched])

    def estimate(self, shape: Floats, side: str) -> Volume:
        """Volume with its uncertainty."""
        cc = self.cc(shape, side)
        moved = [_volume(*_closed(shape, walls[side])) for walls in self._moved]
        return Volume(cc, 0.5 * (max(cc, *moved) - min(cc, *moved)))

    @cached_property
    def _moved(self) -> tuple[Mapping[str, ChestWall], ...]:
        """Walls of regions whose border lies further in and further out."""
        p = self._parameters
        shifted = [
            replace(p, covered=_with_border(p.covered, sign), compared=_with_border(p.compared, sign))
            for sign in (-1.0, 1.0)
        ]
        return tuple(chest_walls(self._footprint, one) for one in shifted)


def _with_border(region: RegionParameters, outwards: float) -> RegionParameters:
    by = outwards * _SHIFT
    return replace(
        region,
        level=region.level * _SHIFT_OF_LEVEL**-outwards,
        midline=max(region.midline - by, 0.0),
        below=region.below + by,
    )


def _closed(shape: Floats, wall: ChestWall) -> tuple[Floats, Ints]:
    """The body between skin and wall as a closed surface: the shape's points, then the wall's; and its faces."""
    n = len(shape)
    below = np.full(n, -1)
    below[wall.ids] = n + np.arange(len(wall.ids))
    start, end = wall.rim.T
    faces = [
        wall.faces,
        below[wall.faces][:, ::-1],
        np.column_stack([end, start, below[start]]),  # the gap along the rim
        np.column_stack([end, below[start], below[end]]),
    ]
    return np.vstack([shape, wall.points(shape)]), np.concatenate(faces)


def _volume(points: Floats, faces: Ints) -> float:
    """Volume of a closed surface in mm by the divergence theorem, cc."""
    # From a point nearby, so that nothing is lost to rounding.
    a, b, c = (points[faces] - points[faces[0, 0]]).transpose(1, 0, 2)
    return _CC * float(np.einsum("ij,ij->", a, np.cross(b, c)))


def _volume_gradient(points: Floats, faces: Ints) -> Floats:
    """Derivative of :func:`_volume` by every point, (n, 3)."""
    corners = points[faces] - points[faces[0, 0]]
    gradient = np.zeros_like(points)
    for k in range(3):
        by = _CC * np.cross(corners[:, (k + 1) % 3], corners[:, (k + 2) % 3])
        for axis in range(3):
            gradient[:, axis] += np.bincount(faces[:, k], weights=by[:, axis], minlength=len(points))
    return gradient
