"""Sheets for the clinic: measures with their words and units, contact sheets, symmetry maps, a prediction."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

import numpy as np

from breastmorph import __version__
from breastmorph.clinical.distances import CALIPER, DISTANCES, DRAWN, KINDS, PAIRS
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.predicted_measures import PredictedNipple
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.clinical.symmetry import Symmetry
from breastmorph.clinical.tape_lines import densely, tape_lines
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import measure_in_words, sentences
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.foundation.words import MEASURES, PAIRS_IN_WORDS
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.render import (
    AMOUNT,
    SIGNED,
    SKIN,
    Camera,
    Marker,
    Picture,
    Seen,
    View,
    box_around,
    colormap,
    house_style,
    look,
    mark_sides,
    render,
    round_end,
    save_figure,
    save_png,
)
from breastmorph.scan.scan import Scan

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------------------------
# Sheets of measures: their words and units, contact sheets, symmetry maps
# --------------------------------------------------------------------------------------------------------------------

# --------------------------------------------------------------------------------------------------------------------
# Measures as people read them on sheets and pages: names in words, lengths in cm, volumes in whole cc
# --------------------------------------------------------------------------------------------------------------------


def in_cm(value: float, unit: str, digits: int = 1, sign: str = "") -> str:
    """A measure for people: lengths, which come in mm, with so many digits of cm; volumes and areas in whole ones."""
    if unit == "mm":
        return with_unit(value / 10.0, "cm", digits, sign)
    return with_unit(
        value, unit.replace("cm2", "cm\N{SUPERSCRIPT TWO}"), 0 if unit in ("cc", "cm2") else digits, sign
    )


def shown_measure(one: Measure, sign: str = "") -> str:
    """A measure for people with its standard deviation, and *predicted* where it is; empty where it is not known."""
    if not one.known:
        return ""
    text = with_spread(in_cm(one.value, one.unit, sign=sign), one.sd, one.unit)
    return f"{text} predicted" if one.predicted else text


def with_spread(text: str, sd: float, unit: str) -> str:
    """A number in words with its standard deviation, where it has one."""
    if not text or not math.isfinite(sd):
        return text
    number, _, shown = text.partition(" ")
    return f"{number} \N{PLUS-MINUS SIGN} {in_cm(sd, unit).partition(' ')[0]} {shown}"


def with_unit(value: float, unit: str, digits: int, sign: str = "") -> str:
    """A number with its unit, empty where it is not known; with ``sign`` "+", positive ones have their sign too."""
    if not math.isfinite(value):
        return ""
    return f"{round(value, digits) + 0.0:{sign}.{digits}f} {unit}".rstrip()  # + 0.0: no negative zero


# --------------------------------------------------------------------------------------------------------------------
# Contact sheets: many small pictures with captions on one page
# --------------------------------------------------------------------------------------------------------------------

_VIEWS = (View(), View(yaw=45.0))


def scan_sheet(scans: Sequence[Scan], path: Path, columns: int = 3) -> None:
    """Write a PNG of scans with their landmarks, each from the front and from 45 degrees.

    All pictures share one scale, so that sizes can be compared.
    """
    box = _common_box(scans)
    cells, captions = [], []
    for scan in scans:
        markers = [Marker(point) for point in scan.landmarks.points]
        views = [
            render(scan.mesh, view, size=(300, 230), markers=markers, box=_around(scan, box))
            for view in _VIEWS
        ]
        cells.append(np.concatenate(views, axis=1))
        captions.append(scan.id)
    save_sheet(cells, captions, path, columns)


def save_sheet(cells: Sequence[Picture], captions: Sequence[str], path: Path, columns: int) -> None:
    """Lay pictures of equal size out in a grid, a caption under each, and write a PNG."""
    make_folder(path.parent)
    write_file(path, sheet_png(cells, captions, columns))


def sheet_png(cells: Sequence[Picture], captions: Sequence[str], columns: int, letters: int = 14) -> bytes:
    """The same as the bytes of a PNG file; ``letters`` are so many pixels high."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=letters)
    height, width = cells[0].shape[:2]
    strip = letters + 8
    n_rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (columns * width, n_rows * (height + strip)), "white")
    draw = ImageDraw.Draw(sheet)
    for k, (cell, caption) in enumerate(zip(cells, captions, strict=True)):
        left, top = k % columns * width, k // columns * (height + strip)
        sheet.paste(Image.fromarray(cell), (left, top))
        draw.text((left + width / 2, top + height + strip / 2), caption, fill="black", anchor="mm", font=font)
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def _common_box(scans: Sequence[Scan]) -> Floats:
    """Half the largest extents among the scans, (3,)."""
    half: Floats = np.max([np.ptp(scan.mesh.vertices, axis=0) for scan in scans], axis=0) / 2
    return half


def _around(scan: Scan, half: Floats) -> tuple[Floats, Floats]:
    middle = (scan.mesh.vertices.min(axis=0) + scan.mesh.vertices.max(axis=0)) / 2
    return middle - half, middle + half


# --------------------------------------------------------------------------------------------------------------------
# A picture of a subject's symmetry: where each breast lies outside or inside the mirror image of the other
# --------------------------------------------------------------------------------------------------------------------

_MAP_VIEWS = (
    (View(yaw=-45.0), "from the patient's right"),
    (View(), "from the front"),
    (View(yaw=45.0), "from the patient's left"),
)
_SIZE = (360, 360)
_ENDS = (2.0, 50.0)  # mm: where the colours may end


def save_symmetry_map(mesh: TriangleMesh, symmetry: Symmetry, path: Path, title: str = "") -> None:
    """Write a PNG of the signed deviation from three views, with sides and a colour bar in mm.

    Parameters
    ----------
    mesh : TriangleMesh
        The subject, upright, in mm.
    symmetry : Symmetry
        Of that mesh.
    path : Path
    title : str
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    on_breast = np.isfinite(symmetry.signed)
    limit = float(np.clip(round_end(symmetry.signed, 0.95), *_ENDS))
    shown = np.where(on_breast, symmetry.signed, 0.0)
    colors = np.where(on_breast[:, None], colormap(shown, -limit, limit, SIGNED), SKIN)
    figure = Figure(figsize=(11.0, 4.3), layout="constrained")
    axes = figure.subplots(1, len(_MAP_VIEWS))
    for axis, (view, words) in zip(axes, _MAP_VIEWS, strict=True):
        axis.imshow(render(mesh, view, size=_SIZE, colors=colors))
        axis.set_axis_off()
        axis.set_title(words, fontsize=9)
        mark_sides(axis, view.axes(), size=12)
    bar = figure.colorbar(
        ScalarMappable(Normalize(-limit, limit), SIGNED), ax=list(axes), shrink=0.85, pad=0.01, extend="both"
    )
    bar.set_label("outside (+) or inside (-) the mirror image\nof the other side, mm", fontsize=9)
    heading = f"Mean deviation {symmetry.deviation:.1f} mm"
    figure.suptitle(f"{title}: {heading[0].lower()}{heading[1:]}" if title else heading, fontsize=11)
    save_png(figure, path, dpi=110)


# --------------------------------------------------------------------------------------------------------------------
# A one-page sheet for the clinic: rows of pictures, a table of measures, notes; as PNG and PDF (A4)
# --------------------------------------------------------------------------------------------------------------------

_A4 = (8.27, 11.69)  # inches
_MARGIN = 0.06  # of the width
_LINE = 0.0155  # of the height: one row of the table
_MOST_ROWS = 32
_NAMES = 0.34  # of the table's width: the first column
_TITLE = 58  # letters of a title in full size
_FAINT, _STRONG = "#F3F3F3", "#DCE6F2"

_SIDES = "Left and right are the patient's: from the front, her left is on the right of the picture."


def caution(model: ShapeModel) -> str:
    """What nobody may overlook on a sheet made with a model; empty for most."""
    return "Synthetic model: not for planning." if model.is_synthetic else ""


@dataclass(frozen=True, eq=False)
class ClinicalSheet:
    """What stands on the page.

    Attributes
    ----------
    title, subtitle : str
    pictures : sequence of (label, pictures)
        Rows of pictures of equal size.
    columns : sequence of str
        Of the table.
    rows : sequence of sequences of str
    marked : set of int
        Rows of the table that stand out.
    notes : sequence of str
        Below the table, for example warnings.
    warning : str
        What nobody may overlook, in the title's line.
    """

    title: str
    subtitle: str
    pictures: Sequence[tuple[str, Sequence[Picture]]]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()
    notes: Sequence[str] = ()
    warning: str = ""


def fields(made_with: str) -> str:
    """The line of a computed shape's sheet that is filled in by hand, with what it was made with."""
    made = f"{made_with}, " if made_with else ""
    return f"Identifier: ______________      Date: ______________      Made with: {made}BreastMorph {__version__}"


def disclaimer(warning: str) -> str:
    """What every sheet of a computed shape says; one with a warning does not speak of planning."""
    purpose = "" if warning else " for planning talks"
    return f"A computed shape{purpose}; no prediction of the result of an operation."


def save_clinical_sheet(sheet: ClinicalSheet, folder: Path, name: str = "sheet") -> list[Path]:
    """Write the page as ``name.png`` and ``name.pdf``; returns the files."""
    with house_style():
        return save_figure(_figure(sheet), folder / name, ("png", "pdf"), dpi=150)


def _figure(sheet: ClinicalSheet) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    figure = Figure(figsize=_A4)
    title = shorten(sheet.title, 2 * _TITLE, placeholder=" ...")
    size = 14 * min(1.0, _TITLE / len(title)) if title else 14
    figure.text(_MARGIN, 0.965, title, fontsize=size, weight="bold", va="top")
    figure.text(_MARGIN, 0.937, sheet.subtitle, fontsize=9, va="top", color="#444444")
    if sheet.warning:
        box = {"facecolor": "#FFE8CC", "edgecolor": "#D9480F", "boxstyle": "round,pad=0.3"}
        figure.text(
            1 - _MARGIN, 0.99, sheet.warning, fontsize=10, weight="bold", va="top", ha="right", bbox=box
        )
    shown = list(sheet.rows[:_MOST_ROWS])
    notes = [line for note in (_SIDES, *sheet.notes) for line in wrap(note, 125, subsequent_indent="   ")]
    if len(sheet.rows) > _MOST_ROWS:
        notes.append(f"{len(sheet.rows) - _MOST_ROWS} more measures are in the JSON file.")
    table_height = _LINE * (len(shown) + 1) if shown else 0.0
    notes_height = 0.013 * len(notes)
    bottom = 0.03 + notes_height + 0.012 + table_height + 0.012
    _draw_pictures(figure, sheet.pictures, bottom, 0.918 - 0.014 * sheet.subtitle.count("\n"))
    if shown:
        axes = figure.add_axes((_MARGIN, bottom - 0.012 - table_height, 1 - 2 * _MARGIN, table_height))
        axes.axis("off")
        table = axes.table(
            cellText=[list(row) for row in shown],
            colLabels=list(sheet.columns),
            colWidths=[_NAMES, *[(1 - _NAMES) / (len(sheet.columns) - 1)] * (len(sheet.columns) - 1)],
            cellLoc="right",
            colLoc="right",
            bbox=Bbox.unit(),
        )
        table.auto_set_font_size(False)
        table.set_fontsize(8)
        for (row, column), cell in table.get_celld().items():
            cell.set_linewidth(0.0)
            cell.set_facecolor(_STRONG if row - 1 in sheet.marked else _FAINT if row % 2 else "white")
            cell.get_text().set_fontweight("bold" if row == 0 or row - 1 in sheet.marked else "normal")
            if column == 0:
                cell.get_text().set_horizontalalignment("left")
    figure.text(_MARGIN, 0.03 + notes_height, "\n".join(notes), fontsize=7.5, va="top", linespacing=1.35)
    return figure


def _draw_pictures(
    figure: Figure, rows: Sequence[tuple[str, Sequence[Picture]]], bottom: float, top: float
) -> None:
    """Pictures as large as the place between two heights of the page allows."""
    if not rows:
        return
    label, gap = 0.016, 0.006
    height = (top - bottom) / len(rows) - label - gap
    for k, (text, pictures) in enumerate(rows):
        strip = np.concatenate(list(pictures), axis=1)
        upper = top - k * (label + height + gap)
        figure.text(_MARGIN, upper - label / 2, text, fontsize=9, weight="bold", va="center")
        axes = figure.add_axes((_MARGIN, upper - label - height, 1 - 2 * _MARGIN, height))
        axes.imshow(strip)
        axes.axis("off")


# --------------------------------------------------------------------------------------------------------------------
# The sheet of measures: lines drawn on the body, sides, a scale bar, fields to fill in
# --------------------------------------------------------------------------------------------------------------------

_SHEET_VIEWS = (
    (View(), "from the front"),
    (View(yaw=55.0), "from her left"),
    (View(yaw=-55.0), "from her right"),
)
_SHEET_SIZE = (520, 520)
_RED, _BLUE, _GREEN, _PURPLE, _ORANGE = (
    *((0.79, 0.16, 0.16), (0.09, 0.39, 0.67), (0.17, 0.54, 0.24)),
    *((0.53, 0.18, 0.61), (0.85, 0.28, 0.06)),
)
_COLOURS = dict(
    zip(DRAWN, (_RED, _RED, _BLUE, _GREEN, _GREEN, _PURPLE, _PURPLE, _ORANGE), strict=True)
)  # of lines along the skin


def save_measure_sheet(
    one: Examination, folder: Path, name: str = "sheet", *, made_with: str = "", warning: str = ""
) -> list[Path]:
    """Write one subject's measures as a page with their lines on the body; PNG and PDF.

    Parameters
    ----------
    one : Examination
        With its mesh and landmarks.
    folder : Path
    name : str
        Of the files, without suffix.
    made_with : str
        The model or template behind the numbers.
    warning : str
        What nobody may overlook.
    """
    pictures = [drawn_measures(one, view) for view, _ in _SHEET_VIEWS]
    by_name = {(m.name, m.kind): m for m in one.measures}
    sided = {side: pair for pair in PAIRS.values() for side in pair}
    rows: list[list[str]] = []
    marked = set()
    for m in one.measures:
        if m.name not in sided and m.known:
            rows.append([_words(m), shown_measure(m), "", ""])
    for difference in one.asymmetries:
        left, right = (by_name[key, difference.kind] for key in PAIRS[difference.name])
        if left.known or right.known:
            if difference.kind == "volume":
                marked.add(len(rows))
            cells = [shown_measure(left), shown_measure(right), shown_measure(difference, "+")]
            rows.append([_words(difference), *cells])
    rows.append(["Ptosis (Regnault)", *(p.grade for p in one.ptosis), ""])
    if one.symmetry is not None:
        rows.append(["Mirror deviation, mean", in_cm(one.symmetry.deviation, "mm", 2), "", ""])
    notes = [
        "Red: sternal notch to nipple; blue: nipple to nipple; green: nipple to fold; violet, dashed: base width, "
        "straight; orange: between the breasts; white: border of the volume. Lines are drawn where they are seen.",
        "\N{PLUS-MINUS SIGN} is one standard deviation: of landmarks set again, of the chest wall that nobody "
        "sees (volume), of the border (areas), of hidden skin where the breast hangs over the fold, of the model where "
        "a breast is predicted.",
        *(f"Note: {sentence}." for sentence in sentences(one.warnings, "page")),
        "Computed from a 3D surface; no replacement for an examination.",
    ]
    absent = f", {one.absent} side absent" if one.absent else ""
    sheet = ClinicalSheet(
        f"{one.id}: measures",
        f"Identifier: {shorten(one.id, 40)}      Date of scan: ______________      Date of birth: ______________\n"
        f"Source: {one.source}{absent}      Made with: {made_with or 'built-in template'}, "
        f"BreastMorph {__version__}",
        [("From the front, from her left, from her right", pictures)],
        ["measure", "left, or both", "right", "left minus right"],
        rows,
        frozenset(marked),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder, name)


def _words(one: Measure) -> str:
    name = MEASURES.get(one.name) or PAIRS_IN_WORDS.get(one.name, one.name)
    return f"{name}, {one.kind}" if one.kind in KINDS else name


def drawn_measures(one: Examination, view: View) -> Picture:
    """A subject with the lines of her measures, the border of the volume, sides and a scale bar."""
    mesh, places = one.mesh, one.landmarks
    if mesh is None or places is None:
        raise ValueError("an examination without its mesh cannot be drawn")
    camera = Camera.around(mesh.vertices, view, _SHEET_SIZE)
    seen = look(mesh, camera)
    picture = seen.shaded(np.array(SKIN))
    surface = Surface(mesh)
    borders = [mesh.vertices[border].mean(axis=1) for border in one.borders]
    for loop in borders:
        _paint(picture, seen, loop, (1.0, 1.0, 1.0))
    for name, colour in _COLOURS.items():
        ends = DISTANCES[name].landmarks[:2]
        if not all(end in places for end in ends):
            continue
        if DISTANCES[name].form == CALIPER:
            straight = densely(np.array([places[end] for end in ends]), camera.pixel)
            _paint(picture, seen, straight, colour, through=True)
        else:
            line = tape_lines(surface, *(SkinPoints.on(surface, places[end][None]) for end in ends))[0]
            if line is not None:
                points = densely(line.points.at(mesh.vertices), camera.pixel)
                _paint(picture, seen, points, colour)
    seen.mark(picture, [Marker(point, (0.1, 0.1, 0.1)) for point in places.points], 3.0)
    return with_sides_and_scale(np.round(255 * picture).astype(np.uint8), camera)


def with_sides_and_scale(picture: Picture, camera: Camera) -> Picture:
    """A picture with L and R of the patient in its upper corners, but from the side, and a bar of 5 cm below."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    draw, (width, height) = ImageDraw.Draw(image), camera.size
    across = camera.axes[0, 0]
    letters = ("", "") if abs(across) < 0.3 else ("R", "L") if across > 0 else ("L", "R")
    for letter, x in zip(letters, (14, width - 14), strict=True):
        draw.text((x, 16), letter, fill="black", anchor="mm", font=ImageFont.load_default(size=18))
    end = width - 20
    start = end - 50.0 / camera.pixel
    draw.line([(start, height - 14), (end, height - 14)], fill="black", width=3)
    font = ImageFont.load_default(size=14)
    draw.text(((start + end) / 2, height - 27), "5 cm", fill="black", anchor="mm", font=font)
    return np.asarray(image)


def _paint(
    picture: Floats, seen: Seen, points: Floats, colour: tuple[float, float, float], *, through: bool = False
) -> None:
    """Colour the pixels of points that the surface does not hide; ``through`` it, every second few of all."""
    at = seen.camera.project(points)
    columns, rows = (np.floor(at[:, k]).astype(int) for k in (0, 1))
    height, width = seen.depth.shape
    inside = (columns >= 0) & (columns < width - 1) & (rows >= 0) & (rows < height - 1)
    columns, rows, depth = columns[inside], rows[inside], at[inside, 2]
    shown = np.arange(len(rows)) % 10 < 6 if through else depth > seen.depth[rows, columns] - 4.0
    for across in (0, 1):
        for down in (0, 1):
            picture[rows[shown] + down, columns[shown] + across] = colour


# --------------------------------------------------------------------------------------------------------------------
# Pictures of predictions: a page for the clinic, and the paper's figure of predicted breasts
# --------------------------------------------------------------------------------------------------------------------

_PREDICTION_VIEWS = (View(), View(yaw=40.0), View(yaw=-40.0))
_PREDICTION_SIZE = (330, 270)
_PREDICTION_CELL = (260, 280)
_MISSING = np.array([0.80, 0.25, 0.22])
# Titles of columns of the figure.
PREDICTED, UNCERTAINTY, MIRRORED = "predicted", "standard deviation", "mirrored"
_BAR = 54  # pixels that a colour bar takes
_STEP = 2.0  # mm: ends of the colour bar are multiples of it


def save_prediction_sheet(
    prediction: Prediction,
    scan: Floats,
    measures: Sequence[Measure],
    title: str,
    folder: Path,
    warning: str = "",
    nipples: Sequence[PredictedNipple] = (),
    made_with: str = "",
) -> list[Path]:
    """Write a prediction as a page: scan, prediction, uncertainty, mirror image, and the measures; PNG and PDF.

    Parameters
    ----------
    prediction : Prediction
    scan : (n, 3) float
        The shape it was made for, upright.
    measures : sequence of Measure
    title : str
    folder : Path
    warning : str
        What nobody may overlook, for example that the model is a synthetic one.
    nipples : sequence of PredictedNipple
    made_with : str
        The model's name.
    """
    faces, most = prediction.faces, scale_of([prediction])
    shapes = np.vstack([scan, prediction.shape, prediction.mirrored])
    cameras = [Camera.around(shapes, view, _PREDICTION_SIZE) for view in _PREDICTION_VIEWS]
    rows: list[tuple[str, Floats, Floats | None]] = [
        ("Scan, the missing region in red", scan, painted(prediction.region.missing)),
        ("Prediction: the likeliest shape", prediction.shape, None),
        (
            "Uncertainty: standard deviation along the skin's normal",
            prediction.shape,
            _heat(prediction, most),
        ),
    ]
    if prediction.region.side != BOTH:
        rows.append(("For comparison: the mirror image of the other breast", prediction.mirrored, None))
    pictures = []
    for k, (label, shape, colors) in enumerate(rows):
        mesh = TriangleMesh(shape, faces)
        row = [with_sides_and_scale(render(mesh, colors=colors, camera=one), one) for one in cameras]
        # As wide in every row, so that all are drawn at one scale.
        row.append(
            colour_bar(_PREDICTION_SIZE[1], most)
            if k == 2
            else np.full((_PREDICTION_SIZE[1], _BAR, 3), 255, np.uint8)
        )
        pictures.append((label, row))
    seen = "the thorax" if prediction.region.side == BOTH else "the other breast"
    known = f"the surface of {seen}" if prediction.evidence == "surface" else "all known points"
    inside = prediction.sd_normal[prediction.region.breast]
    notes = [
        f"Predicted from {known}: {prediction.choice.mirror_share:.0%} of the mirror image as it is, the rest by "
        f"the model with a noise of {prediction.choice.noise:.1f} mm, the likeliest for left-out ones of "
        f"{prediction.source}.",
        f"At the border the prediction met the scan within {prediction.mismatch:.1f} mm; outside the region the scan "
        "is unchanged.",
        *(one.in_words for one in nipples),
        *(f"Warning: {sentence}." for sentence in sentences(prediction.warnings, "page")),
        disclaimer(warning),
    ]
    sheet = ClinicalSheet(
        title,
        f"{prediction.region.called.capitalize()} from the rest of the torso: "
        f"\N{PLUS-MINUS SIGN} {inside.mean():.1f} mm on average (one standard deviation).\n{fields(made_with)}",
        pictures,
        ["measure (straight)", "other side", "predicted", "\N{PLUS-MINUS SIGN} 1 sd", "mirror image"],
        [measure_row(one, in_words=True) for one in measures],
        frozenset({0}) if measures else frozenset(),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder)


def measure_row(one: Measure, *, in_words: bool) -> list[str]:
    """A measure for people: name, other side, predicted, standard deviation, mirror image."""
    digits = 1 if one.unit == "mm" else 0
    other, predicted, spread, mirrored = (
        in_cm(value, one.unit, digits) for value in (one.other, one.value, one.sd, one.mirrored)
    )
    if spread.startswith(zero := f"{0:.{digits}f} "):  # too small for the digits shown, but not zero
        spread = f"< {10.0**-digits:g} {spread.removeprefix(zero)}"
    return [measure_in_words(one.name) if in_words else one.name, other, predicted, spread, mirrored]


@dataclass(frozen=True, eq=False)
class Example:
    """One row of the figure.

    Attributes
    ----------
    label : str
    scan : (n, 3) float
        Upright.
    prediction : Prediction
    truth : (n, 3) float, optional
    """

    label: str
    scan: Floats
    prediction: Prediction
    truth: Floats | None = None


def save_prediction_figure(examples: Sequence[Example], path: Path) -> None:
    """Write the paper's figure of predicted breasts as a PNG: one row an example.

    From left to right: the scan with the missing region in red, the prediction, the truth where every example has
    one, the uncertainty, and the mirror image.
    """
    most = scale_of([one.prediction for one in examples])
    with_truth = all(one.truth is not None for one in examples)
    cells: list[Picture] = []
    captions: list[str] = []
    for one in examples:
        columns = example_columns(one, most, with_truth)
        box = box_around([shape for _, shape, _ in columns])
        for k, (caption, shape, colors) in enumerate(columns):
            bar = caption == UNCERTAINTY
            size = (_PREDICTION_CELL[0] - _BAR, _PREDICTION_CELL[1]) if bar else _PREDICTION_CELL
            mesh = TriangleMesh(shape, one.prediction.faces)
            cell = render(mesh, towards(one.prediction), size=size, colors=colors, box=box)
            cells.append(
                np.concatenate([cell, colour_bar(_PREDICTION_CELL[1], most)], axis=1) if bar else cell
            )
            captions.append(f"{one.label}: {caption}" if k == 0 else caption)
    save_sheet(cells, captions, path, columns=len(cells) // len(examples))


def example_columns(one: Example, most: float, with_truth: bool) -> list[tuple[str, Floats, Floats | None]]:
    """Title, shape and colours of an example's pictures; uncertainty is coloured from 0 to ``most`` mm."""
    found = one.prediction
    columns: list[tuple[str, Floats, Floats | None]] = [
        ("missing", one.scan, painted(found.region.missing)),
        (PREDICTED, found.shape, None),
    ]
    if with_truth and one.truth is not None:
        columns.append(("truth", one.truth, None))
    columns.append((UNCERTAINTY, found.shape, _heat(found, most)))
    return columns if found.region.side == BOTH else [*columns, (MIRRORED, found.mirrored, None)]


def towards(prediction: Prediction) -> View:
    """From the front and somewhat from the side of the predicted breast."""
    return View(yaw={"left": 25.0, "right": -25.0}.get(prediction.region.side, 0.0))


def scale_of(predictions: Sequence[Prediction]) -> float:
    """A round end for the colours of the uncertainty, mm."""
    most = max(float(np.quantile(one.sd_normal[one.region.missing], 0.99)) for one in predictions)
    return _STEP * max(1.0, float(np.ceil(most / _STEP)))


def painted(region: Bools) -> Floats:
    """Skin with a red region, (n, 3)."""
    return np.where(region[:, None], _MISSING, SKIN)


def _heat(prediction: Prediction, most: float) -> Floats:
    colors = colormap(prediction.sd_normal, 0.0, most, AMOUNT)
    return np.where(prediction.region.missing[:, None], colors, SKIN)


def colour_bar(height: int, most: float) -> Picture:
    """A colour bar from 0 to ``most`` mm, (height, 54, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    top, bottom, left = height // 8, height - height // 8, 6
    ramp = colormap(np.linspace(most, 0.0, bottom - top), 0.0, most, AMOUNT)
    out = np.full((height, _BAR, 3), 255, np.uint8)
    out[top:bottom, left : left + 12] = np.round(255 * ramp)[:, None].astype(np.uint8)
    image = Image.fromarray(out)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=11)
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (bottom - top - 1)
        draw.line([(left + 12, y), (left + 15, y)], fill="black")
        draw.text((left + 18, y), f"{share * most:g}", fill="black", anchor="lm", font=font)
    draw.text((left, top - 12), "mm", fill="black", anchor="lm", font=font)
    return np.asarray(image)


def vertex_colors(prediction: Prediction) -> tuple[np.ndarray, float]:
    """The uncertainty as vertex colours (n, 4) uint8, and the mm of its strongest colour."""
    most = scale_of([prediction])
    rgb = np.round(255 * _heat(prediction, most)).astype(np.uint8)
    return np.column_stack([rgb, np.full(len(rgb), 255, np.uint8)]), most
