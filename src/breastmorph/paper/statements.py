"""The paper's statements beside what was measured: do they hold, by which test, and does the truth agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from breastmorph.foundation.phrases import plural
from breastmorph.paper.clinical_generalization import ClinicalGeneralization
from breastmorph.paper.data_amount import DataAmountExperiment
from breastmorph.paper.masks import MaskExperiment, MaskVariant
from breastmorph.paper.operated import OperatedExperiment
from breastmorph.paper.significance import Comparison, paired, resampled, unpaired

YES, NO, SMALL, NOT_TESTABLE = "yes", "no", "too small", "not testable"
AGREES, CONTRADICTS, MIXED = "agrees", "contradicts", "mixed"
INDIFFERENT, NO_PREFERENCE, NO_TRUTH = "no difference", "no preference", "not known"
FEW_SUBJECTS = 20  # below it a cohort is too small for conclusions


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes
    ----------
    experiment : int
        1 to 4.
    text : str
        What is claimed.
    paper : str
        The paper's words or numbers for it.
    measured : str
        Ours.
    holds : {"yes", "no", "too small", "not testable"}
        "too small": so it is, by more than chance, but the difference is too small to matter.
    comparison : Comparison, optional
        The difference that the claim is about, with its test; None for a single figure.
    unit : str
        Of the difference.
    by_truth : {"agrees", "contradicts", "mixed", "no difference", "no preference", "not known", ""}
        Whether the variant that this measure prefers is also the better one by truth. "contradicts" means that the
        measure rewards what is wrong; "mixed", better by one figure of truth and worse by another; "no difference",
        truth sees none; "no preference", the measure itself sees none. Empty where the question does not arise.
    truth : str
        The figures behind ``by_truth``, or why there are none.
    preset : str
        Of the registration; empty where it does not matter.
    """

    experiment: int
    text: str
    paper: str
    measured: str
    holds: str
    comparison: Comparison | None = None
    unit: str = "mm"
    by_truth: str = ""
    truth: str = ""
    preset: str = ""

    @property
    def effect_text(self) -> str:
        """The effect with its interval, as a share of what it is compared with, and in standard deviations."""
        return self.comparison.effect_text(self.unit) if self.comparison is not None else ""


def verdict(holds: bool) -> str:
    """Yes or no."""
    return YES if holds else NO


def verdict_of(comparison: Comparison, sign: int, also: bool = True) -> str:
    """Whether the first is larger (``sign`` 1) or smaller (-1), by more than chance and by enough to matter."""
    if not (comparison.clear() and sign * comparison.difference > 0 and also):
        return NO
    return YES if comparison.matters() else SMALL


def not_testable(experiment: int, claims: Sequence[tuple[str, str]], reason: str) -> tuple[Statement, ...]:
    """Claims with the paper's words for them, none of which the data allow to test."""
    measured = f"not possible: {reason}"
    return tuple(Statement(experiment, text, paper, measured, NOT_TESTABLE) for text, paper in claims)


_DEGREES = 0.1  # of angle distortion that still is "only a small difference"
_VERY_FIRST = 5  # components
_BEYOND = 30  # components from which on the paper compares specificity
_ALMOST_ALWAYS = 0.9  # of the samples
_ABOUT = 0.05  # of the variance: what "about 85 %" may be off
_EXPLAINED = 0.01  # difference of explained variation that counts


@dataclass(frozen=True)
class MaskTruth:
    """How two variants compare by truth.

    Attributes
    ----------
    breast, outside : Comparison
        Correspondence error with masks against without.
    explained : ((float, float), (float, float))
        Explained variation with and without masks: breast, outside.
    """

    breast: Comparison
    outside: Comparison
    explained: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def of(cls, result: MaskExperiment) -> MaskTruth | None:
        """Compare, where the truth is known."""
        a, b = result.with_masks.truth, result.without_masks.truth
        if a is None or b is None:
            return None
        errors = [paired(a.correspondence[:, c], b.correspondence[:, c]) for c in (0, 1)]
        return cls(
            errors[0],
            errors[1],
            ((a.explained_breast, b.explained_breast), (a.explained_outside, b.explained_outside)),
        )

    def verdict(self, measure: Comparison) -> str:
        """Whether the variant that a measure prefers (the smaller is better, with masks first) is the better one."""
        if not measure.matters():
            return NO_PREFERENCE
        marks = [-np.sign(one.difference) if one.matters() else 0.0 for one in (self.breast, self.outside)]
        for first, second in self.explained:
            marks.append(np.sign(first - second) if abs(first - second) > _EXPLAINED else 0.0)
        preferred = 1 if measure.difference < 0 else -1
        signs = {preferred * int(mark) for mark in marks if mark}
        if len(signs) != 1:
            return MIXED if signs else INDIFFERENT
        return AGREES if signs == {1} else CONTRADICTS

    def with_explained_outside(self, fields: dict[str, str], prefers_masks: bool) -> dict[str, str]:
        """A verdict by nearness to the true variance, and by whether that variance is the true variation.

        A thorax may vary as much as the true one and yet not as the true one does.
        """
        first, second = self.explained[1]
        text = f"{fields['truth']}; explained variation outside {first:.2f} with masks, {second:.2f} without"
        by_truth = fields["by_truth"]
        if abs(first - second) > _EXPLAINED:
            also = AGREES if (first > second) == prefers_masks else CONTRADICTS
            by_truth = by_truth if by_truth == also else MIXED
        return {"by_truth": by_truth, "truth": text}

    def text(self) -> str:
        """The figures in words."""
        parts = []
        for name, error, (first, second) in zip(
            ("breast", "outside"), (self.breast, self.outside), self.explained, strict=True
        ):
            parts.append(
                f"{name}: correspondence error {error.first:.1f} mm with masks, {error.second:.1f} without "
                f"({error.p_text}), explained variation {first:.2f} and {second:.2f}"
            )
        return "; ".join(parts)


def _judged(truth: MaskTruth | None, measure: Comparison, more: str = "") -> dict[str, str]:
    """The fields of a statement whose measure is an error: is the variant with the smaller one the better one?"""
    if truth is None:
        return {"by_truth": NO_TRUTH, "truth": ""}
    text = truth.text() + (f"; {more}" if more else "")
    return {"by_truth": truth.verdict(measure), "truth": text}


def _nearer(
    both: Comparison, true: float | None, name: str, number: str, *, masks_first: bool, larger_is_better: bool
) -> dict[str, str]:
    """The fields of a statement whose figure is good neither when large nor small, but near that of the true shapes."""
    if true is None:
        return {"by_truth": NO_TRUTH, "truth": ""}
    ours, without = (both.first, both.second) if masks_first else (both.second, both.first)
    nearer = abs(ours - true) < abs(without - true)
    texts = [number.format(value) for value in (true, ours, without)]
    prefers_masks = (ours > without) == larger_is_better
    agrees = AGREES if nearer == prefers_masks else CONTRADICTS
    return {
        "by_truth": agrees if both.matters() else NO_PREFERENCE,
        "truth": f"{name} of the true shapes {texts[0]}, with masks {texts[1]}, without {texts[2]}: "
        f"the registration {'with' if nearer else 'without'} masks is nearer",
    }


def mask_statements(result: MaskExperiment) -> tuple[Statement, ...]:
    """All statements of experiment 1 for one preset."""
    truth = MaskTruth.of(result)
    found = (
        _generalization(result, truth),
        _specificity(result, truth),
        _mean_squared_error(result, truth),
        *_angles(result),
        _compactness(result),
        _eight(result),
        *_most_moved(result),
        _variance_outside(result, truth),
    )
    return tuple(replace(one, preset=result.preset) for one in found)


def _generalization(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    a, b, true = result.with_masks, result.without_masks, result.perfect
    whole = paired(a.generalization[:, -1], b.generalization[:, -1])
    breast = [one.generalization_breast[:, -1].mean() for one in (a, b)]
    more = f"true shapes generalise to {true.generalization[:, -1].mean():.2f} mm" if true is not None else ""
    return Statement(
        1,
        "Masks lower the generalization error",
        "0.17 mm with masks, 0.65 mm without (109 components)",
        f"{whole.first:.2f} mm with masks, {whole.second:.2f} mm without ({a.components[-1]} components); "
        f"breast {breast[0]:.2f} and {breast[1]:.2f} mm",
        verdict_of(whole, -1),
        whole,
        **_judged(truth, whole, more),
    )


def _specificity(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    claim = (
        f"Masks lower the specificity error beyond {_BEYOND} components",
        f"about 2.8 mm with masks, always lower than without beyond {_BEYOND} components",
    )
    a, b, true = result.with_masks, result.without_masks, result.perfect
    most = min(len(a.specificity), len(b.specificity))
    if most <= _BEYOND:
        return not_testable(1, [claim], f"the models have {plural(most, 'component')}")[0]
    at_last = unpaired(a.sampled, b.sampled)
    lower = a.specificity[_BEYOND:most] < b.specificity[_BEYOND:most]
    more = f"true shapes have {true.specificity[-1]:.2f} mm" if true is not None else ""
    measured = (
        f"{at_last.first:.2f} mm with masks, {at_last.second:.2f} mm without ({most} components); lower at "
        f"{int(lower.sum())} of {len(lower)} numbers of components; breast {a.specificity_breast[-1]:.2f} and "
        f"{b.specificity_breast[-1]:.2f} mm"
    )
    holds = verdict_of(at_last, -1, bool(lower.all()))
    return Statement(1, *claim, measured, holds, at_last, **_judged(truth, at_last, more))


def _mean_squared_error(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    claim = ("Masks raise the mean squared error", "2.98 with masks, 1.05 without")
    a, b = result.with_masks.scans, result.without_masks.scans
    if a is None or b is None:
        return not_testable(1, [claim], "the raw scans were not given")[0]
    both = paired(a.mean_squared, b.mean_squared)
    if not both.n:
        return not_testable(1, [claim], "no raw scan could be read")[0]
    inside = [float(np.nanmean(one.distance_breast)) for one in (a, b)]
    measured = (
        f"{both.first:.2f} mm² with masks, {both.second:.2f} mm² without; mean distance to the raw scan in "
        f"the breast {inside[0]:.2f} and {inside[1]:.2f} mm"
    )
    return Statement(1, *claim, measured, verdict_of(both, 1), both, "mm²", **_judged(truth, both))


def _angles(result: MaskExperiment) -> tuple[Statement, Statement]:
    both = paired(result.without_masks.angle_distortion, result.with_masks.angle_distortion)
    paper = "0.008 degrees more without masks"
    measured = f"{both.second:.3f} degrees with masks, {both.first:.3f} without ({both.difference:+.3f})"
    true = None if result.perfect is None else float(result.perfect.angle_distortion.mean())
    near = _nearer(
        both, true, "angle distortion", "{:.1f} degrees", masks_first=False, larger_is_better=False
    )
    larger, little = "Without masks angle distortion is larger", "Masks change angle distortion only a little"
    is_little = verdict(abs(both.difference) <= _DEGREES)
    return (
        Statement(1, larger, paper, measured, verdict_of(both, 1), both, "degrees", **near),
        Statement(1, little, paper, measured, is_little, both, "degrees"),
    )


def _compactness(result: MaskExperiment) -> Statement:
    a, b = result.with_masks, result.without_masks
    first = a.resampled.components <= _VERY_FIRST
    counts = a.resampled.components[first]

    def mean_share(one: MaskVariant) -> float:
        return float(one.share[counts - 1].mean())

    differences = b.resampled.share[:, first].mean(axis=1) - a.resampled.share[:, first].mean(axis=1)
    both = resampled(mean_share(b), mean_share(a), differences, len(result.ids))
    shares = ", ".join(f"{100 * b.share[c - 1]:.0f}/{100 * a.share[c - 1]:.0f}" for c in counts)
    true = None if result.perfect is None else mean_share(result.perfect)
    near = _nearer(both, true, "mean share", "{:.2f}", masks_first=False, larger_is_better=True)
    return Statement(
        1,
        "Without masks the model is more compact in the very first components",
        "more compact without masks in the very first components",
        f"{shares} % of the variance without/with masks in the first {', '.join(map(str, counts))} components; "
        f"total variance {b.variance[-1] / len(b.sd_map):.0f} and {a.variance[-1] / len(a.sd_map):.0f} mm² a vertex",
        verdict_of(both, 1),
        both,
        "share of the variance",
        **near,
    )


def _eight(result: MaskExperiment) -> Statement:
    claim = ("Eight components hold about 85 % of the variance", "about 85 %")
    share = result.with_masks.share
    if len(share) <= 8:
        return not_testable(1, [claim], f"the model has {plural(len(share), 'component')}")[0]
    if len(result.ids) < FEW_SUBJECTS:
        # Few subjects have few directions to vary in: eight of them hold nearly all, whatever the cohort is like.
        reason = f"{len(result.ids)} subjects are too few to compare (at least {FEW_SUBJECTS})"
        return not_testable(1, [claim], reason)[0]
    true = "" if result.perfect is None else f"; of the true shapes {100 * result.perfect.share[7]:.1f} %"
    without = 100 * result.without_masks.share[7]
    measured = f"{100 * share[7]:.1f} % with masks, {without:.1f} % without{true}"
    return Statement(1, *claim, measured, verdict(bool(abs(share[7] - 0.85) <= _ABOUT)))


def _most_moved(result: MaskExperiment) -> tuple[Statement, Statement]:
    a, b = result.with_masks.moved_in_breast, result.without_masks.moved_in_breast
    mostly = [float((moved > 0.5).mean()) for moved in (a, b)]
    both = unpaired(a, b)
    own = None if result.perfect is None else result.perfect.moved_in_breast
    true = "" if own is None else f" (samples of the true shapes: {100 * (own > 0.5).mean():.0f} %)"
    mean = None if own is None else float(own.mean())
    return (
        Statement(
            1,
            "With masks random samples vary most at the breasts, almost always",
            "almost always located at the breasts",
            f"in {100 * mostly[0]:.0f} % of the samples most of the {100 * result.parameters.most_moved:.0f} % most "
            f"moved vertices lie in the breast{true}; by area the breast is {100 * result.breast_share:.0f} % of the "
            "surface",
            verdict(mostly[0] >= _ALMOST_ALWAYS),
        ),
        Statement(
            1,
            "Without masks the place of highest variation is less often the breast",
            "without masks it is oftentimes not the breast",
            f"{100 * both.second:.0f} % of the most moved vertices lie in the breast without masks, "
            f"{100 * both.first:.0f} % with; mostly in the breast in {100 * mostly[1]:.0f} and {100 * mostly[0]:.0f} % "
            "of the samples",
            verdict_of(both, 1),
            both,
            "share of the most moved vertices",
            **_nearer(both, mean, "share in the breast", "{:.2f}", masks_first=True, larger_is_better=True),
        ),
    )


def _variance_outside(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    a, b = result.with_masks, result.without_masks
    differences = 1.0 / a.resampled.inside_over_outside - 1.0 / b.resampled.inside_over_outside
    both = resampled(1.0 / a.inside_over_outside, 1.0 / b.inside_over_outside, differences, len(result.ids))
    true = None if result.perfect is None else 1.0 / result.perfect.inside_over_outside
    near = _nearer(both, true, "ratio outside/inside", "{:.2f}", masks_first=True, larger_is_better=False)
    if truth is not None and both.matters():
        near = truth.with_explained_outside(near, both.difference < 0)
    sds = [np.sqrt(v) for one in (a, b) for v in (one.variance_inside, one.variance_outside)]
    return Statement(
        1,
        "Masks lower the variance outside the breast relative to that inside",
        "rather stiff surroundings, low variance, with masks",
        f"variance outside over inside {both.first:.2f} with masks, {both.second:.2f} without; sd (root mean square by "
        f"the template's mask) inside/outside {sds[0]:.1f}/{sds[1]:.1f} mm and {sds[2]:.1f}/{sds[3]:.1f} mm",
        verdict_of(both, -1),
        both,
        "ratio of variances",
        **near,
    )


_NEARLY = 1.10  # times the other's error: "very similar"
_SLIGHTLY = 1.25  # times the other's error: "only slightly better"
_PRESERVED = 2.0  # mm on average: the paper's 1.82, rounded up
_FEW = 30  # components below which the paper finds clinical distances badly preserved


def all_statements(
    masks: Sequence[MaskExperiment] = (),
    amounts: DataAmountExperiment | None = None,
    operated: OperatedExperiment | None = None,
    clinical: ClinicalGeneralization | None = None,
) -> list[Statement]:
    """The statements of the experiments that were run, in the paper's order."""
    found = [statement for one in masks for statement in mask_statements(one)]
    found += amount_statements(amounts) if amounts is not None else ()
    found += operated_statements(operated) if operated is not None else ()
    found += clinical_statements(clinical) if clinical is not None else ()
    return found


def amount_statements(result: DataAmountExperiment) -> tuple[Statement, ...]:
    """Experiment 2: more scans are better, and the smallest model is the most compact."""
    claims = (
        ("The fewer scans, the more compact the model", "30 scans most compact, then 60, 90 and 110"),
        ("More scans generalise better", "1.07 mm with 30 scans, about 0.6 mm with 110 (29 components)"),
        (
            "The second largest model generalises nearly as well as that of all scans",
            "about 0.6 mm with 90 and with 110 scans (29 components)",
        ),
        ("The model of all scans is the most specific", "all scans the most specific, 30 clearly the worst"),
    )
    if result.impossible:
        return not_testable(2, claims, result.impossible)
    few, most = result.amounts[0], result.amounts[-1]
    nearly, at, k = result.amounts[-2], result.common, len(result.ids)

    def listed(figure: str, count: int, number: str) -> tuple[list[float], str]:
        """A figure of every amount with so many components, and in words."""
        means, texts = [], []
        for amount in result.amounts:
            components, mean, spread = amount.curve(figure)
            place = int(np.searchsorted(components, count))
            means.append(float(mean[place]))
            around = f" ± {number.format(spread[place])}" if len(amount.draws) > 1 else ""
            texts.append(f"{number.format(mean[place])}{around} ({amount.size})")
        return means, ", ".join(texts)

    shares, share_text = listed("share", at, "{:.3f}")
    errors, error_text = listed("generalization", at, "{:.2f}")
    near, near_text = listed("specificity", at, "{:.2f}")
    worst = paired(few.of_subjects(k, at), most.of_subjects(k, at))
    second = paired(nearly.of_subjects(k, at), most.of_subjects(k, at))
    sampled = unpaired(np.concatenate([draw.sampled for draw in few.draws]), most.draws[0].sampled)
    falls = all(a > b for a, b in pairwise(shares))
    ordered = near[-1] == min(near) and near[0] == max(near)
    same = f"; the same subjects {worst.first:.2f} with {few.size} and {worst.second:.2f} with all"
    of_second = (
        f"the same subjects {second.first:.2f} mm with {nearly.size} scans and {second.second:.2f} mm with all "
        f"({errors[-2] / errors[-1]:.2f} times over all subjects)"
    )
    with_components = f"mm with {at} components (scans): "
    held = f"share of the variance in {at} components: {share_text}"
    return (
        Statement(2, *claims[0], held, verdict(falls)),
        Statement(2, *claims[1], f"{with_components}{error_text}{same}", verdict_of(worst, 1), worst),
        Statement(2, *claims[2], of_second, verdict(second.ratio <= _NEARLY), second),
        Statement(2, *claims[3], f"{with_components}{near_text}", verdict_of(sampled, 1, ordered), sampled),
    )


def operated_statements(result: OperatedExperiment) -> tuple[Statement, ...]:
    """Experiment 3: operated breasts explain others nearly as well."""
    paper = "0.77 mm by 37 operated subjects, 0.71 mm by 37 non-operated (36 components)"
    claims = (
        ("A model of operated breasts explains non-operated ones quite well", paper),
        ("A model of non-operated breasts explains them better", paper),
    )
    if result.impossible:
        return not_testable(3, claims, result.impossible)
    last = int(result.components[-1])
    both = paired(result.of_subjects("operated", last), result.of_subjects("not_operated", last))
    size = len(result.draws[0].training)
    measured = (
        f"{both.first:.2f} mm by {size} operated subjects, {both.second:.2f} mm by {size} non-operated "
        f"({last} components): {both.ratio:.2f} times"
    )
    return (
        Statement(3, *claims[0], measured, verdict(both.ratio <= _SLIGHTLY), both),
        Statement(3, *claims[1], measured, verdict_of(both, 1), both),
    )


def clinical_statements(result: ClinicalGeneralization) -> tuple[Statement, ...]:
    """Experiment 4: distances that surgeons use are preserved."""
    claims = (
        (
            "A reconstruction preserves clinical distances to about 2 mm",
            "1.82 mm on average; 0.66 (SN-NL), 3.24 (SN-NR), 1.57 (NL-NR); 109 components",
        ),
        (
            "Clinical distances are preserved best with all components",
            "below 30 components 15 to 45 mm, best with all 109",
        ),
    )
    if result.impossible:
        return not_testable(4, claims, result.impossible)
    last, before = int(result.components[-1]), min(_FEW, int(result.components[-1]) // 2)
    each = result.mean[-1]
    names = ", ".join(f"{value:.2f} ({name})" for name, value in zip(result.names, each, strict=True))
    by_subject = np.where(np.isfinite(result.straight).all(axis=2), result.straight.mean(axis=2), np.nan)
    both = paired(by_subject[:, before], by_subject[:, last])
    tape = ""
    if np.isfinite(result.tape).any():
        values = ", ".join(f"{value:.2f}" for value in result.tape_mean[-1])
        tape = f"; over the skin {float(np.nanmean(result.tape_mean[-1])):.2f} ({values})"
    best = int(np.argmin(result.average))
    average = f"{result.average[-1]:.2f} mm on average; {names}; {last} components{tape}"
    few_and_all = (
        f"{both.first:.2f} mm with {before} components, {both.second:.2f} mm with {last}; lowest with {best}"
    )
    return (
        Statement(4, *claims[0], average, verdict(bool(result.average[-1] <= _PRESERVED))),
        Statement(4, *claims[1], few_and_all, verdict_of(both, 1, best == last), both),
    )
