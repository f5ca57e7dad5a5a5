"""Landmark files of scans in the explorer: our JSON, in which null says that a point is absent or not wanted."""

from __future__ import annotations

import json
from pathlib import Path

from breastmorph.explorer.picks import Picks
from breastmorph.mesh.similarity import Similarity
from breastmorph.plain import read_object
from breastmorph.scan.landmarks import OF_A_BREAST, SIDES


def landmark_json(picks: Picks, to_file: Similarity) -> bytes:
    """The landmarks in the coordinates of the scan's file."""
    content: dict[str, list[float] | None] = {
        name: to_file.apply(point).tolist() for name, point in picks.landmarks.items()
    }
    gone = [f"{part}_{picks.absent_side}" for part in OF_A_BREAST] if picks.absent_side else []
    content |= {name: None for name in (*gone, *sorted(picks.skipped)) if name not in content}
    return (json.dumps(content, indent=1) + "\n").encode()


def nulls(path: Path) -> set[str]:
    """Names that a file of ours gives as absent."""
    return {name for name, value in read_object(path).items() if value is None}


def declared_absent(path: Path, names: tuple[str, ...]) -> str:
    """The side that a file declares absent: no point of it, and null for its nipple."""
    gone = nulls(path)
    for side in SIDES:
        parts = [f"{part}_{side}" for part in OF_A_BREAST]
        if not any(name in parts for name in names) and parts[0] in gone:
            return side
    return ""
