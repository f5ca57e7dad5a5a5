"""What a cohort's first pass teaches its second: how these people differ, each subject told by the others.

A prior that pulls everybody to the mean would look good by generalization and be wrong. So it only adds: the directions
in which the others vary become cheap, what they do not show stays as free as before. Nobody's own first pass is in what
her second one is told: the cohort, in the order of its names, falls into a few groups, and each is told by the rest.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import open_archive, problems_of
from breastmorph.foundation.machine import one_thread
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.result import FOLDED, Registration
from breastmorph.registration.warp import Lesson, Population, WarpBasis
from breastmorph.template import Template

ENOUGH = 20  # subjects from whom a cohort can be learnt
_MOST = 400  # subjects that are learnt from; more of them teach nothing new
GROUPS = 8  # each is told by the others
_FARTHEST = (
    100.0  # standard deviations that a score can be off by; of a damaged file also what is not finite is more
)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a first pass taught.

    Attributes
    ----------
    ids : tuple of str
        The subjects, in the order in which they fall into groups.
    lessons : tuple of tuples of Lesson
        Of each group: what all others teach about the template's priors; and at the end what all together teach.
    made_by : str
        What the first pass was made by; see :attr:`breastmorph.batch.registered_folder.Recipe.first_pass`.
    """

    ids: tuple[str, ...]
    lessons: tuple[tuple[Lesson, ...], ...]
    made_by: str = ""

    def for_scan(self, scan_id: str) -> tuple[Lesson, ...]:
        """What those teach who are not in a subject's group; all of them where she is none of them."""
        group = _groups(len(self.ids))[self.ids.index(scan_id)] if scan_id in self.ids else -1
        return self.lessons[group]

    def to_npz(self) -> bytes:
        """As the content of a file."""
        made = io.BytesIO()
        parts = {
            "ids": np.array(self.ids),
            "means": np.array([[one.mean for one in group] for group in self.lessons]),
            "roots": np.array([[one.root for one in group] for group in self.lessons]),
            "made_by": np.array(self.made_by),
        }
        np.savez(made, **parts)  # type: ignore[arg-type]
        return made.getvalue()

    @classmethod
    def from_npz(cls, data: bytes, path: Path | None = None) -> Learnt:
        """From the content of such a file; FileProblem where it is damaged."""
        try:
            with problems_of(path, "learnt"), open_archive(data) as parts:
                if "moved" in parts:  # of an earlier version, which kept people: to be learnt anew
                    return cls((), ())
                ids, means, roots, made = (parts[name] for name in ("ids", "means", "roots", "made_by"))
                sound = (
                    ids.dtype.kind == made.dtype.kind == "U"
                    and len(ids) >= ENOUGH
                    and means.dtype.kind == roots.dtype.kind == "f"
                    and means.ndim == 3
                    and len(means) == _groups(len(ids))[-1] + 2
                    and roots.shape == (*means.shape, means.shape[2])
                    and all(bool((np.abs(values) <= _FARTHEST).all()) for values in (means, roots))
                )
        except FileProblem as error:
            raise FileProblem.of("unreadable/learnt", path) from error
        if not sound:
            raise FileProblem.of("unreadable/learnt", path)
        lessons = tuple(
            tuple(
                Lesson(mean.astype(float), root.astype(float)) for mean, root in zip(*of_group, strict=True)
            )
            for of_group in zip(means, roots, strict=True)
        )
        return cls(tuple(ids.tolist()), lessons, str(made))


def _groups(count: int) -> Ints:
    """The group of each of so many subjects; scans of one person have names side by side and fall into one."""
    return np.arange(count) * GROUPS // count


def digest(data: bytes) -> str:
    """How records name what their subject was told; empty for nothing."""
    return hashlib.sha256(data).hexdigest() if data else ""


class Teacher:
    """Turns registrations of a template into what they teach about the priors of its smooth start."""

    def __init__(self, template: Template, parameters: RegistrationParameters) -> None:
        self._prepared = PreparedTemplate(template, parameters)

    @cached_property
    def _tie(self) -> tuple[Ints, Floats]:
        """Where the anchors lie on the fine surface."""
        template = self._prepared.template
        found = Surface(template.mesh).closest(template.coarse.vertices)
        return template.mesh.faces[found.faces], found.weights

    def moved(self, vertices: Floats, transform: Similarity) -> Floats:
        """Displacements of the anchors (a, 3) of a registered shape, given the rigid stage's similarity."""
        corners, weights = self._tie
        at_rest, now = (
            (points[corners] * weights[..., None]).sum(axis=1)
            for points in (self._prepared.template.mesh.vertices, transform.inverse().apply(vertices))
        )
        found: Floats = now - at_rest
        return found

    def learnt(self, subjects: Iterable[tuple[str, Floats, Similarity]], made_by: str = "") -> Learnt | None:
        """What subjects (id, vertices, rigid stage) teach; None where they are too few."""
        known = sorted(
            ((name, self.moved(shape, lay), np.log(lay.scale)) for name, shape, lay in subjects),
            key=lambda one: one[0],
        )
        if len(known) < ENOUGH:
            return None
        known = [
            known[i] for i in np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST)).astype(int))
        ]
        people = Population(
            np.stack([moved for _, moved, _ in known]),
            np.array([size for _, _, size in known]),
            self._prepared.template.coarse_mirror,
        )
        groups = _groups(len(known))
        with one_thread():  # sums must not depend on the number of cores
            about = [self._taught(basis, people, groups) for basis in self._prepared.bases]
        return Learnt(tuple(name for name, _, _ in known), tuple(zip(*about, strict=True)), made_by)

    def _taught(self, basis: WarpBasis, people: Population, groups: Ints) -> list[Lesson]:
        """What people teach about a prior: all but each group, and all."""
        evidence = self._prepared.evidence(basis, people)
        return [evidence.lesson(groups != one) for one in (*range(groups[-1] + 1), -1)]


def learn_from(
    registrations: Iterable[Registration], template: Template, parameters: RegistrationParameters
) -> Learnt | None:
    """What registrations of one template teach; None where fewer than :data:`ENOUGH` are sound."""
    sound = (one for one in registrations if is_sound(one.metrics, one.absent_side))
    return Teacher(template, parameters).learnt((one.id, one.vertices, one.transform) for one in sound)


def is_sound(metrics: Mapping[str, float], absent_side: str) -> bool:
    """Whether a first pass is one to learn from: two breasts, nothing folded."""
    return not absent_side and metrics["flipped_percent"] <= FOLDED
