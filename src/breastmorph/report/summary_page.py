"""``summary.html``: all registrations of a folder on one page, to be sorted, filtered and looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.stretch import unexplained_stretch
from breastmorph.batch.summary import FIGURES, SummaryRow, write_summary
from breastmorph.cohort import load_cohort
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import write_file
from breastmorph.report.page.writing import document, page_asset
from breastmorph.report.registration_pictures import SIZE, thumbnail_place

_SHOWN = 0.75  # of a thumbnail's size: its pixels are fine enough for sharp screens


def write_summaries(outcomes: Iterable[Outcome], out: Path) -> list[SummaryRow]:
    """Write ``summary.csv`` and ``summary.html`` of a registered folder; returns the rows.

    Parameters
    ----------
    outcomes : iterable of Outcome
        Of all scans of the folder, also those that an earlier run registered.
    out : Path
        The output folder of the registration. Its cohort file is brought up to date on the way.
    """
    try:
        cohort = load_cohort(out)
    except BreastMorphError:  # nothing registered yet, or not readable: the figures of the records are left
        stretch = {}
    else:
        found = unexplained_stretch(cohort.shapes(), cohort.template, cohort.absent)
        stretch = dict(zip(cohort.ids, found, strict=True))
    rows = write_summary(outcomes, out / "summary.csv", stretch)
    thumbnails = {place.name for place in (out / "thumbnails").glob("*.png")}
    page = summary_html(rows, f"Registrations in {out.resolve().name}", thumbnails)
    write_file(out / "summary.html", page.encode("utf-8", "replace"))
    return rows


def summary_html(rows: Sequence[SummaryRow], title: str, thumbnails: set[str]) -> str:
    """The page as text.

    Parameters
    ----------
    rows : sequence of SummaryRow
    title : str
    thumbnails : set of str
        File names that exist.
    """
    flagged = sum(bool(row.flags) for row in rows)
    failed = sum(row.status == "failed" for row in rows)
    choices = (("all", len(rows)), ("flagged", flagged), ("failed", failed))
    heads = [
        *(("scan", "text"), ("status", "text"), ("flags", "number")),
        *((figure.title, "number") for figure in FIGURES),
        ("seconds", "number"),
    ]
    return document(
        "summary.html.j2",
        title,
        styles=[page_asset("summary.css")],
        scripts=[page_asset("summary.js")],
        images="'self' file: data:",
        choices=choices,
        heads=heads,
        size=[round(_SHOWN * side) for side in SIZE],
        rows=[_row(row, thumbnails) for row in rows],
    )


def _row(row: SummaryRow, thumbnails: set[str]) -> tuple[SummaryRow, str, str, str, list[tuple[str, bool]]]:
    """The row, its picture's address, its state, its worst flag, and its figures: each a text, and if it is odd."""
    place = thumbnail_place(row.id)
    has_picture = row.status != "failed" and place.rpartition("/")[2] in thumbnails
    state = row.status if row.status == "failed" else "flagged" if row.flags else "fine"
    worst = max((flag.score for flag in row.flags), default=0.0)
    unusual = {flag.figure for flag in row.flags}
    figures = [(_short(row.figures.get(figure.name)), figure.name in unusual) for figure in FIGURES]
    return (
        row,
        quote(place) if has_picture else "",
        state,
        f"{worst:.3f}",
        [*figures, (_short(row.seconds), False)],
    )


def _short(value: float | None) -> str:
    """Three digits, but no more than three decimals."""
    return "" if value is None else f"{round(value, 3):.3g}"
