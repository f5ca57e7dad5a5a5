"""How usual a shape is: one judgement for the gauge, the strip and the notes."""

from __future__ import annotations

from typing import Any

import numpy as np

from breastmorph.clinical.edit.plausibility import unusual_about, usual_length
from breastmorph.clinical.edit.result import Edit
from breastmorph.explorer.page_words import in_page_words
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel

_USUAL, _UNUSUAL = 2.0, 3.0  # standard deviations of a single number, as rare as the whole shape
_HARDLY = 4.5  # standard deviations of a single measure that hardly anybody has
_LEVELS = ("usual", "unusual", "implausible")
_TEXTS = (
    "A shape that is usual in the model's population",
    "An unusual shape, at the edge of the model's population",
    "The model has hardly any shape like this",
)


def judged(model: ShapeModel, scores: Floats, edit: Edit | None = None) -> dict[str, Any]:
    """The worst of two judgements: by the page's modes, and by all that an edit says of itself.

    Parameters
    ----------
    model : ShapeModel
    scores : (k,) float
        Of the page's modes, in standard deviations.
    edit : Edit, optional
        Where the shape is an edited one.
    """
    used = model.truncate(max(len(scores), 1)) if len(scores) < model.n_components else model
    distance = float(np.linalg.norm(scores))
    level = _by_distance(used, distance)
    reasons = []
    far = np.flatnonzero(np.abs(scores) > _UNUSUAL)
    if len(far):
        level = max(level, 1)
        reasons.append(f"mode {far[0] + 1} lies at {scores[far[0]]:+.1f} standard deviations")
    if edit is not None:
        own, said = _of_edit(model, edit)
        level = max(level, own)
        reasons = said or reasons
    share = used.plausibility(scores * model.deviations[: len(scores)])
    text = "; ".join([_TEXTS[level], *reasons[:1]])
    return {"plausibility": share, "level": _LEVELS[level], "text": text}


def _by_distance(model: ShapeModel, distance: float) -> int:
    return sum(distance > usual_length(model, limit) for limit in (_USUAL, _UNUSUAL))


def _of_edit(model: ShapeModel, edit: Edit) -> tuple[int, list[str]]:
    """Level and reasons of what the edit's notes say; all of the model's components count."""
    said = unusual_about(edit, model, _UNUSUAL)
    level = int(bool(said))
    asked = [abs(one.deviations) for one in edit.changes if one.deviations is not None]
    deviations = np.where(model.variances > 0.0, model.deviations, np.inf)
    after, before = (
        float(np.linalg.norm(one / deviations)) for one in (edit.coefficients, edit.coefficients_before)
    )
    too_far = after > max(before, usual_length(model, _UNUSUAL))
    folded = any("folded" in one for one in edit.warnings)
    if too_far or folded or max(asked, default=0.0) > _HARDLY:
        level = 2
    reasons = [*said, *(one for one in edit.warnings if "folded" in one)]
    return level, [in_page_words(one) for one in reasons]
