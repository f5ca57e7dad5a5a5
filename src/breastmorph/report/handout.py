"""The page that a patient takes home, as PDF: pictures, measured lines, cuts, a table; in two languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph import __version__
from breastmorph.clinical.cuts import Section, sections
from breastmorph.clinical.distances import PAIRS
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.planning import Plan
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.clinical_sheet import drawn_measures, in_cm
from breastmorph.report.render import (
    SIGNED,
    SKIN,
    View,
    colormap,
    house_style,
    mark_sides,
    render,
    round_end,
    save_figure,
)
from breastmorph.scan.scan import SIDES, SIGN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --------------------------------------------------------------------------------------------------------------------
# The words: every text of the page in every language, and how numbers are written there
# --------------------------------------------------------------------------------------------------------------------

LANGUAGES = ("en", "de")
_WORDS: dict[str, tuple[str, str]] = {
    # what is said of a plan and of cuts
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


def said(key: str, language: str = "en") -> str:
    """A text in a language."""
    return _WORDS[key][LANGUAGES.index(language)]


def written(text: str, language: str = "en") -> str:
    """A text of numbers as a language writes them, and their units."""
    text = text.replace("-", "\N{MINUS SIGN}")
    return text if language == "en" else text.replace(".", ",").replace(" cc", " ml")


def spread(value: float, deviation: float, unit: str, language: str = "en", sign: str = "") -> str:
    """A number with its standard deviation and unit; lengths, which come in mm, in cm."""
    text = in_cm(value, unit, sign=sign)
    if math.isfinite(deviation) and text:
        number, _, shown = text.partition(" ")
        text = f"{number} \N{PLUS-MINUS SIGN} {in_cm(deviation, unit).partition(' ')[0]} {shown}"
    return written(text, language)


# --------------------------------------------------------------------------------------------------------------------
# What is said of a plan and of cuts, alike in the terminal, on the page and on the hand-out
# --------------------------------------------------------------------------------------------------------------------


def plan_rows(plan: Plan, language: str = "en") -> list[list[str]]:
    """Rows of a table, one column a side; of a synthetic model without the words of advice."""
    add, remove = ("outside", "inside") if plan.synthetic else ("to add", "to remove")

    def row(key: str, cell: Sequence[str]) -> list[str]:
        return [said(key, language), *cell]

    def each(of: str, unit: str = "mm") -> list[str]:
        return [spread(getattr(one, of), math.nan, unit, language) for one in plan.sides]

    def parts(of: str) -> list[str]:
        found = [getattr(one, of) for one in plan.sides]
        return [spread(part.volume, part.deviation, "cc", language) for part in found]

    net = [spread(one.volume, one.deviation, "cc", language, "+") for one in plan.sides]
    return [
        row("difference", net),
        row(add, parts("added")),
        row(remove, parts("removed")),
        row("thickest", each("thickest")),
        row("base width", each("base_width")),
        row("base height", each("base_height")),
    ]


def section_rows(cuts: Sequence[Section], language: str = "en") -> list[list[str]]:
    """Areas of cuts before and after, one column a side."""
    rows = []
    for kind in ("level", "upright"):
        cells = []
        for one in cuts:
            if one.kind == kind:
                areas = [in_cm(outline.area, "cm2") for outline in one.outlines.values()]
                cells.append(written(" \N{RIGHTWARDS ARROW} ".join(areas), language))
        rows.append([said(kind, language), *cells])
    return rows


def thickness_colors(plan: Plan) -> tuple[np.ndarray, float]:
    """Colours (n, 3) from 0 to 1 of the thickness, and the mm of the strongest; blue inside, red outside."""
    shown = plan.thickness != 0.0
    most = max(2.0, round_end(plan.thickness[shown])) if shown.any() else 2.0
    colors = colormap(plan.thickness, -most, most, SIGNED)
    return np.where(shown[:, None], colors, SKIN), most


def thickness_mesh(plan: Plan) -> tuple[TriangleMesh, float]:
    """The target coloured by thickness, and the mm of the strongest colour."""
    colors, most = thickness_colors(plan)
    rgb = np.round(255 * colors).astype(np.uint8)
    return TriangleMesh(
        plan.after, plan.faces, np.column_stack([rgb, np.full(len(rgb), 255, np.uint8)])
    ), most


# --------------------------------------------------------------------------------------------------------------------
# The page
# --------------------------------------------------------------------------------------------------------------------

PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}  # inches
_MARGIN = 0.55
_COLUMN, _FIRST = 1.45, 2.6  # width of numbers in tables, and of the words before them at least
# Measures of the table by name and kind: of both sides, and of both together.
_PAIRS = (("volume", "volume"), ("SN-N", "straight"), ("SN-N", "tape"), ("N-IMF", "tape"), ("N-M", "straight"),
          ("base-width", "straight"), ("projection", "straight"))  # fmt: skip
_SINGLE = (("NL-NR", "straight"), ("intermammary", "straight"))
_LINES = ("red", "blue", "green", "violet", "orange", "white")
_INK, _FAINT, _BAND = "#222222", "#666666", "#F1F3F6"
_BEFORE, _AFTER = "#777777", "#B2182B"
_VIEWS = (("front", View()), ("her left", View(yaw=55.0)), ("her right", View(yaw=-55.0)))
_MAP_SIZE = (520, 470)


@dataclass(frozen=True, eq=False)
class Handout:
    """What the page is about.

    Attributes
    ----------
    examination : Examination
        Of the body as it is, with its mesh and landmarks.
    made_with : str
        The model behind the numbers.
    identifier, date : str
        Of the patient and of the scan; empty ones are left open, to be filled in by hand.
    plan : Plan, optional
        With what the body is compared.
    target : Examination, optional
        Of the shape it is compared with.
    cuts : sequence of Section
        Through both.
    synthetic : bool
        Whether the model knows no people.
    """

    examination: Examination
    made_with: str
    identifier: str = ""
    date: str = ""
    plan: Plan | None = None
    target: Examination | None = None
    cuts: Sequence[Section] = ()
    synthetic: bool = False


def compared(model: ShapeModel, plan: Plan, own: Examination, target: Examination) -> Handout:
    """The page of a plan, with the examinations of the body as it is and of the target."""
    shapes = {"now": plan.before, plan.target: plan.after}
    cuts = [cut for one in plan.sides for cut in sections(model, shapes, one.side)]
    return Handout(own, "", own.id, plan=plan, target=target, cuts=cuts, synthetic=plan.synthetic)


def save_handout(page: Handout, path: Path, language: str = "en", paper: str = "A4") -> None:
    """Write the page as one PDF file with text as text.

    Parameters
    ----------
    page : Handout
    path : Path
        Ends in .pdf.
    language : {"en", "de"}
    paper : {"A4", "Letter"}
    """
    with house_style():
        save_figure(_drawn(page, language, PAPERS[paper]), path.with_suffix(""), ("pdf",))


def _drawn(page: Handout, language: str, size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    sheet = _Sheet(figure, size, language)
    sheet.heading(page)
    sheet.views(page)
    if page.plan is not None:
        sheet.comparison(page, page.plan)
    sheet.table(*_measured(page, language))
    if page.plan is not None:
        sides = [said(one.side, language) for one in page.plan.sides]
        rows = [*plan_rows(page.plan, language), *section_rows(page.cuts, language)]
        sheet.table([f"{said('difference', language)}: {said(page.plan.target, language)}", *sides], rows)
    sheet.notes(page)
    return figure


def _measured(page: Handout, language: str) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of measures; what nobody knows is a dash."""

    def cells(one: Examination, names: Sequence[str], kind: str) -> list[str]:
        known = {(m.name, m.kind): m for m in one.measures}
        found = [known.get((name, kind)) for name in names]
        return [
            spread(m.value, m.sd, m.unit, language) if m is not None and m.known else "\N{EN DASH}"
            for m in found
        ]

    sides = [one.side for one in page.plan.sides] if page.plan is not None and page.target is not None else []
    compared_to = page.plan.target if page.plan is not None else ""
    columns = [said("measure", language), *(said(side, language) for side in SIDES)]
    columns += [f"{said(side, language)}, {said(compared_to, language)}" for side in sides]
    rows = []
    for pair, kind in _PAIRS:
        label = said(pair, language) + (f", {said(kind, language)}" if kind in ("straight", "tape") else "")
        row = cells(page.examination, PAIRS[pair], kind)
        if page.target is not None:
            row += cells(page.target, [PAIRS[pair][SIDES.index(side)] for side in sides], kind)
        rows.append([label, *row])
    for name, kind in _SINGLE:
        row = [*cells(page.examination, [name], kind), ""]
        if page.target is not None and sides:
            row += [*cells(page.target, [name], kind), *[""] * (len(sides) - 1)]
        rows.append([f"{said(name, language)}, {said(kind, language)}", *row])
    nothing = ("", "\N{EN DASH}")
    return columns, [row for row in rows if any(cell not in nothing for cell in row[1:])]


class _Sheet:
    """A page that is filled from top to bottom; lengths are inches."""

    def __init__(self, figure: Figure, size: tuple[float, float], language: str) -> None:
        self.figure, self.language = figure, language
        self.width, self.height = size
        self.y = size[1] - 0.45  # where the next thing begins

    def say(self, x: float, y: float, text: str, size: float = 8.5, **how: Any) -> None:
        """Text with its upper left corner at a place."""
        told = {"color": _INK, "va": "top"} | how
        self.figure.text(x / self.width, y / self.height, text, fontsize=size, **told)

    def panel(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes with their lower left corner at a place."""
        whole = (x / self.width, y / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(whole)

    def heading(self, page: Handout) -> None:
        """Title, fields, and what nobody may overlook."""
        language = self.language
        title = "planned" if page.plan is not None else "measures"
        self.say(_MARGIN, self.y, said(title, language), 15, weight="bold")
        if page.synthetic:
            box = {"facecolor": "#FFE8CC", "edgecolor": "#D9480F", "boxstyle": "round,pad=0.3"}
            self.say(
                self.width - _MARGIN,
                self.y,
                said("synthetic", language),
                9,
                weight="bold",
                ha="right",
                bbox=box,
            )
        fields = (("identifier", page.identifier), ("born on", ""), ("scanned on", page.date))
        wide = (self.width - 2 * _MARGIN) / 3
        for k, (key, value) in enumerate(fields):
            text = f"{said(key, language)}: {shorten(value, 30, placeholder='...') or 16 * '_'}"
            self.say(_MARGIN + k * wide, self.y - 0.36, text, 9)
        self.y -= 0.62

    def views(self, page: Handout) -> None:
        """The body as it is with its lines, from three sides; large where there is nothing else to show."""
        wide = self.width - 2 * _MARGIN
        third = wide / 3
        if page.plan is not None:
            high = 0.8 * third
            places = [(k * third, 0.0, third - 0.06, high) for k in range(3)]
        else:
            high = 2.0 * third + 0.2
            places = [
                (0.0, 0.0, high, high),
                (2.1 * third, third + 0.2, third, third),
                (2.1 * third, 0.0, third, third),
            ]
        self.y -= high + 0.17
        for (x, up, across, tall), (key, view) in zip(places, _VIEWS, strict=True):
            axes = self.panel(_MARGIN + x, self.y + up, across, tall)
            axes.imshow(drawn_measures(page.examination, view))
            axes.axis("off")
            self.say(_MARGIN + x, self.y + up + tall + 0.16, said(key, self.language), 8.5, weight="bold")
        half = len(_LINES) // 2
        for keys in (_LINES[:half], _LINES[half:]):
            words = ";  ".join(said(key, self.language) for key in keys)
            self.say(_MARGIN, self.y - 0.05, words, 7, color=_FAINT)
            self.y -= 0.14
        self.y -= 0.1

    def comparison(self, page: Handout, plan: Plan) -> None:
        """Where the target lies outside or inside, and the cuts through both."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        colors, most = thickness_colors(plan)
        wide = self.width - 2 * _MARGIN
        high, map_wide = 1.95, 0.30 * wide
        self.y -= high + 0.16
        side = plan.sides[0].side
        view = View(yaw=30.0 * SIGN[side]) if len(plan.sides) == 1 else View()
        axes = self.panel(_MARGIN, self.y, map_wide, high)
        axes.imshow(render(TriangleMesh(plan.after, plan.faces), view, size=_MAP_SIZE, colors=colors))
        axes.axis("off")
        mark_sides(axes, view.axes(), size=9)
        self.say(
            _MARGIN, self.y + high + 0.13, said(plan.target, self.language).capitalize(), 8.5, weight="bold"
        )
        bar = self.panel(_MARGIN + map_wide + 0.08, self.y + 0.15, 0.09, high - 0.3)
        ramp = ScalarMappable(Normalize(-most, most), SIGNED)
        scale = self.figure.colorbar(ramp, cax=bar, ticks=[-most, -most / 2, 0.0, most / 2, most])
        scale.ax.set_yticklabels(
            [written(f"{tick:+g}", self.language) for tick in scale.get_ticks()], fontsize=6.5
        )
        scale.ax.tick_params(length=2)
        scale.set_label(said("colour bar", self.language), fontsize=6)
        left = _MARGIN + map_wide + 0.85
        share = (self.width - _MARGIN - left) / 2
        for k, kind in enumerate(("level", "upright")):
            cut = next(one for one in page.cuts if one.kind == kind)
            axes = self.panel(left + k * share, self.y + 0.38, share - 0.1, high - 0.45)
            self._cut(axes, cut, kind)
            self.say(
                left + k * share, self.y + high + 0.13, said(f"{kind} cut", self.language), 8.5, weight="bold"
            )
        self.y -= 0.1

    def _cut(self, axes: Axes, cut: Section, kind: str) -> None:
        axes.axis("off")
        axes.set_aspect("equal")
        across, up = (0, 2) if kind == "level" else (2, 1)
        for (name, outline), colour in zip(cut.outlines.items(), (_BEFORE, _AFTER), strict=True):
            label = f"{said(name, self.language)} ({written(in_cm(outline.area, 'cm2'), self.language)})"
            axes.plot(outline.line[:, across], outline.line[:, up], color=colour, lw=1.1, label=label)
        low, high = axes.get_xlim(), axes.get_ylim()
        end = low[1]
        axes.plot([end - 50.0, end], [high[0]] * 2, color="black", lw=1.6)
        axes.text(end - 25.0, high[0], "5 cm", ha="center", va="bottom", fontsize=7)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=7, ncol=1, handlelength=1.2)
        if kind == "level":
            for x, letter in zip(low, ("R", "L"), strict=True):
                axes.text(x, high[1], letter, ha="center", va="top", fontsize=8, color=_FAINT)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns of numbers behind one of words."""
        from matplotlib.patches import Rectangle

        line, wide = 0.175, self.width - 2 * _MARGIN
        column = min(_COLUMN, (wide - _FIRST) / (len(columns) - 1))
        first = wide - column * (len(columns) - 1)
        large = 8.2 if column == _COLUMN else 6.8
        self.y -= 0.12
        for k, row in enumerate([columns, *rows]):
            if k % 2:
                at = (_MARGIN / self.width, (self.y - line + 0.03) / self.height)
                band = Rectangle(at, wide / self.width, line / self.height, color=_BAND, lw=0, zorder=-1)
                self.figure.add_artist(band)
            bold = {"weight": "bold"} if not k else {}
            self.say(_MARGIN + 0.04, self.y, row[0], large, **bold)
            for c, cell in enumerate(row[1:]):
                self.say(_MARGIN + first + column * (c + 1) - 0.04, self.y, cell, large, ha="right", **bold)
            self.y -= line

    def notes(self, page: Handout) -> None:
        """Method and limits in plain words, and what made the page."""
        language = self.language
        keys = ["note method", "note spread"]
        keys += [f"note {page.plan.target}"] if page.plan is not None else []
        keys += ["note synthetic"] if page.synthetic else []
        letters = round(17.2 * (self.width - 2 * _MARGIN))
        lines = [line for key in [*keys, "note limits"] for line in wrap(said(key, language), letters)]
        self.say(_MARGIN, self.y - 0.1, "\n".join(lines), 7.8, linespacing=1.3)
        made = f"{said('made with', language)}: {shorten(page.made_with, 60, placeholder='...')}   "
        made += f"{said('program', language)}: BreastMorph {__version__}"
        self.say(_MARGIN, 0.38, made, 7, color=_FAINT)
