"""What a check finds in a scan, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from breastmorph.errors import BreastMorphError
from breastmorph.scan.scan import Scan

Level = Literal["note", "repair", "warning", "refusal"]
Verdict = Literal["usable", "repaired", "refused"]


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes
    ----------
    code : str
        Stable name for machines, for example "non-finite-vertices".
    message : str
        What was found, and what was done about it.
    level : {"note", "repair", "warning", "refusal"}
        A warning tells of a scan that can be used and may yet be wrong.
    remedy : str
        What the user can do; warnings and refusals need one.
    """

    code: str
    message: str
    level: Level = "note"
    remedy: str = ""


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
