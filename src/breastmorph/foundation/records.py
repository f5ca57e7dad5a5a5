"""Records that state the hashes of files beside them: whether they still agree, and what a killed run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import PART_FILES, file_hash


def files_agree(stated: Mapping[Path, str]) -> bool:
    """Whether all files have the hashes that a record states of them; an empty hash states nothing."""
    try:
        return all(file_hash(path) == known for path, known in stated.items() if known)
    except FileProblem:
        return False


def remove_part_files(*folders: Path) -> None:
    """Remove what killed processes left half-written in folders."""
    for folder in folders:
        for left_over in folder.glob(PART_FILES):
            with suppress(OSError):
                left_over.unlink(missing_ok=True)
