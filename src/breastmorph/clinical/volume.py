"""Breast volume: what lies between the skin and the virtual chest wall, with its gradient and its uncertainty.

The virtual chest wall is what the skin would be if it lay on the chest there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse.linalg import splu
from scipy.spatial.distance import cdist

from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.mesh.geometry import face_areas
from breastmorph.mesh.topology import boundary_vertices, edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, SIGN, Landmarks
from breastmorph.template import default_template

_UNIT = 100.0  # mm: lengths of about 1 keep the spline's system well scaled
_ROUNDNESS = (0.6, 4.0)  # square of a chest's width over its depth, which is 1.2 to 1.6 in adults
_ROWS = 256  # of the spline's basis at once: they stay in the processor's cache
_FEWEST = 30  # bare points; fewer do not show a chest


@dataclass(frozen=True)
class WallParameters:
    """How the wall is spanned."""

    # The breast with its soft edge and the skin that its weight draws down below the fold: bare skin begins outside.
    covered: RegionParameters = field(default_factory=lambda: RegionParameters(level=0.035, below=25.0))
    # Where surface and wall are compared: somewhat wider, to where the two have met.
    compared: RegionParameters = field(default_factory=lambda: RegionParameters(level=0.02, below=25.0))
    spacing: float = 8.0  # mm between the bare points that are used
    # Of the thin plate: how far the wall may pass beside a bare point. A compromise: a closer wall is better on
    # phantoms whose skin is known exactly, a looser one on registered phantoms (docs/measures.md).
    smoothing: float = 3e-4
    # Beyond this share of the nipple's distance from the midline, above the nipple and more than this below the notch
    # are the folds of the armpit (breast, muscle, arm), which are no chest wall ...
    axilla: float = 0.8
    collar: float = 25.0  # mm
    # ... but behind the lateral pole the side of the chest begins again; its skin is drawn by the arm and counts less.
    smoothing_behind: float = 6e-3
    below_notch: float = 10.0  # mm below the sternal notch where the chest begins


@dataclass(frozen=True, eq=False)
class ChestWall:
    """A wall prepared for all shapes with one topology.

    Attributes
    ----------
    faces : (m, 3) int
        The faces over the wall, by vertices of the whole mesh.
    ids : (k,) int
        The vertices of these faces.
    rim : (b, 2) int
        Border edges of the faces, each as its face runs through it.
    bare : (p,) int
        Vertices of bare skin that support the wall.
    """

    faces: Ints
    ids: Ints
    rim: Ints
    bare: Ints
    _factor: tuple[Floats, Ints]  # of the spline's system, which both walls have
    _basis: Floats  # (k, p + 7): from the spline's coefficients to the wall's points

    def points(self, vertices: Floats) -> Floats:
        """The wall under vertices ``ids`` of a shape (n, 3), (k, 3)."""
        given = np.zeros((self._basis.shape[1], 3))
        given[: len(self.bare)] = vertices[self.bare]
        wall: Floats = self._basis @ self._solved(given)
        return wall

    def _solved(self, right: Floats, *, transposed: bool = False) -> Floats:
        factor, order = self._factor
        # LAPACK's wrapper counts the order up and down in place while others may be reading it: each call has its own.
        found: Floats = lu_solve((factor, order.copy()), right, trans=int(transposed), check_finite=False)
        return found

    def body(self, vertices: Floats, wall: Floats | None = None) -> tuple[Floats, Ints]:
        """What lies between skin and wall as a closed surface: points of the skin, then of the wall; and its faces.

        ``wall`` (k, 3) are the wall's points where they are known already.
        """
        behind = self.points(vertices) if wall is None else wall
        return np.vstack([vertices[self.ids], behind]), self._closed

    @cached_property
    def _closed(self) -> Ints:
        """Faces of the skin, of the wall the other way round, and of the gap along the rim."""
        skin, rim = np.searchsorted(self.ids, self.faces), np.searchsorted(self.ids, self.rim)
        start, end = rim.T
        below = len(self.ids)
        return np.concatenate(
            [
                skin,
                below + skin[:, ::-1],
                np.column_stack([end, start, below + start]),
                np.column_stack([end, below + start, below + end]),
            ]
        )

    def pulled_back(self, gradient: Floats) -> Floats:
        """From a derivative by the wall's points (k, 3) to that by the bare vertices, (p, 3)."""
        return self._solved(self._basis.T @ gradient, transposed=True)[: len(self.bare)]

    def over(self, region: Bools) -> ChestWall:
        """The same wall under a smaller region, (n,) bool."""
        faces = self.faces[region[self.faces].all(axis=1)]
        ids = np.unique(faces)
        rows = self._basis[np.searchsorted(self.ids, ids)]
        return ChestWall(faces, ids, edge_table(faces).boundary, self.bare, self._factor, rows)

    def shape(self, vertices: Floats, wall: Floats | None = None) -> Floats:
        """A whole shape (n, 3) with the wall in place of the breast; ``wall`` as in :meth:`body`."""
        out = np.array(vertices)
        out[self.ids] = self.points(vertices) if wall is None else wall
        return out


def chest_walls(footprint: Footprint, parameters: WallParameters | None = None) -> Mapping[str, ChestWall]:
    """Prepare the walls under both breasts.

    Parameters
    ----------
    footprint : Footprint
        Of a template or a model's mean.
    parameters : WallParameters, optional

    Raises
    ------
    MeshProblem
        When the mesh shows too little of the chest around the breasts.
    """
    p = parameters or WallParameters()
    mesh = footprint.mesh
    covered = footprint.regions(p.covered)
    under = covered["left"] | covered["right"]
    chest, behind = _on_chest(footprint, p)
    bare = ~under & (chest | behind)
    if bare.sum() < _FEWEST:
        raise MeshProblem(
            "the mesh shows too little bare chest around the breasts to span a chest wall",
            "Use a template that reaches the abdomen and the sides of the chest",
        )
    unrolled, radius = _unrolled(_membrane(mesh, under), bare)
    chosen = _spread(unrolled, bare, p.spacing)
    centres = unrolled[chosen]
    drift = _drift(centres, radius)
    n, k = len(chosen), drift.shape[1]
    system = np.zeros((n + k, n + k))
    beside = np.where(behind[chosen], p.smoothing_behind, p.smoothing)
    system[:n, :n] = _kernel(centres, centres) + np.diag(beside)
    system[:n, n:], system[n:, :n] = drift, drift.T
    factor = lu_factor(system)
    walls = {}
    for side, inside in footprint.regions(p.compared).items():
        faces = mesh.faces[inside[mesh.faces].all(axis=1)]
        ids = np.unique(faces)
        basis = np.empty((len(ids), n + k))
        for start in range(0, len(ids), _ROWS):
            here = unrolled[ids[start : start + _ROWS]]
            basis[start : start + _ROWS, :n] = _kernel(here, centres)
            basis[start : start + _ROWS, n:] = _drift(here, radius)
        walls[side] = ChestWall(faces, ids, edge_table(faces).boundary, chosen, factor, basis)
    return MappingProxyType(walls)


@dataclass(frozen=True, eq=False)
class FlatWall(ChestWall):
    """A flat wall through the border of a region: the affine image of the border's own plane nearest to its points.

    So it is linear in these, like every other wall; ``_basis`` is from that image's three parameters.
    """

    _fit: Floats  # (3, p): the parameters from the border

    @classmethod
    def of(cls, mesh: TriangleMesh, region: Bools) -> FlatWall:
        """Through the border of a region, (n,) bool."""
        faces = mesh.faces[region[mesh.faces].all(axis=1)]
        ids, rim = np.unique(faces), edge_table(faces).boundary
        border = np.unique(rim)
        middle = mesh.vertices[border].mean(axis=0)
        axes = np.linalg.svd(mesh.vertices[border] - middle, full_matrices=False)[2][:2]

        def places(at: Ints) -> Floats:
            across = (mesh.vertices[at] - middle) @ axes.T / _UNIT
            return np.column_stack([np.ones(len(across)), across])

        nothing = np.empty((0, 0)), np.empty(0, dtype=np.int64)  # there is no spline to solve for
        fit = np.asarray(np.linalg.pinv(places(border)), np.float64)
        return cls(faces, ids, rim, border, nothing, places(ids), fit)

    def points(self, vertices: Floats) -> Floats:
        """The wall under vertices ``ids`` of a shape (n, 3), (k, 3)."""
        wall: Floats = self._basis @ (self._fit @ vertices[self.bare])
        return wall

    def pulled_back(self, gradient: Floats) -> Floats:
        """From a derivative by the wall's points (k, 3) to that by the border's vertices, (p, 3)."""
        back: Floats = self._fit.T @ (self._basis.T @ gradient)
        return back


def _membrane(mesh: TriangleMesh, under: Bools) -> Floats:
    """The mesh with a membrane (harmonic map) in place of the breasts, which says where their skin belongs, (n, 3)."""
    import igl

    free = under & ~boundary_vertices(mesh.faces, mesh.n_vertices)
    laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()[free]
    out = np.array(mesh.vertices)
    out[free] = splu(laplacian[:, free].tocsc()).solve(-laplacian[:, ~free] @ out[~free])
    return out


def _on_chest(footprint: Footprint, p: WallParameters) -> tuple[Bools, Bools]:
    """Skin below the collar bone that is not part of an armpit, and skin of the chest behind an armpit, (n,) each."""
    x, y, z = footprint.mesh.vertices.T
    notch = footprint.landmarks["sternal_notch"]
    chest = y < notch[1] - p.below_notch
    behind = np.zeros(len(y), bool)
    for side in SIDES:
        nipple, pole = (footprint.of_side(part, side) for part in ("nipple", "lateral_pole"))
        beyond = SIGN[side] * (x - notch[0]) > p.axilla * SIGN[side] * (nipple[0] - notch[0])
        armpit = beyond & (y > nipple[1]) & (y < notch[1] - p.collar)
        chest &= ~armpit
        behind |= armpit & (z < pole[2])
    return chest, behind


def _unrolled(points: Floats, bare: Bools) -> tuple[Floats, float]:
    """Points (n, 3) on the chest unrolled about a vertical axis, (n, 2) in 100 mm, and the chest's radius likewise.

    The angle is that of the ellipse which the bare chest is nearest to, seen from above: with it the cosine and sine of
    :func:`_drift` make ellipses.
    """
    middle = float(np.median(points[:, 0]))
    x, _, z = (points[bare] - [middle, 0.0, 0.0]).T / _UNIT
    # x^2 = c0 + c1 z + c2 z^2, an ellipse across x = 0; c2 is minus the square of width over depth.
    c0, c1, c2 = np.linalg.lstsq(np.column_stack([np.ones_like(z), z, z**2]), x**2, rcond=None)[0]
    ratio = float(np.sqrt(np.clip(-c2, *_ROUNDNESS)))
    if (
        not _ROUNDNESS[0] < -c2 < _ROUNDNESS[1]
    ):  # too little chest to tell: the nearest ellipse of that roundness
        c0, c1 = np.linalg.lstsq(np.column_stack([np.ones_like(z), z]), x**2 + (ratio * z) ** 2, rcond=None)[
            0
        ]
    centre = c1 / (2.0 * ratio**2)
    width = float(np.sqrt(max(c0 + (ratio * centre) ** 2, 0.5)))
    angle = np.arctan2((points[:, 0] - middle) / _UNIT, ratio * (points[:, 2] / _UNIT - centre))
    radius = 0.5 * width * (1.0 + 1.0 / ratio)
    return np.column_stack([radius * angle, points[:, 1] / _UNIT]), radius


def _spread(places: Floats, bare: Bools, spacing: float) -> Ints:
    """One bare vertex in every square of the unrolled chest, (p,)."""
    ids = np.flatnonzero(bare)
    square = np.round(places[ids] * (_UNIT / spacing)).astype(np.int64)
    return ids[np.unique(square, axis=0, return_index=True)[1]]


def _kernel(a: Floats, b: Floats) -> Floats:
    squared: Floats = cdist(a, b, "sqeuclidean")
    log = np.maximum(squared, 1e-24)
    np.log(log, out=log)
    squared *= 0.5
    squared *= log
    return squared


def _drift(places: Floats, radius: float) -> Floats:
    """Functions that make every affine image of a cone, and those a thin plate needs, (k, 7)."""
    across, up = places.T
    angle = across / radius
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([np.ones_like(up), across, up, c, s, up * c, up * s])


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
        What that comes from: "wall", which is hidden, "border" of the footprint, or both.
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
        if definition == FLAT_WALL:  # it does not claim to be the chest
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
