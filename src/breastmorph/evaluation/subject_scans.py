"""The raw scans of a cohort's subjects: matched by id, read one at a time; and where registered shapes lie on them."""

from __future__ import annotations

from collections.abc import Sequence

from breastmorph.cohort import Cohort
from breastmorph.mesh.similarity import Similarity
from breastmorph.scan.check import CheckParameters, check_scan
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.scan import Scan


class SubjectScans:
    """Scans of a cohort's subjects.

    Parameters
    ----------
    cohort : Cohort
    found : sequence of ScanFiles
    check : CheckParameters, optional
        How scans are read.
    """

    def __init__(
        self, cohort: Cohort, found: Sequence[ScanFiles], check: CheckParameters | None = None
    ) -> None:
        self._cohort, self._check = cohort, check
        self._files = {files.id: files for files in found}

    def read(self, subject: int) -> Scan | str:
        """A subject's scan, or why there is none."""
        files = self._files.get(self._cohort.ids[subject])
        if files is None:
            return "no scan of this name"
        judged = check_scan(files, self._check, self._cohort.template.as_reference)
        return judged.scan if judged.scan is not None else str(judged.error)


def onto_scan(cohort: Cohort, subject: int, scan: Scan) -> Similarity:
    """From a subject's registered shape to her scan."""
    # Through the file's frame: the scan may have been set upright in another way than at registration.
    return scan.to_file.inverse().after(cohort.to_file[subject])
