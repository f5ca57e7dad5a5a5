"""What a model reveals about its training subjects: do its shapes copy them, can a subject be recognised in it?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.training_set import TrainingSet, counts_of, training_set, whole
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import PYTHON, Audience, note
from breastmorph.model.shape_model import ShapeModel

_FEWEST = 3  # subjects
_FEW = 20  # subjects; fewer are distinguished by little
_REPEATED = 0.5  # of the distance between people: a shape nearer to a subject shows that subject
_ALIKE = 10.0  # percent of the shapes: twice as many as of people
_USUAL = 5.0  # percent: real people nearer to each other than these are unusually alike


@dataclass(frozen=True)
class PrivacyParameters:
    """How much is computed.

    Attributes
    ----------
    samples : int
        Random shapes of the model.
    seed : int
    components : tuple of int
        Numbers of components (and all) at which subjects are tried to be recognised.
    """

    samples: int = 500
    seed: int = 0
    components: tuple[int, ...] = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class Nearness:
    """Distances to the nearest training subject over one region, mm, means of corresponding vertices.

    Attributes
    ----------
    region : str
    samples : float
        Median over the model's random shapes.
    nearest_sample : float
        The smallest of them.
    people : float
        Median over subjects, each to the nearest *other* subject: how near an unknown person comes.
    nearest_people : float
        The smallest of them.
    nearer_percent : float
        Random shapes that come nearer to a subject than all but 5 % of people do. About 5 if they differ from the
        subjects as people do; more where few subjects make a narrow model.
    """

    region: str
    samples: float
    nearest_sample: float
    people: float
    nearest_people: float
    nearer_percent: float

    @property
    def repeats(self) -> bool:
        """Whether the model repeats its subjects instead of drawing new people."""
        return self.samples < _REPEATED * self.people


@dataclass(frozen=True)
class Recognition:
    """How well a subject with a known scan can be recognised in the model with some components.

    Attributes
    ----------
    components : int
    subjects : float
        mm the model misses of its own subjects, mean.
    others : float
        mm it misses of a person it has not seen: the same subjects, each left out.
    chance : float
        That of a subject and a person not in the model, the error shows which is which: 0.5 is guessing, 1 is certain.
    """

    components: int
    subjects: float
    others: float
    chance: float


@dataclass(frozen=True)
class Privacy:
    """What a model reveals.

    Attributes
    ----------
    subjects : int
    keeps_scores : bool
        The model file holds the subjects' coefficients: the shape of each can be read from it.
    nearness : tuple of Nearness
    recognition : tuple of Recognition
    parameters : PrivacyParameters
    components : int
        Of the model; a model that leaves one subject out has one less, if the model has all it can have.
    """

    subjects: int
    keeps_scores: bool
    nearness: tuple[Nearness, ...]
    recognition: tuple[Recognition, ...]
    parameters: PrivacyParameters
    components: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file, without names of subjects."""
        return dict(plain(asdict(self)))

    def verdict(self, audience: Audience = PYTHON) -> list[str]:
        """What it means, in the words of an audience."""
        found = []
        if self.keeps_scores:
            found.append(
                note(
                    "privacy/keeps-scores",
                    "The model keeps the scores of its subjects: every one of their shapes can be read from "
                    "it. Do not release it; build it again without them.",
                ).cause.text(audience)
            )
        if self.subjects < _FEW:
            found.append(
                f"The model has {self.subjects} subjects only: its mean and components say much about each of them."
            )
        near = self.nearness[0]  # of the whole torso
        found.append(
            f"A random shape of the model lies {near.samples:.1f} mm from the nearest subject, a person it has "
            f"not seen {near.people:.1f} mm (medians). {_likeness(near)}"
        )
        last = self.recognition[-1]
        by = f"all its {last.components} components"
        if last.components < self.components:
            by = (
                f"{last.components} of its {self.components} components, all that a model without one of its "
                "subjects has"
            )
        found.append(
            f"Who has a subject's scan can tell with {100 * last.chance:.0f} % certainty that she is in this model "
            f"(50 % is guessing; measured with {by})."
        )
        safer = [one for one in self.recognition if one.chance < 0.75 and one.components < last.components]
        if last.chance >= 0.75 and safer:
            found.append(
                note(
                    "privacy/fewer-components",
                    "With {components} components it would be {chance:.0f} %.",
                    components=safer[-1].components,
                    chance=100 * safer[-1].chance,
                ).cause.text(audience)
            )
        return found


def _likeness(near: Nearness) -> str:
    """Whether random shapes are copies of subjects, unusually like them, or new people."""
    if near.repeats:
        return (
            "Its shapes lie less than half as far from a subject as people do. "
            "It repeats its subjects: do not release it."
        )
    share = f"{near.nearer_percent:.0f} % of its shapes are more like a subject than 95 % of people are like another"
    if near.nearer_percent > _ALIKE:
        return (
            f"{share}; of new people it would be about {_USUAL:.0f} %. So its shapes are no copies of subjects, but "
            "they vary about them less than new people would, as in models of few subjects."
        )
    return f"{share}, which is what new people would give (about {_USUAL:.0f} %): its shapes are no copies."


def measure_privacy(
    model: ShapeModel, cohort: Cohort, parameters: PrivacyParameters | None = None
) -> Privacy:
    """Measure what a model reveals about the subjects it was built from.

    Parameters
    ----------
    model : ShapeModel
    cohort : Cohort
        Its subjects.
    parameters : PrivacyParameters, optional
    """
    p = parameters or PrivacyParameters()
    with one_thread():
        training = training_set(model, cohort)
        if len(np.unique(training.groups)) < _FEWEST:
            raise BreastMorphError(
                "{n_cohort} subjects are too few to compare",
                "Give at least {fewest} different ones",
                n_cohort=len(cohort),
                fewest=_FEWEST,
            )
        if not model.n_components:
            raise BreastMorphError(
                "the model has no components: it knows one shape only", "Use another model"
            )
        return Privacy(
            len(training.cohort),
            model.training is not None,
            tuple(_nearness(model, training, name, inside, p) for name, inside in training.regions.items()),
            _recognition(model, training, p),
            p,
            model.n_components,
        )


def _nearness(
    model: ShapeModel, training: TrainingSet, name: str, inside: Bools, p: PrivacyParameters
) -> Nearness:
    all_components = np.array([model.n_components])
    region = {name: inside}
    samples = specificity(model, training.shapes, region, p.samples, p.seed, all_components)[name].values[
        :, 0
    ]
    people = _to_nearest_other(training.shapes[:, inside], training.groups, len(training.cohort))
    usual = float(np.percentile(people, _USUAL))
    return Nearness(
        name,
        float(np.median(samples)),
        float(samples.min()),
        float(np.median(people)),
        float(people.min()),
        float(100.0 * (samples < usual).mean()),
    )


def _to_nearest_other(shapes: Floats, groups: Ints, subjects: int) -> Floats:
    """Distance of every subject to the nearest shape that is not her own, (k,)."""
    nearest = np.empty(subjects)
    for i in range(subjects):
        others = np.flatnonzero(groups != groups[i])
        nearest[i] = min(float(np.linalg.norm(shapes[j] - shapes[i], axis=1).mean()) for j in others)
    return nearest


def _recognition(model: ShapeModel, training: TrainingSet, p: PrivacyParameters) -> tuple[Recognition, ...]:
    subjects = np.arange(len(training.cohort))
    folds = LeaveOneOut(training.shapes, training.groups, subjects)
    most = min(model.n_components, folds.most_components)
    counts = counts_of(p.components, most)
    others = folds.point_distances(whole(model.n_vertices), counts)[:, :, 0]
    own = np.empty_like(others)
    for i in subjects:
        rest = (training.shapes[i] - model.mean).ravel()
        scores = rest @ model.basis
        for c, count in enumerate(counts):
            left = rest - model.basis[:, :count] @ scores[:count]
            own[i, c] = np.linalg.norm(left.reshape(-1, 3), axis=1).mean()
    return tuple(
        Recognition(int(count), float(subject.mean()), float(other.mean()), _chance(subject, other))
        for count, subject, other in zip(counts, own.T, others.T, strict=True)
    )


def _chance(own: Floats, others: Floats) -> float:
    """Probability that a subject's error is smaller than another person's (area under the ROC curve)."""
    smaller = (own[:, None] < others).mean() + 0.5 * (own[:, None] == others).mean()
    return float(smaller)
