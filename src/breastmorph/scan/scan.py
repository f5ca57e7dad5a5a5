"""The scan value: a surface with its landmarks, upright and in millimetres."""

from __future__ import annotations

from dataclasses import dataclass, field

from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmarks import Landmarks


@dataclass(frozen=True, eq=False)
class Scan:
    """A surface and its landmarks in the canonical frame.

    The frame: millimetres, x to the patient's left, y up (cranial), z forward (anterior).

    Attributes
    ----------
    id : str
        The file's stem.
    mesh : TriangleMesh
    landmarks : Landmarks
    to_file : Similarity
        Takes canonical coordinates back to those of the scan's file (its axes and its unit).
    warnings : tuple of str
        What its shape says against it; see docs/checking.md. Every result of the scan repeats them.
    """

    id: str
    mesh: TriangleMesh
    landmarks: Landmarks
    to_file: Similarity = field(default_factory=Similarity)
    warnings: tuple[str, ...] = ()
