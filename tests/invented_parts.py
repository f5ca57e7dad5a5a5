"""Parts that do what a test wants, in place of a study's own."""

from __future__ import annotations

import errno
import os
import signal

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.paper.part import Made, NotPossible, PartJob


def counts(job: PartJob) -> Made:
    job.place(f"figures/{job.part.name}.txt").write_text("done")
    return Made({"sum": 1 + sum(job.result(name).get("sum", 0) for name in job.part.after)})


def fails(job: PartJob) -> Made:
    raise BreastMorphError("this part has bad luck", "Try again")


def breaks(job: PartJob) -> Made:
    raise ZeroDivisionError("nobody foresaw it")


def crashes(job: PartJob) -> Made:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def is_not_possible(job: PartJob) -> Made:
    raise NotPossible("nobody was operated on", {"known": 0})


def finds_the_disk_full(job: PartJob) -> Made:
    raise OSError(errno.ENOSPC, "No space left on device")


def holds_no_number(job: PartJob) -> Made:
    return Made({"value": float("nan")})
