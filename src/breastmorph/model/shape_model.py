"""The shape model: a Gaussian over shapes in correspondence, as an immutable value with its algebra.

A shape is ``mean + basis @ coefficients``; coefficient i has variance ``variances[i]``, so |c_i| <= 3 sd is the
plausible range. Everything is in the model's frame (x to the patient's left, y up, z forward), in mm. No
operation forms a 3n x 3n matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from breastmorph.foundation.arrays import Bools, Floats, Ints, Shown
from breastmorph.foundation.checks import AnyPath, check_float, check_int
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.foundation.language import N_
from breastmorph.mesh.geometry import Similarity, face_cross
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.scan.anatomy import SIZES_IN_MM, UNITS
from breastmorph.scan.scan import NAMES, SIDES, Landmarks, canonical_name

_REGISTER = N_("Register the scan with the template that the model was built with, or fit the model to it")


# About where the landmarks of an upright adult lie, mm from the middle of her sternum (those of the default template).
_USUAL = {
    "sternal_notch": (0.0, 85.0, -30.0),
    "xiphoid": (0.0, -85.0, 30.0),
    "nipple_left": (98.0, -116.0, 71.0),
    "nipple_right": (-98.0, -116.0, 71.0),
    "lower_pole_left": (80.0, -149.0, 42.0),
    "lower_pole_right": (-80.0, -149.0, 42.0),
    "lateral_pole_left": (126.0, -116.0, -33.0),
    "lateral_pole_right": (-126.0, -116.0, -33.0),
}
_FEWEST = 5  # landmarks: fewer lie so nearly in one plane that their mirror image fits as well
_UNLIKE = 60.0  # mm, root mean square: landmarks that lie otherwise than any adult's (122 torsos: at most 32)
_MIRRORED = 0.8  # of the given ones' residual: a mirror image that fits better has its sides swapped
_ALONG_AXES = (
    np.round(Rotation.create_group("O").as_matrix()) + 0.0
)  # the 24 rotations along the axes, (24, 3, 3)
_AROUND = 40.0  # mm around a landmark whose skin shows which way the surface looks


@dataclass(frozen=True, eq=False)
class LandmarkFrame:
    """Unit, axes and sides of a model.

    Attributes
    ----------
    unit : str
        "mm", "cm" or "m".
    axes : (3, 3) float
        Rows: the axes of the file that point to the patient's left, up and forward.
    swapped : bool
        The landmarks are those of a mirror image: left and right are exchanged.
    """

    unit: str
    axes: Floats
    swapped: bool

    @property
    def to_ours(self) -> Similarity:
        """From the model's frame to ours: mm, x to the patient's left, y up, z forward."""
        return Similarity(self.axes, scale=UNITS[self.unit])

    @property
    def is_ours(self) -> bool:
        """Whether nothing is to be done."""
        return self.unit == "mm" and bool((self.axes == np.eye(3)).all()) and not self.swapped


def landmark_frame(landmarks: Landmarks) -> LandmarkFrame | None:
    """The frame of a model with these landmarks on its mean; None where they do not show it.

    A body may lean in its frame by less than 45 degrees: only whole axes are distinguished.
    """
    names = [name for name in _USUAL if name in landmarks]
    if len(names) < _FEWEST:
        return None
    usual, places = np.array([_USUAL[name] for name in names]), landmarks.array(names)
    straight, mirrored = (Similarity.fit(one, places) for one in (usual, usual * MIRROR))
    off, off_mirrored = (
        float(np.sqrt(((fit.apply(one) - places) ** 2).sum(axis=1).mean())) / max(fit.scale, 1e-12)
        for fit, one in ((straight, usual), (mirrored, usual * MIRROR))
    )
    swapped = off_mirrored < _MIRRORED * off
    fit = mirrored if swapped else straight
    units = [unit for unit, mm in UNITS.items() if SIZES_IN_MM[0] <= mm * fit.scale <= SIZES_IN_MM[1]]
    if min(off, off_mirrored) > _UNLIKE or not units:
        return None
    nearest = max(_ALONG_AXES, key=lambda axes: float((axes * fit.rotation.T).sum()))
    return LandmarkFrame(units[0], nearest, swapped)


def exchanged_sides(landmarks: Landmarks) -> list[str]:
    """Names of landmarks, without their sides, whose left one lies to the right in our frame."""
    pairs = [name.removesuffix("_left") for name in landmarks if name.endswith("_left")]
    both = [name for name in pairs if f"{name}_right" in landmarks]
    return [name for name in both if landmarks[f"{name}_left"][0] < landmarks[f"{name}_right"][0]]


def faces_backwards(mesh: TriangleMesh, landmarks: Landmarks) -> bool:
    """Whether the skin around the front landmarks of an upright mesh in mm looks backwards: it is inside out.

    A model's landmarks are vertices of its one skin, and front is known.
    :func:`breastmorph.scan.frame.faces_inside_out` serves scans in any pose; it needs the lateral poles, which the
    published model lacks, and a closest-point tree.
    """
    front = landmarks.only(name for name in _USUAL if not name.startswith("lateral"))
    near = cKDTree(front.points).query(mesh.vertices)[0] < _AROUND
    around = mesh.faces[near[mesh.faces].all(axis=1)]
    return bool(face_cross(mesh.vertices, around)[:, 2].sum() < 0.0)


_ROUNDING = 1e-7  # relative, of the 32-bit floats that models are stored in


def condition(rows: Floats, differences: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Standard normal coefficients c after observing ``rows @ c = differences`` with noise.

    Parameters
    ----------
    rows : (k, q) float
    differences : (k,) float
    noise : (k,) float
        Variances, above 0; those below the rounding of ``rows`` count as that.

    Returns
    -------
    mean : (q,) float
        C rows' W differences, where W = diag(1 / noise) and C = (I + rows' W rows)^-1.
    half : (q, q) float
        C = half @ half.T.

    Notes
    -----
    Of the weighted system only the triangular factor is needed, whose singular values are accurate where those of
    rows' W rows drown in rounding: with little noise and few observations.
    """
    q = rows.shape[1]
    if not len(rows):
        return np.zeros(q), np.eye(q)
    # Points that contradict each other by a rounding error must not outweigh everything else.
    rounding = (_ROUNDING * float(np.abs(rows).max(initial=0.0))) ** 2
    system = np.column_stack([rows, differences]) / np.sqrt(np.maximum(noise, rounding))[:, None]
    triangle = np.asarray(np.linalg.qr(system, mode="r"))[:q]
    left, singular, vectors = np.linalg.svd(triangle[:, :q])
    strengths, seen = np.zeros(q), np.zeros(q)
    strengths[: len(singular)] = singular
    seen[: len(singular)] = left.T[: len(singular)] @ triangle[:, q]
    mean = vectors.T @ (strengths / (1.0 + strengths**2) * seen)
    return mean, (vectors / np.sqrt(1.0 + strengths**2)[:, None]).T


_BLOCK = 8192  # vertices at a time: temporaries stay in the cache


@dataclass(frozen=True, eq=False)
class Training:
    """What a model may keep of the subjects it was built from; on request only, because it describes people.

    Attributes
    ----------
    scores : (k, q) float
        Coefficients of the subjects. Of a truncated model they give the subjects less what was cut off.
    scales : (k,) float
        Size of every subject relative to its aligned shape (1 for a model that keeps size).
    columns : mapping from name to (k,) float
        Numbers of the cohort's table, NaN where unknown.
    """

    scores: Floats
    scales: Floats
    columns: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ShapeModel(Shown):
    """A Gaussian over shapes.

    Attributes
    ----------
    mean : (n, 3) float
    basis : (3n, q) float32 or float64
        Orthonormal columns; rows interleaved x0, y0, z0, x1, ...
    variances : (q,) float
        mm squared, falling.
    faces : (m, 3) int
    landmark_ids : mapping from landmark name to vertex
    noise_variance : float
        Variance of a coordinate (mm squared) outside the span of the basis.
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image.
    training : Training, optional
    info : mapping
        Where the model comes from; plain JSON values.
    """

    mean: Floats
    basis: NDArray[np.floating]
    variances: Floats
    faces: Ints
    landmark_ids: Mapping[str, int] = field(default_factory=dict)
    noise_variance: float = 0.0
    mirror: Ints | None = None
    training: Training | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, q = len(self.mean), len(self.variances)
        if self.mean.shape != (n, 3) or self.basis.shape != (3 * n, q) or self.variances.shape != (q,):
            raise BreastMorphError(
                "mean {shape}, basis {shape2} and variances {shape3} do not fit",
                shape=self.mean.shape,
                shape2=self.basis.shape,
                shape3=self.variances.shape,
            )
        if not (np.isfinite(self.variances).all() and (self.variances >= 0.0).all()):
            raise BreastMorphError("a variance is negative or not finite", "Give one from 0 on a mode")
        if len(self.faces) and not (self.faces.min() >= 0 and self.faces.max() < n):
            raise BreastMorphError(
                "a face names a vertex that the model's {n} vertices do not have",
                "They go from 0 to {n2}",
                n=n,
                n2=n - 1,
            )
        if self.mirror is not None and self.mirror.shape != (n,):
            raise BreastMorphError(
                "a mirror of {n_mirror} vertices for a model of {n}",
                "Give one a vertex",
                n_mirror=len(self.mirror),
                n=n,
            )
        for name, vertex in self.landmark_ids.items():
            if not 0 <= vertex < n:
                raise LandmarkProblem(
                    "landmark {name} is vertex {vertex} of a model with {n} vertices",
                    "Vertices are numbered from 0 to {n2}",
                    name=name,
                    vertex=vertex,
                    n=n,
                    n2=n - 1,
                )
        for name in ("mean", "basis", "variances", "faces", "mirror"):
            if (array := getattr(self, name)) is not None:
                view = array.view()  # so that freezing it does not freeze the caller's own array
                view.flags.writeable = False
                object.__setattr__(self, name, view)
        for name in ("landmark_ids", "info"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __repr__(self) -> str:
        subjects = self.info.get("subjects")
        of = f" of {subjects} subjects" if isinstance(subjects, int) else ""
        made = ", synthetic" if self.is_synthetic else ""
        return f"ShapeModel({self.n_components} components{of}, {self.n_vertices:,} vertices{made})"

    def save(self, path: AnyPath) -> None:
        """Write the model as statismo HDF5 0.9 (.h5, .hdf5), NPZ or GLB with morph targets, by the extension.

        What it keeps of its training subjects is written too; drop it with :meth:`without_training`.
        """
        from breastmorph.model.files import save_model

        save_model(self, path)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self.mean)

    @property
    def n_components(self) -> int:
        """Number of modes."""
        return len(self.variances)

    @property
    def deviations(self) -> Floats:
        """Standard deviation of every coefficient, (q,)."""
        return np.sqrt(self.variances)

    @property
    def mean_mesh(self) -> TriangleMesh:
        """The mean shape with its faces."""
        return TriangleMesh(self.mean, self.faces)

    def mesh(self, shape: Floats) -> TriangleMesh:
        """A shape (n, 3) with the model's faces."""
        return TriangleMesh(self.shape_of(shape), self.faces)

    def shape_of(self, shape: TriangleMesh | Floats) -> Floats:
        """The vertices (n, 3) of a mesh with the model's triangles, or of an array of such; refuses all others."""
        if isinstance(shape, TriangleMesh) and not np.array_equal(shape.faces, self.faces):
            raise BreastMorphError(
                "the mesh does not have the model's triangles", _REGISTER, code="wrong-argument"
            )
        given = shape.vertices if isinstance(shape, TriangleMesh) else shape
        if (
            not isinstance(given, np.ndarray)
            or given.shape != self.mean.shape
            or given.dtype.kind not in "fiu"
        ):
            what = f"of the kind {type(shape).__name__}"
            if isinstance(given, np.ndarray):
                what = f"an array of shape {given.shape}"
            raise BreastMorphError(
                "{what} is no shape of a model of {n_vertices} vertices",
                _REGISTER,
                code="wrong-argument",
                what=what,
                n_vertices=self.n_vertices,
            )
        return given

    @property
    def landmarks(self) -> Landmarks:
        """The landmarks on the mean."""
        return Landmarks.at_vertices(self.landmark_ids, self.mean)

    @property
    def is_synthetic(self) -> bool:
        """Whether no person was scanned for it, by its provenance."""
        return bool(self.info.get("synthetic"))

    @property
    def stated_parameters(self) -> Mapping[str, Any]:
        """How it was built, by its provenance; empty where that is not stated, or no mapping."""
        stated = self.info.get("parameters")
        return stated if isinstance(stated, Mapping) else {}

    @property
    def of_whole_torsos(self) -> bool:
        """Whether its shapes are torsos, not one side of them or the difference of two."""
        return (
            self.stated_parameters.get("part") not in SIDES
            and self.stated_parameters.get("asymmetry") is not True
        )

    @property
    def keeps_size(self) -> bool:
        """Whether size is part of the shapes; `breastmorph build` without `--rigid` brings all to one size."""
        return self.info.get("alignment") == "rigid"

    def rows(self, ids: Ints | Bools) -> NDArray[np.floating]:
        """Rows of the basis for vertices ``ids``, (3k, q)."""
        chosen = self.basis.reshape(self.n_vertices, 3, self.n_components)[ids]
        return chosen.reshape(3 * len(chosen), self.n_components)

    def instance(self, coefficients: Floats | Sequence[float]) -> Floats:
        """The shape of coefficients (q,) or fewer, whose rest is 0; returns (n, 3).

        They are not in standard deviations: ``deviations[k]`` is one standard deviation of mode k.
        """
        try:
            c = np.asarray(coefficients, dtype=float)
        except (TypeError, ValueError) as error:
            raise BreastMorphError("coefficients are no list of numbers", "Give one number a mode") from error
        if c.ndim != 1 or len(c) > self.n_components:
            raise BreastMorphError(
                "{shape} coefficients for a model of {n_components} components",
                "Give one number a mode, or fewer",
                shape=c.shape,
                n_components=self.n_components,
            )
        if not (np.abs(c) < np.finfo(np.float32).max).all():  # also NaN
            raise BreastMorphError(
                "a coefficient is no number, or beyond all shapes", "Give standard deviations of its mode"
            )
        moved = self.basis[:, : len(c)] @ c.astype(self.basis.dtype)
        return self.mean + moved.reshape(-1, 3)

    def sample(self, seed: int = 1) -> TriangleMesh:
        """A random shape; the same seed, the same shape."""
        return self.mesh(self.drawn(np.random.default_rng(check_int(seed, "the seed", 0))))

    def drawn(self, rng: np.random.Generator) -> Floats:
        """The vertices (n, 3) of a random shape."""
        return self.instance(rng.standard_normal(self.n_components) * self.deviations)

    def project(self, shape: TriangleMesh | Floats) -> Floats:
        """Coefficients (q,) of the nearest shape in the span; ``shape`` (n, 3) lies in the model's frame."""
        difference = (self.shape_of(shape) - self.mean).ravel().astype(self.basis.dtype)
        return np.asarray(difference @ self.basis, dtype=float)

    def align(
        self, shape: TriangleMesh | Floats, ids: Ints | Bools | None = None, *, with_scale: bool = True
    ) -> Similarity:
        """Best transform of a shape (n, 3) into the model's frame, by its vertices ``ids`` or by all.

        It is the inverse of the mean's best fit to the shape, as in the alignment of the cohort (see
        :func:`breastmorph.model.procrustes.common_frame`): a training shape gets the transform it had there.
        """
        shape, part = self.shape_of(shape), slice(None) if ids is None else ids
        return Similarity.fit(self.mean[part], shape[part], with_scale=with_scale).inverse()

    def mahalanobis(self, coefficients: Floats) -> float:
        """Distance from the mean in standard deviations; about sqrt(q) for a typical shape."""
        c = np.asarray(coefficients, dtype=float)
        deviations = self.deviations[: len(c)]
        # A component without variance allows no deviation at all.
        ratio = np.divide(c, deviations, out=np.where(c == 0.0, 0.0, np.inf), where=deviations > 0.0)
        return float(np.linalg.norm(ratio))

    def plausibility(self, coefficients: Floats) -> float:
        """Share of the model's subjects who are more unusual (0 to 1); see :mod:`breastmorph.model.plausibility`."""
        from breastmorph.model.plausibility import model_population

        return model_population(self).judge(coefficients).plausibility

    def limited(self, coefficients: Floats, deviations: float = 3.0) -> Floats:
        """Coefficients brought into the plausible range, each within so many standard deviations."""
        c = np.asarray(coefficients, dtype=float)
        most = deviations * self.deviations[: len(c)]
        inside: Floats = np.clip(c, -most, most)
        return inside

    def covariances(self, ids: Ints | None = None) -> Floats:
        """The 3 x 3 covariance of every vertex, or of vertices ``ids``, (k, 3, 3), mm squared."""
        vertices = np.arange(self.n_vertices) if ids is None else np.asarray(ids)
        out = np.empty((len(vertices), 3, 3))
        rows = self.basis.reshape(self.n_vertices, 3, self.n_components)
        for start in range(0, len(vertices), _BLOCK):
            part = rows[vertices[start : start + _BLOCK]] * self.deviations
            out[start : start + _BLOCK] = part @ part.transpose(0, 2, 1)
        return out + self.noise_variance * np.eye(3)

    def covariance(self, first: int, second: int) -> Floats:
        """Covariance of two vertices, (3, 3)."""
        rows = self.basis.reshape(self.n_vertices, 3, self.n_components)
        between: Floats = (rows[first] * self.variances) @ rows[second].T
        return between + (self.noise_variance if first == second else 0.0) * np.eye(3)

    def vertex_deviations(self, directions: Floats | None = None) -> Floats:
        """Standard deviation of every vertex in mm, (n,): of all directions together, or along given ones (n, 3)."""
        covariances = self.covariances()
        if directions is None:
            squared = np.trace(covariances, axis1=1, axis2=2)
        else:
            squared = np.einsum("ni,nij,nj->n", directions, covariances, directions)
        deviations: Floats = np.sqrt(squared)
        return deviations

    def with_landmark_ids(self, landmark_ids: Mapping[str, int]) -> Self:
        """The model with more landmarks; names as people write them, the given ones count."""
        known = {}
        for label, vertex in landmark_ids.items():
            name = canonical_name(label)
            if name is None:
                raise LandmarkProblem(
                    "landmark {label!r} is not known",
                    "The names are {names}",
                    label=label,
                    names=", ".join(NAMES),
                )
            known[name] = int(vertex)
        completed = replace(self, landmark_ids={**self.landmark_ids, **known})
        frame = landmark_frame(completed.landmarks)
        if frame is not None and frame.swapped:
            raise LandmarkProblem(
                "the landmarks fit the mirror image of a body: sides swapped or model mirrored",
                "Check the names of the left and right landmarks; sides are the patient's",
                code="sides-swapped",
            )
        return completed

    def without_training(self) -> Self:
        """The model without anything about single subjects."""
        return replace(self, training=None)

    def truncate(self, components: int | None = None, variance: float | None = None) -> Self:
        """Keep the first ``components`` modes, or as many as hold a share ``variance`` of the total."""
        if (components is None) == (variance is None):
            raise BreastMorphError(
                "a number of components and a share of the variance are given, or neither",
                "Give one of the two",
            )
        if variance is not None:
            variance = check_float(variance, "the share of the variance", 0.0, 1.0)
            sums = np.cumsum(self.variances)
            wanted = (variance - 1e-12) * float(self.variances.sum())
            components = min(int(np.searchsorted(sums, wanted)) + 1, self.n_components)
        components = check_int(components, "the number of components", 0, self.n_components)
        training = self.training and replace(self.training, scores=self.training.scores[:, :components])
        lost = float(self.variances[components:].sum()) / (3 * self.n_vertices)
        return replace(
            self,
            basis=self.basis[:, :components],
            variances=self.variances[:components],
            noise_variance=self.noise_variance + lost,
            training=training,
        )

    def posterior(self, points: Floats, ids: Ints | Bools, noise: float | Floats) -> Self:
        """The model of shapes that pass near known points.

        Parameters
        ----------
        points : (k, 3) float
            Known positions in the model's frame.
        ids : (k,) int or (n,) bool
            Their vertices.
        noise : float or (k,) float
            Variance of a coordinate of the known points, mm squared, above 0.

        Notes
        -----
        With Q = basis * deviations and W = 1 / noise, coefficients in standard deviations have the covariance
        C = (I + Q*' W Q*)^-1 and the mean C Q*' W (points - mean*). ``noise_variance`` is not added to ``noise``.
        A model that was not truncated has none: what it cannot express of a new person does not count.
        """
        ids = self._vertices(ids)
        noise = np.asarray(noise, dtype=float)
        if np.shape(points) != (len(ids), 3) or noise.shape not in ((), (len(ids),)):
            raise BreastMorphError(
                "{shape} points with noise {shape2} for {n_ids} vertices",
                "Give one point a vertex, and one variance for all or one a vertex",
                shape=np.shape(points),
                shape2=noise.shape,
                n_ids=len(ids),
            )
        if not (np.isfinite(points).all() and np.isfinite(noise).all() and (noise > 0.0).all()):
            raise BreastMorphError(
                "known points must be finite and their noise above 0", "Leave out points that are not known"
            )
        variances = np.repeat(np.broadcast_to(noise, len(ids)), 3)
        shift, half = condition(self._scaled_rows(ids), (points - self.mean[ids]).ravel(), variances)
        vectors, singular, _ = np.linalg.svd(half * self.deviations[:, None])
        return replace(
            self,
            mean=self.instance(shift * self.deviations),
            basis=self.basis @ vectors.astype(self.basis.dtype),
            variances=singular**2,
            training=None,
        )

    def marginal(self, ids: Ints | Bools) -> Self:
        """The model of some vertices only, with the faces and landmarks among them."""
        ids = self._vertices(ids)
        new = np.full(self.n_vertices, -1)
        new[ids] = np.arange(len(ids))
        if (new[ids] != np.arange(len(ids))).any():
            raise BreastMorphError("a vertex is named twice", "Name every vertex once")
        faces = new[self.faces]
        rows = self._scaled_rows(ids)
        strengths, vectors = np.linalg.eigh(rows.T @ rows)
        order = np.argsort(strengths)[::-1]
        order = order[strengths[order] > 1e-12 * max(float(strengths.max(initial=0.0)), 1e-300)]
        variances, turn = strengths[order], vectors[:, order]
        mirror = None
        if self.mirror is not None and (new[self.mirror[ids]] >= 0).all():
            mirror = new[self.mirror[ids]]
        training = self.training
        if training is not None:
            inverse = np.divide(
                1.0, self.deviations, out=np.zeros_like(self.deviations), where=self.variances > 0
            )
            standard = training.scores * inverse
            training = replace(training, scores=standard @ turn * np.sqrt(variances))
        return replace(
            self,
            mean=self.mean[ids],
            basis=((rows @ turn) / np.sqrt(variances)).astype(self.basis.dtype),
            variances=variances,
            faces=faces[np.min(faces, axis=1, initial=0) >= 0],
            landmark_ids={name: int(new[v]) for name, v in self.landmark_ids.items() if new[v] >= 0},
            mirror=mirror,
            training=training,
        )

    def transform(self, similarity: Similarity) -> Self:
        """The same model in another frame or unit."""
        rows = self.basis.reshape(self.n_vertices, 3, self.n_components)
        turned = np.einsum("ij,njq->niq", similarity.rotation.astype(self.basis.dtype), rows)
        scale = similarity.scale
        old = self.training
        training = old and replace(old, scores=old.scores * scale, scales=old.scales / scale)
        return replace(
            self,
            mean=similarity.apply(self.mean),
            basis=turned.reshape(self.basis.shape),
            variances=self.variances * scale**2,
            noise_variance=self.noise_variance * scale**2,
            training=training,
        )

    def _vertices(self, ids: Ints | Bools) -> Ints:
        """Vertex numbers from numbers or truth values."""
        given: NDArray[Any] = np.asarray(ids)
        if given.dtype == bool and given.shape == (self.n_vertices,):
            return np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise BreastMorphError(
                "vertices are whole numbers, not {dtype} of shape {shape}",
                "Give their numbers, or one truth value a vertex",
                dtype=given.dtype,
                shape=given.shape,
            )
        if given.size and not (given.min() >= 0 and given.max() < self.n_vertices):
            raise BreastMorphError(
                "vertices {given} to {given2} of a model with {n_vertices} vertices",
                "Their numbers go from 0 to {n_vertices2}",
                given=given.min(),
                given2=given.max(),
                n_vertices=self.n_vertices,
                n_vertices2=self.n_vertices - 1,
            )
        return given.astype(np.int64)

    def _scaled_rows(self, ids: Ints) -> Floats:
        """Rows of basis * deviations for vertices ``ids``, (3k, q)."""
        scaled: Floats = self.rows(ids) * self.deviations
        return scaled
