"""The check of scans, in a worker process, with progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breastmorph.errors import BreastMorphError
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.page_words import in_page_words
from breastmorph.explorer.worker_calls import WorkerCalls
from breastmorph.scan.findings import Finding, Verdict
from breastmorph.scan.folder import ScanFiles
from breastmorph.workers import Limits


def checker() -> Callable[[ScanFiles], tuple[Verdict, tuple[Finding, ...]]]:
    """Setup of a checking process."""
    from breastmorph.scan.check import check_scan
    from breastmorph.template.files import default_template

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
            job.at(f"checking {files.id}", k / len(chosen))
            verdict: str
            findings: tuple[Finding, ...]
            try:
                verdict, findings = calls.call(files, lambda: job.is_cancelled)
            except BreastMorphError as error:
                refusal = Finding(error.code, error.cause, "refusal", error.remedy)
                verdict, findings = "refused", (refusal,)
            said = [
                vars(one) | {"message": in_page_words(one.message), "remedy": in_page_words(one.remedy)}
                for one in findings
            ]
            checks.append({"scan": key, "name": files.id, "verdict": verdict, "findings": said})
    return {"checks": checks}
