"""Figures over repeated random draws of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints


def over_draws(curves: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean and spread (standard deviation) of curves (c,) over draws; as long as the shortest of them."""
    fewest = min(len(curve) for curve in curves)
    values = np.stack([curve[:fewest] for curve in curves])
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(fewest)
    return values.mean(axis=0), spread


def of_subjects(subjects: int, draws: Iterable[tuple[Ints, Floats]]) -> Floats:
    """Mean of every subject over the draws it is in, (subjects,); NaN where it is in none.

    Each draw has the places of its subjects (t,) and their values (t,).
    """
    total, times = np.zeros(subjects), np.zeros(subjects)
    for places, values in draws:
        total[places] += values
        times[places] += 1
    return np.where(times > 0, total / np.maximum(times, 1), np.nan)
