"""What a comparison of visits looks like: a page, a sheet, maps of change; and the page of a repeatability study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.clinical.comparison import Comparison, VisitChange
from breastmorph.clinical.distances import TAPE
from breastmorph.clinical.measure_table import SURE, Measure
from breastmorph.clinical.repeatability import RepeatStudy
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.messages import READERS, sentences
from breastmorph.foundation.terms import measure_in_words
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.document import (
    TO_FILL_IN,
    Block,
    Cell,
    Column,
    Figure,
    Identity,
    Page,
    Panels,
    Section,
    Table,
    Text,
)
from breastmorph.report.examination_sheet import FROM_THREE_SIDES, SIDES_NOTE
from breastmorph.report.measure_tables import (
    PM,
    change_text,
    compared_columns,
    compared_table,
    in_cm,
    name_and_kind,
    table_of,
    verdict_of,
)
from breastmorph.report.page.writing import write_page
from breastmorph.report.printing import COLOURS, printed
from breastmorph.report.render import AMOUNT, ColourScale, cameras_around, round_end, views_of
from breastmorph.report.sheet import Layout, print_page
from breastmorph.scan.scan import SIDES

_SIZE = (330, 300)
_ENDS = (2.0, 30.0)  # mm: where the colours may end
_RELIEF = 0.6  # of pictures whose colours mean numbers
_OF_SIDE = dict(zip(SIDES, COLOURS[:2], strict=True))
OF_ONE_PERSON = Identity(  # who it is stays to be filled in by hand
    date=f"{TO_FILL_IN}  {TO_FILL_IN}", model="built-in template", source="scans of one person"
)
_PLOTTED = ("volume-left", "volume-right", "SN-NL", "SN-NR")


def verdict_text(one: Measure, side: str) -> str:
    """What a change of volume means, in one sentence."""
    if one.exceeds is None:
        return f"The {side} breast's change of volume cannot be determined."
    if one.exceeds:
        way = "gained" if one.change > 0 else "lost"
        return (
            f"The {side} breast {way} {abs(one.change):.0f} {PM} {one.sd:.0f} cc: "
            "more than repeated scans of an unchanged person show."
        )
    return (
        f"The {side} breast's volume differs by {change_text(one)}: "
        "no more than repeated scans of an unchanged person show."
    )


def _spread_note(found: Comparison) -> str:
    known = found.repeatability
    return (
        f"{PM} is one standard deviation of the change where nothing changed, as {known.people} people scanned again "
        f"showed it ({known.source}), for breasts of this size and with as much hidden skin and change of posture. "
        f"“Changed” means beyond {SURE} of them: of unchanged measures, one in twenty. "
        "Landmarks that the program found add their own uncertainty."
    )


def _end_of(values: Floats) -> float:
    return float(np.clip(round_end(values, 0.98), *_ENDS))


def save_change_map(found: Comparison, visit: VisitChange, path: Path) -> None:
    """Write ``<path>.png``, ``.svg`` and ``.pdf``: change across the skin and sliding along it."""
    cameras = cameras_around(found.mesh.vertices, list(FROM_THREE_SIDES.values()), _SIZE)
    across, along = visit.skin.across, visit.skin.along
    scales = (
        (across, ColourScale.signed(_end_of(across), "outwards (+) or inwards (−), mm")),
        (along, ColourScale(0.0, _end_of(along), AMOUNT, "along the skin, mm")),
    )
    rows = tuple(
        Panels(
            "",
            views_of(found.mesh, cameras, scale.of(values), relief=_RELIEF),
            tuple(FROM_THREE_SIDES),
            scale,
        )
        for values, scale in scales
    )
    print_page(Page("", rows), path, ("svg", "pdf", "png"), Layout((8.6, 5.3), dpi=300))


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


def write_comparison_page(found: Comparison, folder: Path, identity: Identity = OF_ONE_PERSON) -> Path:
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
        subtitle="Change between scans of one person.",
        facts=tuple((f"{side.capitalize()} volume", change_text(last.volumes[side])) for side in SIDES),
        notice=" ".join(f"{sentence}." for sentence in sentences(found.warnings, READERS)),
        identity=identity,
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
            changed = ", ".join(f"{name_and_kind(one)} {change_text(one)}" for one in others)
            lines.append(f"{before}Also beyond noise: {changed}.")
    return (Text(tuple(lines), bullets=True), Text((_spread_note(found),)))


def _tables(found: Comparison, visit: VisitChange) -> tuple[Table, ...]:
    """A visit's measures, and apart from them those along the skin; the grades of ptosis come last."""
    columns = compared_columns(found.visits[0].id, visit.id)
    caption = "All measures; distances are straight, left and right are the patient's."
    shown = table_of([m for m in visit.all if m.kind != TAPE], columns, caption=caption)
    grades: tuple[tuple[Cell, ...], ...] = tuple(
        (f"Ptosis, {side} (Regnault)", grade.before, grade.after, "", verdict_of(grade.exceeds))
        for side, grade in visit.grades.items()
    )
    taped = [m for m in visit.all if m.kind == TAPE]
    return (
        replace(shown, rows=(*shown.rows, *grades)),
        table_of(taped, columns, caption="Distances along the skin."),
    )


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
        "The scans were aligned by the chest. What breathing, arms and posture did to it, as seen on the skin around "
        "the breasts, was continued under them and is no part of the changes above."
    )
    return Text((words,)), Table("Against the first visit.", columns, rows)


def comparison_sheet(found: Comparison, identity: Identity = OF_ONE_PERSON) -> Page:
    """The last visit against the first, as one page for paper."""
    visit = found.last
    scale = ColourScale.signed(_end_of(visit.skin.across), "mm")
    cameras = cameras_around(found.mesh.vertices, list(FROM_THREE_SIDES.values()), _SIZE)
    later = TriangleMesh(visit.shape, found.mesh.faces)
    colors = scale.of(visit.skin.across)
    rows = (
        Panels(f"First visit: {found.visits[0].id}", views_of(found.mesh, cameras)),
        Panels(f"Later visit: {visit.id}, the same skin", views_of(later, cameras)),
        Panels(
            f"Change across the skin: blue {scale.high:g} mm inwards, red {scale.high:g} mm outwards",
            views_of(found.mesh, cameras, colors, relief=_RELIEF),
        ),
    )
    notes = (
        SIDES_NOTE,
        "* more than repeated scans of an unchanged person show. " + _spread_note(found),
        *(f"Warning: {sentence}." for sentence in sentences(found.warnings, READERS)),
    )
    return Page(
        f"{found.visits[0].id} to {visit.id}", (*rows, compared_table(visit), Text(notes)), identity=identity
    )


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
            name_and_kind(one),
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
        notice=" ".join(f"{sentence}." for sentence in sentences(study.warnings, READERS)),
    )
    path = folder / "repeatability.html"
    write_page(path, page)
    return path
