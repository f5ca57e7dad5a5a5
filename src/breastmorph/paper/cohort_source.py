"""The cohort that a study works on: its scans, landmarks, table and truth, wherever they lie."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from breastmorph.batch.product import Hashes, input_hashes
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import file_hash
from breastmorph.paper.folder import StudyFolder
from breastmorph.scan.check import ScanFiles, find_scans


@dataclass(frozen=True)
class Source:
    """A folder with ``scans/`` and, where they exist, ``landmarks/``, ``cohort.csv`` and ``truth/``.

    Landmark files may also lie beside the scans, and the scans in the folder itself.
    """

    path: Path

    @cached_property
    def scans(self) -> Path:
        """The folder of the meshes."""
        inner = self.path / "scans"
        return inner if inner.is_dir() else self.path

    @cached_property
    def table(self) -> Path | None:
        """What is known of the subjects."""
        path = self.path / "cohort.csv"
        return path if path.is_file() else None

    @cached_property
    def truth(self) -> Path | None:
        """Dense truth, as ``breastmorph phantom`` writes it."""
        path = self.path / "truth"
        return path if (path / "topology.npz").is_file() else None

    def found(self) -> list[ScanFiles]:
        """The scans with their landmark files."""
        if not self.path.is_dir():
            raise FileProblem(
                "there is no such folder", "Check the path of the cohort", self.path, code="study/no-cohort"
            )
        landmarks = self.path / "landmarks"
        return find_scans(self.scans, landmarks if landmarks.is_dir() else None)

    def scan_hashes(self) -> dict[str, Hashes]:
        """Hashes of every scan's files, by scan; none of one that cannot be read, which fails by itself later."""
        hashes: dict[str, Hashes] = {}
        for files in self.found():
            hashes[files.id] = {}
            with suppress(FileProblem):
                hashes[files.id] = input_hashes(files)
        return hashes

    def table_hash(self) -> str:
        """Empty without a table."""
        return file_hash(self.table) if self.table else ""

    def truth_hashes(self) -> Hashes:
        """Hashes of the truth files; none without truth."""
        return {path.name: file_hash(path) for path in sorted(self.truth.glob("*.npz"))} if self.truth else {}


def source_of(study: StudyFolder) -> Source:
    """Where a study's scans lie."""
    own = study.description().get("cohort")
    return Source(Path(own) if own else study.path / "cohort")


def open_cohort(study: StudyFolder, variant: str) -> Cohort:
    """The registered subjects of one variant, with the table where there is one that knows them."""
    folder, table = study.registered(variant), source_of(study).table
    if table is not None:
        try:
            return load_cohort(folder, table)
        except FileProblem:  # a table of other people: the table's part says so
            pass
    return load_cohort(folder)
