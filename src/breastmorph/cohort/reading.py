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
from typing import Any

import numpy as np

from breastmorph.cohort.cohort import Cohort
from breastmorph.cohort.correspondence import mesh_in_correspondence, read_elsewhere
from breastmorph.cohort.packed import OnPacked, file_state, packed_shapes
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import in_utf8, printable, read_bytes, without_quote
from breastmorph.foundation.language import N_
from breastmorph.foundation.text import name_of
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.landmark_files import point_of
from breastmorph.scan.scan import Found, Landmarks
from breastmorph.template import Template, from_npz

_DECIMAL_COMMA = re.compile(r"^(-?\d+),(\d+)$")
_LARGEST_TABLE = 256 * 1024**2  # bytes
_AGAIN = N_("Run `breastmorph register` again")


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
    packed = packed_shapes(
        place,
        states,
        template.mesh.n_vertices,
        lambda index: (_upright(subjects[index], template), subjects[index].to_file),
        on_packed,
    )
    k = len(subjects)
    absent = tuple(subject.absent for subject in subjects)
    ids = tuple(subject.id for subject in subjects)
    landmarks = tuple(subject.landmarks for subject in subjects)
    return Cohort(ids, template, packed.shapes, np.arange(k), packed.to_file, absent, ({},) * k, landmarks)


def _subjects(folder: Path) -> list[_Subject]:
    if not (folder / "registered").is_dir():
        raise FileProblem(
            "this is no folder of registered scans",
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


def _upright(subject: _Subject, template: Template) -> Floats:
    mesh = mesh_in_correspondence(subject.mesh, template.mesh.faces, f"{_AGAIN} for this scan")
    return subject.to_file.inverse().apply(mesh.vertices)


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
