"""The registration of a cohort that cannot lose work: what is still to be done, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.batch.cohort_prior import CohortPrior, PriorFitter, is_sound
from breastmorph.batch.executors import Executor, LocalProcesses
from breastmorph.batch.product import Recipe
from breastmorph.batch.registered_folder import Outcome, RegisteredFolder
from breastmorph.batch.summary import write_summary
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.foundation.locks import locked_folder
from breastmorph.foundation.machine import cores
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.check import ScanFiles
from breastmorph.template import to_npz

_REFRESH = 20.0  # seconds between two summaries of a running batch ...
_SHARE = 0.02  # ... or more, so that they do not take more than this share of the time


def register_batch(
    found: Sequence[ScanFiles],
    recipe: Recipe,
    out: Path,
    executor: Executor | None = None,
    *,
    learn: bool = False,
    force: bool = False,
    retry_failed: bool = False,
    on_start: Callable[[int, int], None] | None = None,
    on_done: Callable[[Outcome], None] | None = None,
    on_end: Callable[[Sequence[Outcome]], object] | None = None,
) -> list[Outcome]:
    """Register scans into a folder; a scan that fails does not stop the rest.

    It can be stopped at any moment, even by cutting the power: the same call goes on where it was.

    Parameters
    ----------
    found : sequence of ScanFiles
    recipe : Recipe
    out : Path
    executor : InProcess, LocalProcesses or Cluster, optional
        Local processes on all cores when not given.
    learn : bool
        Register twice: the second pass has a prior that was fitted to the first (see ``cohort_prior``), kept for
        scans that are added later. Too few sound subjects are registered once.
    force : bool
        Do again what is already done, and fit the prior again.
    retry_failed : bool
        Do only what failed before.
    on_start : callable, optional
        Called with the number of scans to do and of those already done, at the start of every pass.
    on_done : callable, optional
        Called with every outcome as it comes.
    on_end : callable, optional
        Called with the outcomes of all scans of the folder at the end of a run, also of one that was stopped.

    Returns
    -------
    list of Outcome
        Of the scans in ``found`` that this run did or found done, in their order.

    Raises
    ------
    FileProblem
        The folder is in use, holds results of another template or cannot be written to.
    """
    make_folder(out)
    with locked_folder(out) as lock:
        folder = RegisteredFolder(out)
        folder.prepare()
        done: dict[str, Outcome] = {}
        for rules, again in _passes(folder, recipe, learn, force, retry_failed):
            todo, current = _plan(found, rules, folder, again, retry_failed)
            known = {outcome.id: outcome for outcome in folder.outcomes()}
            _keep_one_template(folder, rules, known, {files.id for files in todo})
            done = {scan_id: known[scan_id] for scan_id in current}
            with _summarised(folder, known, on_end) as refresh:
                if on_start is not None:
                    on_start(len(todo), len(current))
                with closing((executor or LocalProcesses()).run(rules, todo, folder, lock)) as outcomes:
                    for outcome in outcomes if todo else ():  # no process starts for nothing
                        known[outcome.id] = done[outcome.id] = outcome
                        if on_done is not None:
                            on_done(outcome)
                        refresh()
        return [done[files.id] for files in found if files.id in done]


def _passes(
    folder: RegisteredFolder, recipe: Recipe, learn: bool, force: bool, retry_failed: bool
) -> Iterator[tuple[Recipe, bool]]:
    """The recipe of each pass, and whether it does again what is done; the second one's is made after the first."""
    if not learn:
        yield recipe, force
        return
    if force:
        folder.prior.unlink(missing_ok=True)
    data = _stored_prior(folder, recipe)
    if not data and not retry_failed:
        yield recipe, force
        prior = _fit_prior(folder, recipe)
        if prior is None:
            return
        data = prior.to_npz()
        write_file(folder.prior, data)
    yield replace(recipe, prior=data), False


@contextmanager
def _summarised(
    folder: RegisteredFolder, known: dict[str, Outcome], on_end: Callable[[Sequence[Outcome]], object] | None
) -> Iterator[Callable[[], None]]:
    """``summary.csv`` kept up to date with the known outcomes, at a bounded cost; the value is called after each."""
    due = 0.0

    def write() -> None:
        nonlocal due
        begin = time.monotonic()
        write_summary(list(known.values()), folder.path / "summary.csv")
        now = time.monotonic()
        due = now + max(_REFRESH, (now - begin) / _SHARE)

    def end() -> None:
        if on_end is not None:
            on_end([known[scan_id] for scan_id in sorted(known)])

    write()
    try:
        yield lambda: write() if time.monotonic() >= due else None
        write()
        end()
    except BaseException as error:
        with suppress(FileProblem):  # the disk may be full; what stopped the run matters more
            write()
            if isinstance(error, KeyboardInterrupt):
                end()
        if isinstance(error, FileProblem) and error.code == "unwritable":
            raise FileProblem(
                "{what}",
                "{what:remedy}, then try again: what is done is kept",
                error.where,
                code="unwritable/stopped",
                what=error.finding,
            ) from error
        raise


def _stored_prior(folder: RegisteredFolder, recipe: Recipe) -> bytes:
    """The prior that this folder has from a first pass by this recipe; empty where it has none."""
    if not folder.prior.exists():
        return b""
    data = folder.prior.read_bytes()
    return (
        data
        if CohortPrior.from_npz(data, folder.prior, recipe.parameters.cohort_prior).made_by
        == recipe.first_pass
        else b""
    )


def _fit_prior(folder: RegisteredFolder, recipe: Recipe) -> CohortPrior | None:
    """The prior of the folder's results of this recipe; None where they are too few."""

    folded = recipe.parameters.acceptance.folded

    def subjects() -> Iterator[tuple[str, Floats, Similarity]]:
        for scan_id in folder.ids():
            record = folder.record(scan_id)
            if any(record.get(key) != value for key, value in recipe.common.items()):
                continue
            if is_sound(record["metrics"], record["absent_side"], folded):
                mesh = load_mesh(folder.registered / f"{scan_id}.ply")
                to_scan = Similarity.from_dict(record["to_file"]).inverse()
                yield scan_id, to_scan.apply(mesh.vertices), Similarity.from_dict(record["rigid"])

    return PriorFitter(recipe.template, recipe.parameters).fit(subjects(), recipe.first_pass)


def _plan(
    found: Sequence[ScanFiles], recipe: Recipe, folder: RegisteredFolder, force: bool, retry_failed: bool
) -> tuple[list[ScanFiles], list[str]]:
    """Scans to do, and ids of those whose results are current."""
    if retry_failed:
        return [files for files in found if folder.has_failed(files.id)], []
    if force:
        return list(found), []
    with ThreadPoolExecutor(cores()) as pool:  # threads suffice: hashing leaves the interpreter free
        current = list(pool.map(lambda files: folder.is_current(files, recipe), found))
    return (
        [files for files, is_done in zip(found, current, strict=True) if not is_done],
        [files.id for files, is_done in zip(found, current, strict=True) if is_done],
    )


def _keep_one_template(
    folder: RegisteredFolder, recipe: Recipe, known: dict[str, Outcome], todo: set[str]
) -> None:
    """Put aside results of another template that will be done again, refuse when others would stay."""
    template = recipe.common["template"]
    others = [o.id for o in known.values() if o.record and o.record.get("template") != template]
    staying = [scan_id for scan_id in others if scan_id not in todo]
    if staying:
        raise FileProblem(
            "this folder holds results of another template (of {id})",
            "Choose another folder: one folder, one template",
            folder.path,
            code="other-template",
            id=staying[0],
        )
    for scan_id in others:
        folder.supersede(scan_id)
        del known[scan_id]
    folder.keep_template(to_npz(recipe.template, np.float32))
