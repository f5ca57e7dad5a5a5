"""The text form of OFF, with the optional colours (COFF), normals (NOFF) and texture coordinates (STOFF).

Not read with trimesh: it drops the colours, and takes a file whose last faces are missing for a whole one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, floats, integers, space_in, truncated
from breastmorph.mesh.files.corners import rgba, triangulated
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh

SIGNATURE = re.compile(rb"\s*(?:#[^\n]*\n\s*)*((?:ST|C|N)*)(4?n?)OFF\b[ \t]*(BINARY)?")


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an OFF file."""
    signature = SIGNATURE.match(data)
    if signature is None:
        raise damaged("the OFF file does not begin with 'OFF'")
    prefix, *others = signature.groups()
    has_uv, has_colors, has_normals = (letter in prefix for letter in (b"ST", b"C", b"N"))
    if any(others):
        raise FileProblem(
            "this variant of OFF (binary or four-dimensional) is not read", "Save it as plain OFF"
        )
    comments = b"\n".join(re.findall(rb"#[^\n]*", data[:4096])).decode("latin-1")
    body = data[signature.end() :].replace(b"\r", b"\n").split(b"\n")
    rows = [row for row in (line.split(b"#", 1)[0].split() for line in body) if row]
    if not rows or len(rows[0]) < 2:
        raise truncated("the line with the numbers of vertices and faces is missing")
    n_vertices, n_faces = integers(rows[0][:2], "numbers of vertices and faces").tolist()
    if n_vertices < 0 or n_faces < 0:
        raise damaged("the number of vertices or faces is negative")
    if len(rows) - 1 < n_vertices + n_faces:
        raise truncated(
            "{n_vertices:,} vertices and faces are announced, {n_rows:,} are there",
            n_vertices=n_vertices + n_faces,
            n_rows=len(rows) - 1,
        )

    vertex_rows, face_rows = rows[1 : 1 + n_vertices], rows[1 + n_vertices : 1 + n_vertices + n_faces]
    width = len(vertex_rows[0]) if vertex_rows else 3
    expected = 3 + 3 * has_normals + 2 * has_uv
    channels = width - expected if has_colors else 0
    if (
        any(len(row) != width for row in vertex_rows)
        or width < expected
        or (has_colors and channels not in (3, 4))
    ):
        raise damaged("the vertex lines do not all have the numbers that the first line announces")
    table = floats([number for row in vertex_rows for number in row], "OFF vertex").reshape(-1, width)
    # The format says CN and means normals first; MeshLab says NC and means colours first.
    colors_at = 3 if prefix.startswith(b"NC") else 3 + 3 * has_normals
    colors = None
    if has_colors:
        levels = table[:, colors_at : colors_at + channels]
        # The format lets a writer choose: whole numbers to 255, or fractions with a decimal point.
        fractions = any(b"." in number for number in vertex_rows[0][colors_at : colors_at + channels])
        colors = rgba(levels if fractions else np.clip(np.nan_to_num(levels), 0, 255).astype(np.int64))

    counts = integers([row[0] for row in face_rows], "corners of a face")
    if any(count < 0 or len(row) <= count for row, count in zip(face_rows, counts.tolist(), strict=True)):
        raise damaged("a face has fewer corners than it announces")
    flat = [corner for row in face_rows for corner in row[1 : 1 + int(row[0])]]
    corners = integers(flat, "corner of a face")
    faces = corners[triangulated(counts, corners, table[:, :3])]
    mesh = TriangleMesh(table[:, :3], faces, colors, space=space_in(comments))
    if not has_uv or not len(faces):
        return mesh
    return replace(mesh, texture=Texture(table[:, -2:][faces]))
