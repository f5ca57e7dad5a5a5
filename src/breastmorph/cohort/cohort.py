"""Registered subjects in correspondence, with flat memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template


@dataclass(frozen=True, eq=False)
class Cohort:
    """Subjects with the template's topology.

    Attributes
    ----------
    ids : tuple of str
    template : Template
    packed : (s, n, 3) float32
        Shapes in mm, each in the upright frame of its own scan (that of :class:`breastmorph.scan.scan.Scan`);
        usually mapped from a file. Read them with :meth:`shape`, :meth:`shapes` or :meth:`array`.
    rows : (k,) int
        The row of every subject in ``packed``.
    to_file : tuple of Similarity
        From a subject's upright frame to that of its scan's file.
    absent : tuple of str
        The side without a breast, or empty.
    table : tuple of mappings
        The row of every subject in the cohort's table, as text; empty without a table.
    landmarks : tuple of Landmarks
        As annotated on every scan, in its upright frame; empty where unknown.
    """

    ids: tuple[str, ...]
    template: Template
    packed: NDArray[np.float32]
    rows: Ints
    to_file: tuple[Similarity, ...]
    absent: tuple[str, ...]
    table: tuple[Mapping[str, str], ...]
    landmarks: tuple[Landmarks, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        absent = sum(map(bool, self.absent))
        without = f", {absent} with an absent breast" if absent else ""
        return f"Cohort({len(self)} subjects{without}, {self.template.mesh.n_vertices:,} vertices)"

    def shape(self, index: int) -> Floats:
        """One subject, (n, 3) float, mm, upright."""
        return np.array(self.packed[self.rows[index]], dtype=np.float64)

    def shapes(self) -> Iterator[Floats]:
        """The subjects one after the other."""
        return (self.shape(index) for index in range(len(self)))

    def array(self) -> Floats:
        """All subjects at once, (k, n, 3) float; for cohorts that fit into memory."""
        return np.array(self.packed[self.rows], dtype=np.float64)

    def chosen(self, keep: Bools | Ints | Sequence[int]) -> Self:
        """The cohort of some subjects only, by truth values or by indices."""
        wanted = np.asarray(keep)
        if not wanted.size:
            wanted = wanted.astype(np.int64)  # an empty list has no type of its own
        index = np.arange(len(self))[wanted]

        def of(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[i] for i in index)

        return replace(
            self,
            ids=of(self.ids),
            rows=self.rows[index],
            to_file=of(self.to_file),
            absent=of(self.absent),
            table=of(self.table),
            landmarks=of(self.landmarks) if self.landmarks else (),
        )

    def fingerprint(self) -> str:
        """SHA-256 of the shapes, whatever their order and names: the same cohort, the same fingerprint."""
        digests = sorted(hashlib.sha256(self.packed[row].tobytes()).hexdigest() for row in self.rows)
        return hashlib.sha256("".join(digests).encode()).hexdigest()

    @classmethod
    def of(cls, shapes: Floats, template: Template, ids: Sequence[str] | None = None) -> Self:
        """A cohort from arrays, (k, n, 3), without files."""
        k = len(shapes)
        return cls(
            tuple(ids) if ids is not None else tuple(f"{i:03d}" for i in range(k)),
            template,
            np.asarray(shapes, dtype=np.float32),
            np.arange(k),
            (Similarity(),) * k,
            ("",) * k,
            ({},) * k,
        )
