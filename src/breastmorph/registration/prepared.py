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
from breastmorph.registration.cells import Cells, spokes_and_rims
from breastmorph.registration.embedded import EmbeddedDeformation
from breastmorph.registration.known_bodies import bodies_carried_to, known_bodies
from breastmorph.registration.parameters import RegistrationParameters, WarpParameters
from breastmorph.registration.score_evidence import AnchorDisplacements, ScoreEvidence
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

    def evidence(self, basis: WarpBasis, people: AnchorDisplacements) -> ScoreEvidence:
        """What people whose registrations are known show of a prior's scores."""
        fine, coarse = self.fine, self.coarse
        return ScoreEvidence.of(basis, people, fine.mesh.vertices, coarse.mesh, fine.landmark_ids)

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
