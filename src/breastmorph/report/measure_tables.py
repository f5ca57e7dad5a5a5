"""Measures as people read them on sheets, pages and in the terminal: names in words, lengths in cm, rows of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from breastmorph.clinical.comparer import APART
from breastmorph.clinical.comparison import VisitChange
from breastmorph.clinical.distances import KINDS, PAIRS, TAPE
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.repeatability import RepeatedMeasure
from breastmorph.foundation.messages import note
from breastmorph.foundation.terms import PAIRS_IN_WORDS, measure_in_words
from breastmorph.report.document import Cell, Column, Table
from breastmorph.scan.scan import SIDES

PM = "\N{PLUS-MINUS SIGN}"
Columns = Sequence[tuple[str, Callable[[Measure], str]]]


def in_cm(
    value: float, unit: str, digits: int = 1, sign: str = "", *, sd: float = math.nan, sd_digits: int = 1
) -> str:
    """A value for people, with its unit: lengths in cm, volumes and areas in whole ones; empty where it is unknown.

    Parameters
    ----------
    value : float
        In ``unit``; lengths in mm.
    unit : str
    digits : int
        Decimals of what is not a volume or an area.
    sign : str
        "+" gives positive values their sign too.
    sd : float
        Its standard deviation; NaN where it is unknown.
    sd_digits : int
    """
    if not math.isfinite(value):
        return ""
    whole = unit in ("cc", "cm2")
    scale, shown = (10.0, "cm") if unit == "mm" else (1.0, unit.replace("cm2", "cm\N{SUPERSCRIPT TWO}"))

    def number(value: float, digits: int, sign: str = "") -> str:
        digits = 0 if whole else digits
        return f"{round(value / scale, digits) + 0.0:{sign}.{digits}f}"  # + 0.0: no negative zero

    spread = f" {PM} {number(sd, sd_digits)}" if math.isfinite(sd) else ""
    return f"{number(value, digits, sign)}{spread} {shown}".rstrip()


def shown_measure(measure: Measure, sign: str = "") -> str:
    """A measure for people with its standard deviation, and *predicted* where it is; empty where it is not known."""
    if not measure.known:
        return ""
    text = in_cm(measure.value, measure.unit, sign=sign, sd=measure.sd)
    return f"{text} predicted" if measure.predicted else text


def change_text(measure: Measure) -> str:
    """A change between visits for people: ``+42 ± 11 cc``, lengths in cm."""
    digits = _digits(measure)
    return (
        in_cm(measure.change, measure.unit, digits, "+", sd=measure.sd, sd_digits=digits)
        or "not determinable"
    )


def _digits(measure: Measure) -> int:
    """Decimals of a compared value in cm: means of distances are small."""
    return 2 if measure.kind == "mean" else 1


def table_of(
    measures: Sequence[Measure],
    columns: Columns,
    marked: Callable[[Measure], bool] = lambda measure: False,
    caption: str = "",
) -> Table:
    """A table with a row a measure.

    Parameters
    ----------
    measures : sequence of Measure
    columns : sequence of (title, function)
        What stands in a column.
    marked : function
        Whether a row stands out.
    caption : str
    """
    titles = [title for title, _ in columns]
    return Table(
        caption,
        (titles[0], *(Column(title, number=title != "verdict") for title in titles[1:])),
        tuple(tuple(text(measure) for _, text in columns) for measure in measures),
        marked=frozenset(k for k, measure in enumerate(measures) if marked(measure)),
    )


def _predicted_sd(measure: Measure) -> str:
    digits = 1 if measure.unit == "mm" else 0
    text, zero = in_cm(measure.sd, measure.unit, digits), f"{0:.{digits}f} "
    # Too small for the digits shown, but not zero.
    return f"< {10.0**-digits:g} {text.removeprefix(zero)}" if text.startswith(zero) else text


def _requested(measure: Measure) -> str:
    if measure.held:
        return "held"
    if measure.requested is None:
        return ""
    # A column of the cohort's table has no value that a shape shows.
    return in_cm(measure.requested, measure.unit, 2) or "changed"


def name_and_kind(measure: Measure | RepeatedMeasure) -> str:
    """A measure's name in words, with its kind where another kind stands beside it."""
    kind = f" ({measure.kind})" if measure.kind in (TAPE, APART) else ""
    return f"{measure_in_words(measure.name)}{kind}"


PREDICTED: Columns = (
    ("measure (straight)", lambda m: measure_in_words(m.name)),
    ("other side", lambda m: in_cm(m.other, m.unit)),
    ("predicted", lambda m: in_cm(m.value, m.unit)),
    (f"{PM} 1 sd", _predicted_sd),
    ("mirror image", lambda m: in_cm(m.mirrored, m.unit)),
)
EDITED: Columns = (
    ("measure", lambda m: measure_in_words(m.name)),
    ("before", lambda m: in_cm(m.before, m.unit, 2)),
    ("requested", _requested),
    ("after", lambda m: in_cm(m.after, m.unit, 2, sd=m.sd)),
    ("difference", lambda m: "" if m.error is None else in_cm(m.error, m.unit, 2, "+")),
)


def compared_columns(first: str, later: str) -> Columns:
    """Columns of a comparison of two visits."""
    return (
        ("measure", name_and_kind),
        (first, lambda m: in_cm(m.before, m.unit, _digits(m)) or "–"),
        (later, lambda m: in_cm(m.after, m.unit, _digits(m)) or "–"),
        ("change", change_text),
        ("verdict", lambda m: verdict_of(m.exceeds)),
    )


def verdict_of(exceeds: bool | None) -> str:
    """Whether a change is more than noise, as tables say it."""
    return {True: "changed", False: "within noise", None: "–"}[exceeds]


def measure_row(measure: Measure, *, in_words: bool) -> list[str]:
    """A predicted measure as text: name, other side, predicted, standard deviation, mirror image."""
    return _row(measure, PREDICTED, in_words)


def change_row(measure: Measure, *, in_words: bool) -> list[str]:
    """A measure of an edit as text: name, before, requested, after with its standard deviation, difference."""
    return _row(measure, EDITED, in_words)


def _row(measure: Measure, columns: Columns, in_words: bool) -> list[str]:
    name, *cells = (text(measure) for _, text in columns)
    return [name if in_words else measure.name, *cells]


def in_pairs(measures: Iterable[Measure]) -> list[tuple[str, Measure, Measure]]:
    """Name of the pair, left and right of every measure that a side has; of the other side it may be unknown."""
    by_name = {(measure.name, measure.kind): measure for measure in measures}
    kinds = list(dict.fromkeys(kind for _, kind in by_name))
    found = []
    for pair, names in PAIRS.items():
        for kind in kinds:
            left, right = (by_name.get((name, kind)) for name in names)
            if left is not None or right is not None:
                found.append(
                    (
                        pair,
                        left or _unknown(right, names[0], "left"),
                        right or _unknown(left, names[1], "right"),
                    )
                )
    return found


def _unknown(other: Measure | None, name: str, side: str) -> Measure:
    """The measure of a side that has none."""
    kind, unit = (other.kind, other.unit) if other is not None else ("", "")
    return Measure(name, kind, math.nan, unit, note("side-absent", "{side} side absent", side=side))


_PAIRED = {name for pair in PAIRS.values() for name in pair}


def examined_table(one: Examination) -> Table:
    """All measures of a subject, both sides in one row."""

    def label(name: str, kind: str) -> str:
        words = PAIRS_IN_WORDS.get(name) or measure_in_words(name)
        return f"{words}, {kind}" if kind in KINDS else words

    rows: list[tuple[Cell, ...]] = [
        (label(m.name, m.kind), shown_measure(m), "", "")
        for m in one.measures
        if m.name not in _PAIRED and m.known
    ]
    differences = {(measure.name, measure.kind): measure for measure in one.asymmetries}
    marked = set()
    for pair, left, right in in_pairs(one.measures):
        if left.known or right.known:
            if left.kind == "volume":
                marked.add(len(rows))
            apart = differences.get((pair, left.kind))
            difference = shown_measure(apart, "+") if apart is not None else ""
            rows.append((label(pair, left.kind), shown_measure(left), shown_measure(right), difference))
    rows.append(("Ptosis (Regnault)", *(grade.grade for grade in one.ptosis), ""))
    if one.symmetry is not None:
        rows.append(("Mirror deviation, mean", in_cm(one.symmetry.deviation, "mm", 2), "", ""))
    columns = ("measure", "left, or both", "right", "left minus right")
    return Table("", columns, tuple(rows), marked=frozenset(marked))


def compared_table(visit: VisitChange) -> Table:
    """A visit against the first, both sides in one row, for paper; changes beyond noise have a star."""

    def cells(measure: Measure) -> tuple[str, str]:
        if not math.isfinite(measure.change):
            return "", "–"
        before, after = (
            in_cm(value, measure.unit, _digits(measure)) for value in (measure.before, measure.after)
        )
        star = " *" if measure.exceeds else ""
        return f"{before.rsplit(' ', 1)[0]} → {after}", f"{change_text(measure)}{star}"

    shown = [measure for measure in visit.all if measure.kind != TAPE]
    lines: list[tuple[str, tuple[Measure, ...]]] = [
        (PAIRS_IN_WORDS[pair], (left, right))
        for pair, left, right in in_pairs(measure for measure in shown if measure.kind != APART)
    ]
    lines += [(name_and_kind(m), (m,)) for m in shown if m.name not in _PAIRED]
    rows: list[tuple[Cell, ...]] = []
    marked = set()
    for label, both in lines:
        if any(measure.exceeds for measure in both):
            marked.add(len(rows))
        texts = [text for measure in both for text in cells(measure)]
        rows.append((label, *texts, *[""] * (4 - len(texts))))
    grades = [visit.grades.get(side) for side in SIDES]
    if any(grades):
        if any(grade.exceeds for grade in grades if grade):
            marked.add(len(rows))
        texts = [
            text
            for grade in grades
            for text in (
                (f"{grade.before} → {grade.after}", "*" if grade.exceeds else "") if grade else ("", "")
            )
        ]
        rows.append(("Ptosis (Regnault)", *texts))
    columns = ("measure (straight)", "left", f"change {PM} 1 sd", "right", f"change {PM} 1 sd")
    return Table("", columns, tuple(rows), marked=frozenset(marked))
