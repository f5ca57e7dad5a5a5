"""Meshes in correspondence made elsewhere: they share their triangles; a file names the vertices of the landmarks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from breastmorph.cohort.cohort import Cohort
from breastmorph.cohort.packed import OnPacked, file_state, packed_shapes
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import FileProblem, LandmarkProblem, error_context
from breastmorph.foundation.files import printable, read_bytes
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import UNITS, require_complete, unit_of
from breastmorph.scan.check import find_scans
from breastmorph.scan.frame import faces_inside_out, upright_frame
from breastmorph.scan.landmark_files import load_landmarks
from breastmorph.scan.scan import STERNUM, Landmarks, canonical_name
from breastmorph.template import Template, default_template, template_from

_OFF_MESH = 1.0 / 20.0  # of the sternum, between a landmark and the nearest vertex: not this mesh's landmark
_LARGEST = 16 * 1024**2  # bytes of a landmark file

OTHER_TRIANGLES = "other-triangles"  # code of the error about a mesh that is not in correspondence
Vertices = Mapping[str, int]  # of landmarks by name


def read_elsewhere(folder: Path, landmarks: Path, place: Path, on_packed: OnPacked | None) -> Cohort:
    """A cohort from a folder of mesh files with the same triangles, in any unit and pose.

    Its template is the mean of the subjects. See :func:`breastmorph.cohort.load_cohort`.
    """
    found = find_scans(folder)
    first = load_mesh(found[0].mesh)
    vertices = landmark_vertices(landmarks, first)

    def read(index: int) -> tuple[Floats, Similarity]:
        path = found[index].mesh
        remedy = "Only meshes in correspondence make a cohort; `breastmorph register` brings scans into it"
        mesh = mesh_in_correspondence(path, first.faces, remedy)
        with error_context(path):
            to_file = _frame(mesh, vertices)
        return to_file.inverse().apply(mesh.vertices), to_file

    states = [f"{files.id} {file_state(files.mesh.stat())} {sorted(vertices.items())}" for files in found]
    packed = packed_shapes(place, states, first.n_vertices, read, on_packed)
    k = len(found)
    ids = tuple(files.id for files in found)
    template = _mean_template(packed.shapes, first, vertices)
    return Cohort(ids, template, packed.shapes, np.arange(k), packed.to_file, ("",) * k, ({},) * k)


def mesh_in_correspondence(path: Path, faces: Ints, remedy: str) -> TriangleMesh:
    """Read a mesh that must have these triangles, and finite coordinates."""
    mesh = load_mesh(path)
    if np.array_equal(mesh.faces[:, ::-1], faces):
        mesh = mesh.flipped()  # the same triangles, inside out
    if not np.array_equal(mesh.faces, faces):
        raise FileProblem(
            "this mesh does not have the same triangles as the others", remedy, path, code=OTHER_TRIANGLES
        )
    if not np.isfinite(mesh.vertices).all():
        raise FileProblem("this mesh has coordinates that are no numbers", remedy, path)
    return mesh


def landmark_vertices(path: Path, mesh: TriangleMesh) -> Vertices:
    """The vertices of landmarks, by our names.

    Parameters
    ----------
    path : Path
        JSON ``{"sternal_notch": 1042, ...}``, CSV ``name,vertex``, or a landmark file with points on ``mesh``.
    mesh : TriangleMesh
    """
    listed = _listed(path)
    if listed is None:
        listed = _nearest(load_landmarks(path), mesh, path)
    for name, vertex in listed.items():
        if not 0 <= vertex < mesh.n_vertices:
            raise LandmarkProblem(
                "landmark {name} names vertex {vertex}, the meshes have {n_vertices}",
                "Vertices are counted from 0",
                path,
                name=name,
                vertex=printable(str(vertex)),
                n_vertices=mesh.n_vertices,
            )
    with error_context(path):
        require_complete(Landmarks.at_vertices(listed, mesh.vertices))
    return MappingProxyType(listed)


def _listed(path: Path) -> dict[str, int] | None:
    """Vertices that a JSON object or a CSV table of two columns lists; None for any other file."""
    text = read_bytes(path, _LARGEST).decode("utf-8-sig", "replace")
    try:
        parts = json.loads(text)
    except RecursionError:
        return None
    except ValueError:
        parts = _pairs(text)
    if not isinstance(parts, dict) or not parts or not all(type(value) is int for value in parts.values()):
        return None
    found: dict[str, int] = {}
    for label, vertex in parts.items():
        name = canonical_name(label)
        if name is None:
            continue
        if name in found:
            raise LandmarkProblem(
                "landmark {name} is given twice", "Keep one vertex per name", path, name=name
            )
        found[name] = vertex
    return found


def _pairs(text: str) -> dict[str, int]:
    """Names with whole numbers, from the rows of a table that have just these two."""
    try:
        rows = [row for row in csv.reader(text.splitlines()) if len(row) == 2]
    except csv.Error:
        return {}
    return {name.strip(): int(vertex) for name, vertex in rows if re.fullmatch(r"\s*\d{1,18}\s*", vertex)}


def _nearest(points: Landmarks, mesh: TriangleMesh, path: Path) -> dict[str, int]:
    require_complete(points)
    allowed = _OFF_MESH * float(np.linalg.norm(np.subtract(*points.array(STERNUM))))
    found = {}
    for name, point in points.items():
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.linalg.norm(mesh.vertices - point, axis=1)
        if not away.min() <= allowed:
            raise LandmarkProblem(
                "landmark {name} does not lie on the first mesh",
                "Give points of the first mesh by name, or list the landmarks' vertices",
                path,
                name=name,
            )
        found[name] = int(away.argmin())
    return found


def _frame(mesh: TriangleMesh, vertices: Vertices) -> Similarity:
    """From the upright frame of a mesh, in mm about the middle of its sternum, to that of its file."""
    unit = UNITS[unit_of(Landmarks.at_vertices(vertices, mesh.vertices))]
    in_mm = mesh.with_vertices(unit * mesh.vertices)
    landmarks = Landmarks.at_vertices(vertices, in_mm.vertices)
    if faces_inside_out(in_mm, landmarks):
        raise FileProblem("the surface is inside out", "Turn the triangles of all meshes around")
    axes = upright_frame(in_mm, landmarks, default_template().as_reference).axes
    to_upright = Similarity(axes, -axes @ landmarks.array(STERNUM).mean(axis=0))
    return Similarity(scale=1.0 / unit).after(to_upright.inverse())


def _mean_template(shapes: NDArray[np.float32], mesh: TriangleMesh, vertices: Vertices) -> Template:
    """The mean of the subjects, each aligned to the first one, as a template."""
    first = np.array(shapes[0], dtype=np.float64)
    mean = np.zeros_like(first)
    for packed in shapes:
        shape = np.array(packed, dtype=np.float64)
        mean += Similarity.fit(shape, first, with_scale=False).apply(shape) / len(shapes)
    template = template_from(TriangleMesh(mean, mesh.faces), Landmarks.at_vertices(vertices, mean))
    return replace(template, landmark_ids=vertices)
