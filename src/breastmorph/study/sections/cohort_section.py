"""The cohort, its check and its registrations."""

from __future__ import annotations

from typing import Any

from breastmorph.report.page import Block, Cell, Column, Section, Table, Text
from breastmorph.study.cohort_table import PAPER, PAPER_COUNTS, PAPER_SUBJECTS, missing_rows
from breastmorph.study.results import StudyResults
from breastmorph.study.sections.shown import mean_sd

_SHOWN = 12  # scans with remarks that are named


def cohort_section(results: StudyResults) -> Section:
    """Who is in the study."""
    blocks: list[Block] = [_described(results)]
    blocks.append(_table_1(results))
    blocks += _check(results)
    blocks += _registrations(results)
    return Section("The cohort", tuple(blocks))


def _described(results: StudyResults) -> Text:
    phantom = results.parameters.phantom
    if phantom is not None:
        return Text(
            (
                f"{phantom} synthetic adult torsos, drawn with seed {results.parameters.seed} from ranges of age, size "
                "and breast volume like those of the paper's table 1, and scanned by a simulated scanner from three "
                "views, with holes and noise. Nobody's data are in this study. Where every point of the skin belongs "
                "is known, so registrations can be judged by truth.",
            )
        )
    scans = results.run.result("scans").get("files", {})
    return Text((f"{len(scans)} scans from the folder given with --cohort; their hashes are at the end.",))


def _table_1(results: StudyResults) -> Block:
    found = results.run.result("table")
    scans = len(results.run.result("scans").get("files", {}))
    if not found:
        why = results.why_not("table")
        return Text((f"Age, body mass index, volumes and operations are not shown. {why}",))
    rows: list[tuple[Cell, ...]] = [("scans", str(scans), str(PAPER_SUBJECTS))]
    for name, paper in PAPER.items():
        ours = found["figures"].get(name)
        rows.append((paper.title, _spread(ours), _spread(vars(paper))))
    for name, (title, count) in PAPER_COUNTS.items():
        ours = found["counts"].get(name)
        rows.append(
            (title, f"{ours['yes']} of {ours['known']}" if ours else None, f"{count} of {PAPER_SUBJECTS}")
        )
    columns = ("", Column("this cohort", number=True), Column("paper's cohort", number=True))
    dash = "A dash: not in cohort.csv." if any(None in row for row in rows) else ""
    return Table(
        "The cohort beside the paper's (table 1): mean ± standard deviation (range)",
        columns,
        tuple(rows),
        f"{dash} {missing_rows(found)}".strip(),
    )


def _spread(figure: dict[str, Any] | None) -> str | None:
    if not figure:
        return None
    digits = 1 if figure["mean"] < 100 else 0
    return (
        f"{figure['mean']:.{digits}f} ± {figure['sd']:.{digits}f} "
        f"({figure['low']:.{digits}f} to {figure['high']:.{digits}f})"
    )


def _check(results: StudyResults) -> list[Block]:
    found = results.run.result("check")
    if not found:
        return [Text((f"The check of the scans is missing. {results.why_not('check')}",))]
    counts = found["counts"]
    blocks: list[Block] = [
        Text(
            (
                "Checked before any computing: "
                + ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
                + ".",
            )
        )
    ]
    remarks = [
        (scan_id, one["verdict"], "; ".join(one["remarks"]))
        for scan_id, one in found["scans"].items()
        if one["remarks"]
    ]
    if remarks:
        more = len(remarks) - _SHOWN
        note = f"And {more} more; all are in parts/check.json." if more > 0 else ""
        blocks.append(
            Table("Scans with remarks", ("scan", "verdict", "remarks"), tuple(remarks[:_SHOWN]), note)
        )
    return blocks


def _registrations(results: StudyResults) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    failures: dict[str, list[str]] = {}  # ways of registering, by what went wrong
    for variant in results.parameters.variants:
        found = results.run.result(f"register-{variant.name}")
        if not found:
            rows.append((variant.title, results.why_not(f"register-{variant.name}"), *[None] * 4))
            continue
        metrics = found["metrics"]
        rows.append(
            (
                variant.title,
                str(len(found["subjects"])),
                *(
                    _metric(metrics, name, digits)
                    for name, digits in (
                        ("distance_inside", 2),
                        ("distance_outside", 2),
                        ("angle_distortion", 2),
                        ("flipped_percent", 3),
                    )
                ),
            )
        )
        for scan_id, why in found["failed"].items():
            failures.setdefault(f"{scan_id} could not be registered: {why}", []).append(variant.title)
    table = Table(
        "Registrations: mean ± standard deviation over the scans",
        (
            "method",
            "scans",
            Column("template to scan, breast", "mm", number=True),
            Column("template to scan, outside", "mm", number=True),
            Column("angle distortion", "°", number=True),
            Column("flipped triangles", "%", number=True),
        ),
        tuple(rows),
        "Template to scan: mean distance at the end of the registration over points whose skin faces the scan (breast: "
        "mask above 0.2). Experiment 1 measures against the raw scan, over all points that it covers, and so gets a "
        "little more. Small distances do not make a registration right: a point may lie on the skin and yet not where "
        "it belongs. Experiment 1 says what the truth says.",
    )
    ways = len(results.parameters.variants)
    lines = [f"{what} ({_by(titles, ways)})" for what, titles in failures.items()]
    return [table, Text(tuple(lines), bullets=True)] if lines else [table]


def _by(titles: list[str], ways: int) -> str:
    return "by every method" if len(titles) == ways else ", ".join(titles)


def _metric(metrics: dict[str, list[Any]], name: str, digits: int) -> str:
    return mean_sd([value for value in metrics.get(name, []) if value is not None], digits)
