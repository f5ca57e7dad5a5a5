"""The triangle mesh value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints, Shown
from breastmorph.foundation.errors import MeshProblem

MIRROR = np.array([-1.0, 1.0, 1.0])  # across x = 0; x points to the patient's left


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture laid over a mesh.

    Attributes
    ----------
    uv : (m, 3, 2) float
        Texture coordinates of the three corners of every face; (0, 0) is the lower left of the picture.
    image : bytes
        The encoded picture (PNG or JPEG) exactly as the file held it; empty where the file named none.
    """

    uv: Floats
    image: bytes = b""

    @property
    def suffix(self) -> str:
        """File name ending that fits the picture."""
        return ".jpg" if self.image[:2] == b"\xff\xd8" else ".png"


@dataclass(frozen=True, eq=False)
class TriangleMesh(Shown):
    """An immutable triangle mesh; the arrays are read-only views.

    Attributes
    ----------
    vertices : (n, 3) float
    faces : (m, 3) int
        Vertex ids, counter-clockwise seen from outside.
    colors : (n, 4) uint8, optional
        RGBA per vertex.
    texture : Texture, optional
    space : str
        "LPS" or "RAS" where the file declared its anatomical axes, otherwise empty.
    """

    vertices: Floats
    faces: Ints
    colors: NDArray[np.uint8] | None = None
    texture: Texture | None = None
    space: str = ""

    def __post_init__(self) -> None:
        vertices = _frozen(self.vertices, np.float64)
        faces = _frozen(self.faces, np.int64)
        if vertices.ndim != 2 or vertices.shape[1:] != (3,):
            raise MeshProblem("vertices have shape {shape}, expected (n, 3)", shape=vertices.shape)
        if faces.ndim != 2 or faces.shape[1:] != (3,):
            raise MeshProblem("faces have shape {shape}, expected (m, 3)", shape=faces.shape)
        if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
            raise MeshProblem(
                "a face names vertex {faces}, but there are only {n_vertices} vertices",
                "The file is damaged; export it again",
                faces=faces.max() if faces.min() >= 0 else faces.min(),
                n_vertices=len(vertices),
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)
        if self.colors is not None:
            colors = _frozen(self.colors, np.uint8)
            if colors.shape != (len(vertices), 4):
                raise MeshProblem(
                    "colors have shape {shape}, expected ({n_vertices}, 4)",
                    shape=colors.shape,
                    n_vertices=len(vertices),
                )
            object.__setattr__(self, "colors", colors)
        if self.texture is not None and self.texture.uv.shape != (len(faces), 3, 2):
            raise MeshProblem(
                "texture coordinates have shape {shape}, expected ({n_faces}, 3, 2)",
                shape=self.texture.uv.shape,
                n_faces=len(faces),
            )

    def __repr__(self) -> str:
        size = np.ptp(self.vertices, axis=0).max() if self.n_vertices else 0.0
        more = f"{', colours' if self.colors is not None else ''}{', texture' if self.texture else ''}"
        return f"TriangleMesh({self.n_vertices:,} vertices, {self.n_faces:,} faces, {size:.4g} large{more})"

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    @property
    def n_faces(self) -> int:
        """Number of faces."""
        return len(self.faces)

    @property
    def is_coloured(self) -> bool:
        """Whether it has vertex colours or a picture."""
        return self.colors is not None or (self.texture is not None and bool(self.texture.image))

    def with_vertices(self, vertices: Floats) -> Self:
        """Return the same topology in another shape."""
        return replace(self, vertices=vertices)

    def mirrored(self) -> Self:
        """Return the mirror image across the plane x = 0, still oriented outwards."""
        return replace(self, vertices=self.vertices * MIRROR).flipped()

    def flipped(self) -> Self:
        """Return the same surface with the other side out."""
        texture = self.texture and replace(self.texture, uv=self.texture.uv[:, ::-1])
        return replace(self, faces=self.faces[:, ::-1], texture=texture)

    def kept(self, faces: Bools) -> Self:
        """Return only the chosen faces and the vertices they use, in their old order.

        Parameters
        ----------
        faces : (m,) bool
        """
        chosen = self.faces[faces]
        used = np.zeros(self.n_vertices, bool)
        used[chosen] = True
        new_id = np.cumsum(used) - 1
        return replace(
            self,
            vertices=self.vertices[used],
            faces=new_id[chosen],
            colors=None if self.colors is None else self.colors[used],
            texture=self.texture and replace(self.texture, uv=self.texture.uv[faces]),
        )


def _frozen(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    # A view, so that freezing it does not freeze the caller's own array.
    try:
        view: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype).view()
    except (TypeError, ValueError) as error:
        raise MeshProblem(
            "vertices, faces or colours are no table of numbers", "Give arrays of shape (n, 3) and (m, 3)"
        ) from error
    view.flags.writeable = False
    return view


def uv_by_vertex(mesh: TriangleMesh) -> Floats | None:
    """Texture coordinates (n, 2) of the vertices; None where a seam gives a vertex more than one."""
    if mesh.texture is None:
        return None
    uv = np.zeros((mesh.n_vertices, 2))
    uv[mesh.faces] = mesh.texture.uv
    return uv if np.array_equal(uv[mesh.faces], mesh.texture.uv, equal_nan=True) else None
