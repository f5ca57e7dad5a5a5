"""What a scanner sees of a body, the triangles it makes of it, and the files."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags, identity, vstack
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import csv_text, make_folder, write_file
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.workers import Failure, run_each
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import (
    Similarity,
    face_areas,
    normals_within,
    rotation_about,
    vertex_areas,
    vertex_normals,
)
from breastmorph.mesh.skin import from_lab
from breastmorph.mesh.topology import (
    boundary_loops,
    edge_table,
    face_components,
    pinched_vertices,
    with_three_corners,
)
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom.body import Thorax
from breastmorph.phantom.cohort import (
    STERNUM_LEVELS,
    PhantomParameters,
    Subject,
    Torso,
    VisitParameters,
    arm_length,
    build,
    draw_cohort,
    later_visit,
    mean_torso,
    mirror_vertices,
    skin_chart,
    topology,
    torso,
)
from breastmorph.phantom.skin import BareSkin, Breast, Complexion
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import SIDES, STERNUM, Landmarks

_AREA_PER_VERTEX = 0.80  # of the squared mean edge, measured on the clusters below
_EVEN = np.array([0 * 9 + 1 * 3 + 2, 1 * 9 + 2 * 3 + 0, 2 * 9 + 0 * 3 + 1])  # even orders of three corners
_ROUNDS = 4  # of moving the seeds to the centres of their clusters; fewer is more irregular
_PINHOLE = 9  # edges around a hole that is filled


def refinement(points: Floats, faces: Ints, longest: float) -> tuple[csr_matrix, Ints]:
    """Split edges in the middle until none is longer than ``longest``.

    Returns
    -------
    midpoints : (k, n) sparse
        Its product with values per vertex gives them on the finer mesh, whose first n vertices are the old.
    faces : (l, 3) int
    """
    total = identity(len(points), format="csr")
    while True:
        table = edge_table(faces)
        ends = points[table.edges]
        long = ((ends[:, 0] - ends[:, 1]) ** 2).sum(axis=1) > longest**2
        if not long.any():
            return total, faces
        n, new = len(points), int(long.sum())
        middle = np.full(len(table.edges), -1)
        middle[long] = n + np.arange(new)
        halves = csr_matrix(
            (np.full(2 * new, 0.5), (np.repeat(np.arange(new), 2), table.edges[long].ravel())), (new, n)
        )
        total = vstack([total, halves @ total], format="csr")
        points = np.vstack([points, ends[long].mean(axis=1)])
        # Middles of the edges ab, bc, ca of every face, -1 where not split.
        faces = _split(faces, middle[table.of_half_edge].reshape(3, -1).T)


def _split(faces: Ints, cut: Ints) -> Ints:
    """Faces cut at the given middles of their edges."""
    parts = []
    count = (cut >= 0).sum(axis=1)
    parts.append(faces[count == 0])
    # Turn every face so that its first edges are the cut ones, then one pattern serves each count.
    for number, pattern in ((1, _ONE), (2, _TWO), (3, _THREE)):
        chosen = count == number
        f, c = faces[chosen], cut[chosen]
        uncut = np.argmax(c < 0, axis=1) if number == 2 else np.argmax(c >= 0, axis=1)
        turn = (uncut + 1) % 3 if number == 2 else uncut * (number == 1)
        columns = (np.arange(3)[None, :] + turn[:, None]) % 3
        six = np.hstack([np.take_along_axis(f, columns, axis=1), np.take_along_axis(c, columns, axis=1)])
        parts.append(six[:, pattern].reshape(-1, 3))
    return np.concatenate(parts)


# Corners 0-2 and the middles 3 (of 0-1), 4 (of 1-2), 5 (of 2-0).
_ONE = np.array([0, 3, 2, 3, 1, 2])
_TWO = np.array([3, 1, 4, 0, 3, 4, 0, 4, 2])
_THREE = np.array([0, 3, 5, 3, 1, 4, 5, 4, 2, 3, 4, 5])


def retriangulated(points: Floats, faces: Ints, edge: float, rng: np.random.Generator) -> TriangleMesh:
    """Triangulate a densely sampled surface anew.

    Parameters
    ----------
    points, faces : (n, 3) float, (m, 3) int
        The dense surface, its edges well below ``edge``.
    edge : float
        Wanted mean edge, mm.
    rng : numpy Generator
    """
    weight = vertex_areas(points, faces)
    used = np.flatnonzero(weight > 0)
    area = face_areas(points, faces).sum()
    count = int(area / (_AREA_PER_VERTEX * edge**2))
    # Seeds as evenly spread at random as a low-cost draw gives: one per stratum of the cumulated area.
    steps = np.cumsum(weight[used])
    order = np.searchsorted(steps, (np.arange(count) + rng.uniform(size=count)) * steps[-1] / count)
    seeds = points[used[np.minimum(order, len(used) - 1)]]
    label = np.zeros(len(points), dtype=np.int64)
    for _ in range(_ROUNDS):
        label[used] = cKDTree(seeds, balanced_tree=False).query(points[used])[1]
        mass = np.bincount(label[used], weight[used], minlength=count)
        total = [np.bincount(label[used], weight[used] * points[used, k], minlength=count) for k in range(3)]
        seeds = np.where(
            (mass > 0)[:, None], np.stack(total, axis=1) / np.maximum(mass, 1e-12)[:, None], seeds
        )
    corner = label[faces]
    return _cleaned(seeds, corner[with_three_corners(corner)])


def _cleaned(points: Floats, faces: Ints) -> TriangleMesh:
    """One manifold piece of the dual: no face twice, no edge with more than two faces."""
    # Clusters map the dense surface onto their dual. Where the map folds, a face appears with either side up;
    # only the balance of both is surface, and taking it leaves no gaps.
    order = np.argsort(faces, axis=1)
    side = np.where(np.isin(order @ np.array([9, 3, 1]), _EVEN), 1, -1)
    key = np.take_along_axis(faces, order, axis=1) @ np.array([len(points) ** 2, len(points), 1])
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    balance = np.bincount(inverse, side) * side[first]
    faces = np.where((balance > 0)[:, None], faces[first], faces[first][:, ::-1])[balance != 0]
    while True:
        table = edge_table(faces)
        directed = table.directed
        key = directed[:, 0] * len(points) + directed[:, 1]
        _, inverse, uses = np.unique(key, return_inverse=True, return_counts=True)
        bad = (uses[inverse] > 1) | (table.face_count[table.of_half_edge] > 2)
        bad = bad.reshape(3, -1).any(axis=0)
        piece = face_components(faces[~bad])
        faces = faces[~bad][piece == np.bincount(piece).argmax()]
        pinched = np.isin(faces, pinched_vertices(faces)).any(axis=1)
        if not bad.any() and not pinched.any():
            break
        faces = faces[~pinched]
    points, faces = _filled(points, faces)
    return TriangleMesh(points, faces).kept(np.ones(len(faces), bool))  # drops vertices without faces


def _filled(points: Floats, faces: Ints) -> tuple[Floats, Ints]:
    """Close pinholes, as scanners' software does: a new vertex in the middle of every short border loop."""
    for loop in boundary_loops(faces):
        if len(loop) <= _PINHOLE and len(set(loop.tolist())) == len(loop):
            # A border edge is run through backwards by the faces that close it.
            fan = np.stack([np.roll(loop, -1), loop, np.full(len(loop), len(points))], axis=1)
            faces = np.vstack([faces, fan])
            points = np.vstack([points, points[loop].mean(axis=0)])
    return points, faces


@dataclass(frozen=True)
class ScannerParameters:
    """How the scanner sees."""

    views: tuple[float, ...] = (-45.0, 0.0, 45.0)  # degrees about the vertical axis
    view_jitter: float = 3.0  # degrees, standard deviation
    distance: float = 1000.0  # mm from the chest
    grazing: float = 75.0  # degrees between view and normal beyond which nothing is measured
    edge: float = 3.5  # mean edge of the triangulation, mm
    noise: float = 0.3  # standard deviation along the normal, mm
    noise_rounds: int = 4  # of smoothing: correlates the noise over about two edges
    ragged: float = 3.5  # mm, how far borders wander
    turn: float = 10.0  # greatest rotation of the pose, degrees
    shift: float = 30.0  # greatest translation of the pose, mm
    annotation: float = 1.0  # mm, root mean square along the surface
    annotation_lower_pole: float = 4.0
    top_above_notch: tuple[float, float] = (28.0, 55.0)  # mm
    bottom_lost: tuple[float, float] = (3.0, 22.0)  # mm above the lower end of the torso
    arm_kept: tuple[float, float] = (95.0, 150.0)  # mm from the shoulder joint


@dataclass(frozen=True, eq=False)
class ScannedTorso:
    """A scan with its truth, both in the scan file's frame.

    Attributes
    ----------
    mesh : TriangleMesh
        What the scanner gives.
    landmarks : Landmarks
        As annotated, on the scan's surface.
    points : (n, 3) float
        True positions on the fixed topology.
    visible : (n,) bool
        Vertices of the fixed topology that the scan holds.
    landmark_true : Landmarks
    pose : Similarity
        From the canonical frame to the file's.
    """

    mesh: TriangleMesh
    landmarks: Landmarks
    points: Floats
    visible: Bools
    landmark_true: Landmarks
    pose: Similarity


def scan_subject(
    torso: Torso,
    rng: np.random.Generator,
    parameters: ScannerParameters | None = None,
    complexion: Complexion | None = None,
) -> ScannedTorso:
    """Scan a torso: pose it, look from three sides, triangulate anew, add noise, colour it if asked, annotate."""
    p = parameters or ScannerParameters()
    pose = _pose(rng, p)
    points = pose.apply(torso.mesh.vertices)
    true = torso.landmarks.transformed(pose)
    surface = Surface(TriangleMesh(points, torso.mesh.faces))
    cameras = _cameras(true, rng, p)

    # Only faces that some view may see are worth sampling densely.
    normals = vertex_normals(points, torso.mesh.faces)
    likely = _seen(surface, points, normals, cameras, p.grazing + 6.0, np.zeros(len(points)))
    finer, faces = _finer_topology()
    faces = faces[(finer @ likely > 0)[faces].any(axis=1)]
    used = np.zeros(finer.shape[0], bool)
    used[: len(points)] = used[faces] = True
    faces = (np.cumsum(used) - 1)[faces]
    carried = np.column_stack([points, normals, torso.mesh.vertices[:, 1], arm_length()])
    dense = finer[used] @ carried
    where, normal = dense[:, :3], dense[:, 3:6]
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    wander = _wandering(where, rng)
    seen = _seen(surface, where, normal, cameras, p.grazing, 2.0 * wander)
    seen &= _within(dense[:, 6:], torso, wander * p.ragged, rng, p)

    mesh = retriangulated(where, faces[seen[faces].all(axis=1)], p.edge, rng)
    visible = seen[: len(points)] & (Surface(mesh).closest(points).distances < 1.5)
    mesh = mesh.with_vertices(mesh.vertices + _noise(mesh, rng, p))
    if complexion:
        mesh = replace(mesh, colors=_colours(mesh, torso, surface, complexion))
    return ScannedTorso(mesh, _annotated(mesh, true, rng, p), points, visible, true, pose)


@lru_cache(maxsize=1)
def _finer_topology() -> tuple[csr_matrix, Ints]:
    """The fixed topology refined for sampling, fine enough for skin stretched over a large breast."""
    large = build(Thorax(), dict.fromkeys(SIDES, Breast(volume=900.0, sag=1.2)))
    return refinement(large.mesh.vertices, large.mesh.faces, 2.5)


def _pose(rng: np.random.Generator, p: ScannerParameters) -> Similarity:
    def in_ball(radius: float) -> Floats:
        v = rng.normal(size=3)
        return radius * rng.uniform() ** (1.0 / 3.0) * v / np.linalg.norm(v)

    turn = in_ball(p.turn)
    return Similarity(rotation_about(turn, float(np.linalg.norm(turn))), in_ball(p.shift))


def _cameras(true: Landmarks, rng: np.random.Generator, p: ScannerParameters) -> Floats:
    target = true.array(STERNUM).mean(axis=0) + np.array([0.0, -40.0, -60.0])
    cameras = []
    for view in p.views:
        yaw, pitch = view + p.view_jitter * rng.normal(), p.view_jitter * rng.normal()
        away = rotation_about(np.array([0.0, 1.0, 0.0]), yaw) @ rotation_about(
            np.array([1.0, 0.0, 0.0]), pitch
        )
        distance = p.distance * (1.0 + 0.05 * rng.normal())
        cameras.append(target + distance * away @ np.array([0.0, 0.0, 1.0]))
    return np.array(cameras)


def _seen(
    surface: Surface, points: Floats, normals: Floats, cameras: Floats, grazing: float, wander: Floats
) -> Bools:
    """Which points some camera sees, (n,). ``wander`` (n,) loosens the grazing limit in degrees."""
    seen = np.zeros(len(points), bool)
    limit = np.cos(np.radians(grazing + wander))
    for camera in cameras:
        ray = points - camera
        distance = np.linalg.norm(ray, axis=1)
        ray /= distance[:, None]
        ask = np.flatnonzero(~seen & (-(ray * normals).sum(axis=1) > limit))
        _, hit, _ = surface.first_hit(np.broadcast_to(camera, (len(ask), 3)), ray[ask])
        seen[ask] = hit >= distance[ask] - 0.7
    return seen


def _within(
    level_and_arm: Floats, torso: Torso, wander: Floats, rng: np.random.Generator, p: ScannerParameters
) -> Bools:
    """What the operator's crop keeps: neck, waist and arms are cut, raggedly."""
    level, arm = level_and_arm.T
    top = torso.landmarks["sternal_notch"][1] + rng.uniform(*p.top_above_notch)
    bottom = np.percentile(torso.mesh.vertices[:, 1], 0.5) + rng.uniform(*p.bottom_lost)
    left, right = rng.uniform(*p.arm_kept, size=2)
    return (
        (level < top + wander) & (level > bottom + wander) & (arm < left + wander) & (arm > -right - wander)
    )


def _wandering(points: Floats, rng: np.random.Generator) -> Floats:
    """A smooth random field of unit variance with wavelengths of 8 to 60 mm, (n,)."""
    count = 12
    length = np.geomspace(8.0, 60.0, count)
    wave = rng.normal(size=(count, 3))
    wave *= (2.0 * np.pi / length / np.linalg.norm(wave, axis=1))[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, count)
    angle = (points @ wave.T + phase).astype(np.float32)
    return np.cos(angle) @ rng.normal(size=count) * np.sqrt(2.0 / count)


def _noise(mesh: TriangleMesh, rng: np.random.Generator, p: ScannerParameters) -> Floats:
    i, j = edge_table(mesh.faces).edges.T
    n = mesh.n_vertices
    ones = np.ones(2 * len(i) + n)
    ids = np.arange(n)
    around = coo_matrix((ones, (np.r_[i, j, ids], np.r_[j, i, ids])), shape=(n, n)).tocsr()
    average = diags(1.0 / np.asarray(around.sum(axis=1)).ravel()) @ around
    noise = rng.normal(size=n)
    for _ in range(p.noise_rounds):
        noise = average @ noise
    noise *= p.noise / noise.std()
    return noise[:, None] * vertex_normals(mesh.vertices, mesh.faces)


def _colours(mesh: TriangleMesh, torso: Torso, posed: Surface, complexion: Complexion) -> NDArray[np.uint8]:
    """Vertex colours of a scan of a torso, which ``posed`` is in the scan's frame; (n, 4)."""
    near, chart, true = posed.closest(mesh.vertices), skin_chart(), torso.mesh
    normals = vertex_normals(true.vertices, true.faces)
    known = np.column_stack([true.vertices, normals, chart.around, chart.level])
    there = np.einsum("nc,ncd->nd", near.weights, known[true.faces[near.faces]])
    nipples = {side: true.vertices[chart.nipple[side]] for side in SIDES if side != torso.absent}
    skin = BareSkin(there[:, :3], there[:, 3:6], there[:, 6], there[:, 7], nipples, chart.nipple_at)
    opaque = np.full((mesh.n_vertices, 1), 255, np.uint8)
    return np.hstack([from_lab(skin.coloured(complexion)), opaque])


def _annotated(
    mesh: TriangleMesh, true: Landmarks, rng: np.random.Generator, p: ScannerParameters
) -> Landmarks:
    """Landmarks as a person sets them: off along the surface, on the scan."""
    surface = Surface(mesh)
    near = surface.closest(true.points)
    normals = vertex_normals(mesh.vertices, mesh.faces)
    normal = normals_within(normals, mesh.faces[near.faces], near.weights)
    off = rng.normal(size=(len(true), 3))
    off -= (off * normal).sum(axis=1, keepdims=True) * normal
    size = [p.annotation_lower_pole if name.startswith("lower_pole") else p.annotation for name in true.names]
    # Two free directions share the error.
    moved = near.points + np.sqrt(0.5) * np.array(size)[:, None] * off
    return Landmarks(true.names, surface.closest(moved).points)


COLUMNS = (
    "id", "age", "bmi", "volume_left", "volume_right", "ptosis_left", "ptosis_right", "operated", "absent",
)  # fmt: skip
VISIT_COLUMNS = ("person", "visit", "volume_change_left", "volume_change_right")  # where there are several
_TOPOLOGY = -1  # in the list of work, beside the subjects' numbers
_GRADES = (0.0, 10.0, 30.0)  # mm below the fold at which the nipple enters ptosis grades I, II, III


def write_cohort(
    out: str | Path,
    n: int,
    seed: int,
    jobs: int = 1,
    one_sided: int = 0,
    on_done: Callable[[int], None] | None = None,
    colour: bool = False,
    visits: int = 1,
    changes: VisitParameters | None = None,
    parameters: PhantomParameters | None = None,
) -> list[dict[str, str]]:
    """Draw, scan and write a cohort; the same seed gives the same bytes whatever the number of jobs.

    Parameters
    ----------
    out : str or Path
        A new or empty folder, or one that holds a cohort of the same size.
    n, seed, one_sided : int
        See :func:`breastmorph.phantom.cohort.draw_cohort`.
    jobs : int
        Worker processes; 1 works in this process.
    on_done : callable, optional
        Called with the number of finished subjects.
    colour : bool
        Whether the scans have vertex colours; their shapes are the same with and without.
    visits : int
        How often each one is scanned (see :func:`breastmorph.phantom.cohort.later_visit`). With more than one, scans
        are called ``000_1``, ``000_2`` ...; the first ones are the scans of the same cohort with one visit.
    changes : VisitParameters, optional
        What is other at each later visit, against the first: posture, breath, and in some people one breast.
    parameters : PhantomParameters, optional
        Who is drawn.

    Returns
    -------
    rows : list of dict
        The rows of ``cohort.csv``.
    """
    out = Path(out)
    if visits < 1:
        raise BreastMorphError("{visits} visits cannot be made", "Ask for at least one", visits=visits)
    subjects = draw_cohort(n, seed, one_sided, parameters)
    calls = [_Call(index, visit, visits > 1) for index in range(n) for visit in range(1, visits + 1)]
    _make_folders(out, {call.name_of(subjects[call.index]) for call in calls})
    rows: dict[int, dict[str, str]] = {}
    items = [_TOPOLOGY, *range(len(calls))]
    writer = partial(_writer, out, subjects, calls, seed, colour, changes)
    work = _here(writer, items) if jobs == 1 else run_each(writer, items, max(1, min(jobs, len(calls))))
    with closing(work) as results:
        for index, row in results:
            if isinstance(row, Failure):
                raise row.error or BreastMorphError(
                    "subject {index} could not be made: {why}",
                    "Try again with fewer processes",
                    code="subject-not-made",
                    index=index,
                    why=row.reason,
                )
            if index != _TOPOLOGY:
                rows[index] = row
                if on_done:
                    on_done(len(rows))
    columns = COLUMNS if visits == 1 else (*COLUMNS, *VISIT_COLUMNS)
    ordered = [rows[index] for index in range(len(calls))]
    write_file(out / "cohort.csv", csv_text(columns, ordered).encode())
    return ordered


@dataclass(frozen=True)
class _Call:
    """One scan to be made: of which subject, at which visit, and whether there are several."""

    index: int
    visit: int
    one_of_several: bool

    def name_of(self, subject: Subject) -> str:
        return f"{subject.id}_{self.visit}" if self.one_of_several else subject.id

    def rng(self, seed: int, purpose: int) -> np.random.Generator:
        """A child of the seed per subject and visit: no scan depends on the order in which they are made."""
        key = (purpose, self.index) if self.visit == 1 else (purpose, self.index, self.visit)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _here(
    setup: Callable[[], Callable[[int], dict[str, str]]], items: Iterable[int]
) -> Generator[tuple[int, dict[str, str] | Failure], None, None]:
    """The work of one process, in this one; with one thread as there, so that sums come out alike."""
    write = setup()
    for item in items:
        with one_thread():
            row = write(item)
        yield item, row


_SCANNING, _COLOURS, _VISITING = 1, 2, 3  # what the children of the seed are for


def _writer(
    out: Path,
    subjects: Sequence[Subject],
    calls: Sequence[_Call],
    seed: int,
    colour: bool,
    changes: VisitParameters | None,
) -> Callable[[int], dict[str, str]]:
    def write(index: int) -> dict[str, str]:
        if index == _TOPOLOGY:
            _write_topology(out)
            return {}
        call = calls[index]
        return _write_subject(out, subjects[call.index], call, seed, colour, changes)

    return write


def _write_subject(
    out: Path, person: Subject, call: _Call, seed: int, colour: bool, changes: VisitParameters | None = None
) -> dict[str, str]:
    subject, breath, name = person, 0.0, call.name_of(person)
    if call.visit > 1:
        later = later_visit(person, call.rng(seed, _VISITING), changes)
        subject, breath = later.subject, later.breath
    true = torso(subject)
    # Shapes do not depend on colours, and these are the same at all visits.
    complexion = Complexion.drawn(replace(call, visit=1).rng(seed, _COLOURS)) if colour else None
    scan = scan_subject(true, call.rng(seed, _SCANNING), complexion=complexion)
    save_mesh(scan.mesh, out / "scans" / f"{name}.ply")
    save_landmarks(scan.landmarks, out / "landmarks" / f"{name}.json")
    arrays, row = _truth(true, scan), {**_row(subject, true), "id": name}
    if complexion:
        arrays |= {
            "skin_tone": np.array(complexion.tone),
            "areola_change": np.array(complexion.areola),
            "areola_radius": np.array([complexion.areola_radius[side] for side in SIDES]),
        }
    if call.one_of_several:
        change = {side: subject.breast(side).volume - person.breast(side).volume for side in SIDES}
        arrays |= {f"volume_change_{side}": np.float64(change[side]) for side in SIDES}
        arrays |= {"person": np.array(person.id), "visit": call.visit, "breathing_mm": np.float64(breath)}
        row |= {"person": person.id, "visit": str(call.visit)}
        row |= {f"volume_change_{side}": f"{change[side]:.1f}" for side in SIDES}
    _save_arrays(out / "truth" / f"{name}.npz", arrays)
    return row


def _truth(true: Torso, scan: ScannedTorso) -> dict[str, object]:
    arrays: dict[str, object] = {
        "points": scan.points.astype(np.float32),
        "bare": scan.pose.apply(true.bare).astype(np.float32),
        "visible": scan.visible,
        "landmark_names": np.array(scan.landmark_true.names),
        "landmark_true": scan.landmark_true.points.astype(np.float32),
        "rotation": scan.pose.rotation,
        "translation": scan.pose.translation,
        "absent": np.array(true.absent),
    }
    for side in SIDES:
        arrays[f"breast_{side}"] = true.breast[side]
        arrays[f"volume_{side}"] = np.float64(true.volumes[side])
        arrays[f"below_fold_{side}"] = np.float64(true.below_fold[side])
    if true.absent:
        arrays["whole"] = scan.pose.apply(true.whole).astype(np.float32)
        arrays["removed_side"] = np.array(true.absent)
        arrays["remaining_volume"] = np.float64(true.remaining)
    return arrays | _fixed_points(true, scan)


def _fixed_points(true: Torso, scan: ScannedTorso) -> dict[str, object]:
    """Points that are always the same skin, the folds among them, and whether the scan shows them."""
    chart = skin_chart()
    ids = {f"imf_{side}": chart.fold[side] for side in SIDES}
    ids |= {f"nipple_{side}": chart.nipple[side] for side in SIDES}
    ids |= dict(zip(STERNUM, (chart.midline_vertex(level) for level in STERNUM_LEVELS), strict=True))
    where = list(ids.values())
    there = np.array([not (true.absent and name.endswith(true.absent)) for name in ids])
    return {
        "fixed_names": np.array(list(ids)),
        "fixed_points": scan.pose.apply(true.whole[where]).astype(np.float32),
        "fixed_on_scan": scan.visible[where] & there,
    }


def _row(subject: Subject, true: Torso) -> dict[str, str]:
    row = {
        "id": subject.id,
        "age": f"{subject.age:.1f}",
        "bmi": f"{subject.bmi:.1f}",
        "operated": "yes" if subject.operated else "no",
        "absent": subject.absent,
    }
    for side in SIDES:
        there = side != subject.absent
        grade = int(np.searchsorted(_GRADES, true.below_fold[side], side="right"))
        row[f"volume_{side}"] = f"{true.volumes[side]:.1f}" if there else ""
        row[f"ptosis_{side}"] = str(grade) if there else ""
    return row


def _write_topology(out: Path) -> None:
    mean = mean_torso()
    _save_arrays(
        out / "truth" / "topology.npz",
        {
            "faces": topology().astype(np.int32),
            "mirror": mirror_vertices().astype(np.int32),
            "mean": mean.mesh.vertices.astype(np.float32),
            "breast_left": mean.breast["left"],
            "breast_right": mean.breast["right"],
            "landmark_names": np.array(mean.landmarks.names),
            "landmark_true": mean.landmarks.points.astype(np.float32),
        },
    )


def _save_arrays(path: Path, arrays: dict[str, object]) -> None:
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    write_file(path, data.getvalue())


def _make_folders(out: Path, ids: set[str]) -> None:
    others = sorted(path.name for path in (out / "scans").glob("[!.]*") if path.stem not in ids)
    if others:
        raise FileProblem(
            "the folder already holds other scans ({others})",
            "Choose a new or empty folder",
            out,
            others=others[0],
        )
    for name in ("scans", "landmarks", "truth"):
        make_folder(out / name)
