"""Fitting a model to raw points of unseen subjects: accuracy, time on one core, nuisance, and a plain Adam loop.

    python benchmarks/fitting.py [--subjects 70] [--unseen 5] [--adam 1] [--sweep]
    python benchmarks/fitting.py --cohort OUT --phantom PHANTOM [--unseen 10]
    python benchmarks/fitting.py --found [--unseen 12] [--torsos FOLDER]

By default the model is built from phantom truth at the template's vertices (no registration). With ``--cohort`` it
is built from what `breastmorph register` wrote for the scans of the folder ``--phantom`` (from `breastmorph phantom`);
every eleventh subject stays unseen. Points come from the *scan* of an unseen subject: 5,000 vertices with 0.5 mm of
noise besides the scanner's own, 30 % of them removed: single points, ten holes, or one hole in the model's region.

Distances are means over all vertices of the result to the subject's true surface, in mm; "seen" counts only vertices
with a point within 10 mm. "projection" is the same distance for the projection of the subject's true shape (of its
registration with ``--cohort``) into the model: what dense correspondence gives. A fit minimises the distance to the
surface, so it can lie below.

The Adam loop is how the published model's reader fits, in numpy: 2,000 steps on scores, turn, shift and scale, each
on 1,000 random points, down the gradient of their mean squared distance to the nearest vertex plus 1e-3 of the mean
squared score; rates 0.05 (scores) and 0.005 (pose), betas 0.9 and 0.999, and our start by landmarks. "border rule"
adds ours: points whose nearest vertex lies on the model's border do not count.

``--found`` fits the demo model to scans in random poses, surfaces and clouds of their points, with all landmarks and
with none: how many are handled, the distance of the breasts' vertices to the true surface, and of the landmarks in the
fit from where they truly lie (mean / 90th percentile). The scans are unseen phantoms and, with ``--torsos``, those of
a folder with scans/, landmarks/ and truth/.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import breastmorph as bm
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.evaluation.truth import Tie
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mask import breast_regions
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.fitting import fit_model, points_of, pose_by_landmarks, shared_landmarks
from breastmorph.model.shape_model import ShapeModel
from breastmorph.phantom import draw_cohort, mean_torso, scan_subject, topology, torso
from breastmorph.scan.landmark_files import load_landmarks
from breastmorph.scan.scan import Landmarks
from breastmorph.template import default_template
from measuring import compare, cpu_seconds

COMPONENTS = 60
POINTS = 5000
LIMIT_DISTANCE, LIMIT_SECONDS = 1.0, 1.0


@dataclass(frozen=True, eq=False)
class Unseen:
    """A subject that is not in the model: scan points, landmarks, true surface and true shape, in one frame."""

    id: str
    points: Floats
    landmarks: Landmarks
    truth: TriangleMesh
    shape: Floats


def own_cohort(subjects: int, unseen: int) -> tuple[ShapeModel, list[Unseen]]:
    """A model of phantom truth, and scans of further subjects."""
    template, mean = default_template(), mean_torso()
    tie = Tie.of(template, mean.mesh, mean.landmarks)
    drawn = draw_cohort(subjects + unseen, 7)
    torsos = [torso(subject) for subject in drawn]
    shapes = np.stack([tie.at(one.mesh.vertices) for one in torsos[:subjects]])
    model = build_model(Cohort.of(shapes, template), BuildParameters())
    others = []
    for k, one in enumerate(torsos[subjects:]):
        scan = scan_subject(one, np.random.default_rng(k))
        truth = TriangleMesh(scan.points, topology())
        others.append(Unseen(f"{k:03d}", scan.mesh.vertices, scan.landmarks, truth, tie.at(scan.points)))
    return model, others


def registered_cohort(folder: Path, phantom: Path, unseen: int) -> tuple[ShapeModel, list[Unseen]]:
    """A model of registrations, and the scans of every eleventh subject, which is left out."""
    cohort = load_cohort(folder)
    apart = np.arange(len(cohort)) % 11 == 5
    model = build_model(cohort.chosen(~apart), BuildParameters())
    others = []
    for i in np.flatnonzero(apart)[:unseen]:
        name = cohort.ids[i]
        with np.load(phantom / "truth" / f"{name}.npz") as parts:
            truth = TriangleMesh(parts["points"].astype(float), topology())
        others.append(
            Unseen(
                name,
                load_mesh(phantom / "scans" / f"{name}.ply").vertices,
                load_landmarks(phantom / "landmarks" / f"{name}.json"),
                truth,
                cohort.to_file[i].apply(cohort.shape(i)),
            )
        )
    return model, others


def disturbed(
    one: Unseen,
    rng: np.random.Generator,
    *,
    removed: float = 0.3,
    how: str = "points",
    noise: float = 0.5,
    outliers: float = 0.0,
) -> Floats:
    """Points of a subject's scan after the nuisance named.

    Parameters
    ----------
    removed : float
        Share of the points.
    how : {"points", "ten holes", "one hole", "left view", "right view"}
        Which points are removed; "one hole" is centred on the region of the model and takes that share of it; a view
        is what one camera 50 degrees to that side sees, whatever ``removed`` says.
    noise : float
        Standard deviation of a coordinate, mm.
    outliers : float
        Points in the box around the scan, as a share of all.
    """
    points = one.points
    if how == "ten holes":
        centres = points[rng.choice(len(points), 10, replace=False)]
        away = cKDTree(centres).query(points)[0]
        points = points[away > np.quantile(away, removed)]
    elif how == "one hole":
        near = points[cKDTree(one.shape).query(points)[0] < 8.0]
        centre = near[rng.integers(len(near))]
        radius = np.quantile(np.linalg.norm(near - centre, axis=1), removed)
        points = points[np.linalg.norm(points - centre, axis=1) > radius]
    elif how.endswith("view"):
        # The side of the median plane, with a hand's breadth of the other side.
        middle = one.landmarks.array(("sternal_notch", "xiphoid")).mean(axis=0)
        left = one.landmarks["nipple_left"] - one.landmarks["nipple_right"]
        side = (points - middle) @ (left / np.linalg.norm(left)) * (1.0 if how == "left view" else -1.0)
        points = points[side > -30.0]
    count = round(POINTS * (1.0 - removed)) if how == "points" else POINTS
    points = rng.choice(points, min(count, len(points)), replace=False)
    points = points + noise * rng.normal(size=points.shape)
    strays = round(len(points) * outliers / (1.0 - outliers))
    low, high = points.min(axis=0) - 50.0, points.max(axis=0) + 50.0
    return np.concatenate([points, rng.uniform(low, high, (strays, 3))])


def judged(result: Floats, one: Unseen, points: Floats) -> tuple[float, float]:
    """Mean distance to the true surface of all vertices, and of those with a point near; mm."""
    distances, seen = off(result, one, points)
    return float(distances.mean()), float(distances[seen].mean())


def off(result: Floats, one: Unseen, points: Floats) -> tuple[Floats, Bools]:
    """Distance of every vertex to the true surface, and whether a point lies near it."""
    return Surface(one.truth).closest(result).distances, cKDTree(points).query(result)[0] < 10.0


def within(deviations: Floats, result: Floats, one: Unseen, points: Floats) -> tuple[float, float]:
    """Share of the vertices, seen and not seen, whose distance lies within 1.96 standard deviations."""
    distances, seen = off(result, one, points)
    inside = distances < 1.96 * deviations
    return float(inside[seen].mean()), float(inside[~seen].mean())


def projected(model: ShapeModel, one: Unseen) -> float:
    """Distance of the projected true shape to the true surface."""
    into = model.align(one.shape)
    best = into.inverse().apply(model.instance(model.project(into.apply(one.shape))))
    return float(Surface(one.truth).closest(best).distances.mean())


def adam(
    model: ShapeModel, points: Floats, landmarks: Landmarks, *, border_rule: bool, steps: int = 2000
) -> Floats:
    """The plain loop; returns the vertices in the target's frame."""
    rng = np.random.default_rng(0)
    pose = pose_by_landmarks(model, landmarks, shared_landmarks(model, landmarks))
    local = pose.inverse().apply(points)  # unknowns near 0
    border = boundary_vertices(model.faces, model.n_vertices)
    rows = model.basis.reshape(model.n_vertices, 3, -1)
    unknowns = np.zeros(model.n_components + 7)  # scores, turn (rad), shift (cm), log of scale
    first, second = np.zeros_like(unknowns), np.zeros_like(unknowns)
    shape, rotation = model.mean, np.eye(3)
    for step in range(1, steps + 1):
        scores, turn, shift, size = np.split(unknowns, [-7, -4, -1])
        shape = model.instance(scores * model.deviations)
        angle = float(np.linalg.norm(turn))
        rotation = rotation_about(turn, np.degrees(angle)) if angle > 0 else np.eye(3)
        place = Similarity(rotation, 10.0 * shift, float(np.exp(size[0])))
        moved = place.apply(shape)
        some = local[rng.choice(len(local), min(1000, len(local)), replace=False)]
        at = cKDTree(moved, balanced_tree=False, compact_nodes=False).query(some)[1]
        if border_rule:
            some, at = some[~border[at]], at[~border[at]]
        pull = 2.0 * (moved[at] - some) / len(some)
        turned = pull @ rotation * place.scale
        gradient = np.concatenate(
            [
                np.einsum("ki,kiq->q", turned.astype(rows.dtype), rows[at]) * model.deviations
                + 2e-3 * scores / len(scores),
                np.cross(moved[at] - 10.0 * shift, pull).sum(axis=0),
                10.0 * pull.sum(axis=0),
                [((moved[at] - 10.0 * shift) * pull).sum()],
            ]
        )
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = np.where(np.arange(len(unknowns)) < model.n_components, 0.05, 0.005)
        change = (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.999**step)) + 1e-8)
        unknowns = unknowns - rate * change
    return pose.apply(place.apply(shape))


def cases() -> Iterator[tuple[str, dict[str, object]]]:
    """The nuisance sweep."""
    yield "as in the table above", {}
    for noise in (0.0, 1.0, 2.0, 3.0):
        yield f"noise {noise:g} mm", {"noise": noise}
    for removed in (0.0, 0.5, 0.6):
        yield f"{removed:.0%} of the points removed", {"removed": removed}
    for removed in (0.1, 0.3, 0.6):
        yield f"ten holes, {removed:.0%}", {"removed": removed, "how": "ten holes"}
    for removed in (0.1, 0.3, 0.5):
        yield f"one hole, {removed:.0%} of the region", {"removed": removed, "how": "one hole"}
    for outliers in (0.1, 0.2, 0.3):
        yield f"{outliers:.0%} stray points", {"outliers": outliers}
    for side in ("left", "right"):
        yield f"only the {side} side", {"how": f"{side} view"}


def run(
    model: ShapeModel,
    others: list[Unseen],
    nuisance: dict[str, object],
    *,
    landmarks: bool,
    components: int | None,
    turned: bool = False,
) -> tuple[list[tuple[float, float]], list[float], int]:
    """Fit every unseen subject; returns distances, CPU seconds and how many were refused."""
    distances, seconds, refused = [], [], 0
    for k, one in enumerate(others):
        rng = np.random.default_rng([k, 5])
        points = disturbed(one, rng, **nuisance)  # type: ignore[arg-type]
        pose = Similarity()
        if turned:
            turn = rng.normal(size=3)
            pose = Similarity(rotation_about(turn, float(rng.uniform(0, 180))), 300.0 * rng.normal(size=3))
        known = one.landmarks.transformed(pose) if landmarks else None
        start = time.process_time()
        try:
            fit = bm.fit(model, pose.apply(points), known, components=components)
        except BreastMorphError:
            refused += 1
            continue
        finally:
            seconds.append(time.process_time() - start)
        distances.append(judged(pose.inverse().apply(fit.mesh.vertices), one, points))
    return distances, seconds, refused


def row(name: str, distances: list[tuple[float, float]], seconds: list[float], refused: int) -> None:
    whole, seen = np.mean(distances, axis=0) if distances else (np.nan, np.nan)
    worst = max((one[0] for one in distances), default=np.nan)
    print(
        f"{name:36s} {whole:6.2f} {worst:6.2f} {seen:6.2f} {np.median(seconds):8.2f} {refused:8d}", flush=True
    )


@dataclass(frozen=True, eq=False)
class Posed:
    """A scan, its landmarks and its true surface, in one frame."""

    id: str
    mesh: TriangleMesh
    landmarks: Landmarks
    truth: TriangleMesh


def posed_phantoms(count: int) -> Iterator[Posed]:
    """Scans of phantoms that the demo model has not seen."""
    for k, subject in enumerate(draw_cohort(count, 77)):
        scan = scan_subject(torso(subject), np.random.default_rng([k, 77]))
        yield Posed(f"{k:03d}", scan.mesh, scan.landmarks, TriangleMesh(scan.points, topology()))


def posed_torsos(folder: Path) -> Iterator[Posed]:
    """Scans of a folder with known truth."""
    for path in sorted((folder / "scans").glob("*.ply")):
        with np.load(folder / "truth" / f"{path.stem}.npz") as parts:
            truth = TriangleMesh(parts["points"].astype(float), parts["faces"])
        marks = load_landmarks(folder / "landmarks" / f"{path.stem}.json")
        yield Posed(path.stem, load_mesh(path), marks, truth)


def without_landmarks(family: str, ones: list[Posed], clouds: tuple[int, ...]) -> None:
    """Fits of the demo model with all landmarks and with none, of surfaces (0) and of clouds of so many points."""
    model = bm.demo_model()
    breast = np.any(list(breast_regions(model.mean_mesh, model.landmarks).values()), axis=0)
    for points in (0, *clouds):
        for known in (True, False):
            rows, seconds, refusals = [], [], []
            for k, one in enumerate(ones):
                rng = np.random.default_rng([k, points])
                pose = Similarity(Rotation.random(None, rng).as_matrix(), 300.0 * rng.normal(size=3))
                target = one.mesh.with_vertices(pose.apply(one.mesh.vertices))
                if points:
                    drawn = points_of(one.mesh, points, rng).points
                    target = pose.apply(drawn + 0.5 * rng.normal(size=drawn.shape))
                start = time.process_time()
                try:
                    fit = bm.fit(model, target, one.landmarks.transformed(pose) if known else None)
                except BreastMorphError as error:
                    refusals.append(f"{one.id} {error.code}")
                    continue
                finally:
                    seconds.append(time.process_time() - start)
                shape = pose.inverse().apply(fit.mesh.vertices)
                marks = Landmarks.at_vertices(model.landmark_ids, shape).only(one.landmarks)
                away = np.linalg.norm(marks.points - one.landmarks.array(marks), axis=1)
                rows.append((Surface(one.truth).closest(shape[breast]).distances.mean(), away.mean()))
            near, marks_off = np.array(rows).reshape(-1, 2).T
            name = f"{family}, {f'{points:,} points' if points else 'surfaces'}, {'set' if known else 'none'}"
            print(
                f"{name:36s} {len(rows):3d} of {len(ones)}   {_spread(near)}   {_spread(marks_off)} "
                f"{np.median(seconds):6.2f} s  {' '.join(refusals)}",
                flush=True,
            )


def _spread(values: Floats) -> str:
    return f"{values.mean():5.2f} / {np.quantile(values, 0.9):5.2f}" if len(values) else "    - /     -"


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--subjects", type=int, default=70, help="in the model")
    parser.add_argument("--unseen", type=int, default=5)
    parser.add_argument("--cohort", type=Path)
    parser.add_argument("--phantom", type=Path)
    parser.add_argument("--adam", type=int, default=1, help="subjects for the Adam loop (a minute each)")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--found", action="store_true")
    parser.add_argument("--torsos", type=Path)
    parser.add_argument("--clouds", type=int, nargs="*", default=[20_000, 5_000])
    arguments = parser.parse_args()
    if arguments.found:
        print(f"{'landmarks':36s} handled   breast, mm      landmarks, mm  CPU")
        without_landmarks("phantoms", list(posed_phantoms(arguments.unseen)), tuple(arguments.clouds))
        if arguments.torsos:
            without_landmarks("torsos", list(posed_torsos(arguments.torsos)), tuple(arguments.clouds))
        return 0
    if arguments.cohort:
        whole, others = registered_cohort(arguments.cohort, arguments.phantom, arguments.unseen)
    else:
        whole, others = own_cohort(arguments.subjects, arguments.unseen)
    model = whole.truncate(min(COMPONENTS, whole.n_components))
    print(
        f"{whole.info['subjects']} subjects, {model.n_vertices:,} vertices, {len(others)} unseen subjects, one core"
    )
    sizes = [model] if model.n_components == whole.n_components else [model, whole]
    for one in sizes:
        projections = [projected(one, other) for other in others]
        print(
            f"floor with {one.n_components} components: {np.mean(projections):.2f} mm (worst {np.max(projections):.2f})"
        )
    print(
        f"\n{'5,000 points, 30 % removed':36s} {'mean':>6s} {'worst':>6s} {'seen':>6s} {'CPU s':>8s} {'refused':>8s}"
    )
    good = True
    for how in ("points", "ten holes", "one hole"):
        for used in sizes:
            for known in (True, False):
                found = run(used, others, {"how": how}, landmarks=known, components=None, turned=True)
                start = "landmarks" if known else "found landmarks"
                row(f"{how}, {used.n_components} components, {start}", *found)
                if how == "points" and used is model and known:
                    good &= (
                        np.mean(found[0], axis=0)[0] <= LIMIT_DISTANCE
                        and np.median(found[1]) <= LIMIT_SECONDS
                    )
    shares = []
    for k, one in enumerate(others):
        points = disturbed(one, np.random.default_rng([k, 5]), how="one hole")
        fit = fit_model(whole, points, one.landmarks)
        shares.append(within(fit.deviations, fit.mesh.vertices, one, points))
    seen, unseen = np.mean(shares, axis=0)
    print(
        f"one hole: within 1.96 of the stated deviation {seen:.0%} of the seen, {unseen:.0%} of the unseen vertices"
    )
    for one in others[: arguments.adam]:
        points = disturbed(one, np.random.default_rng([0, 5]))
        seconds, fit = cpu_seconds(lambda one=one, points=points: fit_model(model, points, one.landmarks))
        ours = judged(fit.mesh.vertices, one, points)
        print(
            f"\n{one.id}: ours                 {ours[0]:6.2f} mm, seen {ours[1]:.2f} mm, {seconds:7.2f} CPU s"
        )
        for rule in (False, True):
            spent, result = cpu_seconds(
                lambda one=one, points=points, rule=rule: adam(model, points, one.landmarks, border_rule=rule)
            )
            theirs = judged(result, one, points)
            name = "Adam, border rule" if rule else "Adam, plain"
            compare("fitting a model to points", "CPU s", seconds, name, spent)
            compare("its distance to the true surface", "mm", ours[0], name, theirs[0])
            print(
                f"{one.id}: {name:20s} {theirs[0]:6.2f} mm, seen {theirs[1]:.2f} mm, {spent:7.2f} CPU s: "
                f"{spent / seconds:.0f} x slower, {theirs[0] / ours[0]:.1f} x the error",
                flush=True,
            )
            good &= theirs[0] >= ours[0] and spent >= seconds
    if arguments.sweep:
        for known in (True, False):
            print(
                f"\n{'sweep, ' + ('landmarks' if known else 'no landmarks'):36s}   mean  worst   seen    CPU s  refused"
            )
            for name, nuisance in cases():
                row(name, *run(whole, others, nuisance, landmarks=known, components=None, turned=True))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
