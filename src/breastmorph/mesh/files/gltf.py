"""glTF 2.0, binary (.glb) or as text (.gltf): all triangles of the scene as one mesh.

Not read with trimesh: it decodes the texture (the original picture would be lost) and gives a scene of
parts, with the vertices doubled at texture seams.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.foundation.files import (
    LARGEST_MESH_FILE,
    damaged,
    picture_beside,
    picture_or_nothing,
    printable,
    read_bytes,
    truncated,
    write_file,
)
from breastmorph.mesh.files.corners import rgba, split_at_seams
from breastmorph.mesh.skin import from_light, to_light
from breastmorph.mesh.topology import joined
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh

SIGNATURE = b"glTF"
_JSON, _BIN = 0x4E4F534A, 0x004E4942
_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
_DEEPEST, _MOST_NODES = 64, 10_000
_SMALL = 4_000_000  # vertices and corners that a scene may always have, beyond one per byte of its file
_TRIANGLES = 4
_INSTANCING = "EXT_mesh_gpu_instancing"
_COMPRESSION = ("KHR_draco_mesh_compression", "EXT_meshopt_compression")


@dataclass(frozen=True)
class _Part:
    """One primitive, placed in the scene."""

    vertices: Floats
    faces: Ints
    colors: NDArray[np.uint8] | None
    uv: Floats | None  # (n, 2)
    image: int | None


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a .glb file. Vertices at exactly the same position are joined.

    The format doubles vertices along texture seams; joining undoes that, in the order of the file.
    """
    return _mesh_of(_Document(*_chunks(data), path))


def looks_like_text(data: bytes, path: Path) -> bool:
    """Whether this is glTF's JSON, which has no signature."""
    is_json = data[:64].lstrip().startswith(b"{")
    return is_json and (path.suffix.lower() == ".gltf" or (b'"asset"' in data and b'"meshes"' in data))


def read_text(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a .gltf file, whose arrays lie in it or in files beside it."""
    return _mesh_of(_Document(_description(data), None, path))


def needed_beside(path: Path) -> tuple[Path, ...]:
    """The files in which a .gltf file has its arrays, as far as it can be read."""
    try:
        buffers = _description(read_bytes(path)).get("buffers", [])
        uris = [buffer.get("uri", "data:") for buffer in buffers]
        return tuple(dict.fromkeys(_beside(path, uri) for uri in uris if not uri.startswith("data:")))
    except (BreastMorphError, ValueError, AttributeError, TypeError, RecursionError):
        return ()  # reading it will say why


def _beside(path: Path, uri: str) -> Path:
    """A file in the same folder: a scan must not be able to name files elsewhere on the machine."""
    name = unquote(uri).removeprefix("./")
    if not name.strip(".") or any(mark in name for mark in "/\\:\0"):
        raise FileProblem(
            "the data lie in another file, {uri!r}, which is not in the scan's folder",
            "Export one self-contained .glb file",
            uri=printable(uri),
        )
    return path.with_name(name)


def _mesh_of(scene: _Document) -> TriangleMesh:
    parts, total = [], 0
    for part in scene.parts():
        parts.append(part)
        total += len(part.vertices) + 3 * len(part.faces)
        most = _SMALL + scene.size  # nodes may show a mesh again and again
        if total > most:
            raise FileProblem(
                "the scene shows more than {most:,} vertices and corners: it repeats its meshes",
                "Export the surface once",
                most=most,
            )
    if not parts:
        return TriangleMesh(np.empty((0, 3)), np.empty((0, 3), np.int64))
    vertices = np.concatenate([part.vertices for part in parts])
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    corners = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)])
    kept, new_id = joined(vertices)
    colors = [part.colors for part in parts if part.colors is not None]
    uv = [part.uv for part in parts if part.uv is not None]
    texture = None
    if len(uv) == len(parts) and len(corners):
        images = {part.image for part in parts}
        image = images.pop() if len(images) == 1 else None  # which face shows which is not known
        texture = Texture(np.concatenate(uv)[corners], b"" if image is None else scene.picture(image))
    extras = scene.document.get("asset", {}).get("extras")
    space = extras.get("SPACE", "") if isinstance(extras, dict) else ""
    return TriangleMesh(
        vertices[kept],
        new_id[corners],
        np.concatenate(colors)[kept] if len(colors) == len(parts) else None,
        texture,
        space if space in ("LPS", "RAS") else "",
    )


def _chunks(data: bytes) -> tuple[dict[str, Any], bytes]:
    if len(data) < 20:
        raise truncated("the header")
    version, length = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise FileProblem(
            "this is glTF version {version}; version 2 is read",
            "Export the file as glTF 2.0",
            version=version,
        )
    if length > len(data):
        raise truncated(
            "the header announces {length:,} bytes, {n_data:,} are there", length=length, n_data=len(data)
        )
    chunks: dict[int, bytes] = {}
    at = 12
    while at + 8 <= length:
        size, kind = struct.unpack_from("<II", data, at)
        if at + 8 + size > length:
            raise damaged("a part is longer than the file")
        chunks.setdefault(kind, data[at + 8 : at + 8 + size])
        at += 8 + size
    if _JSON not in chunks:
        raise damaged("the description (JSON) is missing")
    return _description(chunks[_JSON]), chunks.get(_BIN, b"")


def _description(text: bytes) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise damaged("the description (JSON) is not an object")
    version = document.get("asset", {}).get("version", "2.0")
    if not str(version).startswith("2"):
        raise FileProblem(
            "this is glTF version {version}; version 2 is read",
            "Export the file as glTF 2.0",
            version=printable(str(version)),
        )
    return document


class _Document:
    """The description of a scene, with access to its arrays; ``binary`` is what a .glb file has of them itself."""

    def __init__(self, document: dict[str, Any], binary: bytes | None, path: Path) -> None:
        self.document, self.path = document, path
        first = (document.get("buffers") or [{}])[0]
        self._buffers: dict[int, bytes] = {} if binary is None or "uri" in first else {0: binary}
        self._meshes: dict[int, list[_Part]] = {}
        compression = [name for name in document.get("extensionsRequired", []) if name in _COMPRESSION]
        if compression:
            raise FileProblem(
                "the compression {compression} is not read",
                "Export the file without compression",
                compression=compression[0],
            )

    @property
    def size(self) -> int:
        """Bytes of the arrays that were opened so far."""
        return sum(map(len, self._buffers.values()))

    def _item(self, kind: str, index: Any) -> dict[str, Any]:
        items = self.document.get(kind, [])
        if not isinstance(index, int) or not 0 <= index < len(items):
            raise damaged(
                "number {index} of '{kind}' is named, there are {n_items}",
                index=printable(repr(index)),
                kind=kind,
                n_items=len(items),
            )
        return items[index]

    def parts(self) -> Iterator[_Part]:
        """All triangle primitives of the scene, in the order of its nodes."""
        if "nodes" not in self.document:
            yield from (
                part for mesh in range(len(self.document.get("meshes", []))) for part in self._mesh(mesh)
            )
            return
        nodes = range(len(self.document["nodes"]))
        if self.document.get("scenes"):
            roots = self._item("scenes", self.document.get("scene", 0)).get("nodes", [])
        else:
            below = {child for node in nodes for child in self._item("nodes", node).get("children", [])}
            roots = [node for node in nodes if node not in below]
        waiting = [(root, np.eye(4), 0) for root in reversed(roots)]
        seen = 0
        while waiting:
            index, parent, depth = waiting.pop()
            node = self._item("nodes", index)
            children = node.get("children", [])
            instances = self._instances(node) if "mesh" in node else []
            seen += max(len(instances), 1)
            if depth > _DEEPEST:
                raise damaged("the nodes are nested without end")
            if seen + len(waiting) + len(children) > _MOST_NODES:
                raise FileProblem(
                    "the scene shows more than {most_nodes:,} parts",
                    "Export the surface once",
                    most_nodes=_MOST_NODES,
                )
            transform = parent @ _transform(node)
            waiting += [(child, transform, depth + 1) for child in reversed(children)]
            for instance in instances:
                yield from (_placed(part, transform @ instance) for part in self._mesh(node["mesh"]))

    def _instances(self, node: dict[str, Any]) -> list[Floats]:
        """Where a node shows its mesh, (4, 4) each: once, unless it lists more places."""
        listed = node.get("extensions", {}).get(_INSTANCING)
        if listed is None:
            return [np.eye(4)]
        widths = {"TRANSLATION": 3, "ROTATION": 4, "SCALE": 3}
        given = {
            name.lower(): self.scaled(accessor, widths[name])
            for name, accessor in listed["attributes"].items()
            if name in widths
        }
        if not given or len({len(rows) for rows in given.values()}) != 1:
            raise damaged("the places of a repeated mesh do not fit together")
        count = min(len(next(iter(given.values()))), _MOST_NODES + 1)
        return [_transform({name: rows[k] for name, rows in given.items()}) for k in range(count)]

    def _mesh(self, index: int) -> list[_Part]:
        mesh = self._item("meshes", index)
        if index not in self._meshes:  # one that is shown a thousand times is read once
            self._meshes[index] = list(self._primitives(mesh))
        return self._meshes[index]

    def _primitives(self, mesh: dict[str, Any]) -> Iterator[_Part]:
        for primitive in mesh["primitives"]:
            mode = primitive.get("mode", _TRIANGLES)
            if mode in (0, 1, 2, 3):
                continue  # points and lines
            if mode != _TRIANGLES:
                raise FileProblem("the file stores triangle strips or fans", "Export it with plain triangles")
            attributes = primitive["attributes"]
            vertices = self.scaled(attributes["POSITION"], 3)
            if "indices" in primitive:
                corners = self.array(primitive["indices"], 1).ravel().astype(np.int64)
            else:
                corners = np.arange(len(vertices))
            if len(corners) % 3:
                raise damaged("the corners are not a multiple of three")
            if corners.size and corners.max() >= len(vertices):
                raise damaged(
                    "a face names vertex {corners:,} of {n_vertices:,}",
                    corners=corners.max(),
                    n_vertices=len(vertices),
                )
            colors = uv = None
            if "COLOR_0" in attributes:
                colors = _levels(self.array(attributes["COLOR_0"], None))
            if "TEXCOORD_0" in attributes:
                uv = self.fractions(attributes["TEXCOORD_0"])
                uv = np.stack([uv[:, 0], 1.0 - uv[:, 1]], axis=1)  # glTF counts from the upper left
            for name, values in (("COLOR_0", colors), ("TEXCOORD_0", uv)):
                if values is not None and len(values) != len(vertices):
                    raise damaged(
                        "{name} has {n_values:,} rows for {n_vertices:,} vertices",
                        name=name,
                        n_values=len(values),
                        n_vertices=len(vertices),
                    )
            yield _Part(vertices, corners.reshape(-1, 3), colors, uv, self._image_of(primitive))

    def scaled(self, accessor: int, width: int) -> Floats:
        """Numbers (n, width), which may be stored as whole numbers that stand for -1 to 1."""
        values = self.array(accessor, width)
        is_share = self._item("accessors", accessor).get("normalized") and values.dtype.kind in "iu"
        return values.astype(np.float64) / (np.iinfo(values.dtype).max if is_share else 1.0)

    def fractions(self, accessor: int) -> Floats:
        """Texture coordinates, which may be stored as whole numbers of full scale, (n, 2)."""
        values = self.array(accessor, 2)
        scale = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1.0
        return values.astype(np.float64) / scale

    def array(self, index: int, width: int | None) -> NDArray[Any]:
        """The values of an accessor, (n, width)."""
        accessor = self._item("accessors", index)
        if "sparse" in accessor or "bufferView" not in accessor:
            raise FileProblem("the file uses sparse arrays, which are not read", "Export it without them")
        dtype = np.dtype(_COMPONENTS[accessor["componentType"]])
        columns = _WIDTHS[accessor["type"]]
        if width is not None and columns != width:
            raise damaged("an array has {columns} columns instead of {width}", columns=columns, width=width)
        view = self._item("bufferViews", accessor["bufferView"])
        source = self._view(view)
        count, start = int(accessor["count"]), int(accessor.get("byteOffset", 0))
        stride = int(view.get("byteStride", 0)) or columns * dtype.itemsize
        if count < 0 or start < 0 or stride < columns * dtype.itemsize:
            raise damaged("an array has impossible sizes")
        if count and start + (count - 1) * stride + columns * dtype.itemsize > len(source):
            raise truncated("an array announces {count:,} rows, fewer are there", count=count)
        rows: NDArray[Any] = np.ndarray((count, columns), dtype, source, start, (stride, dtype.itemsize))
        return rows.astype(dtype.newbyteorder("="))

    def _view(self, view: dict[str, Any]) -> bytes:
        data = self._buffer(view["buffer"])
        start, length = int(view.get("byteOffset", 0)), int(view["byteLength"])
        if start < 0 or length < 0 or start + length > len(data):
            raise truncated("the binary data")
        return data[start : start + length]

    def _buffer(self, index: int) -> bytes:
        uri = self._item("buffers", index).get("uri")
        if index not in self._buffers:
            if uri is None:
                raise damaged("number {index} of 'buffers' has no data", index=index)
            data = _decoded(uri) if uri.startswith("data:") else read_bytes(_beside(self.path, uri))
            if self.size + len(data) > LARGEST_MESH_FILE:
                raise FileProblem("the file's arrays are too large", "Export a smaller file")
            self._buffers[index] = data
        return self._buffers[index]

    def _image_of(self, primitive: dict[str, Any]) -> int | None:
        if "material" not in primitive:
            return None
        material = self._item("materials", primitive["material"])
        reference = material.get("pbrMetallicRoughness", {}).get("baseColorTexture")
        return None if reference is None else self._item("textures", reference["index"]).get("source")

    def picture(self, index: int) -> bytes:
        """The picture as it is stored, or nothing where it is no PNG or JPEG."""
        image = self._item("images", index)
        uri = image.get("uri", "")
        if "bufferView" in image:
            return picture_or_nothing(self._view(self._item("bufferViews", image["bufferView"])))
        if uri.startswith("data:"):
            with suppress(FileProblem):
                return picture_or_nothing(_decoded(uri))
            return b""
        return picture_beside(self.path, uri)


def _decoded(uri: str) -> bytes:
    """What a data URI holds."""
    head, comma, body = uri.partition(",")
    try:
        if not comma or not head.endswith(";base64"):
            raise ValueError(head)
        return base64.b64decode(body, validate=True)
    except ValueError as error:
        raise damaged("data within the description are not in base64") from error


def _transform(node: Mapping[str, Any]) -> Floats:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T  # stored by columns
    transform = np.eye(4)
    quaternion = np.array(node.get("rotation", (0, 0, 0, 1)), np.float64).reshape(4)
    length = np.linalg.norm(quaternion)
    if not 0.0 < length < np.inf:
        raise damaged("a rotation has no direction")
    x, y, z, w = (quaternion / length).tolist()  # others than of length 1 would change the size
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    transform[:3, :3] = rotation * np.array(node.get("scale", (1, 1, 1)), np.float64).reshape(3)
    transform[:3, 3] = np.array(node.get("translation", (0, 0, 0)), np.float64).reshape(3)
    return transform


def _placed(part: _Part, transform: Floats) -> _Part:
    if np.array_equal(transform, np.eye(4)):
        return part
    with np.errstate(invalid="ignore", over="ignore"):
        vertices = part.vertices @ transform[:3, :3].T + transform[:3, 3]
    mirrored = np.linalg.det(transform[:3, :3]) < 0
    return replace(part, vertices=vertices, faces=part.faces[:, ::-1] if mirrored else part.faces)


def _levels(channels: NDArray[Any]) -> NDArray[np.uint8]:
    """Colours as a screen shows them, (n, 4), of those that count light.

    Programs that write bytes (trimesh, MeshLab) put the levels of a screen there, whatever the format says.
    """
    colors = rgba(channels)
    if channels.dtype.itemsize > 1:
        full = 65535.0 if channels.dtype.kind == "u" else 1.0
        colors[:, :3] = from_light(np.nan_to_num(channels[:, :3].astype(np.float64)) / full)
    return colors


def write(mesh: TriangleMesh, path: Path) -> None:
    """Write .glb: the vertices in their order, then the doubles that texture seams need.

    Coordinates are written as they are, in 32-bit floats (the format has no others).
    """
    with np.errstate(over="ignore"):
        vertices = mesh.vertices.astype("<f4")
    if not np.all(np.isfinite(vertices)):
        raise MeshProblem(
            "GLB cannot hold vertices that are not finite in 32 bits", "Repair the mesh first", path
        )
    source, faces, uv = np.arange(mesh.n_vertices), mesh.faces, None
    if mesh.texture is not None:
        source, faces, uv = split_at_seams(mesh)
    blob = Blob()
    attributes = {"POSITION": blob.array(vertices[source], "VEC3", bounds=True)}
    if uv is not None:
        attributes["TEXCOORD_0"] = blob.array(
            np.stack([uv[:, 0], 1.0 - uv[:, 1]], axis=1).astype("<f4"), "VEC2"
        )
    has_picture = mesh.texture is not None and bool(mesh.texture.image)
    if mesh.colors is not None and not has_picture:  # viewers would multiply the two
        # The format counts light, not levels of a screen; in 16 bits every level comes back.
        light = np.column_stack([to_light(mesh.colors[:, :3]), mesh.colors[:, 3] / 255.0])[source]
        attributes["COLOR_0"] = blob.array(np.rint(65535.0 * light).astype("<u2"), "VEC4", normalized=True)
    indices = blob.array(faces.reshape(-1, 1).astype("<u4"), "SCALAR", target=34963)
    primitive: dict[str, Any] = {"attributes": attributes, "indices": indices, "mode": _TRIANGLES}
    asset: dict[str, Any] = {"version": "2.0", "generator": "BreastMorph"}
    if mesh.space:
        asset["extras"] = {"SPACE": mesh.space}
    document: dict[str, Any] = {
        "asset": asset,
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
    }
    skin: dict[str, Any] = {"metallicFactor": 0.0, "roughnessFactor": 1.0}  # the default is polished metal
    if mesh.texture is not None and mesh.texture.image:
        kind = "image/jpeg" if mesh.texture.suffix == ".jpg" else "image/png"
        document["images"] = [{"bufferView": blob.view(mesh.texture.image), "mimeType": kind}]
        document["textures"] = [{"source": 0}]
        skin["baseColorTexture"] = {"index": 0}
    document["materials"] = [{"pbrMetallicRoughness": skin}]
    primitive["material"] = 0
    write_file(path, packed(document, blob))


def packed(document: dict[str, Any], blob: Blob) -> bytes:
    """A .glb file from its description and its binary part."""
    text = json.dumps(document | blob.described(), separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<II", len(text), _JSON)
        + text
        + struct.pack("<II", len(blob.data), _BIN)
        + bytes(blob.data)
    )
    return SIGNATURE + struct.pack("<II", 2, 12 + len(body)) + body


class Blob:
    """The binary part of a file that is being written, with its description."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, int]] = []
        self.accessors: list[dict[str, Any]] = []

    def described(self) -> dict[str, Any]:
        """Its part of the description."""
        return {
            "accessors": self.accessors,
            "bufferViews": self.views,
            "buffers": [{"byteLength": len(self.data)}],
        }

    def view(self, raw: bytes, target: int | None = None) -> int:
        """Append bytes, padded to four; the number of their view."""
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(raw)}
        self.views.append(view if target is None else {**view, "target": target})
        self.data += raw + b"\0" * (-len(raw) % 4)
        return len(self.views) - 1

    def array(
        self,
        values: NDArray[Any],
        kind: str,
        target: int = 34962,
        bounds: bool = False,
        normalized: bool = False,
    ) -> int:
        """Append an array; the number of its accessor."""
        component = next(code for code, name in _COMPONENTS.items() if np.dtype(name) == values.dtype)
        accessor: dict[str, Any] = {
            "bufferView": self.view(values.tobytes(), target),
            "componentType": component,
            "count": len(values),
            "type": kind,
        }
        if bounds and len(values):
            accessor |= {"min": values.min(axis=0).tolist(), "max": values.max(axis=0).tolist()}
        if normalized:
            accessor["normalized"] = True
        self.accessors.append(accessor)
        return len(self.accessors) - 1
