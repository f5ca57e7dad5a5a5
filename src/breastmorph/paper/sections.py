"""The report's sections: the cohort, the four experiments, the model, editing and prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.messages import note
from breastmorph.foundation.phrases import plural
from breastmorph.model.files import load_model
from breastmorph.paper.application_parts import METHODS, step_text
from breastmorph.paper.blocks import HARD, bullets, figure, mean_sd, section
from breastmorph.paper.cohort_table import PAPER, PAPER_COUNTS, PAPER_SUBJECTS, missing_rows
from breastmorph.paper.masks import MaskExperiment, MaskVariant
from breastmorph.paper.plan import EXPERIMENTS, mask_pairs
from breastmorph.paper.significance import RELEVANT, Comparison
from breastmorph.paper.statements import FEW_SUBJECTS, MaskTruth, Statement
from breastmorph.paper.summary import StudyResults, refusals
from breastmorph.report.document import Block, Cell, Column, ModelSliders, Section, Table

_SHOWN = 12  # scans with remarks that are named
_METRICS = {  # of a registration's record: column, digits
    "distance_inside": (Column("template to scan, breast", "mm", number=True), 2),
    "distance_outside": (Column("template to scan, outside", "mm", number=True), 2),
    "angle_distortion": (Column("angle distortion", "°", number=True), 2),
    "flipped_percent": (Column("flipped triangles", "%", number=True), 3),
}


def cohort_section(results: StudyResults) -> Section:
    """Who is in the study."""
    blocks = (_described(results), _table_1(results), *_check(results), *_registrations(results))
    return section("The cohort", *blocks)


def _described(results: StudyResults) -> str:
    phantom = results.parameters.phantom
    if phantom is None:
        scans = results.run.result("scans").get("files", {})
        return note(
            "study/own-scans",
            "{n} scans from the folder given with --cohort; their hashes are at the end.",
            n=len(scans),
        ).cause.text()
    return (
        f"{phantom} synthetic adult torsos, drawn with seed {results.parameters.seed} from ranges of age, size "
        "and breast volume like those of the paper's table 1, and scanned by a simulated scanner from three "
        "views, with holes and noise. Nobody's data are in this study. Where every point of the skin belongs "
        "is known, so registrations can be judged by truth."
    )


def _table_1(results: StudyResults) -> Table | str:
    found = results.run.result("table")
    if not found:
        why = results.why_not("table")
        return f"Age, body mass index, volumes and operations are not shown. {why}"
    scans = len(results.run.result("scans").get("files", {}))
    rows: list[tuple[Cell, ...]] = [("scans", str(scans), str(PAPER_SUBJECTS))]
    rows += [
        (paper.title, _spread(found["figures"].get(name)), _spread(vars(paper)))
        for name, paper in PAPER.items()
    ]
    for name, (title, count) in PAPER_COUNTS.items():
        ours = found["counts"].get(name)
        shown = f"{ours['yes']} of {ours['known']}" if ours else None
        rows.append((title, shown, f"{count} of {PAPER_SUBJECTS}"))
    dash = "A dash: not in cohort.csv." if any(None in row for row in rows) else ""
    return Table(
        "The cohort beside the paper's (table 1): mean ± standard deviation (range)",
        ("", Column("this cohort", number=True), Column("paper's cohort", number=True)),
        tuple(rows),
        f"{dash} {missing_rows(found)}".strip(),
    )


def _spread(figure: Mapping[str, Any] | None) -> str | None:
    if not figure:
        return None
    digits = 1 if figure["mean"] < 100 else 0
    mean, sd, low, high = (f"{figure[name]:.{digits}f}" for name in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd} ({low} to {high})"


def _check(results: StudyResults) -> list[Block | str]:
    found = results.run.result("check")
    if not found:
        return [f"The check of the scans is missing. {results.why_not('check')}"]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in found["counts"].items())
    rows = [
        (scan_id, one["verdict"], "; ".join(one["remarks"]))
        for scan_id, one in found["scans"].items()
        if one["remarks"]
    ]
    more = len(rows) - _SHOWN
    note = f"And {more} more; all are in parts/check.json." if more > 0 else ""
    table = Table("Scans with remarks", ("scan", "verdict", "remarks"), tuple(rows[:_SHOWN]), note)
    return [f"Checked before any computing: {counts}.", *([table] if rows else [])]


def _registrations(results: StudyResults) -> list[Block | None]:
    rows: list[tuple[Cell, ...]] = []
    failures: dict[str, list[str]] = {}  # ways of registering, by what went wrong
    variants = results.parameters.variants
    for variant in variants:
        found = results.run.result(f"register-{variant.name}")
        if not found:
            rows.append((variant.title, results.why_not(f"register-{variant.name}"), *[None] * 4))
            continue
        values = {name: [v for v in found["metrics"].get(name, []) if v is not None] for name in _METRICS}
        means = (mean_sd(values[name], digits) for name, (_, digits) in _METRICS.items())
        rows.append((variant.title, str(len(found["subjects"])), *means))
        for scan_id, why in found["failed"].items():
            failures.setdefault(f"{scan_id} could not be registered: {why}", []).append(variant.title)
    table = Table(
        "Registrations: mean ± standard deviation over the scans",
        ("method", "scans", *(column for column, _ in _METRICS.values())),
        tuple(rows),
        "Template to scan: mean distance at the end of the registration over points whose skin faces the scan (breast: "
        "mask above 0.2). Experiment 1 measures against the raw scan, over all points that it covers, and so gets a "
        "little more. Small distances do not make a registration right: a point may lie on the skin and yet not where "
        "it belongs. Experiment 1 says what the truth says.",
    )
    by = {what: ", ".join(ways) for what, ways in failures.items()}
    every = {what: "by every method" for what, ways in failures.items() if len(ways) == len(variants)}
    return [table, bullets([f"{what} ({ways})" for what, ways in (by | every).items()])]


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


_MEASURED = {  # measures of modes, in the records' names: column, size of its unit, digits
    "SN-N": (Column("SN-N", "cm", number=True), 10.0, 1),
    "volume": (Column("volume", "cc", number=True), 1.0, 0),
    "nipple above fold": (Column("nipple above fold", "mm", number=True), 1.0, 0),
}
_ERRORS = {  # of predictions: title, unit, digits
    "points": ("distance of points", "mm", 2),
    "surface": ("distance to the surface", "mm", 2),
    "volume": ("difference of volume", "cc", 0),
}


def model_section(results: StudyResults) -> Section:
    """The model of the default method with masks, to be turned and moved."""
    modes = figure(
        results,
        "figure-modes",
        "modes",
        "The first modes of the model with masks at minus and plus two standard deviations, from the front, "
        "oblique and from the patient's left; colours: how far the skin moves outwards (red) or inwards (blue) "
        "from the mean. Beside each mode, what it means in measures: mean of both sides, and left minus right "
        "where the sides change differently.",
    )
    return section("The shape model", *_model(results), modes, *_modes(results))


def _model(results: StudyResults) -> list[Block | str]:
    why = results.why_not("model-masks")
    if why:
        return [f"There is no model to look at. {why}"]
    found = results.run.result("model-masks")
    held = ""
    if found["components"] > 8:
        few = ", of 110 subjects: not comparable" if found["subjects"] < FEW_SUBJECTS else ""
        share = 100 * found["share"]["8"]
        held = f"; the first 8 hold {share:.0f} % of the variance (the paper's: about 85 %{few})"
    model = load_model(results.run.study.model("masks"))
    return [
        f"The model of {found['subjects']} subjects has {found['vertices']:,} vertices and "
        f"{plural(found['components'], 'component')}{held}.",
        ModelSliders(model, "The mean shape of the model with masks; on the screen with its first modes."),
    ]


def _modes(results: StudyResults) -> list[Block | str]:
    """What the modes mean in measures, and a warning where their ends are no skin any more."""
    found = results.run.result("figure-modes").get("modes", [])
    if not found:
        return []
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        cells = [_from_to(one["measures"].get(name), *shown[1:]) for name, shown in _MEASURED.items()]
        grades = [" / ".join(dict.fromkeys(grade)) for grade in one["ptosis"]]  # one where both sides have it
        name, share = f"mode{HARD}{one['mode']}", f"{100 * one['share']:.1f}"
        rows.append((name, share, *cells, " to ".join(dict.fromkeys(grades)), str(sum(one["inside_out"]))))
    table = Table(
        f"What the modes mean: measures from minus to plus {found[0]['deviations']:g} sd, left / right",
        (
            "",
            Column("variance", "%", number=True),
            *(shown[0] for shown in _MEASURED.values()),
            "Regnault's grade",
            Column("inside-out triangles at ±3 sd", number=True),
        ),
        tuple(rows),
        "Inside-out triangles face against their surroundings, and do not in the mean. Regnault's grade once "
        "where both sides have the same, and once where it stays.",
    )
    folded = [str(one["mode"]) for one in found if sum(one["inside_out"])]
    if not folded:
        return [table]
    return [
        table,
        f"At plus or minus three standard deviations skin turns inside out in {plural(len(folded), 'mode')} "
        f"({', '.join(folded)}): sliders that far show shapes that nobody has. Two standard deviations are meant to be "
        "looked at.",
    ]


def _from_to(ends: Any, size: float, digits: int) -> str | None:
    if ends is None or any(value is None for side in ends for value in side):
        return None
    sides = (" / ".join(f"{value / size:.{digits}f}".replace("-", "−") for value in side) for side in ends)
    return " to ".join(sides)


def editing_section(results: StudyResults) -> Section:
    """Editing by measures."""
    title = "Application 1: editing by clinical distances"
    found = results.run.result("editing")
    if not found:
        return section(title, results.why_not("editing"))
    titles = {"before": 2, "asked for": 2, "exact version": 2, "linear version": 2}
    columns = (*(Column(name, "cm", digits) for name, digits in titles.items()), Column("change", "sd", 1))
    return section(
        title,
        "Each of the distances SN-NL, SN-NR and NL-NR (sternal notch to the left and right nipple, nipple "
        "to nipple) is changed by one standard deviation of the model while the other two stay. The exact "
        "version finds the most likely shape that has the distance asked for; the linear version is the "
        "paper's regression.",
        figure(
            results,
            "editing",
            "editing",
            "Edited subjects beside the originals: the orange distance was to become shorter or longer by one "
            "standard deviation while the other two stay.",
        ),
        Table(
            "Asked for and attained",
            ("subject and distance", *columns),
            tuple(_edit_row(edit) for edit in found["edits"]),
            "The last column is the length of the exact version's change in standard deviations of the model.",
        ),
        bullets(refusals(results.run)),
    )


def _edit_row(edit: dict[str, Any]) -> tuple[Cell, ...]:
    name = f"{edit['subject']}: {edit['measure']} {step_text(edit['step_sd'])}"
    asked = (edit[key] / 10.0 if key in edit else None for key in ("before", "requested"))
    attained = (
        "refused" if "refused" in edit[method] else edit[method]["after"] / 10.0
        for method in ("exact", "linear")
    )
    return (name, *asked, *attained, edit["exact"].get("length_sd"))


def prediction_section(results: StudyResults) -> Section:
    """Prediction of a missing breast."""
    title = "Application 2: predicting a missing breast"
    found = results.run.result("prediction")
    if not found:
        return section(title, results.why_not("prediction"))
    some, of_all = len(found["subjects"]), results.run.result("model-masks").get("subjects")
    who = f"all {some} subjects" if some == of_all else f"{plural(some, 'subject')} drawn at random"
    rows: list[tuple[Cell, ...]] = []
    for name, (what, unit, digits) in _ERRORS.items():
        errors = found["errors"][name]
        means = [
            f"{errors['mean'][method]:.{digits}f} ({errors['median'][method]:.{digits}f})"
            for method in METHODS
        ]
        against = Comparison.from_record(errors["against_mirror"])
        test = against.p_text.replace(" ", HARD) or None
        rows.append((f"{what}, {unit}", *means, against.effect_text(unit) or None, test, against.verdict))
    return section(
        title,
        f"Both breasts of {who} are taken away, one at a time, "
        "and predicted from the rest of the torso by a model of all other subjects. Mirroring takes the "
        "other breast across the body's plane of symmetry; both are joined to the chest in the same way. "
        "The model's prediction also says how sure it is.",
        f"On average over the breast the predicted standard deviation along the skin's normal is "
        f"{found['deviation']:.1f} mm, and {100 * found['covered']:.0f} % of the true points lie within "
        "1.96 standard deviations (95 % would be right on average).",
        figure(
            results,
            "prediction",
            "prediction",
            "Registered scans with the region taken away in red, its prediction by a model of the other subjects, "
            "the truth, the standard deviation that the prediction states, and the mirror image of the other "
            "breast. Below, the mean distance of the breast's points from the true surface.",
        ),
        Table(
            f"Errors of {found['predictions']} predictions of left-out subjects: mean (median) of absolute values",
            (
                "error",
                *(Column(method, number=True) for method in METHODS),
                "model minus mirror (95 % interval)",
                "test",
                "model and mirror",
            ),
            tuple(rows),
            "Difference of model and mirror with its 95 % confidence interval, as a share of the mirror's error, "
            "and in standard deviations (d). Wilcoxon's signed-rank test over the subjects, both sides of one "
            f"subject taken together. They differ where p < 0.05 and by at least {100 * RELEVANT:.0f} %.",
        ),
    )
