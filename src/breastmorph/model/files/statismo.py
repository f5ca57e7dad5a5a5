"""Statismo's model layout, as statismo, Scalismo and the published breast model use it.

Written as version 0.9. What is ours (landmarks, mirror, provenance, training) lies in ``/breastmorph``, which other
readers ignore; training scores lie where statismo keeps them, in ``/modelinfo/scores``.
"""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, printable, write_file
from breastmorph.foundation.machine import in_one_thread
from breastmorph.model.files.tree import Tree
from breastmorph.model.shape_model import ShapeModel, Training

# --------------------------------------------------------------------------------------------------------------------
# The one place where numbers from a file become a model: what does not fit together is refused here
# --------------------------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------------------------
# Statismo's model layout, as statismo, Scalismo and the published breast model use it
# --------------------------------------------------------------------------------------------------------------------

_OURS = "/breastmorph"
_SURFACE, _VOLUME = "POLYGON_MESH_MODEL", "VOLUME_MESH_MODEL"  # kinds in a catalog
_MOST_NAMED = 100  # entries of a catalog that are looked at beyond the one that is read
_RAW_REFERENCE = ("vtkPolyDataRepresenter", "itkMeshRepresenter")  # hold a whole VTK file instead of arrays


def model_from(tree: Tree) -> ShapeModel:
    """The model in a tree; the first of a catalog's."""
    root = _model_path(tree)
    mean, basis, variances = (
        _needed(tree, f"{root}/model/{name}") for name in ("mean", "pcaBasis", "pcaVariance")
    )
    version = _version(tree, root)
    if version not in ((0, 8), (0, 9)) and version[0] != 1:
        raise FileProblem(
            f"this is statismo version {version[0]}.{version[1]}; 0.8, 0.9 and 1.x are read",
            "Write the model again with Scalismo",
        )
    noise = tree.array(f"{root}/model/noiseVariance")
    names, vertices = tree.array(f"{_OURS}/landmark_names"), tree.array(f"{_OURS}/landmark_vertices")
    landmarks = {}
    if names is not None and vertices is not None and names.shape == vertices.shape:
        landmarks = {_plain(name): int(vertex) for name, vertex in zip(names, vertices, strict=True)}
    return checked_model(
        mean,
        basis,
        variances,
        _faces(tree, root),
        scaled_basis=version == (0, 8),
        noise_variance=float(noise.reshape(-1)[0]) if noise is not None and noise.size else 0.0,
        landmark_ids=landmarks,
        mirror=tree.array(f"{_OURS}/mirror"),
        training=_training(tree, root, variances.reshape(-1)),
        info=checked_info(tree.text(f"{_OURS}/info")),
    )


def _model_path(tree: Tree) -> str:
    """Where the model lies: at the root, or where the catalog says."""
    if tree.array("/model/mean") is not None:
        return ""
    names, kinds = sorted(tree.children("/catalog")), {}
    for number, name in enumerate(names):
        where = (tree.text(f"/catalog/{name}/modelPath") or "").rstrip("/")
        kinds[name] = kind = tree.text(f"/catalog/{name}/modelType") or _SURFACE
        if kind == _SURFACE and tree.array(f"{where}/model/mean") is not None:
            _speak_of_others(tree, name, names[number + 1 : number + 1 + _MOST_NAMED])
            return where
    if _VOLUME in kinds.values():
        raise _of_tetrahedra()
    raise FileProblem(
        "the file holds no statistical shape model of a surface",
        "Give a model that statismo, Scalismo or `breastmorph build` wrote",
    )


def _speak_of_others(tree: Tree, chosen: str, others: list[str]) -> None:
    more = [name for name in others if tree.text(f"/catalog/{name}/modelType") == _SURFACE]
    if more:
        _log.warning(
            "The file holds %d models of a surface: %s is read, and not %s",
            len(more) + 1,
            printable(chosen),
            ", ".join(map(printable, more[:5])) + (" ..." if len(more) > 5 else ""),
        )


def _of_tetrahedra() -> FileProblem:
    return FileProblem(
        "this is a model of a volume: its cells are tetrahedra and no triangles",
        "Make a model of its outer surface (getOuterSurface in Scalismo) and give that",
    )


def _version(tree: Tree, root: str) -> tuple[int, int]:
    """Statismo's version, of the file or of the model in it; files without one are as old as 0.8."""
    for place in ("/version", f"{root}/version"):
        parts = [tree.array(f"{place}/{name}Version") for name in ("major", "minor")]
        if not any(part is None or part.size != 1 or part.dtype.kind not in "iuf" for part in parts):
            major, minor = (int(np.asarray(part).reshape(-1)[0]) for part in parts)
            return major, minor
    return 0, 8


def _needed(tree: Tree, path: str) -> NDArray[Any]:
    found = tree.array(path)
    if found is None:
        raise damaged(f"{printable(path, 100)} is missing")
    return found


def _faces(tree: Tree, root: str) -> NDArray[Any]:
    """Triangles of the representer, (m, 3)."""
    name = tree.attribute(f"{root}/representer", "name") or ""
    raw = tree.array(f"{root}/representer/reference") if name in _RAW_REFERENCE else None
    if raw is not None and raw.dtype.kind in "iu":
        from breastmorph.mesh.files import vtk

        mesh = vtk.read_legacy(raw.reshape(-1).astype(np.uint8).tobytes(), Path("reference.vtk"))
        return np.array(mesh.faces)
    kind = tree.attribute(f"{root}/representer", "datasetType")
    if kind == "VOLUME_MESH":
        raise _of_tetrahedra()
    if kind not in (None, "POLYGON_MESH"):
        raise FileProblem(
            f"this is a model of a {printable(kind)}, not of a surface", "Give a POLYGON_MESH model"
        )
    cells = _needed(tree, f"{root}/representer/cells")
    if cells.ndim == 2 and cells.shape[0] == 4:  # older writers call these a POLYGON_MESH too
        raise _of_tetrahedra()
    if cells.ndim != 2 or cells.shape[0] != 3:
        raise FileProblem(
            f"the file's cells of shape {cells.shape} are no triangles", "Give a model of a triangle mesh"
        )
    return cells.T


def _training(tree: Tree, root: str, variances: NDArray[Any]) -> Any:
    scores = tree.array(f"{root}/modelinfo/scores")
    q = len(variances)
    if scores is None or scores.ndim != 2 or scores.shape[0] != q or scores.dtype.kind not in "iuf":
        return None  # other builders leave an empty or shorter one
    columns = {}
    for name in tree.children(f"{_OURS}/training/columns"):
        columns[name] = _needed(tree, f"{_OURS}/training/columns/{name}").astype(np.float64)
    deviations = np.sqrt(np.maximum(variances.astype(np.float64), 0.0))
    # Of a component without variance other builders write what a division by 0 gives.
    given = np.where(deviations > 0.0, scores.T, 0.0) * deviations
    scales = tree.array(f"{_OURS}/training/scales")
    if scales is None and not np.isfinite(given).all():
        _log.warning("The model's training scores are not finite: they are left out")
        return None
    return checked_training(given, scales, columns, q)


def _plain(name: Any) -> str:
    return name.decode("utf-8") if isinstance(name, bytes) else str(name)


def write_statismo(model: ShapeModel, path: Path) -> None:
    """Write a model as statismo HDF5 0.9; the same model gives the same bytes."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        _put(file, "version/majorVersion", np.int32(0))
        _put(file, "version/minorVersion", np.int32(9))
        representer = file.create_group("representer")
        # Strings of fixed length: statismo's C++ reader knows no others.
        for name, value in (
            ("name", "itkStandardMeshRepresenter"),
            ("version/majorVersion", "0"),
            ("version/minorVersion", "9"),
            ("datasetType", "POLYGON_MESH"),
        ):
            representer.attrs[name] = np.bytes_(value)
        _put(file, "representer/points", model.mean.T.astype(np.float32))
        _put(file, "representer/cells", model.faces.T.astype(np.int32))
        _put(file, "model/mean", model.mean.ravel().astype(np.float32))
        _put(file, "model/pcaBasis", np.asarray(model.basis, dtype=np.float32))
        _put(file, "model/pcaVariance", model.variances.astype(np.float32))
        _put(file, "model/noiseVariance", np.array([model.noise_variance], dtype=np.float32))
        _put(file, "modelinfo/build-time", np.bytes_("not recorded"))
        builder = str(model.info.get("software", "BreastMorph"))
        _put(file, "modelinfo/modelBuilder-0/builderName", np.bytes_(builder.encode()))
        _put(file, "modelinfo/modelBuilder-0/buildTime", np.bytes_("not recorded"))
        file.create_group("modelinfo/modelBuilder-0/parameters")
        file.create_group("modelinfo/modelBuilder-0/dataInfo")
        if model.training is not None:
            # Statismo's scores: a column a subject, in standard deviations.
            given, deviations = model.training.scores, model.deviations
            scores = np.divide(given, deviations, out=np.zeros_like(given), where=deviations > 0.0)
            _put(file, "modelinfo/scores", scores.T.astype(np.float32))
            _put(file, f"{_OURS}/training/scales", model.training.scales)
            for name, values in model.training.columns.items():
                _put(file, f"{_OURS}/training/columns/{name.replace('/', '_')}", values)
        _put(file, f"{_OURS}/info", np.bytes_(json.dumps(dict(model.info), sort_keys=True).encode()))
        if model.landmark_ids:
            names = np.array([name.encode() for name in model.landmark_ids])
            _put(file, f"{_OURS}/landmark_names", names)
            _put(
                file,
                f"{_OURS}/landmark_vertices",
                np.array(list(model.landmark_ids.values()), dtype=np.int32),
            )
        if model.mirror is not None:
            _put(file, f"{_OURS}/mirror", model.mirror.astype(np.int32))
    write_file(path, buffer.getvalue())


def _put(file: Any, name: str, value: Any) -> None:
    file.create_dataset(name, data=value, track_times=False)
