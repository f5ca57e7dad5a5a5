"""The plan of a study: its parts in an order in which they can be computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from breastmorph.batch.product import Hashes
from breastmorph.foundation.files import plain
from breastmorph.paper import application_parts, cohort_parts, experiment_parts, figure_parts
from breastmorph.paper.parameters import (
    MASKS,
    NO_MASKS,
    PAPER_MASKS,
    PAPER_NO_MASKS,
    StudyParameters,
    Variant,
)
from breastmorph.paper.part import Made, Part, PartJob

Work = Callable[[PartJob], Made]
EXPERIMENTS = {
    1: "Experiment 1: the effect of masks",
    2: "Experiment 2: how much data is needed",
    3: "Experiment 3: operated and non-operated breasts",
    4: "Experiment 4: clinical distances",
}


@dataclass(frozen=True)
class Inputs:
    """Hashes of what is given to a study from outside.

    Attributes
    ----------
    template : str
    scans : mapping from scan to hashes of its files
    table : str
    truth : mapping from file to hash
    """

    template: str
    scans: Mapping[str, Hashes] = field(default_factory=dict)
    table: str = ""
    truth: Hashes = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` gave."""
        return cls(**values)


def make_plan(parameters: StudyParameters, inputs: Inputs) -> list[Part]:
    """All parts of a study."""
    plan = _Plan(parameters, inputs)
    plan.add_cohort()
    for variant in parameters.variants:
        plan.add_registration(variant)
    for variant in parameters.variants:
        plan.add_model(variant)
    plan.add_experiments()
    plan.add_applications()
    plan.add_figures()
    return plan.parts


def mask_pairs(parameters: StudyParameters) -> dict[str, tuple[Variant, Variant]]:
    """Registrations with and without masks that experiment 1 compares, by the ending of its part's name."""
    pairs = {"": (MASKS, NO_MASKS)}
    return pairs | ({"-paper": (PAPER_MASKS, PAPER_NO_MASKS)} if parameters.printed_method else {})


class _Plan:
    """A plan while it is written."""

    def __init__(self, parameters: StudyParameters, inputs: Inputs) -> None:
        self.parts: list[Part] = []
        self._p, self._inputs = parameters, inputs
        self._check = plain(asdict(parameters.check))

    def _add(
        self,
        stage: str,
        name: str,
        title: str,
        work: Work,
        needs: tuple[str, ...],
        settings: Mapping[str, Any],
        *,
        uses: tuple[str, ...] = (),
        gates: tuple[str, ...] = (),
        cost: float = 1.0,
    ) -> None:
        spreads = stage in ("cohort", "check", "register")
        self.parts.append(Part(name, title, stage, work, needs, uses, settings, spreads, cost, gates))

    def add_cohort(self) -> None:
        p, inputs = self._p, self._inputs
        made: tuple[str, ...] = ()
        if p.phantom is not None:
            title = f"A synthetic cohort of {p.phantom} adult torsos"
            drawn = {"subjects": p.phantom, "seed": p.seed}
            self._add("cohort", "cohort", title, cohort_parts.make_phantom, made, drawn)
            made = ("cohort",)
        self._add("cohort", "scans", "The scans", cohort_parts.list_scans, made, {"files": inputs.scans})
        table, needs = cohort_parts.read_cohort_table, ("scans", *made)
        self._add("cohort", "table", "The table", table, needs, {"file": inputs.table})
        self._add("cohort", "truth", "The truth", cohort_parts.list_truth, made, {"files": inputs.truth})
        rules = {"template": inputs.template, "check": self._check}
        self._add("check", "check", "Check of the scans", cohort_parts.check_scans, ("scans",), rules)

    def add_registration(self, variant: Variant) -> None:
        settings = {
            "template": self._inputs.template,
            "check": self._check,
            "variant": variant.name,
            "preset": variant.preset,
            "masks": variant.masks,
            "pictures": variant == MASKS,
        }
        name, title, work = (
            f"register-{variant.name}",
            f"Registration, {variant.title}",
            cohort_parts.register_scans,
        )
        # The check says when there are too few.
        self._add("register", name, title, work, ("scans",), settings, gates=("check",))

    def add_model(self, variant: Variant) -> None:
        name, title = f"model-{variant.name}", f"Model, {variant.title}"
        needs, settings = (f"register-{variant.name}",), {"variant": variant.name}
        self._add("build", name, title, cohort_parts.build_one, needs, settings)

    def add_experiments(self) -> None:
        p, check = self._p, {"check": self._check}
        drawn = {"seed": p.seed, "samples": p.samples}
        for ending, (ours, without) in mask_pairs(p).items():
            name, title = f"experiment-1{ending}", f"{EXPERIMENTS[1]}, {ours.preset} method"
            pair = {"with_masks": ours.name, "without_masks": without.name, "preset": ours.preset}
            needs, settings = (f"register-{ours.name}", f"register-{without.name}"), drawn | check | pair
            work = experiment_parts.effect_of_masks
            self._add("evaluate", name, title, work, needs, settings, uses=("truth",), cost=100.0)

        def experiment(
            number: int, work: Work, cost: float, settings: Mapping[str, Any], uses: tuple[str, ...] = ()
        ) -> None:
            settings = {"variant": MASKS.name, **settings}
            name, needs = f"experiment-{number}", (f"register-{MASKS.name}",)
            self._add("evaluate", name, EXPERIMENTS[number], work, needs, settings, uses=uses, cost=cost)

        sizes = {"sizes": list(p.subsets), "draws": p.draws}
        experiment(2, experiment_parts.amount_of_data, 90.0, drawn | sizes)
        few = {"draws": p.draws, "seed": p.seed}
        experiment(3, experiment_parts.operated_breasts, 10.0, few, ("table",))
        experiment(4, experiment_parts.clinical_distances, 80.0, check)

    def add_applications(self) -> None:
        p, needs = self._p, (f"register-{MASKS.name}", f"model-{MASKS.name}")
        common = {"variant": MASKS.name, "seed": p.seed}
        title, some = "Editing by SN-NL, SN-NR and NL-NR", {"subjects": p.shown, "steps": [-1.0, 1.0]}
        self._add("edit", "editing", title, application_parts.edit_subjects, needs, common | some, cost=30.0)
        title, those = "Prediction of a missing breast", {"subjects": p.predicted, "shown": p.shown}
        self._add(
            "predict",
            "prediction",
            title,
            application_parts.predict_breasts,
            needs,
            common | those,
            cost=60.0,
        )

    def add_figures(self) -> None:
        p = self._p

        def figure(
            name: str,
            title: str,
            work: Work,
            needs: tuple[str, ...] = (),
            settings: Mapping[str, Any] | None = None,
            uses: tuple[str, ...] = (),
        ) -> None:
            self._add("figures", f"figure-{name}", title, work, needs, settings or {}, uses=uses)

        template, first = {"template": self._inputs.template}, {"variant": MASKS.name}
        figure("mask-contours", "Figure: mask contours", figure_parts.draw_masks, (), template)
        modes = figure_parts.draw_modes
        figure("modes", "Figure: the first eight modes", modes, (f"model-{MASKS.name}",), first)
        for ending, (ours, without) in mask_pairs(p).items():
            both = (f"model-{ours.name}", f"model-{without.name}")
            names = {"with_masks": ours.name, "without_masks": without.name}
            method = f"{ours.preset} method"
            title = f"Figure: where the models vary, {method}"
            figure(f"variation{ending}", title, figure_parts.draw_variation, both, names)
            title, drawn = f"Figure: random samples, {method}", names | {"seed": p.seed}
            figure(f"samples{ending}", title, figure_parts.draw_samples, both, drawn)
            name, title = f"experiment-1{ending}", f"Figures: experiment 1, {method}"
            uses = ("experiment-1",) if ending else ()  # for the true shapes
            figure(name, title, figure_parts.draw_effect_of_masks, (name,), uses=uses)
        draws = (figure_parts.draw_amount_of_data, figure_parts.draw_operated, figure_parts.draw_clinical)
        for number, draw in enumerate(draws, 2):
            name = f"experiment-{number}"
            figure(name, f"Figure: experiment {number}", draw, (name,))
