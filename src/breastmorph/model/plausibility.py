"""Where a shape stands among a model's subjects: how unusual it is, in shares of them, and what is unusual about it.

A shape is looked at from several sides (its traits): every leading mode, the size of each breast, three distances, how
far the sides differ (in size, in height, from the notch), what the leading modes cannot express, and whether one of the
smaller modes stands out alone. A person is as unusual as her most unusual trait. How unusual that makes her is read off
the subjects, each judged by a model of the others, so that the share of a new person is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaincc, ndtr

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import N_
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.messages import Finding, note
from breastmorph.mask import breast_regions
from breastmorph.mesh.geometry import vertex_areas, vertex_normals
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES

LEVELS = ("usual", "unusual", "implausible")
_OWN_WORDS = ("mode", "size", "sizes", "heights", "notch", "rest")  # traits; all others are measures
_DISTANCES = {
    "SN-NL": ("sternal_notch", "nipple_left"),
    "SN-NR": ("sternal_notch", "nipple_right"),
    "NL-NR": ("nipple_left", "nipple_right"),
}


# What stands out.
_TRAITS = {
    "standing/mode/more": N_("mode {which} is larger than in {percent} % of {of}"),
    "standing/mode/less": N_("mode {which} is smaller than in {percent} % of {of}"),
    "standing/size/more": N_("the {which} breast is larger than in {percent} % of {of}"),
    "standing/size/less": N_("the {which} breast is smaller than in {percent} % of {of}"),
    "standing/sizes/more": N_("the left breast exceeds the right one by more than in {percent} % of {of}"),
    "standing/sizes/less": N_("the right breast exceeds the left one by more than in {percent} % of {of}"),
    "standing/heights/more": N_(
        "the left nipple is higher against the right one than in {percent} % of {of}"
    ),
    "standing/heights/less": N_(
        "the right nipple is higher against the left one than in {percent} % of {of}"
    ),
    "standing/notch/more": N_(
        "the left nipple is farther from the notch than the right one by more than in {percent} % of {of}"
    ),
    "standing/notch/less": N_(
        "the right nipple is farther from the notch than the left one by more than in {percent} % of {of}"
    ),
    "standing/rest/more": N_("what the leading modes do not explain is more than in {percent} % of {of}"),
    "standing/measure/more": N_("{which:measure} is larger than in {percent} % of {of}"),
    "standing/measure/less": N_("{which:measure} is smaller than in {percent} % of {of}"),
}


@dataclass(frozen=True)
class PlausibilityParameters:
    """How a shape is judged."""

    unusual: float = (
        0.9  # share of the subjects who are less unusual: from there on a shape is called unusual,
    )
    rare: float = 0.02  # also where so few of them have a trait that is more extreme, either way,
    implausible: float = 0.9999  # and from there on, by the tail of a normal distribution, implausible
    notable: float = 0.95  # share of the subjects that a trait must exceed to be named
    mode_share: float = 0.03  # of the variance: modes with less hardly show, and are judged together
    leading: int = 60  # coefficients in which leading modes are found again without a subject
    least_spread: float = 0.1  # of the logarithm of how far a small mode stands out
    fewest: int = 12  # subjects that show how people differ
    drawn: int = 400  # left-out subjects of a model that keeps none


@dataclass(frozen=True)
class Plausibility:
    """Where one shape stands.

    Attributes
    ----------
    share : float
        Share of the model's subjects who are less unusual (0 to 1).
    level : {"usual", "unusual", "implausible"}
        Unusual from 90 of 100 subjects on, or where one trait is more extreme than in 98 of 100.
    finding : Finding
        That in words, with what is most unusual about the shape.
    """

    share: float
    level: str
    finding: Finding

    @property
    def plausibility(self) -> float:
        """Share of the model's subjects who are more unusual (0 to 1)."""
        return 1.0 - self.share

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "share_less_unusual": self.share,
            "level": self.level,
            "text": self.finding.cause.text(),
        }


@dataclass(frozen=True, eq=False)
class ModelPopulation:
    """A model's subjects, prepared to judge shapes by; see :func:`model_population`.

    Attributes
    ----------
    traits : _Traits
        What is looked at.
    spreads : (a,) float
        Of the traits with a sign in left-out subjects, in those of the others.
    rest, rest_variance : float
        Mean and variance of the square of what the leading modes do not express of left-out subjects.
    alone : (2,) float
        Mean and standard deviation of the logarithm of how far a smaller mode stands out in left-out subjects.
    independent : float
        As how many independent ones the traits are together.
    ranks : (k,) float
        How unusual every left-out subject is, were they so; rising.
    subjects : int
        Whose data this is; 0 where the model keeps no subjects and speaks for itself.
    parameters : PlausibilityParameters
    """

    traits: _Traits
    spreads: Floats
    rest: float
    rest_variance: float
    alone: Floats
    independent: float
    ranks: Floats
    subjects: int
    parameters: PlausibilityParameters

    def judge(
        self, coefficients: Floats, outside: float = 0.0, asked: Mapping[str, float] | None = None
    ) -> Plausibility:
        """Judge a shape.

        Parameters
        ----------
        coefficients : (k,) float
            Of the model; those not given are 0.
        outside : float
            Square of what the model cannot express of the shape, mm squared, summed over all coordinates.
        asked : mapping from measure to float, optional
            Further measures of the shape, in standard deviations from the mean: what an edit was asked for.
        """
        whole = np.zeros(self.traits.model.n_components)
        whole[: len(coefficients)] = coefficients
        return self._judged(whole, self.traits.of(whole, outside), asked)

    def _judged(
        self, whole: Floats, traits: tuple[Floats, float], asked: Mapping[str, float] | None
    ) -> Plausibility:
        """With all coefficients and the traits as :meth:`_Traits.of` has them."""
        signed, rest = traits
        signed = signed / self.spreads
        smaller = self.traits.smaller(whole)
        names = [*self.traits.names, "rest"]
        if asked:
            names = [*asked, *names]
            signed = np.concatenate([np.array(list(asked.values())), signed])
        rare = np.array([*(2.0 * ndtr(-np.abs(signed))), self._rare_rest(rest)])
        if len(smaller):
            most = int(np.abs(smaller).argmax())
            names.append(f"mode {self.traits.modes + most + 1}")
            rare = np.append(rare, self._rare_alone(np.abs(smaller[most]), _stands_out(smaller[None])[0]))
        rank = float(self._ranked(rare[None])[0])
        share = float(np.interp(rank, [0.0, *self.ranks, 1.0], np.linspace(0.0, 1.0, len(self.ranks) + 2)))
        first = int(rare.argmin())
        level = LEVELS[
            int(share >= self.parameters.unusual or rare[first] <= self.parameters.rare)
            + int(rank >= self.parameters.implausible)
        ]
        above = [*signed, 1.0, *(smaller[[most]] if len(smaller) else [])]  # a rest can only be large
        more = bool(above[first] > 0.0)
        return Plausibility(share, level, self._finding(share, names[first], float(rare[first]), more))

    def judge_shape(self, shape: Floats, asked: Mapping[str, float] | None = None) -> Plausibility:
        """Judge a shape (n, 3) in mm with the model's triangles, in any pose."""
        model = self.traits.model
        if np.array_equal(shape, model.mean):
            return self.judge(np.zeros(model.n_components), asked=asked)
        placed = model.align(shape, with_scale=not model.keeps_size).apply(shape)
        coefficients = model.project(placed)
        beside = placed - model.instance(coefficients)
        traits = self.traits.of(coefficients, float((beside**2).sum()), beside)
        return self._judged(coefficients, traits, asked)

    def _rare_rest(self, square: Floats | float) -> Any:
        """Share of people of whom the leading modes express less."""
        scale = self.rest_variance / self.rest
        return gammaincc(self.rest / scale, np.maximum(square, 0.0) / scale)  # of a gamma distribution

    def _rare_alone(self, score: Floats | float, out: Floats | float) -> Any:
        """Share of people in whom a smaller mode stands out so far: no rarer than that mode's score by itself."""
        mean, deviation = self.alone
        return np.maximum(2.0 * ndtr(-score), ndtr(-(np.log(out) - mean) / deviation))

    def _ranked(self, rare: Floats) -> Floats:
        """How unusual the most unusual trait of every row (k, t) is, were there so many independent ones, (k,)."""
        ranked: Floats = (1.0 - rare.min(axis=1)) ** self.independent
        return ranked

    def _finding(self, share: float, trait: str, rare: float, more: bool) -> Finding:
        n = self.subjects
        of = (
            note("standing/subjects", "the model's {n} subjects", n=n)
            if n
            else note("standing/population", "the model's population")
        )
        whole = note("standing/part", "more unusual than {percent} %", percent=int(100.0 * share))
        if n and share > n / (n + 1.0):
            whole = note("standing/all", "more unusual than all")
        beyond = 1.0 - rare if trait == "rest" else 1.0 - rare / 2.0
        if beyond < self.parameters.notable:
            return note("standing", "{whole} of {of}", whole=whole, of=of)
        kind, _, which = trait.partition(" ")
        if kind not in _OWN_WORDS:
            kind, which = "measure", trait
        values = {"which": which, "percent": int(100.0 * beyond), "of": of}
        name = f"standing/{kind}/{'more' if more else 'less'}"
        first = note(name, _TRAITS[name], **values)
        return note("standing/because", "{first}; all in all {whole} of them", first=first, whole=whole)


@lru_cache(maxsize=4)
@in_one_thread
def model_population(model: ShapeModel, parameters: PlausibilityParameters | None = None) -> ModelPopulation:
    """Prepare a model's subjects: those it keeps, or as many drawn from it where it keeps no data of subjects."""
    p = parameters or PlausibilityParameters()
    traits = _Traits.of_model(model, p.mode_share)
    kept = model.training.scores if model.training is not None else np.empty((0, model.n_components))
    if len(kept) >= p.fewest:
        cohorts, subjects = [kept], len(kept)
    else:
        stated = model.info.get("subjects")
        n = max(stated if isinstance(stated, int) else model.n_components + 1, p.fewest)
        rng = np.random.default_rng(0)
        count = max(-(-p.drawn // n), 1)
        cohorts = [rng.standard_normal((n, model.n_components)) * model.deviations for _ in range(count)]
        subjects = 0
    lost = model.noise_variance * model.mean.size
    parts = [traits.left_out(scores, lost, p.leading) for scores in cohorts]
    signed, rest, smaller = (np.concatenate(several) for several in zip(*parts, strict=True))
    spreads = np.maximum(np.sqrt((signed**2).mean(axis=0)), 1e-9)
    # One for all modes: without a subject, two of nearly the same variance may change places.
    spreads[: traits.modes] = np.sqrt((spreads[: traits.modes] ** 2).mean())
    # Where every mode is a trait nothing is left, and what rounding leaves is no trait.
    least = 1e-6 * float(model.variances.sum()) + 1e-12
    mean, variance = max(float(rest.mean()), least), max(float(rest.var()), least**2)
    out = _stands_out(smaller)
    alone = np.array([np.log(out).mean(), max(float(np.log(out).std()), p.least_spread)])
    found = ModelPopulation(traits, spreads, mean, variance, alone, 1.0, np.empty(0), subjects, p)
    rare = np.column_stack([2.0 * ndtr(-np.abs(signed / spreads)), found._rare_rest(rest)])
    if smaller.shape[1]:
        rare = np.column_stack([rare, found._rare_alone(np.abs(smaller).max(axis=1), out)])
    # For t independent traits 1 - p of the rarest is the t-th root of a uniform number: the likeliest t.
    roots = np.log1p(-np.minimum(rare.min(axis=1), 1.0 - 1e-9))
    found = replace(found, independent=max(-len(rare) / float(roots.sum()), 1.0))
    return replace(found, ranks=np.sort(found._ranked(rare)))


@dataclass(frozen=True, eq=False)
class _Traits:
    """Numbers of a shape, from its coefficients.

    Attributes
    ----------
    model : ShapeModel
    modes : int
        Leading modes, each a trait in standard deviations.
    swept : mapping from name to vertices and (m, 3) float
        Traits with a sign as a linear function of how these vertices are displaced.
    linear : mapping from name to (q,) float
        The same as one of the coefficients.
    """

    model: ShapeModel
    modes: int
    swept: Mapping[str, tuple[Ints, Floats]]
    linear: Mapping[str, Floats]

    @classmethod
    def of_model(cls, model: ShapeModel, mode_share: float) -> _Traits:
        """Those that a model's landmarks allow."""
        ids, swept = model.landmark_ids, {}
        for name, (first, second) in _DISTANCES.items():
            if first in ids and second in ids:
                apart = model.mean[ids[first]] - model.mean[ids[second]]
                along = apart / max(float(np.linalg.norm(apart)), 1e-9)
                swept[name] = np.array([ids[first], ids[second]]), np.array([along, -along])
        if "SN-NL" in swept and "SN-NR" in swept:
            swept["notch"] = _less(swept["SN-NL"], swept["SN-NR"])
        if {"nipple_left", "nipple_right"} <= set(ids):
            up = np.array([0.0, 1.0, 0.0])
            swept["heights"] = np.array([ids["nipple_left"], ids["nipple_right"]]), np.array([up, -up])
        try:
            regions = breast_regions(model.mean_mesh, model.landmarks)
        except BreastMorphError:  # a model of one breast, in another unit, or with too few landmarks
            regions = {}
        if regions:
            # What the skin of a breast sweeps over, to first order.
            out = vertex_normals(model.mean, model.faces) * vertex_areas(model.mean, model.faces)[:, None]
            sizes = {side: (np.flatnonzero(regions[side]), out[regions[side]]) for side in SIDES}
            swept |= {f"size {side}": one for side, one in sizes.items()}
            swept["sizes"] = _less(sizes["left"], sizes["right"])
        rows = np.asarray(model.basis).reshape(model.n_vertices, 3, model.n_components)
        linear = {
            name: np.einsum("ni,niq->q", weights, rows[vertices].astype(float))
            for name, (vertices, weights) in swept.items()
        }
        total = float(model.variances.sum()) + model.noise_variance * model.mean.size
        modes = max(int((model.variances >= mode_share * total).sum()), 1)
        moving = {name: one for name, one in linear.items() if np.linalg.norm(one * model.deviations) > 1e-6}
        return cls(model, min(modes, model.n_components), swept, moving)

    @property
    def names(self) -> Sequence[str]:
        """Of the traits with a sign."""
        return [*(f"mode {k + 1}" for k in range(self.modes)), *self.linear]

    def of(self, coefficients: Floats, outside: float, beside: Floats | None = None) -> tuple[Floats, float]:
        """Traits with a sign, in standard deviations (a,), and the square of the rest, mm squared.

        ``beside`` (n, 3) is what the model cannot express of a shape: that counts in her measures as all else does.
        """
        c, deviations = coefficients, self.model.deviations
        modes = self._scores(c)[: self.modes]
        linear = []
        for name, one in self.linear.items():
            value = float(one @ c)
            if beside is not None:
                vertices, weights = self.swept[name]
                value += float((weights * beside[vertices]).sum())
            linear.append(value / np.linalg.norm(one * deviations))
        rest = float((c[self.modes :] ** 2).sum()) + outside
        return np.array([*modes, *linear]), rest

    def smaller(self, coefficients: Floats) -> Floats:
        """Scores of the modes after the leading ones, in standard deviations."""
        return self._scores(coefficients)[self.modes :]

    def _scores(self, coefficients: Floats) -> Floats:
        deviations = self.model.deviations
        scores: Floats = coefficients / np.where(deviations > 0.0, deviations, np.inf)
        return scores

    def left_out(self, scores: Floats, lost: float, most: int) -> tuple[Floats, Floats, Floats]:
        """Traits, rest and smaller modes of subjects (k, q), each judged by the others, (k, a), (k,) and (k, b).

        ``lost`` is the square of what is not known of a subject, mm squared; leading modes are found again in ``most``
        coefficients.
        """
        n = len(scores)
        centred = (scores - scores.mean(axis=0)) * (n / (n - 1.0))  # about the mean of the others
        modes, rest = np.empty((n, self.modes)), np.empty(n)
        leading = centred[:, :most]
        # Covariance of all, less each subject's part in it.
        whole = leading.T @ leading * ((n - 1.0) / n) ** 2
        # The others of n subjects differ in n - 2 ways.
        size = leading.shape[1]
        found = max(min(size, n - 2), self.modes)
        smaller = np.empty((n, found - self.modes))
        for i, one in enumerate(leading):
            others = (whole - np.outer(one, one) * ((n - 1.0) / n)) / (n - 2.0)
            variances, axes = eigh(others, subset_by_index=[size - found, size - 1])
            along = (one @ axes)[::-1]
            standard = along / np.sqrt(np.maximum(variances[::-1], 1e-12))
            modes[i], smaller[i] = standard[: self.modes], standard[self.modes :]
            rest[i] = (centred[i] ** 2).sum() - (along[: self.modes] ** 2).sum() + lost
        values = centred @ np.array(list(self.linear.values())).reshape(-1, scores.shape[1]).T
        squares = (values * (n - 1.0) / n) ** 2
        spread = np.sqrt(np.maximum((squares.sum(axis=0) - values**2 * ((n - 1.0) / n)) / (n - 2.0), 1e-300))
        return np.column_stack([modes, values / spread]), rest, smaller


def _less(one: tuple[Ints, Floats], other: tuple[Ints, Floats]) -> tuple[Ints, Floats]:
    """The difference of two traits."""
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], -other[1]])


def _stands_out(scores: Floats) -> Floats:
    """How far the largest of every row (k, b) of scores exceeds the root mean square of its others, (k,).

    In a person all of the many small modes differ a little from the mean. One that does so alone belongs to no person,
    however small it is; its own score measures how rare that is.
    """
    if not scores.shape[1]:
        return np.ones(len(scores))
    squares = np.sort(scores**2, axis=1)
    others = squares[:, :-1].mean(axis=1) if scores.shape[1] > 1 else np.zeros(len(scores))
    out: Floats = np.sqrt(np.maximum(squares[:, -1], 1e-12) / np.maximum(others, 1e-12))
    return out
