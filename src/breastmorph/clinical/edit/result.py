"""What an edit returns: the shape, and every measure before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.plain import plain


@dataclass(frozen=True)
class Change:
    """One measure before and after.

    Attributes
    ----------
    name, unit : str
    before, after : float
        NaN for a column of the cohort's table, which no shape tells.
    requested : float, optional
        The value asked for; that before, where the measure was held.
    held : bool
    deviations : float, optional
        Of the value asked for, from the population's mean, in standard deviations at this subject's size.
    """

    name: str
    unit: str
    before: float
    after: float
    requested: float | None = None
    held: bool = False
    deviations: float | None = None

    @property
    def error(self) -> float | None:
        """What was attained minus what was asked for."""
        return None if self.requested is None else self.after - self.requested


@dataclass(frozen=True, eq=False)
class Edit:
    """An edited shape.

    Attributes
    ----------
    shape : (n, 3) float
        In the patient's upright frame, mm.
    before : (n, 3) float
    coefficients, coefficients_before : (q,) float
    length : float
        Of the change, in the model's standard deviations.
    size_change : float
        Relative change of the size that all coefficients share.
    changes : tuple of Change
        The measures asked for and held first, then all others.
    movements : mapping from region to float
        Root mean square movement in mm.
    method : str
        "exact" or "linear".
    basis : str
        What a regression was trained on; empty where none was used.
    warnings : tuple of str
    """

    shape: Floats
    before: Floats
    coefficients: Floats
    coefficients_before: Floats
    length: float
    size_change: float
    changes: tuple[Change, ...]
    movements: Mapping[str, float]
    method: str
    basis: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def largest_error(self) -> float:
        """Of the measures asked for and held, mm or cc."""
        return max(
            (abs(c.error) for c in self.changes if c.error is not None and np.isfinite(c.error)), default=0.0
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "method": self.method,
            "trained_on": self.basis,
            "changes": [
                {
                    "name": c.name,
                    "unit": c.unit,
                    "before": plain(c.before),
                    "requested": plain(c.requested),
                    "after": plain(c.after),
                    "error": plain(c.error),
                    "held": c.held,
                    "requested_sd": plain(c.deviations),
                }
                for c in self.changes
            ],
            "movement_mm": plain(dict(self.movements)),
            "length_sd": self.length,
            "size_change": self.size_change,
            "coefficients_before": self.coefficients_before.tolist(),
            "coefficients": self.coefficients.tolist(),
            "warnings": list(self.warnings),
        }
