"""What the paper says of experiment 1, beside ours and beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from breastmorph.evaluation.experiments.mask_truth import MaskTruth, judged, nearer, prefers
from breastmorph.evaluation.experiments.masks import MaskExperiment, MaskVariant
from breastmorph.evaluation.experiments.paired import paired, resampled, unpaired
from breastmorph.evaluation.experiments.statement import (
    FEW_SUBJECTS,
    Statement,
    not_testable,
    plural,
    tested,
    verdict,
)

_DEGREES = 0.1  # of angle distortion that still is "only a small difference"
_VERY_FIRST = 5  # components
_BEYOND = 30  # components from which on the paper compares specificity
_ALMOST_ALWAYS = 0.9  # of the samples
_ABOUT = 0.05  # of the variance: what "about 85 %" may be off


def mask_statements(result: MaskExperiment) -> tuple[Statement, ...]:
    """All statements of experiment 1 for one preset."""
    truth = MaskTruth.of(result)
    return (
        _generalization(result, truth),
        _specificity(result, truth),
        _mean_squared_error(result, truth),
        *_angles(result),
        _compactness(result),
        _eight(result),
        *_most_moved(result),
        _variance_outside(result, truth),
    )


def _generalization(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    a, b = result.with_masks, result.without_masks
    whole = paired(a.generalization[:, -1], b.generalization[:, -1])
    breast = [one.generalization_breast[:, -1].mean() for one in (a, b)]
    true = result.perfect
    more = f"true shapes generalise to {true.generalization[:, -1].mean():.2f} mm" if true is not None else ""
    return _statement(
        result,
        "Masks lower the generalization error",
        "0.17 mm with masks, 0.65 mm without (109 components)",
        f"{whole.first:.2f} mm with masks, {whole.second:.2f} mm without ({a.components[-1]} components); "
        f"breast {breast[0]:.2f} and {breast[1]:.2f} mm",
        whole.difference < 0 and whole.clear(),
        "with masks lower, p < 0.05",
        tested(whole),
        judged(truth, whole, more),
    )


def _specificity(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    text = f"Masks lower the specificity error beyond {_BEYOND} components"
    paper = f"about 2.8 mm with masks, always lower than without beyond {_BEYOND} components"
    a, b = result.with_masks, result.without_masks
    most = min(len(a.specificity), len(b.specificity))
    if most <= _BEYOND:
        return not_testable(1, text, paper, f"the models have {plural(most, 'component')}", result.preset)
    all_of_them = unpaired(a.sampled, b.sampled)
    beyond = slice(_BEYOND, most)
    lower = a.specificity[beyond] < b.specificity[beyond]
    true = result.perfect
    more = f"true shapes have {true.specificity[-1]:.2f} mm" if true is not None else ""
    return _statement(
        result,
        text,
        paper,
        f"{all_of_them.first:.2f} mm with masks, {all_of_them.second:.2f} mm without ({most} components); lower at "
        f"{int(lower.sum())} of {len(lower)} numbers of components; breast {a.specificity_breast[-1]:.2f} and "
        f"{b.specificity_breast[-1]:.2f} mm",
        all_of_them.difference < 0 and all_of_them.clear() and bool(lower.all()),
        "with masks lower at every such number of components, p < 0.05 at all components",
        tested(all_of_them),
        judged(truth, all_of_them, more),
    )


def _mean_squared_error(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    text, paper = "Masks raise the mean squared error", "2.98 with masks, 1.05 without"
    a, b = result.with_masks.scans, result.without_masks.scans
    if a is None or b is None:
        return not_testable(1, text, paper, "the raw scans were not given", result.preset)
    both = paired(a.mean_squared, b.mean_squared)
    if not both.n:
        return not_testable(1, text, paper, "no raw scan could be read", result.preset)
    inside = [float(np.nanmean(one.distance_breast)) for one in (a, b)]
    return _statement(
        result,
        text,
        paper,
        f"{both.first:.2f} mm² with masks, {both.second:.2f} mm² without; mean distance to the raw scan in "
        f"the breast {inside[0]:.2f} and {inside[1]:.2f} mm",
        both.difference > 0 and both.clear(),
        "with masks higher, p < 0.05",
        {**tested(both), "unit": "mm²"},
        judged(truth, both),
    )


def _angles(result: MaskExperiment) -> tuple[Statement, Statement]:
    a, b = result.with_masks, result.without_masks
    both = paired(b.angle_distortion, a.angle_distortion)
    paper = "0.008 degrees more without masks"
    measured = f"{both.second:.3f} degrees with masks, {both.first:.3f} without ({both.difference:+.3f})"
    own = None if result.perfect is None else float(result.perfect.angle_distortion.mean())
    near = nearer(
        both.second,
        both.first,
        own,
        prefers(both, both.difference > 0),
        "angle distortion",
        "{:.1f} degrees",
    )
    figures = {**tested(both), "unit": "degrees"}
    return (
        _statement(
            result,
            "Without masks angle distortion is larger",
            paper,
            measured,
            both.difference > 0 and both.clear(),
            "without masks larger, p < 0.05",
            figures,
            near,
        ),
        _statement(
            result,
            "Masks change angle distortion only a little",
            paper,
            measured,
            abs(both.difference) <= _DEGREES,
            f"the mean difference is at most {_DEGREES:g} degrees",
            figures,
            {},
        ),
    )


def _compactness(result: MaskExperiment) -> Statement:
    a, b = result.with_masks, result.without_masks
    first = a.resampled.components <= _VERY_FIRST
    counts = a.resampled.components[first]

    def held(one: MaskVariant) -> float:
        return float(one.share[counts - 1].mean())

    differences = b.resampled.share[:, first].mean(axis=1) - a.resampled.share[:, first].mean(axis=1)
    both = resampled(held(b), held(a), differences, len(result.ids))
    shares = ", ".join(f"{100 * b.share[c - 1]:.0f}/{100 * a.share[c - 1]:.0f}" for c in counts)
    perfect = None if result.perfect is None else held(result.perfect)
    near = nearer(
        both.second, both.first, perfect, prefers(both, both.difference < 0), "mean share", "{:.2f}"
    )
    return _statement(
        result,
        "Without masks the model is more compact in the very first components",
        "more compact without masks in the very first components",
        f"{shares} % of the variance without/with masks in the first {', '.join(map(str, counts))} components; "
        f"total variance {b.variance[-1] / len(b.sd_map):.0f} and {a.variance[-1] / len(a.sd_map):.0f} mm² a vertex",
        both.difference > 0 and both.clear(),
        "a larger mean share without masks over these numbers of components, p < 0.05",
        {**tested(both), "unit": "share of the variance"},
        near,
    )


def _eight(result: MaskExperiment) -> Statement:
    text, paper = "Eight components hold about 85 % of the variance", "about 85 %"
    a = result.with_masks
    if len(a.share) <= 8:
        reason = f"the model has {plural(len(a.share), 'component')}"
        return not_testable(1, text, paper, reason, result.preset)
    if len(result.ids) < FEW_SUBJECTS:
        # Few subjects have few directions to vary in: eight of them hold nearly all, whatever the cohort is like.
        reason = f"{len(result.ids)} subjects are too few to compare (at least {FEW_SUBJECTS})"
        return not_testable(1, text, paper, reason, result.preset)
    share = float(a.share[7])
    true = "" if result.perfect is None else f"; of the true shapes {100 * result.perfect.share[7]:.1f} %"
    return _statement(
        result,
        text,
        paper,
        f"{100 * share:.1f} % with masks, {100 * result.without_masks.share[7]:.1f} % without{true}",
        abs(share - 0.85) <= _ABOUT,
        f"between {100 * (0.85 - _ABOUT):.0f} and {100 * (0.85 + _ABOUT):.0f} % with masks",
        {"effect": share, "unit": "share of the variance", "n": len(result.ids)},
        {},
    )


def _most_moved(result: MaskExperiment) -> tuple[Statement, Statement]:
    a, b = result.with_masks, result.without_masks
    mostly = [float((one.moved_in_breast > 0.5).mean()) for one in (a, b)]
    both = unpaired(a.moved_in_breast, b.moved_in_breast)
    share = result.parameters.most_moved
    own = None if result.perfect is None else result.perfect.moved_in_breast
    true = "" if own is None else f" (samples of the true shapes: {100 * (own > 0.5).mean():.0f} %)"
    mean = None if own is None else float(own.mean())
    near = nearer(
        both.first, both.second, mean, prefers(both, both.difference > 0), "share in the breast", "{:.2f}"
    )
    return (
        _statement(
            result,
            "With masks random samples vary most at the breasts, almost always",
            "almost always located at the breasts",
            f"in {100 * mostly[0]:.0f} % of the samples most of the {100 * share:.0f} % most moved vertices lie in the "
            f"breast{true}; by area the breast is {100 * result.breast_share:.0f} % of the surface",
            mostly[0] >= _ALMOST_ALWAYS,
            f"at least {100 * _ALMOST_ALWAYS:.0f} % of the samples",
            {"effect": mostly[0], "unit": "share of the samples", "n": len(a.moved_in_breast)},
            {},
        ),
        _statement(
            result,
            "Without masks the place of highest variation is less often the breast",
            "without masks it is oftentimes not the breast",
            f"{100 * both.second:.0f} % of the most moved vertices lie in the breast without masks, "
            f"{100 * both.first:.0f} % with; mostly in the breast in {100 * mostly[1]:.0f} and {100 * mostly[0]:.0f} % "
            "of the samples",
            both.difference > 0 and both.clear(),
            "a larger share with masks, p < 0.05",
            {**tested(both), "unit": "share of the most moved vertices"},
            near,
        ),
    )


def _variance_outside(result: MaskExperiment, truth: MaskTruth | None) -> Statement:
    a, b = result.with_masks, result.without_masks

    differences = 1.0 / a.resampled.inside_over_outside - 1.0 / b.resampled.inside_over_outside
    both = resampled(1.0 / a.inside_over_outside, 1.0 / b.inside_over_outside, differences, len(result.ids))
    perfect = None if result.perfect is None else 1.0 / result.perfect.inside_over_outside
    near = nearer(
        both.first,
        both.second,
        perfect,
        prefers(both, both.difference < 0),
        "ratio outside/inside",
        "{:.2f}",
    )
    if truth is not None and both.clear():
        near = truth.with_explained_outside(near, both.difference < 0)
    sds = [np.sqrt(v) for one in (a, b) for v in (one.variance_inside, one.variance_outside)]
    return _statement(
        result,
        "Masks lower the variance outside the breast relative to that inside",
        "rather stiff surroundings, low variance, with masks",
        f"variance outside over inside {both.first:.2f} with masks, {both.second:.2f} without; sd (root mean square by "
        f"the template's mask) inside/outside {sds[0]:.1f}/{sds[1]:.1f} mm and {sds[2]:.1f}/{sds[3]:.1f} mm",
        both.difference < 0 and both.clear(),
        "the ratio is lower with masks, p < 0.05",
        {**tested(both), "unit": "ratio of variances"},
        near,
    )


def _statement(
    result: MaskExperiment,
    text: str,
    paper: str,
    measured: str,
    holds: bool,
    criterion: str,
    figures: Mapping[str, Any],
    truth: Mapping[str, Any],
) -> Statement:
    return Statement(1, result.preset, text, paper, measured, verdict(holds), criterion, **figures, **truth)
