"""The check of a folder's scans, in a worker process, with progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breastmorph.explorer.answers import finding_record
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.worker_calls import WorkerCalls
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Finding
from breastmorph.foundation.workers import Limits
from breastmorph.scan.check import ScanFiles
from breastmorph.scan.scan import Verdict


def checker() -> Callable[[ScanFiles], tuple[Verdict, tuple[Finding, ...]]]:
    """Setup of a checking process."""
    from breastmorph.scan.check import check_scan
    from breastmorph.template import default_template

    upright = default_template().as_reference

    def judge(files: ScanFiles) -> tuple[Verdict, tuple[Finding, ...]]:
        found = check_scan(files, None, upright)
        return found.verdict, found.findings

    return judge


def check_scans(chosen: Mapping[str, ScanFiles], limits: Limits, job: Job) -> dict[str, Any]:
    """Judge scans by key; one that crashes its process is refused, the others go on."""
    checks = []
    with WorkerCalls(checker, limits) as calls:
        for k, (key, files) in enumerate(chosen.items()):
            job.at(files.id, k / len(chosen))
            verdict: str
            findings: tuple[Finding, ...]
            try:
                verdict, findings = calls.call(files, lambda: job.is_cancelled)
            except BreastMorphError as error:
                verdict, findings = "refused", (error.finding,)
            records = [finding_record(finding) for finding in findings]
            checks.append({"scan": key, "name": files.id, "verdict": verdict, "findings": records})
    return {"checks": checks}
