"""The report's sections on the model itself, and on the two applications: editing and prediction."""

from __future__ import annotations

from typing import Any

from breastmorph.foundation.phrases import plural
from breastmorph.model.files import load_model
from breastmorph.paper.application_parts import METHODS, step_text
from breastmorph.paper.blocks import HARD, bullets, figure, section
from breastmorph.paper.significance import RELEVANT, Comparison
from breastmorph.paper.statement import FEW_SUBJECTS
from breastmorph.paper.summary import StudyResults, refusals
from breastmorph.report.document import Block, Cell, Column, ModelSliders, Section, Table

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
