"""Pieces that all sections have: a figure or why there is none, numbers beside each other, statements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breastmorph.errors import FileProblem
from breastmorph.evaluation.experiments.paired import BOOTSTRAP, RANK_SUM, SIGNED_RANKS
from breastmorph.evaluation.experiments.statement import NO, YES, Statement
from breastmorph.report.page import Block, Figure, Table, Text, Verdict
from breastmorph.study.results import StudyResults

_VERDICTS = {YES: Verdict.HOLDS, NO: Verdict.FAILS}
_TESTS = {SIGNED_RANKS: "S", RANK_SUM: "R", BOOTSTRAP: "B"}


def figure(results: StudyResults, part: str, name: str, caption: str) -> Block:
    """A figure of the study, or why there is none."""
    why = results.why_not(part)
    if why:
        return Text((f"There is no figure here. {why}",))
    try:
        return Figure.load(results.run.study.figure(name), caption)
    except FileProblem:
        return Text(
            (f"The figure {name} is not in the study's folder any more; run `breastmorph paper` again.",)
        )


def statement_table(statements: Sequence[Statement], caption: str) -> Table:
    """The paper's statements beside ours."""
    used = {one.test: _TESTS[one.test] for one in statements if one.test in _TESTS}
    note = "; ".join(f"{letter}: {test}" for test, letter in used.items())
    rows = tuple(
        (
            one.text,
            one.paper,
            one.measured,
            _VERDICTS.get(one.holds, Verdict.UNTESTABLE),
            _test_text(one),
            one.by_truth or None,
        )
        for one in statements
    )
    columns = ("statement", "paper", "here", "verdict", "test", "by truth")
    return Table(
        caption, columns, rows, f"Tests with the number of subjects or samples. {note}." if note else ""
    )


def _test_text(one: Statement) -> str | None:
    """A test in short: its p-value, its letter and over how many."""
    if not one.p_text:
        return None
    letter = _TESTS.get(one.test, one.test)
    hard = "\N{NO-BREAK SPACE}"
    return f"{one.p_text.replace(' ', hard)} ({letter},{hard}{one.n})"


def mean_sd(values: Sequence[float] | np.ndarray, digits: int = 2) -> str:
    """Mean and standard deviation over what is known; empty where nothing is."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return ""
    if len(known) == 1:
        return f"{known[0]:.{digits}f}"
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"
