"""Small valid files of every kind, made in code: by our own writers, and as text where we only read."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from base64 import b64encode
from functools import cache
from pathlib import Path

import numpy as np

from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh
from breastmorph.model.files import save_model
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import NAMES, Landmarks
from breastmorph.template import Template, to_npz


def picture(kind: str = "PNG") -> bytes:
    """A picture of 4 x 4 pixels."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(file, kind)
    return file.getvalue()


@cache
def sheet() -> TriangleMesh:
    """A bent sheet of 20 vertices and 24 faces, with colours."""
    x, y = np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij")
    vertices = np.stack([x, y, np.sin(x) + y * y / 7], axis=-1).reshape(-1, 3) * np.pi
    corner = (np.arange(3)[:, None] * 5 + np.arange(4)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + 5, corner + 1], 1), np.stack([corner + 1, corner + 5, corner + 6], 1)]
    )
    colors = np.random.default_rng(8).integers(0, 256, (20, 4), dtype=np.uint8)
    return TriangleMesh(vertices, faces, colors, space="LPS")


@cache
def textured(seams: bool) -> TriangleMesh:
    """The sheet with a picture, whose coordinates belong to vertices or, with seams, to corners."""
    mesh = sheet()
    uv = np.random.default_rng(9).integers(0, 129, (2, mesh.n_vertices, 2)) / 256
    chart = (np.arange(mesh.n_faces) % (2 if seams else 1))[:, None]
    return TriangleMesh(
        mesh.vertices, mesh.faces, texture=Texture(uv[chart, mesh.faces] + chart[..., None] / 2, picture())
    )


def meshes(folder: Path, suffix: str) -> list[bytes]:
    """The sheet as our writer gives it: with colours, with a texture, with seams. Pictures stay beside."""
    written = []
    for number, mesh in enumerate((sheet(), textured(False), textured(True))):
        path = folder / f"seed{number}{suffix}"
        save_mesh(mesh, path)
        written.append(path.read_bytes())
    return written


def _rows(values: np.ndarray) -> str:
    return "\n".join(" ".join(map(repr, row)) for row in values.tolist())


def text_ply() -> bytes:
    """A text PLY with colours, texture coordinates, a quad and a list that nobody reads."""
    mesh = sheet()
    rows = [[*xyz, *rgb] for xyz, rgb in zip(mesh.vertices.tolist(), mesh.colors.tolist(), strict=True)]  # type: ignore
    faces = [f"3 {a} {b} {c} 6 0 0 1 0 1 1" for a, b, c in mesh.faces[1:].tolist()]
    return (
        "ply\nformat ascii 1.0\ncomment SPACE=RAS\ncomment TextureFile seed1.png\nelement vertex 20\n"
        "property float x\nproperty float y\nproperty double z\n"
        "property uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar alpha\n"
        f"element face {len(faces) + 1}\nproperty list uchar int vertex_indices\nproperty list uchar float texcoord\n"
        "element tag 1\nproperty list uchar short other\nend_header\n"
        + "\n".join(" ".join(map(str, row)) for row in rows)
        + "\n4 0 5 6 1 8 0 0 1 0 1 1 0 1\n"
        + "\n".join(faces)
        + "\n2 7 7\n"
    ).encode()


def uneven_ply(order: str = ">") -> bytes:
    """A binary PLY, big-endian unless asked otherwise, with faces of three and of four corners."""
    name = {">": "big", "<": "little"}[order]
    mesh = sheet()
    header = (
        f"ply\nformat binary_{name}_endian 1.0\nelement vertex 20\n"
        "property float x\nproperty float y\nproperty float z\n"
        "element face 25\nproperty uchar flags\nproperty list uint8 uint vertex_index\nend_header\n"
    ).encode()
    body = mesh.vertices.astype(order + "f4").tobytes()
    for row in [[0, 5, 6, 1], *mesh.faces.tolist()]:
        body += bytes([0, len(row)]) + np.array(row, order + "u4").tobytes()
    return header + body


def text_stl() -> bytes:
    """A text STL."""
    lines = ["solid sheet"]
    for corners in sheet().vertices[sheet().faces].tolist():
        lines += [
            "facet normal 0 0 1",
            " outer loop",
            *(f"  vertex {x!r} {y!r} {z!r}" for x, y, z in corners),
        ]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid sheet", ""]).encode()


def off_files() -> list[bytes]:
    """Plain OFF, and OFF with colours, normals and texture coordinates."""
    mesh = sheet()
    faces = "\n".join(f"3 {a} {b} {c}" for a, b, c in mesh.faces.tolist())
    plain = f"OFF\n# SPACE=LPS\n20 24 0\n{_rows(mesh.vertices)}\n{faces}\n"
    more = np.column_stack([mesh.vertices, np.zeros((20, 2)), np.ones(20)])
    colors = "\n".join(
        f"{xyz} {' '.join(map(str, rgba))} 0.5 0.25"
        for xyz, rgba in zip(_rows(more).split("\n"), mesh.colors.tolist(), strict=True)  # type: ignore
    )
    return [plain.encode(), f"STCNOFF\n20 24 0\n{colors}\n{faces}\n".encode()]


_COMB = (
    (0, 0),
    (12, 0),
    (12, 9),
    (10, 1),
    (8, 9),
    (6, 1),
    (4, 9),
    (2, 1),
    (0, 9),
)  # its teeth are cut off one by one


def concave_obj(encoding: str = "utf-8") -> bytes:
    """An OBJ with a concave polygon and with texture coordinates."""
    lines = [f"v {x} {y} {x * y / 9}\nvt {x / 12} {y / 9}" for x, y in _COMB]
    corners = " ".join(f"{k}/{k}" for k in range(1, 10))
    return "\n".join([*lines, f"f {corners}", "f -4 -3 -1 -2", ""]).encode(encoding)


def concave_off() -> bytes:
    """An OFF with a concave polygon."""
    rows = "\n".join(f"{x} {y} 1" for x, y in _COMB)
    return f"OFF\n9 2 0\n{rows}\n9 0 1 2 3 4 5 6 7 8\n4 0 3 2 1\n".encode()


def gltf_files(folder: Path) -> list[bytes]:
    """glTF as text: the arrays in itself, and in a file beside it; one shows its mesh in several places."""
    texts = []
    for number, whole in enumerate(meshes(folder, ".glb")):
        size = int.from_bytes(whole[12:16], "little")
        document, data = json.loads(whole[20 : 20 + size]), whole[28 + size :]
        uri = f"data:application/octet-stream;base64,{b64encode(data).decode()}"
        if number == 1:
            (folder / "mesh.bin").write_bytes(data)
            uri = "mesh.bin"
        document["buffers"] = [{"byteLength": len(data), "uri": uri}]
        if number == 0:
            places = {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": 0, "SCALE": 0}}}
            document["nodes"] = [{"mesh": 0, "rotation": [0, 0, 1, 2]}, {"mesh": 0, "extensions": places}]
            document["scenes"] = [{"nodes": [0, 1]}]
        texts.append(json.dumps(document).encode())
    return texts


def vtk_files() -> list[bytes]:
    """Legacy VTK: text, binary, and the layout with offsets, with every attribute that is read."""
    mesh = sheet()
    cells = np.column_stack([np.full(24, 3), mesh.faces])
    head = "# vtk DataFile Version {}\nsheet SPACE=LPS\n{}\nDATASET POLYDATA\n"
    attributes = (
        f"POINT_DATA 20\nCOLOR_SCALARS RGB 4\n{_rows(mesh.colors / 255.0)}\n"  # type: ignore[operator]
        f"TEXTURE_COORDINATES uv 2 float\n{_rows(mesh.vertices[:, :2])}\n"
        f"SCALARS s float 1\nLOOKUP_TABLE default\n{_rows(mesh.vertices[:, :1])}\n"
        f"NORMALS n float\n{_rows(mesh.vertices)}\n"
        "METADATA\nINFORMATION 0\n\nCELL_DATA 24\nFIELD FieldData 2\nSPACE 1 1 string\nLPS\n"
        f"k 1 24 int\n{_rows(cells[:, :1])}\n"
    )
    text = (
        head.format("3.0", "ASCII")
        + f"POINTS 20 float\n{_rows(mesh.vertices)}\nPOLYGONS 24 96\n{_rows(cells)}\n"
    )
    strips = "TRIANGLE_STRIPS 1 5\n4 0 5 1 6\nLINES 1 3\n2 0 1\n"
    binary = (
        head.format("3.0", "BINARY").encode()
        + b"POINTS 20 double\n" + mesh.vertices.astype(">f8").tobytes()
        + b"\nPOLYGONS 24 96\n" + cells.astype(">i4").tobytes()
        + b"\nPOINT_DATA 20\nSCALARS rgb unsigned_char 3\nLOOKUP_TABLE default\n" + mesh.colors[:, :3].tobytes()  # type: ignore
        + b"\nFIELD f 1\nSPACE 1 1 string\n\xc3RAS\n"
    )  # fmt: skip
    offsets = np.arange(0, 73, 3)
    newer = (
        head.format("5.1", "BINARY").encode()
        + b"POINTS 20 float\n" + mesh.vertices.astype(">f4").tobytes()
        + b"\nPOLYGONS 25 72\nOFFSETS vtktypeint64\n" + offsets.astype(">i8").tobytes()
        + b"\nCONNECTIVITY vtktypeint64\n" + mesh.faces.astype(">i8").tobytes() + b"\n"
    )  # fmt: skip
    newer_text = (
        head.format("5.1", "ASCII")
        + f"POINTS 20 float\n{_rows(mesh.vertices)}\nPOLYGONS 25 72\nOFFSETS vtktypeint64\n{_rows(offsets[:, None])}\n"
        + f"CONNECTIVITY vtktypeint64\n{_rows(mesh.faces)}\n"
    )
    return [(text + strips + attributes).encode(), binary, newer, newer_text.encode()]


def vtp(layout: str) -> bytes:
    """A .vtp file as VTK writes it: ``ascii``, ``zlib`` (in base64) or ``raw`` (appended bytes)."""
    mesh = sheet()
    appended = b""

    def array(name: str, kind: str, values: np.ndarray) -> str:
        nonlocal appended
        start = f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{values.shape[1]}"'
        raw = values.tobytes()
        if layout == "ascii":
            return f'{start} format="ascii">{" ".join(map(str, values.ravel().tolist()))}</DataArray>'
        if layout == "zlib":
            half = len(raw) // 2 + 1
            packed = [zlib.compress(raw[:half]), zlib.compress(raw[half:])]
            head = np.array([2, half, len(raw) - half, *map(len, packed)], "<u4").tobytes()
            text = b64encode(head).decode() + b64encode(b"".join(packed)).decode()
            return f'{start} format="binary">{text}</DataArray>'
        at, appended = len(appended), appended + np.uint32(len(raw)).tobytes() + raw
        return f'{start} format="appended" offset="{at}"/>'

    parts = (
        '<PointData TCoords="uv">' + array("uv", "Float32", mesh.vertices[:, :2].astype("<f4"))
        + array("rgb", "UInt8", mesh.colors[:, :3].copy()) + "</PointData><Points>"  # type: ignore[index]
        + array("Points", "Float32", mesh.vertices.astype("<f4")) + "</Points><Polys>"
        + array("connectivity", "Int32", mesh.faces.astype("<i4").reshape(-1, 1))
        + array("offsets", "Int32", np.arange(3, 73, 3, dtype="<i4")[:, None]) + "</Polys><Strips>"
        + array("connectivity", "Int64", np.array([[0], [5], [1], [6]], "<i8"))
        + array("offsets", "Int64", np.array([[4]], "<i8")) + "</Strips>"
    )  # fmt: skip
    compressor = ' compressor="vtkZLibDataCompressor"' if layout == "zlib" else ""
    tail = b'<AppendedData encoding="raw">_' + appended + b"</AppendedData>" if layout == "raw" else b""
    return (
        f'<?xml version="1.0"?><VTKFile type="PolyData" version="0.1" byte_order="LittleEndian"{compressor}><PolyData>'
        f'<Piece NumberOfPoints="20" NumberOfStrips="1" NumberOfPolys="24">{parts}</Piece></PolyData>'
    ).encode() + tail + b"</VTKFile>"  # fmt: skip


@cache
def landmarks() -> Landmarks:
    """All landmarks, anywhere."""
    return Landmarks(NAMES, np.random.default_rng(1).normal(size=(len(NAMES), 3)) * 100)


def landmark_vertices() -> bytes:
    """Four landmarks as the vertices of a PLY without faces."""
    head = "ply\nformat ascii 1.0\nelement vertex 4\n" + "".join(f"property float {axis}\n" for axis in "xyz")
    return (head + "end_header\n0 95 100\n0 -200 90\n110 -70 120\n-110 -70 120\n").encode()


def landmark_file(folder: Path, format: str) -> bytes:
    """The landmarks in one of the formats that are written."""
    path = folder / "seed"
    save_landmarks(landmarks(), path, format=format)
    return path.read_bytes()


@cache
def model() -> ShapeModel:
    """A model of 20 vertices and three components with everything that a file can hold."""
    mesh, rng = sheet(), np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(60, 3)))[0].astype(np.float32)
    training = Training(rng.normal(size=(4, 3)), np.ones(4), {"age": np.array([50.0, 61.0, 44.0, np.nan])})
    return ShapeModel(
        np.array(mesh.vertices), basis, np.array([9.0, 4.0, 1.0]), np.array(mesh.faces),
        {"sternal_notch": 1, "xiphoid": 4}, 0.25, np.arange(20)[::-1], training, {"subjects": 4, "alignment": "rigid"},
    )  # fmt: skip


def model_file(folder: Path, suffix: str) -> bytes:
    """The model as our writer gives it."""
    path = folder / f"seed{suffix}"
    save_model(model(), path)
    return path.read_bytes()


def catalog_model() -> bytes:
    """A model as Scalismo stores it now: in a group that the catalog names, without a version."""
    import h5py

    kept, buffer = model(), io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["catalog/shape/modelPath"], file["catalog/shape/modelType"] = b"/shape", b"POLYGON_MESH_MODEL"
        group = file.create_group("shape")
        group["model/mean"], group["model/noiseVariance"] = kept.mean.ravel(), [0.0]
        group["model/pcaVariance"] = kept.variances
        scaled = kept.basis * np.sqrt(kept.variances)
        group.create_dataset("model/pcaBasis", data=scaled, compression="gzip", shuffle=True)
        group["representer/cells"] = kept.faces.T
        group["representer"].attrs["datasetType"] = "POLYGON_MESH"
    return buffer.getvalue()


def crooked_model() -> bytes:
    """A model whose basis is not orthonormal, with a component that carries nothing, and with training scores."""
    import h5py

    kept, buffer, rng = model(), io.BytesIO(), np.random.default_rng(3)
    with h5py.File(buffer, "w") as file:
        file["version/majorVersion"], file["version/minorVersion"] = np.int32(0), np.int32(9)
        file["model/mean"], file["model/noiseVariance"] = kept.mean.ravel(), [0.1]
        file["model/pcaBasis"] = np.c_[kept.basis @ rng.normal(size=(3, 5)), np.full(60, np.nan)].astype("f4")
        file["model/pcaVariance"] = np.array([9.0, 4.0, 1.0, 0.5, 0.1, 0.0])
        file["modelinfo/scores"] = rng.normal(size=(6, 4))
        file["representer/cells"] = kept.faces.T
        file["representer"].attrs["datasetType"] = "POLYGON_MESH"
    return buffer.getvalue()


def reference_model() -> bytes:
    """A model of statismo's old representer, which keeps its triangles as a whole VTK file."""
    import h5py

    kept, buffer = model(), io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["model/mean"], file["model/pcaBasis"] = kept.mean.ravel(), kept.basis * np.sqrt(kept.variances)
        file["model/pcaVariance"] = kept.variances
        file["representer/reference"] = np.frombuffer(vtk_files()[0], np.uint8)
        file["representer"].attrs["name"] = "vtkPolyDataRepresenter"
    return buffer.getvalue()


def json_model() -> bytes:
    """The model in HDF5-JSON."""
    kept = model()
    values = {
        "model/mean": kept.mean.ravel().tolist(), "model/pcaBasis": kept.basis.tolist(),
        "model/pcaVariance": kept.variances.tolist(), "model/noiseVariance": [0.25],
        "representer/cells": kept.faces.T.tolist(), "version/majorVersion": 0, "version/minorVersion": 9,
        "modelinfo/scores": np.ones((3, 4)).tolist(), "breastmorph/info": '{"subjects": 4}',
        "breastmorph/landmark_names": ["xiphoid"], "breastmorph/landmark_vertices": [4],
    }  # fmt: skip
    groups: dict[str, dict] = {"root": {"links": []}}
    datasets = {}
    for path, value in values.items():
        group, name = path.split("/")
        if group not in groups:
            groups[group] = {"links": []}
            groups["root"]["links"].append({"class": "H5L_TYPE_HARD", "title": group, "id": group})
        groups[group]["links"].append({"class": "H5L_TYPE_HARD", "title": name, "id": path})
        datasets[path] = {"value": value}
    groups["representer"]["attributes"] = [{"name": "datasetType", "value": "POLYGON_MESH"}]
    return json.dumps({"apiVersion": "1.0", "root": "root", "groups": groups, "datasets": datasets}).encode()


def learnt() -> bytes:
    """The prior of a cohort."""
    from breastmorph.batch.cohort_prior import CohortPrior
    from breastmorph.registration.parameters import CohortPriorParameters
    from breastmorph.registration.warp import ScorePrior

    p = CohortPriorParameters()
    means = np.random.default_rng(1).normal(size=(p.groups + 1, 2, 6))
    priors = tuple(tuple(ScorePrior(mean, np.diag(mean)) for mean in group) for group in means)
    return CohortPrior(tuple(f"s{k}" for k in range(p.enough)), priors, "a recipe").to_npz()


def session_file() -> bytes:
    """What the explorer saves: a scan, its landmarks and a patient, in one archive."""
    from breastmorph.explorer.session_file import fingerprint
    from fuzz.array_mutation import npy_bytes

    shape = 40.0 * model().mean
    notes = {
        "kind": "BreastMorph session 1", "page": {"k": 1},
        "model": {"name": "m.h5", "fingerprint": fingerprint(model())},
        "landmark_ids": {"xiphoid": 4}, "edit": {"cup": 1}, "prediction": None,
        "scan": {"name": "s", "file": "s.ply", "landmarks": {"xiphoid": [0.0, 1.0, 2.0]}},
        "patient": {
            "name": "s", "how": "fitted", "absent_side": "left", "to_file": Similarity().as_dict(), "warnings": ["w"],
        },
    }  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scan/s.ply", uneven_ply())
        archive.writestr("patient.npy", npy_bytes(shape))
        archive.writestr("residual.npy", npy_bytes(np.zeros(len(shape))))
        archive.writestr("session.json", json.dumps(notes))
    return buffer.getvalue()


@cache
def template() -> Template:
    """A template of 20 vertices."""
    ids, mirror = dict(zip(NAMES, range(len(NAMES)), strict=True)), np.arange(20)[::-1]
    plain = TriangleMesh(sheet().vertices, sheet().faces)
    return Template(plain, ids, plain, ids, mirror, mirror)


def registered_folder(folder: Path) -> dict[str, bytes]:
    """What ``breastmorph register`` leaves for one subject, and the cohort file; the files by their role."""
    from breastmorph.cohort import load_cohort

    mesh, record = folder / "registered" / "s1.ply", folder / "registered" / "s1.json"
    mesh.parent.mkdir(parents=True, exist_ok=True)
    (folder / "template.npz").write_bytes(to_npz(template()))
    save_mesh(template().mesh, mesh)
    content = {
        "id": "s1", "to_file": Similarity().as_dict(), "absent_side": "", "template": "t", "outputs": {"s1.ply": "d"},
        "landmarks": {name: point.tolist() for name, point in landmarks().items()},
        "inputs": {"scan": "h"}, "metrics": {"mean": 0.5}, "warnings": [], "seconds": 1.0,
    }  # fmt: skip
    record.write_text(json.dumps(content))
    load_cohort(folder)
    packed = next((folder / "cohort").glob("shapes-*.npy"))
    (folder / "packed.txt").write_text(packed.stem)
    return {
        "record": record.read_bytes(),
        "template": (folder / "template.npz").read_bytes(),
        "shapes": packed.read_bytes(),
        "index": packed.with_suffix(".json").read_bytes(),
    }
