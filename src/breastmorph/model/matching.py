"""Pairs between a model and raw data: points of the target with normals, sites of the model, who belongs to whom.

Pairs run from the data to the model: every measured point has a place on the body, while a vertex of the model may
well have no point (holes, partial views). A pair counts along the model's normal only, so the nearest *vertex* is
enough: on a surface of curvature k a site h away errs by k h^2 / 2, hundredths of a millimetre at 2 mm edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from breastmorph.mesh.geometry import face_areas, vertex_normals
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.model.shape_model import ShapeModel

_NEIGHBOURS = 12  # for normals of bare points and for telling noise from misfit
_STRAY = 2.5  # times the usual distance to other points: not on a surface
_RING = 6  # sites around a site
_FACING = 0.5  # cosine between the normals of a sound pair
_SAME_SHEET = 0.3  # cosine between normals of neighbouring sites: not across a fold


@dataclass(frozen=True, eq=False)
class TargetPoints:
    """Measured points that stand for the whole target.

    Attributes
    ----------
    points : (m, 3) float
    normals : (m, 3) float
        Unit; of unknown sign where ``oriented`` is False.
    oriented : bool
    neighbours : (m, k) int
        Nearest other points.
    spacing : float
        Typical distance to the nearest other point, mm.
    """

    points: Floats
    normals: Floats
    oriented: bool
    neighbours: Ints
    spacing: float

    def __len__(self) -> int:
        return len(self.points)

    def first(self, count: int) -> TargetPoints:
        """A random part of the points, with neighbours among themselves."""
        if count >= len(self):
            return self
        return _with_neighbours(self.points[:count], self.normals[:count], self.oriented)


def points_of(target: TriangleMesh | Floats, count: int, rng: np.random.Generator) -> TargetPoints:
    """At most ``count`` points of a surface or a point cloud in random order, evenly spread.

    A surface is sampled by area; a larger cloud is thinned to one point a cube, because the density of a cloud
    tells of the scanner and not of the body.
    """
    if isinstance(target, TriangleMesh):
        area = face_areas(target.vertices, target.faces)
        faces = target.faces[rng.choice(len(area), size=count, p=area / area.sum())]
        weights = rng.dirichlet(np.ones(3), size=count)[:, :, None]
        normals = vertex_normals(target.vertices, target.faces)
        normal = (normals[faces] * weights).sum(axis=1)
        return _with_neighbours((target.vertices[faces] * weights).sum(axis=1), normal, True)
    points = target[rng.permutation(len(target))]
    if len(points) > count:
        points = _thinned(points, count)
    return _with_neighbours(_without_strays(points), None, False)


def _without_strays(points: Floats) -> Floats:
    """Points that lie as close to others as points of a surface do; twice, because strays thin out strays."""
    for _ in range(2):
        around = (
            cKDTree(points).query(points, min(_NEIGHBOURS, len(points) - 1) // 2 + 1)[0][:, 1:].mean(axis=1)
        )
        points = points[around < _STRAY * np.median(around)]
    return points


def _thinned(points: Floats, count: int) -> Floats:
    """The first point of every cube of a grid as fine as ``count`` points allow."""
    low, high = np.quantile(points, (0.01, 0.99), axis=0)
    size = float(np.linalg.norm(high - low)) / np.sqrt(count)
    for _ in range(12):
        kept = _one_a_cube(points, size)
        if len(kept) <= count:
            break
        size *= 1.15
    return points[np.sort(kept)]  # in the random order they came in


def _one_a_cube(points: Floats, size: float) -> Ints:
    cubes = np.floor((points - points.min(axis=0)) / size).astype(np.int64)
    keys = (cubes[:, 0] * (1 << 42)) + (cubes[:, 1] * (1 << 21)) + cubes[:, 2]
    return np.unique(keys, return_index=True)[1]


def _with_neighbours(points: Floats, normals: Floats | None, oriented: bool) -> TargetPoints:
    k = min(_NEIGHBOURS, len(points) - 1)
    distances, found = cKDTree(points).query(points, k + 1)
    neighbours = found[:, 1:]
    if normals is None:
        around = points[found] - points[found].mean(axis=1, keepdims=True)
        # The direction in which neighbouring points spread least.
        normals = np.linalg.eigh(np.swapaxes(around, 1, 2) @ around)[1][:, :, 0]
    length = np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return TargetPoints(points, normals / length, oriented, neighbours, float(np.median(distances[:, 1])))


@dataclass(frozen=True, eq=False)
class Sites:
    """Vertices of a model that data may be paired with: all of them, or an even selection.

    Attributes
    ----------
    ids : (s,) int
    mean : (s, 3) float
    rows : (s, 3, q) float
        Rows of the model's basis.
    border : (s,) bool
        Sites that stand for the model's border: what lies beyond belongs to no site.
    spacing : float
        Typical distance between sites, mm.
    faces : (m, 3) int
        Of the whole model; used where all vertices are sites.
    ring : (s, 6) int
        Sites around each, in their order around the normal; empty where all vertices are sites.
    """

    ids: Ints
    mean: Floats
    rows: NDArray[np.floating]
    border: Bools
    spacing: float
    faces: Ints
    ring: Ints

    def shape(self, coefficients: Floats) -> Floats:
        """Positions of the sites for coefficients (q,) or fewer, (s, 3)."""
        q = len(coefficients)
        moved = self.rows.reshape(-1, self.rows.shape[2])[:, :q] @ coefficients.astype(self.rows.dtype)
        return self.mean + moved.reshape(-1, 3)

    def normals(self, points: Floats) -> Floats:
        """Outward unit normals of the sites at positions (s, 3)."""
        if not len(self.ring):
            return vertex_normals(points, self.faces)
        # The vector area of the polygon of neighbours, wherever the site itself lies.
        arms = points[self.ring] - points[:, None]
        area = np.cross(arms, np.roll(arms, -1, axis=1)).sum(axis=1)
        return np.asarray(area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-12))


def all_sites(model: ShapeModel) -> Sites:
    """Every vertex of the model."""
    n, q = model.n_vertices, model.n_components
    border = boundary_vertices(model.faces, n)
    area = float(face_areas(model.mean, model.faces).sum())
    spacing = float(np.sqrt(area / n))
    rows = model.basis.reshape(n, 3, q)
    return Sites(np.arange(n), model.mean, rows, border, spacing, model.faces, np.empty((0, _RING), np.int64))


def some_sites(sites: Sites, count: int) -> Sites:
    """About ``count`` sites, evenly spread over the mean shape."""
    if len(sites.ids) <= count:
        return sites
    spacing = sites.spacing * float(np.sqrt(len(sites.ids) / count))
    ids = _one_a_cube(sites.mean, 1.2 * spacing)
    mean = sites.mean[ids]
    tree = cKDTree(mean)
    border = np.zeros(len(ids), bool)
    border[tree.query(sites.mean[sites.border])[1]] = True
    ring = _rings(mean, sites.normals(sites.mean)[ids], tree)
    return Sites(sites.ids[ids], mean, sites.rows[ids], border, spacing, sites.faces, ring)


def _rings(points: Floats, normals: Floats, tree: cKDTree) -> Ints:
    found = tree.query(points, 2 * _RING + 1)[1][:, 1:]
    across = np.einsum("ski,si->sk", normals[found], normals) < _SAME_SHEET
    order = np.argsort(across, axis=1, kind="stable")[:, :_RING]  # near ones of the same sheet first
    ring = np.take_along_axis(found, order, axis=1)
    arms = points[ring] - points[:, None]
    first = arms[:, 0] - np.einsum("si,si->s", arms[:, 0], normals)[:, None] * normals
    second = np.cross(normals, first)
    angle = np.arctan2(np.einsum("ski,si->sk", arms, second), np.einsum("ski,si->sk", arms, first))
    return np.take_along_axis(ring, np.argsort(angle, axis=1), axis=1)


@dataclass(frozen=True, eq=False)
class Matches:
    """Each target point's site.

    Attributes
    ----------
    sites : (m,) int
    residuals : (m,) float
        Signed distance of the point from the site's tangent plane, positive outside the model; mm.
    apart : (m,) float
        Distance from point to site.
    beyond : (m,) bool
        Beyond the model's border.
    sound : (m,) bool
        Not beyond it, and facing the same way.
    """

    sites: Ints
    residuals: Floats
    apart: Floats
    beyond: Bools
    sound: Bools


def match(
    points: Floats, facing: Floats, oriented: bool, sites: Floats, normals: Floats, border: Bools
) -> Matches:
    """Pair points (m, 3) that face along ``facing`` (m, 3) with sites (s, 3); all in the model's frame."""
    apart, found = cKDTree(sites, balanced_tree=False, compact_nodes=False).query(points)
    normal = normals[found]
    residuals = ((points - sites[found]) * normal).sum(axis=1)
    cosine = (facing * normal).sum(axis=1)
    agree = (cosine if oriented else np.abs(cosine)) > _FACING
    return Matches(found, residuals, apart, border[found], agree & ~border[found])
