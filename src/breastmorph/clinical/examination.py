"""An examination: all measures of one subject together, as a value, a record for JSON and a row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breastmorph.clinical.measure_table import (
    Measure,
    MeasureTable,
    asymmetries,
    measure_record,
    symmetry_indices,
)
from breastmorph.clinical.ptosis import Ptosis
from breastmorph.clinical.symmetry import Symmetry
from breastmorph.foundation.arrays import Ints
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import Finding, sentences
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import Landmarks


@dataclass(frozen=True, eq=False)
class Examination:
    """One subject's measures.

    Attributes
    ----------
    id : str
    source : str
        "scan", "registered" or "model".
    absent : str
        The side without a breast, or empty.
    distances : tuple of Measure
    others : tuple of Measure
        Heights and areas of both sides, and the girth under the breasts as far as it is seen.
    volumes : tuple of Measure
        Of both sides, cc.
    uncertainties : mapping from side to float
        Of the volumes, cc; empty where there are none.
    ptosis : tuple of Ptosis
    symmetry : Symmetry, optional
    mesh : TriangleMesh, optional
        What the symmetry's map belongs to.
    symmetry_reason : Finding, optional
        Why there is no symmetry.
    warnings : tuple of Finding
    landmarks : Landmarks, optional
        What was measured between, on ``mesh``.
    borders : tuple of (b, 2) int
        Edges of ``mesh`` around what the volumes are measured over.
    """

    id: str
    source: str
    absent: str
    distances: tuple[Measure, ...]
    volumes: tuple[Measure, ...]
    uncertainties: Mapping[str, float]
    ptosis: tuple[Ptosis, ...]
    symmetry: Symmetry | None
    mesh: TriangleMesh | None
    symmetry_reason: Finding | None = None
    warnings: tuple[Finding, ...] = ()
    others: tuple[Measure, ...] = ()
    landmarks: Landmarks | None = None
    borders: tuple[Ints, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Distances, heights, areas and volumes."""
        return self.distances + self.others + self.volumes

    @property
    def mirror_deviation(self) -> Measure:
        """How alike the breasts are in shape, as a measure."""
        whole = self.symmetry.deviation if self.symmetry is not None else float("nan")
        return Measure("mirror deviation", "mean", whole, "mm", self.symmetry_reason)

    @property
    def table(self) -> MeasureTable:
        """All measures and the mirror deviation, to be printed and looked up by name."""
        found = (*self.measures, self.mirror_deviation)
        reasons: dict[str, list[str]] = {}
        for one in found:
            if not one.known:
                reasons.setdefault(str(one.reason), []).append(one.name)
        remarks = [
            f"Not determinable: {', '.join(dict.fromkeys(names))} ({why})" for why, names in reasons.items()
        ]
        absent = f", {self.absent} side absent" if self.absent else ""
        known = tuple(one for one in found if one.known)
        notes = (f"Note: {warning}" for warning in self.warnings)
        return MeasureTable(f"{self.id} ({self.source}{absent})", known, (*remarks, *notes))

    def __getitem__(self, name: str) -> Measure:
        """A measure by its name; see :class:`MeasureTable`."""
        return self.table[name]

    def __repr__(self) -> str:
        return f"Examination({self.id!r}, {self.source}, {len(self.table)} measures)"

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    @property
    def asymmetries(self) -> tuple[Measure, ...]:
        """Left minus right."""
        return asymmetries(self.measures)


def as_record(one: Examination) -> dict[str, Any]:
    """The examination for JSON; what is not determinable is null and has a reason."""
    symmetry: dict[str, Any] = {"mean_deviation_mm": None, "reason": str(one.symmetry_reason or "")}
    if one.symmetry is not None:
        symmetry = {
            "mean_deviation_mm": one.symmetry.deviation,
            "left_mm": one.symmetry.sides["left"],
            "right_mm": one.symmetry.sides["right"],
            "thorax_mm": one.symmetry.thorax,
        }
    return {
        "id": one.id,
        "source": one.source,
        "absent_side": one.absent,
        "units": "mm, cm2 and cc; sd is one standard deviation",
        "distances": [measure_record(distance) for distance in one.distances],
        "others": [measure_record(other) for other in one.others],
        "volumes": [measure_record(volume) for volume in one.volumes],
        "left_minus_right": [measure_record(difference) for difference in one.asymmetries],
        "symmetry_index_percent": [
            {"name": name, "kind": kind, "value": value}
            for (name, kind), value in symmetry_indices(one.measures).items()
        ],
        "ptosis": [
            {
                "side": p.side,
                "nipple_above_lower_pole_mm": plain(p.above_lower_pole),
                "nipple_above_fold_mm": plain(p.above_fold),
                "regnault": p.grade,
                "reason": str(p.reason or ""),
            }
            for p in one.ptosis
        ],
        "symmetry": symmetry,
        "warnings": sentences(one.warnings),
    }


def as_row(one: Examination) -> dict[str, str]:
    """The examination as one row of a table; empty where something is not determinable."""
    row = {"id": one.id, "source": one.source, "absent_side": one.absent}
    row["predicted_side"] = "".join(dict.fromkeys(m.side for m in one.measures if m.predicted and m.side))
    for m in one.measures:
        row[_column(m)] = _cell(m.value)
        row[f"{_column(m)} sd"] = _cell(m.sd)
    for m in one.asymmetries:
        row[f"left minus right {_column(m)}"] = _cell(m.value)
        row[f"left minus right {_column(m)} sd"] = _cell(m.sd)
    for (name, kind), value in symmetry_indices(one.measures).items():
        row[f"symmetry index {name} {kind} percent"] = _cell(value)
    for p in one.ptosis:
        row[f"Regnault {p.side}"] = p.grade
    row["mirror deviation mm"] = _cell(one.symmetry.deviation if one.symmetry else None)
    return row


def _column(measure: Measure) -> str:
    kind = "" if measure.kind == "volume" else f" {measure.kind}"
    return f"{measure.name}{kind} {measure.unit}"


def _cell(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}"
