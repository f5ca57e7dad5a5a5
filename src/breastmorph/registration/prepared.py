"""A template prepared for many scans: both its resolutions, with what the stages need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.machine import one_thread
from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.absent_breast import BreastHeight, without_breast
from breastmorph.registration.parameters import RegistrationParameters, WarpParameters
from breastmorph.registration.target import Target
from breastmorph.registration.warp import (
    Functions,
    ScorePrior,
    WarpBasis,
    smooth_functions,
    warp_basis,
    warp_onto,
)
from breastmorph.scan.scan import STERNUM, Landmarks, is_same_skin
from breastmorph.template import Template, default_template

if TYPE_CHECKING:
    from breastmorph.registration.fronts import EdgeSystem
import math
from functools import cache
from importlib.resources import files

from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from breastmorph.foundation.arrays import Ints
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import edge_table
from breastmorph.registration.warp import Bodies

_LARGEST_COTANGENT = 1.0 / math.tan(1e-3)  # of a needle


@dataclass(frozen=True, eq=False)
class Cells:
    """Which edges belong to which vertex's cell.

    An edge counts once in the cells of its two ends (spokes) and half in the cells of its one or two opposite
    vertices (rims).

    Attributes
    ----------
    faces : (m, 3) int
    edges : (e, 2) int
    of_half_edge : (3m,) int
        Edge of every directed edge: those leaving corner 0 of every face, then corner 1, then corner 2.
    opposite : (e, 2) int
        Vertices facing each edge; the second is -1 on the border.
    start : (n + 1,) int
        The members of vertex i's cell are ``members[start[i]:start[i + 1]]``.
    members : (k,) int
        Edges.
    share : (k,) float
        1 for spokes, 1/2 for rims.
    """

    faces: Ints
    edges: Ints
    of_half_edge: Ints
    opposite: Ints
    start: Ints
    members: Ints
    share: Floats

    def cotangent_weights(self, vertices: Floats, smallest: float) -> Floats:
        """w_jk = (cot + cot) / 2 of the angles facing each edge, at least ``smallest``, (e,)."""
        from breastmorph.mesh import dense

        at_corners = dense.cotangents(vertices, self.faces, _LARGEST_COTANGENT)
        facing = at_corners[:, [2, 0, 1]].T.ravel()  # the half-edge leaving corner 0 faces corner 2
        total = np.bincount(self.of_half_edge, weights=0.5 * facing, minlength=len(self.edges))
        return np.maximum(total, smallest)

    def stiffness_of_edges(self, edge_weights: Floats, vertex_weights: Floats) -> Floats:
        """Entries of K: each edge's weight times the weights of the cells it is in, over 3, (e,)."""
        padded = np.append(vertex_weights, 0.0)  # -1 finds the zero
        cells = padded[self.edges].sum(axis=1) + 0.5 * padded[self.opposite].sum(axis=1)
        found: Floats = edge_weights * cells / 3.0
        return found


def spokes_and_rims(faces: Ints, n_vertices: int) -> Cells:
    """Collect the cells of a manifold mesh."""
    table = edge_table(faces)
    facing = faces[:, [2, 0, 1]].T.ravel()
    order = np.argsort(table.of_half_edge, kind="stable")
    first = np.searchsorted(table.of_half_edge[order], np.arange(len(table.edges)))
    opposite = np.full((len(table.edges), 2), -1, dtype=np.int64)
    opposite[:, 0] = facing[order[first]]
    inner = table.face_count > 1
    opposite[inner, 1] = facing[order[first[inner] + 1]]

    edge_ids = np.arange(len(table.edges))
    has_second = opposite[:, 1] >= 0
    owner = np.concatenate([table.edges[:, 0], table.edges[:, 1], opposite[:, 0], opposite[has_second, 1]])
    member = np.concatenate([edge_ids, edge_ids, edge_ids, edge_ids[has_second]])
    share = np.where(np.arange(len(owner)) < 2 * len(edge_ids), 1.0, 0.5)
    by_owner = np.lexsort((member, owner))
    start = np.searchsorted(owner[by_owner], np.arange(n_vertices + 1))
    return Cells(
        np.array(faces),
        table.edges,
        table.of_half_edge,
        opposite,
        start.astype(np.int64),
        member[by_owner],
        share[by_owner],
    )


class EmbeddedDeformation:
    """Fine points that follow the nearest nodes of a coarse mesh: prepared once, applied often.

    Parameters
    ----------
    points : (n, 3) float
        The fine mesh at rest.
    nodes : (a, 3) float
        The coarse mesh at rest.
    followed : int
        Nodes that each point follows; one more gives the radius at which the weight is zero.
    """

    def __init__(self, points: Floats, nodes: Floats, followed: int) -> None:
        count = min(followed + 1, len(nodes))
        distances, ids = cKDTree(nodes).query(points, k=count)
        weights = (1.0 - distances[:, :-1] / np.maximum(distances[:, -1:], 1e-300)) ** 2
        total = weights.sum(axis=1, keepdims=True)
        self._ids = ids[:, :-1]
        self._weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / (count - 1))
        self._offsets = points[:, None, :] - nodes[self._ids]

    def apply(self, moved: Floats, scales: Floats, rotations: Floats) -> Floats:
        """Fine points after every node moved to ``moved`` (a, 3), turned and scaled, (n, 3)."""
        turned = np.einsum("nkij,nkj->nki", rotations[self._ids], self._offsets)
        carried = scales[self._ids][..., None] * turned + moved[self._ids]
        return np.einsum("nk,nki->ni", self._weights, carried)


@cache
def known_bodies() -> Bodies:
    """At the default template's anchors; see scripts/make_known_bodies.py."""
    data = files("breastmorph").joinpath("data/known_bodies.npz").read_bytes()
    with open_archive(data) as parts:
        return Bodies(parts["modes"].astype(float), parts["by_size"].astype(float))


_FEWEST = 4  # landmarks by which a template can be placed on another


def bodies_carried_to(template: Template) -> Bodies | None:
    """The known bodies at another template's anchors; None where its landmarks do not give how the two lie.

    Each anchor moves as the built-in template's skin does there, once that is bent onto the other by both's landmarks.
    """
    known, default = known_bodies(), default_template()
    shared = [name for name in default.landmarks if name in template.landmarks]
    if len(shared) < _FEWEST:
        return None
    here, there = default.landmarks.array(shared), template.landmarks.array(shared)
    similarity = Similarity.fit(here, there)
    warped = _spline_warp(similarity.apply(default.coarse.vertices), similarity.apply(here), there)
    found = Surface(default.coarse.with_vertices(warped)).closest(template.coarse.vertices)
    corners = np.dstack([known.modes, known.by_size])[default.coarse.faces[found.faces]]
    turned = similarity.scale * np.einsum("ij,akjr->akir", similarity.rotation, corners)
    carried = np.einsum("ak,akir->air", found.weights, turned)
    return Bodies(carried[:, :, :-1], carried[:, :, -1])


def _spline_warp(points: Floats, here: Floats, there: Floats) -> Floats:
    """Points (k, 3) moved so that some places get to others: the displacement spreads as a linear spline, (k, 3)."""
    unit = np.ones((len(here), 1))
    system = np.block([[cdist(here, here), unit], [unit.T, np.zeros((1, 1))]])
    weights = np.linalg.lstsq(system, np.vstack([there - here, np.zeros((1, 3))]), rcond=None)[0]
    found: Floats = points + cdist(points, here) @ weights[:-1] + weights[-1]
    return found


@dataclass(frozen=True, eq=False)
class Level:
    """One resolution of the template.

    Attributes
    ----------
    mesh : TriangleMesh
    landmark_ids : mapping from name to vertex
    mask : (n,) float
        Breast probability of the vertices.
    """

    mesh: TriangleMesh
    landmark_ids: Mapping[str, int]
    mask: Floats

    @cached_property
    def cells(self) -> Cells:
        """Of the regulariser."""
        return spokes_and_rims(self.mesh.faces, self.mesh.n_vertices)

    @cached_property
    def system(self) -> EdgeSystem:
        """Of the points' update."""
        from breastmorph.registration.fronts import EdgeSystem  # loads numba

        return EdgeSystem(self.cells.edges, self.mesh.n_vertices)


@dataclass(frozen=True, eq=False)
class OneSided:
    """The template and its coarse twin with one breast taken off, and how that breast stood out."""

    fine: TriangleMesh
    coarse: TriangleMesh
    height: BreastHeight


class PreparedTemplate:
    """A template with all that does not depend on the scan.

    Parameters
    ----------
    template : Template
    parameters : RegistrationParameters

    Attributes
    ----------
    mask : BreastMask
        The template's own.
    fine, coarse : Level
    peak : float
        The mask's largest value.
    basis : WarpBasis or None
        None where the parameters have no warp.
    """

    def __init__(self, template: Template, parameters: RegistrationParameters) -> None:
        self.template, self.parameters = template, parameters
        lengths = measure_breasts(template.mesh, template.landmarks, parameters=parameters.mask)
        self.mask = lengths.mask(template.landmarks)
        self.fine, self.coarse = (
            Level(mesh, ids, self.mask.at(mesh.vertices))
            for mesh, ids in (
                (template.mesh, template.landmark_ids),
                (template.coarse, template.coarse_landmark_ids),
            )
        )
        self.peak = float(self.fine.mask.max())
        self.basis = None if parameters.warp is None else self.sliding_basis
        self._one_sided: dict[str, OneSided] = {}
        # Scans of a cohort's group come one after the other and have the same priors.
        self._bases_with = lru_cache(maxsize=1)(self._make_bases_with)

    @cached_property
    def embedded(self) -> EmbeddedDeformation:
        """Carries a deformation of the coarse twin to the template."""
        return EmbeddedDeformation(
            self.fine.mesh.vertices, self.coarse.mesh.vertices, self.parameters.followed_nodes
        )

    @cached_property
    def functions(self) -> Functions:
        """Of the parameters' warp, or of the usual one where they have none: unset landmarks are found by sliding."""
        fine_mask, coarse_mask = self.fine.mask / self.peak, self.coarse.mask / self.peak
        if not self.parameters.use_masks:
            fine_mask, coarse_mask = np.ones_like(fine_mask), np.ones_like(coarse_mask)
        with one_thread():  # sums must not depend on the number of cores
            return smooth_functions(
                self.fine.mesh.vertices,
                self.coarse.mesh.vertices,
                fine_mask,
                coarse_mask,
                self.template.landmarks.array(STERNUM),
                self.parameters.warp or WarpParameters(),
            )

    @cached_property
    def sliding_basis(self) -> WarpBasis:
        """The prior of the parameters' warp, or of the usual one where they have none."""
        with one_thread():
            return warp_basis(self.functions, known_bodies() if self.knows_bodies else None)

    @cached_property
    def whole_basis(self) -> WarpBasis | None:
        """The prior with the skin of whole bodies, fitted to this template or carried over to it."""
        if not self.functions.parameters.trunk_share > 0.0:
            return None
        bodies = known_bodies() if self.knows_bodies else bodies_carried_to(self.template)
        if bodies is None:
            return None
        with one_thread():
            return warp_basis(self.functions, bodies, whole=True)

    @cached_property
    def knows_bodies(self) -> bool:
        """Whether it is known how bodies vary about this very template.

        Carried to another one they give its trunk, but do not enter :attr:`sliding_basis`: there they did not help.
        """
        share, default = self.functions.parameters.trunk_share, default_template()
        return share > 0.0 and np.array_equal(self.coarse.mesh.vertices, default.coarse.vertices)

    @property
    def bases(self) -> tuple[WarpBasis, ...]:
        """The priors of the smooth start, the one of whole bodies last: those that a cohort can have its own of."""
        whole = self.whole_basis
        return (self.sliding_basis,) if whole is None else (self.sliding_basis, whole)

    def warp_onto(
        self,
        target: Target,
        start: tuple[TriangleMesh, TriangleMesh],
        landmarks: Landmarks,
        scale: float,
        priors: Sequence[ScorePrior] = (),
        mask: BreastMask | None = None,
    ) -> tuple[Floats, Floats]:
        """The smooth start with all that is known: vertices (n, 3) and anchors (k, 3) of the template's two meshes.

        Parameters
        ----------
        target : Target
            The scan in template coordinates.
        start : pair of TriangleMesh
            The meshes to begin from.
        landmarks : Landmarks
            Of the scan, in template coordinates.
        scale : float
            The rigid stage's.
        priors : sequence of ScorePrior, optional
            Fitted to a cohort, one for each of :attr:`bases`.
        mask : BreastMask, optional
            The scan's.
        """
        bases = self._bases_with(tuple(priors)) if priors else self.bases
        fine, coarse = start
        if not self.parameters.use_masks:
            mask = None
        return warp_onto(
            target,
            fine.vertices,
            coarse,
            bases[0],
            self.fine.landmark_ids,
            landmarks,
            size=float(np.log(scale)),
            bodies=bases[1] if len(bases) > 1 else None,
            mask_at=None if mask is None else lambda points: mask.at(points) / self.peak,
        )

    def _make_bases_with(self, priors: tuple[ScorePrior, ...]) -> tuple[WarpBasis, ...]:
        return tuple(basis.with_prior(prior) for basis, prior in zip(self.bases, priors, strict=True))

    @cached_property
    def breasts(self) -> Mapping[str, Bools]:
        """Vertices of the template's breasts by side."""
        return self.mask.breasts_at(self.fine.mesh.vertices)

    @cached_property
    def fixed(self) -> Bools:
        """Vertices that stay where triangles are spread: the border, and landmarks of which all have the same skin.

        Poles are not: a lower pole lies on the very fold at which triangles are compressed.
        """
        found = boundary_vertices(self.fine.mesh.faces, self.fine.mesh.n_vertices)
        found[[vertex for name, vertex in self.fine.landmark_ids.items() if is_same_skin(name)]] = True
        return found

    def without_breast(self, side: str) -> OneSided:
        """The template with one breast taken off."""
        if side not in self._one_sided:
            middle = float(self.template.landmarks.array(STERNUM)[:, 0].mean())
            p = self.parameters.absent
            fine, coarse = (
                without_breast(level.mesh, self.mask.at(level.mesh.vertices, side), side, middle, p)
                for level in (self.fine, self.coarse)
            )
            self._one_sided[side] = OneSided(fine, coarse, BreastHeight.of(self.fine.mesh, fine, p))
        return self._one_sided[side]
