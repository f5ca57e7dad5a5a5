"""Lengths, areas, normals and similarities; and what is mended in a surface as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csc_matrix

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.checks import check_float
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.topology import (
    edge_table,
    faces_with_all,
    has_twin_faces,
    joined,
    orientation_conflicts,
    pays_compiled,
    split_pinched,
    with_three_corners,
)
from breastmorph.mesh.triangle_mesh import TriangleMesh

_BLOCK = 2**14  # faces at once: their corners stay in the processor's cache
_MANY_AT_ONCE = 2**18  # where they are compiled for


def face_normals(vertices: Floats, faces: Ints) -> Floats:
    """Unit normals, (m, 3); zero for a face without area."""
    return _unit(face_cross(vertices, faces))


def face_areas(vertices: Floats, faces: Ints) -> Floats:
    """Areas, (m,)."""
    found = np.empty(len(faces))
    for start in range(0, len(faces), _MANY_AT_ONCE):  # no large array that is thrown away
        here = slice(start, start + _MANY_AT_ONCE)
        found[here] = 0.5 * norms(face_cross(vertices, faces[here]))
    return found


def vertex_areas(vertices: Floats, faces: Ints) -> Floats:
    """A third of the area of the faces around each vertex, (n,)."""
    return _summed(faces, face_areas(vertices, faces) / 3.0, len(vertices))


def vertex_normals(vertices: Floats, faces: Ints) -> Floats:
    """Area-weighted unit normals, (n, 3); zero for a vertex without faces."""
    if pays_compiled(len(faces)):
        from breastmorph.mesh import dense

        return dense.vertex_normals(vertices, faces)
    return _unit(_summed(faces, face_cross(vertices, faces), len(vertices)))


def normals_within(normals: Floats, corners: Ints, weights: Floats) -> Floats:
    """Unit normals at points of faces, (k, 3): interpolated, because a face's own normal jumps at its edges.

    Parameters
    ----------
    normals : (n, 3) float
        Of the vertices.
    corners : (k, 3) int
        Vertices of the face around each point.
    weights : (k, 3) float
        Barycentric.
    """
    return _unit(np.einsum("kc,kci->ki", weights, normals[corners]))


def face_angles(vertices: Floats, faces: Ints) -> Floats:
    """Inner angles at the three corners in radians, (m, 3)."""
    corners = vertices[faces]
    to_next = np.roll(corners, -1, axis=1) - corners
    to_last = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(to_next, to_last), axis=2)
    cosine = (to_next * to_last).sum(axis=2)
    found: Floats = np.arctan2(sine, cosine)
    return found


def normal_consistency(vertices: Floats, faces: Ints) -> Floats:
    """Cosine between every face's normal and the mean normal at its corners, (m,); negative means flipped."""
    at_corners = vertex_normals(vertices, faces)[faces].sum(axis=1)
    found: Floats = (face_normals(vertices, faces) * _unit(at_corners)).sum(axis=1)
    return found


def edge_lengths(vertices: Floats, faces: Ints) -> Floats:
    """Lengths of the undirected edges, (e,)."""
    return lengths(vertices, edge_table(faces).edges)


def lengths(vertices: Floats, edges: Ints) -> Floats:
    """Lengths of pairs of vertices (e, 2), (e,)."""
    found = np.empty(len(edges))
    for start in range(0, len(edges), _BLOCK):
        one, other = edges[start : start + _BLOCK].T
        found[start : start + _BLOCK] = norms(vertices[one] - vertices[other])
    return found


def distances_from(points: Floats, vertices: Floats) -> Floats:
    """Distances of vertices (n, 3) from the nearest of a few points (k, 3), (n,)."""
    if pays_compiled(len(vertices)):
        from breastmorph.mesh import dense

        return dense.distances_from(points, vertices)
    found = np.full(len(vertices), np.inf)
    for start in range(0, len(vertices), _BLOCK):
        here = slice(start, start + _BLOCK)
        for point in points:
            np.minimum(found[here], norms(vertices[here] - point), out=found[here])
    return found


def norms(vectors: Floats) -> Floats:
    """Lengths of vectors (k, 3), (k,): to the bit what ``np.linalg.norm`` finds in thrice the time."""
    x, y, z = vectors.T
    with np.errstate(over="ignore"):  # farther than numbers reach is infinitely far
        found: Floats = np.sqrt(x * x + y * y + z * z)
    return found


def face_cross(vertices: Floats, faces: Ints) -> Floats:
    """Cross products of two sides, (m, 3): along the normals, twice as long as the areas."""
    if pays_compiled(len(faces)):
        from breastmorph.mesh import dense

        return dense.face_cross(vertices, faces)
    cross = np.empty((len(faces), 3))
    for start in range(0, len(faces), _BLOCK):
        a, b, c = (vertices[corner] for corner in faces[start : start + _BLOCK].T)
        cross[start : start + _BLOCK] = np.cross(b - a, c - a)
    return cross


def enclosed_volume(mesh: TriangleMesh) -> float:
    """The volume within a closed surface; negative where it is inside out."""
    corners = (mesh.vertices - mesh.vertices.mean(axis=0))[mesh.faces]
    return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))) / 6.0


_APART = 0.01  # mm between two surfaces of a solid that would touch in an edge


def solid_between(inner: Floats, outer: Floats, faces: Ints, moved: Bools) -> TriangleMesh:
    """The closed solid between two shapes (n, 3) of the same triangles that differ at some vertices, (n,) bool.

    A vertex that is not moved is the same one in both. Every edge has two faces, also where the solid is pinched: there
    the outer shape is lifted by a hundredth of a millimetre.
    """
    moved, outer = moved.copy(), outer.copy()
    lifted = np.zeros(len(moved), bool)
    while True:
        changed = faces[moved[faces].any(axis=1)]
        table = edge_table(changed)
        pinched = table.edges[(table.face_count > 1) & ~moved[table.edges].any(axis=1), 0]
        if not len(pinched):
            break
        moved[pinched] = lifted[pinched] = True
    if lifted.any():
        outer[lifted] += _APART * vertex_normals(outer, faces)[lifted]
    # The outer skin, the inner one turned around, and walls where the shape itself ends.
    twin = np.arange(len(inner))
    twin[moved] += len(inner)
    walls = []
    for a, b in table.boundary:
        walls += [[b, a, twin[a]]] if twin[a] != a else []
        walls += [[b, twin[a], twin[b]]] if twin[b] != b else []
    closed = np.vstack([changed, twin[changed][:, ::-1], np.array(walls, dtype=int).reshape(-1, 3)])
    used, numbered = np.unique(closed, return_inverse=True)
    return TriangleMesh(np.vstack([outer, inner])[used], numbered.reshape(closed.shape))


def _summed(faces: Ints, values: Floats, n_vertices: int) -> Floats:
    """Sum of the faces' values (m, ...) around each vertex, (n, ...), face by face: a product with who has which."""
    start = np.arange(0, faces.size + 1, 3, dtype=np.int32)
    has = csc_matrix(
        (np.ones(faces.size), faces.ravel().astype(np.int32), start), shape=(n_vertices, len(faces))
    )
    found: Floats = has @ values
    return found


def _unit(vectors: Floats) -> Floats:
    length = norms(vectors)[:, None]
    found: Floats = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return found


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

    def __post_init__(self) -> None:
        arrays = ((self.rotation, (3, 3)), (self.translation, (3,)))
        if not all(isinstance(one, np.ndarray) and one.shape == shape for one, shape in arrays):
            raise BreastMorphError(
                "this is not a similarity transform",
                "Give arrays: a rotation of shape (3, 3) and a translation of shape (3,)",
            )
        check_float(self.scale, "the scale of a similarity transform")

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


@dataclass(frozen=True, eq=False)
class Plane:
    """The points x with ``normal @ x == offset``.

    Attributes
    ----------
    normal : (3,) float
        Unit vector.
    offset : float
    """

    normal: Floats
    offset: float

    def distance(self, points: Floats) -> Floats:
        """Signed distances, (k,)."""
        return points @ self.normal - self.offset

    def reflected(self, points: Floats) -> Floats:
        """Mirror images, (k, 3)."""
        return points - 2.0 * self.distance(points)[:, None] * self.normal

    def to_sagittal(self) -> Similarity:
        """The smallest rigid motion that brings the plane to x = 0 and its normal to +x."""
        axis = np.array([1.0, 0.0, 0.0])
        cross = np.cross(self.normal, axis)
        k = np.array([[0, -cross[2], cross[1]], [cross[2], 0, -cross[0]], [-cross[1], cross[0], 0]])
        rotation = np.eye(3) + k + k @ k / (1.0 + self.normal @ axis)
        return Similarity(rotation, np.array([-self.offset, 0.0, 0.0]))


def rotation_about(axis: Floats, degrees: float) -> Floats:
    """Rotation matrix about an axis (right-hand rule), (3, 3)."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = np.radians(degrees)
    found: Floats = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    return found


def without_non_finite(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop vertices with NaN or infinite coordinates and the faces that use them."""
    bad = np.isfinite(mesh.vertices).sum(axis=1) < 3
    if not bad.any():
        return mesh, 0
    return mesh.kept(faces_with_all(~bad, mesh.faces)), int(bad.sum())


def welded(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Join vertices at exactly the same place, as texture seams leave them."""
    first, place = joined(mesh.vertices)
    if len(first) == mesh.n_vertices:
        return mesh, 0
    return replace(mesh, faces=first[place][mesh.faces]), mesh.n_vertices - len(first)


def without_degenerate_faces(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop faces that name a vertex twice or have no area."""
    whole = with_three_corners(mesh.faces)
    area = face_areas(mesh.vertices, mesh.faces)
    typical = np.median(area[whole]) if whole.any() else 0.0
    bad = ~whole | (area <= 1e-10 * typical)
    return (mesh.kept(~bad), int(bad.sum())) if bad.any() else (mesh, 0)


def without_duplicate_faces(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Keep the first of faces with the same three vertices."""
    if not has_twin_faces(mesh.faces):
        return mesh, 0
    first, _ = joined(np.sort(mesh.faces, axis=1))
    if len(first) == mesh.n_faces:
        return mesh, 0
    keep = np.zeros(mesh.n_faces, bool)
    keep[first] = True
    return mesh.kept(keep), int((~keep).sum())


def without_unreferenced(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop vertices that no face uses."""
    used = np.zeros(mesh.n_vertices, bool)
    used[mesh.faces] = True
    if used.all():
        return mesh, 0
    return mesh.kept(np.ones(mesh.n_faces, bool)), int((~used).sum())


def without_non_manifold_edges(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop the faces on edges that more than two faces share; leaves pin holes."""
    table = edge_table(mesh.faces)
    crowded = table.face_count > 2
    if not crowded.any():
        return mesh, 0
    crowded_sides = crowded[table.of_half_edge].reshape(3, -1).sum(axis=0)
    return mesh.kept(crowded_sides == 0), int(crowded.sum())


def without_pinches(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Give separate fans of faces that touch in one vertex a vertex each."""
    faces, source = split_pinched(mesh.faces, mesh.n_vertices)
    if not len(source):
        return mesh, 0
    vertices = np.concatenate([mesh.vertices, mesh.vertices[source]])
    colors = None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors[source]])
    return replace(mesh, vertices=vertices, faces=faces, colors=colors), len(source)


def consistently_oriented(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Turn faces so that neighbours agree; the majority of each piece keeps its side. Needs manifold edges."""
    import igl

    if orientation_conflicts(mesh.faces) == 0:
        return mesh, 0
    oriented, piece = igl.bfs_orient(np.array(mesh.faces))
    turned = (_first_to_front(oriented) != _first_to_front(mesh.faces)).any(axis=1)
    share = np.bincount(piece, weights=turned) / np.bincount(piece)
    turned ^= share[piece] > 0.5
    faces = np.where(turned[:, None], mesh.faces[:, ::-1], mesh.faces)
    texture = mesh.texture and replace(
        mesh.texture, uv=np.where(turned[:, None, None], mesh.texture.uv[:, ::-1], mesh.texture.uv)
    )
    return replace(mesh, faces=faces, texture=texture), int(turned.sum())


def _first_to_front(faces: Ints) -> Ints:
    """The same cyclic order with the smallest vertex first."""
    start = faces.argmin(axis=1)
    return np.take_along_axis(faces, (start[:, None] + np.arange(3)) % 3, axis=1)


def decimate(mesh: TriangleMesh, n_vertices: int) -> TriangleMesh:
    """Fewer triangles by collapsing edges in the order of quadric error; borders are kept.

    Parameters
    ----------
    mesh : TriangleMesh
    n_vertices : int
        How many to leave; the outcome may be off by a few.
    """
    import igl

    if n_vertices >= mesh.n_vertices:
        return mesh
    # An inner collapse takes two faces, one on the border takes one; their share shows only afterwards.
    aim, best = mesh.n_faces - 2 * (mesh.n_vertices - n_vertices), mesh
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    for _ in range(8):
        trial = mesh
        if max(aim, 2) < mesh.n_faces:
            trial = TriangleMesh(*igl.qslim(vertices, faces, int(max(aim, 2)))[:2])
        if abs(trial.n_vertices - n_vertices) < abs(best.n_vertices - n_vertices):
            best = trial
        if trial.n_vertices == n_vertices:
            break
        aim += 2 * (n_vertices - trial.n_vertices)
    return best
