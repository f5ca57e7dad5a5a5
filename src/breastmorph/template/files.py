"""Templates in files: a user's own, and the default that comes with the package."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import LandmarkProblem, about
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.files.numpy_archive import open_archive
from breastmorph.mesh.files.reading import damaged, problems_of
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.mesh.triangle_mesh import Ints, TriangleMesh
from breastmorph.scan.files import load_landmarks, save_landmarks
from breastmorph.template.template import Template, template_from

_DEFAULT = "template.npz"


def load_template(mesh: Path, landmarks: Path, coarse: Path | None = None) -> Template:
    """A template from files in mm and upright; the coarse twin is derived when not given."""
    with about(landmarks, LandmarkProblem):
        return template_from(
            load_mesh(mesh),
            load_landmarks(landmarks).landmarks,
            None if coarse is None else load_mesh(coarse),
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
            write_file(paths[2], _npy(mirror))
        written += paths
    return written


@cache
def default_template() -> Template:
    """The template that comes with the package: the phantom's symmetric mean torso."""
    data = files("breastmorph").joinpath("data", _DEFAULT).read_bytes()
    return from_npz(data)


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


def _checked(parts: Mapping[str, NDArray], name: str) -> tuple[TriangleMesh, dict[str, int], Ints | None]:
    """Mesh, landmark vertices and mirror permutation of one of the two surfaces."""
    wanted = {"vertices": "f", "faces": "iu", "landmarks": "U", "landmark_ids": "iu", "mirror": "iu"}
    found = {
        part: parts[f"{name}_{part}"] for part in wanted if part != "mirror" or f"{name}_mirror" in parts
    }
    for part, values in found.items():
        if values.size and values.dtype.kind not in wanted[part]:
            raise damaged(f"{name}_{part} holds {str(values.dtype)[:40]}")
    mesh = TriangleMesh(found["vertices"], found["faces"])
    ids = dict(zip(found["landmarks"].tolist(), found["landmark_ids"].tolist(), strict=True))
    n, mirror = mesh.n_vertices, found.get("mirror")
    if not np.isfinite(mesh.vertices).all() or not all(0 <= vertex < n for vertex in ids.values()):
        raise damaged(f"vertices or landmarks of {name} are out of range")
    if mirror is not None and not np.array_equal(np.sort(mirror), np.arange(n)):
        raise damaged(f"{name}_mirror is no permutation of the vertices")
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


def _npy(array: Ints) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
