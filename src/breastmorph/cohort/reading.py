"""Reading a cohort: what ``breastmorph register`` wrote, or meshes in correspondence that were made elsewhere."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.cohort.cohort import Cohort
from breastmorph.cohort.packed import OnPacked, file_state, packed_shapes
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import FileProblem, LandmarkProblem, error_context
from breastmorph.foundation.files import in_utf8, printable, read_bytes, without_quote
from breastmorph.foundation.language import N_
from breastmorph.foundation.text import name_of
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import UNITS, require_complete, unit_of
from breastmorph.scan.check import find_scans
from breastmorph.scan.frame import faces_inside_out, upright_frame
from breastmorph.scan.landmark_files import load_landmarks, point_of
from breastmorph.scan.scan import STERNUM, Found, Landmarks, canonical_name
from breastmorph.template import Template, default_template, from_npz, template_from

_DECIMAL_COMMA = re.compile(r"^(-?\d+),(\d+)$")
_LARGEST_TABLE = 256 * 1024**2  # bytes
_AGAIN = N_("Run `breastmorph register` again")
_OFF_MESH = 1.0 / 20.0  # of the sternum, between a landmark and the nearest vertex: not this mesh's landmark
_LARGEST_LANDMARKS = 16 * 1024**2  # bytes of a landmark file

OTHER_TRIANGLES = "other-triangles"  # code of the error about a mesh that is not in correspondence
Vertices = Mapping[str, int]  # of landmarks by name


def load_cohort(
    folder: AnyPath,
    table: AnyPath | None = None,
    on_packed: OnPacked | None = None,
    *,
    landmarks: AnyPath | None = None,
    packed_in: AnyPath | None = None,
) -> Cohort:
    """Read a cohort. Memory stays flat: the shapes are mapped from a cohort file, made by the first reading.

    Parameters
    ----------
    folder : path
        The ``--out`` of ``breastmorph register``; with ``landmarks`` any folder of meshes that share their triangles.
    table : path, optional
        A CSV file with a column ``id`` and anything else about the subjects.
    on_packed : callable, optional
        Called with (done, all) while meshes are packed.
    landmarks : path, optional
        For meshes made elsewhere (by Scalismo, for example): the vertex of every landmark, as JSON
        ``{"sternal_notch": 1042, ...}`` or CSV ``name,vertex``; or a landmark file with points on the first mesh.
    packed_in : path, optional
        Folder of the cohort file, for example where ``folder`` is read-only; ``folder/cohort`` when not given.

    Returns
    -------
    Cohort

    Raises
    ------
    BreastMorphError
        It is no registered folder, or its meshes do not share their triangles.

    Examples
    --------
    >>> len(bm.load_cohort("registered-cohort"))
    4
    """
    folder = check_path(folder, "the name of the folder")
    place = check_path(packed_in) if packed_in is not None else folder / "cohort"
    if landmarks is not None:
        cohort = read_elsewhere(folder, check_path(landmarks), place, on_packed)
    else:
        cohort = _registered(folder, place, on_packed)
    if table is None:
        return cohort
    table = check_path(table)
    rows = read_table(table)
    if not any(scan_id in rows for scan_id in cohort.ids):
        raise FileProblem(
            "the table knows none of the cohort's scans",
            "Its column id must hold names like {ids!r} (spreadsheets drop leading zeros)",
            table,
            ids=cohort.ids[0],
        )
    return replace(cohort, table=tuple(rows.get(scan_id, {}) for scan_id in cohort.ids))


@dataclass(frozen=True)
class _Subject:
    """The part of a record that a cohort needs: thousands of them are in memory at once."""

    id: str
    mesh: Path
    digest: str
    to_file: Similarity
    absent: str
    template: str
    landmarks: Landmarks

    @property
    def state(self) -> str:
        """Changes with the mesh, also when it was edited by hand, and with the frame."""
        stat = os.stat(self.mesh)
        frame = hashlib.sha256(json.dumps(self.to_file.as_dict()).encode()).hexdigest()
        return f"{self.id} {self.digest} {file_state(stat)} {frame[:16]}"


def _registered(folder: Path, place: Path, on_packed: OnPacked | None) -> Cohort:
    subjects = _subjects(folder)
    try:
        template = from_npz((folder / "template.npz").read_bytes(), folder / "template.npz")
    except OSError as error:
        raise FileProblem("the folder's template is missing", _AGAIN, folder / "template.npz") from error
    try:
        states = [subject.state for subject in subjects]
    except OSError as error:
        raise FileProblem("this mesh is missing", _AGAIN, error.filename) from error

    def read(index: int) -> tuple[Floats, Similarity]:
        subject = subjects[index]
        mesh = mesh_in_correspondence(subject.mesh, template.mesh.faces, f"{_AGAIN} for this scan")
        return subject.to_file.inverse().apply(mesh.vertices), subject.to_file

    packed = packed_shapes(place, states, template.mesh.n_vertices, read, on_packed)
    k = len(subjects)
    absent = tuple(subject.absent for subject in subjects)
    ids = tuple(subject.id for subject in subjects)
    landmarks = tuple(subject.landmarks for subject in subjects)
    return Cohort(ids, template, packed.shapes, np.arange(k), packed.to_file, absent, ({},) * k, landmarks)


def _subjects(folder: Path) -> list[_Subject]:
    if not (folder / "registered").is_dir():
        raise FileProblem(
            "this is not a folder of registered scans",
            "Give the folder into which scans were registered; for meshes made elsewhere, also their "
            "landmarks",
            folder,
            code="not-registered",
        )
    subjects = [_subject(path) for path in sorted((folder / "registered").glob("[!.]*.json"))]
    by_id = sorted(subjects, key=lambda subject: subject.id)
    twice = [before.mesh for before, after in pairwise(by_id) if before.id == after.id]
    if twice:
        raise FileProblem("two results have the same name", "Remove one of them", twice[0])
    if not subjects:
        raise FileProblem("the folder holds no registered scan", "Run `breastmorph register` first", folder)
    if len({subject.template for subject in subjects}) > 1:
        raise FileProblem(
            "the scans were registered with different templates",
            "Register them all again with one template",
            folder,
        )
    return subjects


def _subject(path: Path) -> _Subject:
    mesh = path.with_suffix(".ply")
    try:
        record: Mapping[str, Any] = json.loads(path.read_bytes())
        name = name_of(path.stem)
        if name_of(record["id"]) != name:
            raise ValueError("it belongs to another scan")
        return _Subject(
            name,
            mesh,
            record["outputs"][f"{record['id']}.ply"],
            Similarity.from_dict(record["to_file"]),
            str(record["absent_side"]),
            str(record["template"]),
            recorded_landmarks(record),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileProblem(
            "this record cannot be read ({why})", _AGAIN, path, why=printable(str(error), 160)
        ) from error


def recorded_landmarks(record: Mapping[str, Any]) -> Landmarks:
    """The landmarks of a registration's record, upright; those that the program found have their uncertainty."""
    points = {name: point_of(name, point) for name, point in record.get("landmarks", {}).items()}
    found = {
        name: Found("shape", float(sd), float(sd) ** 2 * np.eye(3))
        for name, sd in record.get("landmarks_found", {}).items()
        if name in points
    }
    return replace(Landmarks.of(points), found=found)


def read_table(path: Path) -> dict[str, dict[str, str]]:
    """Rows of a cohort's table by ``id``, as text."""
    try:
        text = name_of(in_utf8(read_bytes(path, _LARGEST_TABLE)).decode())
    except UnicodeDecodeError as error:
        raise FileProblem(
            "the table's text is not UTF-8", "Save it as `CSV UTF-8` in your spreadsheet program", path
        ) from error
    lines = text.splitlines()
    # Spreadsheets of some countries write 22,6;yes where others write 22.6,yes.
    semicolons = bool(lines) and ";" in lines[0] and "," not in lines[0]
    try:
        # Under the key "" is what a row has beyond the named columns.
        rows = [
            {key: value or "" for key, value in row.items() if key}
            for row in csv.DictReader(lines, restkey="", delimiter=";" if semicolons else ",")
        ]
    except csv.Error as error:
        raise FileProblem(
            "the table cannot be read ({why})", "Give a CSV file", path, why=str(error)
        ) from error
    if semicolons:
        rows = [{key: _DECIMAL_COMMA.sub(r"\1.\2", value) for key, value in row.items()} for row in rows]
    if not rows or "id" not in rows[0]:
        raise FileProblem(
            "the table has no column `id`", "The first line names the columns, one of them id", path
        )
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        row["id"] = without_quote(row["id"])
        if not row["id"].strip():
            continue  # spreadsheets end in empty rows
        if row["id"] in found:
            raise FileProblem(
                "the table has two rows for {row!r}", "Keep one row a scan", path, row=printable(row["id"])
            )
        found[row["id"]] = row
    return found


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
    text = read_bytes(path, _LARGEST_LANDMARKS).decode("utf-8-sig", "replace")
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
