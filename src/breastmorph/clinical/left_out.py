"""Left-out subjects in closed form: what a prediction misses on them, its best noise, how errors grow at the border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints

_FLOOR = 1e-9  # of the largest variance: targets that do not vary say nothing


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Residuals of left-out subjects by noise.

    Attributes
    ----------
    values, vectors : (N,) and (N, N) float
        Eigenvalues, mm squared, and eigenvectors of the centred inner products of what is known of the shapes.
    groups : tuple of (r,) int
        The rows of every subject, who is left out with all of them.
    weights : (N,) float
        How much every shape counts, 1 on average. Values and vectors are those of shapes times the root of it.
    """

    values: Floats
    vectors: Floats
    groups: tuple[Ints, ...]
    weights: Floats

    @classmethod
    def of(cls, gram: Floats, subjects: Ints, weights: Floats | None = None) -> Self:
        """From inner products (N, N) of what is known of the shapes, and whose shape each is (N,)."""
        w = np.ones(len(gram)) if weights is None else weights / weights.mean()
        centre = np.eye(len(gram)) - w / len(gram)
        root = np.sqrt(w)
        values, vectors = np.linalg.eigh(root[:, None] * (centre @ gram @ centre.T) * root)
        groups = tuple(np.flatnonzero(subjects == subject) for subject in np.unique(subjects))
        return cls(np.maximum(values, 0.0), vectors, groups, w)

    @property
    def n(self) -> int:
        """Number of shapes."""
        return len(self.values)

    def strength(self, noise: float) -> float:
        """Ridge parameter of a noise in mm."""
        return (self.n - 1) * noise**2

    def noises(self, ratios: Sequence[float]) -> Floats:
        """Noises in mm from ratios: noise variance, summed over what is known, to the variance of one shape."""
        found: Floats = np.sqrt(np.asarray(ratios) * self.values.sum() / (self.n * (self.n - 1)))
        return found

    def residual_weights(self, noise: float) -> Floats:
        """A with: residuals of left-out subjects = A @ targets, (N, N)."""
        strength, root = self.strength(noise), np.sqrt(self.weights)
        shrunk = self.values / (self.values + strength)
        rest = np.eye(self.n) - np.outer(root, root) / self.n - (self.vectors * shrunk) @ self.vectors.T
        out = np.empty_like(rest)
        for group in self.groups:
            own = rest[np.ix_(group, group)]
            out[group] = np.linalg.solve(own + 1e-12 * np.eye(len(group)), rest[group])
        found: Floats = out * root / root[:, None]
        return found

    def solve(self, products: Floats, noise: float) -> Floats:
        """Weights of the targets for a new shape, whose centred products with the others are given, (N,)."""
        root = np.sqrt(self.weights)
        scores = (self.vectors.T @ (root * products)) / (self.values + self.strength(noise))
        weights: Floats = root * (self.vectors @ scores)
        return weights

    def usual(self, squared: Floats, freedom: float) -> Floats:
        """Weights (N,) of shapes that were missed by so much (N,): those of Student's distribution, one a subject."""
        by_subject = self.by_subject(squared)
        middle = max(float(np.median(by_subject)), 1e-30)
        found = np.empty(self.n)
        for group, missed in zip(self.groups, by_subject, strict=True):
            found[group] = (freedom + 1.0) / (freedom + missed / middle)
        return found

    def by_subject(self, rows: Floats) -> Floats:
        """Means over the rows of every subject, (k,)."""
        return np.array([rows[group].mean() for group in self.groups])


@dataclass(frozen=True)
class Choice:
    """The noise and the share of the mirror image that predict left-out subjects best.

    Attributes
    ----------
    noise : float
        mm, of every known number as if it were independent of the others.
    mirror_share : float
        What part of the mirror image is taken as it is (0 to 1); the model predicts the rest.
    log_likelihood : float
        Mean over the points of left-out subjects, with a variance of its own for every point.
    best_noise : float
        The noise of the highest likelihood, before the rule of one standard error.
    """

    noise: float
    mirror_share: float
    log_likelihood: float
    best_noise: float


def best_choice(
    left_out: LeftOut,
    targets: Floats,
    mirrors: Floats,
    noises: Floats,
    shares: Sequence[float],
    lost_variance: float = 0.0,
) -> Choice:
    """Choose noise and share by the likelihood of left-out subjects.

    Among the choices that are worse than the best by less than one standard error over the subjects, the one with the
    most noise is taken: it relies least on small differences, which another scanner or registration may not keep.

    Parameters
    ----------
    left_out : LeftOut
    targets, mirrors : (N, t) float
        Numbers to be predicted, mm, and what the mirror image says of them.
    noises : (a,) float
    shares : sequence of float
    lost_variance : float
        Variance that real targets have beyond the given ones, mm squared; nothing tells of it.
    """
    found = []
    for noise in noises:
        weights = left_out.residual_weights(float(noise))
        of_targets, of_mirrors = weights @ targets, weights @ mirrors
        for share in shares:
            # The left-out subject's own mirror image is known: only the rest is predicted.
            squared = (of_targets - share * of_mirrors) ** 2 + lost_variance
            variance = squared.mean(axis=0)
            found.append((float(noise), float(share), squared, variance))
    floor = _FLOOR * max(float(variance.max()) for *_, variance in found) + 1e-300
    scores = np.array([-0.5 * (np.log(2 * np.pi * (v + floor)) + 1.0).mean() for *_, v in found])
    best = int(scores.argmax())
    scale = found[best][3] + floor

    def losses(k: int) -> Floats:
        return left_out.by_subject((found[k][2] / scale).mean(axis=1))

    least = losses(best)
    allowed = []
    for k in range(len(found)):
        worse = losses(k) - least
        error = worse.std(ddof=1) / np.sqrt(len(worse)) if len(worse) > 1 else 0.0
        if worse.mean() <= error:
            allowed.append(k)
    taken = max(allowed, key=lambda k: (found[k][0], scores[k]))
    return Choice(found[taken][0], found[taken][1], float(scores[taken]), found[best][0])


@dataclass(frozen=True)
class BorderSpread:
    """How a prediction's uncertainty is widened by how badly it meets the scan at the border of the missing region.

    Attributes
    ----------
    level, growth : float
        The size of errors relative to their average is exp(level + growth log mismatch), the mismatch in mm.
    limits : tuple of float
        Within which that factor stays.
    """

    level: float
    growth: float
    limits: tuple[float, float]

    @classmethod
    def fit(cls, mismatch: Floats, size: Floats, limits: tuple[float, float]) -> Self:
        """From left-out shapes: their mismatch at the border (N,), mm, and the relative size of their errors (N,).

        The growth is between 0 and 1; errors over the factor have a mean square of 1.
        """
        x, y = np.log(np.maximum(mismatch, 1e-9)), np.log(np.maximum(size, 1e-9))
        x0 = x.mean()
        growth = float(np.clip(((x - x0) @ y) / max(float((x - x0) @ (x - x0)), 1e-12), 0.0, 1.0))
        level = 0.5 * np.log((size**2 * np.exp(-2.0 * growth * (x - x0))).mean())
        return cls(float(level - growth * x0), growth, limits)

    def factor(self, mismatch: float) -> float:
        """By what the uncertainty is multiplied at a mismatch in mm."""
        logarithm = np.array([self.level, self.growth]) @ [1.0, np.log(max(mismatch, 1e-9))]
        return float(np.clip(np.exp(logarithm), *self.limits))
