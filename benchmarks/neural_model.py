"""Model against model: linear ones and a neural implicit one, by reconstruction of scans that none has seen.

    python benchmarks/neural_model.py prepare [--data DATA.npz] [--train 48] [--test 12] # with BreastMorph
    python benchmarks/neural_model.py run [--data DATA.npz] [--out OUT.json] [--steps 6000]  # with PyTorch
    python benchmarks/neural_model.py page [--out OUT.json]   # the table of docs/peers.md

`prepare` makes phantoms, registers the training ones by the default and by the printed method, and keeps principal
components of each, of the true shapes, the scans and the truth; `run` needs no BreastMorph. PyTorch is no dependency of
the package.

All models have the same training scans, the same rigid alignment (BreastMorph's, by the landmarks), the same part of
the skin (the breasts and what is near) and the same number of coefficients. The neural model is an auto-decoder
(DeepSDF): a code of each scan and one network give the signed distance of a point. The Gaussian process bends the
template by a kernel whose length and deviation are chosen on training scans. Judged by the true surface of the breast.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
COEFFICIENTS = (8, 16, 32)
NEAR = 40.0  # mm around the mean breasts that take part
_UNIT = 0.02  # mm in which positions are kept
WAYS = {"ours": "default", "printed": "paper", "start": "rigid"}

# --------------------------------------------------------------------------------------------------------------------
# The data, with BreastMorph
# --------------------------------------------------------------------------------------------------------------------


def registered(place: Path, one: str) -> None:
    """Register one scan in all ways and keep the vertices; what is there already is kept."""
    from breastmorph.registration import Registrar, preset
    from breastmorph.scan.check import find_scans, load_scan
    from breastmorph.template import default_template

    files = next(files for files in find_scans(place / "scans", place / "landmarks") if files.id == one)
    scan, template = load_scan(files.mesh, files.landmarks[0]), default_template()
    for name, which in WAYS.items():
        kept = place / f"{name}-{one}.npy"
        if not kept.is_file():
            np.save(kept, Registrar(template, preset(which)).register(scan).vertices)


def prepare(out: Path, train: int, test: int, seed: int, jobs: int) -> None:
    """Scans, truth and the linear models of a phantom cohort, in one file."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from scipy.spatial import cKDTree

    from breastmorph.evaluation.truth import Tie, load_truth
    from breastmorph.mesh.geometry import Similarity, vertex_normals
    from breastmorph.phantom import mean_torso, write_cohort
    from breastmorph.scan.check import find_scans, load_scan
    from breastmorph.template import default_template

    place = out.with_suffix("")
    template, mean = default_template(), mean_torso()
    tie = Tie.of(template, mean.mesh, mean.landmarks)
    if not (place / "cohort.csv").is_file():
        write_cohort(place, train + test, seed, jobs)
    found = find_scans(place / "scans", place / "landmarks")
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        list(pool.map(registered, [place] * len(found), [one.id for one in found]))
    truths = [load_truth(place / "truth" / f"{one.id}.npz", tie) for one in found]
    breast = np.mean([truth.breast for truth in truths], axis=0) > 0.5
    near = cKDTree(template.mesh.vertices[breast])
    part = near.query(template.mesh.vertices)[0] <= NEAR
    shapes: dict[str, list[np.ndarray]] = {"ours": [], "printed": [], "true": []}
    data: dict[str, np.ndarray] = {"counts": np.array([train, test, seed])}
    for k, (one, truth) in enumerate(zip(found, truths, strict=True)):
        scan = load_scan(one.mesh, one.landmarks[0])
        start = np.load(place / f"start-{one.id}.npy")
        placed = Similarity.fit(start, template.mesh.vertices, with_scale=False)
        points = placed.apply(scan.mesh.vertices)
        seen = near.query(points)[0] <= NEAR
        data[f"scan_{k}"] = np.round(points[seen] / _UNIT).astype(np.int16)
        data[f"normals_{k}"] = np.round(127 * vertex_normals(points, scan.mesh.faces)[seen]).astype(np.int8)
        true = placed.apply(scan.to_file.inverse().apply(truth.points))
        nipples = [name for name in scan.landmarks if "nipple" in name]
        data[f"nipples_{k}"] = placed.apply(scan.landmarks.array(nipples))
        if k >= train:
            data[f"truth_{k}"] = np.round(true / _UNIT).astype(np.int16)
            continue
        shapes["true"].append(true[part])
        for name in ("ours", "printed"):
            shapes[name].append(placed.apply(np.load(place / f"{name}-{one.id}.npy"))[part])
    for name, some in shapes.items():
        flat = np.stack(some).reshape(train, -1)
        _, size, modes = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
        many = max(COEFFICIENTS)
        data[f"{name}_mean"] = flat.mean(axis=0).astype(np.float32)
        data[f"{name}_modes"] = (modes[:many] * (size[:many, None] / np.sqrt(train - 1))).astype(np.float16)
    faces = template.mesh.faces
    inside = faces[part[faces].all(axis=1)]
    data["faces"] = np.searchsorted(np.flatnonzero(part), inside).astype(np.int32)
    data["breast_faces"] = faces[breast[faces].all(axis=1)].astype(np.int32)
    data["all_faces"] = faces.astype(np.int32)
    np.savez_compressed(out, **data)
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MB")


# --------------------------------------------------------------------------------------------------------------------
# The models, with PyTorch
# --------------------------------------------------------------------------------------------------------------------


class Linear:
    """A mean and modes (of unit variance) on a triangle mesh; fitted by closest points along normals."""

    def __init__(self, torch: Any, mean: Any, modes: Any, faces: Any) -> None:
        self.torch, self.mean, self.modes, self.faces = torch, mean, modes, faces

    def surface(self, code: Any) -> Any:
        """Vertices, (n, 3)."""
        return (self.mean + code @ self.modes[: len(code)]).reshape(-1, 3)

    def fitted(self, points: Any, k: int, rounds: int = 40) -> Any:
        """Coefficients by the posterior of closest points; the noise falls as they come nearer."""
        torch = self.torch
        code = torch.zeros(k, device=points.device)
        modes = self.modes[:k].reshape(k, -1, 3)
        for step in range(rounds):
            surface = self.surface(code)
            noise = max(1.0, 6.0 * 0.85**step)
            distance, nearest = closest(torch, points, surface)
            normals = mesh_normals(torch, surface, self.faces)[nearest]
            good = distance < 3.0 * noise + 5.0
            rows = (modes[:, nearest] * normals).sum(dim=2)[:, good].T  # (points, k)
            ahead = ((points - surface[nearest]) * normals).sum(dim=1)[good] + rows @ code
            # Neighbouring points are not independent: a fiftieth of them counts.
            weight = 0.02 / noise**2
            system = weight * rows.T @ rows + torch.eye(k, device=points.device)
            code = torch.linalg.solve(system, weight * rows.T @ ahead)
        return code

    def cloud(self, code: Any, n: int) -> tuple[Any, Any]:
        """Points of the surface with normals."""
        return sampled(self.torch, self.surface(code), self.faces, n)


def gaussian_process(
    torch: Any, mean: Any, faces: Any, k: int, length: float, deviation: float, seed: int = 0
) -> Linear:
    """The first modes of a template that bends by a Gaussian kernel, the same in all three directions."""
    vertices = mean.reshape(-1, 3)
    rng = np.random.default_rng(seed)
    some = vertices[torch.as_tensor(rng.choice(len(vertices), 1500, replace=False), device=mean.device)]

    def kernel(a: Any, b: Any) -> Any:
        return deviation**2 * torch.exp(-(torch.cdist(a, b) ** 2) / (2.0 * length**2))

    values, vectors = torch.linalg.eigh(kernel(some, some).double())
    each = k // 3 + 1
    values, vectors = values.flip(0)[:each], vectors.flip(1)[:, :each]
    modes = (kernel(vertices, some).double() @ vectors / values.sqrt()).float()  # Nystroem
    whole = torch.zeros(3 * each, len(vertices), 3, device=mean.device)
    for m in range(each):
        for axis in range(3):
            whole[3 * m + axis, :, axis] = modes[:, m]
    return Linear(torch, mean, whole[:k].reshape(k, -1), faces)


def decoder(torch: Any, k: int, width: int, layers: int, dropout: float) -> Any:
    """Signed distance in units of 100 mm from a code and a place, the input given once more half-way."""
    nn = torch.nn

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.bands = 5
            first = k + 3 + 6 * self.bands
            sizes = [first] + [width] * layers
            self.skip = layers // 2
            self.layers = nn.ModuleList(
                nn.Linear(sizes[i] + (first if i == self.skip else 0), width) for i in range(layers)
            )
            self.out = nn.Linear(width, 1)
            self.act = nn.Softplus(beta=100)
            self.drop = nn.Dropout(dropout)

        def forward(self, code: Any, place: Any) -> Any:
            waves = [f(place * (2.0**band)) for band in range(self.bands) for f in (torch.sin, torch.cos)]
            begin = torch.cat([code, place, *waves], dim=-1)
            value = begin
            for i, layer in enumerate(self.layers):
                value = torch.cat([value, begin], dim=-1) if i == self.skip else value
                value = self.drop(self.act(layer(value)))
            return self.out(value)[..., 0]

    return Decoder()


class Neural:
    """An auto-decoder: codes of the training scans and a network, learnt together."""

    def __init__(
        self, torch: Any, k: int, device: str, size: tuple[int, int], weight: float, dropout: float
    ) -> None:
        self.torch, self.k, self.device, self.weight = torch, k, device, weight
        self.net = decoder(torch, k, *size, dropout).to(device)
        self.losses: list[float] = []

    def train(self, pools: Any, steps: int, batch: int) -> None:
        """``pools`` (scans, samples, 4): places and signed distances, in units of 100 mm."""
        torch = self.torch
        scans, samples = pools.shape[:2]
        self.codes = torch.nn.Parameter(0.01 * torch.randn(scans, self.k, device=self.device))
        optimiser = torch.optim.Adam(
            [{"params": self.net.parameters(), "lr": 5e-4}, {"params": [self.codes], "lr": 1e-3}]
        )
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        rows = torch.arange(scans, device=self.device)[:, None]
        for step in range(steps):
            chosen = pools[rows, torch.randint(samples, (scans, batch), device=self.device)]
            found = self.net(self.codes[:, None].expand(-1, batch, -1), chosen[..., :3])
            loss = (
                limited(torch, found, chosen[..., 3]).mean() + self.weight * (self.codes**2).sum(dim=1).mean()
            )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            plan.step()
            if step % 1000 == 0 or step == steps - 1:
                self.losses.append(float(loss.detach()))
                print(f"  {self.k} coefficients, step {step}: {100 * self.losses[-1]:.3f} mm", flush=True)
        self.net.eval()
        for one in self.net.parameters():
            one.requires_grad_(False)
        self.deviation = self.codes.detach().std(dim=0)

    def fitted(self, pools: Any, weight: float, steps: int = 500, batch: int = 4096) -> Any:
        """Codes of new scans, all at once; (scans, k)."""
        torch = self.torch
        scans, samples = pools.shape[:2]
        codes = torch.nn.Parameter(self.codes.detach().mean(dim=0).repeat(scans, 1))
        optimiser = torch.optim.Adam([codes], lr=5e-3)
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        rows = torch.arange(scans, device=self.device)[:, None]
        for _ in range(steps):
            chosen = pools[rows, torch.randint(samples, (scans, batch), device=self.device)]
            found = self.net(codes[:, None].expand(-1, batch, -1), chosen[..., :3])
            # A code as long as those of the training scans is likely, as with the modes of a linear model.
            unusual = ((codes / self.deviation) ** 2).sum(dim=1).mean() / self.k
            loss = limited(torch, found, chosen[..., 3]).mean() + weight * unusual
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            plan.step()
        return codes.detach()

    def cloud(self, code: Any, around: Any, spacing: float = 1.5) -> tuple[Any, Any]:
        """Points of the zero surface within the box of ``around`` (mm), with normals, by Newton's steps from a grid."""
        torch = self.torch
        low, high = around.min(dim=0).values, around.max(dim=0).values
        axes = [
            torch.arange(float(a), float(b), spacing, device=self.device)
            for a, b in zip(low, high, strict=True)
        ]
        grid = torch.cartesian_prod(*axes)
        close = []
        for some in grid.split(2**20):
            value = 100.0 * self.net(code.expand(len(some), -1), some / 100.0)
            close.append(some[value.abs() < 1.5 * spacing])
        points = torch.cat(close)
        for _ in range(4):
            value, slope = self.slope(code, points)
            points = points - (value / slope.norm(dim=1).clamp_min(0.2) ** 2)[:, None] * slope
        value, slope = self.slope(code, points)
        good = value.abs() < 0.05
        return points[good], torch.nn.functional.normalize(slope[good], dim=1)

    def slope(self, code: Any, points: Any) -> tuple[Any, Any]:
        """Signed distance in mm at places (mm), and its gradient."""
        torch = self.torch
        values, slopes = [], []
        for some in points.split(2**18):
            some = some.detach().requires_grad_(True)
            value = 100.0 * self.net(code.expand(len(some), -1), some / 100.0)
            slopes.append(torch.autograd.grad(value.sum(), some)[0])
            values.append(value.detach())
        return torch.cat(values), torch.cat(slopes)


def chosen_training(
    torch: Any, pools: Any, scans: list[Any], device: str, size: tuple[int, int], steps: int, batch: int
) -> dict[str, float]:
    """How strictly codes are held, in training and in fitting, and the dropout: by training scans kept back."""
    held, k = max(len(pools) // 6, 1), COEFFICIENTS[len(COEFFICIENTS) // 2]
    least, chosen = float("inf"), {}
    for weight, dropout in ((1e-4, 0.0), (1e-3, 0.0), (1e-3, 0.1), (1e-2, 0.0)):
        model = Neural(torch, k, device, size, weight, dropout)
        model.train(pools[held:], steps, batch)
        for fit_weight in (1e-5, 1e-4, 1e-3):
            codes = model.fitted(pools[:held, :60_000], fit_weight)
            off = []
            for code, scan in zip(codes, scans[:held], strict=True):
                some = scan[:: max(len(scan) // 5000, 1)]
                value, slope = model.slope(code, some)
                off.append(float((value.abs() / slope.norm(dim=1).clamp_min(0.2)).mean()))
            print(
                f"  weight {weight:g}, dropout {dropout:g}, fit {fit_weight:g}: {np.mean(off):.3f} mm",
                flush=True,
            )
            if np.mean(off) < least:
                least = float(np.mean(off))
                chosen = {"weight": weight, "dropout": dropout, "fit_weight": fit_weight}
    return chosen


def limited(torch: Any, found: Any, wanted: Any) -> Any:
    """Differences of distances, those beyond 20 mm taken as 20."""
    return (found.clamp(-0.2, 0.2) - wanted.clamp(-0.2, 0.2)).abs()


def closest(torch: Any, points: Any, others: Any) -> tuple[Any, Any]:
    """Distance to and index of the nearest other point."""
    found = [torch.cdist(some, others).min(dim=1) for some in points.split(8192)]
    return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


def mesh_normals(torch: Any, vertices: Any, faces: Any) -> Any:
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    cross = torch.linalg.cross(b - a, c - a)
    whole = torch.zeros_like(vertices)
    for i in range(3):
        whole.index_add_(0, faces[:, i], cross)
    return torch.nn.functional.normalize(whole, dim=1)


def sampled(torch: Any, vertices: Any, faces: Any, n: int) -> tuple[Any, Any]:
    """Points of a mesh, even over its area, with normals."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    cross = torch.linalg.cross(b - a, c - a)
    drawn = torch.multinomial(cross.norm(dim=1), n, replacement=True)
    u, v = torch.rand(2, n, 1, device=vertices.device)
    over = u + v > 1
    u, v = torch.where(over, 1 - u, u), torch.where(over, 1 - v, v)
    points = a[drawn] + u * (b - a)[drawn] + v * (c - a)[drawn]
    return points, torch.nn.functional.normalize(cross[drawn], dim=1)


def pool(torch: Any, points: Any, normals: Any, n: int) -> Any:
    """Places near a scan and their signed distances, in units of 100 mm; (n, 4)."""
    drawn = torch.randint(len(points), (n,), device=points.device)
    sizes = torch.tensor([0.0, 1.0, 4.0, 15.0], device=points.device)[
        torch.randint(4, (n,), device=points.device)
    ]
    places = points[drawn] + sizes[:, None] * torch.randn(n, 3, device=points.device)
    _, nearest = closest(torch, places, points)
    ahead = places - points[nearest]
    along = (ahead * normals[nearest]).sum(dim=1)
    across = (ahead - along[:, None] * normals[nearest]).norm(dim=1)
    # Between the scan's points the surface is flat; beyond its border the distance is to the border.
    value = torch.sign(along) * torch.sqrt(along**2 + (across - 2.5).clamp_min(0.0) ** 2)
    return torch.cat([places, value[:, None]], dim=1) / 100.0


def judged(
    torch: Any, cloud: tuple[Any, Any], true: tuple[Any, Any], whole: tuple[Any, Any], part: Any
) -> dict[str, float]:
    """Chamfer distance, F-scores and normals of a reconstruction against the true breast, in mm.

    ``true`` are samples of the true breast (of those in ``part``), ``whole`` of all skin, with whether each is breast.
    """

    def off(points: Any, normals: Any, others: Any, other_normals: Any) -> tuple[Any, Any, Any]:
        distance, nearest = closest(torch, points, others)
        along = ((points - others[nearest]) * other_normals[nearest]).sum(dim=1).abs()
        # Samples lie less than 1.5 mm apart: nearer than that, what counts is the distance from the plane.
        value = torch.where(distance < 1.5, along, distance)
        return value, (normals * other_normals[nearest]).sum(dim=1).abs(), nearest

    there, alike_there, _ = off(*(one[part] for one in true), *cloud)
    points, normals, inside = whole
    back, alike_back, nearest = off(*cloud, points, normals)
    own = inside[nearest]
    back, alike_back = back[own], alike_back[own]
    found = {
        "chamfer": float(there.mean() + back.mean()) / 2,
        "normals": float(alike_there.mean() + alike_back.mean()) / 2,
    }
    for limit in (1.0, 2.5):
        recall, precision = float((there < limit).float().mean()), float((back < limit).float().mean())
        found[f"f_{limit:g}"] = 2 * recall * precision / max(recall + precision, 1e-9)
    return found


def run(path: Path, out: Path, steps: int, width: int, layers: int) -> None:
    """Train, fit and judge; everything measured goes to ``out``."""
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with np.load(path) as parts:
        data = {name: parts[name] for name in parts.files}
    train, test, seed = (int(n) for n in data["counts"])

    def on(values: np.ndarray, kind: Any = torch.float32) -> Any:
        return torch.as_tensor(np.asarray(values), device=device).to(kind)

    scans = [on(data[f"scan_{k}"]) * _UNIT for k in range(train + test)]
    normals = [on(data[f"normals_{k}"]) / 127.0 for k in range(train + test)]
    faces = on(data["faces"], torch.int64)
    linear = {
        f"PCA, {title}": Linear(torch, on(data[f"{name}_mean"]), on(data[f"{name}_modes"]), faces)
        for name, title in (
            ("ours", "our correspondence"),
            ("printed", "the printed method's"),
            ("true", "true shapes"),
        )
    }
    template = linear["PCA, our correspondence"].mean
    tasks = [Task(torch, data, k, scans[k], normals[k], on) for k in range(train, train + test)]
    # The kernel is chosen by training scans.
    choices = [(length, deviation) for length in (30.0, 60.0, 100.0) for deviation in (10.0, 20.0, 40.0)]
    least, chosen = float("inf"), choices[0]
    for length, deviation in choices:
        model = gaussian_process(torch, template, faces, max(COEFFICIENTS), length, deviation)
        off = []
        for scan in scans[: min(8, train)]:
            surface = model.surface(model.fitted(scan, max(COEFFICIENTS)))
            off.append(float(closest(torch, scan, surface)[0].mean()))
        if np.mean(off) < least:
            least, chosen = float(np.mean(off)), (length, deviation)
    rows: list[dict[str, Any]] = []

    def note(
        model: str, k: int, task: str, found: list[dict[str, float]], seconds: float, **more: Any
    ) -> None:
        mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        rows.append({"model": model, "coefficients": k, "task": task, **mean, "seconds": seconds, **more})
        print(json.dumps(rows[-1]), flush=True)

    pools = torch.stack([pool(torch, scans[k], normals[k], 200_000) for k in range(train)])
    batch = 2048 if device == "cuda" else 256
    how = chosen_training(torch, pools, scans, device, (width, layers), steps // 3, batch)
    for k in COEFFICIENTS:
        models: dict[str, Any] = dict(linear)
        models["Gaussian process"] = gaussian_process(torch, template, faces, k, *chosen)
        for name, model in models.items():
            for which in ("whole", "missing"):
                begin = now(torch, device)
                codes = [model.fitted(task.given[which][0], k) for task in tasks]
                seconds = (now(torch, device) - begin) / test
                clouds = [model.cloud(code, 200_000) for code in codes]
                note(
                    name, k, which, [t.judged(which, c) for t, c in zip(tasks, clouds, strict=True)], seconds
                )
        begin = now(torch, device)
        neural = Neural(torch, k, device, (width, layers), how["weight"], how["dropout"])
        neural.train(pools, steps, batch)
        learnt = now(torch, device) - begin
        for which in ("whole", "missing"):
            begin = now(torch, device)
            given = torch.stack([pool(torch, *task.given[which], 60_000) for task in tasks])
            codes = neural.fitted(given, how["fit_weight"])
            seconds = (now(torch, device) - begin) / test
            found = [t.judged(which, neural.cloud(code, t.box)) for t, code in zip(tasks, codes, strict=True)]
            note("neural implicit", k, which, found, seconds, training_seconds=learnt, loss=neural.losses[-1])
        out.write_text(json.dumps({
            "train": train, "test": test, "seed": seed, "steps": steps, "width": width, "layers": layers,
            "kernel": {"length": chosen[0], "deviation": chosen[1]}, "training": how, "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "rows": rows,
        }, indent=1) + "\n", encoding="utf-8")  # fmt: skip


def now(torch: Any, device: str) -> float:
    """Seconds, when all that was asked of the device is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Task:
    """One unseen scan: what is given, whole or with 30 % missing around the right nipple, and the truth."""

    def __init__(
        self, torch: Any, data: dict[str, np.ndarray], k: int, scan: Any, normals: Any, on: Any
    ) -> None:
        self.torch = torch
        truth, faces = on(data[f"truth_{k}"]) * _UNIT, on(data["all_faces"], torch.int64)
        breast = on(data["breast_faces"], torch.int64)
        nipple = on(data[f"nipples_{k}"])[data[f"nipples_{k}"][:, 0].argmin()]  # the right one, at negative x
        far = (scan - nipple).norm(dim=1)
        limit = torch.quantile(far, 0.3)
        self.given = {"whole": (scan, normals), "missing": (scan[far > limit], normals[far > limit])}
        self.true = sampled(torch, truth, breast, 60_000)
        self.whole = sampled(torch, truth, faces, 300_000)
        _, nearest = closest(torch, self.whole[0], self.true[0])
        inside = (self.whole[0] - self.true[0][nearest]).norm(dim=1) < 1.5
        gone = lambda points: (points - nipple).norm(dim=1) <= limit  # noqa: E731
        self.parts = {
            "whole": torch.ones(len(self.true[0]), dtype=torch.bool, device=scan.device),
            "missing": gone(self.true[0]),
        }
        self.inside = {"whole": inside, "missing": inside & gone(self.whole[0])}
        margin = 15.0
        self.box = torch.stack(
            [self.true[0].min(dim=0).values - margin, self.true[0].max(dim=0).values + margin]
        )

    def judged(self, which: str, cloud: tuple[Any, Any]) -> dict[str, float]:
        """What a reconstruction is worth."""
        return judged(self.torch, cloud, self.true, (*self.whole, self.inside[which]), self.parts[which])


# --------------------------------------------------------------------------------------------------------------------
# The page
# --------------------------------------------------------------------------------------------------------------------

BEGIN, END = "<!-- models: begin -->", "<!-- models: end -->"
_COLUMNS = {
    "chamfer": ("chamfer, mm", 2, False),
    "f_1": ("F-score, 1 mm", 3, True),
    "f_2.5": ("F-score, 2.5 mm", 3, True),
    "normals": ("normals", 3, True),
    "seconds": ("s to fit", 2, False),
}


def as_markdown(found: dict[str, Any]) -> str:
    """A table for each task, and where the newer model is best."""
    kernel = found["kernel"]
    lines = [
        f"{found['test']} unseen phantoms, models of {found['train']} others (seed {found['seed']}). Neural implicit: "
        f"{found['layers']} layers of {found['width']}, {found['steps']:,} steps on {found['device']} "
        f"(PyTorch {found['torch']}); of what was tried, codes held by {found['training']['weight']:g} in training and "
        f"{found['training']['fit_weight']:g} in fitting with dropout {found['training']['dropout']:g} were best on "
        f"training scans kept back. Gaussian process: kernel of {kernel['length']:g} mm, deviation "
        f"{kernel['deviation']:g} mm.",
        "",
    ]
    rows = found["rows"]
    for which, title in (
        ("whole", "Reconstruction of the whole scan"),
        ("missing", "Completion: 30 % of the scan missing around the right nipple, judged there alone"),
    ):
        some = [row for row in rows if row["task"] == which]
        wins = []
        for k in sorted({row["coefficients"] for row in some}):
            same = [row for row in some if row["coefficients"] == k and row["model"] != "PCA, true shapes"]
            for key, (name, _, more) in _COLUMNS.items():
                if (
                    key != "seconds"
                    and (max if more else min)(same, key=lambda row: row[key])["model"] == "neural implicit"
                ):
                    wins.append(f"{name} ({k})")
        lines += [
            f"**{title}.** Where the neural model is best: {', '.join(wins) if wins else 'nowhere in this run'}.",
            "",
        ]
        lines.append(
            "| coefficients | model | " + " | ".join(name for name, _, _ in _COLUMNS.values()) + " |"
        )
        lines.append("|---" * (2 + len(_COLUMNS)) + "|")
        for row in some:
            cells = " | ".join(f"{row[key]:.{digits}f}" for key, (_, digits, _) in _COLUMNS.items())
            lines.append(f"| {row['coefficients']} | {row['model']} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Prepare, run or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("prepare", "run", "page"))
    parser.add_argument("--data", type=Path, default=Path("build/neural.npz"), help="what prepare writes")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "models.json", help="what run writes"
    )
    parser.add_argument("--train", type=int, default=48)
    parser.add_argument("--test", type=int, default=12)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.data, given.train, given.test, given.seed, given.jobs)
    elif given.what == "run":
        run(given.data, given.out, given.steps, given.width, given.layers)
    else:
        page = ROOT / "docs" / "peers.md"
        text = page.read_text(encoding="utf-8")
        head, tail = text.split(BEGIN)[0], text.split(END)[1]
        table = as_markdown(json.loads(given.out.read_text(encoding="utf-8")))
        page.write_text(f"{head}{BEGIN}\n\n{table}\n{END}{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
