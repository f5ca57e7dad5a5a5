"""Pictures of predictions: a page for the clinic, and the paper's figure of predicted breasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from breastmorph.clinical.prediction import PredictedMeasure
from breastmorph.clinical.predictor import Prediction
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import measure_in_words, sentences
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.clinical_sheet import (
    ClinicalSheet,
    disclaimer,
    in_cm,
    save_clinical_sheet,
    save_sheet,
    with_unit,
)
from breastmorph.report.render import SKIN, Picture, View, box_around, colormap, render

_PREDICTION_VIEWS = (View(), View(yaw=40.0), View(yaw=-40.0))
_PREDICTION_SIZE = (330, 270)
_PREDICTION_CELL = (260, 280)
_MISSING = np.array([0.80, 0.25, 0.22])
COLORS = "viridis"
# Titles of columns of the figure.
PREDICTED, UNCERTAINTY, MIRRORED = "predicted", "standard deviation", "mirrored"
_BAR = 54  # pixels that a colour bar takes
_STEP = 2.0  # mm: ends of the colour bar are multiples of it


def save_prediction_sheet(
    prediction: Prediction,
    scan: Floats,
    measures: Sequence[PredictedMeasure],
    title: str,
    folder: Path,
    warning: str = "",
) -> list[Path]:
    """Write a prediction as a page: scan, prediction, uncertainty, mirror image, and the measures; PNG and PDF.

    Parameters
    ----------
    prediction : Prediction
    scan : (n, 3) float
        The shape it was made for, upright.
    measures : sequence of PredictedMeasure
    title : str
    folder : Path
    warning : str
        What nobody may overlook, for example that the model is a synthetic one.
    """
    faces, most = prediction.faces, scale_of([prediction])
    box = box_around([scan, prediction.shape, prediction.mirrored])
    rows: list[tuple[str, Floats, Floats | None]] = [
        ("Scan, the missing region in red", scan, painted(prediction.region.missing)),
        ("Prediction: the likeliest shape", prediction.shape, None),
        (
            "Uncertainty: standard deviation along the skin's normal",
            prediction.shape,
            _heat(prediction, most),
        ),
        ("For comparison: the mirror image of the other breast", prediction.mirrored, None),
    ]
    pictures = []
    for k, (label, shape, colors) in enumerate(rows):
        mesh = TriangleMesh(shape, faces)
        row = [
            render(mesh, view, size=_PREDICTION_SIZE, colors=colors, box=box) for view in _PREDICTION_VIEWS
        ]
        # As wide in every row, so that all are drawn at one scale.
        row.append(
            colour_bar(_PREDICTION_SIZE[1], most)
            if k == 2
            else np.full((_PREDICTION_SIZE[1], _BAR, 3), 255, np.uint8)
        )
        pictures.append((label, row))
    known = "the surface of the other breast" if prediction.evidence == "surface" else "all known points"
    inside = prediction.sd_normal[prediction.region.breast]
    notes = [
        f"Predicted from {known}. Details: noise {prediction.choice.noise:.1f} mm and mirror share "
        f"{prediction.choice.mirror_share:g}, by leave-one-out likelihood over {prediction.source}.",
        f"At the border the prediction met the scan within {prediction.mismatch:.1f} mm; outside the region the scan "
        "is unchanged.",
        *(f"Warning: {sentence}." for sentence in sentences(prediction.warnings, "page")),
        disclaimer(warning),
    ]
    sheet = ClinicalSheet(
        title,
        f"The {prediction.region.side} breast from the rest of the torso: "
        f"\N{PLUS-MINUS SIGN} {inside.mean():.1f} mm on average (one standard deviation).",
        pictures,
        ["measure (straight)", "other side", "predicted", "\N{PLUS-MINUS SIGN} 1 sd", "mirror image"],
        [measure_row(one, for_people=True) for one in measures],
        frozenset({0}) if measures else frozenset(),
        notes,
        warning,
    )
    return save_clinical_sheet(sheet, folder)


def measure_row(one: PredictedMeasure, *, for_people: bool) -> list[str]:
    """A measure as text: name, other side, predicted, standard deviation, mirror image.

    See :mod:`breastmorph.report.clinical_sheet`.
    """
    digits = 0 if one.unit == "cc" else 1
    shown = in_cm if for_people else with_unit
    other, predicted, spread, mirrored = (
        shown(value, one.unit, digits) for value in (one.other, one.predicted, one.deviation, one.mirrored)
    )
    if spread.startswith(zero := f"{0:.{digits}f} "):  # too small for the digits shown, but not zero
        spread = f"< {10.0**-digits:g} {spread.removeprefix(zero)}"
    return [measure_in_words(one.name) if for_people else one.name, other, predicted, spread, mirrored]


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
    return [*columns, (UNCERTAINTY, found.shape, _heat(found, most)), (MIRRORED, found.mirrored, None)]


def towards(prediction: Prediction) -> View:
    """From the front and somewhat from the side of the predicted breast."""
    return View(yaw=25.0 if prediction.region.side == "left" else -25.0)


def scale_of(predictions: Sequence[Prediction]) -> float:
    """A round end for the colours of the uncertainty, mm."""
    most = max(float(np.quantile(one.sd_normal[one.region.missing], 0.99)) for one in predictions)
    return _STEP * max(1.0, float(np.ceil(most / _STEP)))


def painted(region: Bools) -> Floats:
    """Skin with a red region, (n, 3)."""
    return np.where(region[:, None], _MISSING, SKIN)


def _heat(prediction: Prediction, most: float) -> Floats:
    colors = colormap(prediction.sd_normal, 0.0, most, COLORS)
    return np.where(prediction.region.missing[:, None], colors, SKIN)


def colour_bar(height: int, most: float) -> Picture:
    """A colour bar from 0 to ``most`` mm, (height, 54, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    top, bottom, left = height // 8, height - height // 8, 6
    ramp = colormap(np.linspace(most, 0.0, bottom - top), 0.0, most, COLORS)
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
