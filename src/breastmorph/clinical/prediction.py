"""Predicting a missing breast: the likeliest shape given the rest of the torso, and how sure that is.

Shapes are laid on each other by the thorax away from both breasts, at their own size. The model counts every subject
twice, as she is and mirrored: nobody's left side is special. From what is known of a torso the missing skin follows by
the model's posterior (see :mod:`breastmorph.clinical.leave_one_out`); noise and share of the mirror image are those
that predict left-out subjects best, and what the prediction missed on them is its uncertainty. It holds all there is to
miss: what the known skin does not tell, what the model cannot express, and the registration.

What counts as known depends on the case. Where the breast is gone, the position of a registered point *along* the skin
must not count: the landmarks of both breasts steer one smooth registration, so in subjects with two breasts the points
of one side tell of the other, which a scan after a mastectomy cannot. There only the surface of the other breast and of
the thorax is evidence, not where on it a point lies. Where a breast that is there is replaced, all points count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.leave_one_out import Choice, LeftOut, choose
from breastmorph.clinical.missing_region import (
    MirrorFrame,
    MissingRegion,
    RegionLimits,
    mirror_frame,
    missing_region,
)
from breastmorph.clinical.patient import keeps_no_size
from breastmorph.clinical.seam import Seam
from breastmorph.clinical.training_shapes import TrainingShapes, training_shapes
from breastmorph.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints
from breastmorph.model.shape_model import ShapeModel

Evidence = Literal["surface", "points"]


@dataclass(frozen=True)
class PredictionParameters:
    """How a breast is predicted."""

    region: RegionLimits = field(default_factory=RegionLimits)
    blend: float = 12.0  # mm over which a difference at the region's border fades out
    noise: float | None = None  # mm; chosen by leave-one-out likelihood when not given
    noise_ratios: tuple[float, ...] = tuple(10.0 ** np.arange(-4.0, 1.51, 0.5))  # tried; to a shape's variance
    mirror_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)  # tried
    trial_points: int = 400  # of the missing region, on which noise and share are chosen
    synthetic_seed: int = 0  # of the subjects drawn where the model keeps none


@dataclass(frozen=True, eq=False)
class Prediction:
    """A predicted breast in its torso, in the frame and size of the shape that was given.

    Attributes
    ----------
    shape : (n, 3) float
        The likeliest shape; outside ``region.missing`` exactly what was given.
    mirrored : (n, 3) float
        The same with the mirror image of the other breast, joined in the same way.
    region : MissingRegion
    deviation : (n,) float
        Standard deviation of every point in mm, all directions together; 0 where known.
    normal_deviation : (n,) float
        The same along the predicted skin's normal.
    samples : (s, n, 3) float
        Equally plausible alternatives.
    evidence : {"surface", "points"}
    choice : Choice
        Noise and share of the mirror image, by leave-one-out likelihood.
    source : str
        On whom this was chosen and the uncertainty measured.
    spread : float
        This subject's uncertainty relative to the average one.
    warnings : tuple of str
    """

    shape: Floats
    mirrored: Floats
    region: MissingRegion
    deviation: Floats
    normal_deviation: Floats
    samples: Floats
    evidence: Evidence
    choice: Choice
    source: str
    spread: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is kept of the training shapes and their mirror images, (N, ...)."""

    subjects: Ints
    known: NDArray[np.float32]  # (N, f) evidence, about the mean
    targets: NDArray[np.float32]  # (N, m, 3) missing skin about the mean, without what the seam continues
    mirrors: NDArray[np.float32]  # (N, m, 3) the same of the shape's own mirror image

    def kept(self, keep: Bools) -> _Rows:
        return _Rows(self.subjects[keep], self.known[keep], self.targets[keep], self.mirrors[keep])


class BreastPredictor:
    """A model prepared to predict one missing region in many torsos.

    Parameters
    ----------
    model : ShapeModel
    missing : {"left", "right"} or (n,) bool
        The side, or painted vertices.
    evidence : {"surface", "points"}
        What counts as known; see the module.
    parameters : PredictionParameters, optional
    subjects : TrainingShapes, optional
        See :func:`breastmorph.clinical.training_shapes.training_shapes`; the model's own when not given.
    """

    def __init__(
        self,
        model: ShapeModel,
        missing: str | Bools,
        evidence: Evidence = "surface",
        parameters: PredictionParameters | None = None,
        subjects: TrainingShapes | None = None,
    ) -> None:
        p = parameters or PredictionParameters()
        _require_whole_torsos(model)
        found = subjects or training_shapes(model, seed=p.synthetic_seed)
        self.parameters, self.evidence, self.source = p, evidence, found.source
        self.frame: MirrorFrame = mirror_frame(model)
        self.region: MissingRegion = missing_region(model, self.frame, missing, p.region)
        self._with_scale = keeps_no_size(model)
        self._outside_span = 0.0 if found.own else model.noise_variance
        self._seam = Seam(self.frame.mesh, self.region.missing, p.blend)
        self._normals = vertex_normals(self.frame.mean, self.frame.faces)
        self._learn(self._read(found))

    def without(self, subject: int) -> Self:
        """The predictor of everybody but one subject: its noise, its mean and its uncertainty do not know her.

        The thorax of the common mean, on which all are laid, stays.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._learn(self._rows.kept(self._rows.subjects != subject))
        return other

    # --- what the subjects teach --------------------------------------------------------------------------------------

    def _read(self, found: TrainingShapes) -> _Rows:
        n, m, b = 2 * found.count, len(self._seam.region), len(self._seam.border)
        known: list[NDArray[np.float32]] = []
        inside = np.empty((2, n, m, 3), dtype=np.float32)
        border = np.empty((2, b, n, 3))
        for row in range(n):
            shape = self.frame.to_frame.apply(found.shape(row // 2))
            laid = self._laid(self.frame.mirrored(shape) if row % 2 else shape)[1]
            known.append(self._known(laid).astype(np.float32))
            for which, one in enumerate((laid, self._mirror_image(laid))):
                off = one - self.frame.mean
                inside[which, row], border[which, :, row] = off[self._seam.region], off[self._seam.border]
        for which in range(2):
            inside[which] -= self._seam.continued(border[which]).transpose(1, 0, 2)
        return _Rows(np.arange(n) // 2, np.stack(known), inside[0], inside[1])

    def _learn(self, rows: _Rows) -> None:
        p = self.parameters
        self._rows = rows
        self._known_mean = rows.known.mean(axis=0, dtype=np.float64)
        self._centred = rows.known - self._known_mean.astype(np.float32)
        left_out = LeftOut((self._centred @ self._centred.T).astype(np.float64), rows.subjects)
        self._left_out = left_out
        trial = np.flatnonzero(self.region.breast[self._seam.region])
        trial = trial[:: max(1, len(trial) // p.trial_points)]
        normals = self._normals[self._seam.region][trial]
        along = [
            np.einsum("nmd,md->nm", values[:, trial], normals) for values in (rows.targets, rows.mirrors)
        ]
        noises = left_out.noises(p.noise_ratios) if p.noise is None else np.array([p.noise])
        self.choice: Choice = choose(left_out, along[0], along[1], noises, p.mirror_shares)
        rest = rows.targets - np.float32(self.choice.mirror_share) * rows.mirrors
        self._rest_mean = rest.mean(axis=0, dtype=np.float64)
        self._rest = rest
        weights = left_out.residual_weights(self.choice.noise).astype(np.float32)
        # (N, m, 3): what the prediction missed on every left-out shape.
        self.missed: NDArray[np.float32] = np.tensordot(weights, rest, (1, 0))

    # --- one torso ----------------------------------------------------------------------------------------------------

    def _laid(self, shape: Floats) -> tuple[Similarity, Floats]:
        """A shape laid on the mean by its thorax, and how."""
        chest = self.region.thorax
        lay = Similarity.fit(shape[chest], self.frame.mean[chest], with_scale=self._with_scale)
        return lay, lay.apply(shape)

    def _known(self, laid: Floats) -> Floats:
        """Evidence of a laid shape, (f,)."""
        off = laid - self.frame.mean
        if self.evidence == "points":
            return off[~self.region.missing].ravel()
        seen = self.region.healthy | self.region.thorax
        along: Floats = (off[seen] * self._normals[seen]).sum(axis=1)
        return along

    def _mirror_image(self, laid: Floats) -> Floats:
        return self.frame.own_mirror_image(laid, ~(self.region.missing | self.region.healthy))

    def _joined(self, laid: Floats, replacement: Floats) -> Floats:
        """A replacement (n, 3) of the missing skin, joined to a laid shape; the missing part, (m, 3)."""
        at, border = self._seam.region, self._seam.border
        return replacement[at] + self._seam.continued(laid[border] - replacement[border])

    def raw(self, shape):
        lay, y = self._laid(shape)
        seam = self._seam
        products = self._centred @ (self._known(y) - self._known_mean).astype(np.float32)
        w = self._left_out.solve(products.astype(float), self.choice.noise)
        rest = self._rest_mean + np.tensordot(w.astype(np.float32), self._rest, (0, 0))
        mirror = self._mirror_image(y)
        off = mirror - self.frame.mean
        own = off[seam.region] - seam.continued(off[seam.border])
        m = self.frame.mean
        q = m[seam.region] + rest + self.choice.mirror_share * own + seam.continued((y - m)[seam.border])
        zm = self._joined(y, mirror)
        mm = self._joined(y, m)
        return lay, y, q, zm, mm


def _require_whole_torsos(model: ShapeModel) -> None:
    built = model.info.get("parameters")
    if isinstance(built, dict) and (built.get("part") or built.get("asymmetry")):
        raise BreastMorphError(
            "this model is not one of whole torsos", "Use a model built without --part and --asymmetry"
        )
