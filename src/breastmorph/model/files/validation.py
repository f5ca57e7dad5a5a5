"""The one place where numbers from a file become a model: what does not fit together is refused here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged, printable
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel, Training

_EXACT = 1e-4  # deviation from orthonormal that 32-bit floats explain
_DRIFT = 0.05  # deviation that is repaired; more is no basis


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
    if basis.ndim != 2 or basis.shape != (size, q) or q > size:
        raise damaged(f"a basis of shape {basis.shape} does not fit {size // 3:,} points and {q} variances")
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
        raise FileProblem(
            f"the file's cells of shape {faces.shape} are no triangles", "Give a model of a triangle mesh"
        )
    if faces.min() < 0 or faces.max() >= size // 3 or (faces != np.floor(faces)).any():
        raise damaged(f"a triangle names a vertex that the model's {size // 3:,} vertices do not have")
    for name, values in (("mean", mean), ("basis", basis), ("variances", variances)):
        if not np.isfinite(values).all():
            raise damaged(f"the {name} holds numbers that are not finite")
    if (variances < 0.0).any():
        raise damaged(f"a variance is negative ({variances.min():g})")
    noise = others.get("noise_variance", 0.0)
    if not (math.isfinite(noise) and noise >= 0.0):
        raise damaged(f"a noise variance of {noise:g} is impossible")
    for label, vertex in others.get("landmark_ids", {}).items():
        if not (isinstance(label, str) and isinstance(vertex, int) and 0 <= vertex < size // 3):
            raise damaged(f"landmark {printable(str(label))!r} names no vertex of the model's {size // 3:,}")
    as_given = variances
    kept, variances = _orthonormal(_as_float(basis), variances, scaled_basis)
    training = others.get("training")
    if training is not None and not np.array_equal(variances, as_given):
        others["training"] = None  # of other components, or of the same in another order
    return ShapeModel(
        mean.reshape(-1, 3).astype(np.float64),
        kept,
        variances,
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


def _orthonormal(
    basis: NDArray[np.floating], variances: Floats, scaled: bool
) -> tuple[NDArray[np.floating], Floats]:
    """An orthonormal basis and falling variances with the same covariance."""
    products = (basis.T @ basis).astype(np.float64)
    if scaled:
        # Columns without variance carry nothing and cannot be scaled back.
        keep = variances > 1e-16 * max(float(variances.max(initial=0.0)), 1e-300)
        inverse = 1.0 / np.sqrt(variances[keep])
        as_scaled = products[np.ix_(keep, keep)] * inverse * inverse[:, None]
        # Some writers call an orthonormal basis 0.8: believe the numbers.
        if _error(as_scaled) <= _error(products):
            basis, variances = basis[:, keep] * inverse.astype(basis.dtype), variances[keep]
            products = as_scaled
    error = _error(products)
    if not error <= _DRIFT:  # also where numbers beyond the range made it NaN
        raise damaged("its components are not orthonormal")
    if error > _EXACT:
        half = basis * np.sqrt(variances).astype(basis.dtype)
        values, vectors = np.linalg.eigh((half.T @ half).astype(np.float64))
        keep = values > 1e-12 * values.max(initial=0.0)
        basis = (half @ (vectors[:, keep] / np.sqrt(values[keep])).astype(basis.dtype)).astype(basis.dtype)
        variances = values[keep]
    order = np.argsort(-variances, kind="stable")
    if (order != np.arange(len(order))).any():
        basis, variances = basis[:, order], variances[order]
    return np.ascontiguousarray(basis), variances


def _error(products: Floats) -> float:
    return float(np.abs(products - np.eye(len(products))).max(initial=0.0))
