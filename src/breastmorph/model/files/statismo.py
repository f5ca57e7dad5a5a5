"""Statismo's model layout, as statismo, Scalismo and the published breast model use it.

Written as version 0.9. What is ours (landmarks, mirror, provenance, training) lies in ``/breastmorph``, which other
readers ignore; training scores lie where statismo keeps them, in ``/modelinfo/scores``.
"""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged, printable
from breastmorph.mesh.files.writing import write_file
from breastmorph.model.files.tree import Tree
from breastmorph.model.files.validation import (
    checked_info,
    checked_model,
    checked_training,
)
from breastmorph.model.shape_model import ShapeModel

_log = logging.getLogger(__name__)
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
        from breastmorph.mesh.files import vtk_legacy

        mesh = vtk_legacy.read(raw.reshape(-1).astype(np.uint8).tobytes(), Path("reference.vtk"))
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
