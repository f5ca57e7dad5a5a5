"""What the paper says of experiment 1, beside ours and beside the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breastmorph.foundation.phrases import plural
from breastmorph.paper.masks import MaskExperiment, MaskVariant
from breastmorph.paper.significance import Comparison, paired, resampled, unpaired
from breastmorph.paper.statement import (
    AGREES,
    CONTRADICTS,
    FEW_SUBJECTS,
    INDIFFERENT,
    MIXED,
    NO_PREFERENCE,
    NO_TRUTH,
    Statement,
    not_testable,
    verdict,
    verdict_of,
)

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
