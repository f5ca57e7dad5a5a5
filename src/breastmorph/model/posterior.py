"""Conditioning a Gaussian on noisy observations."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats

_ROUNDING = 1e-7  # relative, of the 32-bit floats that models are stored in


def condition(rows: Floats, differences: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Standard normal coefficients c after observing ``rows @ c = differences`` with noise.

    Parameters
    ----------
    rows : (k, q) float
    differences : (k,) float
    noise : (k,) float
        Variances, above 0; those below the rounding of ``rows`` count as that.

    Returns
    -------
    mean : (q,) float
        C rows' W differences, where W = diag(1 / noise) and C = (I + rows' W rows)^-1.
    half : (q, q) float
        C = half @ half.T.

    Notes
    -----
    Of the weighted system only the triangular factor is needed, whose singular values are accurate where those of
    rows' W rows drown in rounding: with little noise and few observations.
    """
    q = rows.shape[1]
    if not len(rows):
        return np.zeros(q), np.eye(q)
    # Points that contradict each other by a rounding error must not outweigh everything else.
    rounding = (_ROUNDING * float(np.abs(rows).max(initial=0.0))) ** 2
    system = np.column_stack([rows, differences]) / np.sqrt(np.maximum(noise, rounding))[:, None]
    triangle = np.asarray(np.linalg.qr(system, mode="r"))[:q]
    left, singular, vectors = np.linalg.svd(triangle[:, :q])
    strengths, seen = np.zeros(q), np.zeros(q)
    strengths[: len(singular)] = singular
    seen[: len(singular)] = left.T[: len(singular)] @ triangle[:, q]
    mean = vectors.T @ (strengths / (1.0 + strengths**2) * seen)
    return mean, (vectors / np.sqrt(1.0 + strengths**2)[:, None]).T
