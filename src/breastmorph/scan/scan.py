"""The scan value, what a check finds in it, and the files that it is read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from breastmorph.foundation.errors import BreastMorphError, Finding
from breastmorph.foundation.showing import Shown, doubted
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmarks import Landmarks

# --------------------------------------------------------------------------------------------------------------------
# The scan value: a surface with its landmarks, upright and in millimetres
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scan(Shown):
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
    warnings : tuple of Finding
        What its shape says against it; see docs/checking.md. Every result of the scan repeats them.
    """

    id: str
    mesh: TriangleMesh
    landmarks: Landmarks
    to_file: Similarity = field(default_factory=Similarity)
    warnings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        absent = "".join(f", {side} side absent" for side in self.landmarks.absent_sides)
        doubts = doubted(self.warnings)
        return f"Scan({self.id!r}, {self.mesh.n_vertices:,} vertices, {len(self.landmarks)} landmarks{absent}{doubts})"


# --------------------------------------------------------------------------------------------------------------------
# What a check finds in a scan, and the verdict that follows
# --------------------------------------------------------------------------------------------------------------------

Verdict = Literal["usable", "repaired", "refused"]
Note = Callable[[Finding], None]  # is told every finding
Facts = Mapping[str, float | int | str]


@dataclass(frozen=True, eq=False)
class Check:
    """The judgement of one scan.

    Attributes
    ----------
    id : str
    findings : tuple of Finding
    facts : mapping
        Figures of the scan: vertices, faces, mean edge in mm, unit, frame, absent side ...
    outcome : Scan or BreastMorphError
        The scan, repaired where needed, or why it was refused.
    """

    id: str
    findings: tuple[Finding, ...]
    facts: Facts
    outcome: Scan | BreastMorphError

    def __repr__(self) -> str:
        return f"Check({self.id!r}, {self.verdict}, {len(self.findings)} findings)"

    @property
    def scan(self) -> Scan | None:
        """Ready for use; None when refused."""
        return self.outcome if isinstance(self.outcome, Scan) else None

    @property
    def error(self) -> BreastMorphError | None:
        """Why it was refused, or None."""
        return None if isinstance(self.outcome, Scan) else self.outcome

    def accepted(self) -> Scan:
        """The scan; raises why it was refused."""
        if isinstance(self.outcome, BreastMorphError):
            raise self.outcome
        return self.outcome

    @property
    def verdict(self) -> Verdict:
        """Usable as it is, usable after repair, or refused."""
        if self.scan is None:
            return "refused"
        return "repaired" if any(finding.level == "repair" for finding in self.findings) else "usable"
