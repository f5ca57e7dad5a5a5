"""Fit a model to a raw surface or point cloud, without registration."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import error_context
from breastmorph.foundation.messages import Finding
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.fitting import Fit, FitParameters, fit_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.landmark_files import load_landmarks
from breastmorph.scan.raw_target import RawTarget, load_target, target_of
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import default_template


@dataclass(frozen=True, eq=False)
class FitRequest:
    """Which model is to be fitted to what.

    Attributes
    ----------
    model : ShapeModel
    target : Path, TriangleMesh, Scan or (m, 3) float
        A file in any unit; meshes and points in mm. In any pose, may be partial and noisy.
    landmarks : Path or Landmarks, optional
        In the target's coordinates; a scan brings its own. Those that are not given are found by the program.
    components : int, optional
        Use only the first ones.
    check : CheckParameters
        How a file is read.
    """

    model: ShapeModel
    target: Path | TriangleMesh | Scan | Floats
    landmarks: Path | Landmarks | None = None
    components: int | None = None
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fit, and what it was made of.

    Attributes
    ----------
    target : RawTarget
        As it was read.
    fit : Fit
    """

    target: RawTarget
    fit: Fit

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found of the target and of the fit; what both say, once."""
        known = {finding.code for finding in self.fit.warnings}
        return (*(one for one in self.target.findings if one.code not in known), *self.fit.warnings)

    @property
    def mesh_in_file(self) -> TriangleMesh:
        """The fitted shape in the frame and unit of the target's file."""
        return self.fit.mesh.with_vertices(self.target.to_file.apply(self.fit.mesh.vertices))


def fit(request: FitRequest) -> FitResult:
    """Fit a model: pose and shape in one go.

    Returns
    -------
    FitResult

    Raises
    ------
    BreastMorphError
        The target cannot be read, or the model cannot be fitted to it.
    """
    target, landmarks = request.target, request.landmarks
    path = target if isinstance(target, Path) else None
    if isinstance(target, Path):
        read = load_target(target, landmarks, request.check, default_template().as_reference)
    else:
        if landmarks is None and isinstance(target, Scan):
            landmarks = target.landmarks
        if isinstance(landmarks, Path):
            landmarks = load_landmarks(landmarks)
        read = target_of(target.mesh if isinstance(target, Scan) else target, landmarks)
    with error_context(path):
        parameters = FitParameters(components=request.components)
        return FitResult(read, fit_model(request.model, read.shape, read.landmarks, parameters))
