"""Which subjects of a cohort a command takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.cli.options import progress_with
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import BreastMorphError, name_of
from breastmorph.model.building import chosen_rows
from breastmorph.study.cohort_parts import named

_ABSENT = "absent breast"
_NAMED = 12  # subjects named in a message; the rest is counted


def read_cohort(folder: Path, table: Path | None) -> Cohort:
    """The registered subjects of a folder, with a progress bar where they have to be read one by one."""
    with progress_with("Reading", sum(1 for _ in (folder / "registered").glob("*.json"))) as advance:
        return load_cohort(folder, table, on_packed=lambda done, total: advance())


def chosen_subjects(
    cohort: Cohort, where: str | None, table: Path | None, exclude: str | None, with_absent: bool
) -> tuple[Cohort, dict[str, list[str]]]:
    """The subjects that ``--where``, ``--exclude`` and ``--with-absent`` leave, and those left out by reason."""
    keep: Bools = np.ones(len(cohort), bool)
    left_out: dict[str, list[str]] = {}

    def leave(out: Bools, reason: str) -> None:
        new = keep & out
        if new.any():
            left_out[reason] = [cohort.ids[i] for i in np.flatnonzero(new)]
        keep[new] = False

    if exclude:
        names = [name_of(name.strip()) for name in exclude.split(",") if name.strip()]
        unknown = [name for name in names if name not in cohort.ids]
        if unknown:
            raise BreastMorphError(
                f"--exclude names {', '.join(unknown)}, which the folder does not have",
                f"Its subjects are {listed(cohort.ids)}",
            )
        leave(np.isin(cohort.ids, names), "by --exclude")
    if where is not None:
        leave(np.array([not row for row in cohort.table]) & (table is not None), "not in the table")
        leave(~chosen_rows(cohort.table, where), f'by --where "{where}"')
    if not with_absent:
        leave(np.array([bool(side) for side in cohort.absent]), _ABSENT)
    if not keep.any():
        reasons = "; ".join(f"{len(ids)} {reason}" for reason, ids in left_out.items())
        remedy = "Add --with-absent" if _ABSENT in left_out else "Choose more subjects"
        raise BreastMorphError(f"no subject is left ({reasons})", remedy)
    return cohort.chosen(keep), left_out


def listed(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    return f"{len(names)}: {named(names, _NAMED)}"
