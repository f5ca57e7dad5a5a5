"""Predicting a missing breast: the likeliest shape given the rest of the torso, and how sure that is.

Shapes are laid on each other by the thorax away from both breasts, at their own size. The model counts every subject
twice, as she is and mirrored: nobody's left side is special. From what is known of a torso the missing skin follows by
the model's posterior (see ``leave_one_out``): a share of the mirror image as it is, and the
model's prediction of the rest. Noise and share are those that predict left-out subjects best, and what the prediction
missed on them is its uncertainty. It holds all there is to miss: what the known skin does not tell, what the model
cannot express, and the registration. It is larger where the prediction meets the scan badly at the region's border.

What counts as known depends on the case. Where the breast is gone, the position of a registered point *along* the skin
must not count: the landmarks of both breasts steer one smooth registration, so in subjects with two breasts the points
of one side tell of the other, which a scan after a mastectomy cannot. There only the surface of the other breast and of
the thorax is evidence, not where on it a point lies. Where a breast that is there is replaced, all points count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags
from scipy.sparse.linalg import splu

from breastmorph.clinical.features import Reading
from breastmorph.clinical.measures import MeasureTable
from breastmorph.clinical.missing_region import (
    Choice,
    LeftOut,
    MirrorFrame,
    MissingRegion,
    RegionLimits,
    choose,
    mirror_frame,
    missing_region,
)
from breastmorph.cohort import Cohort
from breastmorph.cohort.cohort import alike, without_copies
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.foundation.showing import Shown, doubted
from breastmorph.mesh.geometry import Similarity, vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import built_with, usable
from breastmorph.model.shape_model import ShapeModel

# --------------------------------------------------------------------------------------------------------------------
# The subjects behind a model: as they were where a cohort or the model keeps them, otherwise drawn to fit it
# --------------------------------------------------------------------------------------------------------------------

_FEWEST = 5  # subjects for a leave-one-out study


@dataclass(frozen=True, eq=False)
class TrainingShapes:
    """Shapes in a model's correspondence.

    Attributes
    ----------
    count : int
    shape : callable
        From a subject's number to her shape (n, 3), mm, in a frame of her own.
    source : str
        Where they come from, in words.
    lost_variance : float
        Variance of a coordinate that the subjects have beyond these shapes, mm squared: what a truncation cut off.
    """

    count: int
    shape: Callable[[int], Floats]
    source: str
    lost_variance: float


def training_shapes(model: ShapeModel, cohort: Cohort | None = None, seed: int = 0) -> TrainingShapes:
    """The subjects of a model.

    Without a cohort and without stored coefficients, subjects are drawn such that their mean and covariance are exactly
    the model's. Leave-one-out over them tells what a model of so many subjects misses, as far as people are normally
    distributed about the mean; no data of a person is needed.

    Parameters
    ----------
    model : ShapeModel
    cohort : Cohort, optional
        The registered scans that the model was built from.
    seed : int
        Of the drawn subjects.
    """
    if cohort is not None:
        found = without_copies(usable(cohort))  # a left-out subject must not have a twin
        if not np.array_equal(found.template.mesh.faces, model.faces):
            raise BreastMorphError(
                "the cohort does not have the model's triangles",
                "Give the registered folder that the model was built from",
            )
        subjects = TrainingShapes(len(found), found.shape, f"{len(found)} registered subjects", 0.0)
    elif model.training is not None:
        scores = _different(model, model.training.scores)
        subjects = _of_scores(model, scores, f"the model's {len(scores)} subjects")
    else:
        scores = _drawn(model, seed)
        subjects = _of_scores(
            model, scores, f"{len(scores)} subjects drawn to fit the model, which keeps none"
        )
    if subjects.count < _FEWEST:
        enough = "a model of" if cohort is None else "a cohort with both breasts of"
        raise BreastMorphError(
            f"{subjects.count} subjects are too few to predict from", f"Use {enough} at least {_FEWEST}"
        )
    return subjects


def _of_scores(model: ShapeModel, scores: Floats, source: str) -> TrainingShapes:
    return TrainingShapes(len(scores), lambda i: model.instance(scores[i]), source, model.noise_variance)


def _different(model: ShapeModel, scores: Floats) -> Floats:
    """Scores (k, q) with every subject once."""
    # Of a truncated model too little is left to tell two people from one: only equal scores are copies.
    groups = alike(scores, model.n_vertices) if not model.noise_variance else np.round(scores, 2)
    first = np.unique(groups, axis=0, return_index=True)[1]
    return scores if len(first) == len(scores) else scores[np.sort(first)]


def _drawn(model: ShapeModel, seed: int) -> Floats:
    """Coefficients (k, q) with mean 0 and exactly the model's variances."""
    known = model.info.get("subjects")
    q = model.n_components
    k = max(known if isinstance(known, int) else 0, q + 1)
    columns = np.random.default_rng(seed).standard_normal((k, q))
    columns -= columns.mean(axis=0)
    orthonormal = np.linalg.qr(columns)[0]
    found: Floats = orthonormal * (np.sqrt(k - 1.0) * model.deviations)
    return found


# --------------------------------------------------------------------------------------------------------------------
# A seamless join: how a difference at the border of a region fades out inside it
# --------------------------------------------------------------------------------------------------------------------

_COLUMNS = 96  # right-hand sides at a time


class Seam:
    """The continuation of a difference into a region.

    Parameters
    ----------
    mesh : TriangleMesh
        A template or a model's mean.
    region : (n,) bool
        Vertices where the difference is not known.
    length : float
        mm over which it fades out.
    """

    def __init__(self, mesh: TriangleMesh, region: Bools, length: float) -> None:
        import igl

        laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()
        areas = vertex_areas(mesh.vertices, mesh.faces)
        areas = np.maximum(areas, 1e-6 * areas.mean())
        energy = (laplacian.T @ diags(1.0 / areas) @ laplacian + diags(areas / length**4)).tocsr()
        self.region = np.flatnonzero(region)
        rows = energy[self.region]
        around = np.zeros(mesh.n_vertices, bool)
        around[rows.indices] = True
        self.border = np.flatnonzero(around & ~region)
        self._given = rows[:, self.border]
        # Symmetric, so that the ordering by A + A' keeps the factors small.
        self._factor = splu(
            rows[:, self.region].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
        )

    def continued(self, at_border: Floats) -> Floats:
        """The field inside the region, (m, ...), of a difference at the vertices ``border``, (b, ...)."""
        given = self._given @ at_border.reshape(len(self.border), -1)
        out = np.empty_like(given)
        for start in range(0, given.shape[1], _COLUMNS):
            part = slice(start, start + _COLUMNS)
            out[:, part] = self._factor.solve(-given[:, part])
        found: Floats = out.reshape(len(self.region), *at_border.shape[1:])
        return found


# --------------------------------------------------------------------------------------------------------------------
# The value of a prediction: a torso with a predicted breast, its alternatives and its uncertainty
# --------------------------------------------------------------------------------------------------------------------

Evidence = Literal["surface", "points"]

_SAMPLED = 0.95  # share of the variance that samples show


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    """A predicted breast in its torso, in the frame and size of the shape that was given.

    Attributes
    ----------
    shape : (n, 3) float
        The likeliest shape; outside ``region.missing`` exactly what was given.
    mirrored : (n, 3) float
        The same with the mirror image of the other breast, joined in the same way.
    faces : (f, 3) int
    region : MissingRegion
    modes : (N, m, 3) float32
        How the missing vertices may lie elsewhere, mm: the likeliest shape plus these with independent standard normal
        factors is a plausible one.
    rest_variance : float
        Variance of a coordinate that the modes do not hold, mm squared.
    evidence : {"surface", "points"}
    choice : Choice
        Noise and share of the mirror image, by leave-one-out likelihood.
    source : str
        On whom this was chosen and the uncertainty measured.
    mismatch : float
        How far the prediction lay off the scan at the region's border before they were joined, mm.
    spread : float
        This subject's uncertainty relative to the average one: by that mismatch, and by how much worse the known skin
        fits than that of any subject.
    warnings : tuple of str
    measures : MeasureTable
        Of the predicted breast with their standard deviations, and of the other one.
    """

    shape: Floats
    mirrored: Floats
    faces: Ints
    region: MissingRegion
    modes: NDArray[np.float32]
    rest_variance: float
    evidence: Evidence
    choice: Choice
    source: str
    mismatch: float
    spread: float
    warnings: tuple[str, ...] = ()
    measures: MeasureTable = field(default_factory=lambda: MeasureTable("not measured", ()))

    def __repr__(self) -> str:
        mean = self.sd_normal[self.region.breast].mean()
        doubts = doubted(self.warnings)
        return f"Prediction({self.region.side} breast, ± {mean:.1f} mm along the normal on average{doubts})"

    @property
    def mesh(self) -> TriangleMesh:
        """The torso with the likeliest breast."""
        return TriangleMesh(self.shape, self.faces)

    def samples(self, count: int, seed: int = 0) -> list[TriangleMesh]:
        """Plausible alternatives to ``mesh``; the same seed, the same shapes."""
        rng = np.random.default_rng(seed)
        return [TriangleMesh(self.drawn(rng), self.faces) for _ in range(count)]

    @cached_property
    def sd(self) -> Floats:
        """Standard deviation of every point in mm, all directions together, (n,); 0 where known."""
        return self._by_vertex(np.einsum("nmd,nmd->m", self.modes, self.modes) + 3.0 * self.rest_variance)

    @cached_property
    def sd_normal(self) -> Floats:
        """Standard deviation of every point along the predicted skin's normal in mm, (n,); 0 where known."""
        normals = vertex_normals(self.shape, self.faces)[self.region.missing]
        along = np.einsum("nmd,md->nm", self.modes, normals.astype(np.float32))
        return self._by_vertex((along**2).sum(axis=0) + self.rest_variance)

    def drawn(self, rng: np.random.Generator) -> Floats:
        """A plausible alternative, (n, 3), of the directions that hold nearly all of the variance.

        The rest is fine wrinkles that the registrations of the left-out subjects differ in; nobody has them.
        """
        shape = self.shape.copy()
        draw = rng.standard_normal(len(self.leading)).astype(np.float32)
        shape[self.region.missing] += np.tensordot(draw, self.leading, (0, 0))
        return shape

    @cached_property
    def leading(self) -> NDArray[np.float32]:
        """The principal directions of the modes, (q, m, 3)."""
        flat = self.modes.reshape(len(self.modes), -1)
        values, vectors = np.linalg.eigh(flat @ flat.T)
        order = np.argsort(values)[::-1]
        held = np.cumsum(values[order]) / max(float(values.sum()), 1e-30)
        kept = order[: int(np.searchsorted(held, _SAMPLED) + 1)]
        return (vectors[:, kept].T @ flat).reshape(len(kept), *self.modes.shape[1:])

    def _by_vertex(self, variance: NDArray[np.floating]) -> Floats:
        out = np.zeros(len(self.shape))
        out[self.region.missing] = np.sqrt(variance)
        return out


def deviation_of(reading: Reading, prediction: Prediction) -> float:
    """Standard deviation of a measure of a predicted shape, from its derivative by the vertices."""
    gradient = np.zeros_like(prediction.shape)
    gradient[reading.vertices] = reading.gradient
    missing = gradient[prediction.region.missing]
    by_mode = np.tensordot(prediction.modes, missing.astype(np.float32), 2)
    rest = np.sqrt(prediction.rest_variance) * np.linalg.norm(missing)
    return float(np.hypot(np.linalg.norm(by_mode), rest))


# --------------------------------------------------------------------------------------------------------------------
# Predicting a missing breast: the likeliest shape given the rest of the torso, and how sure that is
# --------------------------------------------------------------------------------------------------------------------

_SIZES = (0.5, 2.0)  # of the model's mean: beyond, the shape is not in mm
_SPREADS = (0.5, 3.0)  # a subject's uncertainty relative to the average one


@dataclass(frozen=True)
class PredictionParameters:
    """How a breast is predicted."""

    region: RegionLimits = field(default_factory=RegionLimits)
    blend: float = 12.0  # mm over which a difference at the region's border fades out
    noise: float | None = None  # mm; chosen by leave-one-out likelihood when not given
    # Errors of a registration across the skin, mm, and how far they go together, mm: with surface evidence the noise is
    # at least theirs. Leave-one-out over registered subjects cannot know them, since all share their habits.
    registration_error: float = 0.7
    registration_length: float = 20.0
    noise_ratios: tuple[float, ...] = tuple(
        10.0 ** np.arange(-4.0, 1.51, 0.5)
    )  # tried; to a shape's variance
    mirror_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)  # tried
    trial_points: int = 400  # of the missing breast, on which noise and share are chosen
    unusual: float = 1.5  # times the worst subject's misfit: worth a warning ...
    refused: float = 4.0  # ... and not a torso of this model
    synthetic_seed: int = 0  # of the subjects drawn where the model keeps none


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is kept of the training shapes and their mirror images, (N, ...), all about the mean.

    ``inside`` is the missing skin less what the seam continues into it, ``border`` the known skin next to it; each of
    the shape and of its own mirror image.
    """

    subjects: Ints
    known: NDArray[np.float32]  # (N, f)
    inside: tuple[NDArray[np.float32], NDArray[np.float32]]  # (N, m, 3)
    border: tuple[NDArray[np.float32], NDArray[np.float32]]  # (N, b, 3)
    off_chest: Floats  # (N,) root mean square distance of the laid thorax from the mean's, mm

    def kept(self, keep: Bools) -> _Rows:
        return _Rows(
            self.subjects[keep],
            self.known[keep],
            (self.inside[0][keep], self.inside[1][keep]),
            (self.border[0][keep], self.border[1][keep]),
            self.off_chest[keep],
        )


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
        See :func:`breastmorph.clinical.predictor.training_shapes`; the model's own when not given.
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
        self._with_scale = not model.keeps_size
        self._lost_variance = found.lost_variance
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

    def predict(self, shape: Floats) -> Prediction:
        """Predict the missing region of a torso.

        Parameters
        ----------
        shape : (n, 3) float
            In the model's correspondence, mm, in any pose. What it has in the missing region does not matter.
        """
        if shape.shape != self.frame.mean.shape:
            raise BreastMorphError(
                f"a shape of {len(shape)} vertices for a model of {len(self.frame.mean)}",
                "Register the scan with the template that the model was built with",
            )
        lay, laid = self._laid(shape)
        if not _SIZES[0] < lay.scale < _SIZES[1]:
            raise MeshProblem(
                f"the scan is {1.0 / lay.scale:.2g} times as large as the model's mean", "Give it in mm"
            )
        known = self._known(laid) - self._known_mean
        weights = self._left_out.solve(
            (self._centred @ known.astype(np.float32)).astype(np.float64), self.choice.noise
        )
        warnings, excess = self._judged(laid, known, weights)
        mirror = self._mirror_image(laid)
        inside, border = (
            self._combined(weights, which, self._parts(mirror)[k])
            for k, which in enumerate((self._rows.inside, self._rows.border))
        )
        at, edge = self._seam.region, self._seam.border
        mean = self.frame.mean
        mismatch = laid[edge] - mean[edge] - border
        predicted = mean[at] + inside + self._seam.continued(laid[edge] - mean[edge])
        off = float(np.sqrt((mismatch**2).sum(axis=1).mean()))
        spread = float(np.clip(np.exp(self._by_mismatch @ [1.0, np.log(max(off, 1e-9))]), *_SPREADS)) * excess
        back = lay.inverse()

        def completed(part: Floats) -> Floats:
            whole = np.array(shape, dtype=np.float64)
            whole[at] = back.apply(part)
            return whole

        turned = (spread * back.scale / np.sqrt(len(self.missed)) * back.rotation.T).astype(np.float32)
        return Prediction(
            shape=completed(predicted),
            mirrored=completed(mirror[at] + self._seam.continued(laid[edge] - mirror[edge])),
            faces=self.frame.faces,
            region=self.region,
            modes=self.missed @ turned,
            rest_variance=self._lost_variance * (spread * back.scale) ** 2,
            evidence=self.evidence,
            choice=self.choice,
            source=self.source,
            mismatch=off * back.scale,
            spread=spread,
            warnings=warnings,
        )

    def mean_shape(self, shape: Floats) -> Floats:
        """The torso with the model's mean breast joined to it, (n, 3): what is known without any evidence."""
        lay, laid = self._laid(shape)
        at, edge = self._seam.region, self._seam.border
        out = np.array(shape, dtype=np.float64)
        mean = self.frame.mean
        out[at] = lay.inverse().apply(mean[at] + self._seam.continued(laid[edge] - mean[edge]))
        return out

    # --- what the subjects teach --------------------------------------------------------------------------------------

    def _read(self, found: TrainingShapes) -> _Rows:
        n, m, b = 2 * found.count, len(self._seam.region), len(self._seam.border)
        known: list[NDArray[np.float32]] = []
        inside, border = np.empty((2, n, m, 3), dtype=np.float32), np.empty((2, n, b, 3), dtype=np.float32)
        off_chest = np.empty(n)
        for row in range(n):
            shape = self.frame.to_frame.apply(found.shape(row // 2))
            laid = self._laid(self.frame.mirrored(shape) if row % 2 else shape)[1]
            known.append(self._known(laid).astype(np.float32))
            off_chest[row] = self._off_chest(laid)
            for which, one in enumerate((laid, self._mirror_image(laid))):
                off = one - self.frame.mean
                inside[which, row], border[which, row] = off[self._seam.region], off[self._seam.border]
        for which in range(2):
            ends = border[which].transpose(1, 0, 2).astype(np.float64)
            inside[which] -= self._seam.continued(ends).transpose(1, 0, 2)
        return _Rows(
            np.arange(n) // 2, np.stack(known), (inside[0], inside[1]), (border[0], border[1]), off_chest
        )

    def _learn(self, rows: _Rows) -> None:
        p = self.parameters
        self._rows = rows
        self._known_mean: Floats = rows.known.mean(axis=0, dtype=np.float64)
        self._centred: NDArray[np.float32] = rows.known - self._known_mean.astype(np.float32)
        gram = (self._centred @ self._centred.T).astype(np.float64)
        # What a truncation cut off, every real torso has, and each another one: products with itself hold it.
        gram += self._lost_variance * rows.known.shape[1] * np.eye(len(gram))
        self._left_out = LeftOut(gram, rows.subjects)
        inner = np.flatnonzero(self.region.breast[self._seam.region])
        normals = self._normals[self._seam.region]
        trial = inner[:: max(1, len(inner) // p.trial_points)]
        shape, mirror = (np.einsum("nmd,md->nm", part[:, trial], normals[trial]) for part in rows.inside)
        noises = np.array([p.noise]) if p.noise is not None else self._noises()
        self.choice: Choice = choose(
            self._left_out, shape, mirror, noises, p.mirror_shares, self._lost_variance
        )
        weights = self._left_out.residual_weights(self.choice.noise)
        self._worst_misfit = float(np.sqrt(np.einsum("ij,jk,ik->i", weights, gram, weights).max()))
        self._worst_off_chest = float(np.hypot(rows.off_chest.max(), np.sqrt(self._lost_variance)))
        share = np.float32(self.choice.mirror_share)
        missed, mismatch = (
            np.tensordot(weights.astype(np.float32), part[0] - share * part[1], (1, 0))
            for part in (rows.inside, rows.border)
        )
        #: (N, m, 3): what the prediction missed on every left-out shape, laid on the mean, mm.
        self.missed: NDArray[np.float32] = missed
        along = np.einsum("nmd,md->nm", missed[:, inner], normals[inner])
        size = np.sqrt((along**2 / np.maximum((along**2).mean(axis=0), 1e-12)).mean(axis=1))
        self._by_mismatch = _spread_by_mismatch(np.sqrt((mismatch**2).sum(axis=2).mean(axis=1)), size)

    def _noises(self) -> Floats:
        """Noises to choose from, mm."""
        p = self.parameters
        tried = self._left_out.noises(p.noise_ratios)
        if self.evidence == "points":
            return tried
        # k points that err together by e are as good as one of them: as independent ones they err by e sqrt(k).
        seen = self.region.healthy | self.region.thorax
        area = vertex_areas(self.frame.mean, self.frame.faces)[seen].mean()
        together = np.pi * p.registration_length**2 / area
        found: Floats = np.maximum(tried, p.registration_error * np.sqrt(max(together, 1.0)))
        return found

    def _combined(
        self, weights: Floats, parts: tuple[NDArray[np.float32], NDArray[np.float32]], mirror: Floats
    ) -> Floats:
        """Prediction of a part: the share of the mirror image, and the weighted rest of the training shapes."""
        share = self.choice.mirror_share
        # The weights sum to zero, so the mean of the rest need not be taken off.
        mixed = weights + 1.0 / len(weights)
        rest = [np.tensordot(mixed.astype(np.float32), part, (0, 0)) for part in parts]
        combined: Floats = rest[0] - share * rest[1] + share * mirror
        return combined

    def _judged(self, laid: Floats, known: Floats, weights: Floats) -> tuple[tuple[str, ...], float]:
        """Warnings, and how many times worse the known skin fits than that of any subject (at least 1).

        Refuses what is no torso of this model.
        """
        p = self.parameters
        misfit = float(np.linalg.norm(known - weights.astype(np.float32) @ self._centred))
        ratios = {
            "its thorax": self._off_chest(laid) / max(self._worst_off_chest, 1e-9),
            "what is known of it": misfit / max(self._worst_misfit, 1e-9),
        }
        what, worst = max(ratios.items(), key=lambda item: item[1])
        if not worst <= p.refused:
            raise MeshProblem(
                f"this scan does not look like the model: {what} fits {worst:.1f} times worse than the worst of the "
                "model's subjects",
                "Check its landmarks and its registration, or use a model that knows such torsos",
            )
        warnings = tuple(
            f"{what} fits {ratio:.1f} times worse than the worst of the model's subjects"
            for what, ratio in ratios.items()
            if ratio > p.unusual
        )
        return warnings, max(1.0, worst)

    # --- one torso ----------------------------------------------------------------------------------------------------

    def _laid(self, shape: Floats) -> tuple[Similarity, Floats]:
        """How a shape lies on the mean by its thorax, and the shape there."""
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

    def _off_chest(self, laid: Floats) -> float:
        chest = self.region.thorax
        off = ((laid - self.frame.mean)[chest] * self._normals[chest]).sum(axis=1)
        return float(np.sqrt((off**2).mean()))

    def _mirror_image(self, laid: Floats) -> Floats:
        # Where mirror images lie between vertices, some of these may be missing ones: they must not be looked at.
        seen = np.where(self.region.missing[:, None], self.frame.mean, laid)
        return self.frame.own_mirror_image(seen, ~(self.region.missing | self.region.healthy))

    def _parts(self, laid: Floats) -> tuple[Floats, Floats]:
        """A laid shape about the mean: inside the region less what the seam continues, and at its border."""
        off = laid - self.frame.mean
        border = off[self._seam.border]
        return off[self._seam.region] - self._seam.continued(border), border


def _spread_by_mismatch(mismatch: Floats, size: Floats) -> Floats:
    """How the size of errors (N,), relative to their average, grows with the mismatch at the border (N,).

    Returns (a, b) of spread = exp(a + b log mismatch) with 0 <= b <= 1, scaled such that errors over spread have a mean
    square of 1.
    """
    x, y = np.log(np.maximum(mismatch, 1e-9)), np.log(np.maximum(size, 1e-9))
    x0 = x.mean()
    slope = float(np.clip(((x - x0) @ y) / max(float((x - x0) @ (x - x0)), 1e-12), 0.0, 1.0))
    level = 0.5 * np.log((size**2 * np.exp(-2.0 * slope * (x - x0))).mean())
    return np.array([level - slope * x0, slope])


def _require_whole_torsos(model: ShapeModel) -> None:
    built = built_with(model)
    if built.part or built.asymmetry:
        raise BreastMorphError(
            "this model is not one of whole torsos", "Use a model built without --part and --asymmetry"
        )
