"""Examinations as plain values: a nested record for JSON, a flat row for a table over a cohort."""

from __future__ import annotations

from typing import Any

from breastmorph.clinical.measure.examination import Examination
from breastmorph.clinical.measure.measures import Measure
from breastmorph.plain import plain
from breastmorph.scan.landmarks import SIDES


def as_record(one: Examination) -> dict[str, Any]:
    """The examination for JSON; what is not determinable is null and has a reason."""
    symmetry: dict[str, Any] = {"mean_deviation_mm": None, "reason": one.symmetry_reason}
    if one.symmetry is not None:
        symmetry = {
            "mean_deviation_mm": one.symmetry.deviation,
            "left_mm": one.symmetry.sides["left"],
            "right_mm": one.symmetry.sides["right"],
            "thorax_mm": one.symmetry.thorax,
        }
    volumes = [
        measure_record(volume)
        | ({"uncertainty": one.uncertainties[side]} if side in one.uncertainties else {})
        for side, volume in zip(SIDES, one.volumes, strict=True)
    ]
    return {
        "id": one.id,
        "source": one.source,
        "absent_side": one.absent,
        "distances": [measure_record(distance) for distance in one.distances],
        "volumes": volumes,
        "left_minus_right": [measure_record(difference) for difference in one.asymmetries],
        "ptosis": [
            {
                "side": p.side,
                "nipple_above_lower_pole_mm": plain(p.above_lower_pole),
                "nipple_above_fold_mm": plain(p.above_fold),
                "regnault": p.grade,
                "reason": p.reason,
            }
            for p in one.ptosis
        ],
        "symmetry": symmetry,
        "warnings": list(one.warnings),
    }


def as_row(one: Examination) -> dict[str, str]:
    """The examination as one row of a table; empty where something is not determinable."""
    row = {"id": one.id, "source": one.source, "absent_side": one.absent}
    row |= {_column(m): _cell(m.value) for m in one.measures}
    row |= {f"volume-{side} uncertainty cc": _cell(one.uncertainties.get(side)) for side in SIDES}
    row |= {f"left minus right {_column(m)}": _cell(m.value) for m in one.asymmetries}
    for p in one.ptosis:
        row[f"nipple above lower pole {p.side} mm"] = _cell(p.above_lower_pole)
        row[f"nipple above fold {p.side} mm"] = _cell(p.above_fold)
        row[f"Regnault {p.side}"] = p.grade
    row["mirror deviation mm"] = _cell(one.symmetry.deviation if one.symmetry else None)
    return row


def _column(measure: Measure) -> str:
    kind = "" if measure.kind == "volume" else f" {measure.kind}"
    return f"{measure.name}{kind} {measure.unit}"


def measure_record(measure: Measure) -> dict[str, Any]:
    """One measure for JSON."""
    record = {
        "name": measure.name,
        "kind": measure.kind,
        "value": plain(measure.value),
        "unit": measure.unit,
    }
    return record | ({"reason": measure.reason} if measure.reason else {})


def _cell(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}"
