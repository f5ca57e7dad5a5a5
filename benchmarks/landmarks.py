"""Landmarks found by the program, against the truth: how far off, how sure, what is handled, which mistakes are caught.

    python benchmarks/landmarks.py [--n 100] [--seed 9001] [--jobs 2] [--only phantom,torsos]
        [--beside FOLDER] [--keep FOLDER]
    python benchmarks/landmarks.py --batch 1000 [--n 40]

Sets: phantoms that no net has seen, plain (a tenth of them one-sided) and coloured; and every folder `torsos*` of the
development set beside the repository, where present. Each scan is turned at random and written in a random unit; its
truth keeps `file_transform` (4x4, upright mm to file). --keep writes the sets and what was found into a folder.

Then the same scans with the nipples' bumps smoothed away, the coloured ones also without the areola's contrast; and
landmarks as a person set them, right ones and nipples moved along the skin, shown to the second pair of eyes.

Half as many phantoms after a mastectomy (phantom-lost), and with both breasts small (phantom-small), are asked only
whether the breasts that are there are told. The set "hostile" is what is no whole torso: things, two people, halves.

--batch runs the command instead, one process, on so many files that hold --n phantoms in turn, and looks at its memory
as the files come out (Linux): it must not grow.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import measuring
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import MeshProblem
from breastmorph.foundation.workers import Failure, run_each
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.skin import from_lab, to_lab
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import write_cohort
from breastmorph.phantom.body import smooth_step
from breastmorph.phantom.cohort import Marginal, PhantomParameters
from breastmorph.scan.anatomy import UNITS
from breastmorph.scan.finder import FoundLandmarks, find_landmarks, recheck_landmarks
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.scan import REQUIRED, STERNUM, Landmarks

BESIDE = Path(__file__).parents[2] / "shared"
# What counts of each kind: the whole distance, or the height or depth alone where a landmark means no more.
AXIS = {"nipple": None, "sternal_notch": None, "xiphoid": None, "lower_pole": 1, "lateral_pole": 2, "imf": 1}
FAR = 40.0  # mm off and not doubtful: wrong without a word
# Greatest median and 90th percentile, mm: torsos, coloured torsos, phantoms.
LIMITS = {
    "nipple": ((6, 14), (3, 7), (4, 9)),
    "sternal_notch": ((7, 14), (7, 14), (6, 12)),
    "xiphoid": ((10, 20), (10, 20), (10, 20)),
    "lower_pole": ((5, 11), (5, 11), (4, 9)),
    "lateral_pole": ((10, 22), (10, 22), (8, 18)),
    "imf": ((8, 16), (8, 16), (8, 16)),
}
# Who is asked only for her breasts: after a mastectomy, and both as small as an adult's are.
SMALL = PhantomParameters(
    volume_left=Marginal(110.0, 30.0, 60.0, 170.0),
    volume_right=Marginal(110.0, 30.0, 60.0, 170.0),
    difference=Marginal(15.0, 12.0, 0.3, 60.0),
)
ONLY_BREASTS = ("phantom-lost", "phantom-small")
FLAT = (8, 18)  # the same of flat nipples, with and without colour
MOVES = {15.0: 0.60, 30.0: 0.95}  # mm, and least share that is named
FALSE_ALARMS = 0.02  # per landmark at most
CALIBRATED = (0.85, 0.99)  # share of the errors within 1.96 deviations
FOLDS = 0.8  # of those that show, found at least
DOUBTFUL = 0.1  # of all landmarks at most
SECONDS, SMALL_SCAN = (2.0, 4.0), 30_000  # of one core at most, below so many vertices and above
MEMORY = 1000.0  # MB at most

# --------------------------------------------------------------------------------------------------------------------
# Sets: any pose, any unit, the truth beside
# --------------------------------------------------------------------------------------------------------------------


def sources(place: Path, beside: Path, n: int, seed: int, jobs: int, only: Sequence[str]) -> dict[str, Path]:
    """Folders to make sets of, by name; phantoms are made."""
    few = (n + 1) // 2
    wanted: dict[str, Callable[[Path], object]] = {
        "phantom": lambda out: write_cohort(out, n, seed, jobs, n // 10),
        "phantom-coloured": lambda out: write_cohort(out, n, seed + 1, jobs, colour=True),
        "phantom-lost": lambda out: write_cohort(out, few, seed + 2, jobs, few),
        "phantom-small": lambda out: write_cohort(out, few, seed + 3, jobs, parameters=SMALL),
    }
    found = {}
    for name, make in wanted.items():
        if not only or name in only:
            found[name] = place / "made" / name
            make(found[name])
    others = sorted(path for path in beside.glob("torsos*") if (path / "truth").is_dir())
    return found | {path.name: path for path in others if not only or path.name in only}


def posed(source: Path, out: Path, name: str, rng: np.random.Generator) -> None:
    """One scan of a folder turned at random, in a random unit, with its landmarks and its truth."""
    for part in ("scans", "landmarks", "truth", "found"):
        (out / part).mkdir(parents=True, exist_ok=True)
    mesh, landmarks, truth = given(source, name)
    unit = UNITS[str(rng.choice(["mm", "cm", "m"]))]
    turn = Rotation.random(None, rng).as_matrix()
    to_file = Similarity(turn, rng.uniform(-500.0, 500.0, 3) / unit, 1.0 / unit)
    save_mesh(mesh.with_vertices(to_file.apply(mesh.vertices)), out / "scans" / f"{name}.ply")
    save_landmarks(landmarks.transformed(to_file), out / "landmarks" / f"{name}.json")
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = to_file.scale * to_file.rotation, to_file.translation
    np.savez_compressed(out / "truth" / f"{name}.npz", file_transform=matrix, **truth)


def given(source: Path, name: str) -> tuple[TriangleMesh, Landmarks, dict[str, Floats]]:
    """A scan of a folder, its landmarks, and what of its truth is needed, all upright and in mm."""
    mesh, landmarks = (
        load_mesh(scan_file(source, name)),
        load_landmarks(source / "landmarks" / f"{name}.json"),
    )
    truth = dict(np.load(source / "truth" / f"{name}.npz"))
    kept = {key: truth[key] for key in ("fixed_names", "fixed_on_scan", "removed_side") if key in truth}
    # A phantom stands a little askew, and says how; other files are upright.
    upright = Similarity()
    if "rotation" in truth:
        upright = Similarity(truth["rotation"], truth["translation"]).inverse()
    if "fixed_points" in truth:
        kept["fixed_points"] = upright.apply(truth["fixed_points"])
    return mesh.with_vertices(upright.apply(mesh.vertices)), landmarks.transformed(upright), kept


def scan_file(folder: Path, name: str) -> Path:
    """The mesh file of a scan."""
    return next(
        path for path in sorted((folder / "scans").glob(f"{name}.*")) if path.suffix in (".ply", ".obj")
    )


@dataclass(frozen=True, eq=False)
class Case:
    """A scan of a set: as in its file, and the truth upright and in mm."""

    mesh: TriangleMesh
    true: Landmarks
    to_file: Similarity
    folds: Landmarks  # that the scan shows ...
    hidden: Landmarks  # ... and that it does not
    absent: str

    @classmethod
    def of(cls, folder: Path, name: str) -> Case:
        """Read it."""
        truth = np.load(folder / "truth" / f"{name}.npz")
        matrix = truth["file_transform"]
        scale = float(np.cbrt(np.linalg.det(matrix[:3, :3])))
        to_file = Similarity(matrix[:3, :3] / scale, matrix[:3, 3], scale)
        true = load_landmarks(folder / "landmarks" / f"{name}.json").transformed(to_file.inverse())
        folds: dict[bool, dict[str, Floats]] = {True: {}, False: {}}
        if "fixed_names" in truth:
            names, points, seen = (truth[f"fixed_{key}"] for key in ("names", "points", "on_scan"))
            for key, point, shown in zip(names.tolist(), points, seen, strict=True):
                if key.startswith("imf"):
                    folds[bool(shown)][key] = point
        marks = (Landmarks.of(folds[True]), Landmarks.of(folds[False]))
        absent = str(truth["removed_side"]) if "removed_side" in truth else ""
        return cls(load_mesh(scan_file(folder, name)), true, to_file, *marks, absent)

    @property
    def upright(self) -> TriangleMesh:
        """The surface upright and in mm."""
        return self.mesh.with_vertices(self.to_file.inverse().apply(self.mesh.vertices))

    def with_surface(self, upright: TriangleMesh) -> Case:
        """The same with another surface, given upright and in mm."""
        return replace(self, mesh=upright.with_vertices(self.to_file.apply(upright.vertices)))


# --------------------------------------------------------------------------------------------------------------------
# Harder: no bump, no contrast
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Patch:
    """The skin about a nipple in its own frame: distances, and values of a smooth fit to what lies around."""

    mesh: TriangleMesh
    nipple: Floats
    axes: Floats  # rows, the last one outwards

    @classmethod
    def of(cls, mesh: TriangleMesh, nipple: Floats) -> Patch:
        """Lay it."""
        near = np.linalg.norm(mesh.vertices - nipple, axis=1) < 35.0
        out = vertex_normals(mesh.vertices, mesh.faces)[near].mean(axis=0)
        _, _, axes = np.linalg.svd(out[None])
        axes = np.roll(axes, -1, axis=0)
        axes[2] = out / np.linalg.norm(out)
        return cls(mesh, nipple, axes)

    def local(self, points: Floats) -> Floats:
        """Points in the patch's frame."""
        return (points - self.nipple) @ self.axes.T

    def smooth(self, values: Floats, points: Floats, inner: float, outer: float) -> Floats:
        """At points (k, 3) a cubic fitted to the vertices' values (n, c) in a ring about the nipple; (k, c)."""
        own, there = self.local(self.mesh.vertices), self.local(points)
        away = np.linalg.norm(own, axis=1)
        facing = vertex_normals(self.mesh.vertices, self.mesh.faces) @ self.axes[2] > 0.2
        ring = (away > inner) & (away < outer) & facing
        return _cubic(there) @ np.linalg.lstsq(_cubic(own[ring]), values[ring], rcond=None)[0]


def _cubic(local: Floats) -> Floats:
    x, y = local[:, 0] / 30.0, local[:, 1] / 30.0
    return np.stack([x**i * y**j for i in range(4) for j in range(4 - i)], axis=1)


def flattened(case: Case) -> Case:
    """Nine tenths of each nipple's and areola's bump taken away; the nipples' landmarks sink with it."""
    mesh, points = case.upright, {name: case.true[name] for name in case.true}
    for name in [name for name in points if name.startswith("nipple")]:
        patch, place = Patch.of(mesh, points[name]), points[name][None]
        height = patch.local(mesh.vertices)[:, 2:]

        def lowered(what: Floats, patch: Patch = patch, height: Floats = height) -> Floats:
            local = patch.local(what)
            share = 0.9 * (1.0 - smooth_step(np.linalg.norm(local, axis=1), 18.0, 26.0))
            bump = local[:, 2] - patch.smooth(height, what, 20.0, 45.0)[:, 0]
            return what - (share * bump)[:, None] * patch.axes[2]

        points[name] = lowered(place)[0]
        mesh = mesh.with_vertices(lowered(mesh.vertices))
    return replace(case.with_surface(mesh), true=Landmarks.of(points))


def without_contrast(case: Case) -> Case:
    """The colours about each nipple replaced by those of the skin above, mottling and all, in the tone around it."""
    mesh = case.upright
    assert mesh.colors is not None
    lab, tree = to_lab(mesh.colors[:, :3]), cKDTree(mesh.vertices)
    for name in [name for name in case.true if name.startswith("nipple")]:
        away = np.linalg.norm(mesh.vertices - case.true[name], axis=1)
        ring, near = (away > 36.0) & (away < 55.0), np.flatnonzero(away < 40.0)
        above = lab[tree.query(mesh.vertices[near] + np.array([0.0, 75.0, -15.0]))[1]]
        plain = above + np.median(lab[ring], axis=0) - np.median(above, axis=0)
        lab[near] += (1.0 - smooth_step(away[near], 34.0, 40.0)[:, None]) * (plain - lab[near])
    colours = np.column_stack([from_lab(lab), mesh.colors[:, 3]])
    return case.with_surface(replace(mesh, colors=colours))


# --------------------------------------------------------------------------------------------------------------------
# Measuring one scan
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """One landmark that was found: how far off by what it means and in all (mm), over its deviation, doubted."""

    kind: str
    off: float
    away: float
    scaled: float
    doubtful: bool


@dataclass(frozen=True)
class Result:
    """What came of one scan."""

    marks: tuple[Mark, ...] = ()
    handled: bool = False
    folds: int = 0  # that the scan shows
    hidden: tuple[
        bool, ...
    ] = ()  # of folds that it does not show: whether their height is within its deviation
    right_side: bool = False
    invented: int = 0
    doubtful: int = 0
    written: int = 0
    seconds: float = 0.0
    vertices: int = 0
    memory: float = 0.0
    refused: str = ""


@dataclass(frozen=True)
class Measured:
    """Everything about one scan of a set."""

    plain: Result
    flat: Result | None = None
    pale: Result | None = None
    false_alarms: int = 0
    shown: int = 0
    caught: dict[float, list[bool]] = field(default_factory=dict)


def judged(case: Case, keep: Path | None = None) -> Result:
    """Find the landmarks of a case and compare them with the truth."""
    size = {"vertices": case.mesh.n_vertices, "folds": len(case.folds)}

    def find() -> FoundLandmarks | str:
        try:
            return find_landmarks(case.mesh)
        except MeshProblem as error:
            return str(error)

    seconds, found = measuring.cpu_seconds(find)
    size |= {"seconds": seconds, "memory": measuring.peak_memory()}
    if isinstance(found, str):
        return Result(**size, refused=found)
    if keep:
        save_landmarks(found.landmarks, keep)
    upright = found.landmarks.transformed(case.to_file.inverse())
    marks = tuple(_mark(case, upright, name) for name in upright if name in case.true or name in case.folds)
    hidden = tuple(_mark(case, upright, name).scaled < 1.96 for name in upright if name in case.hidden)
    wanted = [name for name in case.true if name in REQUIRED]
    return Result(
        marks=marks,
        hidden=hidden,
        handled=all(name in upright for name in wanted),
        right_side=found.absent == case.absent,
        invented=sum(bool(case.absent) and name.endswith(case.absent) for name in upright),
        doubtful=len(upright.doubtful),
        written=len(upright),
        **size,
    )


def _mark(case: Case, found: Landmarks, name: str) -> Mark:
    kind = name if name in STERNUM else name.rsplit("_", 1)[0]
    true = next(known for known in (case.true, case.folds, case.hidden) if name in known)
    off = found[name] - true[name]
    axis, away = AXIS[kind], float(np.linalg.norm(off))
    size = away if axis is None else float(abs(off[axis]))
    sd = found.found[name].sd * (np.sqrt(2.0) if axis is None else 1.0)  # per direction along the skin
    return Mark(kind, size, away, size / sd, found.found[name].doubtful)


def walked(surface: Surface, mesh: TriangleMesh, start: Floats, distance: float, way: Floats) -> Floats:
    """The point so many mm along the skin from another, in a direction."""
    normals, place = vertex_normals(mesh.vertices, mesh.faces), start[None]
    for _ in range(round(distance / 3.0)):
        near = surface.closest(place)
        normal = normals[mesh.faces[near.faces[0]]].mean(axis=0)
        way = way - (way @ normal) / (normal @ normal) * normal
        way = way / np.linalg.norm(way)
        place = surface.closest(near.points + 3.0 * way).points
    return place[0]


def accused(mesh: TriangleMesh, landmarks: Landmarks) -> set[str]:
    """Names that the second pair of eyes names."""
    findings, _ = recheck_landmarks(mesh, landmarks, Similarity())
    return {
        str(one.values[key]) for one in findings for key in ("name", "first", "second") if key in one.values
    }


def mistakes(case: Case, rng: np.random.Generator) -> dict[str, object]:
    """Right landmarks, then one nipple moved less and the other more along the skin, shown to other eyes."""
    mesh, true = case.upright, case.true.only(name for name in case.true if name in REQUIRED)
    surface, moved = Surface(mesh), {name: true[name] for name in true}
    nipples = rng.permutation([name for name in true if name.startswith("nipple")]).tolist()
    distances = dict(zip(nipples, rng.permutation(list(MOVES)).tolist(), strict=False))
    for name, distance in distances.items():
        moved[name] = walked(surface, mesh, true[name], distance, rng.normal(size=3))
    named = accused(mesh, Landmarks.of(moved))
    caught = {distance: [name in named] for name, distance in distances.items()}
    return {"false_alarms": len(accused(mesh, true)), "shown": len(true), "caught": caught}


def measured(place: Path, item: tuple[str, str]) -> Measured:
    """All that is asked of one scan."""
    folder, name = place / item[0], item[1]
    case = Case.of(folder, name)
    plain = judged(case, folder / "found" / f"{name}.json")
    if item[0] in ONLY_BREASTS:
        return Measured(plain)
    flat = flattened(case)
    pale = judged(without_contrast(flat)) if case.mesh.colors is not None else None
    rng = np.random.default_rng(list(name.encode()))
    return Measured(plain, judged(flat), pale, **mistakes(case, rng))  # type: ignore[arg-type]


def _setup(place: Path) -> Callable[[tuple[str, str]], Measured]:
    return partial(measured, place)


# --------------------------------------------------------------------------------------------------------------------
# What is no whole torso
# --------------------------------------------------------------------------------------------------------------------

HALVES = 12  # scans of a set that are cut in halves
HELD = 10.0  # mm from what is left of a scan to the true place of a landmark that it still holds


def ellipsoid(centre: Sequence[float], radii: Sequence[float]) -> TriangleMesh:
    """A closed round thing, mm."""
    angle, height = np.meshgrid(np.linspace(0, 2 * np.pi, 90), np.linspace(-1, 1, 60))
    ring = np.sqrt(1 - height**2)
    points = np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=-1).reshape(-1, 3)
    a = (np.arange(59)[:, None] * 90 + np.arange(89)).ravel()
    faces = np.concatenate([np.c_[a, a + 90, a + 1], np.c_[a + 1, a + 90, a + 91]])
    return TriangleMesh(np.asarray(centre) + points * radii, faces)


def box(centre: Sequence[float], half: Sequence[float]) -> TriangleMesh:
    """A closed thing with six sides: a round one pressed outwards, mm."""
    ball = ellipsoid((0, 0, 0), (1, 1, 1))
    square = np.clip(ball.vertices * 4.0, -1.0, 1.0)
    return ball.with_vertices(np.asarray(centre) + square * half)


def together(*parts: TriangleMesh) -> TriangleMesh:
    """Several surfaces in one file."""
    first = np.cumsum([0, *(part.n_vertices for part in parts)])
    faces = [part.faces + start for part, start in zip(parts, first, strict=False)]
    return TriangleMesh(np.vstack([part.vertices for part in parts]), np.vstack(faces))


def things() -> dict[str, TriangleMesh]:
    """What somebody may hold before a scanner, as large as it is, mm."""
    fingers = [ellipsoid((18.0 * k - 30.0, 85.0 - 4.0 * (k - 1.5) ** 2, 0), (9, 45, 9)) for k in range(4)]
    legs = [box((x, -250, z), (20, 220, 20)) for x in (-190, 190) for z in (-190, 190)]
    head = (ellipsoid((0, 0, 0), (75, 110, 95)), ellipsoid((0, -5, 95), (12, 22, 18)))
    return {
        "ball, 400 mm": ellipsoid((0, 0, 0), (200, 200, 200)),
        "egg, 450 mm": ellipsoid((0, 0, 0), (150, 225, 110)),
        "head": together(*head, ellipsoid((0, -140, -20), (55, 70, 55))),
        "hand": together(ellipsoid((0, 0, 0), (42, 50, 16)), ellipsoid((52, 10, 0), (30, 12, 12)), *fingers),
        "chair": together(box((0, 0, 0), (220, 20, 220)), box((0, 270, -200), (220, 230, 15)), *legs),
        "plate": ellipsoid((0, 0, 0), (250, 250, 2)),
    }


def cut(case: Case) -> dict[str, TriangleMesh]:
    """Halves of an upright torso: through the sternum, and through the breasts."""
    mesh, true = case.upright, case.true
    middle = true.array(STERNUM)[:, 0].mean()
    level = np.mean([true[name][1] for name in true if name.startswith("nipple")])
    x, y, _ = mesh.vertices.T
    sides = {
        "left half": x > middle,
        "right half": x < middle,
        "upper half": y > level,
        "lower half": y < level,
    }
    return {name: mesh.kept(kept[mesh.faces].all(axis=1)) for name, kept in sides.items()}


def answer(mesh: TriangleMesh) -> FoundLandmarks | str:
    """What the program says of a surface: landmarks, or the name of the refusal."""
    try:
        return find_landmarks(mesh, "mm")
    except MeshProblem as error:
        return error.name


def passed(case: Case, mesh: TriangleMesh, found: FoundLandmarks) -> list[str]:
    """Landmarks that were written, and not doubted, though their true place is cut off."""
    sure = [name for name in found.landmarks if name in case.true and name not in found.doubtful]
    away = Surface(mesh).closest(case.true.array(sure)).distances if sure else np.empty(0)
    return [name for name, off in zip(sure, away, strict=True) if off > HELD]


def hostile(place: Path, sets: Iterable[str]) -> list[str]:
    """What is no whole torso, one line a kind; those that were taken for one without a word."""
    silent = []
    print("\nWhat is no whole torso")
    for name, thing in things().items():
        said = answer(thing)
        print(f"  {name:32s} {'refused: ' + said if isinstance(said, str) else said}", flush=True)
        silent += [name] if not isinstance(said, str) else []
    for name in sets:
        files = sorted((place / name / "landmarks").glob("*.json"))[:HALVES]
        cases = [Case.of(place / name, path.stem) for path in files]
        whole = [case for case in cases if not case.absent]
        pairs = [together(a.upright, b.upright.with_vertices(b.upright.vertices + [650.0, 0.0, 0.0]))
                 for a, b in zip(whole[::4], whole[1::4], strict=False)]  # fmt: skip
        told = [isinstance(answer(pair), str) for pair in pairs]
        print(f"  {name + ', two people':32s} {sum(told)} of {len(told)} refused", flush=True)
        silent += [f"{name}: two people"] * (not all(told))
        inverted = [answer(case.upright.flipped()) for case in whole[::4]]
        told = [isinstance(said, str) or bool(said.warnings) for said in inverted]
        print(f"  {name + ', inside out':32s} {sum(told)} of {len(told)} named", flush=True)
        silent += [f"{name}: inside out"] * (not all(told))
        halves = [(kind, case, mesh) for case in whole for kind, mesh in cut(case).items()]
        for kind in dict.fromkeys(kind for kind, *_ in halves):
            said = [(case, mesh, answer(mesh)) for own, case, mesh in halves if own == kind]
            taken = [one for one in said if not isinstance(one[2], str)]
            # Half a torso is no chest after a mastectomy: what is cut off must be said to be.
            calm = [one for one in taken if one[2].absent or passed(*one)]
            words = f"{len(said) - len(taken)} of {len(said)} refused, {len(taken) - len(calm)} without what is cut off"
            print(f"  {name + ', ' + kind:32s} {words}, {len(calm)} wrongly taken", flush=True)
            silent += [f"{name}: {kind}"] * bool(calm)
    return silent


# --------------------------------------------------------------------------------------------------------------------
# A long batch
# --------------------------------------------------------------------------------------------------------------------

WARM = 0.1  # of a batch after which everything is loaded
GROWTH = 1.1  # times as much memory in the second half of the rest as in its first


def batch(place: Path, many: int, n: int, seed: int) -> bool:
    """Whether the command's memory stays as it is over many scans; prints it by the number of scans done."""
    write_cohort(place / "made", n, seed, 1)
    made = sorted((place / "made" / "scans").iterdir())
    scans, out = place / "scans", place / "out"
    scans.mkdir()
    for k in range(many):
        (scans / f"{k:04d}{made[k % len(made)].suffix}").hardlink_to(made[k % len(made)])
    words = [sys.executable, "-m", "breastmorph", "landmarks", str(scans), "--out", str(out), "--jobs", "1"]
    memory: list[tuple[int, float]] = []
    with subprocess.Popen([*words, "--no-sheets"], stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            with suppress(OSError, IndexError):  # it has just ended
                memory.append((len(list(out.glob("*.json"))), measuring.resident(running.pid)))
            time.sleep(0.5)
    done = len(list(out.glob("*.json")))
    for low in np.linspace(0, many, 10, endpoint=False).astype(int):
        own = [held for count, held in memory if low <= count < low + many / 10]
        print(f"  scans {low:5d} and on: {max(own, default=0.0):6.0f} MB", flush=True)
    late = [held for count, held in memory if count > WARM * many]
    first, second = np.array_split(late, 2)
    print(f"{done} of {many} scans, at most {max(held for _, held in memory):.0f} MB;", end=" ")
    print(f"second half over first {np.median(second) / np.median(first):.2f} (at most {GROWTH})")
    return bool(done == many and np.median(second) < GROWTH * np.median(first))


# --------------------------------------------------------------------------------------------------------------------
# Tables
# --------------------------------------------------------------------------------------------------------------------


def spread(values: Iterable[float]) -> str:
    """Median / 90th percentile."""
    values = list(values)
    return f"{np.median(values):.1f} / {np.quantile(values, 0.9):.1f}" if values else "-"


def share(values: Iterable[bool]) -> str:
    """Per cent, and of how many."""
    values = list(values)
    return f"{100 * np.mean(values):.0f} % of {len(values)}" if values else "-"


def offs(results: Iterable[Result], kind: str) -> list[float]:
    """Errors of a kind, mm."""
    return [mark.off for result in results for mark in result.marks if mark.kind == kind]


def print_table(title: str, rows: dict[str, Sequence[str]], sets: Sequence[str]) -> None:
    """One row a question, one column a set."""
    print(f"\n{title}")
    print(" " * 34 + "".join(f"{name:>19s}" for name in sets))
    for name, cells in rows.items():
        print(f"  {name:32s}" + "".join(f"{cell:>19s}" for cell in cells), flush=True)


def accuracy(results: dict[str, list[Measured]]) -> dict[str, list[str]]:
    """Rows of the main table."""
    plain = [[one.plain for one in measured] for measured in results.values()]
    marks = [[mark for result in found for mark in result.marks] for found in plain]
    rows = {kind.replace("imf", "fold that shows"): [spread(offs(r, kind)) for r in plain] for kind in AXIS}
    rows["handled"] = [share(r.handled for r in found) for found in plain]
    rows["visible folds found"] = [_folds_found(found) for found in plain]
    rows["breasts present told rightly"] = [
        share(r.right_side for r in found if not r.refused) for found in plain
    ]
    rows["invented on an absent side"] = [str(sum(r.invented for r in found)) for found in plain]
    rows["> 40 mm off and not doubtful"] = [str(len(far(own))) for own in marks]
    rows["within 1.96 deviations"] = [share(mark.scaled < 1.96 for mark in own) for own in marks]
    rows["hidden folds within them"] = [share(one for r in found for one in r.hidden) for found in plain]
    rows["doubtful"] = [_doubtful(found) for found in plain]
    rows["CPU seconds, median"] = [f"{np.median([r.seconds for r in found]):.2f}" for found in plain]
    rows["vertices, median"] = [f"{np.median([r.vertices for r in found]):.0f}" for found in plain]
    rows["peak memory, MB"] = [f"{max(r.memory for r in found):.0f}" for found in plain]
    return {name.replace("_", " "): cells for name, cells in rows.items()}


def far(marks: Iterable[Mark]) -> list[Mark]:
    """Points that are wrong without a word."""
    return [m for m in marks if AXIS[m.kind] is None and m.away > FAR and not m.doubtful]


def _folds_found(found: Sequence[Result]) -> str:
    there = sum(r.folds for r in found)
    return f"{100 * len(offs(found, 'imf')) / there:.0f} % of {there}" if there else "-"


def _doubtful(found: Sequence[Result]) -> str:
    written = sum(r.written for r in found)
    return f"{100 * sum(r.doubtful for r in found) / max(written, 1):.1f} %"


def harder(results: dict[str, list[Measured]]) -> dict[str, list[str]]:
    """Rows of the flat nipples."""
    flat = [[one.flat for one in measured if one.flat] for measured in results.values()]
    pale = [[one.pale for one in measured if one.pale] for measured in results.values()]
    rows = {}
    for name, found in (("bump smoothed away", flat), ("... and no contrast", pale)):
        nipples = [[m for r in own for m in r.marks if m.kind == "nipple"] for own in found]
        rows[f"{name}: nipple"] = [spread(m.off for m in own) for own in nipples]
        rows[f"{name}: doubtful"] = [share(m.doubtful for m in own) for own in nipples]
    return rows


def second_eyes(results: dict[str, list[Measured]]) -> dict[str, list[str]]:
    """Rows of the mistakes."""
    rows = {
        f"nipple {distance:.0f} mm off, named": [
            share(hit for one in measured for hit in one.caught.get(distance, []))
            for measured in results.values()
        ]
        for distance in MOVES
    }
    rows["false alarms per landmark"] = [
        f"{100 * sum(o.false_alarms for o in own) / max(sum(o.shown for o in own), 1):.1f} %"
        for own in results.values()
    ]
    return rows


def missed(results: dict[str, list[Measured]]) -> list[str]:
    """Limits that are not kept."""
    out = []
    for name, own in results.items():
        plain = [one.plain for one in own]
        column = 2 if name.startswith("phantom") else 1 if "coloured" in name else 0
        for kind, limits in LIMITS.items():
            values = offs(plain, kind)
            if values and (np.quantile(values, [0.5, 0.9]) > limits[column]).any():
                out.append(f"{name}: {kind.replace('_', ' ')}")
        if far(mark for result in plain for mark in result.marks):
            out.append(f"{name}: more than {FAR:.0f} mm off and not doubtful")
        if np.mean([result.handled for result in plain]) < (0.97 if column == 2 else 0.95):
            out.append(f"{name}: handled")
        if not all(result.right_side for result in plain if not result.refused):
            out.append(f"{name}: breasts present")
        if (there := sum(r.folds for r in plain)) and len(offs(plain, "imf")) < FOLDS * there:
            out.append(f"{name}: visible folds")
        if sum(r.doubtful for r in plain) > DOUBTFUL * sum(r.written for r in plain):
            out.append(f"{name}: doubtful")
        most = SECONDS[0] if np.median([r.vertices for r in plain]) < SMALL_SCAN else SECONDS[1]
        if np.median([r.seconds for r in plain]) > most or max(r.memory for r in plain) > MEMORY:
            out.append(f"{name}: time or memory")
        for kind, found in (
            ("flat", [one.flat for one in own if one.flat]),
            ("pale", [one.pale for one in own if one.pale]),
        ):
            values = offs(found, "nipple")
            if values and (np.quantile(values, [0.5, 0.9]) > FLAT).any():
                out.append(f"{name}: {kind} nipples")
        for distance, least in MOVES.items():
            named = [hit for one in own for hit in one.caught.get(distance, [])]
            if named and np.mean(named) < least:
                out.append(f"{name}: nipples {distance:.0f} mm off")
        within = np.mean([mark.scaled < 1.96 for result in plain for mark in result.marks])
        if len(own) >= 50 and not CALIBRATED[0] <= within <= CALIBRATED[1]:
            out.append(f"{name}: calibration")
        if sum(one.false_alarms for one in own) > FALSE_ALARMS * sum(one.shown for one in own):
            out.append(f"{name}: false alarms")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=100, help="phantoms of each kind (100)")
    parser.add_argument("--seed", type=int, default=9001, help="of the phantoms (9001)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--only", default="", help="sets, separated by commas")
    parser.add_argument("--beside", type=Path, default=BESIDE, help="folder that holds torsos*")
    parser.add_argument("--keep", type=Path, help="folder for the sets and what was found")
    parser.add_argument("--batch", type=int, default=0, help="scans of a long batch, for its memory alone")
    arguments = parser.parse_args()
    if arguments.batch:
        with tempfile.TemporaryDirectory() as temporary:
            few = min(arguments.n, arguments.batch)
            return 0 if batch(Path(temporary), arguments.batch, few, arguments.seed) else 1
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.keep or Path(temporary)
        only = [name for name in arguments.only.split(",") if name]
        results: dict[str, dict[str, Measured]] = {}
        items = []
        made = sources(Path(temporary), arguments.beside, arguments.n, arguments.seed, arguments.jobs, only)
        for k, (name, source) in enumerate(made.items()):
            rng = np.random.default_rng([arguments.seed, k])
            for path in sorted((source / "landmarks").glob("*.json")):
                posed(source, place / name, path.stem, rng)
                items.append((name, path.stem))
        with closing(run_each(partial(_setup, place), items, arguments.jobs)) as done:
            for (name, one), result in done:
                if isinstance(result, Failure):
                    print(f"{name} {one}: {result.reason}", flush=True)
                    continue
                results.setdefault(name, {})[one] = result
                if result.plain.refused:
                    print(f"{name} {one} refused: {result.plain.refused}", flush=True)
        ordered = {
            name: [results[name][one] for one in sorted(results[name])] for name in made if name in results
        }
        if ordered:
            sets = list(ordered)
            print_table("Off by, mm, median / 90th percentile", accuracy(ordered), sets)
            print_table("Flat nipples, mm", harder(ordered), sets)
            print_table("A second pair of eyes", second_eyes(ordered), sets)
        broken = missed(ordered)
        if not only or "hostile" in only:
            broken += hostile(place, [name for name in made if name in ("phantom", "torsos")])
        elif not ordered:
            print("no such set is present, nothing measured")
            return 0
    print("\nLimits missed: " + (", ".join(broken) if broken else "none"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
