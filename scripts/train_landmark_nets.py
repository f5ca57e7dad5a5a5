"""Train the nets that find landmarks, on phantoms with nuisance; src/breastmorph/data/landmark_nets.npz came about so.

    python scripts/train_landmark_nets.py data data.npz --n 900 --jobs 8
    python scripts/train_landmark_nets.py train data.npz first --seconds 420
    python scripts/train_landmark_nets.py train data.npz second --seconds 500 --start first/nets.pt --rate 2e-3
    python scripts/train_landmark_nets.py train data.npz third --seconds 500 --start second/nets.pt --rate 2e-3 \
        --only coarse,midline

``data`` needs this package: it builds bodies of the phantom, more varied than a cohort's, without the relief of areola
and nipple, and keeps their principal components. ``train`` needs numpy and torch alone (torch is no dependency of
BreastMorph; the seconds are those of one large GPU). Every step mixes new bodies from the components, bends them,
gives them nipples, a scanner's gaps and things in the scene, and asks the five nets of ``scan/views.py``. OUT/nets.npz
has the weights as the package reads them, OUT/nets.pt what a further run starts from.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ModuleNotFoundError:  # `data` goes without
    torch = None  # type: ignore[assignment]

SIDES = ("left", "right")

# --------------------------------------------------------------------------------------------------------------------
# Data: bodies of the phantom as principal components of the bare torso and of the breasts
# --------------------------------------------------------------------------------------------------------------------

FIRST_SEED, PER_SEED = 101, 450
BARE_MODES, BREAST_MODES = 110, 170


def make_data(out: Path, n: int, jobs: int) -> None:
    """Build ``n`` bodies and write their components with what is known of the fixed topology."""
    subjects = [subject for k in range(0, n, PER_SEED) for subject in _varied(k, min(PER_SEED, n - k))]
    with ProcessPoolExecutor(jobs) as pool:
        bodies = [body for body in pool.map(_built, subjects, chunksize=4) if body is not None]
    bare, whole = (np.array([body[k] for body in bodies]) for k in (0, 1))
    print(f"{len(bodies)} of {n} bodies")
    known = _topology()
    breast = np.flatnonzero(known["mask_left"] | known["mask_right"])
    known |= _components("bare", bare.reshape(len(bare), -1), BARE_MODES)
    known |= _components("delta", (whole - bare)[:, breast].reshape(len(bare), -1), BREAST_MODES)
    np.savez_compressed(out, **known, **_samples(known), breast_ids=breast.astype(np.int32))


def _varied(first: int, n: int) -> list[Any]:
    """Subjects of one seed, of wider marginals and up to 1.7 times as varied as a cohort's."""
    from breastmorph.phantom.cohort import Marginal, PhantomParameters, draw_cohort

    seed = FIRST_SEED + first // PER_SEED
    rng = np.random.default_rng(seed)
    wider = PhantomParameters(
        volume_left=Marginal(450.0, 280.0, 60.0, 1500.0),
        volume_right=Marginal(450.0, 280.0, 60.0, 1600.0),
        bmi=Marginal(25.0, 5.0, 16.5, 42.0),
    )
    subjects = []
    for subject in draw_cohort(n, seed, 0, wider):
        k, thorax = rng.uniform(1.0, 1.7), subject.thorax
        names = [f.name for f in fields(thorax) if f.name not in ("modes", "adiposity")]
        more = {name: getattr(thorax, name) * k for name in names}
        thorax = replace(thorax, **more, modes=tuple(np.array(thorax.modes) * k))
        flat = {side: replace(subject.breast(side), nipple_size=0.0, areola_height=0.0) for side in SIDES}
        subjects.append(replace(subject, thorax=thorax, **flat))
    return subjects


def _built(subject: Any) -> tuple[Any, Any] | None:
    from breastmorph.phantom.cohort import torso

    try:
        true = torso(subject)
    except ValueError as error:  # so varied that no projection gives the volume
        print(f"{subject.id}: {error}")
        return None
    return true.bare.astype(np.float32), true.whole.astype(np.float32)


def _topology() -> dict[str, Any]:
    """What is known of the fixed topology: landmarks' vertices, breasts, axillary lines, arms."""
    from breastmorph.phantom import cohort
    from breastmorph.phantom.skin import footprint_polar, lattice
    from breastmorph.scan.scan import SIGN

    chart, mean = cohort.skin_chart(), lattice()
    notch, xiphoid = (chart.midline_vertex(level) for level in cohort.STERNUM_LEVELS)
    known = {
        "faces": mean.faces.astype(np.int32),
        "mean": mean.points.astype(np.float32),
        "arm": cohort.arm_length().astype(np.float32),
        "arm_w": cohort.arm_weight(mean.points).astype(np.float32),
        "notch": notch,
        "xiphoid": xiphoid,
    }
    for side, sign in SIGN.items():
        radius, _ = footprint_polar(sign * chart.around, chart.level, chart.nipple_at)
        line = chart.axillary_line[side].toarray().astype(np.float32)
        largest = np.argsort(-line, axis=1)[:, :3]
        known |= {
            f"nipple_{side}": chart.nipple[side],
            f"imf_{side}": chart.fold[side],
            f"mask_{side}": cohort.mean_torso().breast[side],
            f"radius_{side}": np.where(sign * chart.around > 0, radius, 9.0).astype(np.float32),
            f"lineid_{side}": largest.astype(np.int32),
            f"linew_{side}": np.take_along_axis(line, largest, axis=1),
        }
    return known


def _components(name: str, shapes: Any, count: int) -> dict[str, Any]:
    """Mean, modes within +-1 (so that half precision holds them) and scores of the shapes' components."""
    mean = shapes.mean(axis=0)
    rest = shapes - mean
    gram = rest @ rest.T
    variance, vectors = np.linalg.eigh(gram)
    count = min(count, len(shapes) - 1)
    variance, vectors = variance[::-1][:count], vectors[:, ::-1][:, :count]
    print(f"{name}: {variance.sum() / np.trace(gram):.4f} of the variance in {count} components")
    size = np.sqrt(variance)
    modes = vectors.T @ rest / size[:, None]
    largest = np.abs(modes).max(axis=1)
    return {
        f"mean_{name}": mean.astype(np.float32),
        f"modes_{name}": (modes / largest[:, None]).astype(np.float16),
        f"scores_{name}": (vectors * size * largest).astype(np.float32),
    }


def _samples(known: dict[str, Any]) -> dict[str, Any]:
    """Points to look at, as weights of corners: vertices, edges and faces; more of each face near a nipple."""
    faces, n = known["faces"], len(known["mean"])
    edges = np.unique(np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    ids = [np.repeat(np.arange(n)[:, None], 3, axis=1), np.column_stack([edges, edges[:, 0]]), faces]
    weights = [np.tile([1.0, 0, 0], (n, 1)), np.tile([0.5, 0.5, 0], (len(edges), 1))]
    weights.append(np.full((len(faces), 3), 1 / 3))
    near = faces[np.minimum(known["radius_left"], known["radius_right"])[faces].max(axis=1) < 0.75]
    grid = np.array([[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)]) / 4
    inner = grid[(grid == 0).sum(axis=1) < 2]
    return {
        "main_ids": np.concatenate(ids).astype(np.int32),
        "main_w": np.concatenate(weights).astype(np.float16),
        "fine_ids": np.repeat(near, len(inner), axis=0).astype(np.int32),
        "fine_w": np.tile(inner, (len(near), 1)).astype(np.float16),
    }


# --------------------------------------------------------------------------------------------------------------------
# Chance and turns
# --------------------------------------------------------------------------------------------------------------------

DEVICE = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"


def tensor(array: Any, kind: Any = None) -> Tensor:
    """An array or list on the device."""
    return torch.as_tensor(np.asarray(array), device=DEVICE).to(kind or torch.float32)


def normal(*size: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*size, device=DEVICE)


def uniform(low: float, high: float, *size: int) -> Tensor:
    """Numbers between two."""
    return low + (high - low) * torch.rand(*size, device=DEVICE)


def log_uniform(low: float, high: float, *size: int) -> Tensor:
    """Numbers between two, each size as frequent as its double."""
    return torch.exp(uniform(math.log(low), math.log(high), *size))


def happens(chance: float, *size: int) -> Tensor:
    """True so often."""
    return torch.rand(*size, device=DEVICE) < chance


def unit(vectors: Tensor, dim: int = -1) -> Tensor:
    """Vectors of length one."""
    return functional.normalize(vectors, dim=dim)


def about(vectors: Tensor) -> Tensor:
    """Rotations (n, 3, 3) about vectors (n, 3) by their lengths in radians."""
    angle = vectors.norm(dim=1, keepdim=True).clamp_min(1e-8)
    x, y, z = (vectors / angle).T
    o = torch.zeros_like(x)
    cross = torch.stack([o, -z, y, z, o, -x, -y, x, o], 1).view(-1, 3, 3)
    angle = angle[..., None]
    return torch.eye(3, device=DEVICE) + torch.sin(angle) * cross + (1 - torch.cos(angle)) * (cross @ cross)


def any_turn(n: int) -> Tensor:
    """Rotations in any direction, (n, 3, 3)."""
    w, x, y, z = unit(normal(n, 4)).T
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)]
    rows += [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)]
    rows += [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, 1).view(n, 3, 3)


def small_turn(n: int, sd: float, most: float) -> Tensor:
    """Rotations by some degrees, (n, 3, 3)."""
    vectors = normal(n, 3) * math.radians(sd)
    angle = vectors.norm(dim=1, keepdim=True).clamp_min(1e-8)
    return about(vectors * (angle.clamp(max=math.radians(most)) / angle))


def yaw(angle: Tensor) -> Tensor:
    """Rotations about the vertical that bring the direction (sin, 0, cos) to the front, (n, 3, 3)."""
    c, s, o, e = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, o, -s, o, e, o, s, o, c], 1).view(-1, 3, 3)


def turned(points: Tensor, turn: Tensor) -> Tensor:
    """Points (n, k, 3) turned by (n, 3, 3)."""
    return points @ turn.transpose(1, 2)


def waves(at: Tensor, count: int, shortest: float, longest: float, strain: float) -> Tensor:
    """A smooth random displacement of points (n, k, 3), each wave as strong as it is long."""
    n = len(at)
    length = log_uniform(shortest, longest, n, count, 1)
    wave = unit(normal(n, count, 3)) * 2 * math.pi / length
    size = normal(n, count, 3) * strain * length * uniform(0, 1.4, n, 1, 1)
    return torch.cos(at @ wave.transpose(1, 2) + uniform(0, 6.28, n, 1, count)) @ size


# --------------------------------------------------------------------------------------------------------------------
# Bodies: mixed, bent, scanned
# --------------------------------------------------------------------------------------------------------------------


class Stock:
    """The data file as tensors, and the topology's neighbours."""

    def __init__(self, path: Path) -> None:
        d = dict(np.load(path))
        whole = torch.long
        self.mean_bare, self.modes_bare = tensor(d["mean_bare"]), tensor(d["modes_bare"])
        self.mean_breast, self.modes_breast = tensor(d["mean_delta"]), tensor(d["modes_delta"])
        self.scores_bare, self.scores_breast = tensor(d["scores_bare"]), tensor(d["scores_delta"])
        self.breast_ids, self.faces = tensor(d["breast_ids"], whole), tensor(d["faces"], whole)
        self.n, self.x = len(d["mean"]), tensor(d["mean"])[:, 0]
        self.ids = tensor(np.concatenate([d["main_ids"], d["fine_ids"]]), whole)
        self.weights = torch.cat([tensor(d["main_w"]), tensor(d["fine_w"])])
        self.n_main = len(d["main_ids"])
        self.arm, self.arm_weight = tensor(d["arm"]), tensor(d["arm_w"])
        self.notch, self.xiphoid = int(d["notch"]), int(d["xiphoid"])
        self.nipple, self.fold = [int(d[f"nipple_{s}"]) for s in SIDES], [int(d[f"imf_{s}"]) for s in SIDES]
        self.radius = [tensor(d[f"radius_{s}"]) for s in SIDES]
        self.breast = [tensor(d[f"mask_{s}"], torch.bool) for s in SIDES]
        self.line = [(tensor(d[f"lineid_{s}"], whole), tensor(d[f"linew_{s}"])) for s in SIDES]
        edges = np.sort(d["faces"][:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        edges, uses = np.unique(edges, axis=0, return_counts=True)
        self.border = tensor(np.unique(edges[uses == 1]), whole)
        f = self.faces
        i = torch.cat([f[:, [0, 1, 2]].reshape(-1), f[:, [1, 2, 0]].reshape(-1)])
        j = torch.cat([f[:, [1, 2, 0]].reshape(-1), f[:, [0, 1, 2]].reshape(-1)])
        degree = torch.zeros(self.n, device=DEVICE).index_add_(0, i, torch.ones(len(i), device=DEVICE))
        mean = torch.sparse_coo_tensor(torch.stack([i, j]), 1 / degree[i], (self.n, self.n))
        self.neighbours = mean.coalesce().to_sparse_csr()

    def normals(self, vertices: Tensor) -> Tensor:
        """Normals of vertices (b, n, 3)."""
        a, b, c = (vertices[:, self.faces[:, k]] for k in range(3))
        across, out = torch.linalg.cross(b - a, c - a), torch.zeros_like(vertices)
        for k in range(3):
            out.index_add_(1, self.faces[:, k], across)
        return unit(out)

    def smoothed(self, vertices: Tensor, rounds: int) -> Tensor:
        """Vertices (b, n, 3) drawn towards their neighbours."""
        x = vertices.permute(1, 0, 2).reshape(self.n, -1)
        for _ in range(rounds):
            x = 0.3 * x + 0.7 * (self.neighbours @ x)
        return x.view(self.n, len(vertices), 3).permute(1, 0, 2)

    def sampled(self, values: Tensor) -> Tensor:
        """Values of vertices (b, n, 3) at the samples."""
        return (values[:, self.ids] * self.weights[None, :, :, None]).sum(2)

    def at_samples(self, value: Tensor) -> Tensor:
        """One value a vertex, (n,), at the samples."""
        return (value[self.ids] * self.weights).sum(1)


@dataclass(frozen=True, eq=False)
class Bodies:
    """Scanned bodies, upright in mm.

    Attributes
    ----------
    points, normals : (b, k, 3) tensor
        Samples of the skin, the dense ones near the nipples last.
    alive : (b, k) tensor
        What the scanner and the operator kept.
    extra, extra_alive : (b, m, 3) and (b, m) tensor
        Other things in the scene.
    marks : (b, 10, 3) tensor
        Landmarks in the order of ``breastmorph.scan.finder.FOUND_NAMES``.
    absent : (b,) tensor
        0, or 1 or 2 where the left or right breast is gone.
    n_main : int
        Samples before the dense ones.
    """

    points: Tensor
    normals: Tensor
    alive: Tensor
    extra: Tensor
    extra_alive: Tensor
    marks: Tensor
    absent: Tensor
    n_main: int

    @property
    def scene(self) -> tuple[Tensor, Tensor]:
        """Skin without the dense samples and all else, and what of it is seen."""
        k = self.n_main
        points = torch.cat([self.points[:, :k], self.extra], 1)
        return points, torch.cat([self.alive[:, :k], self.extra_alive], 1)

    @property
    def centre(self) -> Tensor:
        """Of the front view, (b, 3)."""
        return 0.5 * (self.marks[:, 0] + self.marks[:, 1]) + tensor([0.0, 0.0, -40.0])

    @property
    def gone(self) -> Tensor:
        """Whether each side's breast is absent, (b, 2)."""
        return torch.stack([self.absent == 1, self.absent == 2], 1).float()

    @property
    def exists(self) -> Tensor:
        """Whether each landmark exists, (b, 10)."""
        valid = torch.ones(len(self.absent), 10, device=DEVICE)
        for q in range(2):
            valid[self.absent == q + 1, 2 + q :: 2] = 0
        return valid


def new_bodies(stock: Stock, b: int) -> Bodies:
    """Bodies that nobody has seen."""
    bare, breasts, absent = _mixed(stock, b)
    outward = stock.normals(bare)
    v = _with_breasts(stock, bare, outward, breasts, absent)
    v = _bent(stock, _arms_turned(stock, v), outward)
    marks, normals = _landmarks(stock, v), stock.normals(v)
    points, along = stock.sampled(v), unit(stock.sampled(normals))
    _add_nipples(stock, points, along, marks, normals, absent)
    alive = _kept(stock, points, marks) & _scanned(points, along)
    for _ in range(5):
        alive &= ~_hole(points)
    extra, extra_alive = _scenery(stock, v, marks)
    return Bodies(points, along, alive, extra, extra_alive, marks, absent, stock.n_main)


def _mixed(stock: Stock, b: int) -> tuple[Tensor, list[Tensor], Tensor]:
    """Bare torsos between two subjects each, their breasts or others' (a little other on the right), who lacks one."""

    def some() -> Tensor:
        return torch.randint(len(stock.scores_bare), (b,), device=DEVICE)

    i, j, t = some(), some(), uniform(0, 1, b, 1) * math.pi / 2
    scores = stock.scores_bare[i] * torch.cos(t) + stock.scores_bare[j] * torch.sin(t)
    bare = (stock.mean_bare + (scores * uniform(0.9, 1.2, b, 1)) @ stock.modes_bare).view(b, stock.n, 3)
    k = torch.where(happens(0.5, b), i, some())
    shared = torch.cos(t) * stock.scores_breast[k] + torch.sin(t) * stock.scores_breast[some()]
    other = stock.scores_breast[some()]
    breasts = []
    for breast, sign in zip(stock.breast, (1, -1), strict=True):
        e = uniform(0, 0.35, b, 1) * sign * 0.5
        own = shared * torch.sqrt(1 - e * e) + e * other
        raised = (stock.mean_breast + own @ stock.modes_breast).view(b, -1, 3) * uniform(0.75, 1.25, b, 1, 1)
        all_over = torch.zeros(b, stock.n, 3, device=DEVICE)
        all_over[:, stock.breast_ids] = raised
        all_over[:, ~breast] = 0
        breasts.append(all_over)
    absent, u = torch.zeros(b, dtype=torch.long, device=DEVICE), torch.rand(b, device=DEVICE)
    absent[u < 0.11] = 1
    absent[(u >= 0.11) & (u < 0.22)] = 2
    return bare, breasts, absent


def _with_breasts(
    stock: Stock, bare: Tensor, outward: Tensor, breasts: list[Tensor], absent: Tensor
) -> Tensor:
    """Breasts raised; where one is gone a layer of skin instead, thicker or thinner."""
    b, v = len(bare), bare.clone()
    for q, raised in enumerate(breasts):
        r = stock.radius[q][None, :, None]
        ease = torch.sigmoid((uniform(0.95, 1.4, b, 1, 1) - r) / uniform(0.06, 0.2, b, 1, 1))
        layer = outward * ease * uniform(-8, 14, b, 1, 1) * (1 + 0.3 * torch.cos(r * 3) * normal(b, 1, 1))
        layer = layer + raised * uniform(-0.05, 0.06, b, 1, 1)
        v = v + torch.where((absent == q + 1)[:, None, None], layer, raised)
    return v


def _arms_turned(stock: Stock, v: Tensor) -> Tensor:
    b = len(v)
    for sign in (1, -1):
        side = (stock.arm * sign > 0) | ((stock.arm_weight > 0) & (stock.x * sign > 0))
        weight = torch.where(side, stock.arm_weight, torch.zeros_like(stock.arm_weight))
        degrees = torch.where(happens(0.5, b), uniform(-35, 45, b), 8 * normal(b))
        angle = (math.radians(1) * degrees)[:, None] * weight * sign
        joint = tensor([152.0 * sign, -34.0, -24.0])
        c, s, q = torch.cos(angle), torch.sin(angle), v - joint
        x, y = c * q[..., 0] - s * q[..., 1], s * q[..., 0] + c * q[..., 1]
        v = torch.stack([x, y, q[..., 2]], 2) + joint
    return v


# Bumps and hollows about notch and xiphoid: how far from it, how high, least and greatest width (mm).
_BUMPS = (
    ("notch", 22.0, 5.0, 9.0, 24.0),
    ("notch", 30.0, 5.0, 9.0, 24.0),
    ("notch", 40.0, 4.0, 12.0, 40.0),
    ("xiphoid", 30.0, 3.0, 10.0, 40.0),
    ("xiphoid", 30.0, 3.0, 10.0, 40.0),
)


def _bent(stock: Stock, v: Tensor, outward: Tensor) -> Tensor:
    """Smooth warps of everything, of the breasts, of the sternum and the neck; other proportions."""
    b = len(v)
    v = v + waves(v, 10, 200, 700, 0.0045)
    near = torch.sigmoid((1.1 - torch.minimum(*stock.radius)) / 0.15)[None, :, None]
    v = v + near * waves(v, 8, 60, 160, 0.003)
    for place, spread, size, least, most in _BUMPS:
        vertex = stock.notch if place == "notch" else stock.xiphoid
        centre = v[:, vertex] + normal(b, 3) * spread * tensor([0.8, 1.0, 0.3])
        width = uniform(least, most, b, 1)
        bump = torch.exp(-((v - centre[:, None]).norm(dim=2) ** 2) / (2 * width * width)) * normal(b, 1)
        v = v + (bump * size)[..., None] * outward
    bone = torch.sigmoid((80 - v[..., 0].abs()) / 8) * torch.sigmoid((v[..., 1] + 60) / 12)
    inner = torch.ones_like(bone)
    inner[:, stock.border] = 0
    v = v + (bone * inner)[..., None] * (stock.smoothed(v, 25) - v) * uniform(-0.6, 1.1, b, 1, 1)
    upper = torch.sigmoid((v[..., 1] + 60) / 20)[..., None] * uniform(0, 1, b, 1, 1)
    v = v + upper * waves(v, 6, 70, 200, 0.006)
    return v * torch.exp(0.06 * normal(b, 1, 3)) * torch.exp(0.05 * normal(b, 1, 1))


def _landmarks(stock: Stock, v: Tensor) -> Tensor:
    marks = torch.zeros(len(v), 10, 3, device=DEVICE)
    marks[:, 0], marks[:, 1] = v[:, stock.notch], v[:, stock.xiphoid]
    for q in range(2):
        nipple = v[:, stock.nipple[q]]
        marks[:, 2 + q] = nipple
        skin = v[:, stock.breast[q]]
        marks[:, 4 + q] = skin[torch.arange(len(v), device=DEVICE), skin[..., 1].argmin(1)]
        ids, weights = stock.line[q]
        line = (v[:, ids] * weights[None, :, :, None]).sum(2)
        level = torch.softmax(-(((line[..., 1] - nipple[:, None, 1]) / 2.0) ** 2), 1)
        marks[:, 6 + q] = (line * level[..., None]).sum(1)
        marks[:, 6 + q, 1] = nipple[:, 1]
        marks[:, 8 + q] = v[:, stock.fold[q]]
    return marks


def _add_nipples(
    stock: Stock, points: Tensor, along: Tensor, marks: Tensor, normals: Tensor, absent: Tensor
) -> None:
    """Raise areola and nipple, also flat and inverted ones, on the samples; their landmarks go with them."""
    b = len(points)
    for q in range(2):
        r = stock.at_samples(stock.radius[q])
        near = torch.nonzero(r < 0.6)[:, 0]
        away = (points[:, near] - marks[:, 2 + q, None]).norm(dim=2)
        own = torch.sigmoid((0.45 - r[near]) / 0.03)
        narrow, wide = uniform(4, 8, b, 1), uniform(11, 26, b, 1)
        nipple = torch.where(happens(0.25, b, 1), uniform(-2.5, 1.0, b, 1), uniform(1.0, 9.0, b, 1))
        none = torch.zeros(b, 1, device=DEVICE)
        areola = torch.where(happens(0.35, b, 1), none, uniform(0, 4.5, b, 1))
        relief = nipple * torch.exp(-((away / narrow) ** uniform(1.5, 4.5, b, 1)))
        relief = relief + areola * torch.exp(-((away / wide) ** 4))
        there = (absent != q + 1)[:, None]
        points[:, near] = points[:, near] + (relief * there * own)[..., None] * along[:, near]
        marks[:, 2 + q] = marks[:, 2 + q] + normals[:, stock.nipple[q]] * ((nipple + areola) * there)


def _kept(stock: Stock, points: Tensor, marks: Tensor) -> Tensor:
    """What the operator's crop leaves: neck, arms and belly are cut somewhere."""
    b, level, arm = len(points), points[..., 1], stock.at_samples(stock.arm)[None]
    kept = (level < marks[:, 0, 1:2] + uniform(22, 130, b, 1)) & (arm < uniform(15, 185, b, 1))
    kept &= arm > -uniform(15, 185, b, 1)
    nothing = torch.full((b, 1), -900.0, device=DEVICE)
    bottom = torch.where(happens(0.5, b, 1), uniform(-150, -20, b, 1), nothing)
    lowest = torch.minimum(marks[:, 4:10, 1].amin(1, keepdim=True), marks[:, 1, 1:2])
    return kept & (level > lowest + bottom.clamp(max=-15))


def _scanned(points: Tensor, along: Tensor) -> Tensor:
    """What three views see, now and then two; or everything, as from a scanner that walks around."""
    b = len(points)
    everything = happens(0.2, b)
    seen = torch.zeros(points.shape[:2], dtype=torch.bool, device=DEVICE)
    for base in (-45.0, 0.0, 45.0):
        angle = (uniform(-12, 12, b) + base * uniform(0.7, 1.3, b)) * math.radians(1)
        turn = small_turn(b, 4, 12) @ yaw(angle)
        p, facing = turned(points, turn), turned(along, turn)[..., 2]
        pixel = ((p[..., :2] + 450) / 5).long().clamp(0, 179)
        flat = pixel[..., 1] * 180 + pixel[..., 0]
        front = torch.full((b, 180 * 180), -1e9, device=DEVICE).scatter_reduce(1, flat, p[..., 2], "amax")
        hit = p[..., 2] > front.gather(1, flat) - 9
        fails = happens(0.12, b, 1) & (base != 0)
        seen |= hit & (facing > math.cos(math.radians(76))) & ~fails
    return seen | everything[:, None]


def _hole(points: Tensor) -> Tensor:
    b = len(points)
    centre = points[torch.arange(b, device=DEVICE), torch.randint(points.shape[1], (b,), device=DEVICE)]
    radius = torch.where(happens(0.35, b), log_uniform(4, 38, b), torch.zeros(b, device=DEVICE))
    away = ((points - centre[:, None]) * torch.exp(0.4 * normal(b, 1, 3))).norm(dim=2)
    return away <= radius[:, None]


def _scenery(stock: Stock, v: Tensor, marks: Tensor, count: int = 5000) -> tuple[Tensor, Tensor]:
    """Head, hips, longer arms, something on the floor: points, and whether they are there."""
    b, points, there = len(v), [], []

    def ellipsoid(centre: Tensor, radii: Tensor, chance: float) -> None:
        points.append(centre[:, None] + unit(normal(b, count, 3)) * radii[:, None])
        there.append(happens(chance, b, 1).expand(b, count))

    def some(*ranges: tuple[float, float]) -> Tensor:
        return torch.stack([uniform(*r, b) for r in ranges], 1)

    at = torch.stack([8 * normal(b), uniform(130, 200, b), uniform(-60, 10, b)], 1)
    ellipsoid(marks[:, 0] + at, some((65, 90), (95, 130), (80, 110)), 0.3)
    at = torch.stack([8 * normal(b), uniform(-330, -220, b), uniform(-110, -60, b)], 1)
    ellipsoid(marks[:, 1] + at, some((130, 210), (60, 160), (90, 150)), 0.3)
    for sign in (1, -1):
        arm = stock.arm * sign
        end, joint = v[:, arm > 150].mean(1), v[:, (arm > 60) & (arm < 90)].mean(1)
        way = unit(end - joint + 40 * normal(b, 3))
        share, around = uniform(0, 1, b, count, 1), unit(normal(b, count, 3))
        limb = end[:, None] + way[:, None] * share * uniform(60, 300, b, 1, 1)
        points.append(limb + around * uniform(28, 48, b, 1, 1))
        there.append(happens(0.25, b, 1).expand(b, count))
    at = 250 * normal(b, 3) * tensor([1.0, 1.0, 0.6]) + tensor([0.0, -150.0, -200.0])
    ellipsoid(marks[:, 1] + at, uniform(5, 120, b, 3), 0.12)
    return torch.cat(points, 1), torch.cat(there, 1)


def no_bodies(b: int, n: int = 30_000, parts: int = 7) -> Tensor:
    """Things that are no torso: unions of ellipsoids and boxes of bodily size, (b, about n, 3)."""
    there = torch.rand(b, parts, device=DEVICE) < uniform(0.15, 0.9, b, 1)
    points: list[Tensor] = []
    for k in range(parts):
        ball = unit(normal(b, n // parts, 3))
        box = ball / ball.abs().amax(2, keepdim=True)
        shape = torch.where(happens(0.4, b, 1, 1), box, ball)
        radii, turn = log_uniform(15, 260, b, 1, 3), any_turn(b)
        part = turned(shape * radii, turn) + (130 * normal(b, 1, 3) if k else 0)
        points.append(torch.where(there[:, k, None, None], part, points[0]) if k else part)
    return torch.cat(points, 1)


# --------------------------------------------------------------------------------------------------------------------
# Views, as breastmorph.scan.views.render makes them, with noise
# --------------------------------------------------------------------------------------------------------------------


def render(
    p: Tensor, alive: Tensor, n: int, pixel: float, colours: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Depth and colours (b, c, n, n) of points in view coordinates, and where there is skin (b, 1, n, n)."""
    b, outside = len(p), n * n
    cell = torch.floor((p[..., :2] + n * pixel / 2) / pixel).long()
    inside = alive & (cell >= 0).all(2) & (cell < n).all(2)
    flat = torch.where(inside, cell[..., 1] * n + cell[..., 0], torch.full_like(cell[..., 0], outside))
    front = torch.full((b, outside + 1), -1e9, device=DEVICE).scatter_reduce(1, flat, p[..., 2], "amax")
    weight = ((p[..., 2] > front.gather(1, flat) - 0.5 * pixel - 1) & inside).float()

    def total(values: Tensor) -> Tensor:
        sums = torch.zeros(b, outside + 1, device=DEVICE).scatter_add_(1, flat, values)
        return sums[:, :-1].view(b, n, n)

    count = total(weight)[:, None]
    valid = (count > 0).float()
    layers = [p[..., 2], *(colours.unbind(2) if colours is not None else ())]
    image = torch.stack([total(weight * layer) for layer in layers], 1) / count.clamp_min(1e-9) * valid
    kernel, c = torch.ones(1, 1, 3, 3, device=DEVICE), len(layers)
    for _ in range(2):
        around = functional.conv2d(valid, kernel, padding=1)
        mean = functional.conv2d((image * valid).reshape(b * c, 1, n, n), kernel, padding=1)
        fill = (valid == 0) & (around >= 4.5)
        image = torch.where(fill, mean.view(b, c, n, n) / around.clamp_min(1), image)
        valid = torch.maximum(valid, fill.float())
    return image, valid


def noisy(depth: Tensor, valid: Tensor, pixel: float, most_blur: float) -> Tensor:
    """Depth with a scanner's noise, fine or coarse, and smoothed by up to so many mm."""
    b, _, n, _ = depth.shape
    sd = uniform(0, 1, b, 1, 1, 1) ** 2 * 1.2
    fine, half = normal(b, 1, n, n), normal(b, 1, n // 2, n // 2)
    coarse = functional.interpolate(half, size=(n, n), mode="bilinear", align_corners=False)
    depth = depth + sd * torch.where(happens(0.5, b, 1, 1, 1), fine, 1.5 * coarse)
    if most_blur:
        sharp = happens(0.3, b)
        sigma = torch.where(sharp, torch.zeros(b, device=DEVICE), uniform(0.2, most_blur, b)) / pixel
        x = torch.arange(-4, 5, device=DEVICE).float()
        bell = torch.exp(-(x[None] ** 2) / (2 * sigma[:, None] ** 2 + 1e-3))
        bell = bell / bell.sum(1, keepdim=True)

        def blurred(a: Tensor) -> Tensor:
            a = functional.conv2d(a.transpose(0, 1), bell[:, None, None, :], padding=(0, 4), groups=b)
            return functional.conv2d(a, bell[:, None, :, None], padding=(4, 0), groups=b).transpose(0, 1)

        depth = blurred(depth * valid) / blurred(valid).clamp_min(1e-3)
    return depth * valid


def channels(depth: Tensor, valid: Tensor, pixel: float) -> tuple[Tensor, Tensor]:
    """Depth less its mean, where there is skin, slopes (b, 4, n, n); and that mean (b,)."""
    mean = (depth * valid).sum((2, 3), keepdim=True) / valid.sum((2, 3), keepdim=True).clamp_min(1)
    rest = (depth - mean) * valid
    right, up = torch.zeros_like(depth), torch.zeros_like(depth)
    right[..., 1:-1] = (rest[..., 2:] - rest[..., :-2]) / (2 * pixel) * valid[..., 2:] * valid[..., :-2]
    up[..., 1:-1, :] = (rest[..., 2:, :] - rest[..., :-2, :]) / (2 * pixel)
    up[..., 1:-1, :] *= valid[..., 2:, :] * valid[..., :-2, :]
    return torch.cat([rest / (16 * pixel), valid, right.clamp(-2, 2), up.clamp(-2, 2)], 1), mean[:, 0, 0, 0]


def skin_colour(points: Tensor, centre: Tensor, nipple: Tensor) -> tuple[Tensor, Tensor]:
    """Differences in L*a*b* / 10 of points (b, k, 3), and whether the scan has colours at all (b, 1)."""
    b, k = points.shape[:2]
    away = ((points - nipple[:, None]) * torch.exp(0.12 * normal(b, 1, 3))).norm(dim=2)
    coloured, none = happens(0.6, b, 1), torch.zeros(b, 1, device=DEVICE)
    contrast = torch.where(happens(0.15, b, 1), none, uniform(0, 1, b, 1) ** 1.3)
    radius, soft = uniform(11, 30, b, 1), uniform(1.0, 5, b, 1)
    areola = torch.sigmoid((radius - away) / soft)
    tip = torch.sigmoid((uniform(3.5, 7, b, 1) - away) / uniform(0.5, 2, b, 1))
    light, red, yellow = -uniform(2, 20, b, 1), uniform(-1, 9, b, 1), uniform(-5, 4, b, 1)
    light = torch.where(happens(0.06, b, 1), -0.4 * light, light)
    lightness = light * contrast * (areola + uniform(0, 0.7, b, 1) * tip)
    lab = torch.stack([lightness, red * contrast * (areola + 0.5 * tip), yellow * contrast * areola], 2)
    for channel, most in enumerate((4.0, 2.0, 2.0)):
        length = log_uniform(8, 120, b, 6, 1)
        wave = unit(normal(b, 6, 3)) * 6.28 / length
        mottled = torch.cos(points @ wave.transpose(1, 2) + uniform(0, 6.28, b, 1, 6)) * normal(b, 1, 6)
        lab[..., channel] += mottled.mean(2) * math.sqrt(2) * uniform(0, most, b, 1)
    falls = normal(b, 1, 3) * 0.04
    lab[..., 0] += ((points - centre[:, None]) * falls).sum(2) * uniform(0, 2, b, 1)

    def somewhere() -> Tensor:
        return points[torch.arange(b, device=DEVICE), torch.randint(k, (b,), device=DEVICE)][:, None]

    for _ in range(3):  # moles and blotches
        off = (points - somewhere()).norm(dim=2)
        mark = torch.sigmoid((log_uniform(1.2, 9, b, 1) - off) / 0.8) * happens(0.4, b, 1)
        lab[..., 0] += mark * uniform(-25, 3, b, 1)
        lab[..., 1] += mark * uniform(-2, 10, b, 1)
    for _ in range(2):  # scars, strap marks
        across = unit(normal(b, 3))[:, None]
        off = ((points - somewhere()) * across).sum(2).abs()
        mark = torch.sigmoid((uniform(1, 9, b, 1) - off) / uniform(0.5, 3, b, 1)) * happens(0.25, b, 1)
        lab[..., 0] += mark * uniform(-8, 8, b, 1)
        lab[..., 1] += mark * uniform(-1, 8, b, 1)
    lab = lab + normal(b, k, 3) * uniform(0, 2.5, b, 1, 1)
    return lab / 10 * coloured[..., None], coloured.float()


# --------------------------------------------------------------------------------------------------------------------
# Nets, as breastmorph.scan.views.Net computes them
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What a net looks at and answers."""

    channels: int
    marks: int
    flags: int
    size: int  # pixels along a side
    pixel: float  # mm
    blur: float = 0.0  # mm at most


KINDS = {
    "pose": Kind(4, 1, 8, 64, 10.0),
    "coarse": Kind(4, 10, 3, 96, 6.0, 3.0),
    "breast": Kind(4, 4, 1, 64, 3.5, 2.5),
    "midline": Kind(4, 2, 1, 64, 5.0, 2.5),
    "nipple": Kind(8, 1, 1, 48, 2.0, 2.5),
}
WIDTHS = (16, 32, 64, 96)


def new_net(kind: Kind) -> Any:
    """A net's layers by name."""

    def layer(before: int, after: int, stride: int = 1) -> Any:
        convolution = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(after, momentum=0.02), nn.ReLU(True))

    a, b, c, d = WIDTHS
    layers = {"a": layer(kind.channels, a), "b": layer(a, b, 2), "b2": layer(b, b), "c": layer(b, c, 2)}
    layers |= {"c2": layer(c, c), "d": layer(c, d, 2), "d2": layer(d, d), "g": nn.Linear(d, d)}
    layers |= {"u": layer(d + c, c), "h": nn.Conv2d(c, kind.marks * 7, 1), "f": nn.Linear(d, kind.flags)}
    return nn.ModuleDict(layers).to(DEVICE)


def votes(net: Any, kind: Kind, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Landmarks (b, k, 3) in mm about the view's centre, log deviations (b, k, 3), flags (b, f)."""
    fine = net["c2"](net["c"](net["b2"](net["b"](net["a"](x)))))
    coarse = net["d2"](net["d"](fine))
    whole = functional.relu(net["g"](coarse.mean((2, 3))))
    coarse = functional.interpolate(coarse + whole[:, :, None, None], scale_factor=2, mode="nearest")
    head = net["h"](net["u"](torch.cat([coarse, fine], 1)))
    b, cells = len(x), head.shape[-1]
    head = head.view(b, kind.marks, 7, cells * cells)
    belief = torch.softmax(head[:, :, 0], 2)[:, :, None]
    along = (torch.arange(cells, device=DEVICE) + 0.5) * 4 * kind.pixel - kind.size * kind.pixel / 2
    flat = torch.stack([along[None].expand(cells, cells), along[:, None].expand(cells, cells)], 0)
    depth = functional.avg_pool2d(x[:, :1], 4) / functional.avg_pool2d(x[:, 1:2], 4).clamp_min(0.1)
    cell = [flat.reshape(1, 1, 2, -1).expand(b, 1, 2, -1), depth.reshape(b, 1, 1, -1) * 16 * kind.pixel]
    points = ((torch.cat(cell, 2) + 8 * kind.pixel * head[:, :, 1:4]) * belief).sum(3)
    log_sd = (head[:, :, 4:7] * belief).sum(3).clamp(-1.5, 5)
    return points, log_sd, net["f"](whole)


# --------------------------------------------------------------------------------------------------------------------
# Lessons: one a net
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class School:
    """The nets, and a book of their errors."""

    nets: dict[str, Any]
    book: dict[str, list[Tensor]] = field(default_factory=dict)
    said: dict[str, float] = field(default_factory=dict)

    def look(
        self, name: str, view: Tensor, alive: Tensor, colours: Tensor | None = None, blur: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Channels of points in view coordinates, and their mean depth."""
        kind = KINDS[name]
        image, valid = render(view, alive, kind.size, kind.pixel, colours)
        x, depth = channels(noisy(image[:, :1], valid, kind.pixel, kind.blur * blur), valid, kind.pixel)
        if colours is not None:
            mean = (image[:, 1:] * valid).sum((2, 3), keepdim=True) / valid.sum(
                (2, 3), keepdim=True
            ).clamp_min(1)
            x = torch.cat([x, ((image[:, 1:] - mean) * valid).clamp(-3, 3)], 1)
        return x, depth

    def nothing(self, name: str, b: int) -> Tensor:
        """Channels of things that are no torso."""
        things = no_bodies(b)
        things = things - (things.mean(1, keepdim=True) + 30 * normal(b, 1, 3))
        seen = torch.ones(things.shape[:2], dtype=torch.bool, device=DEVICE)
        return self.look(name, things, seen, blur=False)[0]

    def told(self, name: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A net's votes."""
        return votes(self.nets[name], KINDS[name], x)

    def missed(self, name: str, points: Tensor, log_sd: Tensor, true: Tensor, exists: Tensor) -> Tensor:
        """Minus the log likelihood of landmarks (b, k, 3), noted in the book."""
        off = (points - true).detach()
        for k in range(points.shape[1]):
            there = exists[:, k] > 0
            if there.any():
                row = torch.cat([off[there, k], torch.exp(log_sd[there, k]).detach()], 1)
                self.book.setdefault(f"{name}{k}", []).append(row)
        loss = ((points - true).abs() * torch.exp(-log_sd) + log_sd).sum(2)
        return (loss * exists).sum() / exists.sum().clamp_min(1)

    def report(self) -> None:
        """Print median and 90th percentile of the errors by landmark, and how far the deviations hold."""
        for name, rows in self.book.items():
            off, sd = torch.cat(rows).split(3, dim=1)
            far, axes = off.norm(dim=1), off.abs().median(0).values.cpu().numpy().round(1)
            scaled = (off / sd).pow(2).mean(0).sqrt().cpu().numpy().round(2)
            print(f"  {name}: {far.median():.1f} / {torch.quantile(far, 0.9):.1f}  axes {axes}  sd {scaled}")
        sys.stdout.flush()
        self.book.clear()


def yes_or_no(said: Tensor, true: Tensor | float) -> Tensor:
    """Loss of log odds (...)."""
    truth = true if isinstance(true, Tensor) else torch.full_like(said, true)
    return functional.binary_cross_entropy_with_logits(said, truth)


def lesson_pose(school: School, bodies: Bodies) -> Tensor:
    """From any direction, twice: whether it is nearly upright, how to turn it, where its centre is, what it is."""
    points, alive = bodies.scene
    chosen = torch.randperm(points.shape[1], device=DEVICE)[:45_000]
    points, alive, b = points[:, chosen], alive[:, chosen], len(points)
    total = torch.zeros((), device=DEVICE)
    for _ in range(2):
        leans = happens(0.65, b)[:, None, None]
        lean = about(unit(normal(b, 3)) * math.radians(1) * uniform(0, 75, b, 1))
        turn = torch.where(leans, lean, any_turn(b))
        view = turned(points, turn)
        middle = (view * alive[..., None]).sum(1) / alive.sum(1, keepdim=True).clamp_min(1) + 20 * normal(
            b, 3
        )
        x, depth = school.look("pose", view - middle[:, None], alive)
        where, log_sd, flags = school.told("pose", torch.cat([x, school.nothing("pose", b // 2)]))
        angle = torch.acos(((turn.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2).clamp(-1, 1))
        near, upright = (angle < math.radians(70)).float(), angle < math.radians(50)
        first, second = flags[:b, 1:4], flags[:b, 4:7]
        e = unit(first)
        f = unit(second - (second * e).sum(1, keepdim=True) * e)
        said, wanted = torch.stack([e, f, torch.linalg.cross(e, f)], 2), turn.transpose(1, 2)
        turning = (((said - wanted) ** 2).sum((1, 2)) * near).sum() / near.sum().clamp_min(1)
        turning = turning + 0.01 * ((first.norm(dim=1) - 1) ** 2 + (second.norm(dim=1) - 1) ** 2).mean()
        centre = turned(bodies.centre[:, None], turn)[:, 0] - middle
        centre[:, 2] -= depth
        off = school.missed("pose", where[:b], log_sd[:b], centre[:, None], near[:, None])
        nothing = yes_or_no(flags[b:, 7], 0.0) + yes_or_no(flags[b:, 0], 0.0)
        total = total + yes_or_no(flags[:b, 0], upright.float()) + 2 * turning + 0.2 * off
        total = total + 0.5 * yes_or_no(flags[:b, 7], 1.0) + 0.5 * nothing
        wrong = torch.rad2deg(torch.acos((((said * wanted).sum((1, 2)) - 1) / 2).clamp(-1, 1)))
        school.said["turn"] = float(wrong[upright].detach().median()) if upright.any() else 0.0
    return total


def lesson_coarse(school: School, bodies: Bodies) -> Tensor:
    """Nearly upright from the front: all landmarks, which side is flat, whether it is a torso."""
    points, alive = bodies.scene
    b, exists = len(points), bodies.exists
    turn, off = small_turn(b, 8, 24), (12 * normal(b, 3)).clamp(-40, 40)
    centre = (bodies.centre + off)[:, None]
    x, depth = school.look("coarse", turned(points - centre, turn), alive)
    where, log_sd, flags = school.told("coarse", torch.cat([x, school.nothing("coarse", b // 2)]))
    true = turned(bodies.marks - centre, turn)
    true[..., 2] -= depth[:, None]
    loss = school.missed("coarse", where[:b], log_sd[:b], true, exists)
    school.said["flat, front"] = float(((flags[:b, :2] > 0) == (bodies.gone > 0.5)).float().mean())
    loss = loss + 2 * yes_or_no(flags[:b, :2], bodies.gone)
    return loss + yes_or_no(flags[:b, 2], 1.0) + yes_or_no(flags[b:, 2], 0.0)


def lesson_breast(school: School, bodies: Bodies) -> Tensor:
    """Each breast from its side and from below, the right one mirrored: its landmarks, whether there is one."""
    points = torch.cat([bodies.points, bodies.extra], 1)
    alive, b, exists = torch.cat([bodies.alive, bodies.extra_alive], 1), len(points), bodies.exists
    below = about(tensor([[-math.radians(25.0), 0.0, 0.0]])) @ yaw(tensor([math.radians(30.0)]))
    total = torch.zeros((), device=DEVICE)
    for q in range(2):
        flip = tensor([1.0 - 2 * q, 1.0, 1.0])
        centre = (bodies.marks[:, 2 + q] + (12 * normal(b, 3)).clamp(-36, 36))[:, None]
        turn = small_turn(b, 7, 20) @ below
        x, depth = school.look("breast", turned((points - centre) * flip, turn), alive)
        where, log_sd, flags = school.told("breast", x)
        own = [2 + q, 4 + q, 6 + q, 8 + q]
        true = turned((bodies.marks[:, own] - centre) * flip, turn)
        true[..., 2] -= depth[:, None]
        total = total + school.missed("breast", where, log_sd, true, exists[:, own])
        total = total + 2 * yes_or_no(flags[:, 0], bodies.gone[:, q])
        school.said["flat, close"] = float(((flags[:, 0] > 0) == (bodies.gone[:, q] > 0.5)).float().mean())
    return total


def lesson_midline(school: School, bodies: Bodies) -> Tensor:
    """The sternum from the front: notch and xiphoid."""
    points, alive = bodies.scene
    b, marks = len(points), bodies.marks
    turn = small_turn(b, 7, 20)
    centre = 0.65 * marks[:, 0] + 0.35 * marks[:, 1] + (10 * normal(b, 3)).clamp(-30, 30)
    x, depth = school.look("midline", turned(points - centre[:, None], turn), alive)
    where, log_sd, _ = school.told("midline", x)
    true = turned(marks[:, :2] - centre[:, None], turn)
    true[..., 2] -= depth[:, None]
    return school.missed("midline", where, log_sd, true, bodies.exists[:, :2])


def lesson_nipple(stock: Stock, school: School, bodies: Bodies) -> Tensor:
    """The skin about each nipple along its normal, coloured or not, the right one mirrored."""
    b, size, total = len(bodies.points), KINDS["nipple"].size, torch.zeros((), device=DEVICE)
    for q in range(2):
        own = torch.nonzero(stock.at_samples(stock.radius[q]) < 0.9)[:, 0]
        points, normals, alive = bodies.points[:, own], bodies.normals[:, own], bodies.alive[:, own]
        nipple, off = bodies.marks[:, 2 + q], normal(b, 3) * 9
        start = nipple + off * (26 / off.norm(dim=1, keepdim=True).clamp_min(26))
        nearest = ((points - start[:, None]).norm(dim=2) + 1e6 * ~alive).argmin(1)
        centre = points[torch.arange(b, device=DEVICE), nearest]
        around = ((points - centre[:, None]).norm(dim=2) < 25) & alive
        z = unit((normals * around[..., None]).sum(1) + 1e-6 * tensor([0.0, 0.0, 1.0]))
        z = (small_turn(b, 6, 18) @ z[..., None])[..., 0]
        x = unit(torch.linalg.cross(tensor([0.0, 1.0, 0.0]).expand(b, 3) + 0.1 * normal(b, 3), z))
        turn = (
            torch.stack([x, torch.linalg.cross(z, x), z], 1) * tensor([1.0 - 2 * q, 1.0, 1.0])[None, :, None]
        )
        view = turned(points - centre[:, None], turn)
        colours, coloured = skin_colour(points, centre, nipple)
        shallow = (view[..., 2] > -60) & (normals * z[:, None]).sum(2).gt(-0.2)
        shown, depth = school.look("nipple", view, alive & shallow, colours)
        known = coloured[:, :, None, None].expand(-1, 1, size, size)
        where, log_sd, flags = school.told("nipple", torch.cat([shown, known], 1))
        true = turned((nipple - centre)[:, None], turn)
        true[..., 2] -= depth[:, None]
        total = total + school.missed("nipple", where, log_sd, true, bodies.exists[:, 2 + q : 3 + q])
        total = total + yes_or_no(flags[:, 0], bodies.gone[:, q])
    return total


# --------------------------------------------------------------------------------------------------------------------
# Training
# --------------------------------------------------------------------------------------------------------------------


def train(
    data: Path,
    out: Path,
    seconds: float,
    only: list[str],
    start: Path | None,
    rate: float,
    batch: int,
    seed: int,
) -> None:
    """Train the nets named for so long, and write all of them."""
    if torch is None:
        sys.exit(
            "Training needs torch, which is not installed here. Install it (pytorch.org), or use the `data` command."
        )
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high" if DEVICE == "cuda" else "highest")
    out.mkdir(parents=True, exist_ok=True)
    stock, school = Stock(data), School({name: new_net(kind) for name, kind in KINDS.items()})
    if start:
        learnt = torch.load(start, map_location=DEVICE, weights_only=True)
        for name, net in school.nets.items():
            net.load_state_dict(learnt[name])
    lessons: dict[str, Callable[[School, Bodies], Tensor]] = {
        "pose": lesson_pose,
        "coarse": lesson_coarse,
        "breast": lesson_breast,
        "midline": lesson_midline,
        "nipple": lambda *given: lesson_nipple(stock, *given),
    }

    def taught() -> dict[str, Tensor]:
        bodies = new_bodies(stock, batch)
        return {name: lesson(school, bodies) for name, lesson in lessons.items() if name in only}

    _run(school, [p for name in only for p in school.nets[name].parameters()], taught, seconds, rate)
    for net in school.nets.values():
        net.eval()
    school.book.clear()
    with torch.no_grad():
        for _ in range(20):
            taught()
    print("bodies that were not trained on:")
    school.report()
    np.savez(out / "nets.npz", **{k: v.astype(np.float16) for k, v in _weights(school.nets.items())})
    torch.save({name: net.state_dict() for name, net in school.nets.items()}, out / "nets.pt")


def _run(
    school: School,
    parameters: list[Any],
    taught: Callable[[], dict[str, Tensor]],
    seconds: float,
    rate: float,
) -> None:
    """Steps until the time is over, their size falling like a cosine."""
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=1e-3)
    begin, step, told = time.monotonic(), 0, 0.0
    while (share := (time.monotonic() - begin) / seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, step / 200 + 0.02) * (0.5 * (1 + math.cos(math.pi * share)) + 0.003)
        losses = taught()
        optimiser.zero_grad()
        sum(losses.values(), torch.zeros((), device=DEVICE)).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 5.0)
        optimiser.step()
        step += 1
        if step % 100 == 0 or step < 3:
            shown = {name: round(value.item(), 2) for name, value in losses.items()}
            print(step, f"{time.monotonic() - begin:.0f} s", shown, school.said, flush=True)
        if share - told > 0.2:
            told = share
            school.report()
        elif step % 100 == 0:
            school.book.clear()
    print(f"{step} steps")


def _weights(nets: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """All weights by name, the normalisation of a batch folded into the convolution before it."""
    for name, net in nets:
        for key, layer in net.items():
            weight, bias = (layer.weight, layer.bias) if key in "gfh" else _folded(layer)
            yield f"{name}/{key}/w", weight.detach().cpu().numpy()
            yield f"{name}/{key}/b", bias.detach().cpu().numpy()


def _folded(layer: Any) -> tuple[Tensor, Tensor]:
    convolution, batch = layer[0], layer[1]
    scale = batch.weight / torch.sqrt(batch.running_var + batch.eps)
    return convolution.weight * scale[:, None, None, None], batch.bias - batch.running_mean * scale


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    data = commands.add_parser("data", help="make the training data from phantoms")
    data.add_argument("out", type=Path, metavar="OUT.npz")
    data.add_argument("--n", type=int, default=900, help="bodies (900)")
    data.add_argument("--jobs", type=int, default=1, help="processes (1)")
    training = commands.add_parser("train", help="train the nets (needs torch)")
    training.add_argument("data", type=Path, metavar="DATA.npz")
    training.add_argument("out", type=Path, metavar="OUT", help="folder for nets.npz and nets.pt")
    training.add_argument("--seconds", type=float, default=420.0)
    training.add_argument("--only", default=",".join(KINDS), help="nets, separated by commas")
    training.add_argument("--start", type=Path, help="nets.pt of a run before")
    training.add_argument("--rate", type=float, default=2.5e-3, help="greatest size of a step (2.5e-3)")
    training.add_argument("--batch", type=int, default=32)
    training.add_argument("--seed", type=int, default=0)
    given = vars(parser.parse_args())
    if given.pop("command") == "data":
        make_data(**given)
        return
    given["only"] = given["only"].split(",")
    if strange := [name for name in given["only"] if name not in KINDS]:
        parser.error(f"no such net: {', '.join(strange)} (there are {', '.join(KINDS)})")
    train(**given)


if __name__ == "__main__":
    main()
