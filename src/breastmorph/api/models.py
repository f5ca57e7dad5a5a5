"""Models: built, evaluated, fitted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from breastmorph.api.arguments import GIVE_MODEL, Subjects, Unit, as_cohort, landmarks_path, rules_of
from breastmorph.api.notices import bar, warn
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.checks import (
    AnyPath,
    check_choice,
    check_int,
    check_path,
    check_texts,
    check_type,
)
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks, Scan
from breastmorph.usecases.build import BuildRequest, build
from breastmorph.usecases.build import Subjects as ChosenFrom

if TYPE_CHECKING:
    from breastmorph.evaluation.model_evaluation import Evaluation
    from breastmorph.model.fitting import Fit


def build_model(
    subjects: Subjects,
    *,
    components: int | None = None,
    variance: float | None = None,
    rigid: bool = False,
    symmetric: bool = False,
    asymmetry: bool = False,
    part: Literal["left", "right"] | None = None,
    exclude: Iterable[str] = (),
    with_absent: bool = False,
    keep_scores: bool = False,
) -> ShapeModel:
    """Build a shape model.

    A subject with an absent breast (as after a mastectomy) is left out, with a BreastMorphWarning that names her.

    Parameters
    ----------
    subjects : sequence of Registration, Cohort, or path
        The path is that of a registered folder.
    components : int, optional
        At most so many; all when not given.
    variance : float, optional
        As many components as hold this share of the variance.
    rigid : bool
        Keep size inside the model instead of removing it.
    symmetric : bool
        Every subject with her mirror image.
    asymmetry : bool
        A model of the difference from symmetric.
    part : {"left", "right"}, optional
        A model of one breast only.
    exclude : iterable of str
        Ids of subjects to be left out.
    with_absent : bool
        Also take subjects with an absent breast.
    keep_scores : bool
        Keep the subjects' coefficients; they describe people.

    Returns
    -------
    ShapeModel

    Raises
    ------
    BreastMorphError
        A subject to be left out is not there, fewer than two are left, or they do not differ.

    Examples
    --------
    >>> built = bm.build_model("registered-cohort", components=2)
    >>> built.n_components, built.info["subjects"]
    (2, 4)
    """
    if components is not None and variance is not None:
        raise BreastMorphError(
            "a number of components and a share of the variance are given", "Give one of the two"
        )
    if part is not None:
        check_choice(part, SIDES, "the part")
    parameters = BuildParameters(
        components=components,
        variance=variance,
        symmetric=symmetric,
        asymmetry=asymmetry,
        part=part,
        keep_scores=keep_scores,
        with_absent=with_absent,
        procrustes=ProcrustesParameters(with_scale=not rigid),
    )
    names = tuple(check_texts(exclude, "the subjects to be left out"))
    built = build(BuildRequest(ChosenFrom(as_cohort(subjects), exclude=names), parameters))
    absent = built.left_out.get("absent breast")
    if absent:
        warn([f"left out of the model, because a breast is absent: {', '.join(absent)}"])
    warn(built.review.warnings())
    return built.model


def evaluate(
    model: ShapeModel,
    subjects: Subjects | None = None,
    *,
    samples: int = 1000,
    seed: int = 0,
    surface: bool = True,
    scans: AnyPath | None = None,
    landmarks: AnyPath | None = None,
    truth: AnyPath | None = None,
    progress: bool = False,
) -> Evaluation:
    """Compactness, generalization and specificity of a model.

    Parameters
    ----------
    model : ShapeModel
    subjects : sequence of Registration, Cohort, or path, optional
        Those it was built from; without them only compactness is known.
    samples : int
        Random shapes for specificity.
    seed : int
    surface : bool
        Whether distances to the surface are computed too; for large cohorts they take minutes.
    scans, landmarks : path, optional
        Raw scans of the subjects: also compare with them.
    truth : path, optional
        The ``truth/`` folder of a phantom cohort.
    progress : bool
        Whether to show on standard error how far it is.

    Returns
    -------
    Evaluation
        Distances in mm; curves by the number of components.

    Raises
    ------
    BreastMorphError
        Subjects, scans or truth are not the model's.

    Examples
    --------
    >>> small = bm.build_model("registered-cohort")
    >>> found = bm.evaluate(small, "registered-cohort", samples=20, surface=False)
    >>> len(found.compactness.share) == small.n_components
    True
    """
    from breastmorph.evaluation.model_evaluation import EvaluationParameters
    from breastmorph.usecases.evaluate import EvaluateRequest
    from breastmorph.usecases.evaluate import evaluate as _evaluate

    request = EvaluateRequest(
        check_type(model, ShapeModel, "the model", GIVE_MODEL),
        None if subjects is None else ChosenFrom(as_cohort(subjects)),
        EvaluationParameters(
            samples=check_int(samples, "the number of samples"),
            seed=check_int(seed, "the seed", 0),
            surface=surface,
        ),
        None if scans is None else check_path(scans, "the name of the scan"),
        landmarks_path(landmarks),
        None if truth is None else check_path(truth),
    )
    return _evaluate(request, partial(bar, shown=progress)).evaluation


def fit(
    model: ShapeModel,
    target: AnyPath | TriangleMesh | Scan | Floats,
    landmarks: AnyPath | Landmarks | None = None,
    *,
    components: int | None = None,
    unit: Unit = "auto",
) -> Fit:
    """Fit a model to a raw surface or point cloud, without registration.

    Parameters
    ----------
    model : ShapeModel
    target : path, TriangleMesh, Scan or (m, 3) float
        A file in any unit; meshes and points in mm. In any pose, may be partial and noisy.
    landmarks : path or Landmarks, optional
        In the target's coordinates; a scan brings its own. Those that are not given are found by the program, and
        count as far as they are sure; see ``landmarks`` of the result.
    components : int, optional
        Use only the first ones.
    unit : {"auto", "mm", "cm", "m"}
        Of a file.

    Returns
    -------
    Fit
        Its mesh is upright and in mm where the target is the file of a surface, otherwise in the target's axes, in
        mm.

    Raises
    ------
    BreastMorphError
        The target cannot be read, or the model cannot be fitted to it.

    Examples
    --------
    >>> fitted = bm.fit(model, "cloud.xyz", "cloud.json")
    >>> fitted.mesh.n_vertices == model.n_vertices
    True
    """
    from breastmorph.usecases.fit import FitRequest
    from breastmorph.usecases.fit import fit as fitted

    check_type(model, ShapeModel, "the model", GIVE_MODEL)
    if components is not None:
        components = check_int(components, "the number of components", 1, model.n_components)
    if isinstance(target, np.ndarray) and target.dtype.kind not in "fiu":
        raise MeshProblem(
            "the points are an array of {dtype}", "Give numbers of shape (m, 3), in mm", dtype=target.dtype
        )
    if not isinstance(target, (TriangleMesh, Scan, np.ndarray)):
        target = check_path(target, "the target")
    if landmarks is not None and not isinstance(landmarks, Landmarks):
        landmarks = check_path(landmarks)
    return fitted(FitRequest(model, target, landmarks, components, rules_of(unit, "", None))).fit
