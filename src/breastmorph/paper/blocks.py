"""Pieces that all pages of studies have: sections, figures or why there is none, statements, numbers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.foundation.errors import FileProblem
from breastmorph.paper.export import write_archive
from breastmorph.paper.significance import BOOTSTRAP, RANK_SUM, RELEVANT, SIGNED_RANKS
from breastmorph.paper.statements import NO, SMALL, YES, Statement
from breastmorph.paper.summary import StudyResults
from breastmorph.report.document import Block, Figure, Page, Section, Table, Text, Verdict
from breastmorph.report.page.writing import write_page

_VERDICTS = {YES: Verdict.HOLDS, NO: Verdict.FAILS, SMALL: Verdict.SMALL}
_TESTS = {SIGNED_RANKS: "S", RANK_SUM: "R", BOOTSTRAP: "B"}
HARD = "\N{NO-BREAK SPACE}"


def section(title: str, *blocks: Block | str | None, appendix: bool = False) -> Section:
    """A section: texts that follow each other are paragraphs of one block, and what is None is left out."""
    found: list[Block] = []
    there = [block for block in blocks if block is not None]
    for are_texts, group in groupby(there, lambda block: isinstance(block, str)):
        together = list(group)
        found += (
            [Text(tuple(map(str, together)))]
            if are_texts
            else [b for b in together if not isinstance(b, str)]
        )
    return Section(title, tuple(found), appendix)


def bullets(lines: Sequence[str]) -> Text | None:
    """Points of a list; None where there are none."""
    return Text(tuple(lines), bullets=True) if lines else None


def figure(results: StudyResults, part: str, name: str, caption: str) -> Block:
    """A figure of the study, or why there is none."""
    why = results.why_not(part)
    if why:
        return Text((f"There is no figure here. {why}",))
    try:
        return Figure.load(results.run.study.figure(name), caption)
    except FileProblem:
        why = f"The figure {name} is not in the study's folder any more; run `breastmorph paper` again."
        return Text((why,))


def statement_table(statements: Sequence[Statement], caption: str) -> Table:
    """The paper's statements beside ours."""
    tests = dict.fromkeys(one.comparison.test for one in statements if one.comparison is not None)
    asked = any(one.by_truth for one in statements)
    rows = []
    for one in statements:
        verdict = _VERDICTS.get(one.holds, Verdict.UNTESTABLE)
        cells = (one.text, one.paper, one.measured, verdict, one.effect_text or None, _test_text(one))
        rows.append((*cells, one.by_truth or None) if asked else cells)
    columns = ("statement", "paper", "here", "verdict", "effect (95 % interval)", "test")
    note = (
        f"The verdict follows the effect: what differs by more than chance but by less than {100 * RELEVANT:.0f} % is "
        "too small to matter. Effect: difference with its 95 % confidence interval, as a share of what it is compared "
        "with, and in standard deviations (d). Tests with the number of subjects or samples. "
        + "; ".join(f"{_TESTS[test]}: {test}" for test in tests)
        + "."
    )
    return Table(caption, (*columns, "by truth") if asked else columns, tuple(rows), note if tests else "")


def _test_text(one: Statement) -> str | None:
    """A test in short: its p-value, its letter and over how many."""
    found = one.comparison
    if found is None or not found.p_text:
        return None
    return f"{found.p_text.replace(' ', HARD)} ({_TESTS[found.test]},{HARD}{found.n})"


def mean_sd(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    """Mean and standard deviation over what is known; empty where nothing is."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return ""
    if len(known) == 1:
        return f"{known[0]:.{digits}f}"
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"


def write_with_archive(
    path: Path, page: Page, texts: dict[str, str], title: str, *, with_files: bool
) -> Path:
    """Write a page, and beside it the archive of its figures and tables that it links to; returns the page.

    Parameters
    ----------
    path : Path
    page : Page
    texts : mapping from name to text
        Further files of the archive.
    title : str
        Of the link.
    with_files : bool
        Single files of figures are offered too: they lie beside the page.
    """
    archive = path.with_name(f"{path.stem}-figures.zip")
    write_archive(archive, page, texts)
    blocks = page.blocks if with_files else tuple(map(_without_files, page.blocks))
    write_page(path, replace(page, blocks=blocks, downloads=((title, archive.name),)))
    return path


def _without_files(block: Any) -> Any:
    if isinstance(block, Section):
        return replace(block, blocks=tuple(map(_without_files, block.blocks)))
    return replace(block, file=None) if isinstance(block, Figure) else block
