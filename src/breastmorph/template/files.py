"""Templates in files: a user's own, and the default that comes with the package."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Ints
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem, error_context
from breastmorph.foundation.files import damaged, make_folder, problems_of, write_file
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import face_normals, vertex_normals, without_unreferenced
from breastmorph.mesh.topology import face_components, is_manifold
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import STERNUM_LENGTH
from breastmorph.scan.frame import faces_inside_out, landmark_axes
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.scan import STERNUM, Landmarks
from breastmorph.template.template import Template, template_from

_TWIN_OFF = 15.0  # mm between the template and nearly all vertices of its coarse twin
_UPRIGHT = 45.0  # degrees between the axes of a template's file and those of its landmarks
_DEFAULT = files("breastmorph").joinpath("data", "template.npz")


def load_template(mesh: AnyPath, landmarks: AnyPath, coarse: AnyPath | None = None) -> Template:
    """A template from files in mm and upright; the coarse twin is derived when not given.

    Nothing is repaired: vertices that vanish or change places would part it from what was made with it before.

    Parameters
    ----------
    mesh, landmarks : path
        The landmarks have to lie on the mesh.
    coarse : path, optional
        Its coarse twin.

    Returns
    -------
    Template

    Raises
    ------
    MeshProblem
        A surface that cannot be bent: not finite, not one manifold piece, vertices without faces, inside out.
    LandmarkProblem
        They are missing, not this mesh's, or show that it is not in mm or not upright.

    Examples
    --------
    >>> bm.save_mesh(model.mean_mesh, "mean.ply")
    >>> bm.save_landmarks(model.landmarks, "mean.json")
    >>> bm.load_template("mean.ply", "mean.json").mesh.n_vertices == model.n_vertices
    True
    """
    mesh, landmarks = check_path(mesh), check_path(landmarks)
    coarse = None if coarse is None else check_path(coarse)
    surface = _sound(mesh)
    twin = None if coarse is None else _sound(coarse)
    with error_context(landmarks, LandmarkProblem):
        template = template_from(surface, load_landmarks(landmarks), twin)
        _require_upright(template.landmarks)
    if faces_inside_out(surface, template.landmarks):
        raise MeshProblem("the template's surface is inside out", "Turn its faces over", mesh)
    if twin is not None:
        _require_twin(surface, twin, coarse)
    return template


def _sound(path: Path) -> TriangleMesh:
    """A surface that can be bent as it is."""
    mesh = load_mesh(path)
    problem = ""
    if not np.isfinite(mesh.vertices).all():
        problem = "coordinates that are not finite"
    elif without_unreferenced(mesh)[1]:
        problem = "vertices without faces"
    elif not is_manifold(mesh.faces):
        problem = "edges of more than two faces, doubled faces, or faces turned against their neighbours"
    elif face_components(mesh.faces).max() > 0:
        problem = "several pieces"
    if problem:
        raise MeshProblem(
            "the template's surface has {problem}",
            "Clean it (for example in MeshLab), or make a template with `breastmorph template`",
            path,
            problem=problem,
        )
    return mesh


def _require_twin(mesh: TriangleMesh, twin: TriangleMesh, path: Path | None) -> None:
    """Refuse a coarse mesh that is not the same surface."""
    found = Surface(twin).closest(mesh.vertices)
    back = Surface(mesh).closest(twin.vertices)
    away = max(float(np.quantile(part.distances, 0.95)) for part in (found, back))
    normals = face_normals(twin.vertices, twin.faces)[found.faces]
    agree = (normals * vertex_normals(mesh.vertices, mesh.faces)).sum(axis=1)
    if away > _TWIN_OFF or np.median(agree) < 0.0:
        how = f"up to {away:.0f} mm away" if away > _TWIN_OFF else "inside out"
        raise MeshProblem(
            "the coarse twin is not the template's surface ({how})",
            "Give the same surface in the same unit and frame with fewer vertices, or leave it to be derived",
            path,
            how=how,
        )


def _require_upright(landmarks: Landmarks) -> None:
    """Refuse a template in another unit or frame: it would be bent without a warning, and worse."""
    notch, xiphoid = landmarks.array(STERNUM)
    length = float(np.linalg.norm(notch - xiphoid))
    if not STERNUM_LENGTH[0] <= length <= STERNUM_LENGTH[1]:
        raise LandmarkProblem(
            "the template's sternal notch and xiphoid lie {length:.4g} mm apart (an adult's "
            "{sternum_length:.0f}-{sternum_length2:.0f})",
            "Templates are read in mm: scale mesh and landmarks, or check these two landmarks",
            code="wrong-unit",
            length=length,
            sternum_length=STERNUM_LENGTH[0],
            sternum_length2=STERNUM_LENGTH[1],
        )
    if (np.diag(landmark_axes(landmarks)) < np.cos(np.radians(_UPRIGHT))).any():
        raise LandmarkProblem(
            "the template does not stand upright in its file",
            "Turn mesh and landmarks: x to the patient's left, y up, z forward",
        )


def save_template(template: Template, folder: Path) -> list[Path]:
    """Write a template's meshes, landmarks and permutations; returns the files."""
    make_folder(folder)
    written = []
    for name, mesh, landmarks, mirror in (
        ("template", template.mesh, template.landmarks, template.mirror),
        ("template_coarse", template.coarse, template.coarse_landmarks, template.coarse_mirror),
    ):
        paths = [folder / f"{name}.ply", folder / f"{name}_landmarks.json"]
        save_mesh(mesh, paths[0])
        save_landmarks(landmarks, paths[1])
        if mirror is not None:
            paths.append(folder / f"{name}_mirror.npy")
            content = io.BytesIO()
            np.save(content, mirror, allow_pickle=False)
            write_file(paths[2], content.getvalue())
        written += paths
    return written


@cache
def default_template() -> Template:
    """The template that comes with the package: the phantom's symmetric mean torso.

    Returns
    -------
    Template

    Examples
    --------
    >>> "sternal_notch" in bm.default_template().landmarks
    True
    """
    return from_npz(_DEFAULT.read_bytes())


def to_npz(template: Template, dtype: type[np.floating] = np.float32) -> bytes:
    """A template as one compressed NPZ file; coordinates as 32-bit floats unless another type is asked for."""
    buffer = io.BytesIO()
    parts: dict[str, np.ndarray] = {}
    for name, mesh, ids, mirror in (
        ("fine", template.mesh, template.landmark_ids, template.mirror),
        ("coarse", template.coarse, template.coarse_landmark_ids, template.coarse_mirror),
    ):
        parts |= {
            f"{name}_vertices": mesh.vertices.astype(dtype),
            f"{name}_faces": mesh.faces.astype(np.int32),
            f"{name}_landmarks": np.array(list(ids)),
            f"{name}_landmark_ids": np.array(list(ids.values()), dtype=np.int32),
        }
        if mirror is not None:
            parts[f"{name}_mirror"] = mirror.astype(np.int32)
    np.savez_compressed(buffer, allow_pickle=False, **parts)
    return buffer.getvalue()


def from_npz(data: bytes, where: Path | None = None) -> Template:
    """A template from what :func:`to_npz` wrote; ``where`` is named in errors."""
    with problems_of(where, "template"), open_archive(data) as parts:
        fine, coarse = (_checked(parts, name) for name in ("fine", "coarse"))
    return Template(fine[0], fine[1], coarse[0], coarse[1], fine[2], coarse[2])


def _checked(
    parts: Mapping[str, NDArray[Any]], name: str
) -> tuple[TriangleMesh, dict[str, int], Ints | None]:
    """Mesh, landmark vertices and mirror permutation of one of the two surfaces."""
    wanted = {"vertices": "f", "faces": "iu", "landmarks": "U", "landmark_ids": "iu", "mirror": "iu"}
    found = {
        part: parts[f"{name}_{part}"] for part in wanted if part != "mirror" or f"{name}_mirror" in parts
    }
    for part, values in found.items():
        if values.size and values.dtype.kind not in wanted[part]:
            raise damaged("{name}_{part} holds {dtype}", name=name, part=part, dtype=str(values.dtype)[:40])
    mesh = TriangleMesh(found["vertices"], found["faces"])
    ids = dict(zip(found["landmarks"].tolist(), found["landmark_ids"].tolist(), strict=True))
    n, mirror = mesh.n_vertices, found.get("mirror")
    if not np.isfinite(mesh.vertices).all() or not all(0 <= vertex < n for vertex in ids.values()):
        raise damaged("vertices or landmarks of {name} are out of range", name=name)
    if mirror is not None and not np.array_equal(np.sort(mirror), np.arange(n)):
        raise damaged("{name}_mirror is no permutation of the vertices", name=name)
    return mesh, ids, mirror


def template_hash(template: Template) -> str:
    """A hash of everything of the template that shapes a registration."""
    digest = hashlib.sha256()
    for mesh, ids in (
        (template.mesh, template.landmark_ids),
        (template.coarse, template.coarse_landmark_ids),
    ):
        digest.update(mesh.vertices.tobytes())
        digest.update(mesh.faces.tobytes())
        digest.update(json.dumps(sorted(ids.items())).encode())
    return digest.hexdigest()
