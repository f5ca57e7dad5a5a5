"""What speaks against subjects of a cohort: copies of each other, mirror images, shapes unlike all others.

A few dozen vertices spread over the torso tell enough, so that this costs next to nothing in a large cohort too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from breastmorph.cohort.cohort import Cohort
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR, Bools, Floats, Ints

_SITES = 64  # vertices looked at
_SAME = 0.05  # mm, root mean square: left by rounding and another pose; two scans of a person differ by more
_UNLIKE = 2.5  # times the usual distance from the template


@dataclass(frozen=True)
class Doubts:
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

    def warnings(self) -> list[str]:
        """The doubts in words."""
        said = [
            f"the same shape in {', '.join(ids)}: leave it in once, or the model counts this person "
            f"{len(ids)} times"
            for ids in self.copies
        ]
        if self.mirrored:
            said.append(
                f"mirrored: {', '.join(self.mirrored)}; check the sides of the landmarks and register again"
            )
        if self.unlike:
            said.append(
                f"unlike all others: {', '.join(self.unlike)}; look at the registration, or leave out with --exclude"
            )
        return said


def doubts(cohort: Cohort) -> Doubts:
    """Look for copies, mirror images and shapes unlike all others."""
    laid, distances, mirrored = _on_template(cohort)
    group = _alike(laid)
    together = [np.flatnonzero(group == g) for g in range(group.max(initial=-1) + 1)]
    usual = float(np.median(distances)) if len(distances) else 0.0
    unlike = np.flatnonzero((distances > _UNLIKE * usual) & (distances > _SAME))
    return Doubts(
        tuple(tuple(cohort.ids[i] for i in members) for members in together if len(members) > 1),
        tuple(cohort.ids[i] for i in np.flatnonzero(mirrored)),
        tuple(cohort.ids[i] for i in unlike if not mirrored[i]),
    )


def copy_groups(cohort: Cohort) -> Ints:
    """A number per subject, (k,), the same for copies of one shape."""
    return _alike(_on_template(cohort)[0])


def without_copies(cohort: Cohort) -> Cohort:
    """The cohort with every shape once."""
    first = np.unique(copy_groups(cohort), return_index=True)[1]
    return cohort if len(first) == len(cohort) else cohort.chosen(np.sort(first))


def _on_template(cohort: Cohort) -> tuple[Floats, Floats, Bools]:
    """Subjects laid on the template at the sites (k, s, 3), their distances in mm, whether they are mirrored."""
    template = cohort.template.mesh.vertices
    sites = np.unique(np.linspace(0, len(template) - 1, _SITES).astype(np.int64))
    target = template[sites]
    laid = np.array(cohort.packed[np.ix_(cohort.rows, sites)], dtype=np.float64)
    mirrored = np.zeros(len(laid), dtype=bool)
    for i, points in enumerate(laid):
        # A shape is scaled by its own size, so that copies in other units coincide exactly.
        centred = points - points.mean(axis=0)
        laid[i] = Similarity.fit(centred, target).apply(centred)
        flipped = centred * MIRROR
        image = Similarity.fit(flipped, target).apply(flipped)
        mirrored[i] = np.linalg.norm(image - target) < np.linalg.norm(laid[i] - target)
    return laid, np.sqrt(((laid - target) ** 2).sum(axis=2).mean(axis=1)), mirrored


def _alike(laid: Floats) -> Ints:
    """Groups of subjects whose sites agree, (k,)."""
    return alike(laid.reshape(len(laid), 3 * laid.shape[1]), laid.shape[1])


def alike(points: Floats, vertices: int) -> Ints:
    """Groups of rows that are copies of one shape, (k,).

    Parameters
    ----------
    points : (k, d) float
        Coordinates of shapes, or their coefficients in an orthonormal basis, mm.
    vertices : int
        Of the shapes.
    """
    if not len(points):  # nobody is left, of whom there would be no tree
        return np.zeros(0, np.int64)
    pairs = cKDTree(points).query_pairs(_SAME * np.sqrt(vertices), output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
    groups: Ints = connected_components(links, directed=False)[1]
    return groups
