"""Curves over the number of components, and the training shapes they are computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.cohort.review import copy_groups
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.mask import IN_BREAST, breast_mask
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.building import built_with, part_vertices, usable
from breastmorph.model.procrustes import CommonFrame, common_frame, mirrored
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.anatomy import SIZES_IN_A_COHORT

Distance = Literal["point", "surface", "scan"]

# Vertices over which a distance is averaged, by name ("whole", "breast").
Regions = Mapping[str, Bools]


@dataclass(frozen=True, eq=False)
class Curve:
    """Distances in mm for several numbers of components.

    Attributes
    ----------
    distance : {"point", "surface", "scan"}
        Between corresponding vertices; from vertices to the closest point of the other registered surface; between
        the model's surface and the raw scan.
    region : str
        Over which vertices the mean is taken.
    components : (c,) int
    values : (k, c) float
        Of every left-out subject, or of every sample.
    """

    distance: Distance
    region: str
    components: Ints
    values: Floats

    @property
    def mean(self) -> Floats:
        """Mean over subjects or samples, (c,); NaN where none has a value."""
        return mean_of_known(self.values)

    @property
    def sd(self) -> Floats:
        """Standard deviation over subjects or samples, (c,); 0 for a single one."""
        known = np.isfinite(self.values)
        n = known.sum(axis=0)
        squares = np.where(known, (self.values - self.mean) ** 2, 0.0).sum(axis=0)
        return np.where(n > 0, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file; who has which value is left out."""
        return {
            "distance": self.distance,
            "region": self.region,
            "n": len(self.values),
            "components": self.components.tolist(),
            "mean": plain(self.mean),
            "sd": plain(self.sd),
        }


def region_columns(regions: Regions) -> Floats:
    """One column of ones and zeros a region, (n, r)."""
    return np.stack([np.asarray(inside, dtype=float) for inside in regions.values()], axis=1)


def curves_by_region(
    distance: Distance, regions: Regions, components: Ints, values: Floats
) -> dict[str, Curve]:
    """Curves of values (k, c, r) whose last axis are the regions."""
    return {name: Curve(distance, name, components, values[:, :, r]) for r, name in enumerate(regions)}


def whole(n_vertices: int) -> dict[str, Bools]:
    """The one region of all vertices."""
    return {"whole": np.ones(n_vertices, bool)}


def counts_of(wanted: Iterable[int], most: int) -> Ints:
    """The wanted numbers of components that exist, and the most, (c,)."""
    return np.array(sorted({count for count in wanted if count < most} | {most}), dtype=np.int64)


def mean_of_known(values: Floats) -> Floats:
    """Mean over the first axis of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)


_BLOCK = 128  # vertices at a time: no second copy of the shapes


@dataclass(frozen=True, eq=False)
class Compactness:
    """How much variance the first components hold.

    Attributes
    ----------
    variance : (q,) float
        Cumulative, mm squared summed over all coordinates: the paper's compactness.
    share : (q,) float
        The same as a share of the total (0 to 1).
    total : float
        Variance of the model, with its noise variance outside the components.
    """

    variance: Floats
    share: Floats
    total: float

    @property
    def components(self) -> Ints:
        """Numbers of components, 1 to q."""
        return np.arange(1, len(self.variance) + 1)

    def needed(self, share: float) -> int | None:
        """Fewest components that hold a share of the total, or None where all together do not."""
        enough = np.flatnonzero(self.share >= share - 1e-9)
        return int(enough[0]) + 1 if len(enough) else None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "components": self.components.tolist(),
            "variance": plain(self.variance),
            "share": plain(self.share),
            "total_variance": self.total,
            "components_for": {f"{share:.0%}": self.needed(share) for share in (0.9, 0.95, 0.98)},
        }


def compactness(model: ShapeModel) -> Compactness:
    """Cumulative variance of a model's components."""
    cumulative = np.cumsum(model.variances)
    total = float(cumulative[-1] if len(cumulative) else 0.0) + model.noise_variance * model.mean.size
    share = cumulative / total if total > 0.0 else np.ones(len(cumulative))
    return Compactness(cumulative, share, total)


@dataclass(frozen=True)
class Decoupling:
    """Variation inside and outside the breast.

    Attributes
    ----------
    variance_inside, variance_outside : float
        Of a vertex (all three directions together), mean over the vertices, mm squared.
    """

    variance_inside: float
    variance_outside: float

    def as_dict(self) -> dict[str, float | None]:
        """Plain numbers for a JSON file; standard deviations in mm, and their ratio outside to inside."""
        inside, outside = np.sqrt([self.variance_inside, self.variance_outside])
        names = ("variance_inside", "variance_outside", "sd_inside", "sd_outside", "sd_ratio")
        ratio = outside / inside if inside > 0.0 else np.nan
        values = np.array([self.variance_inside, self.variance_outside, inside, outside, ratio])
        return dict(zip(names, plain(values), strict=True))


def decoupling(shapes: Floats, breast: Bools) -> Decoupling:
    """Variance of aligned shapes (k, n, 3) at vertices inside and outside the breast (n,)."""
    variance = vertex_variances(shapes).sum(axis=1)
    return Decoupling(*(float(mean_of_known(variance[part])) for part in (breast, ~breast)))


def vertex_variances(shapes: Floats) -> Floats:
    """Variance of every coordinate over shapes (k, n, 3), (n, 3); a block of vertices at a time."""
    ddof = 1 if len(shapes) > 1 else 0
    starts = range(0, shapes.shape[1], _BLOCK)
    return np.concatenate([shapes[:, start : start + _BLOCK].var(axis=0, ddof=ddof) for start in starts])


_SAME_VARIANCE = 0.02  # relative: a model of the same subjects has this variance, up to rounding


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Aligned shapes of a cohort for one model.

    Attributes
    ----------
    cohort : Cohort
        The subjects used.
    shapes : (r, n, 3) float
        In the model's frame and topology: the subjects, and for a symmetric model their mirror images after them.
    groups : (r,) int
        The subject that every shape belongs to, the same for copies of a subject: shapes that are left out together.
    transforms : tuple of Similarity
        From the subjects' upright frames to the model's.
    breast : (n,) bool
        Template mask above 0.2.
    with_scale : bool
        Whether the alignment removed size.
    asymmetry : bool
        The shapes are differences from symmetric, not whole subjects.
    warnings : tuple of str
        Why these may not be the subjects of the model.
    """

    cohort: Cohort
    shapes: Floats
    groups: Ints
    transforms: tuple[Similarity, ...]
    breast: Bools
    with_scale: bool
    asymmetry: bool
    warnings: tuple[str, ...]

    @property
    def regions(self) -> Mapping[str, Bools]:
        """The regions over which distances are averaged."""
        return whole(len(self.breast)) | (
            {"breast": self.breast} if self.breast.any() and not self.breast.all() else {}
        )


def training_set(model: ShapeModel, cohort: Cohort) -> TrainingSet:
    """Align a cohort as a model's builder did, by what the model states of itself.

    A model that states nothing (a foreign file) is taken as one of all subjects with both sides, aligned by similarity.

    Raises
    ------
    BreastMorphError
        When the model does not have the topology of the cohort's template, or fewer than two subjects are left.
    """
    p = built_with(model)
    used = usable(cohort, with_absent=p.with_absent)
    if len(used) < 2:
        raise BreastMorphError(
            "{n_used} of the cohort's {n_cohort} subjects can be used",
            "Evaluating needs at least 2 subjects with both sides",
            n_used=len(used),
            n_cohort=len(cohort),
        )
    template = used.template
    mirror = template.mirror if p.symmetric or p.asymmetry else None
    if (p.symmetric or p.asymmetry) and mirror is None:
        raise BreastMorphError(
            "the model is about symmetry, and the cohort's template does not know its mirror image",
            "Give the cohort that the model was built from",
        )
    frame = common_frame(used.packed, used.rows, template.mesh.vertices, p.procrustes, mirror)
    groups = copy_groups(used)
    copies = len(used) - len(np.unique(groups))
    shapes = _aligned(used, frame, mirror, asymmetry=p.asymmetry)
    groups = np.resize(groups, len(shapes))  # once more for the mirror images
    vertices = np.arange(len(frame.mean))
    if p.part is not None:
        mean = template.mesh.with_vertices(shapes.mean(axis=0))
        vertices = part_vertices(mean, template.landmark_ids, p.part)
        shapes = shapes[:, vertices]
    _require_topology(model, template.mesh.faces, vertices)
    _require_one_unit(model, shapes.mean(axis=0))
    # The identity for a model of these very subjects; a foreign model may lie elsewhere.
    to_model = Similarity.fit(shapes.mean(axis=0), model.mean, with_scale=p.procrustes.with_scale)
    breast: Bools = breast_mask(template.mesh, template.landmarks)[vertices] > IN_BREAST
    # In place: thousands of subjects fill the memory once, not several times.
    for i, shape in enumerate(shapes):
        shapes[i] = to_model.apply(shape)
    return TrainingSet(
        used,
        shapes,
        groups,
        tuple(to_model.after(transform) for transform in frame.transforms),
        breast,
        p.procrustes.with_scale,
        p.asymmetry,
        tuple(_warnings(model, shapes, len(used), copies)),
    )


def _aligned(used: Cohort, frame: CommonFrame, mirror: Ints | None, *, asymmetry: bool) -> Floats:
    """The subjects in their common frame, (k, n, 3): their asymmetry, or with their mirror images after them."""
    k = len(used)
    doubled = mirror is not None and not asymmetry
    shapes = np.empty((2 * k if doubled else k, *frame.mean.shape))
    for i, (transform, shape) in enumerate(zip(frame.transforms, used.shapes(), strict=True)):
        shapes[i] = transform.apply(shape)
        if mirror is not None and asymmetry:
            shapes[i] = frame.mean + (shapes[i] - mirrored(shapes[i], mirror)) / 2.0
        elif mirror is not None:
            shapes[k + i] = mirrored(shapes[i], mirror)
    return shapes


def _require_topology(model: ShapeModel, faces: Ints, vertices: Ints) -> None:
    new = np.full(int(faces.max(initial=-1)) + 1, -1)
    new[vertices] = np.arange(len(vertices))
    expected = new[faces]
    expected = expected[(expected >= 0).all(axis=1)]
    if model.n_vertices != len(vertices) or not np.array_equal(model.faces, expected):
        raise BreastMorphError(
            "the model has {n_vertices:,} vertices and {n_faces:,} triangles, the cohort "
            "{n_vertices2:,} and {n_expected:,}, or they are joined otherwise",
            "Give the folder of registrations that the model was built from",
            n_vertices=model.n_vertices,
            n_faces=len(model.faces),
            n_vertices2=len(vertices),
            n_expected=len(expected),
        )


def _require_one_unit(model: ShapeModel, mean: Floats) -> None:
    """All figures are in the model's unit: one in metres would give them a thousand times too small."""
    ratio = float(np.ptp(model.mean, axis=0).max() / np.ptp(mean, axis=0).max())
    if not SIZES_IN_A_COHORT[0] <= ratio <= SIZES_IN_A_COHORT[1]:
        raise BreastMorphError(
            "the model is {ratio:.3g} times as large as the cohort, so its unit is not mm",
            "Give it landmarks, which tell its unit",
            code="unit-of-model",
            ratio=ratio,
        )


def _warnings(model: ShapeModel, shapes: Floats, subjects: int, copies: int) -> Iterator[str]:
    """Why these may not be the subjects of the model; copies in numbers only, `breastmorph build` names them."""
    stated = model.info.get("subjects")
    if isinstance(stated, int) and stated != subjects:
        yield f"the model was built from {stated} subjects, the cohort has {subjects}"
    spread = float(vertex_variances(shapes).sum())
    total = float(model.variances.sum()) + model.noise_variance * model.mean.size
    if abs(total - spread) > _SAME_VARIANCE * max(spread, total):
        yield (
            f"the model's variance ({total:.4g} mm²) is not that of the cohort ({spread:.4g} mm²): "
            "it was built from other subjects or in another way"
        )
    if copies:
        are = "subject is a copy of another" if copies == 1 else "subjects are copies of others"
        yield f"{copies} {are}; copies are left out together, yet they count twice in the model and in specificity"
