"""A statement of the paper beside what was measured: does it hold, by which test, and does the truth agree?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.evaluation.experiments.paired import Comparison
from breastmorph.evaluation.experiments.recorded import Recorded

YES, NO, NOT_TESTABLE = "yes", "no", "not testable"
AGREES, CONTRADICTS, MIXED = "agrees", "contradicts", "mixed"
INDIFFERENT, NO_PREFERENCE, NO_TRUTH = "no difference", "no preference", "not known"
FEW_SUBJECTS = 20  # below it a cohort is too small for conclusions
NO_TEST = "one figure, no test"


@dataclass(frozen=True)
class Statement(Recorded):
    """One statement.

    Attributes
    ----------
    experiment : int
        1 to 4.
    preset : str
        Of the registration; empty where it does not matter.
    text : str
        What is claimed.
    paper : str
        The paper's words or numbers for it.
    measured : str
        Ours.
    holds : {"yes", "no", "not testable"}
    criterion : str
        What counts as yes.
    effect : float
        Size of what the claim is about, in ``unit``; NaN where there is none.
    unit : str
    low, high : float
        95 % interval of the effect; NaN where none is computed.
    p : float
        Two-sided; NaN without a test.
    test : str
    n : int
        Subjects or samples behind the test.
    by_truth : {"agrees", "contradicts", "mixed", "no difference", "no preference", "not known", ""}
        Whether the variant that this measure prefers is also the better one by truth. "contradicts" means that the
        measure rewards what is wrong; "mixed", better by one figure of truth and worse by another; "no difference",
        truth sees none; "no preference", the measure itself sees none. Empty where the question does not arise.
    truth : str
        The figures behind ``by_truth``, or why there are none.
    """

    experiment: int
    preset: str
    text: str
    paper: str
    measured: str
    holds: str
    criterion: str
    effect: float = float("nan")
    unit: str = "mm"
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")
    test: str = NO_TEST
    n: int = 0
    by_truth: str = ""
    truth: str = ""

    @property
    def p_text(self) -> str:
        """The p-value for a table."""
        return p_text(self.p)


def verdict(holds: bool) -> str:
    """Yes or no."""
    return YES if holds else NO


def tested(comparison: Comparison) -> dict[str, Any]:
    """The fields of a statement that a test fills."""
    return {
        "effect": comparison.difference,
        "low": comparison.low,
        "high": comparison.high,
        "p": comparison.p,
        "test": comparison.test,
        "n": comparison.n,
    }


def p_text(p: float) -> str:
    """A p-value as people read it."""
    if not np.isfinite(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def plural(count: int, noun: str) -> str:
    """A number with its noun: "1 component", "2 components"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def not_testable(experiment: int, text: str, paper: str, reason: str, preset: str = "") -> Statement:
    """A statement that the data do not allow to test."""
    return Statement(experiment, preset, text, paper, f"not possible: {reason}", NOT_TESTABLE, "", test="")
