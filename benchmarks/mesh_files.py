"""Reading and writing mesh files against trimesh and meshio: the template with four times its faces, CPU seconds.

    python benchmarks/mesh_files.py

Our readers judge what they read (NaN, indices out of range, cut files) and join the corners of an STL to vertices;
trimesh is told to do neither (process=False), but joins the corners of an STL too where it says "joining". All read
the file that we wrote.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import meshio
import numpy as np
import trimesh

from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.template import default_template
from measuring import compare, cpu_seconds

FORMATS = (".ply", ".obj", ".stl")
REPEATS = 3


def finer(mesh: TriangleMesh) -> TriangleMesh:
    """The mesh with four times the faces."""
    import igl

    return TriangleMesh(*igl.upsample(np.array(mesh.vertices), np.array(mesh.faces), 1))


def main() -> int:
    """Measure and judge."""
    mesh = finer(default_template().mesh)
    peers: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
        "trimesh": (
            lambda path: trimesh.load(path, process=False),
            trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export,
        ),
        "meshio": (
            meshio.read,
            meshio.Mesh(np.array(mesh.vertices), [("triangle", np.array(mesh.faces))]).write,
        ),
    }
    print(f"{mesh.n_vertices:,} vertices, {mesh.n_faces:,} faces, CPU seconds, median of {REPEATS}")
    print(
        "format | reading: ours, trimesh, meshio | writing: ours, trimesh, meshio | bytes | largest difference"
    )
    good = True
    with tempfile.TemporaryDirectory() as place:
        for ending in FORMATS:
            path = Path(place) / f"ours{ending}"
            writing = [cpu_seconds(lambda p=path: save_mesh(mesh, p), REPEATS)[0]]
            seconds, back = cpu_seconds(lambda p=path: load_mesh(p), REPEATS)
            reading = [seconds]
            off = float(np.abs(back.vertices[back.faces] - mesh.vertices[mesh.faces]).max())
            good &= off < 1e-3
            for name, (read, write) in peers.items():
                other = Path(place) / f"{name}{ending}"
                writing.append(cpu_seconds(lambda p=other, w=write: w(p), REPEATS)[0])
                reading.append(cpu_seconds(lambda p=path, r=read: r(p), REPEATS)[0])
                compare(f"writing {ending[1:].upper()}", "CPU s", writing[0], name, writing[-1])
                compare(f"reading {ending[1:].upper()}", "CPU s", reading[0], name, reading[-1])
            if ending == ".stl":
                joining = cpu_seconds(lambda p=path: trimesh.load(p, process=True), REPEATS)[0]
                compare("reading STL and joining its corners", "CPU s", reading[0], "trimesh", joining)
                print(f"STL, trimesh joining the corners as we do: {joining:.2f}")
            figures = [", ".join(f"{value:.2f}" for value in row) for row in (reading, writing)]
            print(" | ".join([ending[1:].upper(), *figures, f"{path.stat().st_size:,}", f"{off:.0e} mm"]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
