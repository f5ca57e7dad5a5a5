"""A study in a few figures, beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from breastmorph.paper.application_parts import step_text
from breastmorph.paper.clinical_generalization import ClinicalGeneralization
from breastmorph.paper.cohort_table import missing_rows
from breastmorph.paper.data_amount import DataAmountExperiment
from breastmorph.paper.masks import MaskExperiment
from breastmorph.paper.operated import OperatedExperiment
from breastmorph.paper.parameters import PAPER_MASKS, StudyParameters
from breastmorph.paper.plan import mask_pairs
from breastmorph.paper.records import Recorded
from breastmorph.paper.running import StudyRun
from breastmorph.paper.significance import smallest_p
from breastmorph.paper.statements import FEW_SUBJECTS, NOT_TESTABLE, SMALL, YES, Statement, all_statements

Result = TypeVar("Result", bound=Recorded)


@dataclass(frozen=True, eq=False)
class StudyResults:
    """What a study found."""

    run: StudyRun

    @cached_property
    def description(self) -> dict[str, Any]:
        """What ``study.json`` says."""
        return self.run.study.description()

    @cached_property
    def parameters(self) -> StudyParameters:
        """Of the study."""
        return StudyParameters.from_dict(self.description["parameters"])

    @cached_property
    def masks(self) -> dict[str, MaskExperiment]:
        """Experiment 1 by the ending of its part's name: empty for the default method, ``-paper``."""
        found = {ending: self.run.result(f"experiment-1{ending}") for ending in mask_pairs(self.parameters)}
        read = {ending: MaskExperiment.from_record(one["experiment"]) for ending, one in found.items() if one}
        default = read.get("")
        for ending, one in read.items():
            if one.perfect is None and default is not None and one.ids == default.ids:
                # Computed once: the true shapes of the same subjects are the same.
                read[ending] = replace(one, perfect=default.perfect)
        return read

    @cached_property
    def amounts(self) -> DataAmountExperiment | None:
        """Experiment 2."""
        return self._experiment(DataAmountExperiment, "experiment-2")

    @cached_property
    def operated(self) -> OperatedExperiment | None:
        """Experiment 3."""
        return self._experiment(OperatedExperiment, "experiment-3")

    @cached_property
    def clinical(self) -> ClinicalGeneralization | None:
        """Experiment 4."""
        return self._experiment(ClinicalGeneralization, "experiment-4")

    @cached_property
    def statements(self) -> list[Statement]:
        """What the paper says, beside ours; only of experiments that were run."""
        return all_statements(list(self.masks.values()), self.amounts, self.operated, self.clinical)

    def _experiment(self, kind: type[Result], part: str) -> Result | None:
        """The value of an experiment, also of one that was not possible; None where there is none."""
        record = self.run.result(part).get("experiment")
        return kind.from_record(record) if record else None

    def why_not(self, part: str) -> str:
        """Why a part has no result; empty when it has one."""
        state = self.run.states.get(part)
        if state is None:
            return "it is not a part of this study"
        if state.status == "done":
            return ""
        word = {
            "not possible": "Not possible with this cohort",
            "failed": "It failed",
            "missing": "Not done yet",
        }
        return f"{word[state.status]}: {state.why}."


Line = tuple[str, str, str]  # what, ours, paper's


def key_figures(results: StudyResults) -> list[Line]:
    """The figures that a reader wants first; what the study does not have is left out."""
    return [
        *_registration(results),
        *_masks(results),
        *_others(results),
        *_applications(results),
        *_statements(results),
    ]


def facts(results: StudyResults) -> tuple[tuple[str, str], ...]:
    """The few figures for the top of a page."""
    lines = [
        *_statements(results),
        *_registration(results)[:1],
        *_masks(results),
        *(line for line in _applications(results) if line[0].startswith("predicted")),
    ]
    return tuple((what, ours) for what, ours, _ in lines)


def _registration(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    found = results.run.result("register-masks")
    if found:
        all_of_them = len(found["subjects"]) + len(found["failed"])
        lines.append(("scans registered", f"{len(found['subjects'])} of {all_of_them}", "110"))
    model = results.run.result("model-masks")
    if model and model["components"] > 8:
        few = model["subjects"] < FEW_SUBJECTS
        paper = "about 85 % (110 subjects: not comparable)" if few else "about 85 %"
        lines.append(("variance in 8 components", f"{100 * model['share']['8']:.0f} %", paper))
    return lines


def _masks(results: StudyResults) -> list[Line]:
    found = results.masks.get("")
    if found is None:
        return []
    both = found.with_masks, found.without_masks
    lines: list[Line] = []
    if both[0].truth is not None and both[1].truth is not None:
        errors = [one.truth.correspondence[:, 0].mean() for one in both if one.truth is not None]
        lines.append(
            (
                "breast points off their true place (masks / none)",
                f"{errors[0]:.1f} / {errors[1]:.1f} mm",
                "not known",
            )
        )
    general = [one.generalization[:, -1].mean() for one in both]
    near = [one.specificity[-1] for one in both]
    return [
        *lines,
        ("generalization (masks / none)", f"{general[0]:.2f} / {general[1]:.2f} mm", "0.17 / 0.65 mm"),
        ("specificity (masks / none)", f"{near[0]:.2f} / {near[1]:.2f} mm", "about 2.8 mm / more"),
    ]


def _others(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    if results.operated is not None and not results.operated.impossible:
        last = int(results.operated.components[-1])
        both = [results.operated.curve(name)[0][last] for name in ("operated", "not_operated")]
        lines.append(
            ("model of operated / other breasts", f"{both[0]:.2f} / {both[1]:.2f} mm", "0.77 / 0.71 mm")
        )
    if results.clinical is not None and not results.clinical.impossible:
        average = float(results.clinical.average[-1])
        if np.isfinite(average):
            lines.append(("clinical distances of reconstructions", f"{average:.2f} mm off", "1.82 mm off"))
    return lines


def _applications(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    edits = [edit["exact"] for edit in results.run.result("editing").get("edits", ())]
    done = [edit["largest_error"] for edit in edits if "largest_error" in edit]
    if edits:
        largest = f", within {max(*done, 0.01):.2f} mm" if done else ""
        refused = f"; {len(edits) - len(done)} refused, see below" if len(done) < len(edits) else ""
        lines.append(
            (
                "edits that attain what was asked for",
                f"{len(done)} of {len(edits)}{largest}{refused}",
                "shown",
            )
        )
    found = results.run.result("prediction")
    if found:
        surface = found["errors"]["surface"]["mean"]
        volume = found["errors"]["volume"]
        lines += [
            (
                "predicted breast off (model / mirror)",
                f"{surface['model']:.1f} / {surface['mirror']:.1f} mm",
                "shown",
            ),
            *(
                (
                    f"its volume off, {what} (model / mirror)",
                    f"{volume[what]['model']:.0f} / {volume[what]['mirror']:.0f} cc",
                    "-",
                )
                for what in ("mean", "median")
            ),
        ]
    return lines


def _statements(results: StudyResults) -> list[Line]:
    return [(what, tally_text(found), "all") for what, found in statements_by_method(results).items()]


def statements_by_method(results: StudyResults) -> dict[str, list[Statement]]:
    """The paper's statements, those of experiment 1 by the printed method apart: they are the same ones again."""
    own = [one for one in results.statements if one.preset != PAPER_MASKS.preset]
    printed = [one for one in results.statements if one.preset == PAPER_MASKS.preset]
    named = {"statements of the paper": own, "those of experiment 1, printed method": printed}
    return {what: found for what, found in named.items() if found}


def tally_text(statements: Sequence[Statement]) -> str:
    """How many statements hold of those that can be tested."""
    counts = Counter(one.holds for one in statements)
    testable = len(statements) - counts[NOT_TESTABLE]
    others = {SMALL: "too small to matter", NOT_TESTABLE: "not testable"}
    aside = ", ".join(f"{counts[kind]} {words}" for kind, words in others.items() if counts[kind])
    held = f"{counts[YES]} of {testable} hold" + (f" ({aside})" if aside else "")
    return held if testable else f"none of {len(statements)} testable"


def few_subjects(run: StudyRun) -> str:
    """A warning where a cohort is too small for conclusions; empty otherwise."""
    subjects = run.result("model-masks").get("subjects")
    if subjects is None or subjects >= FEW_SUBJECTS:
        return ""
    least = smallest_p(subjects)
    number = f"{least:.3f}" if least >= 0.001 else f"{least:.0e}"
    return (
        f"Only {subjects} subjects: too few for conclusions. The smallest possible p-value of a signed-rank test "
        f"with {subjects} subjects is {number}"
        + (": it can show nothing." if least >= 0.05 else ", and of many statements some may hold by chance.")
    )


def refusals(run: StudyRun) -> list[str]:
    """Edits that were refused, and why."""
    return [
        f"{edit['subject']}: {edit['measure']} {step_text(edit['step_sd'])} refused: {edit['exact']['refused']}"
        for edit in run.result("editing").get("edits", ())
        if "refused" in edit["exact"]
    ]


def remarks(run: StudyRun) -> list[str]:
    """What a reader must know beside the figures."""
    edits = [f"Edit of {one}" for one in refusals(run)]
    return [one for one in (few_subjects(run), missing_rows(run.result("table")), *edits) if one]
