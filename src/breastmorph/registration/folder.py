"""The registered folder: what a run writes per scan, and how a second run knows what is already done.

``OUT/registered/<id>.ply`` holds the template's topology in the scan's own frame and unit,
``OUT/registered/<id>.json`` metrics, timings, parameters and the inputs' hashes, ``OUT/summary.csv`` one row a scan.
A scan whose inputs changed and that now fails has its old result moved to ``OUT/superseded``, so that no model is built
from it unnoticed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from breastmorph import __version__
from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration
from breastmorph.scan.check import CheckParameters, check_scan
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.scan import Scan
from breastmorph.template import Template
from breastmorph.template.files import to_npz

Status = Literal["registered", "unchanged", "failed"]
_COLUMNS = (
    "distance_inside",
    "distance_outside",
    "overlap",
    "angle_distortion",
    "flipped_percent",
    "smallest_area_ratio",
    "residual_nipple_left",
    "residual_nipple_right",
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one scan.

    Attributes
    ----------
    id : str
    status : {"registered", "unchanged", "failed"}
    record : dict
        What ``<id>.json`` holds; empty when failed.
    message : str
        Why it failed.
    """

    id: str
    status: Status
    record: dict[str, Any]
    message: str = ""

    @property
    def warnings(self) -> list[str]:
        """Warnings of the registration and repairs of the scan."""
        return list(self.record.get("warnings", ()))


def register_folder(
    found: Sequence[ScanFiles],
    registrar: Registrar,
    out: Path,
    *,
    check: CheckParameters | None = None,
    force: bool = False,
    complete: Callable[[str], bool] = lambda scan_id: True,
    on_result: Callable[[Scan, Registration], None] | None = None,
    on_done: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Register scans one after the other; a scan that fails does not stop the rest.

    Parameters
    ----------
    found : sequence of ScanFiles
    registrar : Registrar
    out : Path
    check : CheckParameters, optional
    force : bool
        Register again what is already done.
    complete : callable, optional
        Whether everything else that belongs to a scan's id is there; where not, it is registered again.
    on_result, on_done : callables, optional
        Called with every new registration, and with every outcome.
    """
    folder = out / "registered"
    make_folder(folder)
    template = registrar.template
    common = {
        "template": template_hash(template),
        "parameters": _plain(asdict(registrar.parameters)),
        "check": _plain(asdict(check or CheckParameters())),
        "version": __version__,
    }
    others = _others(folder, {files.id for files in found}, common["template"])
    write_file(out / "template.npz", to_npz(template))
    outcomes = []
    for files in found:
        again = force or not complete(files.id)
        outcome = _one(files, registrar, folder, common, check, again, on_result)
        if outcome.status == "failed":
            _supersede(files.id, folder, out / "superseded")
        outcomes.append(outcome)
        write_summary([*others, *outcomes], out / "summary.csv")
        if on_done is not None:
            on_done(outcome)
    return outcomes


def template_hash(template: Template) -> str:
    """A hash of everything of the template that shapes a registration."""
    digest = hashlib.sha256()
    for mesh, ids in (
        (template.mesh, template.landmark_ids),
        (template.coarse, template.coarse_landmark_ids),
    ):
        digest.update(mesh.vertices.tobytes())
        digest.update(mesh.faces.tobytes())
        digest.update(json.dumps(sorted(ids.items())).encode())
    return digest.hexdigest()


def write_summary(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write one row a scan, by id: status, quality figures, seconds, warnings."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["id", "status", *_COLUMNS, "seconds", "message"])
    for outcome in sorted(outcomes, key=lambda outcome: outcome.id):
        metrics = outcome.record.get("metrics", {})
        rows.writerow(
            [
                outcome.id,
                "failed" if outcome.status == "failed" else "registered",
                *(_cell(metrics.get(column)) for column in _COLUMNS),
                _cell(sum(outcome.record.get("seconds", {}).values()) or None),
                outcome.message or "; ".join(outcome.warnings),
            ]
        )
    write_file(path, text.getvalue().encode())


def _one(
    files: ScanFiles,
    registrar: Registrar,
    folder: Path,
    common: dict[str, Any],
    check: CheckParameters | None,
    force: bool,
    on_result: Callable[[Scan, Registration], None] | None,
) -> Outcome:
    mesh_path, record_path = folder / f"{files.id}.ply", folder / f"{files.id}.json"
    try:
        inputs = {path.name: _file_hash(path) for path in (files.mesh, *files.landmarks)}
        if not force and mesh_path.exists():
            old = _record(record_path)
            if old and old.get("inputs") == inputs and all(old.get(key) == common[key] for key in common):
                return Outcome(files.id, "unchanged", old)
        judged = check_scan(files, check, registrar.template.as_reference)
        if judged.scan is None:
            return Outcome(files.id, "failed", {}, str(judged.error))
        result = registrar.register(judged.scan)
        record = {
            "id": files.id,
            "metrics": _plain(dict(result.metrics)),
            "absent_side": result.absent_side,
            "warnings": [*(f.message for f in judged.findings if f.level == "repair"), *result.warnings],
            "stages": [_stage(stage) for stage in result.stages],
            "seconds": _plain(dict(result.seconds)),
            "to_file": judged.scan.to_file.as_dict(),
            "inputs": inputs,
            **common,
        }
        in_file = judged.scan.to_file.apply(result.vertices)
        record_path.unlink(missing_ok=True)  # an old record must not vouch for the new mesh
        save_mesh(result.mesh.with_vertices(in_file), mesh_path)
        record["outputs"] = {mesh_path.name: _file_hash(mesh_path)}
        write_file(record_path, json.dumps(record, indent=1).encode())
    except BreastMorphError as error:
        return Outcome(files.id, "failed", {}, str(error))
    if on_result is not None:
        on_result(judged.scan, result)
    return Outcome(files.id, "registered", record)


def _others(folder: Path, ids: set[str], template: str) -> list[Outcome]:
    """Results of earlier runs that this run does not touch; they must be of the same template."""
    found = []
    for path in sorted(folder.glob("*.json")):
        record = _record(path)
        if path.stem in ids or not record:
            continue
        if record.get("template") != template:
            raise FileProblem(
                f"this folder holds results of another template (of {path.stem})",
                "Choose another --out: one folder, one template",
                folder.parent,
            )
        found.append(Outcome(path.stem, "unchanged", record))
    return found


def _supersede(scan_id: str, folder: Path, away: Path) -> None:
    old = [path for path in (folder / f"{scan_id}.json", folder / f"{scan_id}.ply") if path.exists()]
    if old:
        make_folder(away)
    for path in old:
        os.replace(path, away / path.name)


def _stage(stage: Any) -> dict[str, Any]:
    return _plain(
        {
            "name": stage.name,
            "seconds": stage.seconds,
            "iterations": stage.iterations,
            "distance_inside": stage.distance_inside,
            "distance_outside": stage.distance_outside,
            "landmark_residuals": dict(stage.landmark_residuals),
        }
    )


def _file_hash(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileProblem(
            f"the file cannot be read ({error.strerror})", "Check its permissions", path
        ) from error


def _record(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    """Values as JSON will give them back, so that a record can be compared with a new run's."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
