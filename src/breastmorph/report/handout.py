"""The page that a patient takes home: pictures, measured lines, cuts, a table; in two languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.clinical.distances import PAIRS
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.planning import Plan, Section, sections
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import Block, Cell, Chart, Column, Identity, Page, Panels, Table, Text
from breastmorph.report.examination_sheet import drawn_measures
from breastmorph.report.measure_tables import in_cm
from breastmorph.report.render import ColourScale, View, cameras_around, round_end, views_of
from breastmorph.report.sheet import PAPERS, Layout, print_page
from breastmorph.scan.scan import SIDES, SIGN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LANGUAGES = ("en", "de")
_WORDS: dict[str, tuple[str, str]] = {
    # plans and cuts
    "difference": ("Difference", "Unterschied"),
    "to add": ("To add", "Hinzuzufügen"),
    "to remove": ("To take away", "Wegzunehmen"),
    "outside": ("Outside of the skin as it is", "Außerhalb der jetzigen Haut"),
    "inside": ("Inside of the skin as it is", "Innerhalb der jetzigen Haut"),
    "thickest": ("Thickest place", "Dickste Stelle"),
    "base width": ("Width of the base", "Breite der Basis"),
    "base height": ("Height of the base", "Höhe der Basis"),
    "level": ("Level cut at the nipple, area", "Waagerechter Schnitt durch die Brustwarze, Fläche"),
    "upright": ("Upright cut through the nipple, area", "Senkrechter Schnitt durch die Brustwarze, Fläche"),
    # headings and fields
    "measures": ("Measures of the breasts", "Maße der Brüste"),
    "planned": ("Measures and comparison", "Maße und Vergleich"),
    "identifier": ("Identifier", "Kennung"),
    "scanned on": ("Date of the scan", "Datum der Aufnahme"),
    "born on": ("Date of birth", "Geburtsdatum"),
    "front": ("From the front", "Von vorn"),
    "her left": ("From her left", "Von links"),
    "her right": ("From her right", "Von rechts"),
    "left": ("left", "links"),
    "right": ("right", "rechts"),
    "measure": ("Measure", "Maß"),
    "predicted": ("predicted", "vorhergesagt"),
    "mirrored": ("mirror image", "Spiegelbild"),
    "edited": ("as wished", "wie gewünscht"),
    "now": ("as it is", "wie jetzt"),
    "level cut": ("Level cut at the nipple", "Waagerechter Schnitt"),
    "upright cut": ("Upright cut through the nipple", "Senkrechter Schnitt"),
    "colour bar": (
        "outside (+), inside (-) of the skin as it is, mm",
        "außerhalb (+), innerhalb (-) der jetzigen Haut, mm",
    ),
    "made with": ("Model", "Modell"),
    "program": ("Program", "Programm"),
    "synthetic": ("Synthetic model: not for planning", "Künstliches Modell: nicht zur Planung"),
    # measures
    "volume": ("Volume of the breast", "Volumen der Brust"),
    "SN-N": ("Sternal notch to nipple", "Drosselgrube bis Brustwarze"),
    "N-IMF": ("Nipple to the fold under the breast", "Brustwarze bis Unterbrustfalte"),
    "N-M": ("Nipple to the midline", "Brustwarze bis Körpermitte"),
    "base-width": ("Width of the breast's base", "Breite der Brustbasis"),
    "projection": ("How far the breast stands out", "Wie weit die Brust vorsteht"),
    "NL-NR": ("Nipple to nipple", "Brustwarze zu Brustwarze"),
    "intermammary": ("Between the breasts", "Zwischen den Brüsten"),
    "straight": ("straight", "gerade"),
    "tape": ("along the skin", "auf der Haut"),
    # the colours of the lines
    "red": ("red: notch to nipple", "rot: Drosselgrube bis Brustwarze"),
    "blue": ("blue: nipple to nipple", "blau: Brustwarze zu Brustwarze"),
    "green": ("green: nipple to fold", "grün: Brustwarze bis Falte"),
    "violet": ("violet: width of the base", "violett: Breite der Basis"),
    "orange": ("orange: between the breasts", "orange: zwischen den Brüsten"),
    "white": ("white: border of the volume", "weiß: Grenze des Volumens"),
    # notes
    "note method": (
        "How this was made: a 3D camera recorded the surface of the body. A program laid a torso with known points "
        "onto it and measured between these points. R and L are the patient's right and left.",
        "Wie das entstand: Eine 3D-Kamera nahm die Oberfläche des Körpers auf. Ein Programm legte einen Oberkörper mit "
        "bekannten Punkten darauf und maß zwischen diesen Punkten. R und L sind rechts und links der Patientin.",
    ),
    "note spread": (
        "\N{PLUS-MINUS SIGN} is one standard deviation: about two of three measurements lie within it, and nearly all "
        "within twice as much.",
        "\N{PLUS-MINUS SIGN} ist eine Standardabweichung: Etwa zwei von drei Messungen liegen darin, fast alle in der "
        "doppelten Spanne.",
    ),
    "note predicted": (
        "The predicted breast is what is usual among the people the model was made of, for a body like this one. It is "
        "not the outcome of an operation.",
        "Die vorhergesagte Brust ist das Übliche bei den Menschen, aus denen das Modell entstand, für einen Körper wie "
        "diesen. Sie ist nicht das Ergebnis einer Operation.",
    ),
    "note mirrored": (
        "The mirror image shows the other breast on this side. It is not the outcome of an operation.",
        "Das Spiegelbild zeigt die andere Brust auf dieser Seite. Es ist nicht das Ergebnis einer Operation.",
    ),
    "note edited": (
        "The wished shape is the likeliest one with the wished measures. It is not the outcome of an operation.",
        "Die gewünschte Form ist die wahrscheinlichste mit den gewünschten Maßen. Sie ist nicht das Ergebnis einer "
        "Operation.",
    ),
    "note synthetic": (
        "The model was made of computed bodies and knows no people. Nothing on this page is advice.",
        "Das Modell entstand aus berechneten Körpern und kennt keine Menschen. Nichts auf dieser Seite ist ein Rat.",
    ),
    "note limits": (
        "Limits: skin that the camera did not see, under the breast above all, is completed by the program. Posture "
        "and breathing change these numbers. This page does not replace an examination.",
        "Grenzen: Haut, die die Kamera nicht sah, vor allem unter der Brust, ergänzt das Programm. Haltung und Atmung "
        "ändern diese Zahlen. Diese Seite ersetzt keine Untersuchung.",
    ),
}

# Measures of the table by name and kind: of both sides, and of both together.
_PAIRS = (("volume", "volume"), ("SN-N", "straight"), ("SN-N", "tape"), ("N-IMF", "tape"), ("N-M", "straight"),
          ("base-width", "straight"), ("projection", "straight"))  # fmt: skip
_SINGLE = (("NL-NR", "straight"), ("intermammary", "straight"))
_LINES = ("red", "blue", "green", "violet", "orange", "white")
_VIEWS = (("front", View()), ("her left", View(yaw=55.0)), ("her right", View(yaw=-55.0)))
_MAP_SIZE = (520, 470)
_LEAST_END = 2.0  # mm: the colours of the thickness end here at least
_BEFORE, _AFTER, _FAINT = "#777777", "#B2182B", "#666666"
_SCALE = 50.0  # mm: the scale bar of a cut


def in_language(key: str, language: str = "en") -> str:
    """A text in a language."""
    return _WORDS[key][LANGUAGES.index(language)]


def label_in_language(english: str, language: str) -> str:
    """A label of the sheet, given in English, in a language."""
    return next(
        (texts[LANGUAGES.index(language)] for texts in _WORDS.values() if texts[0] == english), english
    )


def written(text: str, language: str = "en") -> str:
    """A text of numbers as a language writes them, and their units."""
    text = text.replace("-", "\N{MINUS SIGN}")
    return text if language == "en" else text.replace(".", ",").replace(" cc", " ml")


def spread(value: float, deviation: float, unit: str, language: str = "en", sign: str = "") -> str:
    """A number with its standard deviation and unit; lengths, which come in mm, in cm."""
    return written(in_cm(value, unit, sign=sign, sd=deviation), language)


def plan_rows(plan: Plan, language: str = "en") -> list[list[str]]:
    """Rows of a table of a plan, one column a side; of a synthetic model without the words of advice."""

    def row(key: str, values: Sequence[tuple[float, float]], unit: str, sign: str = "") -> list[str]:
        cells = [spread(value, deviation, unit, language, sign) for value, deviation in values]
        return [in_language(key, language), *cells]

    sides = plan.sides
    add, remove = ("outside", "inside") if plan.synthetic else ("to add", "to remove")
    return [
        row("difference", [(side.volume, side.deviation) for side in sides], "cc", "+"),
        row(add, [(side.added.volume, side.added.deviation) for side in sides], "cc"),
        row(remove, [(side.removed.volume, side.removed.deviation) for side in sides], "cc"),
        row("thickest", [(side.thickest, math.nan) for side in sides], "mm"),
        row("base width", [(side.base_width, math.nan) for side in sides], "mm"),
        row("base height", [(side.base_height, math.nan) for side in sides], "mm"),
    ]


def section_rows(cuts: Sequence[Section], language: str = "en") -> list[list[str]]:
    """Areas of cuts before and after, one column a side."""
    rows = []
    for kind in ("level", "upright"):
        areas = [
            [in_cm(outline.area, "cm2") for outline in cut.outlines.values()]
            for cut in cuts
            if cut.kind == kind
        ]
        cells = [written(" \N{RIGHTWARDS ARROW} ".join(texts), language) for texts in areas]
        rows.append([in_language(kind, language), *cells])
    return rows


def thickness_scale(plan: Plan, label: str = "") -> ColourScale:
    """Colours of the thickness, blue inside and red outside; skin where there is none."""
    shown = plan.thickness != 0.0
    return ColourScale.signed(
        max(_LEAST_END, round_end(plan.thickness[shown])) if shown.any() else _LEAST_END, label
    )


def thickness_mesh(plan: Plan) -> tuple[TriangleMesh, float]:
    """The target coloured by thickness, and the mm of the strongest colour."""
    scale = thickness_scale(plan)
    rgb = np.round(255 * scale.of(plan.thickness, plan.thickness != 0.0)).astype(np.uint8)
    colors = np.column_stack([rgb, np.full(len(rgb), 255, np.uint8)])
    return TriangleMesh(plan.after, plan.faces, colors), scale.high


@dataclass(frozen=True, eq=False)
class Handout:
    """What the page is about.

    Attributes
    ----------
    examination : Examination
        Of the body as it is, with its mesh and landmarks.
    identity : Identity
    plan : Plan, optional
        With what the body is compared.
    target : Examination, optional
        Of the shape it is compared with.
    cuts : sequence of Section
        Through both.
    synthetic : bool
        Whether the model is made of synthetic bodies.
    """

    examination: Examination
    identity: Identity
    plan: Plan | None = None
    target: Examination | None = None
    cuts: Sequence[Section] = ()
    synthetic: bool = False


def planned_handout(
    model: ShapeModel, plan: Plan, own: Examination, target: Examination, identity: Identity
) -> Handout:
    """The page of a plan, with the examinations of the body as it is and of the target."""
    shapes = {"now": plan.before, plan.target: plan.after}
    cuts = [cut for side in plan.sides for cut in sections(model, shapes, side.side)]
    return Handout(own, identity, plan, target, cuts, plan.synthetic)


def save_handout(handout: Handout, path: Path, language: str = "en", paper: str = "A4") -> None:
    """Write the page as one PDF file with text as text.

    Parameters
    ----------
    handout : Handout
    path : Path
        Ends in .pdf.
    language : {"en", "de"}
    paper : {"A4", "Letter"}
    """
    print_page(handout_page(handout, language), path.with_suffix(""), ("pdf",), layout_of(language, paper))


def layout_of(language: str, paper: str) -> Layout:
    """How the page is printed in a language."""
    return Layout(
        PAPERS[paper], partial(written, language=language), partial(label_in_language, language=language)
    )


def handout_page(handout: Handout, language: str = "en") -> Page:
    """The page in a language."""
    word = partial(in_language, language=language)
    plan = handout.plan
    pictures = {word(key): drawn_measures(handout.examination, view) for key, view in _VIEWS}
    titles = tuple(pictures)
    shown = [titles] if plan is not None else [titles[:1], titles[1:]]  # large where nothing else is shown
    blocks: list[Block] = [Panels("", tuple(pictures[title] for title in row), row) for row in shown]
    blocks.append(Text((";  ".join(word(key) for key in _LINES),)))
    keys = ["note method", "note spread"]
    if plan is not None:
        blocks.append(_comparison(handout, plan, language))
        keys.append(f"note {plan.target}")
    blocks.append(_measured(handout, language))
    if plan is not None:
        columns: tuple[Column | str, ...] = (
            f"{word('difference')}: {word(plan.target)}",
            *(Column(word(side.side), number=True) for side in plan.sides),
        )
        rows = [*plan_rows(plan, language), *section_rows(handout.cuts, language)]
        blocks.append(Table("", columns, tuple(map(tuple, rows))))
    if handout.synthetic:
        keys.append("note synthetic")
    blocks.append(Text(tuple(word(key) for key in (*keys, "note limits"))))
    return Page(
        word("planned" if plan is not None else "measures"),
        tuple(blocks),
        notice=word("synthetic") if handout.synthetic else "",
        identity=handout.identity,
    )


def _measured(handout: Handout, language: str) -> Table:
    """The table of measures, a dash where one is unknown."""
    word, plan, target = partial(in_language, language=language), handout.plan, handout.target
    planned = [side.side for side in plan.sides] if plan is not None and target is not None else []

    def cells(one: Examination, names: Sequence[str], kind: str) -> list[str]:
        known = {(m.name, m.kind): m for m in one.measures if m.known}
        found = [known.get((name, kind)) for name in names]
        return ["\N{EN DASH}" if m is None else spread(m.value, m.sd, m.unit, language) for m in found]

    rows = []
    for pair, kind in _PAIRS:
        label = word(pair) + (f", {word(kind)}" if kind in ("straight", "tape") else "")
        row = cells(handout.examination, PAIRS[pair], kind)
        if target is not None:
            row += cells(target, [PAIRS[pair][SIDES.index(side)] for side in planned], kind)
        rows.append([label, *row])
    for name, kind in _SINGLE:
        row = [*cells(handout.examination, [name], kind), ""]
        if target is not None and planned:
            row += [*cells(target, [name], kind), *[""] * (len(planned) - 1)]
        rows.append([f"{word(name)}, {word(kind)}", *row])
    titles = [*map(word, SIDES)]
    if plan is not None:
        titles += [f"{word(side)}, {word(plan.target)}" for side in planned]
    shown: tuple[tuple[Cell, ...], ...] = tuple(
        tuple(row) for row in rows if any(cell not in ("", "\N{EN DASH}") for cell in row[1:])
    )
    return Table("", (word("measure"), *(Column(title, number=True) for title in titles)), shown)


def _comparison(handout: Handout, plan: Plan, language: str) -> Panels:
    """Where the target lies outside or inside, and the cuts through both."""
    word = partial(in_language, language=language)
    view = View(yaw=30.0 * SIGN[plan.sides[0].side]) if len(plan.sides) == 1 else View()
    scale = thickness_scale(plan, word("colour bar"))
    colors = scale.of(plan.thickness, plan.thickness != 0.0)
    (picture,) = views_of(
        TriangleMesh(plan.after, plan.faces), cameras_around(plan.after, (view,), _MAP_SIZE), colors
    )
    cuts = [next(cut for cut in handout.cuts if cut.kind == kind) for kind in ("level", "upright")]
    return Panels(
        "",
        (picture, *(Chart(partial(_draw_cut, cut=cut, language=language)) for cut in cuts)),
        (word(plan.target).capitalize(), *(word(f"{cut.kind} cut") for cut in cuts)),
        scale,
    )


def _draw_cut(axes: Axes, cut: Section, language: str) -> None:
    """The outlines of both shapes with their areas, a scale bar, and the sides of a level cut."""
    axes.set_aspect("equal")
    across, up = (0, 2) if cut.kind == "level" else (2, 1)
    for (name, outline), colour in zip(cut.outlines.items(), (_BEFORE, _AFTER), strict=True):
        label = f"{in_language(name, language)} ({written(in_cm(outline.area, 'cm2'), language)})"
        axes.plot(outline.line[:, across], outline.line[:, up], color=colour, lw=1.1, label=label)
    low, high = axes.get_xlim(), axes.get_ylim()
    axes.plot([low[1] - _SCALE, low[1]], [high[0]] * 2, color="black", lw=1.6)
    axes.text(low[1] - _SCALE / 2, high[0], "5 cm", ha="center", va="bottom", fontsize=7)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=7, ncol=1, handlelength=1.2)
    if cut.kind == "level":
        for x, letter in zip(low, ("R", "L"), strict=True):
            axes.text(x, high[1], letter, ha="center", va="top", fontsize=8, color=_FAINT)
