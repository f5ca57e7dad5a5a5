"""Every parameter of a registration, and the presets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mask import MaskParameters


@dataclass(frozen=True)
class RigidParameters:
    """Bringing the template to the scan by a similarity (paper section 3.2.1).

    The default slides over the thorax (point to plane) with all three rotations, fixed by notch and xiphoid, so
    that the result does not depend on the pose of the file. ``about_x`` is the paper's iterative closest point.
    """

    sternum_weight: float = 1.0  # of notch and xiphoid in the landmark start: bone
    nipple_weight: float = 0.05  # soft tissue; they only settle the turn about the sternum
    pole_weight: float = 0.02
    about_x: bool = False  # the paper's ICP: closest points, rotation about x only
    sternum_sd: float = 3.0  # mm: how closely notch and xiphoid fix the template ...
    surface_sd: float = 10.0  # mm: ... against one thorax point, whose subject-to-subject scatter this is
    outlier_distance: float = 8.0  # mm: pairs further apart lose their weight
    turn_sd: tuple[float, float, float] = (12.0, 3.0, 3.0)  # degrees about x, y, z from the landmark start
    scale_sd: float = 0.05  # relative to the landmark start
    mask_threshold: float = 0.2  # pairs with both masks above are not the rigid part
    tolerance: float = 1e-3  # about_x: relative change of the mean squared distance
    fewest_pairs: int = 10  # about_x: fewer end the iterations
    step_tolerance: float = 0.05  # mm, sliding: the warp that follows takes up what is left
    reach: float = 200.0  # mm from the sternum to the template's border: what a turn or a stretch moves
    max_angle: float = 53.0  # degrees between normals of a pair
    iterations: int = 30  # 150 in the paper
    # Times the variance that a found xiphoid has where the similarity is read off the warp: no skin shows it, and the
    # nets read it off the rest of the body as the warp itself does, so half of what it says is known already.
    xiphoid_variance: float = 4.0


@dataclass(frozen=True)
class WarpParameters:
    """The smooth start: a spline that may slide along the scan (see docs/paper-notes.md).

    A displacement is affine + triharmonic spline (the trunk) + a local Gaussian field (the breasts). Standard
    deviations say how much of each an adult torso shows about the template. How trunks vary was fitted to phantoms.
    """

    bending_sd: float = 6.0  # mm, spline part at ...
    bending_length: float = 100.0  # mm, ... a hand's breadth
    linear_sd: float = 0.05  # stretch and shear of the whole torso
    shift_sd: float = 100.0  # mm, translation is as good as free
    breast_sd: float = 8.0  # mm, local field of the breasts
    breast_length: float = 90.0  # mm, its correlation length
    breast_saturation: float = 0.25  # of the mask's peak: above, the local field is free
    breast_from: float = 0.15  # of the saturated mask: centres of the local field lie above
    breast_centres: int = 150
    normal_sd: float = 2.0  # mm, anchors across the surface
    sliding_sd: float = 60.0  # mm, anchors along the surface
    outside_pull: float = 0.25  # outside the mask: 0 follows the scan, 1 keeps the rigid shape
    sternum_radius: float = 35.0  # mm around notch and xiphoid (they are measured) without that pull
    exact_sd: float = 1.0  # mm, nipples, notch and xiphoid: the same skin on all people
    height_sd: float = 4.0  # mm, lower pole: only its height is comparable
    depth_sd: float = 4.0  # mm, lateral pole: only its depth (the anterior axillary line) is comparable
    optional_sd: float = 6.0  # mm, navel, coracoids, folds where both sides have them
    outlier_distance: float = 5.0  # mm
    mask_sd: float = 0.2  # of the mask's peak: pairs whose masks differ by more lose their weight
    max_angle: float = 53.0  # degrees between normals of a pair
    trunk_share: float = 0.8  # of the variance that phantoms' trunks show; 0: smoothness alone
    smooth_share: float = 0.1  # of the smooth prior's variance that stays beside it
    read_off_sd: float = 1.0  # mm to which functions follow displacements that are given at the anchors
    prior_people: float = 40.0  # beside a cohort's prior, this one counts as so many people
    prior_rounds: int = 20  # rounds in which a cohort's prior is fitted
    iterations: int = 10
    rounds_twice: int = 6  # of each of the two warps where bodies are known
    trunk_sd: float = (
        8.0  # mm to which the first of them fixes for the second where on the skin the trunk lies
    )
    centres: int = 200
    spline_modes: int = 60
    breast_modes: int = 80
    modes: int = 200  # of all these together, those that move the skin most


@dataclass(frozen=True)
class StageParameters:
    """One stage of alternating minimisation of F (paper section 3.2.2, appendix A)."""

    stiffness: float = 250.0  # alpha at the start
    stiffness_end: float = 1.0  # the stage ends when alpha falls below
    stiffness_divisor: float = 2.0  # per iteration
    max_iterations: int = 1000
    stop_distance: float = 0.0  # mm, root mean square of the weighted distance term; 0 never stops early
    landmark_weight: float = 1000.0  # beta
    landmarks: tuple[tuple[str, float], ...] = ()  # name stem and its share of beta
    set_sd: float = 2.0  # mm to which a person sets a landmark: found ones pull less, the vaguer they are
    masked: bool = True
    normalised_mask: bool = True  # mask weights reach 1
    mask_saturation: float = 1.0  # share of the peak from which a mask weight is 1
    softness: float = 2.0  # h: the regulariser is 1/h as strong where the mask is 1
    consistency: float = 0.02  # lambda, in units of ...
    consistency_of_whole_area: bool = False  # ... the whole area (paper) or the mean vertex area
    smallest_edge_weight: float = 0.01  # negative cotangents (obtuse pairs) would make the energy unbounded
    scale_stiffness: float = 0.0  # mu: 0 as similar as possible (paper), large as rigid as possible
    start_pull: float = 0.0  # weight of staying where the stage began, outside the mask
    rest: Literal["template", "start"] = "template"  # whose edges the regulariser keeps
    max_angle: float = 60.0  # degrees between normals of a pair; 180 accepts all
    scale_rule: Literal["least_squares", "printed"] = "least_squares"
    rotation_rule: Literal["least_squares", "printed"] = "least_squares"
    system: Literal["symmetric", "stacked"] = "symmetric"


_PAPER_LANDMARKS = (("nipple", 1.0), ("lower_pole", 1.0))
_DEFAULT_LANDMARKS = (("nipple", 1.0), ("sternal_notch", 0.1), ("xiphoid", 0.1))


_FINE = StageParameters(
    stiffness=2.45,
    stiffness_end=0.99,
    stiffness_divisor=2.45,
    landmarks=_DEFAULT_LANDMARKS,
    mask_saturation=0.4,
    start_pull=0.1,
    rest="start",
)


@dataclass(frozen=True)
class RelaxationParameters:
    """How compressed triangles are spread over the skin around them; see :func:`.relaxation.relaxed`."""

    rings: int = 12  # of triangles around them that take part
    overlap_rings: int = 2  # around what is turned over, drawn flat first
    step: float = 0.5  # of the way to where a vertex's neighbours would have it, along the surface
    steps: int = 20  # before it is looked again which are still compressed
    rounds: int = 10


@dataclass(frozen=True)
class AbsentBreastParameters:
    """A side without landmarks: whether a breast is there, and a template that starts without it."""

    mask: float = 0.03  # above it skin belongs to the breast and its fold
    midline: float = 5.0  # mm beside the sternum that stay as they are
    raised: float = 5.0  # mm that a breast stands out where it is looked for
    grid: float = 6.0  # mm between the places looked at
    in_front: float = 600.0  # mm before the template: from where they are looked at
    present: float = 0.5  # of the template's breast: a scan with more of it has a breast there


@dataclass(frozen=True)
class EstimateParameters:
    """Landmarks that are not set: where the template puts them once it lies on those that are."""

    rigid: RigidParameters = field(default_factory=RigidParameters)
    nipple_weight: float = 0.3  # beside bone, for the first guess of the size


@dataclass(frozen=True)
class CohortPriorParameters:
    """The prior that a first pass over a cohort gives the second one; see ``batch.cohort_prior``."""

    enough: int = 20  # subjects to whom it can be fitted
    most: int = 400  # subjects it is fitted to; more of them add nothing
    groups: int = 8  # the prior of each is fitted to the others


@dataclass(frozen=True)
class AcceptanceParameters:
    """What is refused, and what the user is warned of."""

    landmark_refused: float = 20.0  # mm between a landmark and the scan: these are not this scan's landmarks
    landmark_moved: float = 8.0  # mm: worth a warning
    thorax_refused: float = (
        25.0  # mm between rigid template and thorax: no torso, or not its landmarks (torsos: < 7)
    )
    thorax_unusual: float = 12.0  # mm: worth a warning
    overlap_refused: float = 0.5  # of the template finds the scan
    overlap_poor: float = 0.75  # worth a warning
    breast_overlap: float = (
        0.7  # of a breast finds the scan (under hanging breasts scanners miss up to a fifth)
    )
    breast_off: float = 1.0  # mm between breasts and scan
    nipple_off: float = 2.0  # mm
    folded: float = 0.05  # per cent of the triangles
    distorted: float = 14.0  # degrees
    facing: float = 75.0  # degrees between normals of points that still face the scan, for all these figures


@dataclass(frozen=True)
class RegistrationParameters:
    """All stages; those that are None are left out."""

    rigid: RigidParameters = field(default_factory=RigidParameters)
    warp: WarpParameters | None = field(default_factory=WarpParameters)
    initial: StageParameters | None = None
    coarse: StageParameters | None = None
    fine: StageParameters | None = _FINE
    tightest: float = 0.15  # of its share of the area: a triangle below is spread in the end; 0 spreads none
    use_masks: bool = True
    dense: int = 400_000  # faces; of a scan with more, the mask's lengths are measured on a thinned copy
    dense_edge: float = 1.0  # mm, about the mean edge of that copy
    relaxation: RelaxationParameters = field(default_factory=RelaxationParameters)
    absent: AbsentBreastParameters = field(default_factory=AbsentBreastParameters)
    estimates: EstimateParameters = field(default_factory=EstimateParameters)
    acceptance: AcceptanceParameters = field(default_factory=AcceptanceParameters)
    mask: MaskParameters = field(default_factory=MaskParameters)
    cohort_prior: CohortPriorParameters = field(default_factory=CohortPriorParameters)
    followed_nodes: int = 6  # of the coarse mesh, by each fine point; one more gives the radius


def _paper(system: Literal["symmetric", "stacked"]) -> RegistrationParameters:
    printed = StageParameters(
        landmarks=_PAPER_LANDMARKS,
        normalised_mask=False,
        consistency_of_whole_area=True,
        scale_rule="printed",
        rotation_rule="printed",
        system=system,
    )
    return RegistrationParameters(
        rigid=RigidParameters(about_x=True, iterations=150),
        warp=None,
        initial=replace(printed, masked=False, max_iterations=1),
        coarse=replace(printed, stiffness_divisor=1.1),
        fine=printed,
        tightest=0.0,
    )


PRESETS: dict[str, RegistrationParameters] = {
    "default": RegistrationParameters(),
    "paper": _paper("symmetric"),
    "paper-stacked": _paper("stacked"),
    "rigid": RegistrationParameters(warp=None, fine=None),
}


def preset(name: str, *, use_masks: bool = True) -> RegistrationParameters:
    """The parameters of a preset: ``default``, ``paper``, ``paper-stacked`` or ``rigid``.

    Parameters
    ----------
    name : str
    use_masks : bool
        False fits the whole torso alike (``--no-mask``).
    """
    if name not in PRESETS:
        raise BreastMorphError(
            "unknown preset {name!r}", "Choose one of {presets}", name=name, presets=", ".join(PRESETS)
        )
    return replace(PRESETS[name], use_masks=use_masks)
