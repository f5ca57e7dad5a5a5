"""The report's section on the cohort: who is in the study, what the check said, how registration went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breastmorph.foundation.messages import note
from breastmorph.paper.blocks import bullets, mean_sd, section
from breastmorph.paper.cohort_table import PAPER, PAPER_COUNTS, PAPER_SUBJECTS, missing_rows
from breastmorph.paper.summary import StudyResults
from breastmorph.report.document import Block, Cell, Column, Section, Table

_SHOWN = 12  # scans with remarks that are named
_METRICS = {  # of a registration's record: column, digits
    "distance_inside": (Column("template to scan, breast", "mm", number=True), 2),
    "distance_outside": (Column("template to scan, outside", "mm", number=True), 2),
    "angle_distortion": (Column("angle distortion", "°", number=True), 2),
    "flipped_percent": (Column("flipped triangles", "%", number=True), 3),
}


def cohort_section(results: StudyResults) -> Section:
    """Who is in the study."""
    blocks = (_described(results), _table_1(results), *_check(results), *_registrations(results))
    return section("The cohort", *blocks)


def _described(results: StudyResults) -> str:
    phantom = results.parameters.phantom
    if phantom is None:
        scans = results.run.result("scans").get("files", {})
        return note(
            "study/own-scans",
            "{n} scans from the folder given with --cohort; their hashes are at the end.",
            n=len(scans),
        ).cause.text()
    return (
        f"{phantom} synthetic adult torsos, drawn with seed {results.parameters.seed} from ranges of age, size "
        "and breast volume like those of the paper's table 1, and scanned by a simulated scanner from three "
        "views, with holes and noise. Nobody's data are in this study. Where every point of the skin belongs "
        "is known, so registrations can be judged by truth."
    )


def _table_1(results: StudyResults) -> Table | str:
    found = results.run.result("table")
    if not found:
        why = results.why_not("table")
        return f"Age, body mass index, volumes and operations are not shown. {why}"
    scans = len(results.run.result("scans").get("files", {}))
    rows: list[tuple[Cell, ...]] = [("scans", str(scans), str(PAPER_SUBJECTS))]
    rows += [
        (paper.title, _spread(found["figures"].get(name)), _spread(vars(paper)))
        for name, paper in PAPER.items()
    ]
    for name, (title, count) in PAPER_COUNTS.items():
        ours = found["counts"].get(name)
        shown = f"{ours['yes']} of {ours['known']}" if ours else None
        rows.append((title, shown, f"{count} of {PAPER_SUBJECTS}"))
    dash = "A dash: not in cohort.csv." if any(None in row for row in rows) else ""
    return Table(
        "The cohort beside the paper's (table 1): mean ± standard deviation (range)",
        ("", Column("this cohort", number=True), Column("paper's cohort", number=True)),
        tuple(rows),
        f"{dash} {missing_rows(found)}".strip(),
    )


def _spread(figure: Mapping[str, Any] | None) -> str | None:
    if not figure:
        return None
    digits = 1 if figure["mean"] < 100 else 0
    mean, sd, low, high = (f"{figure[name]:.{digits}f}" for name in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd} ({low} to {high})"


def _check(results: StudyResults) -> list[Block | str]:
    found = results.run.result("check")
    if not found:
        return [f"The check of the scans is missing. {results.why_not('check')}"]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in found["counts"].items())
    rows = [
        (scan_id, one["verdict"], "; ".join(one["remarks"]))
        for scan_id, one in found["scans"].items()
        if one["remarks"]
    ]
    more = len(rows) - _SHOWN
    note = f"And {more} more; all are in parts/check.json." if more > 0 else ""
    table = Table("Scans with remarks", ("scan", "verdict", "remarks"), tuple(rows[:_SHOWN]), note)
    return [f"Checked before any computing: {counts}.", *([table] if rows else [])]


def _registrations(results: StudyResults) -> list[Block | None]:
    rows: list[tuple[Cell, ...]] = []
    failures: dict[str, list[str]] = {}  # ways of registering, by what went wrong
    variants = results.parameters.variants
    for variant in variants:
        found = results.run.result(f"register-{variant.name}")
        if not found:
            rows.append((variant.title, results.why_not(f"register-{variant.name}"), *[None] * 4))
            continue
        values = {name: [v for v in found["metrics"].get(name, []) if v is not None] for name in _METRICS}
        means = (mean_sd(values[name], digits) for name, (_, digits) in _METRICS.items())
        rows.append((variant.title, str(len(found["subjects"])), *means))
        for scan_id, why in found["failed"].items():
            failures.setdefault(f"{scan_id} could not be registered: {why}", []).append(variant.title)
    table = Table(
        "Registrations: mean ± standard deviation over the scans",
        ("method", "scans", *(column for column, _ in _METRICS.values())),
        tuple(rows),
        "Template to scan: mean distance at the end of the registration over points whose skin faces the scan (breast: "
        "mask above 0.2). Experiment 1 measures against the raw scan, over all points that it covers, and so gets a "
        "little more. Small distances do not make a registration right: a point may lie on the skin and yet not where "
        "it belongs. Experiment 1 says what the truth says.",
    )
    by = {what: ", ".join(ways) for what, ways in failures.items()}
    every = {what: "by every method" for what, ways in failures.items() if len(ways) == len(variants)}
    return [table, bullets([f"{what} ({ways})" for what, ways in (by | every).items()])]
