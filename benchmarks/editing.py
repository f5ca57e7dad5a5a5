"""Editing by measures: exact against linear regression, what is held, and how unusual left-out people are called.

    python benchmarks/editing.py [--cohort REGISTERED] [--subjects 50] [--unseen 2] [--tape] [--folds 5]

Every measure is asked to change by -2, -1, +1 and +2 standard deviations of the model, on the mean and on subjects left
out of the model, with another measure and the thorax held; the largest movement of any held vertex is told. Then every
subject is judged by a model without her fifth of the cohort: the shares of the subjects who are less unusual must be
uniform, also where the model keeps nobody's data. Without ``--cohort`` (the --out of `breastmorph register`)
the subjects are phantom torsos on one topology.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import kstest

from breastmorph.clinical.editing import Editor
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.features import ModelFeatures
from breastmorph.clinical.patient import Patient, mean_patient
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mask import breast_regions
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.plausibility import LEVELS, Plausibility, model_population
from breastmorph.template import template_from
from measuring import compare, cpu_seconds

MEASURES = ("SN-NL", "SN-NR", "NL-NR", "NL-LPL", "NL-M", "base-width-left", "projection-left", "volume-left")
STEPS = (-2.0, -1.0, 1.0, 2.0)


def main() -> None:
    """Print one row a measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohort", type=Path)
    parser.add_argument("--subjects", type=int, default=50, help="of the phantom, where there is no cohort")
    parser.add_argument("--unseen", type=int, default=2, help="subjects left out of the model and edited")
    parser.add_argument("--tape", action="store_true", help="tape measures instead of straight ones (slow)")
    parser.add_argument(
        "--folds", type=int, default=5, help="parts of the cohort left out to judge its plausibilities"
    )
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        cohort = (
            load_cohort(options.cohort, packed_in=Path(place))
            if options.cohort
            else phantoms(options.subjects)
        )
        run(cohort, options.unseen, "tape" if options.tape else "straight")
        judge_left_out(cohort, options.folds)


def phantoms(count: int) -> Cohort:
    """True shapes of phantom subjects."""
    from breastmorph.phantom import draw_cohort, mean_torso, torso

    mean = mean_torso()
    template = template_from(mean.mesh, mean.landmarks)
    return Cohort.of(np.stack([torso(subject).mesh.vertices for subject in draw_cohort(count, 1)]), template)


def run(cohort: Cohort, unseen: int, kind: str) -> None:
    """Build a model without the last subjects, edit the mean and these."""
    whole = cohort.chosen(np.array([not side for side in cohort.absent]))
    known, others = whole.chosen(np.arange(len(whole) - unseen)), range(len(whole) - unseen, len(whole))
    model = build_model(known, BuildParameters(keep_scores=True))
    features = ModelFeatures(model, kind)
    patients = [mean_patient(model), *(Patient(whole.ids[i], whole.shape(i)) for i in others)]
    editors = [Editor(model, patient, features) for patient in patients]
    print(
        f"{len(known)} subjects, {model.n_components} components, {model.n_vertices} vertices, {kind} distances"
    )
    print(
        f"{len(patients)} shapes edited: the mean and {unseen} unseen; steps {STEPS} sd; held: thorax and one measure"
    )
    print(f"{'':24}  exact: largest{'':42}linear: error")
    heads = (
        ("error", 8),
        ("held moves", 11),
        ("thorax most", 11),
        ("length sd", 10),
        ("refused", 9),
        ("CPU s", 7),
    )
    print(f"{'measure':24}", *(f"{head:>{width}}" for head, width in (*heads, ("median", 9), ("largest", 9))))
    for name in MEASURES:
        row(name, editors)


def thorax(editor: Editor) -> np.ndarray:
    """The vertices that were held, (n,)."""
    breasts = breast_regions(editor.model.mean_mesh, editor.model.landmarks)
    return ~(breasts["left"] | breasts["right"])


def judge_left_out(cohort: Cohort, folds: int) -> None:
    """Judge everybody by a model of others, and the mean with one mode or both nipples moved."""
    whole = cohort.chosen(np.array([not side for side in cohort.absent]))
    judged: dict[str, list[Plausibility]] = {"with scores": [], "without": []}
    for fold in range(folds):
        out = np.arange(len(whole)) % folds == fold
        model = build_model(whole.chosen(np.flatnonzero(~out)), BuildParameters(keep_scores=True))
        for name, one in (("with scores", model), ("without", replace(model, training=None))):
            people = model_population(one)
            judged[name] += [people.judge_shape(whole.shape(i)) for i in np.flatnonzero(out)]
    for name, found in judged.items():
        shares = np.array([one.share for one in found])
        off = kstest(shares, "uniform")
        levels = {level: sum(one.level == level for one in found) for level in LEVELS}
        tenths = np.histogram(shares, 10, (0.0, 1.0))[0]
        print(
            f"plausibility, {name}: {len(found)} left-out subjects by tenths {tenths}, largest distance from uniform "
            f"{off.statistic:.3f} (p = {off.pvalue:.2f}), {levels}"
        )
        compare(
            f"plausibility {name}, distance from uniform",
            "share",
            off.statistic,
            "1 in 20 by chance",
            1.36 / len(found) ** 0.5,
        )
    model = build_model(whole, BuildParameters(keep_scores=True))
    people, editor = model_population(model), Editor(model, mean_patient(model))
    alone = [people.judge(row) for row in 2.5 * np.diag(model.deviations)]
    noticed = np.array([one.level != LEVELS[0] for one in alone])
    print(
        f"plausibility, one mode at +2.5 sd: noticed {noticed.sum()} of {len(noticed)}, "
        f"of the {people.traits.modes} leading ones {noticed[: people.traits.modes].sum()}"
    )
    for mode in (0, people.traits.modes, len(alone) - 1):
        told(f"mode {mode + 1} at +2.5 sd", alone[mode])
    apart = [Request("SN-NL", 15.0, relative=True), Request("SN-NR", -15.0, relative=True)]
    told("SN-NL and SN-NR 3 cm apart", editor.exact(apart, ["thorax"]).plausibility)


def told(what: str, plausibility: Plausibility | None) -> None:
    """Print a judgement."""
    if plausibility is not None:
        print(f"plausibility, {what}: {plausibility.level}: {plausibility.finding.cause.text()}")


def row(name: str, editors: list[Editor]) -> None:
    """Measure one feature."""
    exact, linear, seconds = [], [], []
    refused: list[str] = []
    hold = ["SN-NR"] if name == "NL-NR" else ["NL-NR"]
    for editor in editors:
        feature, _, sd = editor.usual(name)
        for step in STEPS:
            request = [Request(name, step * sd, relative=True)]
            try:
                spent, edit = cpu_seconds(lambda e=editor, r=request: e.exact(r, [*hold, "thorax"]))
                exact.append(
                    [
                        *(abs(change.error or 0.0) for change in edit.changes[:2]),
                        float(np.abs(edit.shape - edit.before)[thorax(editor)].max()),
                        edit.length,
                    ]
                )
                seconds.append(spent)
                spent, rough = cpu_seconds(lambda e=editor, r=request: e.linear(r, hold))
                linear.append((abs(rough.changes[0].error or 0.0), spent))
            except BreastMorphError as error:
                refused.append(f"{editor.patient.id} {step:+g} sd: {error.cause}")
    largest = np.max(exact, axis=0) if exact else np.full(4, np.nan)
    errors, linear_seconds = np.array(linear or [(np.nan, np.nan)]).T
    compare(f"editing {name}, largest error", feature.unit, largest[0], "linear regression", errors.max())
    compare(
        f"editing {name}",
        "CPU s",
        np.median(seconds or [np.nan]),
        "linear regression",
        np.median(linear_seconds),
    )
    count = f"{len(refused)}/{len(editors) * len(STEPS)}"
    print(
        f"{feature.name + ' (' + feature.unit + ')':24} {largest[0]:8.4f} {largest[1]:8.4f} mm {largest[2]:8.4f} mm"
        f" {largest[3]:10.1f} {count:>9} {np.median(seconds or [np.nan]):7.2f}"
        f" {np.median(errors):9.2f} {errors.max():9.2f}",
        flush=True,
    )
    for text in refused:
        print(f"    refused: {text}")


if __name__ == "__main__":
    main()
