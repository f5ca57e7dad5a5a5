"""A statement of the paper beside what was measured: does it hold, by which test, and does the truth agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breastmorph.paper.significance import Comparison

YES, NO, SMALL, NOT_TESTABLE = "yes", "no", "too small", "not testable"
AGREES, CONTRADICTS, MIXED = "agrees", "contradicts", "mixed"
INDIFFERENT, NO_PREFERENCE, NO_TRUTH = "no difference", "no preference", "not known"
FEW_SUBJECTS = 20  # below it a cohort is too small for conclusions


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes
    ----------
    experiment : int
        1 to 4.
    text : str
        What is claimed.
    paper : str
        The paper's words or numbers for it.
    measured : str
        Ours.
    holds : {"yes", "no", "too small", "not testable"}
        "too small": so it is, by more than chance, but the difference is too small to matter.
    comparison : Comparison, optional
        The difference that the claim is about, with its test; None for a single figure.
    unit : str
        Of the difference.
    by_truth : {"agrees", "contradicts", "mixed", "no difference", "no preference", "not known", ""}
        Whether the variant that this measure prefers is also the better one by truth. "contradicts" means that the
        measure rewards what is wrong; "mixed", better by one figure of truth and worse by another; "no difference",
        truth sees none; "no preference", the measure itself sees none. Empty where the question does not arise.
    truth : str
        The figures behind ``by_truth``, or why there are none.
    preset : str
        Of the registration; empty where it does not matter.
    """

    experiment: int
    text: str
    paper: str
    measured: str
    holds: str
    comparison: Comparison | None = None
    unit: str = "mm"
    by_truth: str = ""
    truth: str = ""
    preset: str = ""

    @property
    def effect_text(self) -> str:
        """The effect with its interval, as a share of what it is compared with, and in standard deviations."""
        return self.comparison.effect_text(self.unit) if self.comparison is not None else ""


def verdict(holds: bool) -> str:
    """Yes or no."""
    return YES if holds else NO


def verdict_of(comparison: Comparison, sign: int, also: bool = True) -> str:
    """Whether the first is larger (``sign`` 1) or smaller (-1), by more than chance and by enough to matter."""
    if not (comparison.clear() and sign * comparison.difference > 0 and also):
        return NO
    return YES if comparison.matters() else SMALL


def not_testable(experiment: int, claims: Sequence[tuple[str, str]], reason: str) -> tuple[Statement, ...]:
    """Claims with the paper's words for them, none of which the data allow to test."""
    measured = f"not possible: {reason}"
    return tuple(Statement(experiment, text, paper, measured, NOT_TESTABLE) for text, paper in claims)
