"""The scanner: three views of a posed torso, what none of them sees is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import normals_within, vertex_normals
from breastmorph.mesh.similarity import Similarity, rotation_about
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.phantom.breast import Breast
from breastmorph.phantom.dense_truth import Torso, arm_length, build
from breastmorph.phantom.retriangulation import refinement, retriangulated
from breastmorph.phantom.thorax import Thorax
from breastmorph.scan.landmarks import SIDES, STERNUM, Landmarks


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
    torso: Torso, rng: np.random.Generator, parameters: ScannerParameters | None = None
) -> ScannedTorso:
    """Scan a torso: pose it, look from three sides, triangulate anew, add noise, annotate."""
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
