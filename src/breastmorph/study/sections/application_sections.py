"""The models to look at, and the two applications."""

from __future__ import annotations

from typing import Any

from breastmorph.evaluation.experiments.statement import FEW_SUBJECTS, p_text, plural
from breastmorph.model.files import load_model
from breastmorph.report.page import Block, Cell, Column, ModelView, Section, Table, Text
from breastmorph.study.application_parts import METHODS, step_text
from breastmorph.study.results import StudyResults
from breastmorph.study.sections.shown import figure
from breastmorph.study.summary import refusals


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
            ModelView(model, "The mean shape of the model with masks; on the screen with its first modes.")
        )
    blocks.append(
        figure(
            results,
            "figure-modes",
            "modes",
            "The first modes of the model with masks, at plus and minus three standard deviations.",
        )
    )
    return Section("The shape model", tuple(blocks))


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
            figure(results, "editing", "editing", "Edited subjects beside the originals."),
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
        rows.append(
            (f"{what}, {unit}", *means, p_text(errors["against_mirror"]["p"] or float("nan")) or None)
        )
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
                "Scans with the missing breast in red, prediction, truth, uncertainty and mirror image.",
            ),
            Table(
                f"Errors of {found['predictions']} predictions of left-out subjects: mean (median) of absolute values",
                (
                    "error",
                    *(Column(method, number=True) for method in METHODS),
                    "model against mirror",
                ),
                tuple(rows),
                "The test is Wilcoxon's signed-rank test over the subjects, both sides of one subject taken together.",
            ),
        ),
    )
