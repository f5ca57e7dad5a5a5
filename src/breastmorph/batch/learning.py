"""What a cohort's first pass teaches its second: how these people differ, each subject told by the others.

A prior that pulls everybody to the mean would look good by generalization and be wrong. So it only adds: the directions
in which the others vary become cheap, what they do not show stays as free as before, and nobody's own first pass is in
what her second one is told.
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
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.registration.result import FOLDED, Registration
from breastmorph.registration.warp import Population
from breastmorph.template import Template

ENOUGH = 20  # subjects from whom a cohort can be learnt
_MOST = 400  # subjects that are learnt from; more of them teach nothing new
_REACH = 2000.0  # mm that skin can be moved by; of a damaged file also what is not finite is more
_LARGEST = 20.0  # logarithm of a scale; units differ by a factor of 1,000 at most


@dataclass(frozen=True, eq=False)
class Learnt:
    """Where a first pass brought the anchors of the template.

    Attributes
    ----------
    ids : tuple of str
        The subjects.
    moved : (k, a, 3) float
        Displacements of the coarse twin's vertices after the rigid stage.
    sizes : (k,) float
        Logarithms of that stage's scales.
    mirror : (a,) int, optional
        The anchor at every anchor's mirror image; then everybody's mirror image counts as well.
    made_by : str
        What the first pass was made by; see :attr:`breastmorph.batch.registered_folder.Recipe.first_pass`.
    """

    ids: tuple[str, ...]
    moved: Floats
    sizes: Floats
    mirror: Ints | None = None
    made_by: str = ""

    def population(self, scan_id: str) -> Population:
        """What all but one subject teach; all of them where that one is not among them."""
        chosen = [one != scan_id for one in self.ids]
        others, sizes = self.moved[chosen].astype(float), self.sizes[chosen].astype(float)
        count = len(others)
        if self.mirror is not None:
            others = np.concatenate([others, others[:, self.mirror] * MIRROR])
            sizes = np.concatenate([sizes, sizes])
        return Population(others, sizes, count)

    def to_npz(self) -> bytes:
        """As the content of a file."""
        made = io.BytesIO()
        mirror = np.empty(0, dtype=np.int64) if self.mirror is None else self.mirror
        parts = {
            "ids": np.array(self.ids),
            "moved": self.moved.astype(np.float32),
            "sizes": self.sizes.astype(np.float32),
            "mirror": mirror,
            "made_by": np.array(self.made_by),
        }
        np.savez(made, **parts)  # type: ignore[arg-type]
        return made.getvalue()

    @classmethod
    def from_npz(cls, data: bytes, path: Path | None = None) -> Learnt:
        """From the content of such a file; FileProblem where it is damaged."""
        try:
            with problems_of(path, "learnt"), open_archive(data) as parts:
                ids, moved, mirror, made = (parts[name] for name in ("ids", "moved", "mirror", "made_by"))
                earlier = "sizes" not in parts  # written before there were sizes: to be learnt anew
                sizes = np.zeros(len(moved)) if earlier else parts["sizes"]
                anchors = moved.shape[1] if moved.ndim == 3 else -1
                sound = (
                    ids.dtype.kind == made.dtype.kind == "U"
                    and moved.dtype.kind == "f"
                    and moved.shape == (len(ids), anchors, 3)
                    and len(ids) >= ENOUGH
                    and bool((np.abs(moved) <= _REACH).all())
                    and sizes.dtype.kind == "f"
                    and sizes.shape == (len(ids),)
                    and bool((np.abs(sizes) <= _LARGEST).all())
                    and mirror.dtype.kind == "i"
                    and mirror.shape in ((0,), (anchors,))
                    and bool(((mirror >= 0) & (mirror < anchors)).all())
                )
        except FileProblem as error:
            raise FileProblem.of("unreadable/learnt", path) from error
        if not sound:
            raise FileProblem.of("unreadable/learnt", path)
        known = moved.astype(float), sizes.astype(float), mirror if len(mirror) else None
        return cls(tuple(ids.tolist()), *known, "" if earlier else str(made))


def digest(data: bytes) -> str:
    """How records name what their subject was told; empty for nothing."""
    return hashlib.sha256(data).hexdigest() if data else ""


class Teacher:
    """A template's anchors on its own fine surface: turns registrations into displacements of them."""

    def __init__(self, template: Template) -> None:
        self._template = template

    @cached_property
    def _tie(self) -> tuple[Ints, Floats]:
        found = Surface(self._template.mesh).closest(self._template.coarse.vertices)
        return self._template.mesh.faces[found.faces], found.weights

    def moved(self, vertices: Floats, transform: Similarity) -> Floats:
        """Displacements of the anchors (a, 3) of a registered shape, given the rigid stage's similarity."""
        corners, weights = self._tie
        at_rest, now = (
            (points[corners] * weights[..., None]).sum(axis=1)
            for points in (self._template.mesh.vertices, transform.inverse().apply(vertices))
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
        return Learnt(
            tuple(name for name, _, _ in known),
            np.stack([moved for _, moved, _ in known]),
            np.array([size for _, _, size in known]),
            self._template.coarse_mirror,
            made_by,
        )


def learn_from(registrations: Iterable[Registration], template: Template) -> Learnt | None:
    """What registrations of one template teach; None where fewer than :data:`ENOUGH` are sound."""
    sound = (one for one in registrations if is_sound(one.metrics, one.absent_side))
    return Teacher(template).learnt((one.id, one.vertices, one.transform) for one in sound)


def is_sound(metrics: Mapping[str, float], absent_side: str) -> bool:
    """Whether a first pass is one to learn from: two breasts, nothing folded."""
    return not absent_side and metrics["flipped_percent"] <= FOLDED
