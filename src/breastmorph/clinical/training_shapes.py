"""The subjects behind a model: as a cohort or the model keeps them, otherwise drawn to fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.cohort.review import SAME, without_copies
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.topology import linked
from breastmorph.model.building import usable
from breastmorph.model.shape_model import ShapeModel

_FEWEST_SUBJECTS = 5  # for a leave-one-out study


@dataclass(frozen=True, eq=False)
class TrainingShapes:
    """Shapes in a model's correspondence.

    Attributes
    ----------
    count : int
    shape : callable
        From a subject's number to her shape (n, 3), mm, in a frame of her own.
    source : str
        Where they come from, in words.
    lost_variance : float
        Variance of a coordinate that the subjects have beyond these shapes, mm squared: what a truncation cut off.
    columns : mapping from name to (count,) float
        Numbers that a table has of them (age, weight), NaN where unknown.
    """

    count: int
    shape: Callable[[int], Floats]
    source: str
    lost_variance: float
    columns: Mapping[str, Floats] = field(default_factory=dict)


def training_shapes(model: ShapeModel, cohort: Cohort | None = None, seed: int = 0) -> TrainingShapes:
    """The subjects of a model.

    Without a cohort and without stored coefficients, subjects are drawn such that their mean and covariance are exactly
    the model's. Leave-one-out over them tells what a model of so many subjects misses, as far as people are normally
    distributed about the mean; no data of a person is needed.

    Parameters
    ----------
    model : ShapeModel
    cohort : Cohort, optional
        The registered scans that the model was built from.
    seed : int
        Of the drawn subjects.
    """
    if cohort is not None:
        found = without_copies(usable(cohort))  # a left-out subject must not have a twin
        if not np.array_equal(found.template.mesh.faces, model.faces):
            raise BreastMorphError(
                "the cohort does not have the model's triangles",
                "Give the registered folder that the model was built from",
            )
        subjects = TrainingShapes(len(found), found.shape, f"{len(found)} registered subjects", 0.0)
    elif model.training is not None:
        once, known = _different(model, model.training.scores), model.training.columns
        subjects = replace(
            _of_scores(model, model.training.scores[once], f"the model's {len(once)} subjects"),
            columns={name: values[once] for name, values in known.items()},
        )
    else:
        scores = _drawn(model, seed)
        subjects = _of_scores(
            model, scores, f"{len(scores)} subjects drawn to fit the model, which keeps none"
        )
    if subjects.count < _FEWEST_SUBJECTS:
        enough = "a model of" if cohort is None else "a cohort with both breasts of"
        raise BreastMorphError(
            "a prediction needs more than {count} subjects",
            "Use {enough} at least {fewest_subjects}",
            count=subjects.count,
            enough=enough,
            fewest_subjects=_FEWEST_SUBJECTS,
        )
    return subjects


def _of_scores(model: ShapeModel, scores: Floats, source: str) -> TrainingShapes:
    return TrainingShapes(len(scores), lambda i: model.instance(scores[i]), source, model.noise_variance)


def _different(model: ShapeModel, scores: Floats) -> Ints:
    """Which of the scores (k, q) have every subject once."""
    # Of a truncated model too little is left to tell two people from one: only equal scores are copies.
    copies = SAME * np.sqrt(model.n_vertices)
    groups = linked(scores, copies) if not model.noise_variance else np.round(scores, 2)
    found: Ints = np.sort(np.unique(groups, axis=0, return_index=True)[1])
    return found


def _drawn(model: ShapeModel, seed: int) -> Floats:
    """Coefficients (k, q) with mean 0 and exactly the model's variances."""
    known = model.info.get("subjects")
    q = model.n_components
    k = max(known if isinstance(known, int) else 0, q + 1)
    columns = np.random.default_rng(seed).standard_normal((k, q))
    columns -= columns.mean(axis=0)
    orthonormal = np.linalg.qr(columns)[0]
    found: Floats = orthonormal * (np.sqrt(k - 1.0) * model.deviations)
    return found
