"""The one place where numbers from a file become a model: what does not fit together is refused here."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged, printable
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.threads import in_one_thread

_log = logging.getLogger(__name__)
_EXACT = 1e-4  # deviation from orthonormal that 32-bit floats explain
_DRIFT = 0.05  # deviation of a basis that was meant to be orthonormal
_NOTHING = 1e-12  # of the largest variance: rounding, not shape
_ROUNDING = 1e-6  # of the largest variance: so far below 0 rounding brings one that should be 0
_BELIEVED = (
    "The model's version says that its basis is multiplied by the standard deviations, its numbers say that it is "
    "not: the numbers are believed"
)
_ROWS = 4096  # of a basis at a time: what is computed needs little memory beside it


def checked_model(
    mean: NDArray[Any],
    basis: NDArray[Any],
    variances: NDArray[Any],
    faces: NDArray[Any],
    *,
    scaled_basis: bool = False,
    mirror: NDArray[Any] | None = None,
    **others: Any,
) -> ShapeModel:
    """A model from arrays of a file.

    Parameters
    ----------
    mean : (3n,) or (n, 3) numbers
    basis : (3n, q) numbers
    variances : (q,) numbers
    faces : (m, 3) numbers
    scaled_basis : bool
        The file's version says that the columns of the basis are multiplied by the standard deviations.
    mirror : (n,) whole numbers, optional
    others
        Further attributes of :class:`ShapeModel`.
    """
    for name, values in (("mean", mean), ("basis", basis), ("variances", variances), ("triangles", faces)):
        if not _are_numbers(values):
            raise damaged(f"the {name} are not numbers")
    variances = variances.reshape(-1).astype(np.float64)
    q, size = len(variances), mean.size
    if size == 0 or size % 3 or (mean.ndim == 2 and mean.shape[1] != 3 and 1 not in mean.shape):
        raise damaged(f"a mean of shape {mean.shape} is no shape of points in space")
    if basis.ndim != 2 or basis.shape != (size, q):
        raise damaged(f"a basis of shape {basis.shape} does not fit {size // 3:,} points and {q} variances")
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
        raise FileProblem(
            f"the file's cells of shape {faces.shape} are no triangles", "Give a model of a triangle mesh"
        )
    if faces.min() < 0 or faces.max() >= size // 3 or (faces != np.floor(faces)).any():
        raise damaged(f"a triangle names a vertex that the model's {size // 3:,} vertices do not have")
    for name, values in (("mean", mean), ("variances", variances)):
        if not np.isfinite(values).all():
            raise damaged(f"the {name} holds numbers that are not finite")
    if (variances < -max(_ROUNDING * variances.max(initial=0.0), 1e-9)).any():
        raise damaged(f"a variance is negative ({variances.min():g})")
    variances = np.maximum(variances, 0.0)
    noise = others.get("noise_variance", 0.0)
    if not (math.isfinite(noise) and noise >= 0.0):
        raise damaged(f"a noise variance of {noise:g} is impossible")
    for label, vertex in others.get("landmark_ids", {}).items():
        if not (isinstance(label, str) and isinstance(vertex, int) and 0 <= vertex < size // 3):
            raise damaged(f"landmark {printable(str(label))!r} names no vertex of the model's {size // 3:,}")
    kept, as_kept, turn = _orthonormal(_as_float(basis), variances, scaled_basis)
    if not (as_kept <= np.finfo(np.float32).max).all():
        raise damaged("its variances are beyond the range")
    if others.get("training") is not None:
        others["training"] = _turned(others["training"], variances, as_kept, turn)
    return ShapeModel(
        mean.reshape(-1, 3).astype(np.float64),
        kept,
        as_kept,
        faces.astype(np.int64),
        mirror=_checked_mirror(mirror, size // 3),
        **others,
    )


def _checked_mirror(mirror: NDArray[Any] | None, n_vertices: int) -> NDArray[Any] | None:
    """A permutation that undoes itself."""
    if mirror is None:
        return None
    if mirror.shape != (n_vertices,) or mirror.dtype.kind not in "iu":
        raise damaged("the mirror permutation does not fit the vertices")
    if mirror.min() < 0 or mirror.max() >= n_vertices or (mirror[mirror] != np.arange(n_vertices)).any():
        raise damaged("the mirror permutation is none")
    return mirror.astype(np.int64)


def checked_training(
    scores: NDArray[Any] | None, scales: NDArray[Any] | None, columns: Mapping[str, Floats], q: int
) -> Training | None:
    """Scores (k, q) with what belongs to them; None without scores."""
    if scores is None:
        return None
    k = len(scores)
    scales = np.ones(k) if scales is None else scales
    if scores.shape != (k, q) or scales.shape != (k,) or any(c.shape != (k,) for c in columns.values()):
        raise damaged("the training scores do not fit the model")
    if not all(map(_are_numbers, (scores, scales, *columns.values()))):
        raise damaged("the training scores are not numbers")
    if not (np.isfinite(scores).all() and np.isfinite(scales).all() and (scales > 0).all()):
        raise damaged("the training scores are not finite")
    return Training(scores.astype(np.float64), scales.astype(np.float64), dict(columns))


def checked_info(text: str | None) -> dict[str, Any]:
    """Provenance from JSON; what is none is dropped."""
    try:
        info = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return info if isinstance(info, dict) else {}


def _are_numbers(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf"


def _as_float(basis: NDArray[Any]) -> NDArray[np.floating]:
    return basis if basis.dtype in (np.float32, np.float64) else basis.astype(np.float32)


# Which components of the file are kept, in which order, and how those were turned (None: not at all).
_Turn = tuple[Ints, Floats | None]


def _orthonormal(
    basis: NDArray[np.floating], variances: Floats, scaled: bool
) -> tuple[NDArray[np.floating], Floats, _Turn]:
    """An orthonormal basis and falling variances with the covariance that the file means.

    Other programs write components that carry nothing (no variance, or a column of zeros or of what was left of a
    division by 0) and functions of another normalisation: a covariance is meant by them all the same.
    """
    kept, turn = np.arange(len(variances)), None
    if not _error(basis) <= _EXACT:  # also where numbers that are not finite made it NaN
        kept = _not_null(basis, variances, scaled)
        if len(kept) < len(variances):
            basis, variances = basis[:, kept], variances[kept]
        if scaled:
            basis = _divided(basis, variances)
        if not _error(basis) <= _EXACT:
            if not scaled:
                _speak_of_a_scaled_basis(basis, variances)
            basis, variances, turn = _from_covariance(basis, variances)
    elif scaled and not np.allclose(variances, 1.0, rtol=_EXACT):
        _log.warning(_BELIEVED)
    order = np.argsort(-variances, kind="stable")
    if (order != np.arange(len(order))).any():
        basis, variances = basis[:, order], variances[order]
        kept, turn = (kept[order], None) if turn is None else (kept, turn[:, order])
    return np.ascontiguousarray(basis), variances, (kept, turn)


def _not_null(basis: NDArray[np.floating], variances: Floats, scaled: bool) -> Ints:
    """The components that carry something; the others may hold any number, or none."""
    largest = variances.max(initial=0.0)
    lengths = np.einsum("ij,ij->j", basis, basis, dtype=np.float64)
    # What has no variance cannot be divided by it.
    shares = lengths * (variances > 1e-16 * largest if scaled else variances)
    shares[(variances <= _NOTHING * largest) & ~np.isfinite(shares)] = 0.0
    if not np.isfinite(shares).all():
        raise damaged("the basis holds numbers that are not finite, or beyond the range")
    some = shares > _NOTHING * shares.max(initial=0.0)
    if not some.all():
        _log.warning(
            "Components of the model without variance are left out: %d of %d", (~some).sum(), len(some)
        )
    return np.flatnonzero(some)


def _divided(basis: NDArray[np.floating], variances: Floats) -> NDArray[np.floating]:
    """The components of a basis that holds components times standard deviations."""
    divided = basis / np.sqrt(variances).astype(basis.dtype)
    # Some writers call a basis that is nearly orthonormal 0.8: believe the numbers.
    if not _error(basis) <= min(_DRIFT, _error(divided)):
        return divided
    _log.warning(_BELIEVED)
    return basis


def _speak_of_a_scaled_basis(basis: NDArray[np.floating], variances: Floats) -> None:
    lengths = np.einsum("ij,ij->j", basis, basis, dtype=np.float64)
    if np.allclose(lengths, variances, rtol=1e-3) and _error(basis / np.sqrt(lengths)) <= _DRIFT:
        _log.warning(
            "The columns of the model's basis are as long as its standard deviations, as if multiplied by them, "
            "which its version excludes; it is read as its version says. If shapes vary far too much, "
            "write the variances as 1"
        )


@in_one_thread
def _from_covariance(
    basis: NDArray[np.floating], variances: Floats
) -> tuple[NDArray[np.floating], Floats, Floats]:
    """Principal components of the covariance ``basis @ diag(variances) @ basis.T``, and the turn that led to them.

    The R of a QR decomposition has the singular values of basis * deviations; it is found a block of rows at a time.
    """
    q, deviations = len(variances), np.sqrt(variances)
    starts, step = range(0, len(basis), max(_ROWS, q)), max(_ROWS, q)
    triangle = np.empty((0, q))
    for start in starts:
        rows = np.vstack([triangle, basis[start : start + step] * deviations])
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    _, lengths, turn = np.linalg.svd(triangle, full_matrices=False)
    some = lengths**2 > _NOTHING * (lengths**2).max(initial=0.0)
    lengths, turn = lengths[some], turn[some].T
    # A component looks the way of that of the file which it has most of.
    most = np.abs(turn).argmax(axis=0)
    turn = turn * np.where(turn[most, np.arange(len(most))] < 0.0, -1.0, 1.0)
    made = np.empty((len(basis), len(lengths)), dtype=basis.dtype)
    for start in starts:
        made[start : start + step] = (basis[start : start + step] * deviations) @ (turn / lengths)
    _log.warning(
        "The model's basis is not orthonormal: its %d components were made into %d principal components of the "
        "same covariance",
        q,
        len(lengths),
    )
    return made, lengths**2, turn


def _turned(training: Training, before: Floats, after: Floats, how: _Turn) -> Training:
    """The subjects' coefficients of the components that were made of the file's."""
    kept, turn = how
    given, deviations = training.scores[:, kept], np.sqrt(before[kept])
    standard = np.divide(given, deviations, out=np.zeros_like(given), where=deviations > 0.0)
    if turn is not None:
        return replace(training, scores=standard @ turn * np.sqrt(after))
    return replace(training, scores=given)


def _error(basis: NDArray[np.floating]) -> float:
    """How far the columns are from orthonormal; infinite where they are more than can be."""
    rows, q = basis.shape
    return float(np.abs(basis.T @ basis - np.eye(q)).max(initial=0.0)) if q <= rows else math.inf
