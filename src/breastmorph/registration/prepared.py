"""A template prepared for many scans: both its resolutions, with what the stages need of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.triangle_mesh import Bools, Floats, TriangleMesh
from breastmorph.registration.absent import BreastHeight, without_breast
from breastmorph.registration.cells import Cells, spokes_and_rims
from breastmorph.registration.embedded import EmbeddedDeformation
from breastmorph.registration.linear import EdgeSystem
from breastmorph.registration.parameters import RegistrationParameters, WarpParameters
from breastmorph.registration.warp import WarpBasis, warp_basis
from breastmorph.scan.landmarks import STERNUM
from breastmorph.template import Template
from breastmorph.threads import one_thread


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
        self.basis = None if parameters.warp is None else self._basis(parameters.warp)
        self._one_sided: dict[str, OneSided] = {}

    @cached_property
    def embedded(self) -> EmbeddedDeformation:
        """Carries a deformation of the coarse twin to the template."""
        return EmbeddedDeformation(self.fine.mesh.vertices, self.coarse.mesh.vertices)

    @cached_property
    def sliding_basis(self) -> WarpBasis:
        """The parameters' warp, or the usual one where they have none: unset landmarks are found by sliding."""
        return self._basis(WarpParameters()) if self.basis is None else self.basis

    @cached_property
    def breasts(self) -> Mapping[str, Bools]:
        """Vertices of the template's breasts by side."""
        return self.mask.breasts_at(self.fine.mesh.vertices)

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

    def _basis(self, parameters: WarpParameters) -> WarpBasis:
        fine_mask, coarse_mask = self.fine.mask / self.peak, self.coarse.mask / self.peak
        if not self.parameters.use_masks:
            fine_mask, coarse_mask = np.ones_like(fine_mask), np.ones_like(coarse_mask)
        with one_thread():  # sums must not depend on the number of cores
            return warp_basis(
                self.fine.mesh.vertices,
                self.coarse.mesh.vertices,
                fine_mask,
                coarse_mask,
                self.template.landmarks.array(STERNUM),
                parameters,
            )
