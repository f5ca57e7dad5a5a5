"""How right registrations are where the truth is known: correspondence, explained variation, variance.

Surface distance and angle distortion reward a collapsed cohort (points anywhere on the right surface); these do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from breastmorph.errors import FileProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.model.procrustes import align_shapes
from breastmorph.scan.landmarks import Landmarks
from breastmorph.template import Template


@dataclass(frozen=True, eq=False)
class Tie:
    """Where each template vertex lies on a cohort's fixed topology.

    Attributes
    ----------
    corners : (n, 3) int
        Vertices of the topology.
    weights : (n, 3) float
        Barycentric.
    """

    corners: Ints
    weights: Floats

    @classmethod
    def of(cls, template: Template, torso: TriangleMesh, landmarks: Landmarks) -> Tie:
        """Tie a template to the torso it was made from, wherever that lies."""
        names = [name for name in template.landmarks if name in landmarks]
        place = Similarity.fit(template.landmarks.array(names), landmarks.array(names), with_scale=False)
        found = Surface(torso).closest(place.apply(template.mesh.vertices))
        return cls(torso.faces[found.faces], found.weights)

    def at(self, values: Floats | Bools) -> Floats:
        """Values of the topology's vertices at the template's vertices."""
        weights = self.weights if values.ndim == 1 else self.weights[:, :, None]
        return (values[self.corners] * weights).sum(axis=1)


@dataclass(frozen=True, eq=False)
class SubjectTruth:
    """The truth of one subject at the template's vertices, in the scan file's frame.

    Attributes
    ----------
    points : (n, 3) float
    visible : (n,) bool
        Seen by the scanner.
    breast : (n,) bool
    """

    points: Floats
    visible: Bools
    breast: Bools


def load_truth(path: Path, tie: Tie) -> SubjectTruth:
    """Read ``truth/<id>.npz`` of a phantom cohort."""
    try:
        with np.load(path, allow_pickle=False) as parts:
            breast = (parts["breast_left"] | parts["breast_right"]).astype(float)
            return SubjectTruth(
                tie.at(parts["points"].astype(float)),
                tie.at(parts["visible"].astype(float)) > 0.9,
                tie.at(breast) > 0.5,
            )
    except (OSError, KeyError, ValueError, IndexError) as error:
        raise FileProblem(
            f"this is no truth file ({error})", "Make it with `breastmorph phantom`", path
        ) from error


def correspondence_error(registered: Floats, truth: SubjectTruth) -> tuple[float, float]:
    """Mean distance (mm) from where points are to where they belong: in the breast, and outside; where seen."""
    off = np.linalg.norm(registered - truth.points, axis=1)
    inside, outside = truth.breast & truth.visible, ~truth.breast & truth.visible
    return float(off[inside].mean()), float(off[outside].mean())


@dataclass(frozen=True)
class CohortTruth:
    """Figures of a whole cohort.

    Attributes
    ----------
    explained_breast, explained_outside : float
        Share of the true variation that the registrations recover, in the truth's own alignment: 1 is perfect,
        0 no better than the mean shape.
    sd_ratio_breast, sd_ratio_outside : float
        Standard deviation of the registered cohort over the true one.
    """

    explained_breast: float
    explained_outside: float
    sd_ratio_breast: float
    sd_ratio_outside: float


def cohort_truth(registered: Floats, truths: list[SubjectTruth]) -> CohortTruth:
    """Compare a registered cohort (k, n, 3), each shape in its scan's frame, with its truth."""
    aligned = align_shapes(np.stack([truth.points for truth in truths]))
    true = aligned.shapes
    found = np.stack([t.apply(shape) for t, shape in zip(aligned.transforms, registered, strict=True)])
    own = align_shapes(registered).shapes
    breast = np.mean([truth.breast for truth in truths], axis=0) > 0.5
    wrong = ((found - true) ** 2).sum(axis=2)
    spread = ((true - true.mean(axis=0)) ** 2).sum(axis=2)
    own_variance, true_variance = own.var(axis=0).sum(axis=1), true.var(axis=0).sum(axis=1)

    def explained(part: Bools) -> float:
        return float(1.0 - wrong[:, part].sum() / spread[:, part].sum())

    def ratio(part: Bools) -> float:
        return float(np.sqrt(own_variance[part].mean() / true_variance[part].mean()))

    return CohortTruth(explained(breast), explained(~breast), ratio(breast), ratio(~breast))
