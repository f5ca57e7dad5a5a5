"""What both VTK formats share: numbers of cells to triangles, point arrays to colours and texture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.mesh.files.corners import rgba, triangulated, unrolled_strip
from breastmorph.mesh.files.reading import damaged
from breastmorph.mesh.triangle_mesh import Floats, Ints, Texture, TriangleMesh

NO_CELLS = (np.empty(0, np.int64), np.empty(0, np.int64))
SEAM_ARRAY = "TextureCoordinatesByCorner"  # ours, for cells: VTK itself has no texture seams


@dataclass(frozen=True, eq=False)
class PolyData:
    """One piece of VTK PolyData.

    Attributes
    ----------
    points : (n, 3) float
    polygons, strips : (counts (p,), corners (c,)) int
    point_arrays, cell_arrays : name -> (n, k) array
    uv_name : str
        The point array declared as texture coordinates.
    """

    points: Floats
    polygons: tuple[Ints, Ints]
    strips: tuple[Ints, Ints]
    point_arrays: dict[str, NDArray[Any]]
    cell_arrays: dict[str, NDArray[Any]]
    uv_name: str


def split_by_offsets(offsets: Ints, corners: Ints) -> tuple[Ints, Ints]:
    """(counts, corners) from the end of every cell in the list of corners."""
    # Every end is checked itself: differences of huge ends can overflow to small counts.
    if len(offsets) and (
        offsets.min() < 0 or offsets.max() > len(corners) or (offsets[1:] < offsets[:-1]).any()
    ):
        raise damaged("the cells do not fit the list of their corners")
    return np.diff(offsets, prepend=0), corners[: int(offsets[-1])] if len(offsets) else corners[:0]


def mesh_of(pieces: list[PolyData], space: str) -> TriangleMesh:
    """One mesh of all pieces, at least one, in their order."""
    start, faces, uvs, colors = 0, [], [], []
    for piece in pieces:
        counts, corners = piece.polygons
        triangles = [corners[triangulated(counts, corners, piece.points)]]
        lengths, strip_corners = piece.strips
        ends = np.cumsum(lengths)
        triangles += [
            unrolled_strip(strip_corners[end - length : end])
            for length, end in zip(lengths, ends, strict=True)
        ]
        own = np.concatenate(triangles)
        if own.size and (own.min() < 0 or own.max() >= len(piece.points)):
            raise damaged(f"a face names vertex {own.max():,}, but there are only {len(piece.points):,}")
        faces.append(own + start)
        uvs.append(_uv(piece, own, counts))
        colors.append(_colors(piece))
        start += len(piece.points)
    all_faces = np.concatenate(faces)
    uv = [part for part in uvs if part is not None]
    shades = [part for part in colors if part is not None]
    return TriangleMesh(
        np.concatenate([piece.points for piece in pieces]),
        all_faces,
        np.concatenate(shades) if len(shades) == len(pieces) else None,
        Texture(np.concatenate(uv)) if len(uv) == len(pieces) and len(all_faces) else None,
        space,
    )


def _uv(piece: PolyData, faces: Ints, counts: Ints) -> Floats | None:
    by_corner = piece.cell_arrays.get(SEAM_ARRAY)
    if by_corner is not None and by_corner.shape == (len(faces), 6) and np.all(counts == 3):
        return by_corner.astype(np.float64).reshape(-1, 3, 2)
    by_point = piece.point_arrays.get(piece.uv_name)
    if by_point is None or by_point.ndim != 2 or by_point.shape[1] < 2:
        return None
    return by_point[:, :2].astype(np.float64)[faces]


def _colors(piece: PolyData) -> NDArray[np.uint8] | None:
    for values in piece.point_arrays.values():
        if values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] in (3, 4):
            return rgba(values)
    return None
