"""Files that somebody made to do harm, by name: small, and each announcing, nesting or hiding something huge."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from fuzz import seeds
from fuzz.array_mutation import npy_bytes


@dataclass(frozen=True)
class Hostile:
    """A hostile file.

    Attributes
    ----------
    reader : str
        Which of :data:`fuzz.targets.TARGETS` it is for.
    make : callable
        Gives the file.
    says : str
        What the error says; empty where the file is read all the same, without harm.
    """

    reader: str
    make: Callable[[], bytes]
    says: str


def _ply(count: str = "3", layout: str = "binary_little_endian", body: bytes = b"", more: str = "") -> bytes:
    header = (
        f"ply\nformat {layout} 1.0\nelement vertex {count}\nproperty float x\nproperty float y\nproperty float z\n"
        f"{more}end_header\n"
    )
    return header.encode() + body


def _ply_list(kind: str, length: bytes) -> bytes:
    more = f"element face 2\nproperty list {kind} int vertex_indices\n"
    return _ply("3", body=bytes(36) + length + bytes(60), more=more)


def _ply_many_properties() -> bytes:
    more = "element face 1\n" + "".join(f"property list uchar int p{k}\n" for k in range(15_000))
    return _ply("3", body=bytes(36 + 15_000), more=more)


def _vtk(body: bytes, layout: str = "ASCII") -> bytes:
    return f"# vtk DataFile Version 5.1\nx\n{layout}\nDATASET POLYDATA\n".encode() + body


def _vtk_wrapping_offsets() -> bytes:
    """Ends of cells whose differences overflow to counts of 2^62: the list of triangles wraps around to nothing."""
    ends = np.array([0, 2**62, 2**63 - 1, -(2**63) + 2**62, 0, 3], ">i8")
    corners = np.arange(3).astype(">i8")
    return _vtk(
        b"POINTS 3 float\n" + bytes(36) + b"\nPOLYGONS 6 3\nOFFSETS vtktypeint64\n" + ends.tobytes()
        + b"\nCONNECTIVITY vtktypeint64\n" + corners.tobytes() + b"\n",
        "BINARY",
    )  # fmt: skip


def _vtk_long_text() -> bytes:
    """Many empty texts and one long one: as an array of equal lengths they would take 40 GB."""
    return _vtk(
        b"POINTS 1 float\n0 0 0\nFIELD f 1\nSPACE 1 100000 string\n" + b"A" * 100_000 + b"\n" * 100_000
    )


def _vtk_many_arrays() -> bytes:
    return _vtk(b"POINTS 1 float\n0 0 0\nFIELD f 40000\n" + b"a 1 1 int\n1\n" * 40_000)


def _vtp(inner: str, **attributes: str) -> bytes:
    said = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<VTKFile type="PolyData"{said}><PolyData>{inner}</PolyData></VTKFile>'.encode()


def _points_piece(count: int, array: str) -> str:
    return f'<Piece NumberOfPoints="{count}"><Points><DataArray type="Int8" {array}</Points></Piece>'


def _vtp_zip_bomb(announced: int) -> bytes:
    """A block of 200 MB of zeros in 200 kB; ``announced`` bytes of it are admitted."""
    packed = zlib.compress(bytes(200 * 1024**2), 9)
    head = np.array([2, announced, 3, len(packed), len(packed)], "<u4").tobytes()
    text = b64encode(head).decode() + b64encode(packed * 2).decode()
    count = (announced + 3) // 3
    return _vtp(
        _points_piece(count, f'format="binary">{text}</DataArray>'), compressor="vtkZLibDataCompressor"
    )


def _vtp_same_data() -> bytes:
    """Two thousand pieces that all show the same 100 kB: 1.6 GB of coordinates."""
    piece = _points_piece(33_000, 'format="appended" offset="0"/>')
    data = np.uint32(99_000).tobytes() + bytes(99_000)
    return (
        b'<VTKFile type="PolyData"><PolyData>' + (piece * 2000).encode() + b'</PolyData><AppendedData encoding="raw">_'
        + data + b"</AppendedData></VTKFile>"
    )  # fmt: skip


def _xml_bomb(root: str) -> bytes:
    levels = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
    return f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "lol">{levels}]><{root}>&l11;</{root}>'.encode()


def _xml_external(root: str) -> bytes:
    return f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><{root}>&b;</{root}>'.encode()


def _glb(document: dict[str, Any], binary: bytes = bytes(96)) -> bytes:
    return _glb_of(json.dumps(document).encode(), binary)


def _glb_of(text: bytes, binary: bytes = b"") -> bytes:
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x4E4942) + binary
    )
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def _scene(**changes: Any) -> dict[str, Any]:
    return {
        "asset": {"version": "2.0"}, "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}],
        "bufferViews": [{"buffer": 0, "byteLength": 96}], "buffers": [{"byteLength": 96}],
    } | changes  # fmt: skip


def _accessor(**changes: Any) -> dict[str, Any]:
    scene = _scene()
    scene["accessors"][0] |= changes
    return scene


def _obj_comb() -> bytes:
    """One polygon of 200,000 corners, of which every second one is an ear."""
    teeth = "\n".join(f"v {k} {1 if k % 2 else 9} 0" for k in range(200_000))
    corners = " ".join(map(str, range(200_001, 0, -1)))
    return f"{teeth}\nv 100000 -1 0\nf {corners}\n".encode()


def _glb_same_mesh() -> bytes:
    """A mesh of 30,000 vertices, shown by 9,000 nodes."""
    scene = _scene(nodes=[{"mesh": 0}] * 9000, scenes=[{"nodes": list(range(9000))}])
    scene["accessors"][0] |= {"count": 30_000}
    scene["bufferViews"][0] |= {"byteLength": 360_000}
    return _glb(scene, bytes(360_000))


def _archive(method: int = zipfile.ZIP_DEFLATED, **parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _npy(shape: tuple[int, ...], kind: str = "<f8", body: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
    return buffer.getvalue() + body


def _npz_wide_basis() -> bytes:
    """One point and 10,000 components: 800 MB of products from 300 kB."""
    parts = {
        "kind": np.array("BreastMorph model 1"), "mean": np.zeros(3), "basis": np.zeros((3, 10_000), "f4"),
        "variances": np.zeros(10_000), "faces": np.zeros((1, 3), "i4"), "noise_variance": np.array(0.0),
        "landmark_names": np.array([], "U1"), "landmark_vertices": np.array([], "i4"), "info": np.array("{}"),
    }  # fmt: skip
    return _archive(**{name: npy_bytes(array) for name, array in parts.items()})


def _hdf5(change: Callable[[Any], None]) -> bytes:
    import h5py

    buffer = io.BytesIO(seeds.catalog_model())
    with h5py.File(buffer, "r+") as file:
        change(file)
    return buffer.getvalue()


def _mean(**how: Any) -> Callable[[Any], None]:
    """The mean replaced by an array that is announced but was never written."""

    def change(file: Any) -> None:
        del file["shape/model/mean"]
        file["shape/model"].create_dataset("mean", **how)

    return change


def _soft_link_to_external(file: Any) -> None:
    import h5py

    del file["shape/model/mean"]
    file["away"] = h5py.ExternalLink("elsewhere.h5", "/")
    file["shape/model/mean"] = h5py.SoftLink("/away/secret")


def _link_loop(file: Any) -> None:
    import h5py

    del file["shape/model/mean"]
    file["shape/model/mean"] = h5py.SoftLink("/shape/model/again")
    file["shape/model/again"] = h5py.SoftLink("/shape/model/mean")


def _external_link(file: Any) -> None:
    import h5py

    del file["shape/model/mean"]
    file["shape/model/mean"] = h5py.ExternalLink("/etc/hostname", "/")


def _packed_chunk(file: Any) -> None:
    """A chunk of nominally 480 bytes that unpacks to 200 MB."""
    del file["shape/model/mean"]
    made = file["shape/model"].create_dataset("mean", (60,), "f8", chunks=(60,), compression="gzip")
    made.id.write_direct_chunk((0,), zlib.compress(bytes(200 * 1024**2), 9))


def _repeated_text(file: Any) -> None:
    """A hundred million texts that were never written."""
    import h5py

    del file["catalog/shape/modelPath"]
    file["catalog/shape"].create_dataset("modelPath", (10**8,), h5py.string_dtype(), fillvalue="x" * 1000)


def _json_tree(value: Any, links: int = 0) -> bytes:
    tree = json.loads(seeds.json_model())
    tree["datasets"]["model/mean"]["value"] = value
    if links:
        del tree["datasets"]["model/mean"]
        titles = [{"title": f"m{k}", "id": "none"} for k in range(links)]
        tree["groups"]["root"]["links"].append({"title": "catalog", "id": "catalog"})
        tree["groups"]["catalog"] = {"links": titles}
    return json.dumps(tree).encode()


def _nested(depth: int = 100_000) -> bytes:
    return b'{"groups":' + b"[" * depth + b"]" * depth + b"}"


def _png_bomb() -> bytes:
    """A picture that announces 50,000 x 50,000 pixels: 7.5 GB when it is decoded."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )


_NESTED_LANDMARKS = b'{"nipple_left":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

HOSTILE: Mapping[str, Hostile] = MappingProxyType({
    "ply: 2^31 vertices in 1 kB": Hostile(
        "PLY binary", lambda: _ply("2147483648", body=bytes(900)), "announces 2,147,483,648",
    ),
    "ply: 2^63 vertices as text": Hostile(
        "PLY text", lambda: _ply("9223372036854775808", "ascii", b"0 0 0\n"), "fewer are there",
    ),
    "ply: 2^31 faces in 1 kB": Hostile(
        "PLY binary",
        lambda: _ply(body=bytes(900), more="element face 2147483648\nproperty list uchar int vertex_indices\n"),
        "announces 2,147,483,648",
    ),
    "ply: a list of 2^32 corners": Hostile("PLY binary", lambda: _ply_list("uint", b"\xff" * 4), "fewer are there"),
    "ply: a list of NaN corners": Hostile("PLY binary", lambda: _ply_list("float", b"\0\0\xc0\x7f"), "damaged"),
    "ply: 15,000 lists per face": Hostile("PLY binary", _ply_many_properties, "properties"),
    "obj: a file that names itself as material, 20,000 times": Hostile(
        "OBJ", lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n" + b"".join(
            b"mtllib %d/../mesh.obj\n" % k for k in range(20_000)), "",
    ),
    "stl: 2^32 - 1 triangles in 1 kB": Hostile(
        "STL binary", lambda: bytes(80) + b"\xff" * 4 + bytes(900), "announces 4,294,967,295",
    ),
    "off: 2^62 vertices": Hostile("OFF", lambda: b"OFF\n4611686018427387904 1 0\n0 0 0\n", "announced"),
    "vtk: 2^62 points": Hostile(
        "VTK legacy", lambda: _vtk(b"POINTS 4611686018427387904 float\n0 0 0\n"), "fewer are there",
    ),
    "vtk: offsets that wrap around": Hostile("VTK legacy", _vtk_wrapping_offsets, "do not fit"),
    "vtk: texts that take 40 GB": Hostile("VTK legacy", _vtk_long_text, ""),
    "vtk: 40,000 arrays": Hostile("VTK legacy", _vtk_many_arrays, ""),
    "vtp: billion laughs": Hostile("VTP", lambda: _xml_bomb("VTKFile"), "DOCTYPE"),
    "vtp: an external entity": Hostile("VTP", lambda: _xml_external("VTKFile"), "DOCTYPE"),
    "vtp: nested without end": Hostile("VTP", lambda: b"<VTKFile>" + b"<a>" * 100_000, "nested too deeply"),
    "vtp: a zip bomb that is announced": Hostile("VTP", lambda: _vtp_zip_bomb(200 * 1024**2), "expected"),
    "vtp: a zip bomb that announces nothing": Hostile("VTP", lambda: _vtp_zip_bomb(0), "wrong size"),
    "vtp: 2,000 pieces with the same data": Hostile("VTP", _vtp_same_data, "expected"),
    "vtp: 28,000 beginnings of appended data": Hostile(
        "VTP", lambda: b"<VTKFile " + b"<AppendedData " * 28_000, "cut off",
    ),
    "pp: billion laughs": Hostile("landmarks PP", lambda: _xml_bomb("PickedPoints"), "DOCTYPE"),
    "pp: an external entity": Hostile("landmarks PP", lambda: _xml_external("PickedPoints"), "DOCTYPE"),
    "glb: an accessor of 2^31 rows": Hostile("GLB", lambda: _glb(_accessor(count=2**31)), "announces 2,147,483,648"),
    "glb: an accessor behind the end": Hostile("GLB", lambda: _glb(_accessor(byteOffset=2**40)), "fewer are there"),
    "glb: a view out of range": Hostile(
        "GLB", lambda: _glb(_scene(bufferViews=[{"buffer": 0, "byteOffset": 90, "byteLength": 2**40}])), "binary data",
    ),
    "glb: an accessor without its view": Hostile("GLB", lambda: _glb(_accessor(bufferView=7)), "number 7"),
    "glb: a mesh shown 9,000 times": Hostile("GLB", _glb_same_mesh, "shows more than"),
    "glb: a node that is its own child, 100,000 times": Hostile(
        "GLB", lambda: _glb(_scene(nodes=[{"children": [0] * 100_000}], scenes=[{"nodes": [0]}])), "shows more than",
    ),
    "gltf: arrays in another folder": Hostile(
        "GLTF", lambda: json.dumps(_scene(buffers=[{"byteLength": 96, "uri": "../../etc/passwd"}])).encode(), "folder"),
    "gltf: arrays that are a device": Hostile(
        "GLTF", lambda: json.dumps(_scene(buffers=[{"byteLength": 96, "uri": "/dev/zero"}])).encode(), "folder"),
    "obj: a comb of 100,000 teeth": Hostile("OBJ", _obj_comb, "too intricate"),
    "glb: nested JSON": Hostile("GLB", lambda: _glb_of(b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    "landmarks: nested JSON": Hostile("landmarks JSON", lambda: _NESTED_LANDMARKS, "nested too deeply"),
    "landmarks: a number of 5,000 digits": Hostile(
        "landmarks JSON", lambda: b'{"xiphoid": [' + b"9" * 5000 + b", 0, 0]}", "damaged"),
    "model json: nested": Hostile("model HDF5-JSON", _nested, "nested too deeply"),
    "model json: a long text among numbers": Hostile(
        "model HDF5-JSON", lambda: _json_tree(["A" * 100_000, *[0] * 60_000]), "does not hold numbers"),
    "model json: a catalog of 8,000 names": Hostile(
        "model HDF5-JSON", lambda: _json_tree(0, 8_000), "no statistical",
    ),
    "npz: a zip bomb": Hostile(
        "model NPZ", lambda: _archive(mean=_npy((25 * 10**6,), body=bytes(2 * 10**8))), "more than the file",
    ),
    "npz: twenty zip bombs": Hostile(
        "model NPZ", lambda: _archive(**{f"m{k}": _npy((10**6,), body=bytes(8 * 10**6)) for k in range(20)}),
        "more than",
    ),
    "npz: an array of 2^60 numbers": Hostile("model NPZ", lambda: _archive(mean=_npy((2**60,))), "fewer are there"),
    "npz: another compression": Hostile(
        "model NPZ", lambda: _archive(zipfile.ZIP_LZMA, mean=_npy((3,))), "compressed",
    ),
    "npz: pickled objects": Hostile("model NPZ", lambda: _archive(kind=_npy((1,), "|O", b"\x80\x04N.")), "damaged"),
    "npz: one point, 10,000 components": Hostile("model NPZ", _npz_wide_basis, ""),
    "template npz: a zip bomb": Hostile(
        "template NPZ", lambda: _archive(fine_vertices=_npy((25 * 10**6,), body=bytes(2 * 10**8))), "more than",
    ),
    "hdf5: an external link": Hostile("model HDF5", lambda: _hdf5(_external_link), "another file"),
    "hdf5: a soft link through an external one": Hostile(
        "model HDF5", lambda: _hdf5(_soft_link_to_external), "another file",
    ),
    "hdf5: links in a circle": Hostile("model HDF5", lambda: _hdf5(_link_loop), "circle"),
    "hdf5: 8 TB that were never written": Hostile(
        "model HDF5", lambda: _hdf5(_mean(shape=(10**12,), dtype="f8", chunks=(10**6,))), "more than",
    ),
    "hdf5: a chunk of 2 GB for ten numbers": Hostile(
        "model HDF5",
        lambda: _hdf5(_mean(shape=(10,), maxshape=(None,), dtype="f4", chunks=(5 * 10**8,), compression="gzip")),
        "larger than itself",
    ),
    "hdf5: four million chunks": Hostile(
        "model HDF5", lambda: _hdf5(_mean(shape=(4 * 10**6,), dtype="f4", chunks=(1,))), "chunks",
    ),
    "hdf5: a chunk that unpacks to 200 MB": Hostile("model HDF5", lambda: _hdf5(_packed_chunk), "unpacks to more"),
    "hdf5: a filter that is not known": Hostile(
        "model HDF5",
        lambda: _hdf5(_mean(shape=(60,), dtype="i4", chunks=(60,), scaleoffset=3)), "compressed in a way",
    ),
    "hdf5: 10^8 texts": Hostile("model HDF5", lambda: _hdf5(_repeated_text), "more than"),
    "hdf5: a text of 2 GB": Hostile("model HDF5", lambda: _hdf5(_mean(shape=(1,), dtype="S2000000000")), "more than"),
    "picture: a decompression bomb": Hostile("texture picture", _png_bomb, ""),
    "table: one field of 1 MB": Hostile("cohort table", lambda: b"id,a\ns1," + b"9" * 10**6, "cannot be read"),
    "record: nested JSON": Hostile("registration record", _nested, "cannot be read"),
    "painted: a number of 5,000 digits": Hostile("painted region", lambda: b"1 " + b"9" * 5000, "no vertex number"),
    "points: one field of 1 MB": Hostile("point table", lambda: b"1;" + b"9" * 10**6, "no table of points"),
})  # fmt: skip
