"""A template prepared for many scans: both its resolutions, with what the stages need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from operator import is_

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.files import open_archive
from breastmorph.foundation.machine import one_thread
from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.minimiser import Cells, EdgeSystem, membrane, spokes_and_rims
from breastmorph.registration.parameters import RegistrationParameters, WarpParameters
from breastmorph.registration.rigid import Target
from breastmorph.registration.warp import (
    Bodies,
    Evidence,
    Functions,
    Lesson,
    Population,
    WarpBasis,
    slide_onto,
    smooth_functions,
    warp_basis,
)
from breastmorph.scan.scan import SIGN, STERNUM, Landmarks, is_same_skin
from breastmorph.template import Template, default_template

# --------------------------------------------------------------------------------------------------------------------
# Embedded deformation: carrying a coarse mesh's deformation to a fine one (Sumner et al. 2007)
# --------------------------------------------------------------------------------------------------------------------

_FOLLOWED = 6  # nodes each point follows; one more gives the radius at which the weight is zero


class EmbeddedDeformation:
    """Fine points tied to the nearest nodes of a coarse mesh: prepared once, applied often.

    Parameters
    ----------
    points : (n, 3) float
        The fine mesh at rest.
    nodes : (a, 3) float
        The coarse mesh at rest.
    """

    def __init__(self, points: Floats, nodes: Floats) -> None:
        count = min(_FOLLOWED + 1, len(nodes))
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


# --------------------------------------------------------------------------------------------------------------------
# A side without landmarks: whether a breast is there, and a template that starts without it
# --------------------------------------------------------------------------------------------------------------------

_BREAST = 0.03  # mask above which skin belongs to the breast and its fold
_MIDLINE = 5.0  # mm beside the sternum that stay as they are
_RAISED = 5.0  # mm that a breast stands out where it is looked for
_GRID = 6.0  # mm between the places looked at
_IN_FRONT = 600.0  # mm before the template: from where they are looked at


def without_breast(mesh: TriangleMesh, probability: Floats, side: str, middle: float = 0.0) -> TriangleMesh:
    """Take one breast off an upright template.

    Pressed onto a flat chest, a template's fold would stay folded. A membrane (the harmonic map from the breast's own
    skin) has no fold, and spreads the breast's triangles evenly without turning any over.

    Parameters
    ----------
    mesh : TriangleMesh
    probability : (n,) float
        Mask of that side.
    side : str
    middle : float
        Where the sternum lies, on x.
    """
    outwards = (mesh.vertices[:, 0] - middle) * SIGN[side]
    free = (probability > _BREAST) & (outwards > _MIDLINE) & ~boundary_vertices(mesh.faces, mesh.n_vertices)
    return mesh.with_vertices(membrane(mesh, mesh.vertices, free)) if free.any() else mesh


@dataclass(frozen=True, eq=False)
class BreastHeight:
    """How a template's breast stands out, seen from the front at places on a grid.

    Attributes
    ----------
    places : (k, 3) float
        In front of the template.
    level : (k,) float
        Height of the skin behind them without the breast; NaN where there is none.
    breast : (k,) float
        What the breast adds to it.
    """

    places: Floats
    level: Floats
    breast: Floats

    @classmethod
    def of(cls, whole: TriangleMesh, bare: TriangleMesh) -> BreastHeight:
        """Of an upright template with and without the breast."""
        taken = np.linalg.norm(whole.vertices - bare.vertices, axis=1) > _RAISED
        if not taken.any():
            return cls(np.empty((0, 3)), np.empty(0), np.empty(0))
        low, high = (end(whole.vertices[taken, :2], axis=0) for end in (np.min, np.max))
        across, up = np.meshgrid(*(np.arange(a, b, _GRID) for a, b in zip(low, high, strict=True)))
        front = np.full(across.size, whole.vertices[:, 2].max() + _IN_FRONT)
        places = np.column_stack([across.ravel(), up.ravel(), front])
        level = _height(Surface(bare), places, Similarity())
        return cls(places, level, _height(Surface(whole), places, Similarity()) - level)

    def share_in(self, scan: Surface, transform: Similarity) -> float:
        """How far a scan stands out where the template has a breast: about 0 on a flat chest, 1 like the template.

        The least-squares share of the template's breast in the scan's height. Closest points could not tell: on a flat
        chest they find skin beside and below the breast, and not far away.

        Parameters
        ----------
        scan : Surface
        transform : Similarity
            From template to scan coordinates.
        """
        if not len(self.places):
            return 0.0
        seen = _height(scan, self.places, transform) - self.level
        known = (self.breast > _RAISED) & np.isfinite(seen)
        breast = self.breast[known]
        return float(seen[known] @ breast / (breast @ breast)) if known.any() else 0.0


def _height(surface: Surface, places: Floats, transform: Similarity) -> Floats:
    """Height of the skin behind places in front of it, (k,); NaN where there is none."""
    directions = np.tile(-transform.rotation[:, 2], (len(places), 1))
    faces, distances, _ = surface.first_hit(transform.apply(places), directions)
    return np.where(faces >= 0, places[:, 2] - distances / transform.scale, np.nan)


# --------------------------------------------------------------------------------------------------------------------
# A template prepared for many scans: both its resolutions, with what the stages need of them
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Level:
    """One resolution of the template.

    Attributes
    ----------
    mesh : TriangleMesh
    landmark_ids : mapping from name to vertex
    mask : (n,) float
        Breast probability of the vertices.
    cells : Cells
    system : EdgeSystem
        Keeps a factorisation from scan to scan.
    """

    mesh: TriangleMesh
    landmark_ids: Mapping[str, int]
    mask: Floats
    cells: Cells
    system: EdgeSystem

    @classmethod
    def of(cls, mesh: TriangleMesh, landmark_ids: Mapping[str, int], mask: BreastMask) -> Level:
        """Prepare one of a template's two meshes."""
        cells = spokes_and_rims(mesh.faces, mesh.n_vertices)
        system = EdgeSystem(cells.edges, mesh.n_vertices)
        return cls(mesh, landmark_ids, mask.at(mesh.vertices), cells, system)


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
        self.mask = measure_breasts(template.mesh, template.landmarks).mask(template.landmarks)
        self.fine = Level.of(template.mesh, template.landmark_ids, self.mask)
        self.coarse = Level.of(template.coarse, template.coarse_landmark_ids, self.mask)
        self.peak = float(self.fine.mask.max())
        self.basis = None if parameters.warp is None else self.sliding_basis
        self._one_sided: dict[str, OneSided] = {}
        self._last_told: tuple[tuple[Lesson, ...], tuple[WarpBasis, ...]] = ((), ())

    @cached_property
    def embedded(self) -> EmbeddedDeformation:
        """Carries a deformation of the coarse twin to the template."""
        return EmbeddedDeformation(self.fine.mesh.vertices, self.coarse.mesh.vertices)

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
        """The prior that knows the skin of whole bodies, learnt about this template or carried over to it."""
        if not self.functions.parameters.trunk_share > 0.0:
            return None
        bodies = known_bodies() if self.knows_bodies else bodies_carried_to(self.template)
        if bodies is None:
            return None
        with one_thread():
            return warp_basis(self.functions, bodies, whole=True)

    @cached_property
    def knows_bodies(self) -> bool:
        """Whether it was learnt how bodies vary about this very template.

        Carried to another one they tell its trunk, but have no say in :attr:`sliding_basis`: there they did not help.
        """
        share, default = self.functions.parameters.trunk_share, default_template()
        return share > 0.0 and np.array_equal(self.coarse.mesh.vertices, default.coarse.vertices)

    @property
    def bases(self) -> tuple[WarpBasis, ...]:
        """The priors of the smooth start, the one of whole bodies last: what people can teach about."""
        whole = self.whole_basis
        return (self.sliding_basis,) if whole is None else (self.sliding_basis, whole)

    def evidence(self, basis: WarpBasis, people: Population) -> Evidence:
        """What people whose registrations are known show of a prior's scores."""
        fine, coarse = self.fine, self.coarse
        return Evidence.of(basis, people, fine.mesh.vertices, coarse.mesh, fine.landmark_ids)

    def slid_onto(
        self,
        target: Target,
        start: tuple[TriangleMesh, TriangleMesh],
        landmarks: Landmarks,
        scale: float,
        lessons: Sequence[Lesson] = (),
        mask: BreastMask | None = None,
    ) -> tuple[Floats, Floats]:
        """The smooth start with all that is known: vertices (n, 3) and anchors (k, 3) of the template's two meshes.

        ``start`` are the meshes to begin from, ``scale`` is the rigid stage's; ``lessons`` were taught about
        :attr:`bases`; ``mask`` is the scan's. See :func:`slide_onto`.
        """
        basis, *whole = self._told(lessons)
        fine, coarse = start
        ids, size = self.fine.landmark_ids, float(np.log(scale))
        bodies = whole[0] if whole else None
        mask_at = (
            None if mask is None or not self.parameters.use_masks else lambda at: mask.at(at) / self.peak
        )
        return slide_onto(
            target, fine.vertices, coarse, basis, ids, landmarks, size=size, bodies=bodies, mask_at=mask_at
        )

    def _told(self, lessons: Sequence[Lesson]) -> tuple[WarpBasis, ...]:
        """The priors with what was taught; kept for the next scan, which often is told the same."""
        if not lessons:
            return self.bases
        before, told = self._last_told
        if not (len(before) == len(lessons) and all(map(is_, before, lessons))):
            told = tuple(basis.told(one) for basis, one in zip(self.bases, lessons, strict=True))
            self._last_told = (tuple(lessons), told)
        return told

    @cached_property
    def breasts(self) -> Mapping[str, Bools]:
        """Vertices of the template's breasts by side."""
        return self.mask.breasts_at(self.fine.mesh.vertices)

    @cached_property
    def held(self) -> Bools:
        """Vertices that stay where triangles are spread: the border, and landmarks that are the same skin on everybody.

        Poles are not: a lower pole lies on the very fold at which triangles are pressed together.
        """
        found = boundary_vertices(self.fine.mesh.faces, self.fine.mesh.n_vertices)
        found[[vertex for name, vertex in self.fine.landmark_ids.items() if is_same_skin(name)]] = True
        return found

    def without_breast(self, side: str) -> OneSided:
        """The template with one breast taken off."""
        if side not in self._one_sided:
            middle = float(self.template.landmarks.array(STERNUM)[:, 0].mean())
            fine, coarse = (
                without_breast(level.mesh, self.mask.at(level.mesh.vertices, side), side, middle)
                for level in (self.fine, self.coarse)
            )
            self._one_sided[side] = OneSided(fine, coarse, BreastHeight.of(self.fine.mesh, fine))
        return self._one_sided[side]


# --------------------------------------------------------------------------------------------------------------------
# How the bodies of adults vary, where it is known: at the default template's anchors
# --------------------------------------------------------------------------------------------------------------------


@cache
def known_bodies() -> Bodies:
    """At the default template's anchors; see scripts/make_known_bodies.py."""
    data = files("breastmorph").joinpath("data/known_bodies.npz").read_bytes()
    with open_archive(data) as parts:
        return Bodies(parts["modes"].astype(float), parts["by_size"].astype(float))


_FEWEST = 4  # landmarks by which a template can be laid on another


def bodies_carried_to(template: Template) -> Bodies | None:
    """The known bodies at another template's anchors; None where its landmarks do not tell how the two lie.

    Each anchor moves as the built-in template's skin does there, once that is bent onto the other by both's landmarks.
    """
    known, default = known_bodies(), default_template()
    shared = [name for name in default.landmarks if name in template.landmarks]
    if len(shared) < _FEWEST:
        return None
    here, there = default.landmarks.array(shared), template.landmarks.array(shared)
    lay = Similarity.fit(here, there)
    laid = _bent(lay.apply(default.coarse.vertices), lay.apply(here), there)
    found = Surface(default.coarse.with_vertices(laid)).closest(template.coarse.vertices)
    corners = np.dstack([known.modes, known.by_size])[default.coarse.faces[found.faces]]
    turned = lay.scale * np.einsum("ij,akjr->akir", lay.rotation, corners)
    carried = np.einsum("ak,akir->air", found.weights, turned)
    return Bodies(carried[:, :, :-1], carried[:, :, -1])


def _bent(points: Floats, here: Floats, there: Floats) -> Floats:
    """Points (k, 3) moved so that some places get to others: the displacement spreads as a linear spline, (k, 3)."""
    one = np.ones((len(here), 1))
    system = np.block([[cdist(here, here), one], [one.T, np.zeros((1, 1))]])
    weights = np.linalg.lstsq(system, np.vstack([there - here, np.zeros((1, 3))]), rcond=None)[0]
    found: Floats = points + cdist(points, here) @ weights[:-1] + weights[-1]
    return found
