"""Polygons become triangles that cover them: concave ones too, in every format that has polygons."""

import numpy as np
import pytest

from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import corners, load_mesh
from breastmorph.mesh.files.corners import fan, triangulated

COMB = [(0, 0), (12, 0), (12, 9), (10, 1), (8, 9), (6, 1), (4, 9), (2, 1), (0, 9)]  # its teeth need ears
ARROW = [(0, 0), (4, 4), (8, 0), (4, 9)]
PLUS = [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)]
PAW = [(0, 0), (5, 0), (5, 5), (3, 5), (3, 2), (2, 2), (2, 5), (0, 5)]


def _polygon_files(polygon, folder):
    """A polygon, tilted and lifted, between two triangles in every format that has polygons."""
    n = len(polygon)
    vertices = np.array([(x, y, 0.5 * x - y / 3 + 7) for x, y in polygon])
    rows = [" ".join(map(repr, row)) for row in vertices.tolist()]
    faces = [[0, 1, 2], list(range(n)), [2, 1, 0]]
    listed = "\n".join(" ".join(map(str, [len(face), *face])) for face in faces)
    size = sum(len(face) + 1 for face in faces)
    lines = "\n".join("f " + " ".join(str(corner + 1) for corner in face) for face in faces)
    texts = {
        "obj": "\n".join(f"v {row}" for row in rows) + f"\n{lines}\n",
        "off": f"OFF\n{n} 3 0\n" + "\n".join(rows) + f"\n{listed}\n",
        "ply": f"ply\nformat ascii 1.0\nelement vertex {n}\nproperty double x\nproperty double y\nproperty double z\n"
        "element face 3\nproperty list uchar int vertex_indices\nend_header\n"
        + "\n".join(rows)
        + f"\n{listed}\n",
        "vtk": "# vtk DataFile Version 3.0\npolygon\nASCII\nDATASET POLYDATA\n"
        f"POINTS {n} double\n" + "\n".join(rows) + f"\nPOLYGONS 3 {size}\n{listed}\n",
    }
    for suffix, text in texts.items():
        (folder / f"a.{suffix}").write_text(text)
        yield load_mesh(folder / f"a.{suffix}")


@pytest.mark.parametrize("polygon", [COMB, ARROW, PLUS, PAW])
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("backwards", [False, True])
def test_concave_polygons_keep_their_area_and_their_side(polygon, first, backwards, tmp_path):
    turned = (polygon[first:] + polygon[:first])[:: -1 if backwards else 1]
    x, y = np.array(turned, float).T
    signed = 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    for mesh in _polygon_files(turned, tmp_path):
        places = mesh.vertices[mesh.faces[1:-1]]
        areas = (
            0.5 * np.cross(places[:, 1] - places[:, 0], places[:, 2] - places[:, 0])[:, 2]
        )  # seen from above
        assert mesh.n_faces == len(polygon)
        assert mesh.faces[0].tolist() == mesh.faces[-1, ::-1].tolist() == [0, 1, 2]
        np.testing.assert_allclose(areas.sum(), signed)
        assert np.all(areas * np.sign(signed) > -1e-9)
        edges = np.sort(mesh.faces[1:-1][:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        kept, count = np.unique(edges, axis=0, return_counts=True)
        rim = {tuple(sorted((k, (k + 1) % len(polygon)))) for k in range(len(polygon))}
        assert {tuple(edge) for edge in kept[count == 1].tolist()} == rim


def test_convex_crossed_and_flat_polygons_stay_fans():
    rng = np.random.default_rng(5)
    angles = np.sort(rng.uniform(0, 2 * np.pi, (50, 9)), axis=1)
    round_ones = np.stack([np.cos(angles), np.sin(angles), rng.normal(0, 1e-3, angles.shape)], axis=-1)
    bow_tie = np.array([[0.0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]])
    line = np.outer(np.arange(6.0), [1.0, 2, 3])
    nowhere = np.full((5, 3), np.nan)
    parts = [*round_ones, bow_tie, line, nowhere, bow_tie[:2], bow_tie[:1]]
    counts = np.array([len(part) for part in parts])
    vertices = np.concatenate(parts)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(triangulated(counts, np.arange(len(vertices)), vertices), fan(counts))


def test_polygons_that_would_take_for_ever_are_refused(monkeypatch):
    monkeypatch.setattr(corners, "_MOST_WORK", 5_000)
    comb = np.column_stack([np.array(COMB, float), np.zeros(len(COMB))])
    many = np.concatenate([comb] * 5)
    with pytest.raises(FileProblem, match="Export it with triangles"):
        triangulated(np.full(5, len(comb)), np.arange(len(many)), many)
