"""What a comparison of visits looks like: a page, a sheet, maps of change; and the page of a repeatability study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph import __version__
from breastmorph.clinical.comparer import APART
from breastmorph.clinical.comparison import Comparison, VisitChange
from breastmorph.clinical.distances import PAIRS, TAPE
from breastmorph.clinical.measure_table import SURE, Measure
from breastmorph.clinical.repeat_study import RepeatStudy
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import measure_in_words, sentences
from breastmorph.foundation.words import PAIRS_IN_WORDS
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.clinical_sheet import (
    ClinicalSheet,
    in_cm,
    save_clinical_sheet,
    with_sides_and_scale,
)
from breastmorph.report.page import Block, Cell, Column, Figure, Page, Section, Table, Text, write_page
from breastmorph.report.render import (
    AMOUNT,
    COLOURS,
    SIGNED,
    SKIN,
    Camera,
    Picture,
    View,
    colormap,
    mark_sides,
    printed,
    render,
    round_end,
)
from breastmorph.scan.scan import SIDES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PM = "\N{PLUS-MINUS SIGN}"
_VIEWS = (
    (View(yaw=-45.0), "from the patient's right"),
    (View(), "from the front"),
    (View(yaw=45.0), "from the patient's left"),
)
_SIZE = (330, 300)
_ENDS = (2.0, 30.0)  # mm: where the colours may end
_SCALE = 50.0  # mm: length of the scale bar
_OF_SIDE = dict(zip(SIDES, COLOURS[:2], strict=True))
_VERDICTS = {True: "changed", False: "within noise", None: "–"}

# --------------------------------------------------------------------------------------------------------------------
# Words
# --------------------------------------------------------------------------------------------------------------------


def _shown(value: float, one: Measure, sign: str = "") -> str:
    """A value of a measure for people; a mean of distances, as small as they are, to a tenth of a mm."""
    return in_cm(value, one.unit, 2 if one.kind == "mean" else 1, sign)


def change_text(one: Measure) -> str:
    """A change for people: ``+42 ± 11 cc``, lengths in cm."""
    if not math.isfinite(one.change):
        return "not determinable"
    change = _shown(one.change, one, "+")
    if not math.isfinite(one.sd):
        return change
    number, unit = change.rsplit(" ", 1)
    return f"{number} {_PM} {_shown(one.sd, one).rsplit(' ', 1)[0]} {unit}"


def verdict_text(one: Measure, side: str) -> str:
    """What a change of volume means, in one sentence."""
    if one.exceeds is None:
        return f"The {side} breast's change of volume cannot be determined."
    if one.exceeds:
        way = "gained" if one.change > 0 else "lost"
        return (
            f"The {side} breast {way} {abs(one.change):.0f} {_PM} {one.sd:.0f} cc: "
            "more than repeated scans of an unchanged person show."
        )
    return (
        f"The {side} breast's volume differs by {change_text(one)}: "
        "no more than repeated scans of an unchanged person show."
    )


def _measure_name(one: Measure) -> str:
    kind = f" ({one.kind})" if one.kind in (TAPE, APART) else ""
    return f"{measure_in_words(one.name)}{kind}"


def _spread_note(found: Comparison) -> str:
    known = found.repeatability
    return (
        f"{_PM} is one standard deviation of the change where nothing changed, as {known.people} people scanned again "
        f"showed it ({known.source}), for breasts of this size and with as much hidden skin and change of posture. "
        f"“Changed” is said beyond {SURE} of them: of unchanged measures, one in twenty. "
        "Landmarks that the program found add their own uncertainty."
    )


def _row(one: Measure) -> tuple[str, ...]:
    before, after = (_shown(value, one) or "–" for value in (one.before, one.after))
    return _measure_name(one), before, after, change_text(one), _VERDICTS[one.exceeds]


def _rows(visit: VisitChange) -> list[tuple[str, ...]]:
    """A visit's table but for distances along the skin; the grades of ptosis come last."""
    rows = [_row(one) for one in visit.all if one.kind != TAPE]
    rows += [
        (f"Ptosis, {side} (Regnault)", grade.before, grade.after, "", _VERDICTS[grade.exceeds])
        for side, grade in visit.grades.items()
    ]
    return rows


def _printed_rows(visit: VisitChange) -> tuple[list[tuple[str, ...]], frozenset[int]]:
    """The same with both sides in one row, for paper, and which rows have a change beyond noise (with a star)."""
    by_name = {one.name: one for one in visit.all if one.kind not in (TAPE, APART)}
    paired = {name for pair in PAIRS.values() for name in pair}
    both = [(one,) for one in visit.all if one.kind != TAPE and one.name not in paired]
    sided = [(by_name.get(left), by_name.get(right)) for left, right in PAIRS.values()]
    rows: list[tuple[str, ...]] = []
    marked: set[int] = set()
    for name, changes in [*zip(PAIRS, sided, strict=True), *(("", one) for one in both)]:
        known = [one for one in changes if one is not None]
        if not known:
            continue
        if any(one.exceeds for one in known):
            marked.add(len(rows))
        cells = [cell for one in changes for cell in _printed_cells(one)]
        rows.append(
            (PAIRS_IN_WORDS[name] if name else _measure_name(known[0]), *cells, *[""] * (4 - len(cells)))
        )
    grades = [visit.grades.get(side) for side in SIDES]
    if any(grades):
        if any(one.exceeds for one in grades if one):
            marked.add(len(rows))
        each = [
            (f"{one.before} → {one.after}", "*" if one.exceeds else "") if one else ("", "") for one in grades
        ]
        rows.append(("Ptosis (Regnault)", *each[0], *each[1]))
    return rows, frozenset(marked)


def _printed_cells(one: Measure | None) -> tuple[str, str]:
    if one is None or not math.isfinite(one.change):
        return "", "–"
    _, before, after, change, _ = _row(one)
    return f"{before.rsplit(' ', 1)[0]} → {after}", f"{change} *" if one.exceeds else change


# --------------------------------------------------------------------------------------------------------------------
# Maps and charts
# --------------------------------------------------------------------------------------------------------------------


def _coloured(values: Floats, low: float, high: float, name: str) -> Floats:
    known = np.isfinite(values)
    return np.where(known[:, None], colormap(np.where(known, values, 0.0), low, high, name), SKIN)


def save_change_map(found: Comparison, visit: VisitChange, path: Path) -> None:
    """Write ``<path>.png`` and ``<path>.svg``: change across the skin and sliding along it, with sides and scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    rows = (
        (visit.skin.across, SIGNED, True, "outwards (+) or inwards (−), mm"),
        (visit.skin.along, AMOUNT, False, "along the skin, mm"),
    )
    with printed(path, (8.6, 5.6)) as figure:
        grid = figure.subplots(2, len(_VIEWS))
        for axes, (values, name, signed, label) in zip(grid, rows, strict=True):
            end = float(np.clip(round_end(values, 0.98), *_ENDS))
            low = -end if signed else 0.0
            colors = _coloured(values, low, end, name)
            for axis, (view, words) in zip(axes, _VIEWS, strict=True):
                camera = Camera.around(found.mesh.vertices, view, _SIZE)
                axis.imshow(render(found.mesh, colors=colors, camera=camera, relief=0.6))
                axis.set_axis_off()
                axis.set_title(words, fontsize=8, weight="normal")
                mark_sides(axis, view.axes(), size=11)
                _scale_bar(axis, camera)
            bar = figure.colorbar(
                ScalarMappable(Normalize(low, end), name), ax=list(axes), shrink=0.8, pad=0.01, extend="max"
            )
            bar.set_label(label, fontsize=8)


def _scale_bar(axis: Axes, camera: Camera) -> None:
    length, (width, height) = _SCALE / camera.pixel, camera.size
    start, row = 0.04 * width, 0.97 * height
    axis.plot([start, start + length], [row, row], color="black", lw=1.5, solid_capstyle="butt")
    axis.text(start + length / 2, row - 4, f"{_SCALE / 10:.0f} cm", ha="center", va="bottom", fontsize=7)


def save_course(found: Comparison, path: Path) -> None:
    """Write ``<path>.svg`` and ``.png``: volumes and distances from notch to nipple over the visits."""
    ids = [one.id for one in found.visits]
    at = np.arange(len(ids))
    with printed(path, (8.0, 3.2)) as figure:
        left, right = figure.subplots(1, 2)
        for side in SIDES:
            volumes = [visit.volumes[side] for visit in found.changes]
            values = np.array([volumes[0].before, *(one.after for one in volumes)])
            spread = SURE * np.array([0.0, *(one.sd for one in volumes)])
            left.errorbar(at, values, spread, color=_OF_SIDE[side], marker="o", ms=4, capsize=3, label=side)
            name = f"SN-N{side[0].upper()}"
            lengths = [
                [one for one in visit.measures if (one.name, one.kind) == (name, "straight")]
                for visit in found.changes
            ]
            if all(lengths):
                values = np.array([lengths[0][0].before, *(one[0].after for one in lengths)]) / 10.0
                spread = SURE * np.array([0.0, *(one[0].sd for one in lengths)]) / 10.0
                right.errorbar(
                    at, values, spread, color=_OF_SIDE[side], marker="o", ms=4, capsize=3, label=side
                )
        for axis, label in ((left, "volume, cc"), (right, "notch to nipple, cm")):
            axis.set(ylabel=label)
            axis.set_xticks(at, ids, rotation=0 if max(map(len, ids)) < 12 else 20)
            axis.margins(x=0.15, y=0.2)
        left.legend(title="breast")


# --------------------------------------------------------------------------------------------------------------------
# The page and the printed sheet of a comparison
# --------------------------------------------------------------------------------------------------------------------


def write_comparison_page(found: Comparison, folder: Path) -> Path:
    """Write ``comparison.html`` with its figures; returns the page."""
    last, first = found.last, found.visits[0]
    several = len(found.changes) > 1
    sections = [Section("What changed", _what_changed(found))]
    for visit in found.changes:
        name = f"map-{visit.id}" if several else "map"
        save_change_map(found, visit, folder / name)
        caption = (
            f"How the breasts' skin moved from {first.id} to {visit.id}, beyond what the chest under it did. "
            "Above: out of the body (red) or into it (blue); below: along the skin. Skin that one of the scans does "
            "not show, and all other skin, has no colour. L and R are the patient's left and right."
        )
        title = f"Where: {visit.id}" if several else "Where"
        sections.append(Section(title, (Figure.load(folder / name, caption),)))
    if several:
        save_course(found, folder / "course")
        caption = "Course over the visits; bars are 95 % limits of the change since the first visit."
        sections.append(Section("Course", (Figure.load(folder / "course", caption),)))
    for visit in found.changes:
        title = f"Measures: {visit.id}" if several else "Measures"
        sections.append(Section(title, _tables(found, visit)))
    sections += [Section("Symmetry", (_symmetry(found),)), Section("Chest and posture", _stances(found))]
    page = Page(
        f"{first.id} to {last.id}" if not several else f"{first.id} and {len(found.changes)} later visits",
        tuple(sections),
        subtitle="Change between scans of one person. Patient: ____________________  Date: ____________",
        facts=tuple((f"{side.capitalize()} volume", change_text(last.volumes[side])) for side in SIDES),
        notice=" ".join(f"{sentence}." for sentence in sentences(found.warnings, "page")),
    )
    path = folder / "comparison.html"
    write_page(path, page)
    return path


def _what_changed(found: Comparison) -> tuple[Block, ...]:
    lines = []
    for visit in found.changes:
        before = f"{visit.id}: " if len(found.changes) > 1 else ""
        lines += [before + verdict_text(visit.volumes[side], side) for side in SIDES]
        others = [one for one in visit.measures if one.exceeds and one.kind != TAPE]
        if others:
            told = ", ".join(f"{_measure_name(one)} {change_text(one)}" for one in others)
            lines.append(f"{before}Also beyond noise: {told}.")
    return (Text(tuple(lines), bullets=True), Text((_spread_note(found),)))


def _tables(found: Comparison, visit: VisitChange) -> tuple[Table, ...]:
    names = (found.visits[0].id, visit.id)
    columns: tuple[Column | str, ...] = (
        "measure",
        *(Column(name, number=True) for name in names),
        Column("change", number=True),
        "verdict",
    )
    words = "All measures; distances are straight, left and right are the patient's."
    taped = tuple(_row(one) for one in visit.all if one.kind == TAPE)
    return Table(words, columns, tuple(_rows(visit))), Table("Distances along the skin.", columns, taped)


def _symmetry(found: Comparison) -> Table:
    rows = []
    for k, one in enumerate(found.visits):
        volumes = [
            (visit.volumes[side].before if k == 0 else visit.volumes[side].after)
            for visit in (found.changes[max(k - 1, 0)],)
            for side in SIDES
        ]
        apart = in_cm(volumes[0] - volumes[1], "cc", sign="+") or "–"
        mean = in_cm(one.symmetry.deviation, "mm", 2) if one.symmetry is not None else "–"
        rows.append((one.id, apart, mean))
    columns = (
        "visit",
        Column("left minus right volume", number=True),
        Column("mirror deviation", number=True),
    )
    note = "Mirror deviation: mean distance between each breast and the mirror image of the other."
    return Table("The breasts against each other.", columns, tuple(rows), note)


def _stances(found: Comparison) -> tuple[Block, ...]:
    columns = (
        "visit",
        Column("chest depth", "%", 1),
        Column("chest width", "%", 1),
        Column("bent by", "mm", 1),
        Column("left hidden", "%", 0),
        Column("right hidden", "%", 0),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.id,
            one.stance.depth,
            one.stance.width,
            one.stance.posture,
            *(100.0 * one.hidden[side] for side in SIDES),
        )
        for one in found.changes
    )
    words = (
        "The scans were laid on each other by the chest. What breath, arms and posture did to it, as seen on the bare "
        "skin around the breasts, was carried under them and is no part of the changes above."
    )
    return Text((words,)), Table("Against the first visit.", columns, rows)


def save_comparison_sheet(found: Comparison, folder: Path) -> list[Path]:
    """Write the last visit against the first as ``comparison.pdf`` and ``.png``, one A4 page."""
    visit, faces = found.last, found.mesh.faces
    end = float(np.clip(round_end(visit.skin.across, 0.98), *_ENDS))
    colors = _coloured(visit.skin.across, -end, end, SIGNED)
    shapes: Sequence[tuple[str, TriangleMesh, Floats | None]] = (
        (f"First visit: {found.visits[0].id}", found.mesh, None),
        (f"Later visit: {visit.id}, the same skin", TriangleMesh(visit.shape, faces), None),
        (f"Change across the skin: blue {end:g} mm inwards, red {end:g} mm outwards", found.mesh, colors),
    )
    pictures: list[tuple[str, list[Picture]]] = []
    for label, mesh, paint in shapes:
        row = []
        for view, _ in _VIEWS:
            camera = Camera.around(found.mesh.vertices, view, _SIZE)
            seen = render(mesh, colors=paint, camera=camera, relief=1.0 if paint is None else 0.6)
            row.append(with_sides_and_scale(seen, camera))
        pictures.append((label, row))
    rows, marked = _printed_rows(visit)
    notes = [
        "* more than repeated scans of an unchanged person show. " + _spread_note(found),
        *(f"Warning: {sentence}." for sentence in sentences(found.warnings, "page")),
    ]
    sheet = ClinicalSheet(
        f"{found.visits[0].id} to {visit.id}",
        "Patient: ______________________      Dates: ______________  ______________\n"
        f"Source: scans of one person      Made with: built-in template, BreastMorph {__version__}",
        pictures,
        ["measure (straight)", "left", f"change {_PM} 1 sd", "right", f"change {_PM} 1 sd"],
        rows,
        marked,
        notes,
    )
    return save_clinical_sheet(sheet, folder, "comparison")


# --------------------------------------------------------------------------------------------------------------------
# The page of a repeatability study
# --------------------------------------------------------------------------------------------------------------------

_PLOTTED = ("volume-left", "volume-right", "SN-NL", "SN-NR")


def save_repeat_plots(study: RepeatStudy, path: Path) -> None:
    """Write Bland-Altman plots as ``<path>.svg`` and ``.png``: later minus first measurement over their mean."""
    chosen = [one for one in study.measures if one.name in _PLOTTED and one.kind != "tape"]
    with printed(path, (8.0, 5.6)) as figure:
        for axis, one in zip(figure.subplots(2, 2).flat, chosen, strict=False):
            mean, difference = 0.5 * (one.first + one.second), one.second - one.first
            axis.scatter(mean, difference, s=14, color=COLOURS[0], alpha=0.8, lw=0)
            axis.axhline(one.bias, color=COLOURS[1], lw=1.2)
            for limit in (one.bias - one.coefficient, one.bias + one.coefficient):
                axis.axhline(limit, color=COLOURS[1], lw=1.0, ls="--")
            axis.axhline(0.0, color="0.6", lw=0.8)
            axis.set(xlabel=f"mean of both, {one.unit}", ylabel=f"later − first, {one.unit}")
            axis.set_title(measure_in_words(one.name))


def write_repeat_page(study: RepeatStudy, folder: Path) -> Path:
    """Write ``repeatability.html`` with its plots; returns the page."""
    save_repeat_plots(study, folder / "bland-altman")
    rows = tuple(
        (
            _measure_name(one),
            one.unit,
            len(one.people),
            round(float(np.mean((one.first + one.second) / 2.0)), 1),
            one.bias,
            one.within_sd,
            one.coefficient,
        )
        for one in study.measures
    )
    columns = (
        "measure",
        "unit",
        Column("pairs", digits=0),
        Column("mean", digits=1),
        Column("later − first", digits=2),
        Column("within-subject sd", digits=2),
        Column("repeatability coefficient", digits=2),
    )
    words = (
        "The within-subject standard deviation is that of one measurement; two measurements of an unchanged person "
        "differ by less than the repeatability coefficient (2.77 of them) in 95 of 100 cases. Given to a comparison, "
        "the file repeatability.json takes the place of the built-in figures."
    )
    caption = (
        "Bland-Altman plots: every dot is one person measured twice; dashed are the limits of agreement."
    )
    page = Page(
        "Repeatability",
        (
            Section("Within-subject spread", (Text((words,)), Table("All measures.", columns, rows))),
            Section("Agreement", (Figure.load(folder / "bland-altman", caption),)),
        ),
        subtitle=study.repeatability.source,
        facts=(("People", str(study.repeatability.people)),),
        notice=" ".join(f"{sentence}." for sentence in sentences(study.warnings, "page")),
    )
    path = folder / "repeatability.html"
    write_page(path, page)
    return path
