"""Renew the numbers of paper/paper.md.

    python scripts/paper_numbers.py                   # from benchmarks/*.json, the study's numbers as they were
    python scripts/paper_numbers.py --study demo-full/    # and from a finished study

Numbers go into paper/numbers.json with where they come from, and from there into paper/paper.md by paper/paper.md.j2. A
test compares all of them with the files they come from.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

ROOT = Path(__file__).parents[1]
BENCHMARKS, NUMBERS = ROOT / "benchmarks", ROOT / "paper" / "numbers.json"
_FIGURES = {
    "breast": "off_breast",
    "outside": "off_outside",
    "surface": "surface_breast",
    "folds": "folds_percent",
}
_TITLES = {
    "default": "BreastMorph",
    "paper": "as printed by @weiherer2023",
    "meshmonk": "MeshMonk",
    "bcpd": "BCPD",
    "pycpd": "coherent point drift (pycpd)",
    "nricp_amberg": "non-rigid ICP (trimesh)",
    "functional maps": "functional maps",
    "rigid": "similarity alone",
}
_SUBJECTS = {"phantoms": "phantoms", "realistic torsos": "torsos"}


def from_peers(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the paper takes from ``make peers``: every method on every kind of subjects."""
    found: dict[str, Any] = {"source": "make peers: benchmarks/peers.json"}
    for run in runs:
        rows = {
            name: {key: f"{one[figure]:.2f}" for key, figure in _FIGURES.items()}
            | {"seconds": f"{one['seconds']:.1f}"}
            for name, one in run["methods"].items()
            if one["registered"]
        }
        found[_SUBJECTS[run["subjects"]]] = {"scored": run["scored"], "rows": rows}
    return found


def from_models(found: dict[str, Any]) -> dict[str, Any]:
    """What it takes from the comparison of models: chamfer distances with most coefficients."""
    most = max(row["coefficients"] for row in found["rows"])
    rows: dict[str, Any] = {}
    for row in found["rows"]:
        if row["coefficients"] == most:
            rows.setdefault(row["model"], {})[row["task"]] = f"{row['chamfer']:.2f}"
    return {
        "source": "benchmarks/neural_model.py: benchmarks/models.json",
        "coefficients": most,
        "train": found["train"],
        "test": found["test"],
        "rows": rows,
    }


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
        "note": "",  # said where the program has changed since
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
    return environment.from_string(text).render(numbers, titles=_TITLES)


def main() -> None:
    """Read, write, and say what was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", type=Path, help="A finished study with known truth.")
    given = parser.parse_args()
    numbers = {"study": json.loads(NUMBERS.read_text(encoding="utf-8"))["study"]}
    numbers["peers"] = from_peers(json.loads((BENCHMARKS / "peers.json").read_text(encoding="utf-8")))
    numbers["models"] = from_models(json.loads((BENCHMARKS / "models.json").read_text(encoding="utf-8")))
    if given.study is not None:
        numbers["study"] = from_study(given.study)
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (ROOT / "paper" / "paper.md").write_text(rendered(numbers), encoding="utf-8")
    print(f"wrote {NUMBERS.relative_to(ROOT)} and paper/paper.md")


if __name__ == "__main__":
    main()
