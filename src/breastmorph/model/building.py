"""Building a shape model from a cohort: who belongs to it, the common frame, the principal components."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from breastmorph import __version__
from breastmorph.cohort import Cohort
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.geometry import vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, Floats, Ints, TriangleMesh
from breastmorph.model.components import Components, Deviations, principal_components
from breastmorph.model.procrustes import Frame, ProcrustesParameters, common_frame, mirrored
from breastmorph.model.regions import breast_regions
from breastmorph.model.selection import as_number
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.scan.landmarks import SIDES, Landmarks
from breastmorph.template.files import template_hash
from breastmorph.threads import in_one_thread

_FEWEST = 2  # subjects
_ROUNDING = 1e-6  # of a shape's size: differences that 32-bit floats make
_BREAST = 60.0  # mm around the nipple that decide a component's sign


@dataclass(frozen=True)
class BuildParameters:
    """What kind of model to build.

    Attributes
    ----------
    components : int, optional
        At most so many; all when neither this nor ``variance`` is given.
    variance : float, optional
        As many components as hold this share (0 to 1) of the variance.
    symmetric : bool
        Every subject counts with its mirror image: a symmetric mean, symmetric and antisymmetric modes.
    asymmetry : bool
        A model of the difference from symmetric: every subject minus its own symmetrisation, about the mean.
    part : {"left", "right"}, optional
        Only the vertices of one breast on the mean shape, in the frame of the whole torso; see
        :func:`breastmorph.model.regions.breast_regions`.
    keep_scores : bool
        Keep the subjects' coefficients, scales and numbers of the table; off because they describe people.
    with_absent : bool
        Also take subjects with an absent side (after a mastectomy).
    procrustes : ProcrustesParameters
    """

    components: int | None = None
    variance: float | None = None
    symmetric: bool = False
    asymmetry: bool = False
    part: Literal["left", "right"] | None = None
    keep_scores: bool = False
    with_absent: bool = False
    procrustes: ProcrustesParameters = field(default_factory=ProcrustesParameters)


@in_one_thread
def build_model(
    cohort: Cohort, parameters: BuildParameters | None = None, notes: Mapping[str, Any] | None = None
) -> ShapeModel:
    """Build a shape model.

    Parameters
    ----------
    cohort : Cohort
        Read one subject or one block of vertices at a time.
    parameters : BuildParameters, optional
    notes : mapping, optional
        What else ``info`` shall say; plain JSON values.

    Returns
    -------
    ShapeModel
        Upright like the template, centred, the mean at the mean centroid size of the subjects. ``info`` says how
        many subjects are in it, what the alignment removed and the total variance; never who they are.
    """
    p = parameters or BuildParameters()
    used = usable(cohort, with_absent=p.with_absent)
    left_out = len(cohort) - len(used)
    cohort = used
    if len(cohort) < _FEWEST:
        raise BreastMorphError(
            f"{len(cohort)} subjects are too few for a model",
            f"Choose at least {_FEWEST}"
            + (f"; {left_out} with an absent breast do not count" if left_out else ""),
        )
    template = cohort.template
    if p.symmetric and p.asymmetry:
        raise BreastMorphError("a model is either symmetric or one of asymmetry", "Choose one of the two")
    mirror = _mirror(cohort) if p.symmetric or p.asymmetry else None
    frame = common_frame(cohort.packed, cohort.rows, template.mesh.vertices, p.procrustes, mirror, cohort.ids)
    aligned = AlignedCohort(cohort, frame)
    mean = frame.mean
    if p.asymmetry and mirror is not None:
        mean = mean + aligned.mean_asymmetry(mirror)
    model = ShapeModel(
        mean,
        np.zeros((mean.size, 0), np.float32),
        np.zeros(0),
        template.mesh.faces,
        template.landmark_ids,
        mirror=template.mirror,
    )
    vertices = np.arange(len(mean))
    if p.part is not None:
        vertices = part_vertices(model.mean_mesh, model.landmark_ids, p.part)
        model = model.marginal(vertices)
    found, scores = _components(aligned, mean, vertices, mirror, p)
    if found.total < len(vertices) * (_ROUNDING * frame.mean.std()) ** 2:
        raise BreastMorphError(
            "the subjects show no " + ("asymmetry" if p.asymmetry else "differences"),
            "A model needs shapes that differ",
        )
    signs = _signs(model, found.basis)
    training = None
    if p.keep_scores:
        training = Training(scores * signs, frame.scales, _numbers(cohort.table))
    lost = max(found.total - float(found.variances.sum()), 0.0)
    return replace(
        model,
        basis=found.basis * signs.astype(np.float32),
        variances=found.variances,
        noise_variance=lost / len(found.basis) if lost > 1e-9 * found.total else 0.0,
        training=training,
        info={**_info(cohort, left_out, frame, found, p), **(notes or {})},
    )


def built_with(model: ShapeModel) -> BuildParameters:
    """What kind of model it is, as far as it says: its frame, sides and subjects, not how much of it was kept.

    What makes no sense in a file is passed over.
    """

    def mapping(value: Any) -> Mapping[str, Any]:
        return value if isinstance(value, Mapping) else {}

    said = mapping(model.info.get("parameters"))
    frame: dict[str, Any] = {
        name: value
        for name, value in mapping(said.get("procrustes")).items()
        if (name == "tolerance" and isinstance(value, float))
        or (name == "max_iterations" and isinstance(value, int) and value > 0)
    }
    return BuildParameters(
        symmetric=said.get("symmetric") is True,
        asymmetry=said.get("asymmetry") is True,
        part=said["part"] if said.get("part") in SIDES else None,
        with_absent=said.get("with_absent") is True,
        procrustes=ProcrustesParameters(with_scale=not model.keeps_size, **frame),
    )


def usable(cohort: Cohort, *, with_absent: bool = False) -> Cohort:
    """The subjects that enter a model: those with both sides, or all."""
    keep = [with_absent or not side for side in cohort.absent]
    return cohort if all(keep) else cohort.chosen(np.array(keep))


@dataclass(frozen=True, eq=False)
class AlignedCohort:
    """A cohort in its common frame, transformed while it is read."""

    cohort: Cohort
    frame: Frame

    def block(self, vertices: Ints) -> Floats:
        """Aligned shapes at some vertices, (k, b, 3)."""
        packed, rows = self.cohort.packed, self.cohort.rows
        first, last = int(vertices[0]), int(vertices[-1])
        if np.array_equal(vertices, np.arange(first, last + 1)):
            raw = packed[rows, first : last + 1].astype(np.float64)  # three times quicker than by numbers
        else:
            raw = packed[np.ix_(rows, vertices)].astype(np.float64)
        turns = np.stack([t.scale * t.rotation.T for t in self.frame.transforms])
        offsets = np.stack([t.translation for t in self.frame.transforms])
        aligned: Floats = raw @ turns
        aligned += offsets[:, None, :]
        return aligned

    def halves(self, vertices: Ints, mirror: Ints) -> tuple[Floats, Floats]:
        """Symmetric and antisymmetric parts of the aligned shapes at some vertices, (k, b, 3) each."""
        here, there = self.block(vertices), self.block(mirror[vertices])
        there *= MIRROR
        return (here + there) / 2.0, (here - there) / 2.0

    def mean_asymmetry(self, mirror: Ints) -> Floats:
        """The asymmetry that the subjects have in common, (n, 3)."""
        total = np.zeros_like(self.frame.mean)
        for shape, transform in zip(self.cohort.shapes(), self.frame.transforms, strict=True):
            total += transform.apply(shape)
        total /= len(self.cohort)
        return (total - mirrored(total, mirror)) / 2.0


def _components(
    aligned: AlignedCohort, mean: Floats, vertices: Ints, mirror: Ints | None, p: BuildParameters
) -> tuple[Components, Floats]:
    """Components, and the coefficients of the subjects, (k, q)."""
    k = len(aligned.cohort)

    def plain(ids: Ints) -> Floats:
        return aligned.block(ids) - mean[ids]

    if mirror is None:
        found = principal_components([(k, plain)], vertices, k - 1, p.components, p.variance)
        return found, found.scores[0]
    frame_mean = aligned.frame.mean

    def asymmetry(ids: Ints) -> Floats:
        return aligned.halves(ids, mirror)[1] - (mean - frame_mean)[ids]

    if p.asymmetry:
        found = principal_components([(k, asymmetry)], vertices, k - 1, p.components, p.variance)
        return found, found.scores[0]

    # The subjects and their mirror images, s + a and s - a, have the components of the rows sqrt(2) s and
    # sqrt(2) a, which are orthogonal to each other on a region that is its own mirror image.
    root = math.sqrt(2.0)

    def symmetric_half(ids: Ints) -> Floats:
        return root * (aligned.halves(ids, mirror)[0] - mean[ids])

    def antisymmetric_half(ids: Ints) -> Floats:
        return root * aligned.halves(ids, mirror)[1]

    def both(ids: Ints) -> Floats:
        symmetric, antisymmetric = aligned.halves(ids, mirror)
        return root * np.concatenate([symmetric - mean[ids], antisymmetric])

    groups: Sequence[tuple[int, Deviations]] = [(k, symmetric_half), (k, antisymmetric_half)]
    if len(vertices) < len(mean):
        groups = [(2 * k, both)]
    found = principal_components(groups, vertices, 2 * k - 1, p.components, p.variance)
    stacked = np.concatenate(found.scores)
    return found, (stacked[:k] + stacked[k:]) / root


def part_vertices(mesh: TriangleMesh, landmark_ids: Mapping[str, int], side: str) -> Ints:
    """Vertices of one breast on a mean shape: those of the faces inside its region."""
    inside = breast_regions(mesh, Landmarks.at_vertices(landmark_ids, mesh.vertices))[side]
    return np.unique(mesh.faces[inside[mesh.faces].all(axis=1)])


def _signs(model: ShapeModel, basis: NDArray[np.float32]) -> Floats:
    """Factors of the components (q,) so that + makes the breasts fuller, the left one counting more."""
    outwards = vertex_normals(model.mean, model.faces) * vertex_areas(model.mean, model.faces)[:, None]
    weights = np.zeros(model.n_vertices)
    for name, weight in (("nipple_left", 1.0), ("nipple_right", 0.6)):
        if name in model.landmark_ids:
            away = np.linalg.norm(model.mean - model.mean[model.landmark_ids[name]], axis=1)
            weights += weight * np.exp(-((away / _BREAST) ** 2))
    fuller = (outwards * weights[:, None]).ravel()
    rises = fuller.astype(np.float32) @ basis
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    decides = np.abs(rises) > 1e-6 * np.linalg.norm(fuller)
    return np.where(np.where(decides, rises, largest) < 0.0, -1.0, 1.0)


def _mirror(cohort: Cohort) -> Ints:
    mirror = cohort.template.mirror
    if mirror is None:
        raise BreastMorphError(
            "the template does not say which vertices are mirror images of each other",
            "Register with a symmetric template (`breastmorph template` makes one)",
        )
    if not np.array_equal(mirror[mirror], np.arange(cohort.template.mesh.n_vertices)):
        raise BreastMorphError("the template's mirror permutation is damaged", "Make the template again")
    return mirror


def _numbers(table: Sequence[Mapping[str, str]]) -> dict[str, Floats]:
    """Columns of the table that hold numbers, or yes and no as 1 and 0; NaN where unknown."""
    columns: dict[str, Floats] = {}
    for name in dict.fromkeys(name for row in table for name in row if name != "id"):
        values = np.array([as_number(row.get(name) or "") for row in table])
        if np.isfinite(values).any():
            columns[name] = values
    return columns


def _info(
    cohort: Cohort, left_out: int, frame: Frame, found: Components, p: BuildParameters
) -> dict[str, Any]:
    info: dict[str, Any] = {
        "software": f"BreastMorph {__version__}",
        "subjects": len(cohort),
        "left_out": {"absent breast": left_out} if left_out else {},
        "template": template_hash(cohort.template),
        "shapes": cohort.fingerprint(),
        "alignment": "similarity" if p.procrustes.with_scale else "rigid",
        "removed": frame.removed.as_dict(),
        "total_variance": found.total,
        "parameters": asdict(p),
    }
    if p.symmetric and p.part is None:
        info["mode_symmetry"] = ["symmetric" if g == 0 else "antisymmetric" for g in found.group]
    return info
