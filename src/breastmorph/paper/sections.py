"""The report's sections on cohort and applications, and what all sections share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from breastmorph.foundation.errors import FileProblem, Finding
from breastmorph.foundation.phrases import plural
from breastmorph.model.files import load_model
from breastmorph.paper.cohort_parts import PAPER, PAPER_COUNTS, PAPER_SUBJECTS, missing_rows
from breastmorph.paper.evidence import (
    BOOTSTRAP,
    FEW_SUBJECTS,
    NO,
    RANK_SUM,
    RELEVANT,
    SIGNED_RANKS,
    SMALL,
    YES,
    Comparison,
    Statement,
    p_text,
)
from breastmorph.paper.result_parts import METHODS, step_text
from breastmorph.paper.summary import StudyResults, refusals
from breastmorph.report.page import Block, Cell, Column, Figure, ModelSliders, Section, Table, Text, Verdict

# --------------------------------------------------------------------------------------------------------------------
# Pieces that all sections have: a figure or why there is none, numbers beside each other, statements
# --------------------------------------------------------------------------------------------------------------------

_VERDICTS = {YES: Verdict.HOLDS, NO: Verdict.FAILS, SMALL: Verdict.SMALL}
_TESTS = {SIGNED_RANKS: "S", RANK_SUM: "R", BOOTSTRAP: "B"}
_HARD = "\N{NO-BREAK SPACE}"


def figure(results: StudyResults, part: str, name: str, caption: str) -> Block:
    """A figure of the study, or why there is none."""
    why = results.why_not(part)
    if why:
        return Text((f"There is no figure here. {why}",))
    try:
        return Figure.load(results.run.study.figure(name), caption)
    except FileProblem:
        return Text(
            (f"The figure {name} is not in the study's folder any more; run `breastmorph paper` again.",)
        )


def statement_table(statements: Sequence[Statement], caption: str) -> Table:
    """The paper's statements beside ours."""
    used = {one.test: _TESTS[one.test] for one in statements if one.test in _TESTS}
    asked = any(one.by_truth for one in statements)
    note = "; ".join(f"{letter}: {test}" for test, letter in used.items())
    rows = tuple(
        (
            one.text,
            one.paper,
            one.measured,
            _VERDICTS.get(one.holds, Verdict.UNTESTABLE),
            one.effect_text or None,
            _test_text(one),
            *([one.by_truth or None] if asked else []),
        )
        for one in statements
    )
    columns = ["statement", "paper", "here", "verdict", "effect (95 % interval)", "test"]
    columns += ["by truth"] if asked else []
    note = (
        f"The verdict follows the effect: what differs by more than chance but by less than {100 * RELEVANT:.0f} % is "
        "too small to matter. Effect: difference with its 95 % confidence interval, as a share of what it is compared "
        "with, and in standard deviations (d). Tests with the number of subjects or samples. " + note + "."
        if note
        else ""
    )
    return Table(caption, tuple(columns), rows, note)


def _test_text(one: Statement) -> str | None:
    """A test in short: its p-value, its letter and over how many."""
    if not one.p_text:
        return None
    letter = _TESTS.get(one.test, one.test)
    return f"{one.p_text.replace(' ', _HARD)} ({letter},{_HARD}{one.n})"


def mean_sd(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    """Mean and standard deviation over what is known; empty where nothing is."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return ""
    if len(known) == 1:
        return f"{known[0]:.{digits}f}"
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"


# --------------------------------------------------------------------------------------------------------------------
# The cohort, its check and its registrations
# --------------------------------------------------------------------------------------------------------------------

_SHOWN = 12  # scans with remarks that are named


def cohort_section(results: StudyResults) -> Section:
    """Who is in the study."""
    blocks: list[Block] = [_described(results)]
    blocks.append(_table_1(results))
    blocks += _check(results)
    blocks += _registrations(results)
    return Section("The cohort", tuple(blocks))


def _described(results: StudyResults) -> Text:
    phantom = results.parameters.phantom
    if phantom is not None:
        return Text(
            (
                f"{phantom} synthetic adult torsos, drawn with seed {results.parameters.seed} from ranges of age, size "
                "and breast volume like those of the paper's table 1, and scanned by a simulated scanner from three "
                "views, with holes and noise. Nobody's data are in this study. Where every point of the skin belongs "
                "is known, so registrations can be judged by truth.",
            )
        )
    scans = results.run.result("scans").get("files", {})
    return Text((Finding("study/own-scans", {"n": len(scans)}).said("command").cause,))


def _table_1(results: StudyResults) -> Block:
    found = results.run.result("table")
    scans = len(results.run.result("scans").get("files", {}))
    if not found:
        why = results.why_not("table")
        return Text((f"Age, body mass index, volumes and operations are not shown. {why}",))
    rows: list[tuple[Cell, ...]] = [("scans", str(scans), str(PAPER_SUBJECTS))]
    for name, paper in PAPER.items():
        ours = found["figures"].get(name)
        rows.append((paper.title, _spread(ours), _spread(vars(paper))))
    for name, (title, count) in PAPER_COUNTS.items():
        ours = found["counts"].get(name)
        rows.append(
            (title, f"{ours['yes']} of {ours['known']}" if ours else None, f"{count} of {PAPER_SUBJECTS}")
        )
    columns = ("", Column("this cohort", number=True), Column("paper's cohort", number=True))
    dash = "A dash: not in cohort.csv." if any(None in row for row in rows) else ""
    return Table(
        "The cohort beside the paper's (table 1): mean ± standard deviation (range)",
        columns,
        tuple(rows),
        f"{dash} {missing_rows(found)}".strip(),
    )


def _spread(figure: dict[str, Any] | None) -> str | None:
    if not figure:
        return None
    digits = 1 if figure["mean"] < 100 else 0
    return (
        f"{figure['mean']:.{digits}f} ± {figure['sd']:.{digits}f} "
        f"({figure['low']:.{digits}f} to {figure['high']:.{digits}f})"
    )


def _check(results: StudyResults) -> list[Block]:
    found = results.run.result("check")
    if not found:
        return [Text((f"The check of the scans is missing. {results.why_not('check')}",))]
    counts = found["counts"]
    blocks: list[Block] = [
        Text(
            (
                "Checked before any computing: "
                + ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
                + ".",
            )
        )
    ]
    remarks = [
        (scan_id, one["verdict"], "; ".join(one["remarks"]))
        for scan_id, one in found["scans"].items()
        if one["remarks"]
    ]
    if remarks:
        more = len(remarks) - _SHOWN
        note = f"And {more} more; all are in parts/check.json." if more > 0 else ""
        blocks.append(
            Table("Scans with remarks", ("scan", "verdict", "remarks"), tuple(remarks[:_SHOWN]), note)
        )
    return blocks


def _registrations(results: StudyResults) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    failures: dict[str, list[str]] = {}  # ways of registering, by what went wrong
    for variant in results.parameters.variants:
        found = results.run.result(f"register-{variant.name}")
        if not found:
            rows.append((variant.title, results.why_not(f"register-{variant.name}"), *[None] * 4))
            continue
        metrics = found["metrics"]
        rows.append(
            (
                variant.title,
                str(len(found["subjects"])),
                *(
                    _metric(metrics, name, digits)
                    for name, digits in (
                        ("distance_inside", 2),
                        ("distance_outside", 2),
                        ("angle_distortion", 2),
                        ("flipped_percent", 3),
                    )
                ),
            )
        )
        for scan_id, why in found["failed"].items():
            failures.setdefault(f"{scan_id} could not be registered: {why}", []).append(variant.title)
    table = Table(
        "Registrations: mean ± standard deviation over the scans",
        (
            "method",
            "scans",
            Column("template to scan, breast", "mm", number=True),
            Column("template to scan, outside", "mm", number=True),
            Column("angle distortion", "°", number=True),
            Column("flipped triangles", "%", number=True),
        ),
        tuple(rows),
        "Template to scan: mean distance at the end of the registration over points whose skin faces the scan (breast: "
        "mask above 0.2). Experiment 1 measures against the raw scan, over all points that it covers, and so gets a "
        "little more. Small distances do not make a registration right: a point may lie on the skin and yet not where "
        "it belongs. Experiment 1 says what the truth says.",
    )
    ways = len(results.parameters.variants)
    lines = [f"{what} ({_by(titles, ways)})" for what, titles in failures.items()]
    return [table, Text(tuple(lines), bullets=True)] if lines else [table]


def _by(titles: list[str], ways: int) -> str:
    return "by every method" if len(titles) == ways else ", ".join(titles)


def _metric(metrics: dict[str, list[Any]], name: str, digits: int) -> str:
    return mean_sd([value for value in metrics.get(name, []) if value is not None], digits)


# --------------------------------------------------------------------------------------------------------------------
# The models to look at, and the two applications
# --------------------------------------------------------------------------------------------------------------------


def model_section(results: StudyResults) -> Section:
    """The model of the default method with masks, to be turned and moved."""
    blocks: list[Block] = []
    why = results.why_not("model-masks")
    if why:
        blocks.append(Text((f"There is no model to look at. {why}",)))
    else:
        found = results.run.result("model-masks")
        held = ""
        if found["components"] > 8:
            few = ", of 110 subjects: not comparable" if found["subjects"] < FEW_SUBJECTS else ""
            share = 100 * found["share"]["8"]
            held = f"; the first 8 hold {share:.0f} % of the variance (the paper's: about 85 %{few})"
        blocks.append(
            Text(
                (
                    f"The model of {found['subjects']} subjects has {found['vertices']:,} vertices and "
                    f"{plural(found['components'], 'component')}{held}.",
                )
            )
        )
        model = load_model(results.run.study.model("masks"))
        blocks.append(
            ModelSliders(model, "The mean shape of the model with masks; on the screen with its first modes.")
        )
    blocks.append(
        figure(
            results,
            "figure-modes",
            "modes",
            "The first modes of the model with masks at minus and plus two standard deviations, from the front, "
            "oblique and from the patient's left; colours: how far the skin moves outwards (red) or inwards (blue) "
            "from the mean. Beside each mode, what it means in measures: mean of both sides, and left minus right "
            "where the sides change differently.",
        )
    )
    blocks += _modes(results)
    return Section("The shape model", tuple(blocks))


def _modes(results: StudyResults) -> list[Block]:
    """What the modes mean in measures, and a warning where their ends are no skin any more."""
    found = results.run.result("figure-modes").get("modes", [])
    if not found:
        return []
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        ends = one["measures"]
        cells = [_from_to(ends.get(name), size, digits) for name, size, digits in _MEASURED]
        grades = [" / ".join(dict.fromkeys(grade)) for grade in one["ptosis"]]  # one where both sides have it
        folds = sum(one["inside_out"])
        rows.append(
            (
                f"mode\N{NO-BREAK SPACE}{one['mode']}",
                f"{100 * one['share']:.1f}",
                *cells,
                " to ".join(dict.fromkeys(grades)),
                str(folds),
            )
        )
    table = Table(
        f"What the modes mean: measures from minus to plus {found[0]['deviations']:g} sd, left / right",
        (
            "",
            Column("variance", "%", number=True),
            Column("SN-N", "cm", number=True),
            Column("volume", "cc", number=True),
            Column("nipple above fold", "mm", number=True),
            Column("Regnault's grade"),
            Column("inside-out triangles at ±3 sd", number=True),
        ),
        tuple(rows),
        "Inside-out triangles face against their surroundings, and do not in the mean. Regnault's grade once "
        "where both sides have the same, and once where it stays.",
    )
    folded = [str(one["mode"]) for one in found if sum(one["inside_out"])]
    if not folded:
        return [table]
    words = (
        f"At plus or minus three standard deviations skin turns inside out in {plural(len(folded), 'mode')} "
        f"({', '.join(folded)}): sliders that far show shapes that nobody has. Two standard deviations are meant to be "
        "looked at."
    )
    return [table, Text((words,))]


_MEASURED = (
    ("SN-N", 10.0, 1),
    ("volume", 1.0, 0),
    ("nipple above fold", 1.0, 0),
)  # name, size of its unit, digits


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
        return Section(title, (Text((results.why_not("editing"),)),))
    rows = [_edit_row(edit) for edit in found["edits"]]
    refused = refusals(results.run)
    return Section(
        title,
        (
            Text(
                (
                    "Each of the distances SN-NL, SN-NR and NL-NR (sternal notch to the left and right nipple, nipple "
                    "to nipple) is changed by one standard deviation of the model while the other two stay. The exact "
                    "version finds the most likely shape that has the distance asked for; the linear version is the "
                    "paper's regression.",
                )
            ),
            figure(
                results,
                "editing",
                "editing",
                "Edited subjects beside the originals: the orange distance was to become shorter or longer by one "
                "standard deviation while the other two stay.",
            ),
            Table(
                "Asked for and attained",
                (
                    "subject and distance",
                    Column("before", "cm", 2),
                    Column("asked for", "cm", 2),
                    Column("exact version", "cm", 2),
                    Column("linear version", "cm", 2),
                    Column("change", "sd", 1),
                ),
                tuple(rows),
                "The last column is the length of the exact version's change in standard deviations of the model.",
            ),
            *([Text(tuple(refused), bullets=True)] if refused else []),
        ),
    )


def _edit_row(edit: dict[str, Any]) -> tuple[Cell, ...]:
    name = f"{edit['subject']}: {edit['measure']} {step_text(edit['step_sd'])}"
    asked = (edit[key] / 10.0 if key in edit else None for key in ("before", "requested"))
    attained = (
        "refused" if "refused" in edit[method] else edit[method]["after"] / 10.0
        for method in ("exact", "linear")
    )
    return (name, *asked, *attained, edit["exact"].get("length_sd"))


def _who(results: StudyResults, found: dict[str, Any]) -> str:
    """Whose breasts are predicted."""
    some, everybody = len(found["subjects"]), results.run.result("model-masks").get("subjects")
    return f"all {some} subjects" if some == everybody else f"{plural(some, 'subject')} drawn at random"


def prediction_section(results: StudyResults) -> Section:
    """Prediction of a missing breast."""
    title = "Application 2: predicting a missing breast"
    found = results.run.result("prediction")
    if not found:
        return Section(title, (Text((results.why_not("prediction"),)),))
    rows: list[tuple[Cell, ...]] = []
    words = {
        "points": ("distance of points", "mm", 2),
        "surface": ("distance to the surface", "mm", 2),
        "volume": ("difference of volume", "cc", 0),
    }
    for name, (what, unit, digits) in words.items():
        errors = found["errors"][name]
        means = [
            f"{errors['mean'][method]:.{digits}f} ({errors['median'][method]:.{digits}f})"
            for method in METHODS
        ]
        against = Comparison.from_record(errors["against_mirror"])
        test = p_text(against.p).replace(" ", _HARD) or None
        rows.append((f"{what}, {unit}", *means, against.effect_text(unit) or None, test, against.verdict))
    return Section(
        title,
        (
            Text(
                (
                    f"Both breasts of {_who(results, found)} are taken away, one at a time, "
                    "and predicted from the rest of the torso by a model of all other subjects. Mirroring takes the "
                    "other breast across the body's plane of symmetry; both are joined to the chest in the same way. "
                    "The model's prediction also says how sure it is.",
                    f"On average over the breast the predicted standard deviation along the skin's normal is "
                    f"{found['deviation']:.1f} mm, and {100 * found['covered']:.0f} % of the true points lie within "
                    "1.96 standard deviations (95 % would be right on average).",
                )
            ),
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
        ),
    )
