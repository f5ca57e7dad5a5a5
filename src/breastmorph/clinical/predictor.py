"""Predicting a missing breast: the likeliest shape given the rest of the torso, and how sure that is.

Shapes are aligned by the thorax away from both breasts, at their own size. The model counts every subject twice, as she
is and mirrored: left and right sides are alike. The prediction is the mean of the Gaussian of these shapes
after what is known of a torso was observed: that of ``ShapeModel.posterior``, as a test shows, written in products of
shapes instead of modes. It departs from it in five things:

- Noise and share of the mirror image are those that predict left-out subjects best (:class:`LeftOut` has all of them
  in closed form, which is why products are used), where ``posterior`` is given a noise.
- A share of the mirror image is taken as it is and the rest predicted: two sides of a woman are alike in ways that few
  subjects cannot show.
- Where the breast is absent, the predicted one has the volume that left-out breasts have on average: a mean shape is
  smoother than the shapes that it is a mean of, and has less volume.
- The prediction runs into the scan without a step (:class:`Seam`), where a posterior mean leaves one at the border.
- The uncertainty is what the prediction missed on left-out subjects. It contains all there is to miss: what the known
  skin does not show, what the model cannot express, and the registration; the posterior's variance has the first
  alone. It is larger where the prediction meets the scan badly at the region's border (:class:`BorderSpread`).

What counts as known depends on the case. Where the breast is absent, the position of a registered point *along* the
skin must not count: the landmarks of both breasts steer one smooth registration, so in subjects with two breasts the
points of one side depend on the other, which those of a scan after a mastectomy cannot. Nor must the skin beside the
lost breast: the operation changed it, and what it seems to show of the breast comes from the operation. There only the
surface of the other breast and of the thorax away from both is evidence, aligned by the sternum and the healthy half;
the mirror image stands on her own chest wall and sternum (:meth:`MirrorFrame.mirrored_by_surface`); and left-out
subjects are operated first (:mod:`breastmorph.clinical.missing_region`). Where a breast that is there is replaced,
all points count. Where both are missing, nothing is mirrored: the surface of the thorax is all the evidence there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.left_out import BorderSpread, Choice, LeftOut, best_choice
from breastmorph.clinical.mirror_frame import MirrorFrame
from breastmorph.clinical.missing_region import (
    BOTH,
    MissingRegion,
    OperatedSkin,
    OperationLimits,
    RegionLimits,
)
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.seam import Seam
from breastmorph.clinical.torso_view import Evidence, TorsoView
from breastmorph.clinical.training_shapes import TrainingShapes, training_shapes
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mesh.geometry import Similarity, face_cross, vertex_areas, vertex_normals
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.anatomy import SIZES_IN_MM

# How much worse than any of the model's subjects a scan fits.
_MISFITS = {
    "fits-worse/thorax": N_("its thorax fits {ratio:.1f} times worse than the worst of the model's subjects"),
    "fits-worse/known": N_(
        "what is known of it fits {ratio:.1f} times worse than the worst of the model's subjects"
    ),
}


@dataclass(frozen=True)
class PredictionParameters:
    """How a breast is predicted."""

    region: RegionLimits = field(default_factory=RegionLimits)
    operation: OperationLimits = field(default_factory=OperationLimits)
    blend: float = 12.0  # mm over which a difference at the region's border fades out
    rise: float = 5.0  # mm over which what an operation took beside the region is made good
    noise: float | None = None  # mm; chosen by leave-one-out likelihood when not given
    # By how much the registration of a woman with one breast places its points elsewhere than that of a woman with two,
    # mm, and how far these go together, mm: with surface evidence the noise is at least theirs. Leave-one-out over
    # registered subjects cannot know it, since the landmarks of both their breasts steered them.
    registration_error: float = 3.5
    registration_length: float = 60.0
    along_shares: tuple[float, ...] = (0.15, 0.4, 1.0)  # of distances along the skin in the plane of symmetry
    midline_weights: tuple[float, ...] = (
        1.0,
        10.0,
        100.0,
    )  # of the skin over the sternum there; both are tried
    trial_subjects: int = 20  # on whom these are chosen
    noise_ratios: tuple[float, ...] = tuple(
        10.0 ** np.arange(-4.0, 1.51, 0.5)
    )  # tried; to a shape's variance
    mirror_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)  # tried
    # Degrees of freedom of Student's distribution of what mirror images miss, with surface evidence: most women's
    # breasts are alike, and the few pairs that differ much must not decide what is predicted for all others.
    outlying: float = 1.0
    weighing_rounds: int = 4  # of weighing the training shapes by how usual they are
    trial_points: int = 400  # of the missing breast, on which noise and share are chosen
    spread_limits: tuple[float, float] = (0.5, 3.0)  # of BorderSpread
    unusual: float = 1.5  # times the worst subject's misfit: worth a warning ...
    refused: float = 4.0  # ... and not a torso of this model
    synthetic_seed: int = 0  # of the subjects drawn where the model keeps none


@dataclass(frozen=True, eq=False)
class _TrainingRows:
    """What is kept of the training shapes and their mirror images, (N, ...), all about the mean.

    ``inside`` is the missing skin less what the seam continues into it, ``border`` the known skin next to it; each of
    the shape and of its own mirror image.
    """

    subjects: Ints
    known: NDArray[np.float32]  # (N, f)
    inside: tuple[NDArray[np.float32], NDArray[np.float32]]  # (N, m, 3)
    border: tuple[NDArray[np.float32], NDArray[np.float32]]  # (N, b, 3)
    patch: NDArray[
        np.float32
    ]  # (N, m + b, 3) her own missing skin as it rises out of the border, and the border
    off_chest: Floats  # (N,) root mean square distance of the aligned thorax from the mean's, mm

    def kept(self, keep: Bools) -> _TrainingRows:
        return _TrainingRows(
            self.subjects[keep],
            self.known[keep],
            (self.inside[0][keep], self.inside[1][keep]),
            (self.border[0][keep], self.border[1][keep]),
            self.patch[keep],
            self.off_chest[keep],
        )


@dataclass(frozen=True, eq=False)
class _Fit:
    """What is fitted to the training shapes.

    Attributes
    ----------
    rows : _TrainingRows
    known_mean : (f,) float
    centred : (N, f) float32
        What is known of the rows about its mean.
    left_out : LeftOut
    choice : Choice
    missed : (N, m, 3) float32
        What the prediction missed on every left-out shape, aligned with the mean, mm.
    missed_volume : float
        By how much the volume of left-out breasts exceeds that of their predictions on average, mm cubed.
    worst_misfit, worst_off_chest : float
        Of any left-out shape.
    border_spread : BorderSpread
    """

    rows: _TrainingRows
    known_mean: Floats
    centred: NDArray[np.float32]
    left_out: LeftOut
    choice: Choice
    missed: NDArray[np.float32]
    missed_volume: float
    worst_misfit: float
    worst_off_chest: float
    border_spread: BorderSpread


@dataclass(frozen=True, eq=False)
class BreastPredictor:
    """A model prepared to predict one missing region in many torsos; :func:`fit_predictor` makes it.

    Attributes
    ----------
    view : TorsoView
    parameters : PredictionParameters
    source : str
        Of the training shapes, in words.
    lost_variance : float
        Variance of a coordinate that they lack, mm squared.
    fitted : _Fit
    columns : mapping from name to (k,) float
        What a table says of them; see :class:`TrainingShapes`.
    """

    view: TorsoView
    parameters: PredictionParameters
    source: str
    lost_variance: float
    fitted: _Fit
    columns: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def frame(self) -> MirrorFrame:
        """The symmetric mean that torsos are aligned with."""
        return self.view.frame

    @property
    def region(self) -> MissingRegion:
        """What is predicted."""
        return self.view.region

    @property
    def choice(self) -> Choice:
        """Noise and share of the mirror image."""
        return self.fitted.choice

    @property
    def missed(self) -> NDArray[np.float32]:
        """What the prediction missed on every left-out shape, aligned with the mean, (N, m, 3), mm."""
        return self.fitted.missed

    def without(self, subject: int) -> Self:
        """The predictor of all subjects but one: its noise, its mean and its uncertainty do not know her.

        The thorax of the common mean, with which all are aligned, stays.
        """
        others = self.fitted.rows.kept(self.fitted.rows.subjects != subject)
        return replace(self, fitted=_fit(self.view, others, self.lost_variance, self.parameters))

    def predict(
        self, shape: Floats, earlier: Floats | None = None, numbers: Mapping[str, float] | None = None
    ) -> Prediction:
        """Predict the missing region of a torso.

        Parameters
        ----------
        shape : (n, 3) float
            In the model's correspondence, mm, in any pose. What it has in the missing region does not matter.
        earlier : (n, 3) float, optional
            The same woman before the operation, in any pose. Then the breast of that time takes the place.
        numbers : mapping from a name of ``columns`` to her number, optional
        """
        view, fitted, mean = self.view, self.fitted, self.frame.mean
        to_mean, aligned = self._align(shape)
        known = view.known(aligned) - fitted.known_mean
        products = (fitted.centred @ known.astype(np.float32)).astype(np.float64)
        weights = fitted.left_out.solve(products, self.choice.noise)
        warnings, excess = self._judged(aligned, known, weights)
        mirror, plain = view.mirror_image(aligned), view.plain_mirror_image(aligned)
        inside, border = (
            self._combined(weights, rows, part)
            for rows, part in zip((fitted.rows.inside, fitted.rows.border), view.parts(mirror), strict=True)
        )
        at, edge = view.seam.region, view.seam.border
        mismatch = aligned[edge] - mean[edge] - border
        off = float(np.sqrt((mismatch**2).sum(axis=1).mean()))
        spread = fitted.border_spread.factor(off) * excess
        part, own, missed = mean[at] + inside, mean, self.missed
        given: tuple[str, ...] = ()
        if numbers and earlier is None:
            further, missed = self._further(weights, numbers)
            part, given = part + further, tuple(f"{name} {value:g}" for name, value in numbers.items())
        # A prediction's own border is that of the mean: what it has there beyond it, the parts contain already.
        if earlier is not None:
            own, ratio = self._earlier(shape, to_mean, earlier)
            part, given, spread = own[at], ("an earlier scan",), ratio
        joined = view.joined(part, own, aligned)
        if earlier is None and view.evidence == "surface":
            joined += self._fuller(np.vstack([joined, aligned[edge]]), missed)
        back = to_mean.inverse()
        turned = (spread * back.scale / np.sqrt(len(self.missed)) * back.rotation.T).astype(np.float32)
        return Prediction(
            shape=self._completed(shape, back.apply(joined)),
            mirrored=self._completed(shape, back.apply(view.joined(plain[at], plain, aligned))),
            faces=self.frame.faces,
            region=self.region,
            modes=missed @ turned,
            rest_variance=self.lost_variance * (spread * back.scale) ** 2,
            evidence=view.evidence,
            choice=self.choice,
            source=self.source,
            mismatch=off * back.scale,
            spread=spread,
            warnings=warnings,
            given=given,
        )

    def _further(self, weights: Floats, numbers: Mapping[str, float]) -> tuple[Floats, NDArray[np.float32]]:
        """How numbers of her change the missing skin, (m, 3), and what is then missed on left-out shapes.

        What the known skin does not determine of a number goes with what it does not determine of the breast.
        """
        rows, left_out = self.fitted.rows, self.fitted.left_out
        table = np.stack([self.columns[name][rows.subjects] for name in numbers], axis=1)
        known = np.isfinite(table.sum(axis=1))
        values = np.where(known[:, None], table, table[known].mean(axis=0))
        off = np.where(known[:, None], left_out.residual_weights(self.choice.noise) @ values, 0.0)
        expected = (weights + left_out.weights / len(weights)) @ values
        flat = self.missed.reshape(len(off), -1)
        slopes = (np.linalg.pinv(off) @ flat).astype(np.float32)
        further = (np.array(list(numbers.values())) - expected) @ slopes
        # Slopes were fitted to the very shapes: they miss a little more on others.
        free = len(left_out.groups)
        rest = (flat - off.astype(np.float32) @ slopes) * np.float32(
            np.sqrt(free / max(free - len(numbers), 1))
        )
        return further.reshape(-1, 3), rest.reshape(self.missed.shape)

    def _fuller(self, patch: Floats, missed: NDArray[np.float32]) -> Floats:
        """What a predicted breast with its border, (m + b, 3), needs to have the volume of breasts like it, (m, 3).

        An average is smoother than what it is an average of, and has less volume. Of all shapes with so much volume, it
        is the likeliest: the way that the missed shapes have more volume.
        """
        slope = _volume_slope(patch, self.view.patch)[: len(self.view.seam.region)]
        by_shape = np.tensordot(missed, slope.astype(np.float32), 2).astype(np.float64)
        way = np.tensordot(by_shape.astype(np.float32), missed, (0, 0))
        found: Floats = way.astype(np.float64) * (
            self.fitted.missed_volume / max(float(by_shape @ by_shape), 1e-12)
        )
        return found

    def _earlier(self, shape: Floats, to_mean: Similarity, earlier: Floats) -> tuple[Floats, float]:
        """A torso from before the operation aligned by skin that it left alone; the uncertainty's size.

        How far the other breast, which was not operated, is off its earlier shape, tells how far this one may be.
        """
        view = self.view
        chest, inner = view.region.untouched, view.region.breast
        healthy = view.region.healthy if view.mirrors else chest
        at_own_size = Similarity.fit(earlier[chest], shape[chest], with_scale=False)
        there, aligned = to_mean.after(at_own_size).apply(earlier), to_mean.apply(shape)
        off = ((there - aligned)[healthy] * vertex_normals(aligned, self.frame.faces)[healthy]).sum(axis=1)
        normals = view.normals[inner]
        usual = np.einsum("nmd,md->nm", self.missed[:, inner[view.seam.region]], normals)
        return there, float(np.sqrt((off**2).mean() / max(float((usual**2).mean()), 1e-12)))

    def mean_shape(self, shape: Floats) -> Floats:
        """The torso with the model's mean breast joined to it, (n, 3): what is known without any evidence."""
        to_mean, aligned = self.view.align(shape)
        mean = self.frame.mean
        joined = self.view.joined(mean[self.view.seam.region], mean, aligned)
        return self._completed(shape, to_mean.inverse().apply(joined))

    def _align(self, shape: Floats) -> tuple[Similarity, Floats]:
        """A shape on the mean; refuses one of another model or unit."""
        if shape.shape != self.frame.mean.shape:
            raise BreastMorphError(
                "a shape of {n_shape} vertices for a model of {n_mean}",
                "Register the scan with the template that the model was built with",
                n_shape=len(shape),
                n_mean=len(self.frame.mean),
            )
        to_mean, aligned = self.view.align(shape)
        if not SIZES_IN_MM[0] < to_mean.scale < SIZES_IN_MM[1]:
            raise MeshProblem(
                "the scan is {scale:.2g} times as large as the model's mean",
                "Give it in mm",
                scale=1.0 / to_mean.scale,
            )
        return to_mean, aligned

    def _completed(self, shape: Floats, part: Floats) -> Floats:
        whole = np.array(shape, dtype=np.float64)
        whole[self.view.seam.region] = part
        return whole

    def _combined(
        self, weights: Floats, parts: tuple[NDArray[np.float32], NDArray[np.float32]], mirror: Floats
    ) -> Floats:
        """Prediction of a part: the share of the mirror image, and the weighted rest of the training shapes."""
        share = self.choice.mirror_share
        # The weights sum to zero, so the mean of the rest need not be taken off.
        mixed = weights + self.fitted.left_out.weights / len(weights)
        rest = [np.tensordot(mixed.astype(np.float32), part, (0, 0)) for part in parts]
        combined: Floats = rest[0] - share * rest[1] + share * mirror
        return combined

    def _judged(self, aligned: Floats, known: Floats, weights: Floats) -> tuple[tuple[Finding, ...], float]:
        """Warnings, and how many times worse the known skin fits than that of any subject (at least 1).

        Refuses what is no torso of this model.
        """
        p = self.parameters
        misfit = float(np.linalg.norm(known - weights.astype(np.float32) @ self.fitted.centred))
        ratios = {
            "fits-worse/thorax": self.view.off_chest(aligned) / max(self.fitted.worst_off_chest, 1e-9),
            "fits-worse/known": misfit / max(self.fitted.worst_misfit, 1e-9),
        }
        what, worst = max(ratios.items(), key=lambda item: item[1])
        if not worst <= p.refused:
            raise MeshProblem(
                "this scan does not look like the model: {why}",
                "Check its landmarks and its registration, or use a model that knows such torsos",
                code="unusable-surface/fits-worse",
                why=warning(what, _MISFITS[what], ratio=worst),
            )
        warnings = tuple(
            warning(what, _MISFITS[what], ratio=ratio) for what, ratio in ratios.items() if ratio > p.unusual
        )
        return warnings, max(1.0, worst)


def fit_predictor(
    model: ShapeModel,
    missing: str | Bools,
    evidence: Evidence = "surface",
    parameters: PredictionParameters | None = None,
    subjects: TrainingShapes | None = None,
) -> BreastPredictor:
    """Fit to a model's subjects how a region is predicted.

    Parameters
    ----------
    model : ShapeModel
    missing : {"left", "right", "both"} or (n,) bool
        The side, or painted vertices.
    evidence : {"surface", "points"}
        What counts as known; see the module. Where both are missing, it is the surface of the thorax.
    parameters : PredictionParameters, optional
    subjects : TrainingShapes, optional
        See :func:`training_shapes`; the model's own when not given.
    """
    p = parameters or PredictionParameters()
    if not model.of_whole_torsos:
        raise BreastMorphError(
            "this model is not one of whole torsos", "Use a model of whole torsos", code="part-of-torso"
        )
    found = subjects or training_shapes(model, seed=p.synthetic_seed)
    if isinstance(missing, str) and missing == BOTH:
        evidence = "surface"
    view = _with_best_plane(TorsoView.of(model, missing, evidence, p.region, p.blend), found, p)
    fitted = _fit(view, _training_rows(view, found, p), found.lost_variance, p)
    return BreastPredictor(view, p, found.source, found.lost_variance, fitted, found.columns)


def _with_best_plane(view: TorsoView, found: TrainingShapes, p: PredictionParameters) -> TorsoView:
    """The view whose mirror images are nearest to the breasts of subjects operated on one side."""
    if view.evidence == "points" or not view.mirrors:
        return view
    operation = OperatedSkin(view.frame, view.region, p.operation)
    breast = view.region.breast
    tried = [replace(view, along=a, midline=w) for a in p.along_shares for w in p.midline_weights]
    missed = np.zeros(len(tried))
    for subject in range(0, found.count, max(1, found.count // p.trial_subjects)):
        aligned = view.align(view.frame.to_frame.apply(found.shape(subject)))[1]
        skin = operation.of(aligned, subject)
        for k, one in enumerate(tried):
            off = (one.mirror_image(skin) - aligned)[breast]
            missed[k] += ((off * view.normals[breast]).sum(axis=1) ** 2).mean()
    return tried[int(missed.argmin())]


def _training_rows(view: TorsoView, found: TrainingShapes, p: PredictionParameters) -> _TrainingRows:
    frame, seam = view.frame, view.seam
    operation = OperatedSkin(frame, view.region, p.operation) if view.evidence == "surface" else None
    n, m, b = 2 * found.count, len(seam.region), len(seam.border)
    known: list[NDArray[np.float32]] = []
    inside, border = np.empty((2, n, m, 3), dtype=np.float32), np.empty((2, n, b, 3), dtype=np.float32)
    off_chest, beside = np.empty(n), np.empty((n, b, 3), dtype=np.float32)
    for row in range(n):
        shape = frame.to_frame.apply(found.shape(row // 2))
        aligned = view.align(frame.mirrored(shape) if row % 2 else shape)[1]
        # Her breast is to be predicted from the skin that an operation would leave.
        skin = operation.of(aligned, row) if operation else aligned
        if not view.mirrors:  # the skin that she is aligned by is operated too
            again, skin = view.align(skin)
            aligned = again.apply(aligned)
        known.append(view.known(skin).astype(np.float32))
        off_chest[row] = view.off_chest(skin)
        for which, one in enumerate((aligned, view.mirror_image(skin))):
            off = one - frame.mean
            inside[which, row], border[which, row] = off[seam.region], off[seam.border]
        beside[row] = (skin - aligned)[seam.border]
    border[0] += beside
    patch = np.concatenate([inside[0], border[0]], axis=1)
    for which in range(2):
        ends = border[which].transpose(1, 0, 2).astype(np.float64)
        inside[which] -= seam.continued(ends).transpose(1, 0, 2)
    if operation:
        # Her breast rises out of sunken skin, on a short way but without a step.
        rising = Seam(frame.mesh, view.region.missing, p.rise)
        risen = rising.continued(beside.transpose(1, 0, 2).astype(np.float64)).transpose(1, 0, 2)
        inside[0] += risen
        patch[:, :m] += risen
    patch += np.vstack([frame.mean[seam.region], frame.mean[seam.border]]).astype(np.float32)
    inner, outer = (inside[0], inside[1]), (border[0], border[1])
    return _TrainingRows(np.arange(n) // 2, np.stack(known), inner, outer, patch, off_chest)


def _volume(patch: Floats, faces: Ints) -> float:
    """Of the cone from the origin to a patch of skin; with its border fixed, differences are what lies between two."""
    a, b, c = (patch[corner] for corner in faces.T)
    return float((a * np.cross(b, c)).sum()) / 6.0


def _volume_slope(patch: Floats, faces: Ints) -> Floats:
    """Its derivative by the points, (k, 3), but for those at the border."""
    slope = np.zeros_like(patch)
    for corner in range(3):
        np.add.at(slope, faces[:, corner], face_cross(patch, faces) / 6.0)
    return slope


def _fit(view: TorsoView, rows: _TrainingRows, lost_variance: float, p: PredictionParameters) -> _Fit:
    """Everything that is fitted to the training shapes, with each subject left out in turn."""
    known_mean: Floats = rows.known.mean(axis=0, dtype=np.float64)
    centred: NDArray[np.float32] = rows.known - known_mean.astype(np.float32)
    gram = (centred @ centred.T).astype(np.float64)
    # What a truncation cut off, every real torso has, and each another one: products with itself contain it.
    gram += lost_variance * rows.known.shape[1] * np.eye(len(gram))
    left_out, choice = _choose(view, rows, gram, lost_variance, p)
    known_mean = known_mean + left_out.weights @ centred / len(centred)
    weights, share = left_out.residual_weights(choice.noise), np.float32(choice.mirror_share)
    missed, mismatch = (
        np.tensordot(weights.astype(np.float32), part[0] - share * part[1], (1, 0))
        for part in (rows.inside, rows.border)
    )
    off_border = np.sqrt((mismatch**2).sum(axis=2).mean(axis=1))
    return _Fit(
        rows,
        known_mean,
        rows.known - known_mean.astype(np.float32),
        left_out,
        choice,
        missed,
        missed_volume=_missed_volume(view, rows, missed),
        worst_misfit=float(np.sqrt(np.einsum("ij,jk,ik->i", weights, gram, weights).max())),
        worst_off_chest=float(np.hypot(rows.off_chest.max(), np.sqrt(lost_variance))),
        border_spread=BorderSpread.fit(off_border, _error_sizes(view, missed), p.spread_limits),
    )


def _choose(
    view: TorsoView, rows: _TrainingRows, gram: Floats, lost_variance: float, p: PredictionParameters
) -> tuple[LeftOut, Choice]:
    """Noise and share of the mirror image by left-out subjects, who are weighed by how usual they are."""
    left_out = LeftOut.of(gram, rows.subjects)
    inner = np.flatnonzero(view.region.breast[view.seam.region])
    trial = inner[:: max(1, len(inner) // p.trial_points)]
    normals = view.normals[view.seam.region][trial]
    shape, mirror = (np.einsum("nmd,md->nm", part[:, trial], normals) for part in rows.inside)
    noises = np.array([p.noise]) if p.noise is not None else _noises(view, left_out, p)
    # Without a breast on that side nothing contradicts her own mirror image: only what it misses is predicted.
    shares = (
        p.mirror_shares if view.evidence == "points" else p.mirror_shares[-1:] if view.mirrors else (0.0,)
    )
    choice = best_choice(left_out, shape, mirror, noises, shares, lost_variance)
    if view.evidence == "surface" and view.mirrors:
        for _ in range(p.weighing_rounds):
            off = left_out.residual_weights(choice.noise) @ (shape - choice.mirror_share * mirror)
            usual = left_out.usual((off**2).mean(axis=1), p.outlying)
            left_out = LeftOut.of(gram, rows.subjects, usual)
        choice = best_choice(left_out, shape, mirror, noises, shares, lost_variance)
    return left_out, choice


def _missed_volume(view: TorsoView, rows: _TrainingRows, missed: NDArray[np.float32]) -> float:
    """By how much the volume of left-out breasts exceeds that of their predictions on average, mm cubed."""
    found = []
    for patch, off in zip(rows.patch.astype(np.float64), missed, strict=True):
        predicted = patch.copy()
        predicted[: len(off)] -= off
        found.append(_volume(patch, view.patch) - _volume(predicted, view.patch))
    return float(np.mean(found))


def _error_sizes(view: TorsoView, missed: NDArray[np.float32]) -> Floats:
    """How large the errors of every left-out shape are along the breast's normals, relative to their average, (N,)."""
    inner = np.flatnonzero(view.region.breast[view.seam.region])
    along = np.einsum("nmd,md->nm", missed[:, inner], view.normals[view.seam.region][inner])
    return np.sqrt((along**2 / np.maximum((along**2).mean(axis=0), 1e-12)).mean(axis=1))


def _noises(view: TorsoView, left_out: LeftOut, p: PredictionParameters) -> Floats:
    """Noises to choose from, mm."""
    tried = left_out.noises(p.noise_ratios)
    if view.evidence == "points":
        return tried
    # k points that err together by e are as good as one of them: as independent ones they err by e sqrt(k).
    area = vertex_areas(view.frame.mean, view.frame.faces)[view.seen].mean()
    together = np.pi * p.registration_length**2 / area
    found: Floats = np.maximum(tried, p.registration_error * np.sqrt(max(together, 1.0)))
    return found
