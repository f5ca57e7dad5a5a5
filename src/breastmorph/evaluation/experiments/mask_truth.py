"""Whether masks are better by truth, and whether a measure that prefers them (or not) is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.evaluation.experiments.masks import MaskExperiment
from breastmorph.evaluation.experiments.paired import Comparison, paired
from breastmorph.evaluation.experiments.statement import (
    AGREES,
    CONTRADICTS,
    INDIFFERENT,
    MIXED,
    NO_PREFERENCE,
    NO_TRUTH,
    p_text,
)

_EXPLAINED = 0.01  # difference of explained variation that counts


@dataclass(frozen=True)
class MaskTruth:
    """How two variants compare by truth.

    Attributes
    ----------
    breast, outside : Comparison
        Correspondence error with masks against without.
    explained : ((float, float), (float, float))
        Explained variation with and without masks: breast, outside.
    """

    breast: Comparison
    outside: Comparison
    explained: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def of(cls, result: MaskExperiment) -> MaskTruth | None:
        """Compare, where the truth is known."""
        a, b = result.with_masks.truth, result.without_masks.truth
        if a is None or b is None:
            return None
        errors = [paired(a.correspondence[:, c], b.correspondence[:, c]) for c in (0, 1)]
        return cls(
            errors[0],
            errors[1],
            ((a.explained_breast, b.explained_breast), (a.explained_outside, b.explained_outside)),
        )

    def verdict(self, measure: Comparison) -> str:
        """Whether the variant that a measure prefers (the smaller is better, with masks first) is the better one."""
        if not measure.clear():
            return NO_PREFERENCE
        marks = [-np.sign(one.difference) if one.clear() else 0.0 for one in (self.breast, self.outside)]
        for first, second in self.explained:
            marks.append(np.sign(first - second) if abs(first - second) > _EXPLAINED else 0.0)
        preferred = 1 if measure.difference < 0 else -1
        signs = {preferred * int(mark) for mark in marks if mark}
        if len(signs) != 1:
            return MIXED if signs else INDIFFERENT
        return AGREES if signs == {1} else CONTRADICTS

    def with_explained_outside(self, fields: dict[str, str], prefers_masks: bool) -> dict[str, str]:
        """A verdict by nearness to the true variance, and by whether that variance is the true variation.

        A thorax may vary as much as the true one and yet not as the true one does.
        """
        first, second = self.explained[1]
        text = f"{fields['truth']}; explained variation outside {first:.2f} with masks, {second:.2f} without"
        by_truth = fields["by_truth"]
        if abs(first - second) > _EXPLAINED:
            also = AGREES if (first > second) == prefers_masks else CONTRADICTS
            by_truth = by_truth if by_truth == also else MIXED
        return {"by_truth": by_truth, "truth": text}

    def text(self) -> str:
        """The figures in words."""
        parts = []
        for name, error, (first, second) in zip(
            ("breast", "outside"), (self.breast, self.outside), self.explained, strict=True
        ):
            parts.append(
                f"{name}: correspondence error {error.first:.1f} mm with masks, {error.second:.1f} without "
                f"({p_text(error.p)}), explained variation {first:.2f} and {second:.2f}"
            )
        return "; ".join(parts)


def judged(truth: MaskTruth | None, measure: Comparison, more: str = "") -> dict[str, str]:
    """The fields of a statement whose measure is an error: is the variant with the smaller one the better one?"""
    if truth is None:
        return {"by_truth": NO_TRUTH, "truth": ""}
    text = truth.text() + (f"; {more}" if more else "")
    return {"by_truth": truth.verdict(measure), "truth": text}


def prefers(measure: Comparison, masks: bool) -> bool | None:
    """Whether a measure prefers masks; None where it sees no difference."""
    return masks if measure.clear() else None


def nearer(
    with_masks: float, without: float, true: float | None, prefers_masks: bool | None, name: str, number: str
) -> dict[str, str]:
    """By truth a figure is not good when large or small, but when it is that of the true shapes."""
    if true is None:
        return {"by_truth": NO_TRUTH, "truth": ""}
    masksnearer = abs(with_masks - true) < abs(without - true)
    word = "with" if masksnearer else "without"
    texts = [number.format(value) for value in (true, with_masks, without)]
    agrees = AGREES if masksnearer == prefers_masks else CONTRADICTS
    return {
        "by_truth": NO_PREFERENCE if prefers_masks is None else agrees,
        "truth": f"{name} of the true shapes {texts[0]}, with masks {texts[1]}, without {texts[2]}: "
        f"{word} masks is nearer",
    }
