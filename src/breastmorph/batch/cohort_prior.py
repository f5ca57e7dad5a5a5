"""The prior of a cohort: how these people differ, fitted after a first pass, for each subject from the others.

A prior that pulls every subject to the mean would look good by generalization and be wrong. So it only adds: the
directions in which the others vary become cheap, what they do not show stays as free as before. No subject's own first
pass is in the prior of her second one: the cohort, in the order of its names, falls into a few groups, and the prior of
each is fitted to the rest.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import problems_of
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.registration.parameters import CohortPriorParameters, RegistrationParameters, WarpParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.result import Registration
from breastmorph.registration.target import normals_at_vertices
from breastmorph.registration.warp import ScorePrior, WarpBasis, landmark_equations, solved
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template


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
    def of(cls, prepared: PreparedTemplate, basis: WarpBasis, people: AnchorDisplacements) -> ScoreEvidence:
        """Of people whose registrations are known, in one of the template's priors."""
        vertices, coarse, ids = prepared.fine.mesh.vertices, prepared.coarse.mesh, prepared.fine.landmark_ids
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


_FARTHEST = 100.0  # standard deviations that a score of a sound file can be off by


@dataclass(frozen=True, eq=False)
class CohortPrior:
    """Priors of the smooth start, fitted to a cohort.

    Attributes
    ----------
    ids : tuple of str
        The subjects, in the order in which they fall into groups.
    of_groups : tuple of tuples of ScorePrior
        For each group one prior a basis of the template, fitted to all other groups; at the end those of all together.
    made_by : str
        What the first pass was made by; see :attr:`breastmorph.batch.product.Recipe.first_pass`.
    """

    ids: tuple[str, ...]
    of_groups: tuple[tuple[ScorePrior, ...], ...]
    made_by: str = ""

    def for_scan(self, scan_id: str) -> tuple[ScorePrior, ...]:
        """The priors without a subject's group; those of all subjects where the scan is none of them."""
        group = (
            _groups(len(self.ids), len(self.of_groups) - 1)[self.ids.index(scan_id)]
            if scan_id in self.ids
            else -1
        )
        return self.of_groups[group]

    def to_npz(self) -> bytes:
        """As the content of a file."""
        buffer = io.BytesIO()
        parts = {
            "ids": np.array(self.ids),
            "means": np.array([[prior.mean for prior in group] for group in self.of_groups]),
            "roots": np.array([[prior.root for prior in group] for group in self.of_groups]),
            "made_by": np.array(self.made_by),
        }
        np.savez(buffer, **parts)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_npz(
        cls, data: bytes, path: Path | None = None, parameters: CohortPriorParameters | None = None
    ) -> CohortPrior:
        """From the content of such a file.

        Raises
        ------
        FileProblem
            It is damaged.
        """
        p = parameters or CohortPriorParameters()
        try:
            with problems_of(path, "learnt"), open_archive(data) as parts:
                if "moved" in parts:  # of an earlier version, which kept people: to be fitted anew
                    return cls((), ())
                ids, means, roots, made = (parts[name] for name in ("ids", "means", "roots", "made_by"))
                if not (
                    ids.dtype.kind == made.dtype.kind == "U"
                    and len(ids) >= p.enough
                    and means.dtype.kind == roots.dtype.kind == "f"
                    and means.ndim == 3
                    and len(means) == min(p.groups, len(ids)) + 1
                    and roots.shape == (*means.shape, means.shape[2])
                    and all(bool((np.abs(values) <= _FARTHEST).all()) for values in (means, roots))
                ):
                    raise ValueError("its arrays do not fit together")
        except FileProblem as error:
            raise FileProblem(
                "the cohort prior of the first pass is damaged, so it cannot be used again",
                "Delete it and register again with learn=True",
                path,
                code="unreadable/learnt",
            ) from error
        of_groups = tuple(
            tuple(map(ScorePrior, group_means.astype(float), group_roots.astype(float)))
            for group_means, group_roots in zip(means, roots, strict=True)
        )
        return cls(tuple(ids.tolist()), of_groups, str(made))


def _groups(count: int, groups: int) -> Ints:
    """The group of each of so many subjects; scans of one person have names side by side and fall into one."""
    return np.arange(count) * groups // count


def digest(data: bytes) -> str:
    """How records name the prior of their subject; empty for none."""
    return hashlib.sha256(data).hexdigest() if data else ""


class PriorFitter:
    """Turns registrations of a template into priors of its smooth start."""

    def __init__(self, template: Template, parameters: RegistrationParameters) -> None:
        self._prepared = PreparedTemplate(template, parameters)

    @cached_property
    def _anchors_on_surface(self) -> tuple[Ints, Floats]:
        """Where the anchors lie on the fine surface: corners of the face and weights, (a, 3) each."""
        template = self._prepared.template
        found = Surface(template.mesh).closest(template.coarse.vertices)
        return template.mesh.faces[found.faces], found.weights

    def displacements(self, vertices: Floats, transform: Similarity) -> Floats:
        """Displacements of the anchors (a, 3) of a registered shape, given the rigid stage's similarity."""
        corners, weights = self._anchors_on_surface
        at_rest, now = (
            (points[corners] * weights[..., None]).sum(axis=1)
            for points in (self._prepared.template.mesh.vertices, transform.inverse().apply(vertices))
        )
        found: Floats = now - at_rest
        return found

    def fit(
        self, subjects: Iterable[tuple[str, Floats, Similarity]], made_by: str = ""
    ) -> CohortPrior | None:
        """The priors of subjects (id, vertices, rigid stage); None where they are too few."""
        known = [
            (name, self.displacements(shape, transform), np.log(transform.scale))
            for name, shape, transform in subjects
        ]
        p = self._prepared.parameters.cohort_prior
        if len(known) < p.enough:
            return None
        known.sort(key=lambda subject: subject[0])
        chosen = np.unique(np.linspace(0, len(known) - 1, min(len(known), p.most)).astype(int))
        names, moved, sizes = zip(*(known[i] for i in chosen), strict=True)
        mirror = self._prepared.template.coarse_mirror
        people = AnchorDisplacements(np.stack(moved), np.array(sizes), mirror)
        count = min(p.groups, len(names))
        groups = _groups(len(names), count)
        of_bases = []
        with one_thread():  # sums must not depend on the number of cores
            for basis in self._prepared.bases:
                evidence = ScoreEvidence.of(self._prepared, basis, people)
                left_out = (*range(count), -1)
                of_bases.append([evidence.fit_prior(groups != group) for group in left_out])
        return CohortPrior(names, tuple(zip(*of_bases, strict=True)), made_by)


def fit_cohort_prior(
    registrations: Iterable[Registration], template: Template, parameters: RegistrationParameters
) -> CohortPrior | None:
    """The priors of registrations of one template; None where too few are sound."""
    folded = parameters.acceptance.folded
    sound = (result for result in registrations if is_sound(result.metrics, result.absent_side, folded))
    subjects = ((result.id, result.vertices, result.transform) for result in sound)
    return PriorFitter(template, parameters).fit(subjects)


def is_sound(metrics: Mapping[str, float], absent_side: str, folded: float) -> bool:
    """Whether a first pass counts: two breasts, at most so many per cent of the triangles folded."""
    return not absent_side and metrics["flipped_percent"] <= folded
