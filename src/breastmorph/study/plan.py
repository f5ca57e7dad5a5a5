"""The plan of a study: its parts in an order in which they can be computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from breastmorph.batch.registered_folder import Hashes
from breastmorph.foundation.files import plain
from breastmorph.study.cohort_parts import (
    build_one,
    check_scans,
    list_scans,
    list_truth,
    make_phantom,
    read_cohort_table,
    register_scans,
)
from breastmorph.study.part import (
    MASKS,
    NO_MASKS,
    PAPER_MASKS,
    PAPER_NO_MASKS,
    Part,
    StudyParameters,
    Variant,
)
from breastmorph.study.result_parts import (
    amount_of_data,
    clinical_distances,
    draw_amount_of_data,
    draw_clinical,
    draw_effect_of_masks,
    draw_masks,
    draw_modes,
    draw_operated,
    draw_samples,
    draw_variation,
    edit_subjects,
    effect_of_masks,
    operated_breasts,
    predict_breasts,
)

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
    return [
        *_cohort(parameters, inputs),
        *(_registration(parameters, inputs, variant) for variant in parameters.variants),
        *(_model(variant) for variant in parameters.variants),
        *_experiments(parameters),
        *_applications(parameters),
        *_figures(parameters, inputs),
    ]


def mask_pairs(parameters: StudyParameters) -> dict[str, tuple[Variant, Variant]]:
    """Registrations with and without masks that experiment 1 compares, by the ending of its part's name."""
    pairs = {"": (MASKS, NO_MASKS)}
    return pairs | ({"-paper": (PAPER_MASKS, PAPER_NO_MASKS)} if parameters.printed_method else {})


def _cohort(parameters: StudyParameters, inputs: Inputs) -> list[Part]:
    made: tuple[Part, ...] = ()
    if parameters.phantom is not None:
        settings = {"subjects": parameters.phantom, "seed": parameters.seed}
        title = f"A synthetic cohort of {parameters.phantom} adult torsos"
        made = (Part("cohort", title, "cohort", make_phantom, settings=settings, spreads=True),)
    before = tuple(part.name for part in made)
    check = {"template": inputs.template, "check": plain(asdict(parameters.check))}
    return [
        *made,
        Part(
            "scans", "The scans", "cohort", list_scans, before, settings={"files": inputs.scans}, spreads=True
        ),
        Part(
            "table",
            "The table",
            "cohort",
            read_cohort_table,
            ("scans", *before),
            settings={"file": inputs.table},
            spreads=True,
        ),
        Part(
            "truth", "The truth", "cohort", list_truth, before, settings={"files": inputs.truth}, spreads=True
        ),
        Part("check", "Check of the scans", "check", check_scans, ("scans",), settings=check, spreads=True),
    ]


def _registration(parameters: StudyParameters, inputs: Inputs, variant: Variant) -> Part:
    return Part(
        f"register-{variant.name}",
        f"Registration, {variant.title}",
        "register",
        register_scans,
        ("scans",),
        gates=("check",),  # which says when there are too few
        settings={
            "template": inputs.template,
            "check": plain(asdict(parameters.check)),
            "variant": variant.name,
            "preset": variant.preset,
            "masks": variant.masks,
            "pictures": variant == MASKS,
        },
        spreads=True,
    )


def _model(variant: Variant) -> Part:
    return Part(
        f"model-{variant.name}",
        f"Model, {variant.title}",
        "build",
        build_one,
        (f"register-{variant.name}",),
        settings={"variant": variant.name},
    )


def _experiments(parameters: StudyParameters) -> list[Part]:
    drawn = {"seed": parameters.seed, "samples": parameters.samples}
    check = {"check": plain(asdict(parameters.check))}
    one = {"variant": MASKS.name}
    cohort = f"register-{MASKS.name}"
    return [
        *(
            Part(
                f"experiment-1{ending}",
                f"{EXPERIMENTS[1]}, {ours.preset} method",
                "evaluate",
                effect_of_masks,
                (f"register-{ours.name}", f"register-{without.name}"),
                uses=("truth",),
                settings=drawn
                | check
                | {"with_masks": ours.name, "without_masks": without.name, "preset": ours.preset},
                cost=100.0,
            )
            for ending, (ours, without) in mask_pairs(parameters).items()
        ),
        Part(
            "experiment-2",
            EXPERIMENTS[2],
            "evaluate",
            amount_of_data,
            (cohort,),
            settings=one | drawn | {"sizes": list(parameters.subsets), "draws": parameters.draws},
            cost=90.0,
        ),
        Part(
            "experiment-3",
            EXPERIMENTS[3],
            "evaluate",
            operated_breasts,
            (cohort,),
            uses=("table",),
            settings=one | {"draws": parameters.draws, "seed": parameters.seed},
            cost=10.0,
        ),
        Part(
            "experiment-4",
            EXPERIMENTS[4],
            "evaluate",
            clinical_distances,
            (cohort,),
            settings=one | check,
            cost=80.0,
        ),
    ]


def _applications(parameters: StudyParameters) -> list[Part]:
    needs = (f"register-{MASKS.name}", f"model-{MASKS.name}")
    common = {"variant": MASKS.name, "seed": parameters.seed}
    return [
        Part(
            "editing",
            "Editing by SN-NL, SN-NR and NL-NR",
            "edit",
            edit_subjects,
            needs,
            settings=common | {"subjects": parameters.shown, "steps": [-1.0, 1.0]},
            cost=30.0,
        ),
        Part(
            "prediction",
            "Prediction of a missing breast",
            "predict",
            predict_breasts,
            needs,
            settings=common | {"subjects": parameters.predicted, "shown": parameters.shown},
            cost=60.0,
        ),
    ]


def _figures(parameters: StudyParameters, inputs: Inputs) -> list[Part]:
    drawn: list[Part] = [
        Part(
            "figure-mask-contours",
            "Figure: mask contours",
            "figures",
            draw_masks,
            settings={"template": inputs.template},
        ),
        Part(
            "figure-modes",
            "Figure: the first eight modes",
            "figures",
            draw_modes,
            (f"model-{MASKS.name}",),
            settings={"variant": MASKS.name},
        ),
    ]
    for ending, (ours, without) in mask_pairs(parameters).items():
        both = (f"model-{ours.name}", f"model-{without.name}")
        names = {"with_masks": ours.name, "without_masks": without.name}
        drawn += [
            Part(
                f"figure-variation{ending}",
                f"Figure: where the models vary, {ours.preset} method",
                "figures",
                draw_variation,
                both,
                settings=names,
            ),
            Part(
                f"figure-samples{ending}",
                f"Figure: random samples, {ours.preset} method",
                "figures",
                draw_samples,
                both,
                settings=names | {"seed": parameters.seed},
            ),
            Part(
                f"figure-experiment-1{ending}",
                f"Figures: experiment 1, {ours.preset} method",
                "figures",
                draw_effect_of_masks,
                (f"experiment-1{ending}",),
                uses=("experiment-1",) if ending else (),  # for the true shapes
            ),
        ]
    by_experiment = {
        "experiment-2": draw_amount_of_data,
        "experiment-3": draw_operated,
        "experiment-4": draw_clinical,
    }
    return drawn + [
        Part(f"figure-{name}", f"Figure: {name.replace('-', ' ')}", "figures", draw, (name,))
        for name, draw in by_experiment.items()
    ]
