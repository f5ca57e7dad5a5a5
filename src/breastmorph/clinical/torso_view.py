"""How torsos are seen to predict one region: aligned with each other, and divided into known and missing skin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np

from breastmorph.clinical.mirror_frame import MirrorFrame, mirror_frame
from breastmorph.clinical.missing_region import BOTH, MissingRegion, RegionLimits, missing_region
from breastmorph.clinical.seam import Seam
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.model.shape_model import ShapeModel

Evidence = Literal["surface", "points"]


@dataclass(frozen=True, eq=False)
class TorsoView:
    """How torsos are looked at to predict one region: aligned, and divided into known and missing skin.

    Attributes
    ----------
    frame : MirrorFrame
    region : MissingRegion
    seam : Seam
    normals : (n, 3) float
        Of the mean.
    evidence : {"surface", "points"}
        What counts as known; see :mod:`breastmorph.clinical.predictor`.
    with_scale : bool
        Whether torsos are brought to one size.
    along : float
        How much distances along the skin count in the plane of symmetry, where only the surface is evidence.
    midline : float
        How many times as much as other skin that over the sternum counts there, which no operation of a breast moves.
    """

    frame: MirrorFrame
    region: MissingRegion
    seam: Seam
    normals: Floats
    evidence: Evidence
    with_scale: bool
    along: float = 1.0
    midline: float = 1.0

    @classmethod
    def of(
        cls, model: ShapeModel, missing: str | Bools, evidence: Evidence, limits: RegionLimits, blend: float
    ) -> Self:
        """Prepare a model's mean; ``missing`` is a side, or painted vertices (n,); see ``PredictionParameters``."""
        frame = mirror_frame(model)
        region = missing_region(model, frame, missing, limits)
        seam = Seam(frame.mesh, region.missing, blend)
        normals = vertex_normals(frame.mean, frame.faces)
        return cls(frame, region, seam, normals, evidence, not model.keeps_size)

    def align(self, shape: Floats) -> tuple[Similarity, Floats]:
        """The similarity that aligns a shape (n, 3) with the mean by its thorax, and the shape there."""
        chest = self.chest
        to_mean = Similarity.fit(shape[chest], self.frame.mean[chest], with_scale=self.with_scale)
        return to_mean, to_mean.apply(shape)

    def known(self, aligned: Floats) -> Floats:
        """Evidence of a aligned shape, (f,)."""
        off = aligned - self.frame.mean
        if self.evidence == "points":
            return off[~self.region.missing].ravel()
        along: Floats = (off[self.seen] * self.normals[self.seen]).sum(axis=1)
        return along

    @property
    def seen(self) -> Bools:
        """Skin that is evidence by its surface, (n,): the other breast, and of both halves what lies away from both."""
        found: Bools = self.region.healthy | self.region.thorax
        return found

    @property
    def mirrors(self) -> bool:
        """Whether there is a breast whose mirror image shows the missing one."""
        return self.region.side != BOTH

    @property
    def chest(self) -> Bools:
        """Skin that shapes are aligned by, (n,)."""
        return self.region.thorax if self.evidence == "points" else self.region.untouched

    @cached_property
    def patch(self) -> Ints:
        """Triangles of the missing skin and around it, of the vertices ``seam.region`` and then ``seam.border``."""
        numbers = np.full(len(self.frame.mean), -1)
        numbers[self.seam.region] = np.arange(len(self.seam.region))
        numbers[self.seam.border] = len(self.seam.region) + np.arange(len(self.seam.border))
        found: Ints = numbers[self.frame.faces[self.region.missing[self.frame.faces].any(axis=1)]]
        return found

    def off_chest(self, aligned: Floats) -> float:
        """Root mean square distance of a aligned thorax from the mean's, mm."""
        chest = self.chest
        off = ((aligned - self.frame.mean)[chest] * self.normals[chest]).sum(axis=1)
        return float(np.sqrt((off**2).mean()))

    def plain_mirror_image(self, aligned: Floats) -> Floats:
        """A aligned shape mirrored across its own plane, that of its points."""
        return self.frame.own_mirror_image(self._without_missing(aligned), self.region.around)

    def mirror_image(self, aligned: Floats) -> Floats:
        """The mirror image that a prediction starts from: across the plane of what can be relied on."""
        if self.evidence == "points":
            return self.plain_mirror_image(aligned)
        by = self.region.around.copy()
        by[self.seam.border] = False  # their normals would be those of missing skin
        weights = np.where(self.region.midline, self.midline, 1.0)
        return self.frame.mirrored_by_surface(self._without_missing(aligned), by, self.along, weights)

    def _without_missing(self, aligned: Floats) -> Floats:
        # Where mirror images lie between vertices, some of these may be missing ones: they must not be looked at.
        return np.where(self.region.missing[:, None], self.frame.mean, aligned)

    def parts(self, aligned: Floats) -> tuple[Floats, Floats]:
        """A aligned shape about the mean: inside the region less what the seam continues, and at its border."""
        off = aligned - self.frame.mean
        border = off[self.seam.border]
        return off[self.seam.region] - self.seam.continued(border), border

    def joined(self, part: Floats, own: Floats, aligned: Floats) -> Floats:
        """Missing skin (m, 3) that fits the border of a shape ``own`` (n, 3), made to fit that of a aligned torso."""
        edge = self.seam.border
        return part + self.seam.continued(aligned[edge] - own[edge])
