"""The results of a study as values, where they exist."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from breastmorph.evaluation.experiments.clinical_generalization import ClinicalGeneralization
from breastmorph.evaluation.experiments.data_amount import DataAmountExperiment
from breastmorph.evaluation.experiments.masks import MaskExperiment
from breastmorph.evaluation.experiments.operated import OperatedExperiment
from breastmorph.evaluation.experiments.recorded import Recorded
from breastmorph.evaluation.experiments.statement import Statement
from breastmorph.evaluation.experiments.statements import all_statements
from breastmorph.study.parameters import StudyParameters
from breastmorph.study.plan import mask_pairs
from breastmorph.study.running import StudyRun

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
