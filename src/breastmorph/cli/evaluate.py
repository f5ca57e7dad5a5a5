"""``breastmorph evaluate``: what a model is worth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.markup import escape

from breastmorph.cli.build import excluded_ids, reasons_named
from breastmorph.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    json_option,
    landmarks_option,
    model_argument,
    scan_options,
    seed_option,
    table_option,
)
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.evaluation.model_evaluation import Evaluation, EvaluationParameters
from breastmorph.evaluation.privacy import Privacy
from breastmorph.evaluation.training_set import Curve
from breastmorph.foundation.files import json_text, make_folder, write_file
from breastmorph.model.files import load_model
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases.build import Subjects
from breastmorph.usecases.evaluate import EvaluateRequest, evaluate

_DISTANCES = {"point": "point to point", "surface": "to the surface"}


@click.command("evaluate")
@model_argument
@click.option(
    "--cohort",
    "folder",
    type=FOLDER,
    help="The registered subjects, --out of `breastmorph register`; without them compactness only.",
)
@table_option
@click.option("--where", help="Only these subjects; by default what the model says it was built with.")
@click.option("--exclude", help="Without these subjects: ids, separated by commas.")
@click.option("--scans", type=PATH, help="Raw scans: also compare with them.")
@landmarks_option
@click.option("--truth", type=FOLDER, help="The truth/ folder of a phantom cohort.")
@click.option("--samples", type=COUNT, default=1000, help="Shapes for specificity.")
@seed_option("numbers", default=0)
@click.option("--privacy", is_flag=True, help="Also measure what the model reveals about its subjects.")
@click.option("--no-surface", is_flag=True, help="Skip closest-point-on-surface distances (minutes).")
@click.option("--out", type=FOLDER, help="Folder for metrics.json, metrics.csv, figures.")
@scan_options
@json_option
def command(
    model_file: Path,
    folder: Path | None,
    table: Path | None,
    where: str | None,
    exclude: str | None,
    scans: Path | None,
    landmarks: Path | None,
    truth: Path | None,
    samples: int,
    seed: int,
    privacy: bool,
    no_surface: bool,
    out: Path | None,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Compactness, generalization and specificity of MODEL, and what does not reward a collapsed cohort.

    With --scans: leave-one-out distance to the raw scans. With --truth (phantom cohorts): correspondence error,
    explained variation, variance ratio. With --privacy: whether the model's shapes copy its subjects, and whether a
    subject can be recognised in it. --out writes metrics.json, metrics.csv and curves.svg, .pdf, .png.

    \b
    Example:
      breastmorph evaluate model.h5 --cohort cohort/ --scans scans/ --landmarks landmarks/ --out evaluation/
    """
    if folder is None and (
        privacy or any(value is not None for value in (table, where, exclude, scans, truth))
    ):
        raise click.UsageError("--table, --where, --exclude, --scans, --truth and --privacy need --cohort.")
    if landmarks is not None and scans is None:
        raise click.UsageError("--landmarks belongs to --scans.")
    model = load_model(model_file)
    if out is not None:
        make_folder(out)
    subjects = None
    if folder is not None:
        subjects = Subjects(folder, table, where, excluded_ids(exclude), reasons_named(where))
    parameters = EvaluationParameters(samples=samples, seed=seed, surface=not no_surface)
    request = EvaluateRequest(model, subjects, parameters, scans, landmarks, truth, privacy, check)
    found = evaluate(request, progress_with)
    evaluation, revealed = found.evaluation, found.privacy
    record = {
        "model": model_file.name,
        "vertices": model.n_vertices,
        **evaluation.as_dict(),
        "made": provenance(),
    }
    if revealed is not None:
        record["privacy"] = revealed.as_dict()
    if out is not None:
        from breastmorph.report.curves import save_curves

        write_file(out / "metrics.json", json_text(record).encode())
        write_file(out / "metrics.csv", evaluation.as_csv().encode())
        save_curves(evaluation, out)
    if as_json:
        print_json(record)
    else:
        _print(evaluation)
        if revealed is not None:
            _print_privacy(revealed)
        if out is not None:
            click.echo(f"Written to {out}: metrics.json, metrics.csv, curves.svg, curves.pdf, curves.png")
    warn(evaluation.warnings)
    failures = evaluation.raw_scans.failures if evaluation.raw_scans is not None else ()
    for scan_id, message in failures:
        click.echo(f"Not compared with its scan: {scan_id}: {message}", err=True)
    sys.exit(1 if failures else 0)


def _print(evaluation: Evaluation) -> None:
    """Print the curves at some numbers of components, and the single figures."""
    most = len(evaluation.compactness.share)
    counts: Sequence[int | None] = [*(c for c in evaluation.parameters.table if c < most), None]
    shares = [
        f"{100.0 * evaluation.compactness.share[(c or most) - 1]:.1f} %" if most else "" for c in counts
    ]
    rows = [["variance held", *shares]]
    for metric in ("generalization", "specificity"):
        for curve in getattr(evaluation, metric):
            name = f"{metric}, {curve.region}, {_DISTANCES[curve.distance]}"
            rows.append([name, *(_at(curve, count) for count in counts)])
    raw = evaluation.raw_scans
    if raw is not None:
        rows.append(
            ["generalization, breast, to the raw scan", *(_at(raw.to_scan, count) for count in counts)]
        )
        rows.append(["generalization, breast, from the raw scan", *(_at(raw.from_scan, c) for c in counts)])
    subjects = f", {evaluation.subjects} subjects; mm, mean ± sd" if evaluation.subjects else ""
    columns = ["all" if count is None else str(count) for count in counts]
    print_table(f"Model of {most} components{subjects}", ["components", *columns], rows)
    figures = _single_figures(evaluation)
    if figures:
        print_table("Beside the curves", ["figure", "breast", "outside"], figures)


def _print_privacy(revealed: Privacy) -> None:
    """Print what a model reveals about its subjects."""
    columns = [
        "region",
        "random shapes: median, least mm",
        "other people: median, least mm",
        "nearer than usual",
    ]
    rows = [
        [
            one.region,
            f"{one.samples:.2f}, {one.nearest_sample:.2f}",
            f"{one.people:.2f}, {one.nearest_people:.2f}",
            f"{one.nearer_percent:.0f} %",
        ]
        for one in revealed.nearness
    ]
    print_table("Privacy: distances to the nearest subject", columns, rows)
    columns = [
        "components",
        "misses of its subjects, mm",
        "of other people, mm",
        "recognised (50 % is guessing)",
    ]
    rows = [
        [str(one.components), f"{one.subjects:.2f}", f"{one.others:.2f}", f"{100 * one.chance:.0f} %"]
        for one in revealed.recognition
    ]
    print_table("Privacy: is a person with a known scan in the model?", columns, rows)
    for sentence in revealed.verdict(COMMAND):
        click.echo(sentence)


def _at(curve: Curve, count: int | None) -> str:
    """Mean and sd at a number of components, or at the last one."""
    found = [len(curve.components) - 1] if count is None else np.flatnonzero(curve.components == count)
    if not len(found) or not np.isfinite(curve.mean[found[0]]):
        return ""
    return f"{curve.mean[found[0]]:.2f} ± {curve.sd[found[0]]:.2f}"


def _single_figures(evaluation: Evaluation) -> list[list[str]]:
    rows = []
    if evaluation.decoupling is not None:
        sd = evaluation.decoupling.as_dict()
        rows.append(
            ["sd of a vertex over the subjects, mm", _number(sd["sd_inside"]), _number(sd["sd_outside"])]
        )
    if evaluation.raw_scans is not None:
        to_scan, from_scan = evaluation.raw_scans.registered
        rows.append(["registered shape to / from its raw scan, mm", f"{to_scan:.2f} / {from_scan:.2f}", ""])
    if evaluation.truth is not None:
        truth = evaluation.truth.as_dict()
        for key, name in (
            ("correspondence_error", "correspondence error, mm"),
            ("explained_variation", "explained variation (1 is perfect)"),
            ("variance_ratio", "variance over the true variance"),
        ):
            rows.append([name, _number(truth["breast"][key]), _number(truth["outside"][key])])
    return [[escape(cell) for cell in row] for row in rows]


def _number(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.2f}"
