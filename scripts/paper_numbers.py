"""Renew the numbers of paper/paper.md.

    python scripts/paper_numbers.py                   # from benchmarks/results.md, the study's numbers as they were
    python scripts/paper_numbers.py --study demo-full/    # and from a finished study

Numbers go into paper/numbers.json with where they come from, and from there into paper/paper.md by paper/paper.md.j2. A
test compares all of them with the files they come from.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

ROOT = Path(__file__).parents[1]
RESULTS, NUMBERS = ROOT / "benchmarks" / "results.md", ROOT / "paper" / "numbers.json"
_PEERS = {"no_masks": "default without masks", "printed": "paper", "rigid": "rigid only"}
_JOBS = {
    "breast": "distance from the true place, breast",
    "outside": "distance from the true place, out",
    "surface": "distance to the scan, breast",
}


def from_results(text: str) -> dict[str, Any]:
    """What the paper takes from the results of ``make bench``."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    found: dict[str, Any] = {"source": "make bench: benchmarks/results.md", "ours": {}}
    for key, peer in _PEERS.items():
        found[key] = {}
        for name, job in _JOBS.items():
            row = next(row for row in rows if row[0] == job and re.fullmatch(rf"{peer}, \d+ scans", row[1]))
            found["ours"][name], found[key][name] = (cell.removesuffix(" mm") for cell in row[2:4])
            found["scans"] = int(row[1].split(", ")[1].split()[0])
    return found


def from_study(folder: Path) -> dict[str, Any]:
    """What it takes from a study."""
    from breastmorph.study.report import command_of
    from breastmorph.study.running import open_study
    from breastmorph.study.summary import StudyResults

    results = StudyResults(open_study(folder))
    found = results.masks[""]
    both = found.with_masks, found.without_masks
    if found.perfect is None or both[0].truth is None or both[1].truth is None:
        raise SystemExit(f"{folder}: the paper needs a study with known truth")
    off = [one.truth.correspondence[:, 0].mean() for one in both if one.truth is not None]
    return {
        "source": command_of(results),
        "command": command_of(results),
        "subjects": len(found.ids),
        "masks": f"{both[0].generalization[:, -1].mean():.2f}",
        "no_masks": f"{both[1].generalization[:, -1].mean():.2f}",
        "true": f"{found.perfect.generalization[:, -1].mean():.2f}",
        "off_masks": f"{off[0]:.1f}",
        "off_no_masks": f"{off[1]:.1f}",
        "statements": len(results.statements),
        "contradicted": sum(one.by_truth == "contradicts" for one in results.statements),
    }


def rendered(numbers: dict[str, Any]) -> str:
    """The paper with its numbers; one that is missing is an error."""
    text = (ROOT / "paper" / "paper.md.j2").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701
    return environment.from_string(text).render(numbers)


def main() -> None:
    """Read, write, and say what was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", type=Path, help="A finished study with known truth.")
    given = parser.parse_args()
    numbers = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.is_file() else {}
    numbers["bench"] = from_results(RESULTS.read_text(encoding="utf-8"))
    if given.study is not None:
        numbers["study"] = from_study(given.study)
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (ROOT / "paper" / "paper.md").write_text(rendered(numbers), encoding="utf-8")
    print(f"wrote {NUMBERS.relative_to(ROOT)} and paper/paper.md")


if __name__ == "__main__":
    main()
