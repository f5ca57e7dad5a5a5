"""Renew the numbers of paper/paper.md, and the tables of the docs that are a study's.

    python scripts/paper_numbers.py                   # from benchmarks/*.json, the study's numbers as they were
    python scripts/paper_numbers.py --study demo-full/    # and from a finished study (breastmorph demo --full)

Numbers go into paper/numbers.json with where they come from, and from there into paper/paper.md by paper/paper.md.j2
and into the pages between marks. A test compares all of them with the files they come from.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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
    "nricp_amberg": "optimal step non-rigid ICP (trimesh)",
    "nricp_sumner": "deformation transfer's energy (trimesh)",
    "functional maps": "functional maps",
    "rigid": "similarity alone",
}
_SUBJECTS = {"phantoms": "phantoms", "realistic torsos": "torsos"}
# Which page has which table of the study.
PAGES = {
    "masks": ROOT / "docs" / "paper-notes.md",
    "statements": ROOT / "docs" / "paper-notes.md",
    "others": ROOT / "docs" / "experiments.md",
    "model": ROOT / "docs" / "evaluation.md",
    "truth": ROOT / "docs" / "evaluation.md",
}
_COUNTS = (1, 5, 10, 20, 50)  # components in the table of the model, and all


def from_peers(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the paper takes from ``make peers``: every method on every kind of subjects.

    Dear methods were scored on fewer subjects; they stand apart (``fewer``), with BreastMorph on the same ones.
    """
    found: dict[str, Any] = {"source": "make peers: benchmarks/peers.json"}
    for run in sorted(runs, key=lambda run: -run["scored"]):
        rows = {
            name: {key: f"{one[figure]:.2f}" for key, figure in _FIGURES.items()}
            | {"seconds": f"{one['seconds']:.1f}"}
            for name, one in run["methods"].items()
            if one["registered"]
        }
        kind = _SUBJECTS[run["subjects"]]
        if kind not in found:
            found[kind] = {"scored": run["scored"], "rows": rows}
        else:
            new = [name for name in rows if name not in found[kind]["rows"]]
            fewer = {name: rows[name] for name in ("default", *new)}
            found[kind]["fewer"] = {"scored": run["scored"], "rows": fewer}
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


def from_study(results: Any) -> dict[str, Any]:
    """What it takes from the results of a study."""
    from breastmorph.paper.report import command_of

    found = results.masks[""]
    both = found.with_masks, found.without_masks
    if found.perfect is None or both[0].truth is None or both[1].truth is None:
        raise SystemExit("the paper needs a study with known truth")
    off = [one.truth.correspondence[:, 0].mean() for one in both if one.truth is not None]
    printed = results.masks.get("-paper")
    if printed is None or printed.with_masks.truth is None:
        raise SystemExit("the paper needs the printed method too")
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
        "printed": f"{printed.with_masks.generalization[:, -1].mean():.2f}",
        "off_printed": f"{printed.with_masks.truth.correspondence[:, 0].mean():.1f}",
        "statements": len(results.statements),
        "contradicted": sum(one.by_truth == "contradicts" for one in results.statements),
        "tables": {
            "masks": _of_masks(results),
            "statements": _statements(results),
            "others": _others(results),
            "model": _of_model(found.with_masks),
            "truth": _of_truth(found.with_masks),
        },
    }


def _of_model(one: Any) -> list[list[str]]:
    """The metrics of the model with masks by the number of components."""
    counts = [count for count in _COUNTS if count < int(one.components[-1])]
    left_out, whole = int(one.components[-1]), len(one.share)

    def spread(title: str, column: Callable[[int], np.ndarray]) -> list[str]:
        values = [column(count) for count in (*counts, left_out)]
        return [title, *(f"{np.nanmean(v):.2f} ± {np.nanstd(v, ddof=1):.2f}" for v in values)]

    near = [f"{one.specificity[m - 1]:.2f} ± {one.specificity_sd[m - 1]:.2f}" for m in (*counts, whole)]
    in_breast = [f"{one.specificity_breast[m - 1]:.2f}" for m in (*counts, whole)]
    place = {int(count): k for k, count in enumerate(one.scans.components)}
    return [
        ["components", *map(str, counts), "all"],
        ["variance held", *(f"{100 * one.share[m - 1]:.1f} %" for m in counts), "100 %"],
        spread("generalization, whole, point to point", lambda m: one.generalization[:, m]),
        spread("generalization, breast, point to point", lambda m: one.generalization_breast[:, m]),
        ["specificity, whole, point to point", *near],
        ["specificity, breast, point to point", *in_breast],
        spread(
            "generalization, breast, to the raw scan", lambda m: one.scans.reconstructed_breast[:, place[m]]
        ),
    ]


def _of_truth(one: Any) -> list[list[str]]:
    """The same model by truth."""
    truth, scans = one.truth, one.scans
    deviations = [f"{np.sqrt(v):.1f}" for v in (one.variance_inside, one.variance_outside)]
    from_scan = [f"{np.nanmean(v):.2f}" for v in (scans.distance_breast, scans.distance_outside)]
    share = [f"{ratio**2:.2f}" for ratio in (truth.sd_ratio_breast, truth.sd_ratio_outside)]
    return [
        ["", "breast", "outside"],
        ["distance of the registered shapes from their scans, mm", *from_scan],
        ["sd of a vertex over the subjects, mm", *deviations],
        ["correspondence error, mm", *(f"{value:.1f}" for value in truth.correspondence.mean(axis=0))],
        ["explained variation", f"{truth.explained_breast:.2f}", f"{truth.explained_outside:.2f}"],
        ["variance over the true variance", *share],
    ]


def _of_masks(results: Any) -> list[list[str]]:
    """Experiment 1 in figures: the registrations and the true shapes."""
    default, printed = results.masks[""], results.masks["-paper"]
    variants = [default.with_masks, default.without_masks, printed.with_masks, printed.without_masks]
    every = [*variants, default.perfect]

    def row(title: str, said: Callable[[Any], str], of: list[Any] = every, last: str = "") -> list[str]:
        return [title, *map(said, of), *([last] if len(of) < len(every) else [])]

    left_out, all_of_them = int(default.with_masks.components[-1]), len(default.with_masks.share)
    return [
        [f"{len(default.ids)} subjects", "default, masks", "default, none", "`paper`, masks", "`paper`, none", "truth"],
        row(f"generalization, {left_out} components, mm", lambda one: f"{one.generalization[:, -1].mean():.2f}"),
        row(f"specificity, {all_of_them} components, mm", lambda one: f"{one.specificity[-1]:.2f}"),
        row("mean squared distance, both ways, mm²", lambda one: _short(np.nanmean(one.scans.mean_squared)), variants),
        row("mean distance to the scan, breast / outside, mm", lambda one: " / ".join(
            f"{np.nanmean(off):.2f}" for off in (one.scans.distance_breast, one.scans.distance_outside)), variants),
        row("angle distortion, degrees", lambda one: f"{one.angle_distortion.mean():.1f}"),
        row("variance in 1, 3, 8 components, %", lambda one: ", ".join(f"{100 * one.share[k]:.0f}" for k in (0, 2, 7))),
        row("sd of a vertex, breast / outside, mm",
            lambda one: f"{np.sqrt(one.variance_inside):.1f} / {np.sqrt(one.variance_outside):.1f}"),
        row("variance outside over inside", lambda one: f"{1.0 / one.inside_over_outside:.2f}"),
        row("random shapes that vary most at the breasts, %",
            lambda one: f"{100 * (one.moved_in_breast > 0.5).mean():.0f}"),
        row("**correspondence error, breast / outside, mm**",
            lambda one: " / ".join(f"{value:.1f}" for value in one.truth.correspondence.mean(axis=0)), variants, "0"),
        row("**explained variation, breast / outside**",
            lambda one: f"{one.truth.explained_breast:.2f} / {one.truth.explained_outside:.2f}", variants, "1"),
    ]  # fmt: skip


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10.0 else f"{value:.1f}"


def _statements(results: Any) -> list[list[str]]:
    """What the paper says of experiment 1: whether it holds, and what the truth says, by both methods."""
    rows: dict[str, list[str]] = {}
    for one in (one for one in results.statements if one.experiment == 1):
        words = {"too small": "too small to matter"}.get(one.holds, one.holds)
        rows.setdefault(one.text, [one.text]).append(f"{words} / {one.by_truth}" if one.by_truth else words)
    return [
        ["statement of the paper", "default: holds / by truth", "`paper`: holds / by truth"],
        *rows.values(),
    ]


def _others(results: Any) -> list[list[str]]:
    """Experiments 2 to 4 beside the paper's figures."""
    amounts, operated, clinical = results.amounts, results.operated, results.clinical
    errors = []
    for one in amounts.amounts:
        components, mean, _ = one.curve("generalization")
        errors.append(f"{mean[int(np.searchsorted(components, amounts.common))]:.2f}")
    sizes = ", ".join(str(one.size) for one in amounts.amounts)
    by = {one.text: one for one in results.statements if one.experiment == 3}
    both = [float(operated.curve(name)[0][-1]) for name in ("operated", "not_operated")]
    test = next(iter(by.values()))
    straight = ", ".join(f"{value:.2f}" for value in clinical.mean[-1])
    tape = ", ".join(f"{value:.2f}" for value in clinical.tape_mean[-1])
    size = len(operated.draws[0].training)
    return [
        ["experiment", "here", "paper"],
        ["2, generalization by the number of scans",
         f"{', '.join(errors)} mm ({sizes} scans, {amounts.common} components)",
         "1.07 mm with 30, about 0.6 mm with 90 and 110 (29 components)"],
        [f"3, non-operated subjects by {size} operated / {size} non-operated ones",
         f"{both[0]:.2f} / {both[1]:.2f} mm ({test.comparison.p_text})", "0.77 / 0.71 mm"],
        [f"4, {', '.join(clinical.names)} straight, all components", f"{straight} mm", "0.66, 3.24, 1.57 mm"],
        ["4, over the skin", f"{tape} mm", ""],
        ["4, straight, of the registered shapes before any model", f"{np.nanmean(clinical.registered):.3f} mm", ""],
    ]  # fmt: skip


def markdown(rows: list[list[str]]) -> str:
    """A table, the first row its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def marks(name: str) -> tuple[str, str]:
    """Between what a table of the study stands on its page."""
    return f"<!-- study, {name}: begin -->", f"<!-- study, {name}: end -->"


def write_pages(tables: dict[str, list[list[str]]]) -> None:
    """Renew the tables of the docs."""
    for name, rows in tables.items():
        text, (begin, end) = PAGES[name].read_text(encoding="utf-8"), marks(name)
        head, tail = text.split(begin)[0], text.split(end)[1]
        PAGES[name].write_text(f"{head}{begin}\n{markdown(rows)}\n{end}{tail}", encoding="utf-8")


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
        from breastmorph.paper.running import open_study
        from breastmorph.paper.summary import StudyResults

        numbers["study"] = from_study(StudyResults(open_study(given.study)))
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (ROOT / "paper" / "paper.md").write_text(rendered(numbers), encoding="utf-8")
    write_pages(numbers["study"].get("tables", {}))
    print(f"wrote {NUMBERS.relative_to(ROOT)}, paper/paper.md and the tables of the study in the docs")


if __name__ == "__main__":
    main()
