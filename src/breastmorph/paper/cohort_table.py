"""The cohort's table as figures of all subjects together, beside those of the paper's table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.cohort.reading import read_table
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.phrases import short_list
from breastmorph.model.building import as_number


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation and range of the paper's cohort."""

    title: str
    mean: float
    sd: float
    low: float
    high: float


# Table 1 of the paper, by our column.
PAPER = {
    "age": Spread("age, years", 40.78, 14.30, 18.0, 83.0),
    "bmi": Spread("body mass index, kg/m²", 23.66, 3.57, 16.9, 38.3),
    "volume_left": Spread("left breast volume, cc", 477.0, 243.0, 71.0, 1259.0),
    "volume_right": Spread("right breast volume, cc", 481.0, 240.0, 80.0, 1609.0),
    "volume_difference": Spread("difference of the volumes, cc", 80.0, 81.0, 0.3, 367.0),
}
PAPER_COUNTS = {"ptosis": ("with ptosis", 62), "operated": ("operated", 72)}
PAPER_SUBJECTS = 110


def summarised(path: Path, ids: Sequence[str]) -> dict[str, Any]:
    """Figures of the table's rows that belong to scans.

    Returns
    -------
    dict
        ``rows`` (how many scans have one), ``without_row`` (ids of the others), ``columns``, ``figures`` (by column: n,
        mean, sd, low, high) and ``counts`` (by column: yes, known).
    """
    table = read_table(path)
    rows = [table[scan_id] for scan_id in ids if scan_id in table]
    columns = [name for name in next(iter(table.values()), {}) if name and name != "id"]
    values = {name: np.array([as_number(row.get(name) or "") for row in rows]) for name in columns}
    if {"volume_left", "volume_right"} <= set(values):
        values["volume_difference"] = np.abs(values["volume_left"] - values["volume_right"])
    figures = {name: _figure(values[name]) for name in PAPER if name in values}
    return {
        "rows": len(rows),
        "without_row": [scan_id for scan_id in ids if scan_id not in table],
        "columns": columns,
        "figures": {name: figure for name, figure in figures.items() if figure},
        "counts": _counts(values),
    }


def missing_rows(found: Mapping[str, Any]) -> str:
    """Which scans the table does not know, as a sentence; empty when it knows all."""
    lacking = found.get("without_row", ())
    if not lacking:
        return ""
    return (
        f"cohort.csv has no row for {len(lacking)} of {len(lacking) + found['rows']} scans ({short_list(lacking)}): "
        "what it says is of the others only."
    )


def _figure(values: Floats) -> dict[str, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return {}
    return {
        "n": len(known),
        "mean": float(known.mean()),
        "sd": float(known.std(ddof=1)) if len(known) > 1 else 0.0,
        "low": float(known.min()),
        "high": float(known.max()),
    }


def _counts(values: Mapping[str, Floats]) -> dict[str, dict[str, int]]:
    found = {}
    if {"ptosis_left", "ptosis_right"} <= set(values):
        grade = np.fmax(values["ptosis_left"], values["ptosis_right"])
        found["ptosis"] = {"yes": int((grade > 0).sum()), "known": int(np.isfinite(grade).sum())}
    if "operated" in values:
        operated = values["operated"]
        known = np.isfinite(operated)
        if known.any():
            found["operated"] = {"yes": int((operated[known] > 0).sum()), "known": int(known.sum())}
    return found
