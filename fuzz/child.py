"""Inputs in child processes that may neither run on, nor take much memory, nor take the parent with them.

A child reads many inputs, one after the other, and notes which one it is at. When it dies, that input is to blame and
the next child goes on behind it.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from breastmorph.foundation.errors import BreastMorphError

SECONDS = 5.0  # of processor time an input may take
_WALL = 120.0  # seconds without progress, where a reader waits instead of computing
MEMORY = 512 * 1024**2  # bytes above the start
_BATCH = 500
_LONGEST_MESSAGE = 700  # characters; whoever reads it is a person

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Outcome:
    """What came of one input.

    Attributes
    ----------
    number : int
    kind : {"value", "own", "unexpected", "hang", "crash", "memory"}
    detail : str
        The error in words.
    peak : float
        MB above what was in use before this input.
    """

    number: int
    kind: str
    detail: str = ""
    peak: float = 0.0


def outcome_of(read: Read, path: Path) -> tuple[str, str]:
    """Read a file here and judge what happens: kind and detail."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            read(path)
            kind, detail = "value", ""
        except BreastMorphError as error:
            kind, detail = _judged(error)
        except MemoryError:
            kind, detail = "memory", traceback.format_exc(limit=-4)
        except Exception:
            kind, detail = "unexpected", traceback.format_exc(limit=-4)
    if said and kind in ("value", "own"):
        one = said[0]
        return "unexpected", f"warning: {one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
    return kind, detail


def _judged(error: BreastMorphError) -> tuple[str, str]:
    """Our own error, unless it only dresses up that the memory was too small, or nobody could read it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return "memory", f"{error}\n{''.join(traceback.format_tb(cause.__traceback__, limit=-3))}"
        cause = cause.__cause__ or cause.__context__
    message = str(error)
    if len(message) - len(str(error.where or "")) > _LONGEST_MESSAGE or not error.cause.strip():
        return "unexpected", f"a message of {len(message)} characters: {message[:200]!r}"
    if not (error.cause + error.remedy).isprintable():  # a file must not steer somebody's terminal
        return "unexpected", f"a message that cannot be printed: {message[:300]!r}"
    return "own", message


def run(
    read: Read, path: Path, numbers: Sequence[int], data: Callable[[int], bytes], batch: int = _BATCH
) -> Iterator[Outcome]:
    """Write every input to ``path`` and read it, in children; the outcomes in order."""
    at = 0
    place = mmap.mmap(-1, 8)  # shared: the position of the input a child is at
    while at < len(numbers):
        place[:8] = struct.pack("<q", at)
        ready, said = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(ready)
            _work(read, path, numbers[at : at + batch], data, place, at, said)
        os.close(said)
        done = 0
        with os.fdopen(ready, "rb") as answers:
            for line in answers:
                if line.endswith(b"\n"):
                    yield Outcome(*json.loads(line))
                    done += 1
        _, status = os.waitpid(child, 0)
        at += done
        if status != 0:
            position = struct.unpack("<q", place[:8])[0]
            if position < at or status >> 8 == 70:  # between two inputs: nobody's fault but the runner's
                raise RuntimeError(f"the child ended with status {status}")
            how = os.waitstatus_to_exitcode(status)
            is_hang = -how in (signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM)
            yield Outcome(numbers[position], "hang" if is_hang else "crash", f"the child ended with {how}")
            at = position + 1


def _work(
    read: Read,
    path: Path,
    numbers: Sequence[int],
    data: Callable[[int], bytes],
    place: mmap.mmap,
    at: int,
    said: int,
) -> None:
    """The child: never returns."""
    kept = os.dup(2)
    try:
        limits = resource.getrlimit(resource.RLIMIT_AS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what C libraries print
        for offset, number in enumerate(numbers):
            resource.setrlimit(resource.RLIMIT_AS, (_virtual() + 2 * MEMORY, limits[1]))
            path.write_bytes(data(number))
            place[:8] = struct.pack("<q", at + offset)
            start = _restarted_peak()
            resource.setrlimit(resource.RLIMIT_AS, (_virtual() + MEMORY, limits[1]))
            # The default action of both signals ends the process: no reader can catch it.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, _WALL)
            kind, detail = outcome_of(read, path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            peak = _peak() - start
            os.write(said, (json.dumps([number, kind, detail[:2000], peak]) + "\n").encode())
        os._exit(0)
    except BaseException:
        os.write(kept, traceback.format_exc().encode())  # the runner's own fault
        os._exit(70)


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _restarted_peak() -> float:
    """MB in use now; the peak is counted from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> float:
    """MB, the most since the last restart."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
