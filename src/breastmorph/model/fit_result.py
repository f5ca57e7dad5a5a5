"""What a fit returns, and whether it can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh

_SIZES = (0.6, 1.6)  # of a body relative to the model's mean; adults lie well within


@dataclass(frozen=True)
class FitLimits:
    """What is still called a fit.

    Attributes
    ----------
    explained : float
        Least share of the points over the model.
    covered : float
        Least share of the model that the target shows.
    misfit : float
        Most that the surface may stay off, mm.
    unusual : float
        Largest root mean square of the scores; 1 is the model's own population.
    lead : float
        Least relative advantage of the chosen pose over the next.
    """

    explained: float = 0.6
    covered: float = 0.2
    misfit: float = 5.0
    unusual: float = 2.5
    lead: float = 0.0


# Without landmarks the pose itself is in question. Right poses explained 0.90 and more, with a lead of 0.14; wrong
# ones and bodies that are no torso 0.85 and less, or needed unusual shapes, or had no lead.
SEARCH_LIMITS = FitLimits(explained=0.88, covered=0.35, unusual=1.75, misfit=3.0, lead=0.1)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model fitted to a target.

    Attributes
    ----------
    mesh : TriangleMesh
        The model's topology in the target's frame, mm.
    coefficients : (q,) float
        Of all the model's components; 0 beyond those used.
    transform : Similarity
        From the model's frame to the target's.
    unit : float
        Millimetres in the model's unit: 1 but for foreign models.
    unusual : float
        Root mean square of the scores: 1 for a typical member of the model's population.
    mahalanobis : float
        Distance of the shape from the mean in standard deviations.
    plausibility : float
        Share of the model's population farther from the mean.
    residuals : (n,) float
        Signed distance of each vertex from the target, mm; negative where the fit lies inside the scan, NaN where
        the target shows nothing.
    deviations : (n,) float
        Standard deviation of each vertex along its normal given the data, mm.
    noise : float
        Standard deviation of single points about the surface, mm.
    misfit : float
        Standard deviation of what the model could not follow, mm.
    explained : float
        Share of the points over the model that it explains.
    over_model : float
        Share of all points that lie over the model and not beyond its border.
    covered : float
        Share of the vertices near which the target has points.
    start : str
        "landmarks" or "search".
    lead : float
        Without landmarks: by how much the chosen pose beats the next, relative; NaN with landmarks.
    steps : int
        On all vertices.
    warnings : tuple of str
        In plain words; empty when all is well.
    """

    mesh: TriangleMesh
    coefficients: Floats
    transform: Similarity
    unit: float
    unusual: float
    mahalanobis: float
    plausibility: float
    residuals: Floats
    deviations: Floats
    noise: float
    misfit: float
    explained: float
    over_model: float
    covered: float
    start: str
    lead: float
    steps: int
    warnings: tuple[str, ...] = ()


def require_likeness(fit: Fit, limits: FitLimits) -> None:
    """Refuse a fit that explains too little, or that needs a shape or size no adult has.

    Raises
    ------
    MeshProblem
    """
    reasons = []
    if fit.explained < limits.explained:
        reasons.append(f"only {fit.explained:.0%} of the points over the model are explained")
    if fit.covered < limits.covered:
        reasons.append(f"it shows only {fit.covered:.0%} of the model")
    if fit.misfit > limits.misfit:
        reasons.append(f"the surface stays {fit.misfit:.1f} mm off")
    if fit.unusual > limits.unusual:
        reasons.append(f"its shape would be {fit.unusual:.1f} times as unusual as the model's population")
    if not _SIZES[0] <= fit.transform.scale / fit.unit <= _SIZES[1]:
        reasons.append(f"its size would be {fit.transform.scale / fit.unit:.2g} times the model's")
    hint = "; landmarks (--landmarks) give a surer start" if fit.start == "search" else ""
    if reasons:
        raise MeshProblem(
            f"the scan does not look like the model: {'; '.join(reasons)}",
            f"Check that it is a torso seen from the front, its unit and its sides{hint}",
            code="unlike-model",
        )
    if fit.lead < limits.lead:
        raise MeshProblem(
            "two different poses explain the scan about equally well",
            "Give landmarks (--landmarks); three are enough",
            code="ambiguous-pose",
        )


def warnings_of(fit: Fit, scores: Floats) -> tuple[str, ...]:
    """What a user should know about a fit, in plain words."""
    said = []
    if fit.start == "search":
        said.append("pose found without landmarks: a mirrored file would not be noticed")
    if fit.covered < 0.7:
        said.append(f"{1 - fit.covered:.0%} of the shape is not seen in the scan but predicted by the model")
    far = np.flatnonzero(np.abs(scores) > 3.0)
    if len(far):
        listed = ", ".join(str(k + 1) for k in far[:6]) + (" ..." if len(far) > 6 else "")
        said.append(f"{len(far)} of {len(scores)} coefficients lie beyond 3 standard deviations ({listed})")
    if fit.misfit > 1.5:
        said.append(f"the model follows this surface only to {fit.misfit:.1f} mm")
    if fit.explained < 0.85:
        said.append(f"{1 - fit.explained:.0%} of the points over the model are not explained")
    return tuple(said)
