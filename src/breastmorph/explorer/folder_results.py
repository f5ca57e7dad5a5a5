"""The registrations of a folder: how good they are, and a model of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.batch.summary import summarise
from breastmorph.explorer.answers import finding_record
from breastmorph.explorer.folders import ScanQueue
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.model_view import ModelOrigin, ModelView
from breastmorph.explorer.worker_calls import WorkerCalls

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session

_SHOWN = ("distance_inside", "distance_outside", "overlap")  # figures of quality on the page


def quality_rows(line: ScanQueue) -> list[dict[str, Any]]:
    """One row for each scan of a folder that was registered or refused: figures, what is unusual, what is doubtful."""
    folder, keys = RegisteredFolder(line.registration), {one.id: key for key, one in line.scans.items()}
    outcomes = [one for one in folder.outcomes() if one.id in keys]
    by_id = {one.id: one for one in outcomes}
    found = []
    for row in summarise(outcomes):
        outcome = by_id[row.id]
        failed = row.status == "failed"
        found.append(
            {
                "scan": keys[row.id],
                "name": row.id,
                "failed": finding_record(outcome.why) if failed else None,
                "figures": {name: row.figures.get(name) for name in _SHOWN},
                "flags": [one.figure for one in row.flags],
                "absent_side": outcome.record.get("absent_side", ""),
                "warnings": [] if failed else [finding_record(one) for one in outcome.findings],
            }
        )
    return found


def built_view(session: Session, line: ScanQueue, job: Job) -> tuple[ModelView, list[str]]:
    """A model of a folder's registered scans, and who was left out; the file lies in the session's private folder."""
    job.at("reading the registered scans")
    name = line.folder.resolve().name or "folder"
    place = Path(tempfile.mkdtemp(prefix="model-", dir=session.folder))
    target = place / f"{name}.h5"
    with WorkerCalls(builder, session.explorer.settings.computing) as calls:
        left_out: list[str] = calls.call((line.registration, target), lambda: job.is_cancelled)
    job.at("preparing the model")
    origin = ModelOrigin(target, is_built=True)
    model = origin.load()
    return ModelView(origin, model, min(session.explorer.settings.modes, model.n_components)), left_out


def builder() -> Callable[[tuple[Path, Path]], list[str]]:
    """Setup of a process that builds a model: of a registered folder, into a file beside which there is room."""
    from breastmorph.cohort import load_cohort
    from breastmorph.model.files import save_model
    from breastmorph.usecases.build import BuildRequest, Subjects, build

    def work(asked: tuple[Path, Path]) -> list[str]:
        folder, target = asked
        cohort = load_cohort(folder, packed_in=target.parent / "cohort")
        built = build(BuildRequest(Subjects(cohort)))
        save_model(built.model, target)
        shutil.rmtree(target.parent / "cohort", ignore_errors=True)
        return list(built.left_out.get("absent breast", ()))

    return work
