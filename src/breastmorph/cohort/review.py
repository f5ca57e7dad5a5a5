"""Review of a cohort: copies of each other, mirror images, shapes unlike all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.cohort.cohort import Cohort
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import linked
from breastmorph.mesh.triangle_mesh import MIRROR

SAME = 0.05  # mm, root mean square: left by rounding and another pose; two scans of a person differ by more


@dataclass(frozen=True)
class ReviewParameters:
    """Parameters of :func:`review_cohort`."""

    sites: int = 64  # vertices looked at
    unlike: float = 2.5  # times the usual distance from the template


@dataclass(frozen=True)
class CohortReview:
    """Subjects that a user should look at.

    Attributes
    ----------
    copies : tuple of tuples of str
        Ids of subjects with the same shape, whatever their pose and size.
    mirrored : tuple of str
        Subjects that fit the template better as their mirror image.
    unlike : tuple of str
        Subjects much farther from the template than the others.
    """

    copies: tuple[tuple[str, ...], ...]
    mirrored: tuple[str, ...]
    unlike: tuple[str, ...]

    @property
    def n_copies(self) -> int:
        """How many subjects are there once too often."""
        return sum(len(ids) - 1 for ids in self.copies)

    def warnings(self) -> list[Finding]:
        """What was found, one by one."""
        found = [
            warning(
                "copies",
                "the same shape in {ids}: leave it in once, or the model counts this person {times} times",
                ids=ids,
                times=len(ids),
            )
            for ids in self.copies
        ]
        if self.mirrored:
            found.append(
                warning(
                    "mirrored",
                    "mirrored: {ids}; check the sides of the landmarks and register again",
                    ids=self.mirrored,
                )
            )
        if self.unlike:
            found.append(
                warning(
                    "unlike-others",
                    "unlike all others: {ids}; look at the registration, or leave out",
                    ids=self.unlike,
                )
            )
        return found


def review_cohort(cohort: Cohort, parameters: ReviewParameters | None = None) -> CohortReview:
    """Look for copies, mirror images and shapes unlike all others."""
    p = parameters or ReviewParameters()
    aligned, distances, mirrored = _align_to_template(cohort, p.sites)
    group = _group_copies(aligned)
    together = [np.flatnonzero(group == g) for g in range(group.max(initial=-1) + 1)]
    usual = float(np.median(distances)) if len(distances) else 0.0
    unlike = np.flatnonzero((distances > p.unlike * usual) & (distances > SAME))
    return CohortReview(
        tuple(tuple(cohort.ids[i] for i in members) for members in together if len(members) > 1),
        tuple(cohort.ids[i] for i in np.flatnonzero(mirrored)),
        tuple(cohort.ids[i] for i in unlike if not mirrored[i]),
    )


def copy_groups(cohort: Cohort) -> Ints:
    """A number per subject, (k,), the same for copies of one shape."""
    return _group_copies(_align_to_template(cohort, ReviewParameters().sites)[0])


def without_copies(cohort: Cohort) -> Cohort:
    """The cohort with every shape once."""
    first = np.unique(copy_groups(cohort), return_index=True)[1]
    return cohort if len(first) == len(cohort) else cohort.chosen(np.sort(first))


def _align_to_template(cohort: Cohort, n_sites: int) -> tuple[Floats, Floats, Bools]:
    """Subjects aligned to the template at the sites (k, s, 3), their distances in mm, whether they are mirrored."""
    template = cohort.template.mesh.vertices
    sites = np.unique(np.linspace(0, len(template) - 1, n_sites).astype(np.int64))
    target = template[sites]
    aligned = np.array(cohort.packed[np.ix_(cohort.rows, sites)], dtype=np.float64)
    mirrored = np.zeros(len(aligned), dtype=bool)
    for i, points in enumerate(aligned):
        # A shape is scaled by its own size, so that copies in other units coincide exactly.
        centred = points - points.mean(axis=0)
        aligned[i] = Similarity.fit(centred, target).apply(centred)
        flipped = centred * MIRROR
        image = Similarity.fit(flipped, target).apply(flipped)
        mirrored[i] = np.linalg.norm(image - target) < np.linalg.norm(aligned[i] - target)
    return aligned, np.sqrt(((aligned - target) ** 2).sum(axis=2).mean(axis=1)), mirrored


def _group_copies(aligned: Floats) -> Ints:
    """Groups of subjects whose sites agree, (k,)."""
    return linked(aligned.reshape(len(aligned), 3 * aligned.shape[1]), SAME * np.sqrt(aligned.shape[1]))
