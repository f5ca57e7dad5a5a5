"""Statismo's model layout, as statismo, Scalismo and the published breast model use it, in HDF5 and in HDF5-JSON.

Written as version 0.9. What is ours (landmarks, mirror, provenance, training) lies in ``/breastmorph``, which other
readers ignore; training scores lie where statismo keeps them, in ``/modelinfo/scores``.
"""

from __future__ import annotations

import io
import json
import logging
import math
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, printable, write_file
from breastmorph.model.shape_model import ShapeModel

_log = logging.getLogger(__name__)


_SMALL = 32 * 1024**2  # bytes that may always be read
_MOST_COMPRESSED = 50  # times smaller a compressed file may be than its content
_LARGEST_TEXT = 1024**2  # bytes of a text or of an attribute
_MOST_TEXTS = 1000  # in one array
_MOST_LINKS = 16  # that lead to one object
_MOST_CHUNKS = 1000  # that an array may always have, beyond one per 16 bytes of the file
_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3
_FILTERS = (_DEFLATE, _SHUFFLE, _CHECKSUM)  # each chunk is checked before the library unpacks it


class Hdf5Tree:
    """The content of an HDF5 file."""

    def __init__(self, data: bytes) -> None:
        self.file, self.size, self.data = h5py.File(io.BytesIO(data), "r"), len(data), data
        self.left = max(_SMALL, _MOST_COMPRESSED * len(data))  # bytes of all arrays together

    def _at(self, path: str) -> Any:
        """The object at a path, or None; only through links within the file."""
        here: Any = self.file
        names, links = [part for part in reversed(path.split("/")) if part], 0
        while names:
            name = names.pop()
            # The library would follow a soft link through an external one: both are followed here, or not at all.
            link = here.get(name, getlink=True) if isinstance(here, h5py.Group) else None
            if link is None:
                return None
            if isinstance(link, h5py.ExternalLink):
                raise FileProblem("the model's data lie in another file", "Store the model in one file")
            if isinstance(link, h5py.SoftLink):
                links += 1
                if links > _MOST_LINKS:
                    raise damaged("its links lead in a circle")
                names += [part for part in reversed(link.path.split("/")) if part]
                here = self.file if link.path.startswith("/") else here
            else:
                here = here[name]
        return here

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""
        found = self._at(path)
        if not isinstance(found, h5py.Dataset) or found.shape is None:
            return None
        if found.is_virtual or found.external:
            raise FileProblem("the model's data lie in another file", "Store the model in one file")
        if found.chunks is not None:
            self._check_chunks(found, path)
        if h5py.check_string_dtype(found.dtype) is not None:
            return self._texts(found, path)
        if found.dtype.kind not in "iuf":
            raise damaged(
                "{path} holds {dtype}, not numbers", path=printable(path, 100), dtype=str(found.dtype)[:40]
            )
        self._take(found.nbytes, path)
        return np.asarray(found[()])

    def _take(self, size: int, path: str) -> None:
        """Before memory is taken: a file cannot hold more than so much."""
        if size > self.left:
            raise damaged(
                "{path} announces {size:,.0f} MB, more than the file can hold",
                path=printable(path, 100),
                size=size / 1024**2,
            )
        self.left -= size

    def _texts(self, found: Any, path: str) -> NDArray[Any]:
        # One after the other: of texts of any length, each may name the same long one.
        if found.size > _MOST_TEXTS or found.dtype.itemsize > _LARGEST_TEXT:
            raise damaged(
                "{path} holds text, more than any model has, not numbers", path=printable(path, 100)
            )
        if found.dtype.kind == "O":
            _check_heaps(self.data)
        texts = np.empty(found.shape, dtype=object)
        for index in np.ndindex(found.shape):
            texts[index] = found[index]
            self._take(len(texts[index]), path)
        return texts

    def _check_chunks(self, found: Any, path: str) -> None:
        """Refuse chunks that are more than the array, too many, or that unpack to more than they should."""
        count = math.prod(-(-n // k) for n, k in zip(found.shape, found.chunks, strict=True))
        size = math.prod(found.chunks) * found.dtype.itemsize
        if count > _MOST_CHUNKS + self.size // 16:
            raise damaged(
                "{path} announces {count:,} chunks, more than the file can hold",
                path=printable(path, 100),
                count=count,
            )
        if size > max(_LARGEST_TEXT, 2 * found.nbytes):
            raise damaged("{path} has chunks larger than itself", path=printable(path, 100))
        pipeline = found.id.get_create_plist()
        filters = [pipeline.get_filter(k)[0] for k in range(pipeline.get_nfilters())]
        if not set(filters) <= set(_FILTERS) or filters != [
            one for one in (_SHUFFLE, _DEFLATE, _CHECKSUM) if one in filters
        ]:
            raise FileProblem(
                "the model is compressed in a way that is not read", "Store it with gzip or without"
            )
        if _DEFLATE not in filters:
            return
        for number in range(found.id.get_num_chunks()):
            offset = found.id.get_chunk_info(number).chunk_offset
            skipped, packed = found.id.read_direct_chunk(offset)
            # The library itself unpacks without a limit.
            if not skipped and len(zlib.decompressobj().decompress(packed, size + 1)) > size:
                raise damaged("{path} unpacks to more than it announces", path=printable(path, 100))

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        found = self.array(path)
        return None if found is None or found.size == 0 else _text(found.reshape(-1)[0])

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        found = self._at(path)
        if found is None or name not in found.attrs:
            return None
        attribute = found.attrs.get_id(name)
        if math.prod(attribute.shape or ()) * attribute.dtype.itemsize > _LARGEST_TEXT:
            raise damaged(
                "the attribute {name} of {path} holds more text than a model has",
                name=name,
                path=printable(path, 100),
            )
        if attribute.dtype.kind == "O":
            _check_heaps(self.data)
        value = np.asarray(found.attrs[name]).reshape(-1)
        return _text(value[0]) if value.size else None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        found = self._at(path)
        return list(found) if isinstance(found, h5py.Group) else []


def _check_heaps(data: bytes) -> None:
    """Refuse damaged stores of texts: the library walks through them without end when a part has no length."""
    start = data.find(b"GCOL\1")
    while start >= 0:
        size = int.from_bytes(data[start + 8 : start + 16], "little")
        at = start + 16
        while at + 16 <= min(start + size, len(data)):
            used = int.from_bytes(data[at : at + 2], "little") > 0
            length = int.from_bytes(data[at + 8 : at + 16], "little")
            step = 16 + -(-length // 8) * 8 if used else length
            if step < 16 or at + step > start + size:
                raise damaged("its texts are stored in parts that do not fit")
            at += step
        start = data.find(b"GCOL\1", start + 1)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").rstrip("\0 ")
    return str(value)


class JsonTree:
    """A parsed HDF5-JSON text: groups link to groups and datasets by their ids."""

    def __init__(self, data: bytes) -> None:
        content = json.loads(data.decode("utf-8-sig"))
        if not (isinstance(content, dict) and isinstance(content.get("groups"), dict)):
            raise FileProblem(
                "this JSON is no HDF5-JSON (it has no groups)", "Give a model that Scalismo wrote"
            )
        self.groups: dict[str, Any] = content["groups"]
        self.datasets: dict[str, Any] = content.get("datasets") or {}
        self.root = str(content.get("root"))
        self._links: dict[int, dict[str, Any]] = {}  # of groups that were looked into
        if self.root not in self.groups:
            raise damaged("its root group is missing")

    def _at(self, path: str) -> tuple[str, Any]:
        """Kind ("group", "dataset" or empty) and content of what is at a path."""
        kind, here = "group", self.groups[self.root]
        for name in (part for part in path.split("/") if part):
            target = self._targets(here).get(name) if kind == "group" else None
            if target in self.datasets:
                kind, here = "dataset", self.datasets[target]
            elif target in self.groups:
                kind, here = "group", self.groups[target]
            else:
                return "", {}
        return kind, here

    def _targets(self, group: Any) -> dict[str, Any]:
        """What a group links to, by title; made once, as a catalog may have thousands."""
        if id(group) not in self._links:
            links = reversed(group.get("links") or [])  # of a title given twice the first counts
            self._links[id(group)] = {link.get("title", ""): link.get("id") for link in links}
        return self._links[id(group)]

    def _value(self, path: str) -> Any:
        kind, found = self._at(path)
        return found.get("value") if kind == "dataset" else None

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""
        value = self._value(path)
        if value is None:
            return None
        kinds = _kinds(value)
        if kinds == {str}:
            return np.array(value, dtype=object)  # else every text would take as much as the longest
        if not kinds <= {int, float}:
            raise damaged("{path} does not hold numbers", path=printable(path, 100))
        array = np.array(value)  # rows of different lengths raise ValueError
        if array.dtype.kind not in "iuf":
            raise damaged("{path} holds numbers beyond the range", path=printable(path, 100))
        return array

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        value = self._value(path)
        return value if isinstance(value, str) else None

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        _, found = self._at(path)
        for attribute in found.get("attributes") or []:
            if attribute.get("name") == name:
                return str(attribute.get("value"))
        return None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        kind, found = self._at(path)
        return list(self._targets(found))[::-1] if kind == "group" else []


def _kinds(value: Any) -> set[type]:
    """The types of all values in nested lists."""
    kinds, lists = set(), [value]
    while lists:
        here = lists.pop()
        if isinstance(here, list):
            found = set(map(type, here))
            if list in found:
                lists += here
            else:
                kinds |= found
        else:
            kinds.add(type(here))
    return kinds


Tree = Hdf5Tree | JsonTree  # of named arrays; paths are written "/model/mean"
_OURS = "/breastmorph"
_SURFACE, _VOLUME = "POLYGON_MESH_MODEL", "VOLUME_MESH_MODEL"  # kinds in a catalog
_MOST_NAMED = 100  # entries of a catalog that are looked at beyond the one that is read
_RAW_REFERENCE = ("vtkPolyDataRepresenter", "itkMeshRepresenter")  # hold a whole VTK file instead of arrays


def parts_of(data: bytes, kind: str) -> dict[str, Any]:
    """What the bytes of an HDF5 or HDF5-JSON file hold of a model, the first of a catalog's; nothing is checked yet."""
    tree: Tree = Hdf5Tree(data) if kind == "HDF5" else JsonTree(data)
    root = _model_path(tree)
    mean, basis, variances = (
        _needed(tree, f"{root}/model/{name}") for name in ("mean", "pcaBasis", "pcaVariance")
    )
    version = _version(tree, root)
    if version not in ((0, 8), (0, 9)) and version[0] != 1:
        raise FileProblem(
            "this is statismo version {version}.{version2}; 0.8, 0.9 and 1.x are read",
            "Write the model again with Scalismo",
            version=version[0],
            version2=version[1],
        )
    noise = tree.array(f"{root}/model/noiseVariance")
    names, vertices = tree.array(f"{_OURS}/landmark_names"), tree.array(f"{_OURS}/landmark_vertices")
    landmarks = {}
    if names is not None and vertices is not None and names.shape == vertices.shape:
        texts = [name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in names]
        landmarks = {name: int(vertex) for name, vertex in zip(texts, vertices, strict=True)}
    return {
        "mean": mean,
        "basis": basis,
        "variances": variances,
        "faces": _faces(tree, root),
        "scaled_basis": version == (0, 8),
        "noise_variance": float(noise.reshape(-1)[0]) if noise is not None and noise.size else 0.0,
        "landmark_ids": landmarks,
        "mirror": tree.array(f"{_OURS}/mirror"),
        "info": tree.text(f"{_OURS}/info"),
        **_training(tree, root, variances.reshape(-1)),
    }


def _model_path(tree: Tree) -> str:
    """Where the model lies: at the root, or where the catalog says."""
    if tree.array("/model/mean") is not None:
        return ""
    names, kinds = sorted(tree.children("/catalog")), {}
    for number, name in enumerate(names):
        where = (tree.text(f"/catalog/{name}/modelPath") or "").rstrip("/")
        kinds[name] = kind = tree.text(f"/catalog/{name}/modelType") or _SURFACE
        if kind == _SURFACE and tree.array(f"{where}/model/mean") is not None:
            _warn_of_others(tree, name, names[number + 1 : number + 1 + _MOST_NAMED])
            return where
    if _VOLUME in kinds.values():
        raise _of_tetrahedra()
    raise FileProblem(
        "the file holds no statistical shape model of a surface",
        "Give a model that statismo, Scalismo or `breastmorph build` wrote",
    )


def _warn_of_others(tree: Tree, chosen: str, others: list[str]) -> None:
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
        raise damaged("{path} is missing", path=printable(path, 100))
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
            "this is a model of a {kind}, not of a surface", "Give a POLYGON_MESH model", kind=printable(kind)
        )
    cells = _needed(tree, f"{root}/representer/cells")
    if cells.ndim == 2 and cells.shape[0] == 4:  # older writers call these a POLYGON_MESH too
        raise _of_tetrahedra()
    if cells.ndim != 2 or cells.shape[0] != 3:
        raise FileProblem(
            "the file's cells of shape {shape} are no triangles",
            "Give a model of a triangle mesh",
            shape=cells.shape,
        )
    return cells.T


def _training(tree: Tree, root: str, variances: NDArray[Any]) -> dict[str, Any]:
    """Scores in mm (k, q), scales (k,) and columns of the subjects; empty where the file has none of use."""
    scores = tree.array(f"{root}/modelinfo/scores")
    q = len(variances)
    if scores is None or scores.ndim != 2 or scores.shape[0] != q or scores.dtype.kind not in "iuf":
        return {}  # other builders leave an empty or shorter one
    columns = {}
    for name in tree.children(f"{_OURS}/training/columns"):
        columns[name] = _needed(tree, f"{_OURS}/training/columns/{name}").astype(np.float64)
    deviations = np.sqrt(np.maximum(variances.astype(np.float64), 0.0))
    # Of a component without variance other builders write what a division by 0 gives.
    given = np.where(deviations > 0.0, scores.T, 0.0) * deviations
    scales = tree.array(f"{_OURS}/training/scales")
    if scales is None and not np.isfinite(given).all():
        _log.warning("The model's training scores are not finite: they are left out")
        return {}
    return {"scores": given, "scales": scales, "columns": columns}


def write_statismo(model: ShapeModel, path: Path) -> None:
    """Write a model as statismo HDF5 0.9; the same model gives the same bytes."""
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
