"""What a check finds in a scan, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breastmorph.errors import BreastMorphError
from breastmorph.scan.scan import Scan

Level = Literal["note", "repair", "refusal"]
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
    level : {"note", "repair", "refusal"}
    remedy : str
        What the user can do; only refusals need one.
    """

    code: str
    message: str
    level: Level = "note"
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class Check:
    """The judgement of one scan.

    Attributes
    ----------
    id : str
    findings : tuple of Finding
    facts : mapping
        Figures of the scan: vertices, faces, mean edge in mm, unit, frame, absent side ...
    scan : Scan or None
        Ready for use, repaired where needed; None when refused.
    error : BreastMorphError or None
        Why it was refused.
    """

    id: str
    findings: tuple[Finding, ...]
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
    scan: Scan | None = None
    error: BreastMorphError | None = None

    @property
    def verdict(self) -> Verdict:
        """Usable as it is, usable after repair, or refused."""
        if self.scan is None:
            return "refused"
        return "repaired" if any(finding.level == "repair" for finding in self.findings) else "usable"
