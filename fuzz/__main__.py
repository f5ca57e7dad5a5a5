"""``python -m fuzz``: so many inputs for every reader, each in a process with limits, and a table of what came out.

python -m fuzz --inputs 20000 --table docs/reliability.md
python -m fuzz --reader GLB --inputs 1000 --keep found/
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from breastmorph.foundation.machine import cores
from fuzz.child import run
from fuzz.hostile import HOSTILE
from fuzz.targets import TARGETS

_KINDS = ("value", "own", "unexpected", "memory", "hang", "crash")
_BAD = _KINDS[2:]
_FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder in memory, ours is made below it
_HEAD = (
    "reader",
    "inputs",
    "values",
    "own errors",
    "unexpected",
    "memory",
    "hangs",
    "crashes",
    "peak MB",
    "seconds",
)


def main() -> int:
    """Run and print; the exit code is 1 when anything but values and own errors came out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1000, help="inputs per reader")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first input")
    parser.add_argument(
        "--reader", action="append", choices=sorted(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--keep", type=Path, help="folder for inputs that did harm; outside the repository")
    parser.add_argument("--hostile", action="store_true", help="the named hostile files instead")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--table", type=Path, help="page whose table of readers is written anew")
    chosen = parser.parse_args()
    rows = []
    if chosen.hostile:
        rows = list(_hostile())
    else:
        if not chosen.json:
            print(_line(_HEAD), flush=True)
        fuzzed = partial(_fuzzed, numbers=range(chosen.first, chosen.first + chosen.inputs), keep=chosen.keep)
        with multiprocessing.get_context("fork").Pool(cores()) as readers:
            for row in readers.imap(fuzzed, chosen.reader or TARGETS):
                rows.append(row)
                if not chosen.json:
                    print(_line(_cells(row)), flush=True)
        if chosen.table is not None:
            chosen.table.write_text(_renewed(chosen.table.read_text("utf-8"), rows), "utf-8")
    if chosen.json:
        print(json.dumps(rows))
    elif chosen.hostile:
        for row in rows:
            print(f"{row['kind']:12}{row['peak']:8.1f} MB  {row['name']}: {row['detail']}")
    else:
        for row in rows:
            for number, kind, detail in row["bad"]:
                print(f"\n{row['reader']} input {number}: {kind}\n{detail}", file=sys.stderr)
    bad = any(row["bad"] if "bad" in row else row["kind"] in _BAD for row in rows)
    return int(bad)


def _fuzzed(name: str, numbers: range, keep: Path | None) -> dict[str, Any]:
    target = TARGETS[name]
    start, counts, peak, bad = _processor_time(), Counter(dict.fromkeys(_KINDS, 0)), 0.0, []
    with TemporaryDirectory(dir=_FAST) as folder:
        path, made = target.prepared(Path(folder))
        for outcome in run(target.read, path, numbers, lambda number: target.input(made, number)):
            counts[outcome.kind] += 1
            peak = max(peak, outcome.peak)
            if outcome.kind in _BAD:
                bad.append((outcome.number, outcome.kind, outcome.detail))
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    place = keep / f"{target.name.replace(' ', '-')}-{outcome.number}-{path.name}"
                    place.write_bytes(target.input(made, outcome.number))
    seconds = _processor_time() - start
    return {"reader": target.name, **counts, "peak": peak, "seconds": seconds, "bad": bad[:50]}


def _processor_time() -> float:
    """Seconds of this process and its children, whatever else the machine does."""
    return sum(os.times()[:4])


def _hostile() -> Iterator[dict[str, Any]]:
    for name, one in HOSTILE.items():
        target = TARGETS[one.reader]
        with TemporaryDirectory(dir=_FAST) as folder:
            path, _ = target.prepared(Path(folder))
            data = one.make()
            (outcome,) = run(target.read, path, [0], lambda number, data=data: data)
        yield {
            "name": name, "reader": one.reader, "kind": outcome.kind, "detail": outcome.detail, "peak": outcome.peak,
            "bytes": len(data),
        }  # fmt: skip


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    inputs = sum(row[kind] for kind in _KINDS)
    return (
        row["reader"],
        f"{inputs:,}",
        *(f"{row[kind]:,}" for kind in _KINDS),
        f"{row['peak']:.0f}",
        f"{row['seconds']:.0f}",
    )


def _renewed(page: str, rows: Iterable[dict[str, Any]]) -> str:
    """A page in Markdown with the rows of its table of readers exchanged."""
    table = "\n".join(f"| {' | '.join(_cells(row))} |" for row in rows)
    head = re.escape(f"| {' | '.join(_HEAD)} |") + r"\n\|[-:|]+\|\n"
    renewed, found = re.subn(rf"({head})(\|.*\n)+", lambda old: f"{old.group(1)}{table}\n", page)
    if found != 1:
        raise SystemExit("the page has no table of readers")
    return renewed


def _line(cells: Iterable[str]) -> str:
    first, *others = cells
    return f"{first:22}" + "".join(f"{cell:>12}" for cell in others)


if __name__ == "__main__":
    sys.exit(main())
