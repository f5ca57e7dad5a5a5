"""The summary of a registered folder: one row a scan, its figures, and what is unusual about it in the cohort."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from breastmorph.batch.registered_folder import Outcome
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import csv_text, write_file

_TO_SD = 1.4826  # median absolute deviation to standard deviation of a normal distribution


@dataclass(frozen=True)
class SummaryParameters:
    """What is called unusual in a cohort."""

    unusual: float = 3.5  # robust standard deviations (Iglewicz and Hoaglin, 1993)
    smallest_cohort: int = 8  # in a smaller one nothing is called unusual


@dataclass(frozen=True)
class QualityFigure:
    """A figure of quality and how to read it.

    Attributes
    ----------
    name : str
        Its column.
    title : str
        Its heading, with the unit.
    bad : {"high", "low"}
    floor : float
        The smallest standard deviation that counts, in the figure's unit (of its logarithm where ``least`` is set).
    meaning : str
        Of an unusual value, in words.
    look : str
        Where to look then.
    least : float
        Above 0: compared by logarithm, smaller values count as this.
    """

    name: str
    title: str
    bad: Literal["high", "low"]
    floor: float
    meaning: str
    look: str
    least: float = 0.0

    def badness(self, values: Floats, smallest_cohort: int) -> Floats:
        """Robust z-scores towards the bad side, (k,); NaN values stay NaN, all NaN for small cohorts."""
        known = np.isfinite(values)
        if known.sum() < smallest_cohort:
            return np.full(len(values), np.nan)
        scaled = np.log(np.maximum(values, self.least)) if self.least > 0 else values
        off = (scaled - np.median(scaled[known])) * (1.0 if self.bad == "high" else -1.0)
        spread = _TO_SD * float(np.median(off[known & (off >= 0)]))
        return off / max(spread, self.floor)


FIGURES = (
    QualityFigure(
        "distance_inside", "breast mm", "high", 0.05,
        "the breasts end {value} mm from the scan (usual {usual})", "look for holes, hair or clothing in the scan",
    ),
    QualityFigure(
        "distance_outside", "outside mm", "high", 0.3,
        "the chest around the breasts ends {value} mm from the scan (usual {usual})",
        "look at the shoulders, the arms and the posture",
    ),
    QualityFigure(
        "overlap", "overlap", "low", 0.04,
        "only {value} of the template finds the scan (usual {usual})", "look for missing parts of the scan",
    ),
    QualityFigure(
        "angle_distortion", "angle °", "high", 1.0,
        "triangle angles change by {value} degrees (usual {usual})", "compare the landmarks with the scan",
    ),
    QualityFigure(
        "flipped_percent", "flipped %", "high", 0.02,
        "{value} % of the triangles are folded (usual {usual})", "look at the fold under the breasts",
    ),
    QualityFigure(
        "smallest_area_ratio", "smallest area", "low", 1.3,
        "one triangle shrinks to {value} of its size (usual {usual})",
        "look at the fold under the breasts and at the border", least=1e-4,
    ),
    *(
        QualityFigure(
            f"residual_nipple_{side}", f"nipple {side[0].upper()} mm", "high", 0.3,
            f"the {side} nipple ends {{value}} mm off its landmark (usual {{usual}})",
            f"check the landmark nipple_{side}",
        )
        for side in ("left", "right")
    ),
    *(
        QualityFigure(
            f"stretch_{region}", f"stretch {short} %", "high", 0.2,
            f"{where}: distances between points are {{value}} % from what the other scans predict (usual {{usual}})",
            f"points may sit on the right surface at the wrong place, compare {what} with the scan",
            least=1.0,  # with the floor: nothing below 2 %, the accuracy of such a distance, is ever flagged
        )
        for region, short, where, what in (
            ("left", "L", "left breast", "its landmarks and the rings of the thumbnail"),
            ("right", "R", "right breast", "its landmarks and the rings of the thumbnail"),
            ("outside", "out", "around the breasts", "sternal_notch, xiphoid and the poles"),
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Flag:
    """One unusual figure of one scan.

    Attributes
    ----------
    figure : str
    score : float
        Robust standard deviations on the bad side of the cohort's median.
    text : str
        What is unusual and what to look at.
    """

    figure: str
    score: float
    text: str


@dataclass(frozen=True)
class SummaryRow:
    """One scan of the summary.

    Attributes
    ----------
    id : str
    status : {"registered", "failed"}
    figures : mapping from the names of ``FIGURES`` to float
        Those that are known.
    seconds : float or None
    message : str
        Why it failed, or its warnings.
    flags : tuple of Flag
        The most unusual figure first.
    """

    id: str
    status: Literal["registered", "failed"]
    figures: Mapping[str, float]
    seconds: float | None
    message: str
    flags: tuple[Flag, ...] = ()


def summarise(
    outcomes: Iterable[Outcome],
    stretch: Mapping[str, Mapping[str, float]] | None = None,
    parameters: SummaryParameters | None = None,
) -> list[SummaryRow]:
    """One row a scan by id, with the figures that are unusual in this cohort.

    Parameters
    ----------
    outcomes : iterable of Outcome
        Gone through once.
    stretch : mapping from id to region to per cent, optional
        From :func:`breastmorph.batch.stretch.unexplained_stretch`.
    parameters : SummaryParameters, optional
    """
    p = parameters or SummaryParameters()
    rows = [_row(outcome, (stretch or {}).get(outcome.id, {})) for outcome in outcomes]
    rows.sort(key=lambda row: row.id)
    flags: list[list[Flag]] = [[] for _ in rows]
    for figure in FIGURES:
        values = np.array([row.figures.get(figure.name, np.nan) for row in rows])
        scores = figure.badness(values, p.smallest_cohort)
        for index in np.flatnonzero(scores > p.unusual):
            usual = float(np.nanmedian(values))
            text = figure.meaning.format(value=f"{values[index]:.2g}", usual=f"{usual:.2g}")
            flags[index].append(Flag(figure.name, float(scores[index]), f"{text}; {figure.look}"))
    return [
        replace(row, flags=tuple(sorted(found, key=lambda flag: -flag.score)))
        for row, found in zip(rows, flags, strict=True)
    ]


def write_summary(
    outcomes: Iterable[Outcome], path: Path, stretch: Mapping[str, Mapping[str, float]] | None = None
) -> list[SummaryRow]:
    """Write ``summary.csv``, one row a scan by id, and return the rows; parameters as in :func:`summarise`."""
    rows = summarise(outcomes, stretch)
    columns = ["id", "status", *(figure.name for figure in FIGURES), "seconds", "flags", "message"]
    cells = (
        {
            "id": row.id,
            "status": row.status,
            **{name: f"{value:.4g}" for name, value in row.figures.items()},
            "seconds": "" if row.seconds is None else f"{row.seconds:.4g}",
            "flags": "; ".join(flag.text for flag in row.flags),
            "message": row.message,
        }
        for row in rows
    )
    write_file(path, csv_text(columns, cells).encode())
    return rows


def _row(outcome: Outcome, stretch: Mapping[str, float]) -> SummaryRow:
    figures = {
        **outcome.record.get("metrics", {}),
        **{f"stretch_{key}": part for key, part in stretch.items()},
    }
    found = ((figure.name, figures.get(figure.name)) for figure in FIGURES)
    return SummaryRow(
        outcome.id,
        "failed" if outcome.status == "failed" else "registered",
        {name: value for name, value in found if isinstance(value, (int, float)) and math.isfinite(value)},
        sum(outcome.record.get("seconds", {}).values()) or None,
        outcome.message or "; ".join(outcome.warnings),
    )
