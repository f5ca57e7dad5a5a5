"""The page that a patient takes home: pictures, measured lines, cuts, a table; in any language."""

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
from breastmorph.foundation.language import ENGLISH, N_, Language
from breastmorph.foundation.language import language as language_of
from breastmorph.foundation.terms import word_in_words
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

# Measures of the table by name and kind: of both sides, and of both together.
_PAIRS = (
    ("volume", "volume", N_("Volume of the breast")),
    ("SN-N", "straight", N_("Sternal notch to nipple")),
    ("SN-N", "tape", N_("Sternal notch to nipple")),
    ("N-IMF", "tape", N_("Nipple to the fold under the breast")),
    ("N-M", "straight", N_("Nipple to the midline")),
    ("base-width", "straight", N_("Width of the breast's base")),
    ("projection", "straight", N_("How far the breast stands out")),
)
_SINGLE = (
    ("NL-NR", "straight", N_("Nipple to nipple")),
    ("intermammary", "straight", N_("Between the breasts")),
)
_KINDS = {"straight": N_("straight"), "tape": N_("along the skin")}
_SHAPES = {
    "now": N_("as it is"),
    "predicted": N_("predicted"),
    "mirrored": N_("mirror image"),
    "edited": N_("as requested"),
}
_AREAS = {
    "level": N_("Level cut at the nipple, area"),
    "upright": N_("Upright cut through the nipple, area"),
}
_CUTS = {"level": N_("Level cut at the nipple"), "upright": N_("Upright cut through the nipple")}
_LINES = (
    N_("red: notch to nipple"),
    N_("blue: nipple to nipple"),
    N_("green: nipple to fold"),
    N_("violet: width of the base"),
    N_("orange: between the breasts"),
    N_("white: border of the volume"),
)
_METHOD = N_(
    "How this was made: a 3D camera recorded the surface of the body. A program fitted a torso with known points to it "
    "and measured between these points. R and L are the patient's right and left."
)
_SPREAD = N_(
    "\N{PLUS-MINUS SIGN} is one standard deviation: about two of three measurements lie within it, and nearly all "
    "within twice as much."
)
_TARGETS = {
    "predicted": N_(
        "The predicted breast is what is usual among the people the model was made of, for a body like this one. It is "
        "not the outcome of an operation."
    ),
    "mirrored": N_(
        "The mirror image shows the other breast on this side. It is not the outcome of an operation."
    ),
    "edited": N_(
        "The requested shape is the likeliest one with the requested measures. It is not the outcome of an operation."
    ),
}
_SYNTHETIC = N_("The model was made of computed bodies and knows no people. Nothing on this page is advice.")
_LIMITS = N_(
    "Limits: skin that the camera did not see, under the breast above all, is completed by the program. Posture "
    "and breathing change these numbers. This page does not replace an examination."
)
_VIEWS = (
    (N_("From the front"), View()),
    (N_("From her left"), View(yaw=55.0)),
    (N_("From her right"), View(yaw=-55.0)),
)
_MAP_SIZE = (520, 470)
_LEAST_END = 2.0  # mm: the colours of the thickness end here at least
_BEFORE, _AFTER, _FAINT = "#777777", "#B2182B", "#666666"
_SCALE = 50.0  # mm: the scale bar of a cut


def written(text: str, language: Language = ENGLISH) -> str:
    """A text of numbers as a language writes them, and their units."""
    return language.number(text.replace("-", "\N{MINUS SIGN}")).replace("cc", language.text(N_("cc")))


def spread(value: float, deviation: float, unit: str, language: Language = ENGLISH, sign: str = "") -> str:
    """A number with its standard deviation and unit; lengths, which come in mm, in cm."""
    return written(in_cm(value, unit, sign=sign, sd=deviation), language)


def plan_rows(plan: Plan, language: Language = ENGLISH) -> list[list[str]]:
    """Rows of a table of a plan, one column a side; of a synthetic model without the words of advice."""

    def row(label: str, values: Sequence[tuple[float, float]], unit: str, sign: str = "") -> list[str]:
        cells = [spread(value, deviation, unit, language, sign) for value, deviation in values]
        return [language.text(label), *cells]

    sides = plan.sides
    add, remove = N_("To add"), N_("To take away")
    if plan.synthetic:
        add, remove = N_("Outside of the skin as it is"), N_("Inside of the skin as it is")
    return [
        row(N_("Difference"), [(side.volume, side.deviation) for side in sides], "cc", "+"),
        row(add, [(side.added.volume, side.added.deviation) for side in sides], "cc"),
        row(remove, [(side.removed.volume, side.removed.deviation) for side in sides], "cc"),
        row(N_("Thickest place"), [(side.thickest, math.nan) for side in sides], "mm"),
        row(N_("Width of the base"), [(side.base_width, math.nan) for side in sides], "mm"),
        row(N_("Height of the base"), [(side.base_height, math.nan) for side in sides], "mm"),
    ]


def section_rows(cuts: Sequence[Section], language: Language = ENGLISH) -> list[list[str]]:
    """Areas of cuts before and after, one column a side."""
    rows = []
    for kind, label in _AREAS.items():
        areas = [
            [in_cm(outline.area, "cm2") for outline in cut.outlines.values()]
            for cut in cuts
            if cut.kind == kind
        ]
        cells = [written(" \N{RIGHTWARDS ARROW} ".join(texts), language) for texts in areas]
        rows.append([language.text(label), *cells])
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
    language : str
        A language's code, as in "de".
    paper : {"A4", "Letter"}
    """
    spoken = language_of(language)
    print_page(handout_page(handout, spoken), path.with_suffix(""), ("pdf",), layout_of(spoken, paper))


def layout_of(language: Language, paper: str) -> Layout:
    """How the page is printed in a language."""
    return Layout(PAPERS[paper], partial(written, language=language), language.text)


def handout_page(handout: Handout, language: Language = ENGLISH) -> Page:
    """The page in a language."""
    text, plan = language.text, handout.plan
    pictures = {text(title): drawn_measures(handout.examination, view) for title, view in _VIEWS}
    titles = tuple(pictures)
    shown = [titles] if plan is not None else [titles[:1], titles[1:]]  # large where nothing else is shown
    blocks: list[Block] = [Panels("", tuple(pictures[title] for title in row), row) for row in shown]
    blocks.append(Text((";  ".join(text(line) for line in _LINES),)))
    notes = [_METHOD, _SPREAD]
    if plan is not None:
        blocks.append(_comparison(handout, plan, language))
        notes.append(_TARGETS[plan.target])
    blocks.append(_measured(handout, language))
    if plan is not None:
        columns: tuple[Column | str, ...] = (
            f"{text('Difference')}: {text(_SHAPES[plan.target])}",
            *(Column(word_in_words(side.side, language), number=True) for side in plan.sides),
        )
        rows = [*plan_rows(plan, language), *section_rows(handout.cuts, language)]
        blocks.append(Table("", columns, tuple(map(tuple, rows))))
    if handout.synthetic:
        notes.append(_SYNTHETIC)
    blocks.append(Text(tuple(text(note) for note in (*notes, _LIMITS))))
    return Page(
        text(N_("Measures and comparison") if plan is not None else N_("Measures of the breasts")),
        tuple(blocks),
        notice=text(N_("Synthetic model: not for planning")) if handout.synthetic else "",
        identity=handout.identity,
    )


def _measured(handout: Handout, language: Language) -> Table:
    """The table of measures, a dash where one is unknown."""
    text, plan, target = language.text, handout.plan, handout.target
    planned = [side.side for side in plan.sides] if plan is not None and target is not None else []

    def cells(one: Examination, names: Sequence[str], kind: str) -> list[str]:
        known = {(m.name, m.kind): m for m in one.measures if m.known}
        found = [known.get((name, kind)) for name in names]
        return ["\N{EN DASH}" if m is None else spread(m.value, m.sd, m.unit, language) for m in found]

    rows = []
    for pair, kind, label in _PAIRS:
        row = cells(handout.examination, PAIRS[pair], kind)
        if target is not None:
            row += cells(target, [PAIRS[pair][SIDES.index(side)] for side in planned], kind)
        rows.append([text(label) + (f", {text(_KINDS[kind])}" if kind in _KINDS else ""), *row])
    for name, kind, label in _SINGLE:
        row = [*cells(handout.examination, [name], kind), ""]
        if target is not None and planned:
            row += [*cells(target, [name], kind), *[""] * (len(planned) - 1)]
        rows.append([f"{text(label)}, {text(_KINDS[kind])}", *row])
    titles = [word_in_words(side, language) for side in SIDES]
    if plan is not None:
        titles += [f"{word_in_words(side, language)}, {text(_SHAPES[plan.target])}" for side in planned]
    shown: tuple[tuple[Cell, ...], ...] = tuple(
        tuple(row) for row in rows if any(cell not in ("", "\N{EN DASH}") for cell in row[1:])
    )
    return Table("", (text(N_("Measure")), *(Column(title, number=True) for title in titles)), shown)


def _comparison(handout: Handout, plan: Plan, language: Language) -> Panels:
    """Where the target lies outside or inside, and the cuts through both."""
    text = language.text
    view = View(yaw=30.0 * SIGN[plan.sides[0].side]) if len(plan.sides) == 1 else View()
    scale = thickness_scale(plan, text(N_("outside (+), inside (-) of the skin as it is, mm")))
    colors = scale.of(plan.thickness, plan.thickness != 0.0)
    (picture,) = views_of(
        TriangleMesh(plan.after, plan.faces), cameras_around(plan.after, (view,), _MAP_SIZE), colors
    )
    cuts = [next(cut for cut in handout.cuts if cut.kind == kind) for kind in _CUTS]
    return Panels(
        "",
        (picture, *(Chart(partial(_draw_cut, cut=cut, language=language)) for cut in cuts)),
        (text(_SHAPES[plan.target]).capitalize(), *(text(_CUTS[cut.kind]) for cut in cuts)),
        scale,
    )


def _draw_cut(axes: Axes, cut: Section, language: Language) -> None:
    """The outlines of both shapes with their areas, a scale bar, and the sides of a level cut."""
    axes.set_aspect("equal")
    across, up = (0, 2) if cut.kind == "level" else (2, 1)
    for (name, outline), colour in zip(cut.outlines.items(), (_BEFORE, _AFTER), strict=True):
        label = f"{language.text(_SHAPES[name])} ({written(in_cm(outline.area, 'cm2'), language)})"
        axes.plot(outline.line[:, across], outline.line[:, up], color=colour, lw=1.1, label=label)
    low, high = axes.get_xlim(), axes.get_ylim()
    axes.plot([low[1] - _SCALE, low[1]], [high[0]] * 2, color="black", lw=1.6)
    axes.text(low[1] - _SCALE / 2, high[0], "5 cm", ha="center", va="bottom", fontsize=7)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=7, ncol=1, handlelength=1.2)
    if cut.kind == "level":
        for x, letter in zip(low, ("R", "L"), strict=True):
            axes.text(x, high[1], letter, ha="center", va="top", fontsize=8, color=_FAINT)
