"""How a cohort's variances would differ with other subjects of the same kind: subjects drawn anew, with replacement.

Everything is read off k x k Gram matrices of the aligned shapes; the alignment is not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.evaluation.experiments.modelled import ModelledCohort
from breastmorph.evaluation.experiments.paired import resamples
from breastmorph.evaluation.experiments.recorded import Recorded, rounded
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.threads import one_thread


@dataclass(frozen=True, eq=False)
class ResampledVariation(Recorded):
    """A cohort's variation in resampled cohorts; the same seed draws the same subjects for every variant.

    Attributes
    ----------
    inside_over_outside : (b,) float
        Variance of a breast vertex over that of another.
    components : (c,) int
    share : (b, c) float
        Of the variance that the first components hold. Subjects drawn twice make it a little too large, in all
        variants alike: only differences between variants are to be read.
    """

    inside_over_outside: Floats
    components: Ints
    share: Floats


def resampled_variation(
    variant: ModelledCohort, components: Ints, times: int, seed: int
) -> ResampledVariation:
    """Draw a cohort's subjects anew many times."""
    breast = variant.breast
    with one_thread():
        whole = variant.folds.gram
        centred = variant.training.shapes[:, breast] - variant.folds.mean[breast]
        flat = centred.reshape(len(centred), -1)
        inside = flat @ flat.T
        drawn = resamples(len(flat), times, seed)
        drawn = drawn[(drawn > 0).sum(axis=1) > 1]  # one subject alone shows no variation
        within, around = (_sums(gram, drawn) for gram in (inside, whole - inside))
        ratio = (within / max(int(breast.sum()), 1)) / (around / max(int((~breast).sum()), 1))
        share = np.array([_shares(whole, counts, components) for counts in drawn])
    return ResampledVariation(rounded(ratio), components, rounded(share))


def _sums(gram: Floats, drawn: Floats) -> Floats:
    """Sums of squares about the mean of every resampled cohort, (b,)."""
    n = drawn.sum(axis=1)
    sums: Floats = drawn @ np.diag(gram) - ((drawn @ gram) * drawn).sum(axis=1) / n
    return sums


def _shares(gram: Floats, counts: Floats, components: Ints) -> Floats:
    # A subject drawn w times is one row scaled by sqrt(w): the same eigenvalues from a smaller matrix.
    there = np.flatnonzero(counts)
    weights = counts[there]
    part = gram[np.ix_(there, there)]
    row = part @ weights / weights.sum()
    centred = part - row - row[:, None] + weights @ row / weights.sum()
    root = np.sqrt(weights)
    values = np.maximum(np.linalg.eigvalsh(root * centred * root[:, None])[::-1], 0.0)
    total = values.sum()
    held: Floats = np.cumsum(values)[np.minimum(components, len(values)) - 1]
    return held / total if total > 0.0 else np.ones(len(components))
