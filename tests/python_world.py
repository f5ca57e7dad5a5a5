"""A folder of raw scans, with a template so small that examples in Python run in a moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import trimesh

import breastmorph as bm
from breast_cohort import breast_shapes
from breastmorph.template import Template, to_npz


def write_world(folder: Path, subjects: int, template: Template) -> None:
    """Scans and landmarks of so many people whose shapes are known, and of one without landmarks of a right breast."""
    for part in ("scans", "landmarks"):
        (folder / part).mkdir(parents=True)
    for k, shape in enumerate(breast_shapes(subjects + 1, seed=3, template=template)):
        vertices, faces = trimesh.remesh.subdivide(
            shape, template.mesh.faces
        )  # coarser ones would be refused
        marks = bm.Landmarks.at_vertices(template.landmark_ids, shape)
        if k == subjects:
            marks = marks.only(name for name in marks if not name.endswith("right"))
        bm.save_mesh(bm.TriangleMesh(vertices, faces), folder / "scans" / f"s{k}.ply")
        bm.save_landmarks(marks, folder / "landmarks" / f"s{k}.json")
        if not k:
            np.savetxt(folder / "cloud.xyz", vertices[::2], fmt="%.3f")
            bm.save_landmarks(marks, folder / "cloud.json")
    (folder / "template.npz").write_bytes(to_npz(template))
