"""A missing region given by hand: vertex numbers in a file, or red paint on a mesh."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import read_bytes
from breastmorph.mesh.files import load_mesh

_LISTS = (".txt", ".csv", ".json")
_REDDER = 60  # of 255: how much more red than green and blue a painted vertex has
_LARGEST = 16 * 1024**2  # bytes of a list


def load_painted(path: Path, n_vertices: int) -> Bools:
    """Read a painted region, (n,) bool.

    Parameters
    ----------
    path : Path
        ``.txt``, ``.csv`` or ``.json`` with the numbers of the missing vertices, counted from 0; or a mesh file with
        the model's vertices, the missing ones painted red.
    n_vertices : int
        Of the model.
    """
    painted = np.zeros(n_vertices, bool)
    if path.suffix.lower() in _LISTS:
        text = read_bytes(path, _LARGEST).decode("utf-8-sig", errors="replace")
        words = re.findall(r"[^\s,;\[\]]+", text)
        bad = next((word for word in words if not re.fullmatch(r"[-+]?\d{1,18}", word)), None)
        if bad is not None:
            raise FileProblem(
                "{bad!r} is no vertex number", "List whole numbers, counted from 0", path, bad=bad[:40]
            )
        ids = np.array([int(word) for word in words], dtype=np.int64)
        beyond = ids[(ids < 0) | (ids >= n_vertices)]
        if len(beyond):
            raise FileProblem(
                "vertex {beyond} does not exist: the model has {n_vertices}",
                "Count from 0, on the model's own vertices",
                path,
                beyond=beyond[0],
                n_vertices=n_vertices,
            )
        painted[ids] = True
    else:
        mesh = load_mesh(path)
        if mesh.n_vertices != n_vertices:
            raise FileProblem(
                "the painted mesh has {n_vertices} vertices, the model {n_vertices2}",
                "Paint on a registered mesh (OUT/registered/<id>.ply)",
                path,
                n_vertices=mesh.n_vertices,
                n_vertices2=n_vertices,
            )
        if mesh.colors is None:
            raise FileProblem(
                "the mesh has no vertex colours", "Paint the missing vertices red and save as PLY", path
            )
        red, green, blue = mesh.colors[:, :3].astype(int).T
        painted = (red > green + _REDDER) & (red > blue + _REDDER)
    if not painted.any():
        raise FileProblem("no vertex is painted", "List or paint the missing vertices", path)
    return painted
