"""The table over a registered folder, and who in it is unusual."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import KDTree

from breastmorph.batch.registered_folder import Outcome
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.foundation.files import csv_text, write_file
from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.topology import edge_table
from breastmorph.template import Template

# --------------------------------------------------------------------------------------------------------------------
# Wrong correspondence on the right surface: who differs from what the rest of the cohort predicts
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StretchParameters:
    """Parameters of :func:`unexplained_stretch`.

    Attributes
    ----------
    noise : float
        Relative accuracy of a distance between neighbouring points; differences below it mean nothing.
    smallest_cohort : int
        Fewer subjects predict nothing.
    """

    noise: float = 0.02
    smallest_cohort: int = 8


def unexplained_stretch(
    shapes: Iterable[Floats],
    template: Template,
    absent: Sequence[str],
    parameters: StretchParameters | None = None,
) -> list[dict[str, float]]:
    """How far each subject's point distances are from what all others predict, in per cent.

    For every region the subject's log distances between neighbours of the coarse twin are written as a combination of
    everybody else's (ridge regression, in closed form for all subjects at once); what is left over is the figure.
    Memory grows by some kilobytes a subject, whatever the template.

    Parameters
    ----------
    shapes : iterable of (n, 3) float
        Subjects with the template's topology, in any frame and unit; gone through once.
    template : Template
    absent : sequence of str
        Each subject's side without a breast, or empty; that region is left out for it.

    Returns
    -------
    list of dict
        Per subject the root mean square per region: "left", "right" and "outside" (of both breasts). A region is
        missing where fewer than ``smallest_cohort`` subjects have it.
    """
    parameters = parameters or StretchParameters()
    ends, regions = _neighbours(template)
    lengths = np.array([_log_lengths(shape, ends) for shape in shapes], dtype=np.float32).reshape(
        -1, len(ends)
    )
    found: list[dict[str, float]] = [{} for _ in lengths]
    for region, edges in regions.items():
        there = np.array([side != region for side in absent], dtype=bool)
        if there.sum() < parameters.smallest_cohort or not edges.any():
            continue
        part = lengths[np.ix_(there, edges)].astype(np.float64)
        left_over = _left_over(part - np.median(part, axis=0), parameters.noise)
        for index, value in zip(np.flatnonzero(there), left_over, strict=True):
            found[index][region] = 100.0 * float(value)
    return found


def _left_over(data: Floats, noise: float) -> Floats:
    """Root mean square of each row's residual when it is regressed on all other rows, (k,).

    With K = X X' + s I, the residual of row i is (K^-1 X)_i / (K^-1)_ii; by the matrix inversion lemma that needs
    only the p x p matrix X' X + s I, so the cost does not grow with the square of the cohort.
    """
    ridge = data.shape[1] * noise**2
    gram = data.T @ data
    gram[np.diag_indices_from(gram)] += ridge
    solved = cho_solve(cho_factor(gram, overwrite_a=True), data.T).T
    leverage = (data * solved).sum(axis=1)
    residual = ridge * solved / np.maximum(1.0 - leverage, 1e-12)[:, None]
    return np.asarray(np.sqrt((residual**2).mean(axis=1)))


def _log_lengths(shape: Floats, ends: Ints) -> Floats:
    """Log distances between neighbours against their median, which takes the subject's size out, (e,)."""
    straight = np.linalg.norm(shape[ends[:, 0]] - shape[ends[:, 1]], axis=1)
    logs = np.log(np.maximum(straight, 1e-3 * np.median(straight)))
    return np.asarray(logs - np.median(logs))


def _neighbours(template: Template) -> tuple[Ints, Mapping[str, Bools]]:
    """Pairs of template vertices that are neighbours on the coarse twin, (e, 2), and which region each is in."""
    vertices = template.mesh.vertices
    nearest = KDTree(vertices).query(template.coarse.vertices)[1].astype(np.int64)
    ends = nearest[edge_table(template.coarse.faces).edges]
    ends = ends[ends[:, 0] != ends[:, 1]]
    middle = vertices[ends].mean(axis=1)
    try:
        mask: BreastMask = measure_breasts(template.mesh, template.landmarks).mask(template.landmarks)
    except LandmarkProblem:  # a template without breasts' landmarks: one region
        return ends, {"outside": np.ones(len(ends), bool)}
    breasts = mask.breasts_at(middle)
    return ends, {**breasts, "outside": ~np.any(list(breasts.values()), axis=0)}


# --------------------------------------------------------------------------------------------------------------------
# The summary of a registered folder: one row a scan, its figures, and what is unusual about it in the cohort
# --------------------------------------------------------------------------------------------------------------------

UNUSUAL = 3.5  # robust standard deviations (Iglewicz and Hoaglin, 1993)
SMALLEST_COHORT = 8  # fewer scans say nothing about what is usual
_TO_SD = 1.4826  # median absolute deviation to standard deviation of a normal distribution


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
    says : str
        What an unusual value means, in words.
    look : str
        Where to look then.
    least : float
        Above 0: compared by logarithm, smaller values count as this.
    """

    name: str
    title: str
    bad: Literal["high", "low"]
    floor: float
    says: str
    look: str
    least: float = 0.0

    def badness(self, values: Floats) -> Floats:
        """Robust z-scores towards the bad side, (k,); NaN values stay NaN, all NaN for small cohorts."""
        known = np.isfinite(values)
        if known.sum() < SMALLEST_COHORT:
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
    outcomes: Iterable[Outcome], stretch: Mapping[str, Mapping[str, float]] | None = None
) -> list[SummaryRow]:
    """One row a scan by id, with the figures that are unusual in this cohort.

    Parameters
    ----------
    outcomes : iterable of Outcome
        Gone through once.
    stretch : mapping from id to region to per cent, optional
        From :func:`breastmorph.batch.summary.unexplained_stretch`.
    """
    rows = [_row(outcome, (stretch or {}).get(outcome.id, {})) for outcome in outcomes]
    rows.sort(key=lambda row: row.id)
    flags: list[list[Flag]] = [[] for _ in rows]
    for figure in FIGURES:
        values = np.array([row.figures.get(figure.name, np.nan) for row in rows])
        scores = figure.badness(values)
        for index in np.flatnonzero(scores > UNUSUAL):
            usual = float(np.nanmedian(values))
            text = figure.says.format(value=f"{values[index]:.2g}", usual=f"{usual:.2g}")
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
    write_file(path, _as_csv(rows).encode())
    return rows


def _as_csv(rows: Sequence[SummaryRow]) -> str:
    """The text of ``summary.csv``."""
    columns = ["id", "status", *(figure.name for figure in FIGURES), "seconds", "flags", "message"]
    cells = (
        {
            "id": row.id,
            "status": row.status,
            **{figure.name: _cell(row.figures.get(figure.name)) for figure in FIGURES},
            "seconds": _cell(row.seconds),
            "flags": "; ".join(flag.text for flag in row.flags),
            "message": row.message,
        }
        for row in rows
    )
    return csv_text(columns, cells)


def _cell(value: float | None) -> str:
    """A figure with four digits; empty where it is not known."""
    return "" if value is None else f"{value:.4g}"


def _row(outcome: Outcome, stretch: Mapping[str, float]) -> SummaryRow:
    failed = outcome.status == "failed"
    figures = {
        **outcome.record.get("metrics", {}),
        **{f"stretch_{key}": part for key, part in stretch.items()},
    }
    return SummaryRow(
        outcome.id,
        "failed" if failed else "registered",
        {figure.name: figures[figure.name] for figure in FIGURES if _is_number(figures.get(figure.name))},
        sum(outcome.record.get("seconds", {}).values()) or None,
        outcome.message or "; ".join(outcome.warnings),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
