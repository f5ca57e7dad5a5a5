"""The dense truth: a subject's torso on the fixed topology, with masks, landmarks and true volumes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.phantom.bare_surface import ARM_DIRECTION, SHOULDER_JOINT
from breastmorph.phantom.breast import Breast, BreastMap
from breastmorph.phantom.cohort import Subject
from breastmorph.phantom.lattice import lattice
from breastmorph.phantom.skin import BareChest, SkinChart, to_space
from breastmorph.phantom.thorax import Thorax, arm_weight, smooth_step, vary
from breastmorph.scan.landmarks import OF_A_BREAST, REQUIRED, SIDES, SIGN, Landmarks

_NOTCH_LEVEL, _XIPHOID_LEVEL = 0.0, -172.0  # heights on the mean torso's midline, mm
_MEAN_BREAST = Breast(volume=479.0, sag=0.75, upper_fullness=0.35, roundness=0.5)


@dataclass(frozen=True, eq=False)
class Torso:
    """A torso on the fixed topology in the canonical frame (mm).

    Attributes
    ----------
    mesh : TriangleMesh
    bare : (n, 3) float
        The same skin without breasts: the chest wall that volumes are measured over.
    whole : (n, 3) float
        With both breasts; differs from ``mesh`` only on the absent side of a one-sided subject.
    breast : dict of (n,) bool
        Vertices of each breast by side.
    landmarks : Landmarks
        True positions; those of an absent breast are left out.
    volumes : dict of float
        True volumes over the chest wall by side in cc, of ``whole``.
    below_fold : dict of float
        How far each nipple lies below the level of its fold, measured along the skin chart's heights (mm of the
        mean torso); negative above.
    absent : str
        Side without a breast, or empty.
    """

    mesh: TriangleMesh
    bare: Floats
    whole: Floats
    breast: dict[str, Bools]
    landmarks: Landmarks
    volumes: dict[str, float]
    below_fold: dict[str, float]
    absent: str = ""


def torso(subject: Subject) -> Torso:
    """The true torso of a subject."""
    return build(subject.thorax, {side: subject.breast(side) for side in SIDES}, subject.absent)


def mean_torso() -> Torso:
    """The mean torso: symmetric in x = 0 to the last bit under :func:`mirror_vertices`."""
    return build(Thorax(), dict.fromkeys(SIDES, _MEAN_BREAST))


def topology() -> Ints:
    """Faces of the fixed topology, (m, 3)."""
    return lattice().faces


def mirror_vertices() -> Ints:
    """For every vertex of the fixed topology the one on the other side, (n,)."""
    return lattice().mirror


def build(thorax: Thorax, breasts: dict[str, Breast], absent: str = "") -> Torso:
    """Shape the fixed topology into a torso with these breasts."""
    mean, chart = lattice(), skin_chart()
    start = vary(mean.points, thorax)
    chest = chart.chest(start)
    bare = start.copy()
    patches = {}
    for side in SIDES:
        patches[side] = _Patch.of(side, breasts[side], start, chest)
        bare[patches[side].ids] = patches[side].bare
    shaped = bare.copy()
    whole = bare.copy()
    volumes, below, masks = {}, {}, {}
    for side, patch in patches.items():
        whole, volumes[side] = patch.raised_to_volume(whole, bare, chest)
        below[side] = patch.skin.below_fold
        masks[side] = np.zeros(len(start), bool)
        masks[side][patch.ids[patch.inside]] = True
        if side != absent:
            shaped[masks[side]] = whole[masks[side]]
    landmarks = _landmarks(whole, masks)
    if absent:
        gone = {f"{part}_{absent}" for part in OF_A_BREAST}
        landmarks = landmarks.only([name for name in landmarks if name not in gone])
    return Torso(TriangleMesh(shaped, mean.faces), bare, whole, masks, landmarks, volumes, below, absent)


@lru_cache(maxsize=1)
def skin_chart() -> SkinChart:
    """Skin coordinates of the fixed topology."""
    return SkinChart.of(lattice())


@lru_cache(maxsize=1)
def arm_length() -> Floats:
    """Distance of every vertex along its arm from the shoulder joint in mm, negative on the right; (n,)."""
    points = lattice().points
    q = np.column_stack([np.abs(points[:, 0]), points[:, 1], points[:, 2]]) - SHOULDER_JOINT
    return np.sign(points[:, 0]) * np.maximum(q @ ARM_DIRECTION, 0.0) * (arm_weight(points) > 0.5)


def volume_between(outer: Floats, inner: Floats, faces: Ints) -> float:
    """Volume in cc between two shapes (n, 3) of one patch of faces that agree on its border."""
    corner = inner[faces[0, 0]]

    def six_fold(p: Floats) -> float:
        a, b, c = (p[faces[:, k]] - corner for k in range(3))
        return float(np.einsum("ij,ij->", a, np.cross(b, c)))

    return (six_fold(outer) - six_fold(inner)) / 6000.0


@dataclass(frozen=True, eq=False)
class _Patch:
    """The skin of one side's chest: which vertices slide, which rise, and the map that moves them."""

    side: str
    ids: Ints
    skin: BreastMap
    bare: Floats
    rest: Floats
    inside: Bools
    faces: Ints

    @classmethod
    def of(cls, side: str, breast: Breast, start: Floats, chest: BareChest) -> _Patch:
        chart, sign = skin_chart(), SIGN[side]
        ids = np.flatnonzero(chart.slides & (sign * chart.around > 0))
        around, level = sign * chart.around[ids], chart.level[ids]
        skin = BreastMap(breast, around, level, chart.slide_weight[ids], chart.nipple_at)
        # What the smooth chart cannot follow of the lattice stays with the vertex.
        rest = start[ids] - chest(sign * around, level)
        bare = chest(sign * skin.placed[0], skin.placed[1]) + rest
        inside = skin.dome > 0
        touched = np.zeros(len(start), bool)
        touched[ids[inside]] = True
        faces = lattice().faces
        return cls(side, ids, skin, bare, rest, inside, faces[touched[faces].any(axis=1)])

    def raised(self, points: Floats, projection: float, chest: BareChest) -> Floats:
        """The torso's points with this breast's dome ``projection`` mm high before it sags."""
        out, sign = points.copy(), SIGN[self.side]
        ids = self.ids[self.inside]
        around, level, height = (part[self.inside] for part in self.skin.raised(projection))
        out[ids] = to_space(chest, around, level, height, sign) + self.rest[self.inside]
        # Areola and nipple stand on the skin wherever it faces, and only on their own skin.
        away = np.linalg.norm(out[ids] - out[skin_chart().nipple[self.side]], axis=1)
        own = 1.0 - smooth_step(self.skin.material_radius[self.inside], 0.25, 0.5)
        relief = self.skin.breast.nipple_size * np.exp(-((away / 5.5) ** 4)) + 2.5 * np.exp(
            -((away / 17.0) ** 4)
        )
        out[ids] += (own * relief)[:, None] * vertex_normals(out, self.faces)[ids]
        return out

    def raised_to_volume(self, points: Floats, bare: Floats, chest: BareChest) -> tuple[Floats, float]:
        """The torso's points with this breast at its volume, and that volume in cc."""

        def surplus(log_height: float) -> float:
            out = self.raised(points, float(np.exp(log_height)), chest)
            return volume_between(out, bare, self.faces) / self.skin.breast.volume - 1.0

        height = brentq(surplus, np.log(1.0), np.log(300.0), xtol=1e-10)
        out = self.raised(points, float(np.exp(height)), chest)
        return out, volume_between(out, bare, self.faces)


def _landmarks(points: Floats, breast: dict[str, Bools]) -> Landmarks:
    chart = skin_chart()
    found = {
        "sternal_notch": points[chart.midline_vertex(_NOTCH_LEVEL)],
        "xiphoid": points[chart.midline_vertex(_XIPHOID_LEVEL)],
    }
    for side in SIDES:
        nipple = points[chart.nipple[side]]
        found[f"nipple_{side}"] = nipple
        ids = np.flatnonzero(breast[side])
        found[f"lower_pole_{side}"] = points[ids[np.argmin(points[ids, 1])]]
        line = chart.axillary_line[side] @ points
        line = line[np.argsort(line[:, 1])]
        found[f"lateral_pole_{side}"] = np.array(
            [np.interp(nipple[1], line[:, 1], line[:, k]) for k in range(3)]
        )
    return Landmarks.of({name: found[name] for name in REQUIRED})
