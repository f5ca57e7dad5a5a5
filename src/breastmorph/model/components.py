"""Principal components of a cohort by its Gram matrix (subjects x subjects), a block of vertices at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats, Ints

# The deviations (rows, b, 3) of all rows of a data matrix at b vertices.
Deviations = Callable[[Ints], Floats]

_BLOCK_BYTES = 128 * 1024**2  # of deviations at a time
_NOTHING = 1e-10  # of the largest variance: rounding, not shape
_MANY = 400  # rows above which only the wanted eigenvectors are computed


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components.

    Attributes
    ----------
    basis : (3n, q) float32
        Orthonormal columns.
    variances : (q,) float
        Falling.
    scores : tuple of (rows, q) float
        Coefficients of the rows of every group.
    group : (q,) int
        The group that every component belongs to.
    total : float
        Variance of all components, also of those left away.
    """

    basis: NDArray[np.float32]
    variances: Floats
    scores: tuple[Floats, ...]
    group: Ints
    total: float


def principal_components(
    groups: Sequence[tuple[int, Deviations]],
    vertices: Ints,
    divisor: float,
    components: int | None = None,
    variance: float | None = None,
) -> Components:
    """Principal components of data that come in mutually orthogonal groups of rows.

    Parameters
    ----------
    groups : sequence of (number of rows, deviations)
        Usually one. Groups whose rows are orthogonal to each other (as symmetric and antisymmetric parts are)
        have components of their own.
    vertices : (n,) int
        The vertices that the components describe.
    divisor : float
        Of the sums of squares; k - 1 for k subjects.
    components : int, optional
        At most so many.
    variance : float, optional
        As many as hold this share of the total variance.
    """
    if variance is not None and not 0.0 < variance <= 1.0:
        raise BreastMorphError(f"a share of variance lies between 0 and 1, not at {variance:g}")
    if components is not None and components < 1:
        raise BreastMorphError(f"a model of {components} components does not exist", "Ask for 1 or more")
    groups = [(rows, _read_once(rows, deviations, vertices)) for rows, deviations in groups]
    grams = [_gram(rows, deviations, vertices) for rows, deviations in groups]
    total = float(sum(np.trace(gram) for gram in grams))
    if total <= 0.0:
        raise BreastMorphError("all shapes are the same", "A model needs shapes that differ")
    found = [_eigen(gram, None if variance is not None else components) for gram in grams]
    squares = np.concatenate([values for values, _ in found])
    group = np.repeat(np.arange(len(found)), [len(values) for values, _ in found])
    within = np.concatenate([np.arange(len(values)) for values, _ in found])
    order = np.argsort(-squares, kind="stable")
    order = order[squares[order] > _NOTHING * squares.max()]
    if variance is not None:
        share = np.cumsum(squares[order]) / total
        order = order[: int(np.searchsorted(share, variance - 1e-9)) + 1]
    if components is not None:
        order = order[:components]
    lengths = np.sqrt(squares[order])
    scores, basis = [], np.zeros((3 * len(vertices), len(order)), dtype=np.float32)
    for g, ((rows, deviations), (_, vectors)) in enumerate(zip(groups, found, strict=True)):
        mine = np.flatnonzero(group[order] == g)
        chosen = vectors[:, within[order[mine]]]
        score = np.zeros((rows, len(order)))
        score[:, mine] = chosen * lengths[mine]
        scores.append(score)
        weights = chosen / lengths[mine]
        columns = slice(None) if len(groups) == 1 else mine
        for start, ids in _blocks(rows, vertices):
            basis[3 * start : 3 * (start + len(ids)), columns] = _flat(deviations(ids)).T @ weights
    return Components(basis, squares[order] / divisor, tuple(scores), group[order], total / divisor)


def _read_once(rows: int, deviations: Deviations, vertices: Ints) -> Deviations:
    """The deviations kept in memory where they are one block; they are needed twice."""
    if len(_blocks(rows, vertices)) > 1:
        return deviations
    kept = deviations(vertices)
    return lambda ids: kept


def _gram(rows: int, deviations: Deviations, vertices: Ints) -> Floats:
    gram = np.zeros((rows, rows))
    for _, ids in _blocks(rows, vertices):
        flat = _flat(deviations(ids))
        gram += flat @ flat.T
    return gram


def _eigen(gram: Floats, components: int | None) -> tuple[Floats, Floats]:
    """Eigenvalues, falling, and eigenvectors as columns."""
    from scipy.linalg import eigh

    last = len(gram) - 1
    few = None
    if components is not None and last > _MANY and components < last:
        few = (last - components + 1, last)
    values, vectors = eigh(gram, subset_by_index=few)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _blocks(rows: int, vertices: Ints) -> list[tuple[int, Ints]]:
    """Starts and vertices of blocks."""
    size = max(_BLOCK_BYTES // (24 * rows), 64)
    return [(start, vertices[start : start + size]) for start in range(0, len(vertices), size)]


def _flat(deviations: Floats) -> Floats:
    return deviations.reshape(len(deviations), -1)
