"""Depth-and-colour views of a surface, and the small nets that say where landmarks lie in them.

A net votes: every cell of its view says where each landmark lies from there, how far it is to be believed and how
sure it is; the votes' weighted mean is the answer. The nets were trained on phantoms with nuisance by
``scripts/train_landmark_nets.py``; what is computed here is the same, in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from io import BytesIO

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.geometry import face_cross, vertex_normals, without_unreferenced
from breastmorph.mesh.skin import to_lab, vertex_rgb
from breastmorph.mesh.topology import face_components, with_three_corners
from breastmorph.mesh.triangle_mesh import TriangleMesh

Pixels = NDArray[np.float32]

_MOST_POINTS = 600_000  # of a whole surface; close views sample their own part again
_MOST_PARTS = 12  # of a triangle's edge


@dataclass(frozen=True, eq=False)
class Skin:
    """Points of a surface with their normals, and their colours where it has any.

    Attributes
    ----------
    points, normals : (n, 3) float
    lab : (n, 3) float, optional
        Colour in CIE L*a*b*.
    """

    points: Floats
    normals: Floats
    lab: Floats | None = None

    @classmethod
    def of(cls, mesh: TriangleMesh, step: float, colours: Floats | None = None) -> Skin:
        """Sample a surface every ``step`` mm; ``colours`` (n, 3) in L*a*b* belong to its vertices."""
        corners = mesh.vertices[mesh.faces]
        longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
        parts = np.clip(np.ceil(longest / step), 1, _MOST_PARTS).astype(int)
        parts = np.minimum(parts, max(1, int(np.sqrt(_MOST_POINTS / max(mesh.n_faces, 1)))))
        across = face_cross(mesh.vertices, mesh.faces)
        across = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
        points = [mesh.vertices]
        normals = [vertex_normals(mesh.vertices, mesh.faces)]
        lab = [] if colours is None else [colours]
        for k in np.unique(parts):
            chosen = parts == k
            weights = _inside_triangle(int(k))
            points.append(np.einsum("kc,fcd->fkd", weights, corners[chosen]).reshape(-1, 3))
            normals.append(np.repeat(across[chosen], len(weights), axis=0))
            if colours is not None:
                lab.append(np.einsum("kc,fcd->fkd", weights, colours[mesh.faces[chosen]]).reshape(-1, 3))
        return cls(np.concatenate(points), np.concatenate(normals), np.concatenate(lab) if lab else None)

    def kept(self, chosen: Bools) -> Skin:
        """Only these points."""
        return Skin(self.points[chosen], self.normals[chosen], None if self.lab is None else self.lab[chosen])

    def seen_from(self, axes: Floats, centre: Floats) -> Skin:
        """In a view's coordinates; ``axes`` (3, 3) has the view's right, up and towards the eye as rows."""
        return Skin((self.points - centre) @ axes.T, self.normals @ axes.T, self.lab)


_AROUND = 12  # points about a point of a cloud that tell its normal ...
_RING = 7  # ... and that span triangles with it
_APART = 2.0  # times the usual radius of such a ring: not the same skin
_ROUGH = 0.06  # of that radius off the plane through the neighbours: noise, not shape, and taken away
_OFF = 0.5  # of the radius off the plane, and four times as far as is usual: a stray
_THIN = 1.6  # times the radius of the neighbours' rings: a stray
_LOOSE = 0.01  # of all triangles: strays among themselves
_DENSE = 40_000  # points; more are joined to those of cubes of ...
_CUBE = 1 / 200  # ... the cloud's extent
_MANY_FACES = 400_000
_LIGHT = 2.0  # mm


def spanned(cloud: TriangleMesh) -> TriangleMesh:
    """Points without faces as triangles between neighbours, overlapping, outwards; strays belong to none.

    No surface to compute on, but one that a view can show and that has a nearest place to a point.
    """
    points, colours = _joined(cloud)
    if len(points) <= _AROUND:
        return TriangleMesh(points, np.zeros((0, 3), np.int64))
    away, ids = cKDTree(points).query(points, _AROUND + 1)
    middle, radii = points[ids].mean(axis=1), away[:, _RING]
    radius = float(np.median(radii))
    spread = points[ids] - middle[:, None]
    _, axes = np.linalg.eigh(np.swapaxes(spread, 1, 2) @ spread)  # first the normal: the least spread
    off = ((middle - points) * axes[:, :, 0]).sum(axis=1)
    rough = float(np.median(np.abs(off)))
    stray = np.abs(off) > max(4.0 * rough, _OFF * radius)
    stray |= radii > _THIN * np.median(radii[ids[:, 1:]], axis=1)
    if rough > _ROUGH * radius:
        points = points + off[:, None] * axes[:, :, 0]
    faces = _between(points, ids[:, 1 : _RING + 1], axes)
    corners = points[faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    faces = faces[(longest < _APART * radius) & ~stray[faces].any(axis=1)]
    piece = face_components(faces)
    faces = faces[(np.bincount(piece) > _LOOSE * len(faces))[piece]]
    return without_unreferenced(TriangleMesh(points, faces, colors=colours))[0]


def _between(points: Floats, near: Ints, axes: Floats) -> Ints:
    """The triangles of every point with two that follow each other around it, each once, seen from outside."""
    normal, first = axes[:, :, 0], axes[:, :, 1]
    outward = np.sign(((points - np.median(points, axis=0)) * normal).sum(axis=1))
    second = np.cross(normal * outward[:, None], first)
    arms = points[near] - points[:, None]
    angle = np.arctan2(np.einsum("nki,ni->nk", arms, second), np.einsum("nki,ni->nk", arms, first))
    order = np.argsort(angle, axis=1)
    ring, angle = np.take_along_axis(near, order, axis=1), np.take_along_axis(angle, order, axis=1)
    turn = (np.roll(angle, -1, axis=1) - angle) % (2 * np.pi)
    here = np.broadcast_to(np.arange(len(points))[:, None], ring.shape)
    faces = np.stack([here, ring, np.roll(ring, -1, axis=1)], axis=2)[turn < 0.7 * np.pi]
    once = np.unique(np.sort(faces, axis=1) @ [1, len(points), len(points) ** 2], return_index=True)[1]
    chosen: Ints = faces[np.sort(once)]
    return chosen


def _joined(cloud: TriangleMesh) -> tuple[Floats, NDArray[np.uint8] | None]:
    """A dense cloud's points as the means of small cubes, which takes noise away, with their colours."""
    if cloud.n_vertices <= _DENSE:
        return cloud.vertices, cloud.colors
    low, high = np.quantile(cloud.vertices, (0.01, 0.99), axis=0)
    return _in_cubes(cloud, _CUBE * float((high - low).max()))[:2]


def _in_cubes(mesh: TriangleMesh, side: float) -> tuple[Floats, NDArray[np.uint8] | None, Ints]:
    """The means of the vertices in cubes, their colours, and the cube of every vertex."""
    place = np.floor((mesh.vertices - mesh.vertices.min(axis=0)) / side).astype(np.int64)
    _, cube, count = np.unique(place @ [1, 1 << 20, 1 << 40], return_inverse=True, return_counts=True)

    def mean(values: Floats) -> Floats:
        return np.column_stack([np.bincount(cube, column) for column in values.T]) / count[:, None]

    colours = None if mesh.colors is None else mean(mesh.colors.astype(float)).astype(np.uint8)
    return mean(mesh.vertices), colours, cube


def lightened(mesh: TriangleMesh) -> TriangleMesh:
    """A dense surface in mm as one that shows the same in every view; others as they are.

    Unlike :func:`breastmorph.mesh.remeshing.thinned` it may touch itself: views do not mind, and it is far quicker.
    """
    if mesh.n_faces <= _MANY_FACES:
        return mesh
    rgb = vertex_rgb(mesh)
    if mesh.colors is None and rgb is not None:
        full = np.full(len(rgb), 255, np.uint8)
        mesh = TriangleMesh(mesh.vertices, mesh.faces, np.column_stack([rgb, full]))
    points, colours, cube = _in_cubes(mesh, _LIGHT)
    faces = cube[mesh.faces]
    return without_unreferenced(TriangleMesh(points, faces[with_three_corners(faces)], colours))[0]


@lru_cache(maxsize=_MOST_PARTS)
def _inside_triangle(k: int) -> Floats:
    return np.array([[i + 1 / 3, j + 1 / 3, k - i - j - 2 / 3] for i in range(k) for j in range(k - i)]) / k


def skin_colours(mesh: TriangleMesh) -> Floats | None:
    """The colour of every vertex in L*a*b*, from vertex colours or the texture; None where there is none or but one."""
    rgb = vertex_rgb(mesh) if mesh.is_coloured else None
    if rgb is None or not len(rgb) or (rgb == rgb[0]).all():
        return None
    return to_lab(rgb)


@dataclass(frozen=True, eq=False)
class View:
    """What a net looks at.

    Attributes
    ----------
    channels : (c, n, n) float32
        Depth, whether there is skin, slopes; with colour its differences from the view's mean.
    depth : float
        Mean depth of what is seen, taken out of the channels.
    covered : float
        Share of the view that shows skin.
    """

    channels: Pixels
    depth: float
    covered: float


def render(skin: Skin, size: int, pixel: float, coloured: bool = False) -> View:
    """A view of ``size`` x ``size`` pixels of ``pixel`` mm along the third axis of points in view coordinates."""
    half = size * pixel / 2
    cell = np.floor((skin.points[:, :2] + half) / pixel).astype(int)
    inside = ((cell >= 0) & (cell < size)).all(axis=1)
    flat = cell[inside, 1] * size + cell[inside, 0]
    depth = skin.points[inside, 2]
    # The nearest point of every pixel; then the mean of all that lie near it.
    nearest = np.full(size * size, -np.inf)
    np.maximum.at(nearest, flat, depth)
    near = depth > nearest[flat] - 0.5 * pixel - 1.0
    flat = flat[near]
    values = [depth[near]]
    if coloured and skin.lab is not None:
        values += list(skin.lab[inside][near].T / 10.0)
    count = np.bincount(flat, minlength=size * size)
    layers = np.stack([np.bincount(flat, v, size * size) for v in values]) / np.maximum(count, 1)
    layers, valid = _filled(layers.reshape(-1, size, size), (count > 0).reshape(size, size))
    total = max(valid.sum(), 1)
    mean = (layers * valid).sum(axis=(1, 2)) / total
    relief = (layers - mean[:, None, None]) * valid
    channels = [relief[0] / (16.0 * pixel), valid, *_slopes(relief[0], valid, pixel)]
    if coloured:
        seen = len(values) > 1
        channels += list(np.clip(relief[1:], -3.0, 3.0)) if seen else [np.zeros_like(valid)] * 3
        channels.append(np.full_like(valid, float(seen)))
    return View(np.stack(channels).astype(np.float32), float(mean[0]), float(valid.mean()))


def _filled(layers: Floats, there: Bools) -> tuple[Floats, Floats]:
    """Single empty pixels between full ones take their mean; twice."""
    valid = there.astype(float)
    for _ in range(2):
        count = _around(valid)
        mean = np.stack([_around(layer * valid) for layer in layers]) / np.maximum(count, 1.0)
        fill = (valid == 0) & (count >= 4.5)
        layers = np.where(fill, mean, layers)
        valid = np.maximum(valid, fill)
    return layers, valid


def _around(layer: Floats) -> Floats:
    """Sums over 3 x 3 pixels."""
    padded = np.pad(layer, 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    total: Floats = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    return total


def _slopes(depth: Floats, valid: Floats, pixel: float) -> tuple[Floats, Floats]:
    right, up = np.zeros_like(depth), np.zeros_like(depth)
    right[:, 1:-1] = (depth[:, 2:] - depth[:, :-2]) * valid[:, 2:] * valid[:, :-2]
    up[1:-1] = (depth[2:] - depth[:-2]) * valid[2:] * valid[:-2]
    return np.clip(right / (2 * pixel), -2.0, 2.0), np.clip(up / (2 * pixel), -2.0, 2.0)


_LAPLACE_SD = 1.3  # standard deviation over the nets' stated mean deviation, on phantoms


@dataclass(frozen=True, eq=False)
class Votes:
    """A net's answer to one view, in the view's coordinates (mm).

    Attributes
    ----------
    points : (k, 3) float
    sd : (k, 3) float
        Standard deviation along each axis.
    flags : (f,) float
        What else it was asked, as log odds.
    """

    points: Floats
    sd: Floats
    flags: Floats


@dataclass(frozen=True, eq=False)
class Net:
    """One trained net.

    Attributes
    ----------
    size : int
        Pixels along a side of its view.
    pixel : float
        mm.
    coloured : bool
    weights : mapping of arrays
    """

    size: int
    pixel: float
    coloured: bool
    weights: Mapping[str, Pixels]

    def look(self, skins: list[Skin]) -> list[Votes]:
        """What it says of skins in view coordinates, each seen in its own view."""
        return self.votes([render(skin, self.size, self.pixel, self.coloured) for skin in skins])

    def votes(self, views: list[View]) -> list[Votes]:
        """What it says of views."""
        x = np.stack([view.channels for view in views])
        fine = self._layer(
            "c2", self._layer("c", self._layer("b2", self._layer("b", self._layer("a", x), 2)), 2)
        )
        coarse = self._layer("d2", self._layer("d", fine, 2))
        w = self.weights
        whole = np.maximum(coarse.mean(axis=(2, 3)) @ w["g/w"].T + w["g/b"], 0.0)
        flags = (whole @ w["f/w"].T + w["f/b"]).astype(float)
        coarse = (coarse + whole[:, :, None, None]).repeat(2, axis=2).repeat(2, axis=3)
        joined = self._layer("u", np.concatenate([coarse, fine], axis=1))
        n, _, cells, _ = joined.shape
        head = np.einsum("oc,nchw->nohw", w["h/w"][:, :, 0, 0], joined) + w["h/b"][:, None, None]
        votes = head.reshape(n, -1, 7, cells * cells).astype(float)
        belief = np.exp(votes[:, :, 0] - votes[:, :, 0].max(axis=2, keepdims=True))
        belief /= belief.sum(axis=2, keepdims=True)
        start = self._cells(x, cells)
        points = np.einsum("nmk,nmdk->nmd", belief, start[:, None] + 8.0 * self.pixel * votes[:, :, 1:4])
        points[:, :, 2] += np.array([view.depth for view in views])[:, None]
        log_sd = np.clip(np.einsum("nmk,nmdk->nmd", belief, votes[:, :, 4:7]), -1.5, 5.0)
        sd = _LAPLACE_SD * np.exp(log_sd)
        return [Votes(points[i], sd[i], flags[i]) for i in range(n)]

    def _cells(self, x: Pixels, cells: int) -> Floats:
        """Where the cells lie, (n, 3, cells^2): depth as the mean of what skin they show."""
        along = (np.arange(cells) + 0.5) * 4 * self.pixel - self.size * self.pixel / 2
        blocks = x[:, :2].reshape(len(x), 2, cells, 4, cells, 4).mean(axis=(3, 5))
        depth = blocks[:, 0] / np.maximum(blocks[:, 1], 0.1) * 16.0 * self.pixel
        out = np.empty((len(x), 3, cells, cells))
        out[:, 0], out[:, 1], out[:, 2] = along, along[:, None], depth
        return out.reshape(len(x), 3, -1)

    def _layer(self, name: str, x: Pixels, stride: int = 1) -> Pixels:
        """A convolution with 3 x 3 pixels, then what is negative is nothing."""
        weight, bias = self.weights[f"{name}/w"], self.weights[f"{name}/b"]
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
        n, c, high, wide = windows.shape[:4]
        flat = weight.reshape(len(weight), -1)
        out = np.empty((n, len(weight), high, wide), np.float32)
        for i in range(n):  # one view's columns at a time stay in the cache
            columns = windows[i].transpose(0, 3, 4, 1, 2).reshape(c * 9, high * wide)
            out[i] = (flat @ columns + bias[:, None]).reshape(-1, high, wide)
        return np.maximum(out, 0.0, out=out)


@dataclass(frozen=True, eq=False)
class Nets:
    """The nets that ship with the software, by what they look at."""

    arrays: Mapping[str, Pixels]

    def _net(self, name: str, size: int, pixel: float, coloured: bool = False) -> Net:
        start = f"{name}/"
        own = {key.removeprefix(start): self.arrays[key] for key in self.arrays if key.startswith(start)}
        return Net(size, pixel, coloured, own)

    @cached_property
    def pose(self) -> Net:
        """From any direction: whether it is a torso, and how it must be turned."""
        return self._net("pose", 64, 10.0)

    @cached_property
    def coarse(self) -> Net:
        """The upright torso from the front: all landmarks."""
        return self._net("coarse", 96, 6.0)

    @cached_property
    def breast(self) -> Net:
        """One left breast from its side and from below."""
        return self._net("breast", 64, 3.5)

    @cached_property
    def midline(self) -> Net:
        """The sternum from the front."""
        return self._net("midline", 64, 5.0)

    @cached_property
    def nipple(self) -> Net:
        """The skin around a nipple along its normal, coloured or not."""
        return self._net("nipple", 48, 2.0, coloured=True)


@lru_cache(maxsize=1)
def nets() -> Nets:
    """The trained nets."""
    with resources.files("breastmorph").joinpath("data/landmark_nets.npz").open("rb") as file:
        loaded = np.load(BytesIO(file.read()), allow_pickle=False)
        return Nets({key: loaded[key].astype(np.float32) for key in loaded.files})


_POSES_TRIED = 5
_POSE_STEPS = 3
_POSE_POINTS = 30_000


@dataclass(frozen=True, eq=False)
class Pose:
    """A hypothesis: axes of the body as rows, its centre, and log odds that it is one."""

    axes: Floats
    centre: Floats
    upright: float
    torso: float


def hypotheses(skin: Skin) -> list[Pose]:
    """The best poses, the likeliest first, each settled by looking again."""
    chosen = np.linspace(0, len(skin.points) - 1, min(_POSE_POINTS, len(skin.points))).astype(int)
    points = skin.points[np.unique(chosen)]
    poses = _posed(
        points, Rotation.create_group("I").as_matrix()
    )  # no pose is farther than 45 degrees from one
    best = sorted(poses, key=lambda pose: -pose.upright)[:_POSES_TRIED]
    for _ in range(_POSE_STEPS):
        best = _posed(points, [pose.axes for pose in best])
    distinct: list[Pose] = []
    for pose in sorted(best, key=lambda pose: -pose.upright - pose.torso):
        cosines = [(np.trace(pose.axes @ other.axes.T) - 1.0) / 2.0 for other in distinct]
        if all(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))) > 25.0 for cosine in cosines):
            distinct.append(pose)
    return distinct


def _posed(points: Floats, axes: Sequence[Floats] | Floats) -> list[Pose]:
    """Look along each of some axes, and turn to what the net says."""
    net, middle = nets().pose, points.mean(axis=0)
    normals = np.zeros_like(points)
    views = [Skin((points - middle) @ turn.T, normals) for turn in axes]
    poses = []
    for turn, vote in zip(axes, net.look(views), strict=True):
        first = vote.flags[1:4] / np.linalg.norm(vote.flags[1:4])
        second = vote.flags[4:7] - first * (first @ vote.flags[4:7])
        second = second / max(float(np.linalg.norm(second)), 1e-9)
        to_body = np.column_stack([first, second, np.cross(first, second)])
        centre = vote.points[0] @ turn + middle
        poses.append(Pose(to_body @ turn, centre, float(vote.flags[0]), float(vote.flags[7])))
    return poses
