"""Model files: one ``load_model`` that looks at the content, one ``save_model`` that looks at the name.

Statismo HDF5 (as Scalismo and the published breast model use it) is the native format; Scalismo's HDF5-JSON is read,
NPZ is read and written, GLB with morph targets is written for viewers.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import damaged, make_folder, printable, problems_of, read_bytes, write_file
from breastmorph.foundation.language import N_
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.messages import Finding, Message, note, warning
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.files.gltf import Blob, packed
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.model.shape_model import (
    ShapeModel,
    Training,
    exchanged_sides,
    faces_backwards,
    landmark_frame,
)
from breastmorph.scan.anatomy import BODY_PART_EXTENT

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
    noise_variance: float = 0.0,
    landmark_ids: Mapping[str, int] | None = None,
    mirror: NDArray[Any] | None = None,
    scores: NDArray[Any] | None = None,
    scales: NDArray[Any] | None = None,
    columns: Mapping[str, Floats] | None = None,
    info: str | None = None,
) -> ShapeModel:
    """A model from arrays of a file.

    Parameters
    ----------
    mean : (3n,) or (n, 3) numbers
    basis : (3n, q) numbers
    variances : (q,) numbers
    faces : (m, 3) numbers
    scaled_basis : bool
        By the file's version the columns of the basis are multiplied by the standard deviations.
    noise_variance : float
    landmark_ids : mapping from name to vertex, optional
    mirror : (n,) whole numbers, optional
    scores, scales, columns : (k, q), (k,) and mapping from name to (k,) numbers, optional
        What is kept of the training subjects.
    info : str, optional
        Provenance as JSON.
    """
    for name, values in (("mean", mean), ("basis", basis), ("variances", variances), ("triangles", faces)):
        if not _are_numbers(values):
            raise damaged("the {name} are not numbers", name=name)
    variances = variances.reshape(-1).astype(np.float64)
    q, size = len(variances), mean.size
    if size == 0 or size % 3 or (mean.ndim == 2 and mean.shape[1] != 3 and 1 not in mean.shape):
        raise damaged("a mean of shape {shape} is no shape of points in space", shape=mean.shape)
    if basis.ndim != 2 or basis.shape != (size, q):
        raise damaged(
            "a basis of shape {shape} does not fit {size:,} points and {q} variances",
            shape=basis.shape,
            size=size // 3,
            q=q,
        )
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
        raise FileProblem(
            "the file's cells of shape {shape} are no triangles",
            "Give a model of a triangle mesh",
            shape=faces.shape,
        )
    if faces.min() < 0 or faces.max() >= size // 3 or (faces != np.floor(faces)).any():
        raise damaged(
            "a triangle names a vertex that the model's {size:,} vertices do not have", size=size // 3
        )
    for name, values in (("mean", mean), ("variances", variances)):
        if not np.isfinite(values).all():
            raise damaged("the {name} holds numbers that are not finite", name=name)
    if (variances < -max(_ROUNDING * variances.max(initial=0.0), 1e-9)).any():
        raise damaged("a variance is negative ({variances:g})", variances=variances.min())
    variances = np.maximum(variances, 0.0)
    if not (math.isfinite(noise_variance) and noise_variance >= 0.0):
        raise damaged("a noise variance of {noise_variance:g} is impossible", noise_variance=noise_variance)
    for label, vertex in (landmark_ids or {}).items():
        if not (isinstance(label, str) and isinstance(vertex, int) and 0 <= vertex < size // 3):
            raise damaged(
                "landmark {label!r} names no vertex of the model's {size:,}",
                label=printable(str(label)),
                size=size // 3,
            )
    if basis.dtype not in (np.float32, np.float64):
        basis = basis.astype(np.float32)
    kept, as_kept, turn = _orthonormal(basis, variances, scaled_basis)
    if not (as_kept <= np.finfo(np.float32).max).all():
        raise damaged("its variances are beyond the range")
    training = _checked_training(scores, scales, columns or {}, q)
    return ShapeModel(
        mean.reshape(-1, 3).astype(np.float64),
        kept,
        as_kept,
        faces.astype(np.int64),
        noise_variance=noise_variance,
        landmark_ids=landmark_ids or {},
        mirror=_checked_mirror(mirror, size // 3),
        training=training and _turned(training, variances, as_kept, turn),
        info=_checked_info(info),
    )


def _checked_mirror(mirror: NDArray[Any] | None, n_vertices: int) -> NDArray[Any] | None:
    """A permutation that undoes itself."""
    if mirror is None:
        return None
    if mirror.shape != (n_vertices,) or mirror.dtype.kind not in "iu":
        raise damaged("the mirror permutation does not fit the vertices")
    if mirror.min() < 0 or mirror.max() >= n_vertices or (mirror[mirror] != np.arange(n_vertices)).any():
        raise damaged("the mirror permutation is not a permutation")
    return mirror.astype(np.int64)


def _checked_training(
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


def _checked_info(text: str | None) -> dict[str, Any]:
    """Provenance from JSON; what is none is dropped."""
    try:
        info = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return info if isinstance(info, dict) else {}


def _are_numbers(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf"


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
                _warn_of_a_scaled_basis(basis, variances)
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


def _warn_of_a_scaled_basis(basis: NDArray[np.floating], variances: Floats) -> None:
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


CONTENT = "content"  # where a model's info has the hash itself


def content_hash(model: ShapeModel) -> str:
    """SHA-256 of a model's shape, components, landmarks and provenance.

    As 32-bit numbers, so that it is the same in every format; without what is kept of the training subjects.
    """
    digest = hashlib.sha256()
    for values in (model.mean, model.basis, model.variances, np.array([model.noise_variance])):
        digest.update(np.asarray(values, dtype=np.float32).tobytes())
    digest.update(model.faces.astype(np.int32).tobytes())
    info = {key: value for key, value in model.info.items() if key != CONTENT}
    digest.update(json.dumps([sorted(model.landmark_ids.items()), info], sort_keys=True).encode())
    return digest.hexdigest()


def is_unchanged(model: ShapeModel) -> bool | None:
    """Whether a model that was read is what was written; None where its file carries no hash."""
    stated = model.info.get(CONTENT)
    return None if stated is None else bool(stated == content_hash(model))


_KIND = "BreastMorph model 1"


def write_npz(model: ShapeModel, path: Path) -> None:
    """Write a model; coordinates as 64-bit, the basis as it is."""
    parts: dict[str, NDArray[Any]] = {
        "kind": np.array(_KIND),
        "mean": model.mean,
        "basis": model.basis,
        "variances": model.variances,
        "faces": model.faces.astype(np.int32),
        "noise_variance": np.array(model.noise_variance),
        "landmark_names": np.array(list(model.landmark_ids), dtype=np.str_),
        "landmark_vertices": np.array(list(model.landmark_ids.values()), dtype=np.int32),
        "info": np.array(json.dumps(dict(model.info), sort_keys=True)),
    }
    if model.mirror is not None:
        parts["mirror"] = model.mirror.astype(np.int32)
    if model.training is not None:
        columns = model.training.columns
        parts |= {"scores": model.training.scores, "scales": model.training.scales}
        parts |= {"column_names": np.array(list(columns), dtype=np.str_)}
        parts |= {"columns": np.array(list(columns.values()))}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **parts)
    write_file(path, buffer.getvalue())


def model_from_npz(data: bytes) -> ShapeModel:
    """A model from the bytes of what :func:`write_npz` wrote."""
    with open_archive(data) as parts:
        if "kind" not in parts or str(parts["kind"]) != _KIND:
            raise FileProblem(
                "this NPZ file is not a model", "Give a file that `breastmorph build` or `convert` wrote"
            )
        names = parts["landmark_names"].tolist()
        found = parts["landmark_vertices"]  # truth values would choose vertices, not number them
        vertices = (found.astype(np.int64) if found.dtype.kind == "b" else found).tolist()
        variances, mean = parts["variances"], parts["mean"]
        column_names = parts["column_names"].tolist() if "column_names" in parts else []
        columns = dict(zip(column_names, parts["columns"], strict=True)) if column_names else {}
        return checked_model(
            mean,
            parts["basis"],
            variances,
            parts["faces"],
            noise_variance=float(parts["noise_variance"]),
            landmark_ids=dict(zip(names, vertices, strict=True)),
            mirror=parts.get("mirror"),
            scores=parts.get("scores"),
            scales=parts.get("scales"),
            columns=columns,
            info=str(parts["info"]),
        )


_METRE = 0.001  # of a mm
_SKIN = [0.86, 0.72, 0.63, 1.0]


def write_morph_targets(model: ShapeModel, path: Path, modes: int = 20, deviations: float = 1.0) -> None:
    """Write the mean and the first modes.

    Parameters
    ----------
    model : ShapeModel
    path : Path
    modes : int
        At most so many.
    deviations : float
        A target's weight of 1 moves its mode by so many standard deviations.
    """
    blob = Blob()
    normals = _normals(model.mean, model.faces)
    attributes = {
        "POSITION": blob.array((_METRE * model.mean).astype("<f4"), "VEC3", bounds=True),
        "NORMAL": blob.array(normals.astype("<f4"), "VEC3"),
    }
    targets, names = [], []
    for mode in range(min(modes, model.n_components)):
        coefficients = np.zeros(mode + 1)
        coefficients[mode] = deviations * model.deviations[mode]
        shape = model.instance(coefficients)
        turned = _normals(shape, model.faces) - normals
        targets.append(
            {
                "POSITION": blob.array((_METRE * (shape - model.mean)).astype("<f4"), "VEC3", bounds=True),
                "NORMAL": blob.array(turned.astype("<f4"), "VEC3"),
            }
        )
        names.append(f"mode {mode + 1} (+{deviations:g} sd)")
    indices = blob.array(model.faces.reshape(-1, 1).astype("<u4"), "SCALAR", target=34963)
    primitive: dict[str, Any] = {"attributes": attributes, "indices": indices, "mode": 4, "material": 0}
    mesh: dict[str, Any] = {"name": "shape model", "primitives": [primitive]}
    if targets:
        primitive["targets"] = targets
        mesh |= {"weights": [0.0] * len(targets), "extras": {"targetNames": names}}
    skin = {"baseColorFactor": _SKIN, "metallicFactor": 0.0, "roughnessFactor": 0.8}
    document = {
        "asset": {"version": "2.0", "generator": "BreastMorph"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "mean"}],
        "meshes": [mesh],
        "materials": [{"pbrMetallicRoughness": skin, "doubleSided": True}],
    }
    write_file(path, packed(document, blob))


def _normals(shape: Floats, faces: Ints) -> Floats:
    """Unit normals; the format wants one of a vertex without faces too, which then looks to the front."""
    normals = vertex_normals(shape, faces)
    normals[~normals.any(axis=1)] = (0.0, 0.0, 1.0)
    return normals


def write_mode_sequence(
    model: ShapeModel, folder: Path, modes: int = 8, deviations: float = 3.0, frames: int = 13
) -> list[Path]:
    """Write ``mode01_00.ply`` ... and the mean; returns the files."""
    if frames < 2 or modes < 1 or not deviations > 0:
        raise BreastMorphError(
            "a sequence has at least one mode, two frames and some deviation", "Ask for more of them"
        )
    make_folder(folder)
    written = [folder / "mean.ply"]
    save_mesh(model.mean_mesh, written[0])
    for mode in range(min(modes, model.n_components)):
        for frame, amount in enumerate(np.linspace(-deviations, deviations, frames)):
            coefficients = np.zeros(mode + 1)
            coefficients[mode] = amount * model.deviations[mode]
            written.append(folder / f"mode{mode + 1:02d}_{frame:02d}.ply")
            save_mesh(model.mesh(model.instance(coefficients)), written[-1])
    return written


__all__ = ["WRITABLE", "load_landmark_ids", "load_model", "save_model"]

_LARGEST = 8 * 1024**3  # bytes
WRITABLE = (".h5", ".hdf5", ".npz", ".glb")

_SPREAD = (
    1e-3,
    200.0,
)  # mm: root mean square of the vertices' standard deviations in models that may be of bodies
_TELL_THE_UNIT = note("model/tell-the-unit", "Five landmarks tell the unit (landmark_ids)")
_NAME_THE_SIDES = note(
    "model/name-the-sides",
    "If names were exchanged, name the vertices with landmark_ids; sides are the patient's",
)
_HDF5, _ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
_SUPPORTED = N_("Models are read from statismo/Scalismo files (HDF5 or HDF5-JSON) and from our NPZ files")
# A model without landmarks but with this many vertices is the published Regensburg model; by its authors' reader:
_PUBLISHED_VERTICES = 30_924
_PUBLISHED_LANDMARKS = {
    "sternal_notch": 15505,
    "nipple_left": 9356,
    "nipple_right": 24934,
    "lower_pole_left": 8561,
    "lower_pole_right": 24139,
}


def load_model(path: AnyPath, landmark_ids: Mapping[str, int] | None = None) -> ShapeModel:
    """Read a shape model.

    Parameters
    ----------
    path : path
        Statismo HDF5 without version, 0.8, 0.9 or 1.x, Scalismo's HDF5-JSON, or NPZ; the content decides.
    landmark_ids : mapping from name to vertex, optional
        Completes the landmarks of a foreign model; see :func:`load_landmark_ids`.

    Returns
    -------
    ShapeModel
        In mm and upright where its landmarks show how the file is placed (see
        :func:`breastmorph.model.shape_model.landmark_frame`), otherwise as in the file.

    Raises
    ------
    FileProblem
        The file is missing, empty, cut off, damaged, of another kind or no model of a surface.

    Examples
    --------
    >>> bm.load_model("model.h5").n_components == model.n_components
    True
    """
    path = check_path(path)
    data = read_bytes(path, _LARGEST)
    kind = "HDF5" if data.startswith(_HDF5) else "NPZ" if data.startswith(_ZIP) else "HDF5-JSON"
    if kind == "HDF5-JSON" and not data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        raise FileProblem("this is not a model file", _SUPPORTED, path)
    with problems_of(path, kind):
        if kind == "NPZ":
            model = model_from_npz(data)
        else:
            from breastmorph.model.files.statismo import parts_of

            model = checked_model(**parts_of(data, kind))
    if not model.landmark_ids and model.n_vertices == _PUBLISHED_VERTICES:
        model = replace(model, landmark_ids=_PUBLISHED_LANDMARKS)
    if landmark_ids:
        model = model.with_landmark_ids(landmark_ids)
    model = _upright_in_mm(model)
    for finding in _what_is_odd(model):
        _log.warning(finding)  # a value, phrased for the audience of the log
    return model


def _upright_in_mm(model: ShapeModel) -> ShapeModel:
    """The model in our frame, where its landmarks show that it is in another."""
    frame = landmark_frame(model.landmarks)
    if frame is None or frame.swapped:
        return model
    upright = model if frame.is_ours else model.transform(frame.to_ours)
    turned = faces_backwards(upright.mean_mesh, upright.landmarks)
    if frame.is_ours and not turned:
        return model
    how = [f"in {frame.unit}"] if frame.unit != "mm" else []
    how += ["along other axes"] if (frame.axes != np.eye(3)).any() else []
    how += ["inside out"] if turned else []
    _log.warning(
        warning(
            "model/another-frame",
            "The model is {how:| and }: it is read in mm, upright and looking outwards",
            how=how,
        )
    )
    faces = model.faces[:, ::-1] if turned else model.faces
    # Its numbers are no longer those that the file's hash was taken of.
    info = {key: value for key, value in model.info.items() if key != CONTENT}
    return replace(upright, faces=faces, info=info)


def _what_is_odd(model: ShapeModel) -> Iterator[Finding]:
    """What speaks against a model of an upright torso in mm; it can be sampled and converted all the same."""
    with np.errstate(all="ignore"):
        extent = float(np.ptp(model.mean, axis=0).max())
        spread = float(np.sqrt(model.variances.sum() / model.n_vertices))
    if not model.mean.any():
        yield warning(
            "model/mean-zero",
            "The model's mean is all zero: the file may hold deformations instead of shapes",
        )
    elif not BODY_PART_EXTENT[0] <= extent <= BODY_PART_EXTENT[1]:
        yield warning(
            "model/no-torso",
            "The model's mean is {extent:.3g} mm large, which is no torso: is it in another unit? "
            "{tell_the_unit}",
            extent=extent,
            tell_the_unit=_TELL_THE_UNIT,
        )
    if not spread:
        yield warning("model/no-variance", "The model has no variance: all its shapes are the mean")
    elif not _SPREAD[0] <= spread <= _SPREAD[1]:
        yield warning(
            "model/no-body",
            "The model's vertices vary by {spread:.3g} mm (standard deviation), which no body does: "
            "is it in another unit, or its basis of another kind? {tell_the_unit}",
            spread=spread,
            tell_the_unit=_TELL_THE_UNIT,
        )
    if not model.landmark_ids:
        yield warning(
            "model/no-landmarks",
            "The model has no landmarks: nothing tells that it is a torso, upright and in mm. "
            "Measures, edits and predictions need them (landmark_ids)",
        )
    frame = landmark_frame(model.landmarks)
    if frame is not None and frame.swapped:
        yield warning(
            "model/mirrored",
            "The model's landmarks fit the mirror image of a body: sides swapped or model mirrored. "
            "Do not rely on sides, regions and volumes. {name_the_sides}",
            name_the_sides=_NAME_THE_SIDES,
        )
    elif exchanged := exchanged_sides(model.landmarks):
        yield warning(
            "model/exchanged",
            "Left and right of the model's landmarks are exchanged ({names:landmark}), or it looks "
            "backwards: do not rely on sides. {name_the_sides}",
            names=list(exchanged),
            name_the_sides=_NAME_THE_SIDES,
        )


def save_model(model: ShapeModel, path: AnyPath) -> None:
    """Write a model; see :meth:`breastmorph.model.shape_model.ShapeModel.save`."""
    path = check_path(path)
    suffix = path.suffix.lower()
    model = replace(model, info={**model.info, CONTENT: content_hash(model)})
    if suffix in (".h5", ".hdf5"):
        from breastmorph.model.files.statismo import write_statismo

        write_statismo(model, path)
    elif suffix == ".npz":
        write_npz(model, path)
    elif suffix == ".glb":
        write_morph_targets(model, path)
    else:
        raise FileProblem(
            "models are not written to {suffix}",
            "Choose one of {writable}",
            path,
            suffix=suffix or Message("names without extension"),
            writable=", ".join(WRITABLE),
        )


def load_landmark_ids(path: str | Path) -> dict[str, int]:
    """Read a JSON file that maps landmark names to vertices, ``{"xiphoid": 15120, ...}``."""
    path = Path(path)
    try:
        content = json.loads(read_bytes(path, 1024**2))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BreastMorphError):
            raise
        why = Message("this is not JSON ({why})", {"why": str(error)})
        raise FileProblem(why, 'Write {"xiphoid": 15120, ...}', path) from error
    if not isinstance(content, dict) or not all(
        type(vertex) is int and abs(vertex) < 2**31 and len(label) < 100 for label, vertex in content.items()
    ):
        raise FileProblem(
            "this file does not map names to vertex numbers", 'Write {"xiphoid": 15120, ...}', path
        )
    return content
