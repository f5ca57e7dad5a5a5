"""The colour of skin: of a surface's points, carried from one surface to another, made up where no scanner saw it."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.closest import Surface, SurfacePoints
from breastmorph.mesh.geometry import normals_within, vertex_normals
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh

Skin = NDArray[np.uint8]  # (n, 4): red, green, blue in sRGB; the fourth says whether a scanner saw it
SEEN, MADE_UP = 255, 254  # opaque for every viewer, and yet distinguished in PLY, VTP and GLB files


def vertex_rgb(mesh: TriangleMesh) -> NDArray[np.uint8] | None:
    """The sRGB levels of every vertex, (n, 3), from vertex colours or the picture; None where there are none."""
    if mesh.colors is not None:
        return mesh.colors[:, :3]
    if mesh.texture is None:
        return None
    uv = np.zeros((mesh.n_vertices, 2))
    uv[mesh.faces.ravel()] = mesh.texture.uv.reshape(-1, 2)
    picture = _picture(mesh.texture)
    if picture is None:
        return None
    high, wide = picture.shape[:2]
    uv = np.nan_to_num(uv) % 1.0
    column = np.clip((uv[:, 0] * wide).astype(int), 0, wide - 1)
    row = np.clip(((1.0 - uv[:, 1]) * high).astype(int), 0, high - 1)
    colours: NDArray[np.uint8] = picture[row, column]
    return colours


def rgb_at(mesh: TriangleMesh, points: SurfacePoints) -> Floats | None:
    """The sRGB levels of points of a mesh, (k, 3), from its picture or its vertex colours; None where there are none.

    Many scanners write a picture and leave the vertices white, so the picture is asked first.
    """
    picture = None if mesh.texture is None else _picture(mesh.texture)
    if mesh.texture is not None and picture is not None:
        return _between_pixels(
            picture, np.einsum("kc,kcd->kd", points.weights, mesh.texture.uv[points.faces])
        )
    if mesh.colors is None:
        return None
    corners = mesh.colors[mesh.faces[points.faces], :3].astype(np.float64)
    found: Floats = np.einsum("kc,kcd->kd", points.weights, corners)
    return found


def _picture(texture: Texture) -> NDArray[np.uint8] | None:
    from PIL import Image, UnidentifiedImageError

    if not texture.image:
        return None
    try:
        with Image.open(BytesIO(texture.image)) as opened:
            return np.asarray(opened.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None  # a surface is worth as much without


def _between_pixels(picture: NDArray[np.uint8], uv: Floats) -> Floats:
    """Levels (k, 3) at texture coordinates, linear between the middles of the pixels."""
    high, wide = picture.shape[:2]
    uv = np.nan_to_num(uv)
    uv = np.where((uv < 0.0) | (uv > 1.0), uv % 1.0, uv)  # the right border is not the left one
    x, y = uv[:, 0] * wide - 0.5, (1.0 - uv[:, 1]) * high - 0.5
    left, top = np.floor(x), np.floor(y)
    found = np.zeros((len(uv), 3))
    for across in (0, 1):
        for down in (0, 1):
            column = np.clip(left + across, 0, wide - 1).astype(int)
            row = np.clip(top + down, 0, high - 1).astype(int)
            share = (1.0 - np.abs(x - left - across)) * (1.0 - np.abs(y - top - down))
            found += share[:, None] * picture[row, column]
    return found


_FACING = 75.0  # degrees between the normals of a point and of the skin that it takes
_OTHER_SKIN = 10.0  # mm: farther away lies other skin


def carried(shape: TriangleMesh, surface: Surface) -> Skin | None:
    """The skin of a scan on a shape that was registered to it; None where the scan has no colour.

    A vertex takes the colour of the nearest point of the scan. Where the scan ends, faces elsewhere or is far away, it
    was not seen: there the colour runs smoothly from the skin around, and the fourth channel says so.

    Parameters
    ----------
    shape : TriangleMesh
        In the scan's coordinates, mm.
    surface : Surface
        The scan with its colours.
    """
    scan = surface.mesh
    if not scan.is_coloured:
        return None
    near = surface.closest(shape.vertices)
    rgb = rgb_at(scan, near)
    if rgb is None:
        return None
    facing = normals_within(vertex_normals(scan.vertices, scan.faces), scan.faces[near.faces], near.weights)
    agree = (facing * vertex_normals(shape.vertices, shape.faces)).sum(axis=1)
    seen = (agree > np.cos(np.radians(_FACING))) & ~near.on_boundary & (near.distances <= _OTHER_SKIN)
    return skin_of(filled(shape.faces, rgb, seen), seen) if seen.any() else None


def skin_of(rgb: Floats, seen: Bools) -> Skin:
    """Levels (n, 3) and whether a scanner saw them as one array."""
    levels = np.rint(np.clip(rgb, 0.0, 255.0)).astype(np.uint8)
    return np.column_stack([levels, np.where(seen, SEEN, MADE_UP).astype(np.uint8)])


def filled(faces: Ints, values: Floats, known: Bools) -> Floats:
    """Values (n, k) whose unknown rows run smoothly between the known ones: each is the mean of its neighbours.

    Pieces of the surface without a known vertex get the mean of all known ones.
    """
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import splu

    unknown = np.flatnonzero(~known)
    if not len(unknown) or not known.any():
        return values
    n = len(values)
    i, j = edge_table(faces).edges.T
    beside = coo_matrix((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(n, n)).tocsr()[unknown]
    hint = 1e-9  # keeps a piece without a known vertex solvable
    weight = np.asarray(beside.sum(axis=1)).ravel() + hint
    given = np.where(known[:, None], values, 0.0)
    right = beside @ given + hint * values[known].mean(axis=0)
    found = values.astype(np.float64)
    found[unknown] = splu((diags(weight) - beside[:, unknown]).tocsc(), permc_spec="MMD_AT_PLUS_A").solve(
        right
    )
    return found


def borrowed(faces: Ints, skin: Skin, other: Floats, region: Bools) -> Skin:
    """Skin with the levels ``other`` (n, 3) in a region, such as those of the mirror image; they count as made up.

    What ``other`` differs by at the region's border is taken off smoothly inside, so that no seam shows.
    """
    own = skin[:, :3].astype(np.float64)
    off = filled(faces, own - other, ~region)
    return skin_of(np.where(region[:, None], other + off, own), (skin[:, 3] == SEEN) & ~region)


def share_seen(skin: Skin) -> float:
    """How much of the skin a scanner saw, of the vertices."""
    return float((skin[:, 3] == SEEN).mean())


_CELL = 8  # px: side of that square
_AT_ONCE = 200_000  # points of the scan that are looked for at a time


def baked(
    shape: TriangleMesh,
    skin: Skin,
    surface: Surface | None = None,
    own: Bools | None = None,
    on_done: Callable[[float], object] = lambda share: None,
) -> Texture:
    """A picture of a shape's skin, as fine as the scan's own where that can be asked.

    No texture coordinates are needed, and no viewer mixes in the neighbours: each triangle's corners lie in the middle
    of pixels, and all pixels that are mixed within it are its own.

    Parameters
    ----------
    shape : TriangleMesh
        As it lay on the scan, in its coordinates, where there is one.
    skin : (n, 4) uint8
        Colours of the vertices, for what the scan does not tell.
    surface : Surface, optional
        The scan with its colours.
    own : (n,) bool, optional
        Vertices whose skin is the scan's own; not where it was made up or mirrored.
    on_done : callable
        Called with the share that is done; may raise to stop.
    """
    from PIL import Image

    faces = shape.faces
    uv, at, of, weights, size = _atlas(len(faces))
    levels = np.einsum("kc,kcd->kd", weights, skin[faces[of], :3].astype(np.float64))
    if surface is not None and own is not None and surface.mesh.is_coloured:
        whole: Bools = np.all(own[faces], axis=1)
        asked = np.flatnonzero(whole[of])
        for start in range(0, len(asked), _AT_ONCE):
            on_done(start / len(asked))
            some = asked[start : start + _AT_ONCE]
            points = np.einsum("kc,kcd->kd", weights[some], shape.vertices[faces[of[some]]])
            near = surface.closest(points)
            rgb = rgb_at(surface.mesh, near)
            if rgb is None:
                break
            good = ~near.on_boundary & (near.distances <= _OTHER_SKIN)
            levels[some[good]] = rgb[good]
    picture = np.zeros((*size, 3), np.uint8)
    picture[at[:, 0], at[:, 1]] = np.rint(np.clip(levels, 0.0, 255.0)).astype(np.uint8)
    file = BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return Texture(uv, file.getvalue())


def _atlas(n: int) -> tuple[Floats, Ints, Ints, Floats, tuple[int, int]]:
    """Corners of n faces in a picture: uv (n, 3, 2); of its pixels row and column (k, 2), face (k,), weights (k, 3)."""
    k, cells = _CELL, -(-n // 2)
    across = int(np.ceil(np.sqrt(cells)))
    high, wide = -(-cells // across) * k, across * k
    row, column = (part.ravel() for part in np.mgrid[:k, :k])
    # The first triangle has its right angle at the upper left, the second one at the lower right.
    corners = np.array([[[0, 0], [0, k - 3], [k - 3, 0]], [[k - 1, k - 1], [k - 1, 1], [1, k - 1]]], float)
    second = (row + column > k - 2).astype(int)
    origin = corners[second, 0]
    leg = np.where(second, -(k - 2.0), k - 3.0)
    b, c = (column - origin[:, 1]) / leg, (row - origin[:, 0]) / leg
    weights = np.clip(np.column_stack([1.0 - b - c, b, c]), 0.0, None)
    weights /= weights.sum(axis=1, keepdims=True)
    face = np.arange(n)
    start = k * np.column_stack([(face // 2) // across, (face // 2) % across])  # row and column of its square
    middle = start[:, None] + corners[face % 2] + 0.5
    uv = np.stack([middle[..., 1] / wide, 1.0 - middle[..., 0] / high], axis=-1)
    own = [np.flatnonzero(second == one) for one in (0, 1)]
    pixels = np.concatenate([np.tile(own[one], len(face[one::2])) for one in (0, 1)])
    of = np.concatenate([np.repeat(face[one::2], len(own[one])) for one in (0, 1)])
    at = start[of] + np.column_stack([row, column])[pixels]
    return uv, at, of, weights[pixels], (high, wide)


_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_TO_XYZ /= np.array([[0.9505], [1.0], [1.089]])  # of white


def to_light(levels: NDArray[np.uint8]) -> Floats:
    """Amounts of light from 0 to 1 of sRGB levels."""
    level = np.arange(256) / 255.0
    light: Floats = np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)[levels]
    return light


def from_light(light: Floats) -> NDArray[np.uint8]:
    """The sRGB levels nearest to amounts of light; what no screen can show is cut off."""
    light = np.clip(light, 0.0, 1.0)
    level = np.where(light > 0.0031308, 1.055 * light ** (1 / 2.4) - 0.055, 12.92 * light)
    levels: NDArray[np.uint8] = np.rint(255.0 * level).astype(np.uint8)
    return levels


def to_lab(rgb: NDArray[np.uint8]) -> Floats:
    """CIE L*a*b* of sRGB levels, (n, 3)."""
    xyz = to_light(rgb) @ _TO_XYZ.T
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.column_stack([116.0 * f[:, 1] - 16.0, 500.0 * (f[:, 0] - f[:, 1]), 200.0 * (f[:, 1] - f[:, 2])])


def from_lab(lab: Floats) -> NDArray[np.uint8]:
    """The sRGB levels, (n, 3), nearest to colours in CIE L*a*b*."""
    middle = (lab[:, 0] + 16.0) / 116.0
    f = np.column_stack([middle + lab[:, 1] / 500.0, middle, middle - lab[:, 2] / 200.0])
    xyz = np.where(f > 6.0 / 29.0, f**3, (f - 16.0 / 116.0) / 7.787)
    return from_light(xyz @ np.linalg.inv(_TO_XYZ).T)
