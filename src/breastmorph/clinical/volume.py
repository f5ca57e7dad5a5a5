"""Breast volume: what lies between the skin and the virtual chest wall, with its gradient and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from breastmorph.clinical.chest_wall import ChestWall, FlatWall, WallParameters, chest_walls
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.mesh.geometry import face_areas
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks
from breastmorph.template import default_template

_CC = 1.0 / 6000.0  # from six times a tetrahedron's volume in cubic mm to cc
_SHIFT = 8.0  # mm that a footprint's border is moved in and out to see how much of a volume depends on it
_SHIFT_OF_LEVEL = 1.4  # factor of the mask's level that moves its contour about as far
# How much deeper or higher than found the wall behind a breast lies on average, mm (sd): this much behind any, and so
# much more behind 200 cm^2 of footprint. Cone and plate follow the chest's curvature, so what they miss over a gap
# grows with the fourth power of its width, the square of the footprint (docs/measures.md).
_WALL, _GAP, _FOOTPRINT = 1.0, 2.85, 200.0
# What clinics and their programs call a breast's volume, each a name for sides: what it lies between.
VOLUME, INNER_BORDER, FLAT_WALL = "volume", "volume-inner-border", "volume-flat-wall"
DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        VOLUME: "Between the skin and the chest wall continued behind the breast",
        INNER_BORDER: "The same above the footprint alone, without the breast's soft edge",
        FLAT_WALL: "Between the skin and a flat wall through the border of the footprint",
    }
)


@dataclass(frozen=True)
class Volume:
    """A breast's volume.

    Attributes
    ----------
    cc : float
    uncertainty : float
        Standard deviation, cc.
    source : str
        What that comes from: "wall", which nobody sees, "border" of the footprint, or both.
    """

    cc: float
    uncertainty: float
    source: str = "wall"


def reference_of(model: ShapeModel) -> TriangleMesh:
    """What says where the breasts are on a model's shapes: the built-in template where its triangles are the model's.

    So a registered scan, measured by its template, and the same shape in a model have the same borders.
    """
    default = default_template()
    same = np.array_equal(default.mesh.faces, model.faces) and all(
        default.landmark_ids.get(name, vertex) == vertex for name, vertex in model.landmark_ids.items()
    )
    return default.mesh if same else model.mean_mesh


class BreastVolumes:
    """Volumes of shapes in correspondence: prepared once per template or model, asked for every shape.

    Parameters
    ----------
    mesh : TriangleMesh
        The template or the model's mean: upright, in mm. It says which vertices are breast and which bare chest.
    landmarks : Landmarks
        As for :func:`breastmorph.mask.breast_regions`.
    parameters : WallParameters, optional
    """

    def __init__(
        self, mesh: TriangleMesh, landmarks: Landmarks, parameters: WallParameters | None = None
    ) -> None:
        self._footprint = Footprint.of(mesh, landmarks)
        self._parameters = parameters or WallParameters()
        self.walls: Mapping[str, ChestWall] = chest_walls(self._footprint, self._parameters)

    @classmethod
    def of_model(cls, model: ShapeModel) -> BreastVolumes:
        """Of a model's shapes.

        Raises
        ------
        BreastMorphError
            The landmarks do not say where the breasts are, or the mesh shows too little chest.
        """
        mesh = reference_of(model)
        return cls(mesh, Landmarks.at_vertices(model.landmark_ids, mesh.vertices))

    def cc(self, shape: Floats, side: str) -> float:
        """Volume of a shape's breast, (n, 3) in mm and in any pose; in cc."""
        return _volume(*self.walls[side].body(shape))

    @cached_property
    def _by_footprint(self) -> Mapping[str, tuple[Mapping[str, ChestWall], ...]]:
        """Walls of the definitions that end at the footprint: as it is, with its border further in, and further out."""
        mesh = self._footprint.mesh
        regions = [
            self._footprint.regions(_with_border(RegionParameters(), sign)) for sign in (0.0, -1.0, 1.0)
        ]
        inner = tuple({side: self.walls[side].over(one[side]) for side in SIDES} for one in regions)
        flat = tuple({side: FlatWall.of(mesh, one[side]) for side in SIDES} for one in regions)
        return {INNER_BORDER: inner, FLAT_WALL: flat}

    def areas(self, shape: Floats, side: str, behind: Floats | None = None) -> tuple[float, float, float]:
        """Area of the breast's skin and of the chest wall behind it, and how much both may err by the border, cm^2.

        ``behind`` are the points of ``walls[side]`` under the shape, where they are known already: they take the time.
        """
        wall, (faces, rim) = self.walls[side], self._footprints[side]
        skin, base = (float(face_areas(one, faces).sum()) for one in (shape, wall.shape(shape, behind)))
        length = float(np.linalg.norm(shape[rim[:, 0]] - shape[rim[:, 1]], axis=1).sum())
        return 0.01 * skin, 0.01 * base, 0.01 * _SHIFT * length

    @cached_property
    def _footprints(self) -> Mapping[str, tuple[Ints, Ints]]:
        """Of each side: the faces of the breast, and the edges of their border."""
        faces, regions = self._footprint.mesh.faces, self._footprint.regions()
        own = {side: faces[inside[faces].all(axis=1)] for side, inside in regions.items()}
        return {side: (one, edge_table(one).boundary) for side, one in own.items()}

    def read(self, shape: Floats, side: str, definition: str = VOLUME) -> Reading:
        """The volume in cc with its exact derivative by the vertices it depends on, cc per mm."""
        wall = self.walls[side] if definition == VOLUME else self._by_footprint[definition][0][side]
        points, faces = wall.body(shape)
        by_point = _volume_gradient(points, faces)
        skin = len(wall.ids)
        touched = np.union1d(wall.ids, wall.bare)
        gradient = np.zeros((len(touched), 3))
        gradient[np.searchsorted(touched, wall.ids)] = by_point[:skin]
        gradient[np.searchsorted(touched, wall.bare)] += wall.pulled_back(by_point[skin:])
        return Reading(_volume(points, faces), touched, gradient)

    def estimate(
        self, shape: Floats, side: str, definition: str = VOLUME, behind: Floats | None = None
    ) -> Volume:
        """Volume by one of :data:`DEFINITIONS`, with its uncertainty; ``behind`` as in :meth:`areas`."""
        whole = self.walls[side]
        if behind is None and definition != FLAT_WALL:
            behind = whole.points(shape)
        if definition == VOLUME:  # its border is where skin and wall have met, and adds nothing
            return Volume(_volume(*whole.body(shape, behind)), self._by_wall(shape, side, behind))
        walls = [one[side] for one in self._by_footprint[definition]]
        known: list[Floats | None] = [None] * len(walls)
        if definition == INNER_BORDER and behind is not None:  # parts of the one wall
            known = [behind[np.searchsorted(whole.ids, wall.ids)] for wall in walls]
        cc, *moved = (_volume(*wall.body(shape, at)) for wall, at in zip(walls, known, strict=True))
        by_border = 0.5 * (max(cc, *moved) - min(cc, *moved))
        if definition == FLAT_WALL:  # nobody claims that the chest is there
            return Volume(cc, by_border, "border")
        return Volume(cc, float(np.hypot(by_border, self._by_wall(shape, side, behind))), "border, wall")

    def _by_wall(self, shape: Floats, side: str, behind: Floats | None) -> float:
        """What the unseen wall makes of a volume's standard deviation, cc."""
        base = self.areas(shape, side, behind)[1]
        return 0.1 * base * float(np.hypot(_WALL, _GAP * (base / _FOOTPRINT) ** 2))


def _with_border(region: RegionParameters, outwards: float) -> RegionParameters:
    by = outwards * _SHIFT
    return replace(
        region,
        level=region.level * _SHIFT_OF_LEVEL**-outwards,
        midline=max(region.midline - by, 0.0),
        below=region.below + by,
    )


def _volume(points: Floats, faces: Ints) -> float:
    """Volume of a closed surface in mm by the divergence theorem, cc."""
    # From a point nearby, so that nothing is lost to rounding.
    near = np.ascontiguousarray((points - points[0]).T)
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (near[:, faces[:, corner]] for corner in range(3))
    tripled = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    return _CC * float(tripled.sum())


def _volume_gradient(points: Floats, faces: Ints) -> Floats:
    """Derivative of :func:`_volume` by every point, (n, 3)."""
    corners = points[faces] - points[faces[0, 0]]
    gradient = np.zeros_like(points)
    for k in range(3):
        by = _CC * np.cross(corners[:, (k + 1) % 3], corners[:, (k + 2) % 3])
        for axis in range(3):
            gradient[:, axis] += np.bincount(faces[:, k], weights=by[:, axis], minlength=len(points))
    return gradient
