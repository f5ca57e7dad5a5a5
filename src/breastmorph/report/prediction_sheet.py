"""Pictures of predicted breasts: the sheet of one prediction, and the figure of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.predicted_measures import PredictedNipple
from breastmorph.clinical.prediction import Prediction
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.messages import READERS, sentences
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.document import Identity, Page, Panels, Text
from breastmorph.report.examination_sheet import SIDES_NOTE
from breastmorph.report.measure_tables import PREDICTED as PREDICTED_COLUMNS
from breastmorph.report.measure_tables import table_of
from breastmorph.report.render import (
    AMOUNT,
    SKIN,
    ColourScale,
    View,
    box_around,
    cameras_around,
    render,
    views_of,
)
from breastmorph.report.sheet import Layout, print_page

_VIEWS = (View(), View(yaw=40.0), View(yaw=-40.0))
_SIZE, _CELL = (330, 270), (260, 280)
_MISSING = np.array([0.80, 0.25, 0.22])
PREDICTED, UNCERTAINTY, MIRRORED = (
    "predicted",
    "standard deviation",
    "mirrored",
)  # titles of the figure's columns
_STEP = 2.0  # mm: ends of the colour bar are multiples of it


def disclaimer(warning: str) -> str:
    """What every sheet of a computed shape says; one with a warning does not speak of planning."""
    purpose = "" if warning else " for planning talks"
    return f"A computed shape{purpose}; no prediction of the result of an operation."


def prediction_page(
    prediction: Prediction,
    scan: Floats,
    measures: Sequence[Measure],
    identity: Identity,
    *,
    nipples: Sequence[PredictedNipple] = (),
    as_if: bool = False,
    warning: str = "",
) -> Page:
    """A prediction as a page: scan, prediction, uncertainty, mirror image, and the measures.

    Parameters
    ----------
    prediction : Prediction
    scan : (n, 3) float
        The shape it was made for, upright.
    measures : sequence of Measure
        The first one stands out.
    identity : Identity
    nipples : sequence of PredictedNipple
    as_if : bool
        Whether the breast is there and was predicted as if it were missing.
    warning : str
        What must not be overlooked, for example that the model is a synthetic one.
    """
    region, called = prediction.region, prediction.region.called
    scale = ColourScale(0.0, scale_of([prediction]), AMOUNT)
    cameras = cameras_around(np.vstack([scan, prediction.shape, prediction.mirrored]), _VIEWS, _SIZE)

    def row(label: str, shape: Floats, colors: Floats | None = None) -> Panels:
        return Panels(label, views_of(TriangleMesh(shape, prediction.faces), cameras, colors))

    rows = [
        row("Scan, the missing region in red", scan, painted(region.missing)),
        row("Prediction: the likeliest shape", prediction.shape),
        replace(
            row(
                "Uncertainty: standard deviation along the skin's normal",
                prediction.shape,
                scale.of(prediction.sd_normal, region.missing),
            ),
            scale=scale,
        ),
    ]
    if region.side != BOTH:
        rows.append(row("For comparison: the mirror image of the other breast", prediction.mirrored))
    evidence = "all known points"
    if prediction.evidence == "surface":
        evidence = f"the surface of {'the thorax' if region.side == BOTH else 'the other breast'}"
    notes = (
        SIDES_NOTE,
        f"Predicted from {evidence}: {prediction.choice.mirror_share:.0%} of the mirror image as it is, the rest by "
        f"the model with a noise of {prediction.choice.noise:.1f} mm, the likeliest for left-out ones of "
        f"{prediction.source}.",
        f"At the border the prediction met the scan within {prediction.mismatch:.1f} mm; outside the region the scan "
        "is unchanged.",
        *(nipple.in_words for nipple in nipples),
        *(f"Warning: {sentence}." for sentence in sentences(prediction.warnings, READERS)),
        disclaimer(warning),
    )
    first = measures[0] if measures else None
    return Page(
        f"{identity.patient}: predicted {called}{', as if it were missing' if as_if else ''}",
        (*rows, table_of(measures, PREDICTED_COLUMNS, lambda measure: measure is first), Text(notes)),
        f"{called.capitalize()} from the rest of the torso: \N{PLUS-MINUS SIGN} "
        f"{prediction.sd_normal[region.breast].mean():.1f} mm on average (one standard deviation).",
        notice=warning,
        identity=replace(identity, side=f"{called} predicted"),
    )


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
    most = scale_of([example.prediction for example in examples])
    with_truth = all(example.truth is not None for example in examples)
    rows = []
    for example in examples:
        columns = example_columns(example, most, with_truth)
        box = box_around([shape for _, shape, _ in columns])
        pictures = tuple(
            render(
                TriangleMesh(shape, example.prediction.faces),
                towards(example.prediction),
                size=_CELL,
                colors=colors,
                box=box,
            )
            for _, shape, colors in columns
        )
        scale = ColourScale(0.0, most, AMOUNT, "standard deviation, mm")
        rows.append(Panels(example.label, pictures, tuple(title for title, *_ in columns), scale))
    layout = Layout((1.9 * len(rows[0].panels) + 1.8, 2.3 * len(rows) + 0.8), dpi=130)
    print_page(Page("", tuple(rows)), path.with_suffix(""), ("png",), layout)


def example_columns(
    example: Example, most: float, with_truth: bool
) -> list[tuple[str, Floats, Floats | None]]:
    """Title, shape and colours of an example's pictures; uncertainty is coloured from 0 to ``most`` mm."""
    found = example.prediction
    columns: list[tuple[str, Floats, Floats | None]] = [
        ("missing", example.scan, painted(found.region.missing)),
        (PREDICTED, found.shape, None),
    ]
    if with_truth and example.truth is not None:
        columns.append(("truth", example.truth, None))
    columns.append((UNCERTAINTY, found.shape, _uncertainty(found, most)))
    return columns if found.region.side == BOTH else [*columns, (MIRRORED, found.mirrored, None)]


def towards(prediction: Prediction) -> View:
    """From the front and somewhat from the side of the predicted breast."""
    return View(yaw={"left": 25.0, "right": -25.0}.get(prediction.region.side, 0.0))


def scale_of(predictions: Sequence[Prediction]) -> float:
    """A round end for the colours of the uncertainty, mm."""
    most = max(float(np.quantile(found.sd_normal[found.region.missing], 0.99)) for found in predictions)
    return _STEP * max(1.0, float(np.ceil(most / _STEP)))


def painted(region: Bools) -> Floats:
    """Skin with a red region, (n, 3)."""
    return np.where(region[:, None], _MISSING, SKIN)


def _uncertainty(prediction: Prediction, most: float) -> Floats:
    return ColourScale(0.0, most, AMOUNT).of(prediction.sd_normal, prediction.region.missing)


def vertex_colors(prediction: Prediction) -> tuple[np.ndarray, float]:
    """The uncertainty as vertex colours (n, 4) uint8, and the mm of its strongest colour."""
    most = scale_of([prediction])
    rgb = np.round(255 * _uncertainty(prediction, most)).astype(np.uint8)
    return np.column_stack([rgb, np.full(len(rgb), 255, np.uint8)]), most
