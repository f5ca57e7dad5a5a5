"""Sample a model: random shapes, and its modes at some standard deviations from the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.model.shape_model import ShapeModel


@dataclass(frozen=True, eq=False)
class SampleRequest:
    """Which shapes of a model to make.

    Attributes
    ----------
    model : ShapeModel
    number : int, optional
        Random shapes; by default 10, or none where modes are asked for.
    seed : int
        Same seed, same shapes.
    modes : int
        So many first modes at minus and plus ``sd`` standard deviations, and the mean.
    sd : float
    components : int, optional
        Use only the first ones.
    """

    model: ShapeModel
    number: int | None = None
    seed: int = 1
    modes: int = 0
    sd: float = 3.0
    components: int | None = None


@dataclass(frozen=True, eq=False)
class SampledShapes:
    """Shapes by name, as coefficients of a model.

    Attributes
    ----------
    model : ShapeModel
        With the components that were asked for.
    coefficients : mapping from name to (q,) float
    """

    model: ShapeModel
    coefficients: Mapping[str, Floats]


def sample(request: SampleRequest) -> SampledShapes:
    """Choose the coefficients of the shapes asked for."""
    model = request.model
    if request.components is not None and request.components < model.n_components:
        model = model.truncate(request.components)
    found: dict[str, Floats] = {}
    for k in range(min(request.modes, model.n_components)):
        for sign, word in ((-1.0, "minus"), (1.0, "plus")):
            name = f"mode_{k + 1:02d}_{word}_{request.sd:g}_sd"
            found[name] = sign * request.sd * np.diag(model.deviations)[k]
    if request.modes:
        found["mean"] = np.zeros(model.n_components)
    number = request.number if request.number is not None else 0 if request.modes else 10
    rng = np.random.default_rng(request.seed)
    for k in range(number):
        found[f"sample_{k:03d}"] = rng.standard_normal(model.n_components) * model.deviations
    return SampledShapes(model, found)
