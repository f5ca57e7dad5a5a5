"""Small meshes with everything a file can carry, in an order that a careless reader would disturb."""

from io import BytesIO

import numpy as np
import pytest
import trimesh
from PIL import Image

from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh


@pytest.fixture(scope="session")
def vtk():
    """A peer that takes a second to import: asked for by tests, not where they are collected."""
    return pytest.importorskip("vtk")


@pytest.fixture(scope="session")
def pyvista(vtk):
    return pytest.importorskip("pyvista")


@pytest.fixture(scope="session")
def picture():
    def encoded(kind="PNG"):
        file = BytesIO()
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(file, kind)
        return file.getvalue()

    return encoded


@pytest.fixture(scope="session")
def bumpy():
    """An open 5 x 6 sheet: shuffled vertices, values that need all 64 bits."""
    rng = np.random.default_rng(7)
    x, y = np.meshgrid(np.arange(5.0), np.arange(6.0), indexing="ij")
    vertices = np.stack([x, y, np.sin(x) + y * y / 7], axis=-1).reshape(-1, 3) * np.pi + rng.normal(
        0, 0.1, (30, 3)
    )
    corner = (np.arange(4)[:, None] * 6 + np.arange(5)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + 6, corner + 1], 1), np.stack([corner + 1, corner + 6, corner + 7], 1)]
    )
    shuffle = rng.permutation(30)
    place = np.argsort(shuffle)
    return TriangleMesh(vertices[shuffle], place[rng.permutation(faces)])


@pytest.fixture(scope="session")
def coloured(bumpy):
    colors = np.random.default_rng(8).integers(0, 256, (bumpy.n_vertices, 4), dtype=np.uint8)
    return TriangleMesh(bumpy.vertices, bumpy.faces, colors)


@pytest.fixture(scope="session")
def smooth_texture(bumpy, picture):
    """Texture without seams: one coordinate per vertex, exact in 32 bits."""
    uv = np.random.default_rng(9).integers(0, 257, (bumpy.n_vertices, 2)) / 256
    return TriangleMesh(bumpy.vertices, bumpy.faces, texture=Texture(uv[bumpy.faces], picture()))


@pytest.fixture(scope="session")
def of_trimesh(smooth_texture, picture):
    """The same as trimesh holds it."""
    uv = np.zeros((smooth_texture.n_vertices, 2))
    uv[smooth_texture.faces] = smooth_texture.texture.uv
    visual = trimesh.visual.TextureVisuals(uv=uv, image=Image.open(BytesIO(picture())))
    return trimesh.Trimesh(smooth_texture.vertices, smooth_texture.faces, visual=visual, process=False)


@pytest.fixture(scope="session")
def seams(bumpy, picture):
    """Texture in two charts: a vertex on the seam has two coordinates."""
    uv = np.random.default_rng(10).integers(0, 129, (2, bumpy.n_vertices, 2)) / 256
    chart = (np.arange(bumpy.n_faces) % 2)[:, None]
    return TriangleMesh(
        bumpy.vertices, bumpy.faces, texture=Texture(uv[chart, bumpy.faces] + chart[..., None] / 2, picture())
    )


@pytest.fixture(scope="session")
def assert_same():
    """Assert that two meshes are the same, exactly or to the precision of 32-bit floats."""

    def check(a, b, exact=True, colors="rgba"):
        assert a.n_vertices == b.n_vertices
        np.testing.assert_array_equal(a.faces, b.faces)
        if exact:
            np.testing.assert_array_equal(a.vertices, b.vertices)
        else:
            np.testing.assert_allclose(a.vertices, b.vertices, rtol=1e-6, atol=1e-6)
        assert (a.colors is None) == (b.colors is None)
        if a.colors is not None:
            np.testing.assert_array_equal(a.colors[:, : len(colors)], b.colors[:, : len(colors)])
        assert (a.texture is None) == (b.texture is None)
        if a.texture is not None:
            np.testing.assert_allclose(a.texture.uv, b.texture.uv, atol=1e-7)

    return check
