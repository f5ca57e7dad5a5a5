"""What registrations show of how people differ, and the prior of the warp's scores that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import WarpParameters
from breastmorph.registration.target import normals_at_vertices
from breastmorph.registration.warp import ScorePrior, WarpBasis, landmark_equations, solved
from breastmorph.scan.scan import Landmarks


@dataclass(frozen=True, eq=False)
class AnchorDisplacements:
    """How people differ from the template, seen at its anchors after the rigid stage.

    Attributes
    ----------
    moved : (k, a, 3) float
        Displacements of every person.
    sizes : (k,) float
        Logarithms of the rigid stage's scales.
    mirror : (a,) int, optional
        The anchor at every anchor's mirror image; then every person's mirror image counts as well.
    """

    moved: Floats
    sizes: Floats
    mirror: Ints | None = None


@dataclass(frozen=True, eq=False)
class ScoreEvidence:
    """What registrations show of people's scores in a prior.

    Attributes
    ----------
    scores : (k, q) float
    shown : (k, q, q) float
        Precision with which each person's scan shows them: at the landmarks, and across the skin as it lies on her.
    mirror : (q, q) float, optional
        See :meth:`WarpBasis.mirrored`.
    parameters : WarpParameters
    """

    scores: Floats
    shown: Floats
    mirror: Floats | None
    parameters: WarpParameters

    @classmethod
    def of(
        cls,
        basis: WarpBasis,
        people: AnchorDisplacements,
        vertices: Floats,
        coarse: TriangleMesh,
        ids: Mapping[str, int],
    ) -> ScoreEvidence:
        """Of people whose registrations are known, with the template's vertices, coarse twin and landmarks."""
        marks = Landmarks.of({name: vertices[vertex] for name, vertex in ids.items()})
        at_landmarks, _ = landmark_equations(vertices, basis, ids, marks, 0.0)
        shown = np.empty((len(people.moved), *at_landmarks.shape))
        for person, moved in zip(shown, people.moved, strict=True):
            normals = normals_at_vertices(coarse.vertices + moved, coarse.faces)
            outwards = np.einsum("ai,aiq->aq", normals, basis.at_anchors)
            person[:] = at_landmarks + outwards.T @ outwards / basis.parameters.normal_sd**2
        mirror = None if people.mirror is None else basis.mirrored(people.mirror)
        return cls(basis.scores_of(people.moved, people.sizes), shown, mirror, basis.parameters)

    def fit_prior(self, chosen: Bools) -> ScorePrior:
        """The prior of some of the people (k,); beside them N(0, 1) counts as ``prior_people`` more.

        Mean and covariance of the scores under which these people are likeliest (expectation maximisation). A
        registration shows a person across the skin and at the landmarks only; what it says along the skin was the
        prior's guess. Each round guesses that anew from what goes together with what is shown, and counts as variance
        how unsure the guess is: no person is pulled to the mean for want of evidence.
        """
        people, unit = np.flatnonzero(chosen), np.eye(self.scores.shape[1])
        share = len(people) / (len(people) + self.parameters.prior_people)
        mean, covariance = np.zeros(len(unit)), unit
        if not len(people):
            return ScorePrior(mean, covariance)
        seen = np.einsum("kij,kj->ki", self.shown, self.scores)
        usual = sum(self.shown[i] for i in people) / len(people)
        for _ in range(self.parameters.prior_rounds):
            precision = np.linalg.inv(covariance)
            pull = precision @ mean
            guessed = np.stack([solved(self.shown[i] + precision, seen[i] + pull) for i in people])
            # How unsure they are hardly differs between people; where a single scan shows nothing, others' do.
            unsure = np.linalg.inv(usual + precision)
            average, about = guessed.mean(axis=0), guessed - guessed.mean(axis=0)
            spread = about.T @ about / len(about) + 0.5 * (unsure + unsure.T)
            if self.mirror is not None:
                half = 0.5 * (average - self.mirror @ average)
                spread = 0.5 * (spread + self.mirror @ spread @ self.mirror.T) + np.outer(half, half)
                average = average - half
            mean = share * average
            covariance = (1.0 - share) * unit + share * (spread + (1.0 - share) * np.outer(average, average))
        return ScorePrior(mean, np.asarray(np.linalg.cholesky(covariance), np.float64))
