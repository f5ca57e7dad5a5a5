"""Generalised Procrustes analysis: shapes in correspondence brought into one frame (paper section 3.3).

Subjects are read one at a time, so memory stays flat however large the cohort is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.scan.anatomy import SIZES_IN_A_COHORT


@dataclass(frozen=True)
class ProcrustesParameters:
    """How shapes are aligned.

    Attributes
    ----------
    with_scale : bool
        False keeps size (rigid alignment).
    tolerance : float
        Largest change of the mean in one iteration, relative to its centroid size.
    max_iterations : int
    """

    with_scale: bool = True
    tolerance: float = 1e-10
    max_iterations: int = 100


@dataclass(frozen=True)
class Removed:
    """What an alignment took out of a cohort.

    Attributes
    ----------
    iterations : int
    change : float
        Of the mean in the last iteration, relative to its centroid size.
    scale_mean, scale_sd, scale_min, scale_max : float
        Size of the subjects relative to their aligned shapes.
    rotation_sd, rotation_max : float
        Degrees from the cohort's average orientation, root mean square and largest.
    translation_sd, translation_max : float
        mm from the cohort's average place, root mean square and largest.
    variance_before, variance_after : float
        Variance about the mean shape (all three directions together), averaged over the vertices, mm squared.
    """

    iterations: int
    change: float
    scale_mean: float
    scale_sd: float
    scale_min: float
    scale_max: float
    rotation_sd: float
    rotation_max: float
    translation_sd: float
    translation_max: float
    variance_before: float
    variance_after: float


@dataclass(frozen=True, eq=False)
class CommonFrame:
    """The common frame of a cohort.

    Attributes
    ----------
    mean : (n, 3) float
        The average of the aligned shapes: centred, at the mean centroid size of the inputs.
    transforms : tuple of Similarity
        Take each input to its aligned shape.
    removed : Removed
    """

    mean: Floats
    transforms: tuple[Similarity, ...]
    removed: Removed

    @property
    def scales(self) -> Floats:
        """Size of every subject relative to its aligned shape, (k,)."""
        return np.array([1.0 / transform.scale for transform in self.transforms])


@dataclass(frozen=True, eq=False)
class Alignment(CommonFrame):
    """The common frame of shapes in memory, with the aligned shapes, (k, n, 3)."""

    shapes: Floats


def align_shapes(shapes: Floats, *, with_scale: bool = True) -> Alignment:
    """Align shapes that fit into memory, (k, n, 3), oriented like the first; see :func:`common_frame`."""
    frame = common_frame(shapes, np.arange(len(shapes)), shapes[0], ProcrustesParameters(with_scale))
    aligned = np.stack([t.apply(shape) for t, shape in zip(frame.transforms, shapes, strict=True)])
    return Alignment(frame.mean, frame.transforms, frame.removed, aligned)


def common_frame(
    packed: NDArray[np.floating],
    rows: Ints,
    reference: Floats,
    parameters: ProcrustesParameters | None = None,
    mirror: Ints | None = None,
    names: Sequence[str] | None = None,
) -> CommonFrame:
    """Align shapes to their mean, iterated until the mean stands still.

    Parameters
    ----------
    packed : (s, n, 3) float
        Shapes, possibly mapped from a file.
    rows : (k,) int
        Those to align.
    reference : (n, 3) float
        The shape that gives the start and the mean's orientation.
    parameters : ProcrustesParameters, optional
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image; when given, every shape counts with its mirror image, so that
        the mean is symmetric about x = 0. (The mirror image's own transform is the mirrored transform.)
    names : sequence of str, optional
        What to call the shapes in an error.

    Notes
    -----
    The scale makes a shape's deviation from the mean orthogonal to the mean (tangent coordinates): it is the
    inverse of the best scale of the *mean onto the shape*. So no size is left in the deviations, the average of
    the aligned shapes has the mean's size, and aligning a shape to that mean again gives the same transform. The
    usual scale (of the shape onto the mean) shrinks the shapes that differ most.
    """
    p = parameters or ProcrustesParameters()
    centres, sizes, before = _extent(
        packed, rows, names or [f"shape {i + 1} of {len(rows)}" for i in range(len(rows))]
    )
    size = float(sizes.mean())
    base = reference - reference.mean(axis=0)
    if mirror is not None:
        base = (base + mirrored(base, mirror)) / 2.0
    mean = base * (size / np.linalg.norm(base))
    for iteration in range(1, p.max_iterations + 1):
        turns = np.empty((len(rows), 3, 3))  # scale * rotation
        total = np.zeros_like(mean)
        for i, shape in enumerate(_shapes(packed, rows)):
            turns[i] = _turn(mean, shape, p.with_scale)
            total += (shape - centres[i]) @ turns[i].T
        new = total / len(rows)
        if mirror is not None:
            new = (new + mirrored(new, mirror)) / 2.0
        if p.with_scale:
            new *= size / np.linalg.norm(new)
        # Oriented like the reference, or it would drift with the shapes for ever.
        new = new @ _turn(base, new, with_scale=False).T
        change = float(np.linalg.norm(new - mean)) / size
        mean = new
        if change < p.tolerance:
            break
    scales = np.cbrt(np.linalg.det(turns)) if p.with_scale else np.ones(len(rows))
    transforms = tuple(
        Similarity(turn / scale, -turn @ centre, float(scale))
        for turn, scale, centre in zip(turns, scales, centres, strict=True)
    )
    spread = (scales * sizes) @ (scales * sizes) - len(rows) * np.linalg.norm(mean) ** 2
    after = max(float(spread), 0.0) / (max(len(rows) - 1, 1) * len(mean))
    return CommonFrame(mean, transforms, _removed(iteration, change, scales, turns, centres, before, after))


def mirrored(shape: Floats, mirror: Ints) -> Floats:
    """The mirror image of shapes (..., n, 3) across x = 0, in the same correspondence."""
    return shape[..., mirror, :] * MIRROR


def _shapes(packed: NDArray[np.floating], rows: Ints) -> Iterator[Floats]:
    return (np.array(packed[row], dtype=np.float64) for row in rows)


def _extent(packed: NDArray[np.floating], rows: Ints, names: Sequence[str]) -> tuple[Floats, Floats, float]:
    """Centroids (k, 3), centroid sizes (k,) and the variance as the shapes lie."""
    centres, sizes = np.empty((len(rows), 3)), np.empty(len(rows))
    total, squares = np.zeros(packed.shape[1:]), 0.0
    for i, shape in enumerate(_shapes(packed, rows)):
        centres[i] = shape.mean(axis=0)
        sizes[i] = np.linalg.norm(shape - centres[i])
        if not (np.isfinite(sizes[i]) and sizes[i] > 0.0):
            raise BreastMorphError(
                "the shape has coordinates that are not finite, or no extent",
                "Leave this subject out or register it again",
                names[i],
            )
        total += shape
        squares += float((shape**2).sum())
    _require_one_unit(sizes, names)
    spread = squares - float((total**2).sum()) / len(rows)
    return centres, sizes, max(spread, 0.0) / (max(len(rows) - 1, 1) * len(total))


def _require_one_unit(sizes: Floats, names: Sequence[str]) -> None:
    usual = float(np.median(sizes))
    odd = np.flatnonzero((sizes < SIZES_IN_A_COHORT[0] * usual) | (sizes > SIZES_IN_A_COHORT[1] * usual))
    if len(odd):
        named = ", ".join(f"{names[i]} ({sizes[i] / usual:.3g} times)" for i in odd[:5])
        raise BreastMorphError(
            "{n_odd} of {n_sizes} shapes are not of the others' size: {named} the median",
            "Their files are in another unit or damaged: register them again, or leave them out",
            n_odd=len(odd),
            n_sizes=len(sizes),
            named=named,
        )


def _turn(mean: Floats, shape: Floats, with_scale: bool) -> Floats:
    """Scale times rotation that takes a shape to the centred mean, (3, 3)."""
    cross = mean.T @ shape  # the mean is centred, so the shape need not be
    u, singular, vt = np.linalg.svd(cross)
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt)) or 1.0])
    scale = float((mean**2).sum()) / float((singular * sign).sum()) if with_scale else 1.0
    return scale * (u * sign) @ vt


def _removed(
    iterations: int,
    change: float,
    scales: Floats,
    turns: Floats,
    centres: Floats,
    before: float,
    after: float,
) -> Removed:
    rotations = turns / scales[:, None, None]
    u, _, vt = np.linalg.svd(rotations.mean(axis=0))
    average = (u * [1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    cosine = (np.einsum("kij,ij->k", rotations, average) - 1.0) / 2.0
    angles = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    away = np.linalg.norm(centres - centres.mean(axis=0), axis=1)
    relative = 1.0 / scales
    return Removed(
        iterations,
        change,
        float(relative.mean()),
        float(relative.std(ddof=1)) if len(relative) > 1 else 0.0,
        float(relative.min()),
        float(relative.max()),
        float(np.sqrt((angles**2).mean())),
        float(angles.max()),
        float(np.sqrt((away**2).mean())),
        float(away.max()),
        before,
        after,
    )
