"""How usual an edited shape is in its model, in words."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, norm

from breastmorph.clinical.edit.result import Edit
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel


def usual_length(model: ShapeModel, deviations: float) -> float:
    """Mahalanobis distance that is as rare in the model as so many standard deviations are for a single number."""
    return float(np.sqrt(chi2.isf(2.0 * norm.sf(deviations), max(model.n_components, 1))))


def unusual_about(edit: Edit, model: ShapeModel, deviations: float) -> list[str]:
    """What lies beyond so many standard deviations: values asked for, single components, the whole shape."""
    found = [
        f"{change.name}: the value asked for lies {abs(change.deviations):.1f} standard deviations "
        f"{'above' if change.deviations > 0 else 'below'} the model's mean at this size"
        for change in edit.changes
        if change.deviations is not None and abs(change.deviations) > deviations
    ]
    after, before = (_in_deviations(c, model) for c in (edit.coefficients, edit.coefficients_before))
    beyond = np.flatnonzero((after > deviations) & (after > before + 1e-6))
    if len(beyond):
        worst = int(beyond[after[beyond].argmax()])
        found.append(
            f"the edited shape is unusual: component {worst + 1} at {after[worst]:.1f} standard deviations"
            + (f" and {len(beyond) - 1} more beyond {deviations:g}" if len(beyond) > 1 else "")
        )
    usual, distance = usual_length(model, deviations), float(np.linalg.norm(after))
    if distance > max(usual, float(np.linalg.norm(before))):
        found.append(
            f"the edited shape lies {distance:.1f} standard deviations from the mean; up to {usual:.1f} are usual "
            f"for a model of this many components ({len(after)})"
        )
    return found


def _in_deviations(coefficients: Floats, model: ShapeModel) -> Floats:
    size = np.abs(coefficients)
    return np.divide(size, model.deviations, out=np.zeros_like(size), where=model.variances > 0.0)
