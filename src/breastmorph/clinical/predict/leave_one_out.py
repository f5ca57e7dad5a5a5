"""Left-out subjects in closed form: what a linear prediction misses on everybody it has not seen, and its best noise.

A prediction from a Gaussian model of N shapes, with independent noise of variance s2 on every known number, is a ridge
regression on the shapes: with K the centred Gram matrix of what is known,

    prediction = mean of the targets + K_x (K + (N - 1) s2 I)^-1 targets .

Its hat matrix H = 11'/N + K (K + (N - 1) s2 I)^-1 gives the residuals of left-out subjects without refitting: those of
the rows B of one subject (a shape and its mirror image) are (I - H_BB)^-1 (I - H)_B targets, exactly.

Thousands of points that err together are much less evidence than as many independent ones. That is why s2 is no
property of the scanner but chosen by how well left-out subjects are predicted, and comes out larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats, Ints

_FLOOR = 1e-9  # of the largest variance: targets that do not vary say nothing


class LeftOut:
    """Residuals of left-out subjects by noise.

    Parameters
    ----------
    gram : (N, N) float
        Inner products of what is known of the shapes, mm squared.
    subjects : (N,) int
        Whose shape it is; a subject is left out with all of her rows.
    """

    def __init__(self, gram: Floats, subjects: Ints) -> None:
        n = len(gram)
        centre = np.eye(n) - 1.0 / n
        self._values, self._vectors = np.linalg.eigh(centre @ gram @ centre)
        self._values = np.maximum(self._values, 0.0)
        self._groups = [np.flatnonzero(subjects == subject) for subject in np.unique(subjects)]
        self.n = n

    def strength(self, noise: float) -> float:
        """Ridge parameter of a noise in mm."""
        return (self.n - 1) * noise**2

    def noises(self, ratios: Sequence[float]) -> Floats:
        """Noises in mm from ratios: noise variance, summed over what is known, to the variance of one shape."""
        return np.sqrt(np.asarray(ratios) * self._values.sum() / (self.n * (self.n - 1)))

    def residual_weights(self, noise: float) -> Floats:
        """A with: residuals of left-out subjects = A @ targets, (N, N)."""
        strength = self.strength(noise)
        shrunk = self._values / (self._values + strength)
        rest = np.eye(self.n) - 1.0 / self.n - (self._vectors * shrunk) @ self._vectors.T
        out = np.empty_like(rest)
        for group in self._groups:
            own = rest[np.ix_(group, group)]
            out[group] = np.linalg.solve(own + 1e-12 * np.eye(len(group)), rest[group])
        return out

    def solve(self, products: Floats, noise: float) -> Floats:
        """Weights of the targets for a new shape, whose centred products with the others are given, (N,)."""
        weights: Floats = self._vectors @ (
            (self._vectors.T @ products) / (self._values + self.strength(noise))
        )
        return weights

    def by_subject(self, rows: Floats) -> Floats:
        """Means over the rows of every subject, (k,)."""
        return np.array([rows[group].mean() for group in self._groups])


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


def choose(
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
