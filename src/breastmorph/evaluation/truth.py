"""How right registrations are where the truth is known: correspondence, explained variation, variance.

Surface distance and angle distortion reward a collapsed cohort (points anywhere on the right surface); these do not.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.training_set import mean_of_known
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import plain
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.procrustes import align_shapes
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template

_DAMAGED = (OSError, LookupError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)
_TIED = 2.0  # mm on average


@dataclass(frozen=True, eq=False)
class Tie:
    """Where each template vertex lies on a cohort's fixed topology.

    Attributes
    ----------
    corners : (n, 3) int
        Vertices of the topology.
    weights : (n, 3) float
        Barycentric.
    off : float
        Mean distance in mm between the template and the torso it is tied to.
    """

    corners: Ints
    weights: Floats
    off: float = 0.0

    @classmethod
    def of(cls, template: Template, torso: TriangleMesh, landmarks: Landmarks) -> Tie:
        """Tie a template to the torso it was made from, wherever that lies."""
        names = [name for name in template.landmarks if name in landmarks]
        place = Similarity.fit(template.landmarks.array(names), landmarks.array(names), with_scale=False)
        found = Surface(torso).closest(place.apply(template.mesh.vertices))
        return cls(torso.faces[found.faces], found.weights, float(found.distances.mean()))

    def at(self, values: Floats | Bools) -> Floats:
        """Values of the topology's vertices at the template's vertices."""
        weights = self.weights if values.ndim == 1 else self.weights[:, :, None]
        there: Floats = (values[self.corners] * weights).sum(axis=1)
        return there


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


def load_tie(folder: Path, template: Template) -> Tie:
    """Tie a template to the topology of a phantom cohort's ``truth/`` folder.

    Raises
    ------
    FileProblem
        When the folder holds no truth, or the template was not made from the phantom's mean torso: then it is not
        known where its vertices belong.
    """
    path = folder / "topology.npz"
    try:
        with open_archive(path.read_bytes()) as parts:
            mean = TriangleMesh(parts["mean"], parts["faces"])
            landmarks = Landmarks(
                tuple(parts["landmark_names"].tolist()), parts["landmark_true"].astype(float)
            )
    except _DAMAGED as error:
        raise FileProblem(
            "these are not the true values of a phantom cohort ({why})",
            "Give the truth/ folder of `breastmorph phantom`",
            path,
            why=str(error),
        ) from error
    tie = Tie.of(template, mean, landmarks)
    if tie.off > _TIED:
        raise FileProblem(
            "the template lies {off:.1f} mm off the phantom's mean torso, so its vertices have no "
            "known place",
            "Truth is known for cohorts registered with the default template",
            folder,
            off=tie.off,
        )
    return tie


def load_truth(path: Path, tie: Tie) -> SubjectTruth:
    """Read ``truth/<id>.npz`` of a phantom cohort."""
    try:
        with open_archive(path.read_bytes()) as parts:
            breast = (parts["breast_left"] | parts["breast_right"]).astype(float)
            return SubjectTruth(
                tie.at(parts["points"].astype(float)),
                tie.at(parts["visible"].astype(float)) > 0.9,
                tie.at(breast) > 0.5,
            )
    except _DAMAGED as error:
        raise FileProblem(
            "this is not a file of true values ({why})",
            "Make it with `breastmorph phantom`",
            path,
            why=str(error),
        ) from error


def correspondence_error(registered: Floats, truth: SubjectTruth) -> tuple[float, float]:
    """Mean distance (mm) from where points are to where they belong: in the breast, and outside; where seen.

    NaN where the scanner saw nothing.
    """
    off = np.linalg.norm(registered - truth.points, axis=1)
    inside, outside = (off[part & truth.visible] for part in (truth.breast, ~truth.breast))
    return float(mean_of_known(inside)), float(mean_of_known(outside))


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


def cohort_truth(registered: Floats, truths: list[SubjectTruth], *, with_scale: bool = True) -> CohortTruth:
    """Compare a registered cohort (k, n, 3), each shape in its scan's frame, with its truth.

    ``with_scale`` False aligns rigidly, so that size counts as variation.
    """
    aligned = align_shapes(np.stack([truth.points for truth in truths]), with_scale=with_scale)
    true = aligned.shapes
    found = np.stack([t.apply(shape) for t, shape in zip(aligned.transforms, registered, strict=True)])
    own = align_shapes(registered, with_scale=with_scale).shapes
    breast = np.mean([truth.breast for truth in truths], axis=0) > 0.5
    wrong = ((found - true) ** 2).sum(axis=2)
    spread = ((true - true.mean(axis=0)) ** 2).sum(axis=2)
    own_variance, true_variance = own.var(axis=0).sum(axis=1), true.var(axis=0).sum(axis=1)

    def over(values: Floats, true_values: Floats) -> float:
        """The ratio of two sums; NaN where the truth does not vary."""
        return float(values.sum() / true_values.sum()) if true_values.sum() > 0.0 else float("nan")

    def explained(part: Bools) -> float:
        return 1.0 - over(wrong[:, part], spread[:, part])

    def ratio(part: Bools) -> float:
        return float(np.sqrt(over(own_variance[part], true_variance[part])))

    return CohortTruth(explained(breast), explained(~breast), ratio(breast), ratio(~breast))


@dataclass(frozen=True, eq=False)
class TruthFigures:
    """A registered cohort against its truth.

    Attributes
    ----------
    correspondence : (k, 2) float
        Mean distance in mm of every subject's points from where they belong: in the breast, outside.
    cohort : CohortTruth
    """

    correspondence: Floats
    cohort: CohortTruth

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        figures: dict[str, Any] = {"n": len(self.correspondence)}
        for column, region in enumerate(("breast", "outside")):
            error = self.correspondence[:, column]
            sd_ratio = getattr(self.cohort, f"sd_ratio_{region}")
            explained = getattr(self.cohort, f"explained_{region}")
            names = (
                "correspondence_error",
                "correspondence_error_sd",
                "explained_variation",
                "variance_ratio",
                "sd_ratio",
            )
            values = np.array([error.mean(), error.std(ddof=1), explained, sd_ratio**2, sd_ratio])
            figures[region] = dict(zip(names, plain(values), strict=True))
        return figures


def compare_with_truth(cohort: Cohort, folder: Path, *, with_scale: bool = True) -> TruthFigures:
    """Compare a registered cohort with the ``truth/`` folder of the phantom that was registered."""
    tie = load_tie(folder, cohort.template)
    truths = [load_truth(folder / f"{scan_id}.npz", tie) for scan_id in cohort.ids]
    shapes = np.stack([to.apply(shape) for to, shape in zip(cohort.to_file, cohort.shapes(), strict=True)])
    errors = [correspondence_error(shape, truth) for shape, truth in zip(shapes, truths, strict=True)]
    return TruthFigures(np.array(errors), cohort_truth(shapes, truths, with_scale=with_scale))
