"""The value of an edit: the shape, every measure before and after, and what is unusual about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr

from breastmorph.clinical.measure_table import Measure
from breastmorph.foundation.arrays import Floats, Ints, Shown, doubted
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import Finding, sentences, warning
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.plausibility import LEVELS, Plausibility
from breastmorph.model.shape_model import ShapeModel


@dataclass(frozen=True, eq=False)
class Edit(Shown):
    """An edited shape.

    Attributes
    ----------
    shape : (n, 3) float
        In the patient's upright frame, mm.
    before : (n, 3) float
    faces : (m, 3) int
    coefficients, coefficients_before : (q,) float
    length : float
        Of the change, in the model's standard deviations.
    size_change : float
        Relative change of the size that all coefficients share.
    changes : tuple of Measure
        The measures asked for and constrained first, then all others.
    movements : mapping from region to float
        Root mean square movement in mm.
    method : str
        "exact" or "linear".
    basis : str
        What a regression was trained on; empty where none was used.
    warnings : tuple of Finding
    plausibility : Plausibility, optional
        How unusual the edited shape is among the model's subjects; None where a breast is absent.
    skin : (n, 4) uint8, optional
        The patient's.
    """

    shape: Floats
    before: Floats
    faces: Ints
    coefficients: Floats
    coefficients_before: Floats
    length: float
    size_change: float
    changes: tuple[Measure, ...]
    movements: Mapping[str, float]
    method: str
    basis: str = ""
    warnings: tuple[Finding, ...] = ()
    plausibility: Plausibility | None = None
    skin: NDArray[np.uint8] | None = None

    @property
    def standing(self) -> Plausibility | None:
        """What ``plausibility`` was called."""
        return self.plausibility

    @property
    def mesh(self) -> TriangleMesh:
        """The edited shape."""
        return TriangleMesh(self.shape, self.faces, self.skin)

    def __repr__(self) -> str:
        asked = ", ".join(
            f"{c.name} {c.before:.1f} to {c.after:.1f} {c.unit}".rstrip()
            for c in self.changes
            if c.requested is not None and not c.held
        )
        return f"Edit({asked}, {self.length:.1f} standard deviations{doubted(self.warnings)})"

    @property
    def largest_error(self) -> float:
        """Of the measures asked for and constrained, mm or cc."""
        return max(
            (abs(c.error) for c in self.changes if c.error is not None and np.isfinite(c.error)), default=0.0
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "units": "mm and cc; sd is one standard deviation of the value after",
            "method": self.method,
            "trained_on": self.basis,
            "changes": [
                {
                    "name": c.name,
                    "unit": c.unit,
                    "before": plain(c.before),
                    "requested": plain(c.requested),
                    "after": plain(c.after),
                    "sd": plain(c.sd),
                    "sd_source": c.source,
                    "error": plain(c.error),
                    "held": c.held,
                    "requested_sd": plain(c.deviations),
                }
                for c in self.changes
            ],
            "movement_mm": plain(dict(self.movements)),
            "length_sd": self.length,
            "size_change": self.size_change,
            "standing": self.plausibility.as_dict() if self.plausibility is not None else None,
            "coefficients_before": self.coefficients_before.tolist(),
            "coefficients": self.coefficients.tolist(),
            "warnings": sentences(self.warnings),
        }


_WORSE = 0.005  # share of the subjects: who was as unusual before is not warned


def usual_length(model: ShapeModel, deviations: float) -> float:
    """Mahalanobis distance that is as rare in the model as so many standard deviations are for a single number.

    It bounds the length of a change. How unusual the edited shape is, :mod:`breastmorph.model.plausibility` says: the
    two differ for a patient who was unusual before.
    """
    return float(np.sqrt(chdtri(max(model.n_components, 1), 2.0 * ndtr(-deviations))))


FOLDED = "edit-folded"  # code of a warning: look at the shape


def unusual_about(edit: Edit, before: Plausibility | None, deviations: float) -> list[Finding]:
    """What lies beyond so many standard deviations of the values asked for, and the shape if it became unusual."""
    found = [
        warning(
            "unusual-value/above" if change.deviations > 0 else "unusual-value/below",
            "{name:measure}: the value asked for lies {deviations:.1f} standard deviations above the "
            "model's mean at this size"
            if change.deviations > 0
            else "{name:measure}: the value asked for lies {deviations:.1f} standard deviations below the "
            "model's mean at this size",
            name=change.name,
            deviations=abs(change.deviations),
        )
        for change in edit.changes
        if change.deviations is not None and abs(change.deviations) > deviations
    ]
    now = edit.plausibility
    if now is not None and now.level != LEVELS[0] and (before is None or now.share > before.share + _WORSE):
        found.append(
            warning(
                "unusual-shape",
                "the edited shape is {level}: {standing}",
                level=now.level,
                standing=now.finding,
            )
        )
    return found
