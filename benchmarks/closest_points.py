"""Closest points on a surface: ours against trimesh.proximity on the same mesh and queries, in one run.

    python benchmarks/closest_points.py

Both are exact, so the distances must agree. The figure to keep an eye on is the ratio.
"""

from __future__ import annotations

import sys

import numpy as np
import trimesh

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from measuring import compare, cpu_seconds

N_QUERIES = 31_000


def wavy_sheet(rows: int = 174, columns: int = 174) -> TriangleMesh:
    """An open, curved surface of about 60,000 faces and 3 mm edges."""
    u, v = np.meshgrid(np.linspace(-1.8, 1.8, columns), np.linspace(-260, 260, rows))
    bumps = 40 * np.exp(-((np.abs(u) - 0.7) ** 2) / 0.15 - (v / 60) ** 2)
    vertices = np.column_stack([(150 * np.sin(u)).ravel(), v.ravel(), (100 * np.cos(u) + bumps).ravel()])
    a = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = np.concatenate(
        [np.column_stack([a, a + 1, a + columns + 1]), np.column_stack([a, a + columns + 1, a + columns])]
    )
    return TriangleMesh(vertices, faces)


def main() -> int:
    mesh = wavy_sheet()
    rng = np.random.default_rng(0)
    # Neighbours follow each other, as the vertices of a template do.
    picks = mesh.vertices[np.sort(rng.integers(mesh.n_vertices, size=N_QUERIES))]
    peer = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    surface = Surface(mesh)
    trimesh.proximity.closest_point(peer, picks[:10])  # its tree is kept too

    print(f"{N_QUERIES:,} queries, {mesh.n_faces:,} faces, CPU seconds, trees built before")
    print("  query off the surface    ours   trimesh   ratio   largest difference")
    ratios, differences = {}, []
    for off in (0.5, 3.0, 10.0):
        queries = picks + rng.normal(scale=off, size=picks.shape)
        ours, found = cpu_seconds(lambda q=queries: surface.closest(q), 5)
        theirs, (_, distances, _) = cpu_seconds(lambda q=queries: trimesh.proximity.closest_point(peer, q))
        differences.append(float(np.abs(distances - found.distances).max()))
        compare(f"closest points, {off:g} mm off the surface", "CPU s", ours, "trimesh", theirs)
        ratios[off] = theirs / ours
        print(
            f"  {off:14.1f} mm      {ours:8.3f}  {theirs:8.3f}  {ratios[off]:6.1f}x   {differences[-1]:.1e} mm"
        )
    ours, _ = cpu_seconds(lambda: Surface(mesh), 3)
    fresh = [trimesh.Trimesh(mesh.vertices, mesh.faces, process=False) for _ in range(3)]
    theirs, _ = cpu_seconds(lambda: fresh.pop().triangles_tree, 3)
    print(f"  building the tree {ours:.3f} s, trimesh's {theirs:.3f} s")
    compare("building the tree of closest points", "CPU s", ours, "trimesh", theirs)
    return 0 if min(ratios.values()) >= 15 and max(differences) < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
