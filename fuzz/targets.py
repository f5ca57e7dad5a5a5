"""The readers that are fuzzed: where an input lies, how it is made and what reads it."""
# ruff: noqa: S101 - an assertion that fails is what this is about

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np

from breastmorph.batch.cohort_prior import CohortPrior
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.clinical.missing_region import load_painted
from breastmorph.cohort import load_cohort
from breastmorph.cohort.reading import landmark_vertices, read_table
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.files import load_mesh, load_mesh_or_points, save_mesh
from breastmorph.model.files import load_landmark_ids, load_model
from breastmorph.scan.landmark_files import read_landmarks
from breastmorph.scan.raw_target import load_points
from breastmorph.template import from_npz
from breastmorph.usecases.subject import registered_patient
from fuzz import seeds
from fuzz.inputs import mutated

Seeds = Callable[[Path], list[bytes]]


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    name : str
    file : str
        Name of the input in the working folder.
    layout : str
        Which mutations know the file's structure, a key of :data:`fuzz.inputs.LAYOUTS`.
    seeds : callable
        Makes the seeds, and in the working folder whatever else the reader looks for.
    read : callable
        Reads the file at a path; asserts what every value that is returned must fulfil.
    """

    name: str
    file: str
    layout: str
    seeds: Seeds
    read: Callable[[Path], Any]

    def prepared(self, folder: Path) -> tuple[Path, list[bytes]]:
        """Where inputs lie in a working folder, and the seeds; whatever else the reader looks for is made."""
        path = folder / self.file
        path.parent.mkdir(exist_ok=True)
        return path, self.seeds(folder)

    def input(self, made: list[bytes], number: int) -> bytes:
        """The input of a number; the first ones are the seeds as they are."""
        if number < len(made):
            return made[number]
        return mutated(made, self.layout, Random(f"{self.name} {number}"))  # noqa: S311


def _mesh(path: Path) -> None:
    mesh = load_mesh_or_points(path)
    assert mesh.vertices.dtype == np.float64
    assert not mesh.n_faces or 0 <= mesh.faces.min() <= mesh.faces.max() < mesh.n_vertices


def _landmarks(path: Path) -> None:
    found = read_landmarks(path)
    assert np.isfinite(found.landmarks.points).all()
    assert found.space in ("", "LPS", "RAS")


def _model(path: Path) -> None:
    model = load_model(path)
    products = model.basis.T.astype(np.float64) @ model.basis
    assert np.abs(products - np.eye(model.n_components)).max(initial=0.0) < 1e-2
    assert np.isfinite(model.mean).all()
    assert np.isfinite(model.variances).all()


def _registered(path: Path) -> None:
    cohort = load_cohort(path.parent.parent if path.parent.name in ("registered", "cohort") else path.parent)
    assert np.isfinite(cohort.shape(0)).all()
    assert len(cohort.template.landmarks)


def _record(path: Path) -> None:
    _quiet(lambda: registered_patient(seeds.model(), path.with_suffix(".ply")))
    folder = RegisteredFolder(path.parent.parent)
    folder.record("s1")
    _registered(path)


def _quiet(read: Callable[[], object]) -> None:
    """Run a first reader whose refusal must not hide the second from the same input."""
    with suppress(BreastMorphError):
        read()


def _table(path: Path) -> None:
    rows = read_table(path)
    assert all(isinstance(value, str) for row in rows.values() for value in row.values())


def _template(path: Path) -> None:
    template = from_npz(path.read_bytes(), path)
    assert np.isfinite(template.landmarks.points).all()
    assert np.isfinite(template.coarse_landmarks.points).all()


def _learnt(path: Path) -> None:
    found = CohortPrior.from_npz(path.read_bytes(), path)
    if found.of_groups:
        assert all(np.isfinite(one.root).all() for one in found.for_scan("s1"))


def _painted(path: Path) -> None:
    assert load_painted(path, 20).any()


def _points(path: Path) -> None:
    assert load_points(path).shape[1:] == (3,)


def _ids(path: Path) -> None:
    _quiet(lambda: load_landmark_ids(path))
    _quiet(lambda: seeds.model().with_landmark_ids(load_landmark_ids(path)))
    found = landmark_vertices(path, seeds.sheet())
    assert all(0 <= vertex < 20 for vertex in found.values())


def _beside(path: Path) -> None:
    """A file that a mesh refers to."""
    assert load_mesh(path.with_name("mesh.obj")).n_faces == 24


def _written(*suffixes: str) -> Seeds:
    return lambda folder: [data for suffix in suffixes for data in seeds.meshes(folder, suffix)]


def _landmark_seed(format: str) -> Seeds:
    return lambda folder: [seeds.landmark_file(folder, format)]


def _part(role: str) -> Seeds:
    return lambda folder: [seeds.registered_folder(folder)[role]]


def _obj_beside(name: str) -> Seeds:
    def made(folder: Path) -> list[bytes]:
        save_mesh(seeds.textured(True), folder / "mesh.obj")
        return [(folder / name).read_bytes(), *([seeds.picture("JPEG")] if name.endswith("png") else [])]

    return made


def _table_seeds(folder: Path) -> list[bytes]:
    return [b"id,age,bmi\ns1,50,22.5\ns2,61,30\n", b"id;age;bmi\ns1;50;22,5\ns2;61;30\n"]


def _id_seeds(folder: Path) -> list[bytes]:
    names = seeds.landmarks().names
    listed = ",\n".join(f'"{name}": {k}' for k, name in enumerate(names))
    return [f"{{{listed}}}".encode(), "\n".join(f"{name},{k}" for k, name in enumerate(names)).encode()]


def _packed(path: Path) -> None:
    """The cohort file, or the index beside it: whatever is in it, the cohort is read, from the meshes at worst."""
    folder = path.parent.parent
    stem = (folder / "packed.txt").read_text()
    (path.parent / f"{stem}{path.suffix}").write_bytes(path.read_bytes())
    assert load_cohort(folder).packed.shape == (1, 20, 3)


def _session(path: Path) -> None:
    from breastmorph.explorer.session_file import fingerprint, opened

    found = opened(path, fingerprint(seeds.model()), seeds.model().n_vertices, 64 * 1024**2)
    assert found.patient is None or found.patient.shape.shape == seeds.model().mean.shape


def _all() -> tuple[Target, ...]:
    return (
        Target("PLY text", "mesh.ply", "text", lambda folder: [seeds.text_ply()], _mesh),
        Target(
            "PLY binary", "mesh.ply", "headed",
            lambda folder: [*_written(".ply")(folder), seeds.uneven_ply(), seeds.uneven_ply("<")], _mesh,
        ),
        Target(
            "OBJ", "mesh.obj", "text",
            lambda folder: [*_written(".obj")(folder), seeds.concave_obj(), seeds.concave_obj("utf-16")], _mesh,
        ),
        Target("OBJ material", "mesh.mtl", "text", _obj_beside("mesh.mtl"), _beside),
        Target("texture picture", "mesh.png", "bytes", _obj_beside("mesh.png"), _beside),
        Target("STL text", "mesh.stl", "text", lambda folder: [seeds.text_stl()], _mesh),
        Target("STL binary", "mesh.stl", "records", _written(".stl"), _mesh),
        Target("OFF", "mesh.off", "text", lambda folder: [*seeds.off_files(), seeds.concave_off()], _mesh),
        Target("VTK legacy", "mesh.vtk", "headed", lambda folder: seeds.vtk_files(), _mesh),
        Target(
            "VTP", "mesh.vtp", "xml",
            lambda folder: [*_written(".vtp")(folder), *map(seeds.vtp, ("ascii", "zlib", "raw"))], _mesh,
        ),
        Target("GLB", "mesh.glb", "glb", _written(".glb"), _mesh),
        Target("GLTF", "mesh.gltf", "json", seeds.gltf_files, _mesh),
        Target("landmarks JSON", "l.json", "json", _landmark_seed(".json"), _landmarks),
        Target("landmarks CSV", "l.csv", "text", _landmark_seed(".csv"), _landmarks),
        Target("landmarks PP", "l.pp", "xml", _landmark_seed(".pp"), _landmarks),
        Target("landmarks PLY", "l.ply", "text", lambda folder: [seeds.landmark_vertices()], _landmarks),
        Target("landmarks MRK", "l.mrk.json", "json", _landmark_seed(".mrk.json"), _landmarks),
        Target("landmarks FCSV", "l.fcsv", "text", _landmark_seed(".fcsv"), _landmarks),
        Target("landmarks Scalismo", "l.json", "json", _landmark_seed("scalismo"), _landmarks),
        Target("landmark vertices", "l.json", "json", _id_seeds, _ids),
        Target(
            "point table", "p.xyz", "text",
            lambda folder: [b"x,y,z\n1,2,3\n4,5,6\n", b"3\n1 2 3\n4 5 6\n7 8 9\n"], _points,
        ),
        Target("painted region", "p.txt", "text", lambda folder: [b"1, 2, 3\n4;5\n[6]\n"], _painted),
        Target(
            "model HDF5", "m.h5", "hdf5",
            lambda folder: [
                seeds.model_file(folder, ".h5"), seeds.catalog_model(), seeds.reference_model(), seeds.crooked_model(),
            ],
            _model,
        ),
        Target("model HDF5-JSON", "m.json", "json", lambda folder: [seeds.json_model()], _model),
        Target("model NPZ", "m.npz", "npz", lambda folder: [seeds.model_file(folder, ".npz")], _model),
        Target("template NPZ", "template.npz", "npz", _part("template"), _template),
        Target("learnt prior NPZ", "learnt.npz", "npz", lambda folder: [seeds.learnt()], _learnt),
        Target("registration record", "registered/s1.json", "json", _part("record"), _record),
        Target("cohort file", "cohort/input.npy", "npy", _part("shapes"), _packed),
        Target("cohort file index", "cohort/input.json", "json", _part("index"), _packed),
        Target("explorer session", "s.zip", "npz", lambda folder: [seeds.session_file()], _session),
        Target("cohort table", "table.csv", "text", _table_seeds, _table),
    )  # fmt: skip


TARGETS: Mapping[str, Target] = MappingProxyType({target.name: target for target in _all()})
