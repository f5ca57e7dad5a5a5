"""The report's sections on the four experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.phrases import plural
from breastmorph.paper.blocks import bullets, figure, mean_sd, section
from breastmorph.paper.mask_statements import MaskTruth
from breastmorph.paper.masks import MaskExperiment, MaskVariant
from breastmorph.paper.plan import EXPERIMENTS, mask_pairs
from breastmorph.paper.statement import Statement
from breastmorph.paper.summary import StudyResults
from breastmorph.report.document import Block, Cell, Column, Section, Table

_METHODS = {"": "The default method", "-paper": "The printed method"}
_AT = (1, 2, 5, 10, 20, 30, 50)  # components in tables, and all
BANDS = (
    "Bands are 95 % confidence intervals: of compactness and generalization by bootstrap over the subjects, of "
    "specificity over the random samples of the model."
)
_BY_TRUTH = {
    "contradicts": "the measure prefers the registration that is worse by truth",
    "mixed": "by truth each registration is better in one respect",
    "agrees": "truth agrees",
    "no difference": "truth sees no difference",
    "no preference": "the measure sees no difference that matters",
}


def masks_section(results: StudyResults) -> Section:
    """Experiment 1, for every method."""
    pairs = mask_pairs(results.parameters)
    left_out = "The printed method was left out of this study; `breastmorph paper` has it."
    return section(
        EXPERIMENTS[1],
        "The same scans are registered twice, with and without breast probability masks. With masks the "
        "template follows the scan closely in the breasts and only roughly elsewhere, so that the model should "
        "vary in the breasts and not in the thorax.",
        "Compactness, generalization and specificity reward a cohort that has collapsed: shapes that are all "
        "alike are easy to reconstruct. So the truth is asked too, where it is known: how far points lie from "
        "where they belong, and how much of the true variation is explained (1 is perfect, 0 no better than "
        "the mean shape). A model with a smaller error than that of the true shapes is not better.",
        figure(
            results,
            "figure-mask-contours",
            "mask-contours",
            "Breast probability masks on the template: one round basis function a breast, one elliptic, and the sum of "
            "two elliptic ones that is used.",
        ),
        *(section(_METHODS[ending], *_one_method(results, ending)) for ending in pairs),
        None if results.parameters.printed_method else left_out,
    )


def _one_method(results: StudyResults, ending: str) -> list[Block | str | None]:
    found = results.masks.get(ending)
    if found is None:
        return [results.why_not(f"experiment-1{ending}")]
    statements = [one for one in results.statements if one.experiment == 1 and one.preset == found.preset]
    without = results.run.result(f"experiment-1{ending}").get("why_no_truth", "")
    return [
        _overview(found),
        *([f"What the truth says cannot be shown: {without}."] if without else []),
        figure(
            results,
            f"figure-experiment-1{ending}",
            f"experiment-1{ending}-curves",
            f"Compactness (a), generalization (b) and specificity (c) of {_METHODS[ending].lower()} by the number of "
            f"components. {BANDS}"
            + (
                " True shapes: a model of the true torsos themselves; a curve below it is no better, its cohort has "
                "collapsed."
                if found.perfect is not None
                else ""
            ),
        ),
        _by_components(found),
        figure(
            results,
            f"figure-variation{ending}",
            f"variation{ending}",
            "How far the skin varies about the mean of both models: standard deviation of every point. "
            "The numbers are root mean squares inside and outside the line, the breast mask on the model's own mean; "
            "the statements take the mask on the template, and so differ a little.",
        ),
        figure(
            results,
            f"figure-experiment-1{ending}",
            f"experiment-1{ending}-registration",
            "Mean squared distance between registered shape and scan, and distortion of the template's angles: every "
            "subject as a point; the box holds the middle half and the median, the diamond is the mean.",
        ),
        figure(
            results,
            f"figure-samples{ending}",
            f"samples{ending}",
            "Random samples of both models, coloured by the distance from the mean. Marked are samples that are more "
            "unusual than nine of ten subjects (unusual) or than any subject could be expected to be (unlike people), "
            "and those whose skin is inside out somewhere.",
        ),
        *_remarks(statements, found),
    ]


def _by_components(found: MaskExperiment) -> Table:
    """Generalization and specificity at some numbers of components."""
    variants = _variants(found)
    most = min(len(one.specificity) for one in variants.values())
    last = min(int(one.components[-1]) for one in variants.values())
    counts = [count for count in _AT if count < last] + [last] + ([most] if most > last else [])
    rows = []
    for count in counts:
        general = [
            float(one.generalization[:, count].mean()) if count <= last else None for one in variants.values()
        ]
        rows.append((str(count), *general, *(float(one.specificity[count - 1]) for one in variants.values())))
    columns = [f"{what}, {name}" for what in ("generalization", "specificity") for name in variants]
    return Table(
        f"Generalization and specificity by number of components ({len(found.ids)} subjects)",
        ("components", *(Column(name, "mm", 2) for name in columns)),
        tuple(rows),
        f"A model that leaves one subject out has at most {last} components.",
    )


def _overview(found: MaskExperiment) -> Table:
    """The paper's measures with all components, and what the truth says."""
    variants = _variants(found)
    every = list(variants.values())
    rows: list[tuple[Cell, ...]] = [
        ("generalization, mm", *(mean_sd(one.generalization[:, -1]) for one in every)),
        ("generalization to the raw scan, breast, mm", *(_of_scans(one, "reconstructed") for one in every)),
        ("specificity, mm", *(f"{one.specificity[-1]:.2f}" for one in every)),
        ("variance in 8 components, %", *(_percent(one.share) for one in every)),
        ("total variance of a point, mm²", *(f"{np.square(one.sd_map).mean():.0f}" for one in every)),
        ("variance in the breasts over that elsewhere", *(f"{one.inside_over_outside:.2f}" for one in every)),
        ("mean squared distance to the scan, mm²", *(_of_scans(one, "squared") for one in every)),
        ("angle distortion, °", *(mean_sd(one.angle_distortion) for one in every)),
    ]
    note = ""
    if found.perfect is not None:
        truths = [one.truth for one in every]
        for c, where in enumerate(("breast", "outside")):
            errors = [mean_sd(t.correspondence[:, c], 1) if t else "0" for t in truths]
            explained = [f"{getattr(t, f'explained_{where}'):.2f}" if t else "1" for t in truths]
            spread = [f"{getattr(t, f'sd_ratio_{where}'):.2f}" if t else "1" for t in truths]
            rows += [
                (f"correspondence error, {where}, mm", *errors),
                (f"explained variation, {where}", *explained),
                (f"spread over the true one, {where}", *spread),
            ]
        note = (
            "Correspondence error: mean distance of points from where they belong. Explained variation: 1 is perfect, "
            "0 no better than the mean shape, below 0 worse. True shapes: a model of the true torsos themselves."
        )
    columns = [Column(name, number=True) for name in variants]
    title = "The paper's measures and the truth"
    return Table(title, ("with all components", *columns), tuple(rows), note)


def _variants(found: MaskExperiment) -> dict[str, MaskVariant]:
    variants = {"with masks": found.with_masks, "without masks": found.without_masks}
    return variants if found.perfect is None else variants | {"true shapes": found.perfect}


def _percent(share: Floats) -> str | None:
    return f"{100.0 * share[7]:.0f}" if len(share) > 7 else None


def _of_scans(one: MaskVariant, what: str) -> str | None:
    """Distance to the raw scans, where there are any: of reconstructions, or squared of the registered shapes."""
    if one.scans is None:
        return None
    values = one.scans.mean_squared if what == "squared" else one.scans.reconstructed_breast[:, -1]
    return mean_sd(values) or None


def _remarks(statements: Sequence[Statement], found: MaskExperiment) -> list[Block | str | None]:
    """What the truth says of single statements, without what the table of truth says already."""
    truth = MaskTruth.of(found)
    common = truth.text() if truth is not None else ""
    remarks = []
    for one in statements:
        own = one.truth.replace(common, "").strip("; ") if common else one.truth
        if one.by_truth in ("contradicts", "mixed") or own:
            meaning = _BY_TRUTH.get(one.by_truth, one.by_truth)
            remarks.append(f"{one.text}: {own}; {meaning}." if own else f"{one.text}: {meaning}.")
    return ["What the truth says of the statements in section 1:", bullets(remarks)] if remarks else []


def data_section(results: StudyResults) -> Section:
    """Experiment 2."""
    found = results.amounts
    if found is None or found.impossible:
        return section(EXPERIMENTS[2], results.why_not("experiment-2"))
    rows: list[tuple[Cell, ...]] = []
    for amount in found.amounts:
        cells: list[Cell] = [amount.name, str(len(amount.draws))]
        for name, digits, factor in (
            ("share", 1, 100.0),
            ("generalization", 2, 1.0),
            ("specificity", 2, 1.0),
        ):
            components, mean, spread = amount.curve(name)
            at = int(np.searchsorted(components, found.common))
            around = f" ± {factor * spread[at]:.{digits}f}" if len(amount.draws) > 1 else ""
            cells.append(f"{factor * mean[at]:.{digits}f}{around}")
        rows.append(tuple(cells))
    units = {"share of the variance": "%", "generalization": "mm", "specificity": "mm"}
    return section(
        EXPERIMENTS[2],
        f"Random subsets of the cohort, {found.parameters.draws} of each size, each with a model and a "
        "leave-one-out of its own; then all scans.",
        figure(
            results,
            "figure-experiment-2",
            "experiment-2",
            f"Compactness (a), generalization (b) and specificity (c) by the number of scans. {BANDS}",
        ),
        Table(
            f"With {found.common} components: mean ± standard deviation over the draws",
            ("scans", "draws", *(Column(name, unit, number=True) for name, unit in units.items())),
            tuple(rows),
            f"{found.common} components are all that a left-out model of the smallest subset has.",
        ),
    )


def operated_section(results: StudyResults) -> Section:
    """Experiment 3."""
    found = results.operated
    if found is None or found.impossible:
        return section(EXPERIMENTS[3], results.why_not("experiment-3"))
    size, tested = len(found.draws[0].training), len(found.draws[0].tested)
    curves = [found.curve(name)[0] for name in ("operated", "not_operated")]
    titles = ("model of operated breasts", "model of non-operated breasts")
    return section(
        EXPERIMENTS[3],
        f"Models of {size} operated subjects, drawn at random {len(found.draws)} times, reconstruct "
        f"{tested} subjects without an operation; models of {size} of these reconstruct the one left out.",
        figure(
            results,
            "figure-experiment-3",
            "experiment-3",
            "Generalization to breasts without an operation. Band: 95 % confidence interval of the mean, bootstrap "
            "over the subjects.",
        ),
        Table(
            "Generalization error to breasts without an operation",
            ("components", *(Column(title, "mm", 2) for title in titles)),
            tuple((str(c), *(float(curve[c]) for curve in curves)) for c in _shown(found.components)),
        ),
    )


def clinical_section(results: StudyResults) -> Section:
    """Experiment 4."""
    found = results.clinical
    if found is None or found.impossible:
        return section(EXPERIMENTS[4], results.why_not("experiment-4"))
    rows: list[tuple[Cell, ...]] = [
        (f"straight, {plural(c, 'component')}", *map(float, found.mean[c]), float(found.average[c]))
        for c in _shown(found.components)
    ]
    others = {
        f"along the skin, {plural(int(c), 'component')}": found.tape_mean[k]
        for k, c in enumerate(found.tape_components)
        if np.isfinite(found.tape_mean[k]).any()
    }
    others["registration alone, straight"] = np.nanmean(found.registered, axis=0)
    rows += [(what, *map(float, values), float(np.nanmean(values))) for what, values in others.items()]
    return section(
        EXPERIMENTS[4],
        "Distances between landmarks of the raw scan against those of the reconstruction by a model that "
        "has not seen the subject, at the subject's own size.",
        figure(
            results,
            "figure-experiment-4",
            "experiment-4",
            "Absolute differences of clinical distances by the number of components. Band of the average: 95 % "
            "confidence interval of the mean, bootstrap over the subjects.",
        ),
        Table(
            "Absolute differences: means over the subjects",
            ("distance", *(Column(name, "mm", 2) for name in (*found.names, "average"))),
            tuple(rows),
        ),
        bullets(found.notes),
    )


def _shown(components: Ints) -> list[int]:
    """Numbers of components that a table shows."""
    return [int(c) for c in components if c in (0, *_AT) or c == components[-1]]
