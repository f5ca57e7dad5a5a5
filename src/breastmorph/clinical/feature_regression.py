"""The paper's linear feature editing: coefficients regressed on features, M = A F+ (section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.feature_requests import Feature
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel

_FEW = 64  # vertices: a feature of so few is read off them alone


@dataclass(frozen=True)
class RegressionParameters:
    """What a model without its subjects' scores is sampled for."""

    samples: int = 10_000
    costly_samples: int = 200  # for tape measures and volumes, which take the whole surface
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Regression:
    """Coefficients as a linear function of features.

    Attributes
    ----------
    names : tuple of str
        Features, then columns of the cohort's table.
    matrix : (q, l) float
        M without the constant's column, which no change of features uses.
    sizes : (l,) float
        Relative change of a subject's size per unit; 0 for features, which are measured at one size.
    source : str
        What it was trained on.
    """

    names: tuple[str, ...]
    matrix: Floats
    sizes: Floats
    source: str

    def step(self, deltas: Mapping[str, float]) -> Floats:
        """Change of the coefficients (q,) for changes of all features."""
        return self.matrix @ self._ordered(deltas)

    def size_step(self, deltas: Mapping[str, float]) -> float:
        """Relative change of the size for changes of all features."""
        return float(self.sizes @ self._ordered(deltas))

    def _ordered(self, deltas: Mapping[str, float]) -> Floats:
        return np.array([deltas[name] for name in self.names], dtype=float)


def regress(
    model: ShapeModel,
    features: Sequence[Feature],
    columns: Sequence[str],
    size: float,
    parameters: RegressionParameters | None = None,
) -> Regression:
    """Regress coefficients on features and columns.

    Parameters
    ----------
    model : ShapeModel
        Its subjects' scores are used when it keeps them, otherwise samples of it.
    features : sequence of Feature
    columns : sequence of str
        Of the cohort's table; they need the scores.
    size : float
        At which features are measured: that of the shape to be edited, relative to the model's.
    parameters : RegressionParameters, optional
    """
    p = parameters or RegressionParameters()
    supports = [_support(model, feature, size, p.seed) for feature in features]
    training = model.training
    if training is not None and len(training.scores) > len(features) + len(columns) + 1:
        scores, source = training.scores, f"the {len(training.scores)} subjects of the model"
    elif columns:
        count = 0 if training is None else len(training.scores)
        raise BreastMorphError(
            "{column} needs a model of more than {n} subjects",
            "Build the model of more subjects, keeping their scores and their table",
            code="too-few-subjects",
            n=count,
            column=columns[0],
        )
    else:
        few = all(support is not None for support in supports)
        count = max(p.samples if few else p.costly_samples, model.n_components + 50)
        scores, source = _samples(model, count, p.seed), f"{count:,} samples of the model"
    rows = [
        _values(model, feature, support, scores, size)
        for feature, support in zip(features, supports, strict=True)
    ]
    rows += [training.columns[name] for name in columns if training is not None]
    table = np.array(rows).reshape(-1, len(scores))
    known = np.isfinite(table).all(axis=0)
    if known.sum() <= len(table) + 1:
        raise BreastMorphError(
            "only {known} subjects have all of {columns}",
            "Give a fuller table",
            known=known.sum(),
            columns=", ".join(columns),
        )
    # Centred rows stand for the constant entry of f; scaled rows keep the pseudo-inverse well conditioned.
    table = table[:, known] - table[:, known].mean(axis=1, keepdims=True)
    scales = np.maximum(table.std(axis=1, keepdims=True), 1e-12)
    centred = scores[known] - scores[known].mean(axis=0)
    inverse = np.linalg.pinv(table / scales) / scales.T
    sizes = np.zeros(len(table))
    if columns and training is not None:
        # A heavier person is not only shaped otherwise but larger, which alignment took out of the coefficients.
        relative = training.scales[known] / training.scales[known].mean()
        sizes[len(features) :] = ((relative - 1.0) @ inverse)[len(features) :]
    names = (*(feature.name for feature in features), *columns)
    return Regression(names, centred.T @ inverse, sizes, source)


def population(model: ShapeModel, feature: Feature, size: float) -> tuple[float, float]:
    """Mean and standard deviation of a feature in the model at one size, to first order about the mean shape."""
    reading = feature.read(model.mean * size)
    slope = (reading.gradient.ravel() @ model.rows(reading.vertices)) * model.deviations * size
    return reading.value, float(np.linalg.norm(slope))


def _samples(model: ShapeModel, count: int, seed: int) -> Floats:
    """Random coefficients (count, q) whose mean is exactly 0 and whose covariance is exactly the model's.

    So a feature that is linear in the shape gets the exact regression, and only curvature is left to chance.
    """
    standard = np.random.default_rng(seed).standard_normal((count, model.n_components))
    standard -= standard.mean(axis=0)
    half = np.linalg.cholesky(standard.T @ standard / (count - 1))
    return np.linalg.solve(half, standard.T).T * model.deviations


def _support(model: ShapeModel, feature: Feature, size: float, seed: int) -> Ints | None:
    """The vertices that a feature depends on whatever the shape, when they are few; None otherwise.

    A straight distance is read off a few fixed vertices, a tape line runs over others in every shape.
    """
    rng = np.random.default_rng(seed)
    shapes = [model.mean, model.drawn(rng), model.drawn(rng)]
    found = [feature.read(size * shape).vertices for shape in shapes]
    few = len(found[0]) <= _FEW and all(np.array_equal(found[0], other) for other in found[1:])
    return found[0] if few else None


def _values(model: ShapeModel, feature: Feature, support: Ints | None, scores: Floats, size: float) -> Floats:
    """A feature of many shapes, (k,)."""
    if support is None:
        return np.array([feature.value(size * model.instance(score)) for score in scores])
    parts = (scores @ model.rows(support).T.astype(float)).reshape(len(scores), len(support), 3)
    out, shape = np.empty(len(scores)), model.mean * size
    for k, part in enumerate(parts):
        shape[support] = size * (model.mean[support] + part)
        out[k] = feature.value(shape)
    return out
