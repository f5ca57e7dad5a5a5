"""The cohort value: registered subjects in correspondence, read through one loader with flat memory.

A registered folder holds one mesh file a subject. The first reading packs them into ``OUT/cohort/shapes.npy``
(32-bit floats), which later readings map into memory; it is packed again when any mesh changed.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints
from breastmorph.template import Template
from breastmorph.template.files import from_npz


@dataclass(frozen=True, eq=False)
class Cohort:
    """Subjects with the template's topology.

    Attributes
    ----------
    ids : tuple of str
    template : Template
    packed : (s, n, 3) float32
        Shapes in mm, each in the upright frame of its own scan (that of :class:`breastmorph.scan.scan.Scan`);
        usually mapped from a file. Read them with :meth:`shape`, :meth:`shapes` or :meth:`array`.
    rows : (k,) int
        The row of every subject in ``packed``.
    to_file : tuple of Similarity
        From a subject's upright frame to that of its scan's file.
    absent : tuple of str
        The side without a breast, or empty.
    table : tuple of mappings
        What the cohort's table says of every subject, as text; empty without a table.
    """

    ids: tuple[str, ...]
    template: Template
    packed: NDArray[np.float32]
    rows: Ints
    to_file: tuple[Similarity, ...]
    absent: tuple[str, ...]
    table: tuple[Mapping[str, str], ...]

    def __len__(self) -> int:
        return len(self.ids)

    def shape(self, index: int) -> Floats:
        """One subject, (n, 3) float, mm, upright."""
        return np.array(self.packed[self.rows[index]], dtype=np.float64)

    def shapes(self) -> Iterator[Floats]:
        """The subjects one after the other."""
        return (self.shape(index) for index in range(len(self)))

    def array(self) -> Floats:
        """All subjects at once, (k, n, 3) float; for cohorts that fit into memory."""
        return np.array(self.packed[self.rows], dtype=np.float64)

    def chosen(self, keep: Bools | Ints | Sequence[int]) -> Self:
        """The cohort of some subjects only, by truth values or by indices."""
        index = np.arange(len(self))[np.asarray(keep)]

        def of(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[i] for i in index)

        return replace(
            self,
            ids=of(self.ids),
            rows=self.rows[index],
            to_file=of(self.to_file),
            absent=of(self.absent),
            table=of(self.table),
        )

    @classmethod
    def of(cls, shapes: Floats, template: Template, ids: Sequence[str] | None = None) -> Self:
        """A cohort from arrays, (k, n, 3), without files."""
        k = len(shapes)
        return cls(
            tuple(ids) if ids is not None else tuple(f"{i:03d}" for i in range(k)),
            template,
            np.asarray(shapes, dtype=np.float32),
            np.arange(k),
            (Similarity(),) * k,
            ("",) * k,
            ({},) * k,
        )


def load_cohort(
    folder: Path, table: Path | None = None, on_packed: Callable[[int, int], None] | None = None
) -> Cohort:
    """Read what ``breastmorph register`` wrote.

    Parameters
    ----------
    folder : Path
        The ``--out`` of ``breastmorph register``.
    table : Path, optional
        A CSV file with a column ``id`` and anything else about the subjects.
    on_packed : callable, optional
        Called with (done, all) while meshes are packed.
    """
    records = _records(folder)
    try:
        template = from_npz((folder / "template.npz").read_bytes())
    except OSError as error:
        raise FileProblem(
            "the folder's template is missing", "Run `breastmorph register` again", folder / "template.npz"
        ) from error
    packed = _packed(folder, records, template, on_packed)
    rows = _table(table) if table is not None else {}
    return Cohort(
        tuple(record["id"] for record in records),
        template,
        packed,
        np.arange(len(records)),
        tuple(Similarity.from_dict(record["to_file"]) for record in records),
        tuple(record["absent_side"] for record in records),
        tuple(rows.get(record["id"], {}) for record in records),
    )


def _records(folder: Path) -> list[dict[str, Any]]:
    if not (folder / "registered").is_dir():
        raise FileProblem(
            "this is no folder of registered scans",
            "Give the --out folder of `breastmorph register`",
            folder,
        )
    records = []
    for path in sorted((folder / "registered").glob("*.json")):
        try:
            record = json.loads(path.read_bytes())
            Similarity.from_dict(record["to_file"])
            if record["id"] != path.stem or f"{path.stem}.ply" not in record["outputs"]:
                raise ValueError("it belongs to another scan")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileProblem(
                f"this record cannot be read ({error})", "Run `breastmorph register` again", path
            ) from error
        records.append(record)
    if not records:
        raise FileProblem("the folder holds no registered scan", "Run `breastmorph register` first", folder)
    hashes = {record["template"] for record in records}
    if len(hashes) > 1:
        raise FileProblem(
            "the scans were registered with different templates",
            "Register them all again with one template",
            folder,
        )
    return records


def _packed(
    folder: Path,
    records: Sequence[Mapping[str, Any]],
    template: Template,
    on_packed: Callable[[int, int], None] | None,
) -> NDArray[np.float32]:
    shapes, index = folder / "cohort" / "shapes.npy", folder / "cohort" / "index.json"
    wanted = [[record["id"], record["outputs"][f"{record['id']}.ply"]] for record in records]
    try:
        if json.loads(index.read_bytes()) == wanted:
            packed: NDArray[np.float32] = np.load(shapes, mmap_mode="r", allow_pickle=False)
            if packed.shape == (len(records), template.mesh.n_vertices, 3):
                return packed
    except (OSError, ValueError):
        pass
    make_folder(shapes.parent)
    part = shapes.with_name(f".shapes.{secrets.token_hex(6)}.part")
    try:
        index.unlink(missing_ok=True)  # an old index must not vouch for the new shapes
        new = np.lib.format.open_memmap(
            part, mode="w+", dtype=np.float32, shape=(len(records), template.mesh.n_vertices, 3)
        )
        for row, record in enumerate(records):
            new[row] = _upright(folder, record, template)
            if on_packed is not None:
                on_packed(row + 1, len(records))
        new.flush()
        del new
        os.replace(part, shapes)
    except OSError as error:
        raise FileProblem(
            f"the cohort cannot be packed ({error.strerror})",
            "Check the folder's permissions and free space",
            shapes,
        ) from error
    finally:
        part.unlink(missing_ok=True)
    write_file(index, json.dumps(wanted).encode())
    mapped: NDArray[np.float32] = np.load(shapes, mmap_mode="r", allow_pickle=False)
    return mapped


def _upright(folder: Path, record: Mapping[str, Any], template: Template) -> Floats:
    path = folder / "registered" / f"{record['id']}.ply"
    mesh = load_mesh(path)
    if not np.array_equal(mesh.faces, template.mesh.faces):
        raise FileProblem(
            "this mesh does not have the template's triangles",
            "Run `breastmorph register` again for this scan",
            path,
        )
    return Similarity.from_dict(record["to_file"]).inverse().apply(mesh.vertices)


def _table(path: Path) -> dict[str, dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(f"the table cannot be read ({error})", "Give a CSV file", path) from error
    rows = list(csv.DictReader(text.splitlines()))
    if not rows or "id" not in rows[0]:
        raise FileProblem(
            "the table has no column `id`", "The first line names the columns, one of them id", path
        )
    return {row["id"]: row for row in rows}
