"""One row type for measures wherever they appear, tables of such rows, and left against right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from breastmorph.clinical.distances import PAIRS, STRAIGHT
from breastmorph.clinical.feature_requests import same_name
from breastmorph.foundation.arrays import templates
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import PYTHON, Audience, Finding
from breastmorph.scan.scan import SIDES

SURE = 1.96  # standard deviations: a change beyond is called one; of unchanged people 5 % are

_HEADS = ("measure", "", "value", "±", "unit", "side")
_TABLE = """<table><caption>{{ shown.title }}</caption>
<tr>{% for name in heads %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</table>{% for line in shown.remarks %}<p>{{ line }}</p>{% endfor %}"""


@dataclass(frozen=True)
class Measure:
    """One row of a table of measures: measured, predicted, changed by an edit or compared between visits.

    Attributes
    ----------
    name : str
    kind : str
        "tape" or "straight"; "volume", "height", "area" or "mean" of what is no distance; empty where the name says
        it.
    value : float
        NaN where it cannot be determined. Of an edit the value after it, of a comparison the change.
    unit : str
        "mm", "cc" or "cm2"; empty for a column of a cohort's table.
    reason : Finding, optional
        Why it cannot be determined; None otherwise.
    sd : float
        Standard deviation of ``value``; NaN where it is not known.
    source : str
        Where that comes from: "landmarks", "hidden skin", "border", "wall", "surface", "model".
    predicted : bool
        Whether it is of a breast that is not there but predicted.
    held : bool
        Whether an edit had to keep it.
    beside : mapping from str to float
        Other values of the measure: of a prediction "other side" and "mirrored"; of an edit "before", "requested" and
        "deviations"; of a comparison "before" and "after".
    """

    name: str
    kind: str
    value: float
    unit: str = "mm"
    reason: Finding | None = None
    sd: float = math.nan
    source: str = ""
    predicted: bool = False
    held: bool = False
    beside: Mapping[str, float] = field(default_factory=dict, hash=False)

    @classmethod
    def compared(
        cls,
        name: str,
        kind: str,
        unit: str,
        before: float,
        after: float,
        sd: float = math.nan,
        reason: Finding | None = None,
    ) -> Measure:
        """The change of a measure between two visits; ``sd`` is that of the change where nothing changed."""
        return cls(name, kind, after - before, unit, reason, sd, beside={"before": before, "after": after})

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.reason is None

    @property
    def side(self) -> str:
        """The patient's side that it belongs to; empty where it belongs to both."""
        sides = [side for side in SIDES if self.name.endswith(side)]
        sides += [
            side
            for pair in PAIRS.values()
            for side, name in zip(SIDES, pair, strict=True)
            if name == self.name
        ]
        return "".join(sides[:1])

    @property
    def other(self) -> float:
        """Of the other side, beside a predicted one; NaN where the measure belongs to both, or both are predicted."""
        return self.beside.get("other side", math.nan)

    @property
    def mirrored(self) -> float:
        """With the mirror image instead of the prediction; NaN where there is none."""
        return self.beside.get("mirrored", math.nan)

    @property
    def before(self) -> float:
        """Before an edit, or at the first visit; NaN for a column of a cohort's table."""
        return self.beside.get("before", math.nan)

    @property
    def after(self) -> float:
        """After an edit, or at the later visit; NaN for a column of a cohort's table."""
        return self.beside.get("after", self.value)

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def exceeds(self) -> bool | None:
        """Whether a change is more than repeated scans of an unchanged person show (95 %); None where not known."""
        if not math.isfinite(self.change) or not math.isfinite(self.sd):
            return None
        return abs(self.change) > SURE * self.sd

    @property
    def requested(self) -> float | None:
        """The value that an edit was asked for; that before, where the measure had to stay."""
        return self.beside.get("requested")

    @property
    def deviations(self) -> float | None:
        """Of the value asked for, from the population's mean, in standard deviations at this subject's size."""
        return self.beside.get("deviations")

    @property
    def error(self) -> float | None:
        """What an edit attained minus what was asked for."""
        return None if self.requested is None else self.after - self.requested


MeasureChange = Change = Measure  # what a comparison and an edit call their rows in public


def format_measure(measure: Measure, sign: str = "") -> tuple[str, str]:
    """Value and standard deviation of a row as text in the row's unit; empty where one is not known.

    Parameters
    ----------
    measure : Measure
    sign : str
        "+" gives positive values their sign.
    """
    digits = 1 if measure.unit == "mm" else 0
    return (
        f"{measure.value:{sign}.{digits}f}" if math.isfinite(measure.value) else "",
        f"{measure.sd:.{digits}f}" if math.isfinite(measure.sd) else "",
    )


def measure_record(measure: Measure, audience: Audience = PYTHON) -> dict[str, Any]:
    """One measure for JSON, with the reason in the words of an audience where there is no value."""
    record = {
        "name": measure.name,
        "kind": measure.kind,
        "value": plain(measure.value),
        "unit": measure.unit,
        "sd": plain(measure.sd),
        "sd_source": measure.source,
        "predicted": measure.predicted,
    }
    return record | ({"reason": measure.reason.cause.text(audience)} if measure.reason is not None else {})


def predicted_record(measure: Measure) -> dict[str, Any]:
    """One measure of a prediction for JSON."""
    return {
        "name": measure.name,
        "unit": measure.unit,
        "other": plain(measure.other),
        "predicted": plain(measure.value),
        "deviation": plain(measure.sd),
        "mirrored": plain(measure.mirrored),
        "kind": measure.kind,
    }


@dataclass(frozen=True, eq=False)
class MeasureTable(Sequence[Measure]):
    """Measures that are read together: printed, a table; a measure is found by its number or its name.

    Attributes
    ----------
    title : str
    measures : tuple of Measure
    remarks : tuple of str
        What to read with them: what could not be determined, and why.
    """

    title: str
    measures: tuple[Measure, ...]
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.measures)

    @overload
    def __getitem__(self, which: int | str) -> Measure: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Measure, ...]: ...
    def __getitem__(self, which: int | str | slice) -> Measure | tuple[Measure, ...]:
        """By number; or by name, ``SN-NL tape``. Distances are straight where no kind is given."""
        if not isinstance(which, str):
            return self.measures[which]
        for words in (f"{which} {STRAIGHT}", which):
            for one in self.measures:
                if same_name(words, f"{one.name} {one.kind}") or same_name(words, one.name):
                    return one
        names = ", ".join(dict.fromkeys(one.name for one in self.measures))
        raise BreastMorphError(
            "there is no measure {which!r} here", "The measures are {names}", which=which, names=names
        )

    def __repr__(self) -> str:
        return f"MeasureTable({self.title!r}, {sum(one.known for one in self.measures)} measures)"

    def __str__(self) -> str:
        rows = [_HEADS, *map(_row, self.measures)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(w) if k in (2, 3) else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines), *self.remarks])

    def _repr_html_(self) -> str:
        rows = map(_row, self.measures)
        return templates().from_string(_TABLE).render(shown=self, heads=_HEADS, rows=rows)


def _row(measure: Measure) -> tuple[str, ...]:
    value, sd = format_measure(measure)
    kind = "" if measure.kind == "volume" else measure.kind
    kind = f"{kind} predicted".strip() if measure.predicted else kind
    return measure.name, kind, value or "-", sd, measure.unit, measure.side


# Borders of both breasts are drawn by one rule, and one chest lies behind both: by these sources the sides err
# together, and the difference has this share of what sides of their own would have (phantoms).
_APART = {"border": 0.5, "border, wall": 0.5, "wall": 0.4}


def asymmetries(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Left minus right of what exists on both sides, under the names of :data:`distances.PAIRS`."""
    found = list(measures)
    by_name = {(one.name, one.kind): one for one in found}
    kinds = list(dict.fromkeys(one.kind for one in found))
    out = []
    for name, (of_left, of_right) in PAIRS.items():
        for kind in kinds:
            left, right = by_name.get((of_left, kind)), by_name.get((of_right, kind))
            if left is not None and right is not None:
                apart = _APART.get(left.source, 1.0) if left.source == right.source else 1.0
                out.append(
                    Measure(
                        name,
                        kind,
                        left.value - right.value,
                        left.unit,
                        left.reason or right.reason,
                        apart * float(np.hypot(left.sd, right.sd)),
                        left.source if left.source == right.source else f"{left.source}, {right.source}",
                        left.predicted or right.predicted,
                    )
                )
    return tuple(out)


def symmetry_indices(measures: Iterable[Measure]) -> dict[tuple[str, str], float]:
    """By name and kind of a pair: the difference of the sides in percent of their mean, 0 where they are alike."""
    by_name = {(one.name, one.kind): one for one in measures if one.known}
    out = {}
    for name, (of_left, of_right) in PAIRS.items():
        for kind in ("tape", "straight", "volume", "area"):
            left, right = by_name.get((of_left, kind)), by_name.get((of_right, kind))
            if left is not None and right is not None and left.value + right.value > 0.0:
                out[name, kind] = 200.0 * abs(left.value - right.value) / (left.value + right.value)
    return out
