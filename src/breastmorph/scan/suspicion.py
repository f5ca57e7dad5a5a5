"""Wrong but plausible: what the shape of a scan says against it, although nothing forbids using it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import distances_from, lengths, vertex_normals
from breastmorph.mesh.topology import edge_table, faces_with_all
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, Landmarks

_FRONT = 140.0  # mm around the nipples that are looked at
_GAPS = (1.5, 12.0)  # mm between the layers of a surface that is there twice
_RAYS = 1000
_FITS = 600  # neighbourhoods of the roughness
_PATCH = 14.0  # mm, their radius; at least 2.6 edges
_SPACING = 2.8  # mm between the points of which relief and roughness are judged, where a scan is finer
_LONG_EDGE = 4.5  # mm: triangles with longer edges get points on their sides and in their middle
_CORE = 4.0  # mm: a nipple ...
_INNER, _OUTER = (7.0, 13.0), (16.0, 24.0)  # ... the areola around it, the skin around both
_AT = 5.0  # mm from a nipple's landmark that still is at it
_AWAY = 12.0  # mm from it that is not
_REACH = 65.0  # mm around a landmark where the nipple is looked for
_CAP = 40.0  # mm around a nipple whose bulge is measured
_WIDE = 2.0  # times these radii: the breast around a nipple
_ROUND = 0.4  # least over greatest relief of directions: a nipple is round, a fold is not


@dataclass(frozen=True)
class SuspicionParameters:
    """From where on a sign is worth a warning; docs/reliability.md has the figures behind them."""

    layered: float = 0.03  # share of the front with a second surface below it
    facing: float = 0.12  # share with one above it; folds of the skin have some
    off: float = 2.0  # mm of landmarks from the skin; pickers set them on it
    rough: float = 0.85  # mm off smooth patches
    ragged: float = 1.2  # mm off the neighbours' mean: noise, not layers
    nipple: float = 1.2  # evidence that a landmark is at a nipple; see Signs.evidence
    stretched: float = 1.2  # edges at the nipples over edges of the front


@dataclass(frozen=True)
class Signs:
    """What is measured.

    Attributes
    ----------
    layered : float
        Share of the front with another surface closely below it, where a body has tissue.
    facing : float
        Share with another surface closely above it, as in a fold, or between layers that look at each other.
    off : float
        Distance from the skin that a quarter of the landmarks exceed, mm.
    rough : float
        Median deviation from smooth patches, mm.
    ragged : float
        Median distance of a vertex from the mean of its neighbours along the normal, mm.
    stretched : float
        Edges around the nipples over edges of the front.
    relief : tuple of float
        Height of what is at each nipple's landmark above the skin around it, mm; NaN where too little is seen.
    elsewhere : tuple of float
        The same for the nipple-like place with the most relief away from it.
    apex : tuple of float
        Relief at the landmark on twice the scale: the tip of the breast, mm.
    bulge : tuple of float
        How far the skin around sinks away on average, over the radius of what is looked at.
    """

    layered: float
    facing: float
    off: float
    rough: float
    ragged: float
    stretched: float
    relief: tuple[float, ...]
    elsewhere: tuple[float, ...]
    apex: tuple[float, ...]
    bulge: tuple[float, ...]

    @property
    def evidence(self) -> tuple[float, ...]:
        """How much speaks for each nipple's landmark: from -3 (another place) to 4.5 (a nipple on a breast's tip).

        Relief of the nipple, relief of the tip and bulge count alike, each up to a bound, so that a flat nipple on a
        round breast and a nipple on a flat breast both pass; a nipple seen elsewhere counts against a place without.
        """
        return tuple(
            _bounded(at, -0.5, 1.5, 0.3)
            + _bounded(apex, -0.5, 1.5, 1.0)
            + _bounded((bulge - 0.12) / 0.06, -1.5, 1.5, 0.0)
            - (_bounded(other - 1.0, 0.0, 1.5, 0.0) if not at >= 0.5 else 0.0)
            for at, other, apex, bulge in zip(self.relief, self.elsewhere, self.apex, self.bulge, strict=True)
        )


def signs(mesh: TriangleMesh, landmarks: Landmarks) -> Signs:
    """Measure a scan in the canonical frame."""
    nipples = landmarks.only(f"nipple_{side}" for side in SIDES).points
    front, edges, of_half_edge = _front(mesh, nipples)
    normals = vertex_normals(front.vertices, front.faces)
    size = lengths(front.vertices, edges)
    surface = Surface(front)
    stretched = 1.0
    if len(nipples):
        away = distances_from(nipples, front.vertices)[edges[:, 0]]
        close = np.flatnonzero(away < _OUTER[0] + size)  # of no other edge is the middle near enough
        near = close[distances_from(nipples, front.vertices[edges[close]].mean(axis=1)) < _OUTER[0]]
        stretched = float(np.median(size[near]) / np.median(size)) if len(near) else 1.0
    longest = size[of_half_edge].reshape(3, -1).max(axis=0)
    points, directions = _resampled(front, normals, longest)
    found = [_nipple(points, directions, nipple) for nipple in nipples]
    off = 0.0
    if len(nipples):
        within = cKDTree(nipples).query(landmarks.points)[0] < _FRONT - 20.0
        off = float(np.percentile(surface.distances(landmarks.points[within]), 75.0))
    return Signs(
        *_beside(surface, normals),
        off,
        _rough(points),
        _ragged(front, normals, edges),
        stretched,
        *(tuple(one[k] for one in found) for k in range(4)),
    )


def suspicions(
    mesh: TriangleMesh, landmarks: Landmarks, parameters: SuspicionParameters | None = None
) -> list[Finding]:
    """Warnings of a scan in the canonical frame."""
    p = parameters or SuspicionParameters()
    s = signs(mesh, landmarks)
    layered = s.layered > p.layered or s.facing > p.facing
    if s.ragged > p.ragged or (s.rough > p.rough and not layered):
        return [
            warning(
                "rough-surface",
                "the surface is rough: {rough:.1f} mm off smooth skin (scanners: below {usual:g})",
                "Look for a failed capture or unit, or export the scan again",
                rough=s.rough,
                usual=p.rough,
            )
        ]
    if s.stretched > p.stretched:
        return [
            warning(
                "covered-breasts",
                "the surface at the nipples is drawn out ({stretched:.1f} times the triangles around): "
                "pushed outwards, or a garment",
                "Check that the skin was bare; volumes of a covered breast are too large",
                stretched=s.stretched,
            )
        ]
    if layered:
        return [
            warning(
                "layered-surface",
                "a second surface lies within {within:.0f} mm of {share:.0%} of the front: the same skin "
                "twice",
                "Align the views of the scan again, or keep one layer",
                within=_GAPS[1],
                share=max(s.layered, s.facing),
            )
        ]
    if s.off > p.off:
        return [
            warning(
                "landmarks-off-skin",
                "a quarter of the landmarks lie more than {off:.1f} mm off the skin: mesh and landmarks "
                "are not of one size",
                "Check that both were exported together; a mesh scaled by a few per cent looks like this",
                off=s.off,
            )
        ]
    if any(evidence < p.nipple for evidence in s.evidence):
        return [
            warning(
                "landmarks-of-another",
                "the skin at the nipples' landmarks does not have the shape of a nipple",
                "Check that the landmarks are this scan's, and that the breasts are bare",
            )
        ]
    return []


def _front(mesh: TriangleMesh, nipples: Floats) -> tuple[TriangleMesh, Ints, Ints]:
    """The part that is looked at, its edges (e, 2) and which of them every half-edge is (3m,)."""
    table = edge_table(mesh.faces)
    near = distances_from(nipples, mesh.vertices) < _FRONT
    chosen = faces_with_all(near, mesh.faces)
    if not len(nipples) or not chosen.any():
        return mesh, table.edges, table.of_half_edge
    # What is left out of a surface changes no order: its edges need not be found again.
    ids = np.flatnonzero(chosen)
    sides = np.concatenate([of_side[ids] for of_side in table.of_half_edge.reshape(3, -1)])
    is_used = np.zeros(len(table.edges), bool)
    is_used[sides] = True
    edges = table.edges[is_used]
    is_corner = np.zeros(mesh.n_vertices, bool)
    is_corner[edges] = True
    new_id, place = (np.cumsum(part, dtype=np.int32) - 1 for part in (is_corner, is_used))
    return mesh.kept(chosen), new_id[edges].astype(np.int64), place[sides].astype(np.int64)


def _beside(surface: Surface, normals: Floats) -> tuple[float, float]:
    """Shares of rays into the body and out of it that meet a surface at once, whichever way that faces."""
    mesh = surface.mesh
    ids = _spread(mesh.n_vertices, _RAYS)
    near, far = _GAPS

    def share(direction: Floats) -> float:
        face, distance, _ = surface.first_hit(mesh.vertices[ids] + near * direction, direction)
        return float(((face >= 0) & (distance < far - near)).mean())

    return share(-normals[ids]), share(normals[ids])


def _ragged(mesh: TriangleMesh, normals: Floats, edges: Ints) -> float:
    i, j = edges.T
    n = mesh.n_vertices
    count = np.maximum(np.bincount(i, minlength=n) + np.bincount(j, minlength=n), 1)
    along = np.zeros(n)
    for x, normal in zip(np.ascontiguousarray(mesh.vertices.T), normals.T, strict=True):
        along += (x - (np.bincount(i, x[j], n) + np.bincount(j, x[i], n)) / count) * normal
    return float(np.median(np.abs(along)))


def _rough(points: Floats) -> float:
    """Median deviation of points from quadratic patches through their neighbours, mm."""
    tree = cKDTree(points)
    centres = points[_spread(len(points), _FITS)]
    spacing = float(np.median(tree.query(centres, 2)[0][:, 1]))
    radius = max(_PATCH, 2.6 * spacing)
    distance, ids = tree.query(centres, 40, distance_upper_bound=radius)
    there = np.isfinite(distance)
    off = np.where(there[..., None], points[np.where(there, ids, 0)] - centres[:, None], 0.0)
    off -= there[..., None] * (off.sum(axis=1) / there.sum(axis=1)[:, None])[:, None]
    axes = np.linalg.eigh(np.einsum("cki,ckj->cij", off, off))[1]  # the first is the normal
    height, x, y = np.moveaxis(np.einsum("cki,cij->ckj", off, axes), 2, 0)
    x, y = x / radius, y / radius
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=-1) * there[..., None]
    matrix = np.einsum("cki,ckj->cij", terms, terms) + 1e-4 * np.eye(6)
    patch = np.linalg.solve(matrix, np.einsum("cki,ck->ci", terms, height)[..., None])
    left = height - (terms @ patch)[..., 0]
    free = there.sum(axis=1) - 6
    enough = free >= 6
    if not enough.any():
        return 0.0
    return float(np.median(np.sqrt((left**2).sum(axis=1)[enough] / free[enough])))


def _resampled(mesh: TriangleMesh, normals: Floats, longest: Floats) -> tuple[Floats, Floats]:
    """Points of a surface a few millimetres apart, whatever its triangles, and their normals.

    Parameters
    ----------
    longest : (m,) float
        Edge of each face, mm.
    """
    chosen = mesh.faces[longest > _LONG_EDGE]
    a, b, c = np.moveaxis(chosen, 1, 0)
    points, directions = (
        np.concatenate([x, (x[a] + x[b]) / 2, (x[b] + x[c]) / 2, (x[c] + x[a]) / 2, (x[a] + x[b] + x[c]) / 3])
        for x in (mesh.vertices, normals)
    )
    cell = np.floor((points - points.min(axis=0)) / _SPACING).astype(np.int64)
    key = (cell[:, 0] * 1000 + cell[:, 1]) * 1000 + cell[:, 2]
    facing = (directions @ np.array([0.3, 0.2, 1.0]) > 0).astype(np.int64)  # skin on skin stays two
    _, place = np.unique(2 * key + facing, return_inverse=True)
    count = np.bincount(place)
    points, directions = (
        np.stack([np.bincount(place, x[:, k]) for k in range(3)], axis=1) / count[:, None]
        for x in (points, directions)
    )
    return points, directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)


def _nipple(points: Floats, normals: Floats, landmark: Floats) -> tuple[float, float, float, float]:
    """Relief at a landmark, and the most relief of a round place away from it, in mm."""
    distance = np.linalg.norm(points - landmark, axis=1)
    chosen = np.flatnonzero(distance < _REACH + _OUTER[1])
    points, normals, distance = points[chosen], normals[chosen], distance[chosen]
    centres = np.flatnonzero(distance < _REACH)
    # Half of them are enough.
    centres = centres[(distance[centres] < _AT) | (np.arange(len(centres)) % 2 == 0)]
    if not len(centres):
        return np.nan, np.nan, np.nan, np.nan
    relief, is_round = _relief(points, normals, points[centres])
    distance = distance[centres]
    at = points[centres[distance < _AT]]
    wide = _relief(points, normals, at, _WIDE)[0] if len(at) else np.array([np.nan])
    off = points - landmark
    near = (off**2).sum(axis=1) < _CAP**2
    up = _unit(normals[near].sum(axis=0, keepdims=True))[0]
    return (
        _most(relief, distance < _AT),
        _most(relief, is_round & (distance > _AWAY)),
        _most(wide, np.ones(len(wide), bool)),
        float(-(off[near] @ up).mean() / _CAP),
    )


def _most(values: Floats, chosen: Bools) -> float:
    chosen = chosen & np.isfinite(values)
    return float(values[chosen].max()) if chosen.any() else np.nan


def _relief(points: Floats, normals: Floats, centres: Floats, scale: float = 1.0) -> tuple[Floats, Bools]:
    """How far centres (c, 3) rise above the skin around, beyond its own curvature, and whether in all directions.

    The skin sinks with the square of the way from a point; a nipple sinks more than that on its first centimetre.
    In six sectors the drop to an inner ring is compared with the drop to an outer one; opposite sectors together are
    free of the skin's slope.
    """
    points, centres = points / scale, centres / scale
    n = len(centres)
    reach = _OUTER[1] + 2.0
    pairs = cKDTree(centres).sparse_distance_matrix(cKDTree(points), reach, output_type="ndarray")
    one, other = pairs["i"], pairs["j"]
    near = pairs["v"] < _OUTER[0]
    up = _unit(np.stack([np.bincount(one[near], x[other[near]], n) for x in normals.T], axis=1))
    side = _unit(np.cross(up, np.eye(3)[np.abs(up).argmin(axis=1)]))
    ahead = np.einsum("ki,ki->k", normals[other], up[one]) > 0.0
    one, other = one[ahead], other[ahead]
    off = points[other] - centres[one]
    height, x, y = (np.einsum("ki,ki->k", off, axis[one]) for axis in (up, side, np.cross(up, side)))
    radius = np.sqrt(x * x + y * y)

    def means(ring: tuple[float, float]) -> tuple[Floats, Floats]:
        """Height and radius of opposite sectors together, (c, 3) each; NaN where one of them is not seen."""
        within = np.flatnonzero((radius >= ring[0]) & (radius < ring[1]))
        sector = np.floor(np.arctan2(y[within], x[within]) / (np.pi / 3.0)).astype(np.int64) % 6
        group = 6 * one[within] + sector
        count = np.bincount(group, minlength=6 * n)
        total = [np.bincount(group, values[within], 6 * n) for values in (height, radius)]
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(2, -1, 2, 3).mean(axis=2)
        return mean[0], mean[1]

    core = radius < _CORE
    in_core = np.bincount(one[core], minlength=n)
    top = (np.bincount(one[core], height[core], n) / np.maximum(in_core, 1))[:, None]
    (inner, way), (outer, far) = means(_INNER), means(_OUTER)
    excess = top - inner - (top - outer) * (way / far) ** 2
    seen = np.isfinite(excess)
    least = np.where(seen, excess, np.inf).min(axis=1)
    greatest = np.where(seen, excess, -np.inf).max(axis=1)
    relief = np.where((seen.sum(axis=1) >= 2) & (in_core > 0), least, np.nan)
    return relief * scale, least > _ROUND * greatest


def _bounded(value: float, least: float, most: float, unknown: float) -> float:
    return min(max(value, least), most) if np.isfinite(value) else unknown


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def _spread(n: int, count: int) -> Ints:
    """About ``count`` of n numbers, evenly spread."""
    return np.arange(0, n, max(1, n // count))
