"""Parts that bring scans into correspondence: the phantom, what is given, the check, registration, models."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import LocalProcesses
from breastmorph.batch.product import Hashes, Recipe, input_hashes
from breastmorph.batch.registered_folder import Outcome, RegisteredFolder
from breastmorph.cohort import load_cohort
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import sentences
from breastmorph.foundation.phrases import short_list
from breastmorph.foundation.workers import Failure, run_each
from breastmorph.paper.cohort_source import open_cohort, source_of
from breastmorph.paper.cohort_table import summarised
from breastmorph.paper.part import Made, NotPossible, PartJob
from breastmorph.phantom.scanner import write_cohort
from breastmorph.registration.parameters import preset
from breastmorph.report.registration_pictures import ScanPictures
from breastmorph.report.summary_page import write_summaries
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import PlausibilityReport
from breastmorph.template import Template, from_npz

FEWEST = 4  # subjects that can be registered, below which no model says anything


def make_phantom(job: PartJob) -> Made:
    """Draw and scan the synthetic cohort."""
    n, seed = job.part.settings["subjects"], job.part.settings["seed"]
    out = job.study.path / "cohort"
    shutil.rmtree(out, ignore_errors=True)  # of another size or seed, or half-written
    with job.steps("scans made", n) as advance:
        write_cohort(out, n, seed, job.jobs, on_done=lambda done: advance())
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return Made(
        {"subjects": n}, in_place=tuple(path.relative_to(job.study.path).as_posix() for path in files)
    )


def list_scans(job: PartJob) -> Made:
    """Which scans there are, by their content."""
    return Made({"files": source_of(job.study).scan_hashes()})


def read_cohort_table(job: PartJob) -> Made:
    """What the cohort's table says, as figures of all subjects together."""
    source = source_of(job.study)
    if source.table is None:
        raise NotPossible("there is no cohort.csv beside the scans")
    known = job.result("scans")["files"]
    return Made({"file": source.table_hash(), **summarised(source.table, list(known))})


def list_truth(job: PartJob) -> Made:
    """Which truth there is, by its content."""
    files = source_of(job.study).truth_hashes()
    if not files:
        raise NotPossible("the truth behind the scans is not known (there is no truth/ folder)")
    return Made({"files": files})


def check_scans(job: PartJob) -> Made:
    """Judge every scan before any computing starts."""
    found = source_of(job.study).found()
    check = job.check
    verdicts: dict[str, Any] = {}
    with (
        job.steps("scans checked", len(found)) as advance,
        closing(run_each(partial(_checker, check, _template(job)), found, job.jobs)) as judged,
    ):
        for files, verdict in judged:
            if isinstance(verdict, Failure):
                verdict = {"verdict": "refused", "remarks": [verdict.reason], "facts": {}}
            verdicts[files.id] = verdict
            advance()
    scans = {files.id: verdicts[files.id] for files in found}
    counts = {
        name: sum(one["verdict"] == name for one in scans.values())
        for name in ("usable", "repaired", "refused")
    }
    refused = [scan_id for scan_id, one in scans.items() if one["verdict"] == "refused"]
    good = len(scans) - len(refused)
    if good < FEWEST:
        raise NotPossible(
            f"{good} of {len(scans)} scans can be used, and a study needs at least {FEWEST}: add scans"
            + (f", or mend those that were refused ({short_list(refused)})" if refused else ""),
            {"counts": counts, "scans": scans},
        )
    return Made({"counts": counts, "scans": scans})


def register_scans(job: PartJob) -> Made:
    """Register the cohort in one way; goes on where an earlier run was stopped."""
    settings, out = job.part.settings, job.study.registered(job.part.settings["variant"])
    found = source_of(job.study).found()
    rules = Recipe(
        _template(job),
        preset(settings["preset"], use_masks=settings["masks"]),
        job.check,
        ScanPictures() if settings["pictures"] else None,
    )
    # What the check found against scans: every method needs it, and none has to seek it again.
    known = {
        scan_id: (scan["inputs"], PlausibilityReport.from_dict(scan["doubts"]))
        for scan_id, scan in job.result("check").get("scans", {}).items()
        if "doubts" in scan
    }
    rules = replace(rules, checked=known)
    folder = RegisteredFolder(out)
    _drop_others(folder, {files.id for files in found})
    with job.steps("scans registered", len(found)) as advance:

        def started(to_do: int, done: int) -> None:
            for _ in range(done):
                advance()

        outcomes = register_batch(
            found,
            rules,
            out,
            LocalProcesses(job.jobs),
            on_start=started,
            on_done=lambda outcome: advance(),
            on_end=(lambda known: write_summaries(known, out)) if settings["pictures"] else None,
        )
    good = [outcome for outcome in outcomes if outcome.status != "failed"]
    if len(good) < FEWEST:
        first = next((outcome.message for outcome in outcomes if outcome.status == "failed"), "")
        raise BreastMorphError(
            "only {n_good} of {n_outcomes} scans could be registered ({first})"
            if first
            else "only {n_good} of {n_outcomes} scans could be registered",
            "A study needs at least {fewest}",
            n_good=len(good),
            n_outcomes=len(outcomes),
            first=first,
            fewest=FEWEST,
        )
    load_cohort(out)  # packs the shapes once, before several parts want them at the same time
    base = folder.registered.relative_to(job.study.path).as_posix()
    return Made(
        {
            "subjects": [outcome.id for outcome in good],
            "failed": {o.id: o.message for o in outcomes if o.status == "failed"},
            "warned": sum(bool(outcome.warnings) for outcome in good),
            "absent": sum(bool(outcome.record.get("absent_side")) for outcome in good),
            "metrics": _metrics(good),
        },
        in_place=tuple(f"{base}/{outcome.id}.ply" for outcome in good),
        timed=tuple(f"{base}/{outcome.id}.json" for outcome in good),
        note=_counted(len(good), [outcome.id for outcome in outcomes if outcome.status == "failed"]),
    )


def build_one(job: PartJob) -> Made:
    """Build the shape model of one variant."""
    from breastmorph.model.building import BuildParameters, build_model
    from breastmorph.model.files import save_model

    variant = job.part.settings["variant"]
    cohort = open_cohort(job.study, variant)
    both = sum(not side for side in cohort.absent)
    if both < FEWEST:
        raise NotPossible(f"only {both} registered subjects have both breasts; a model needs {FEWEST}")
    synthetic = {"synthetic": True} if job.study.description()["parameters"].get("phantom") else {}
    model = build_model(cohort, BuildParameters(), {"variant": variant, **synthetic})
    save_model(model, job.place(f"models/{variant}.h5"))
    share = np.cumsum(model.variances) / model.variances.sum()
    return Made(
        {
            "subjects": both,
            "vertices": model.n_vertices,
            "components": model.n_components,
            "total_variance": float(model.info["total_variance"]),
            "share": {str(k): float(share[min(k, len(share)) - 1]) for k in (1, 2, 5, 8, 20)},
        }
    )


def _checker(check: CheckParameters, template: Template) -> Callable[[ScanFiles], dict[str, Any]]:
    def judge(files: ScanFiles) -> dict[str, Any]:
        inputs: Hashes = {}
        with suppress(FileProblem):  # which the check will say
            inputs = input_hashes(files)
        with one_thread():
            judged = check_scan(files, check, template.as_reference)
        remarks = sentences(finding for finding in judged.findings if finding.level != "note")
        verdict = {"verdict": judged.verdict, "remarks": remarks, "facts": dict(judged.facts)}
        return verdict | (
            {"inputs": inputs, "doubts": PlausibilityReport.of(judged.scan).as_dict()} if judged.scan else {}
        )

    return judge


def _template(job: PartJob) -> Template:
    return from_npz((job.study.path / "template.npz").read_bytes())


def _counted(good: int, failed: Sequence[str]) -> str:
    """How many scans were registered, in words."""
    words = f"{good} of {good + len(failed)} scans registered"
    return f"{words}, {len(failed)} failed: {short_list(failed)}" if failed else words


def _drop_others(folder: RegisteredFolder, ids: set[str]) -> None:
    """Put results of scans aside that are no longer in the cohort: a model takes all that a folder holds."""
    for scan_id in folder.ids():
        if scan_id not in ids:
            folder.supersede(scan_id)
            (folder.failed / f"{scan_id}.json").unlink(missing_ok=True)


def _metrics(outcomes: list[Outcome]) -> dict[str, list[float | None]]:
    """Every metric that the records hold, subject by subject."""
    names = sorted({name for outcome in outcomes for name in outcome.record.get("metrics", {})})
    return {name: [outcome.record["metrics"].get(name) for outcome in outcomes] for name in names}
