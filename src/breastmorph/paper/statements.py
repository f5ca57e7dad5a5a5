"""The paper's statements beside ours, for all four experiments: what holds and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from breastmorph.paper.clinical_generalization import ClinicalGeneralization
from breastmorph.paper.data_amount import DataAmountExperiment
from breastmorph.paper.mask_statements import mask_statements
from breastmorph.paper.masks import MaskExperiment
from breastmorph.paper.operated import OperatedExperiment
from breastmorph.paper.significance import paired, unpaired
from breastmorph.paper.statement import Statement, not_testable, verdict, verdict_of

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
