"""A synthetic cohort, and the truth about every one of its points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom.body import (
    ARM_DIRECTION,
    N_SCORES,
    SHOULDER_JOINT,
    Thorax,
    arm_weight,
    smooth_step,
    vary,
)
from breastmorph.phantom.skin import (
    N_BREAST_MODES,
    BareChest,
    Breast,
    BreastMap,
    SkinChart,
    footprint_polar,
    lattice,
    to_space,
)
from breastmorph.scan.scan import OF_A_BREAST, REQUIRED, SIDES, SIGN, STERNUM, Landmarks

_MOST_LEFT = 0.4  # of the lost breast: more would be a smaller breast, not a flat chest
_RISE = 18.0  # mm inside the border over which the pad reaches its height, beside the blending
_DEEP = 0.3  # of the way to the border: what is nearer to the nipple lies deep inside, whatever the direction
_DOG_EAR = 13.0  # mm, how wide the fold of skin at the end of a scar is
_STERNUM = 20.0  # mm beside the midline over which the loss runs out
_UNEVEN = 3  # slow waves of the pad's height


@dataclass(frozen=True)
class Mastectomy:
    """One operation; all zero leaves the bare chest wall.

    Attributes
    ----------
    pad : float
        Soft tissue that stays over the chest wall, cc; never more than a share of the breast.
    blend : float
        mm beyond the breast's border at which the loss has run out.
    hollow : float
        How much deeper than before the skin lies at the border, mm.
    scar : float
        Height of the scar, mm; negative a groove.
    scar_angle : float
        Degrees by which it rises towards the armpit.
    scar_length, scar_width : float
        mm; the width is a standard deviation.
    scar_up : float
        mm that the scar's middle lies above the nipple's place.
    dog_ear : float
        Height of the fold of skin at the scar's lateral end, mm.
    uneven : tuple of float
        Standard scores of slow waves of the pad's height.
    """

    pad: float = 0.0
    blend: float = 0.0
    hollow: float = 0.0
    scar: float = 0.0
    scar_angle: float = 0.0
    scar_length: float = 120.0
    scar_width: float = 3.0
    scar_up: float = 0.0
    dog_ear: float = 0.0
    uneven: tuple[float, ...] = (0.0,) * (2 * _UNEVEN)

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mastectomy:
        """An operation as varied as they are."""
        return cls(
            pad=float(rng.uniform(20.0, 130.0)),
            blend=float(rng.uniform(10.0, 30.0)),
            hollow=float(rng.uniform(0.0, 6.0)),
            scar=float(rng.uniform(-2.5, 3.0)),
            scar_angle=float(rng.uniform(-10.0, 45.0)),
            scar_length=float(rng.uniform(90.0, 180.0)),
            scar_width=float(rng.uniform(2.5, 5.0)),
            scar_up=float(rng.uniform(-25.0, 25.0)),
            dog_ear=float(max(rng.uniform(-6.0, 9.0), 0.0)),
            uneven=tuple(float(score) for score in np.clip(rng.normal(size=2 * _UNEVEN), -2.5, 2.5)),
        )

    def pad_volume(self, breast: float) -> float:
        """cc of the pad that stays of a breast of so many cc."""
        return min(self.pad, _MOST_LEFT * breast)

    def layer(self, skin: BreastMap) -> Floats:
        """Shape of the pad over the chest wall, (n,), of arbitrary height."""
        inside = smooth_step(-_beyond(skin), -0.3 * self.blend, _RISE + self.blend)
        across, up = _from_nipple(skin)
        waves = np.ones(len(inside))
        for k in range(_UNEVEN):
            turn, length = np.pi * k / _UNEVEN, 90.0 + 25.0 * k
            along = (np.cos(turn) * across + np.sin(turn) * up) * 2.0 * np.pi / length
            waves += 0.15 * (self.uneven[2 * k] * np.sin(along) + self.uneven[2 * k + 1] * np.cos(along))
        return inside * np.maximum(waves, 0.1)

    def relief(self, skin: BreastMap) -> Floats:
        """Height of hollow and scar over the chest wall with its pad, (n,) mm."""
        off = _beyond(skin)
        reach = max(self.blend, 1.0)
        deep = smooth_step(off, reach, 0.0) * smooth_step(off, -2.0 * reach, 0.0)
        across, up = _from_nipple(skin)
        turn = np.radians(self.scar_angle)
        along = np.cos(turn) * across + np.sin(turn) * (up - self.scar_up)
        away = np.cos(turn) * (up - self.scar_up) - np.sin(turn) * across
        half = 0.5 * self.scar_length
        scar = np.exp(-0.5 * (away / self.scar_width) ** 2) * smooth_step(np.abs(along), half, half - 15.0)
        ear = np.exp(-((along - half) ** 2 + away**2) / (2.0 * _DOG_EAR**2))
        near = smooth_step(off, reach, 0.0)  # nothing is changed beyond the loss, nor on the sternum
        found: Floats = near * (self.scar * scar + self.dog_ear * ear) - self.hollow * deep
        return found * smooth_step(skin.placed[0], 0.0, _STERNUM)


def _from_nipple(skin: BreastMap) -> tuple[Floats, Floats]:
    """Places in the breast's own footprint, mm lateral to and above the nipple's."""
    around, level = skin.placed
    nipple = int(np.argmin(skin.material_radius))
    return around - around[nipple], level - level[nipple]


def _beyond(skin: BreastMap) -> Floats:
    """How far every point lies beyond the border of the breast, (n,) mm; negative inside."""
    radius = footprint_polar(*skin.within, skin.nipple_at)[0]
    away = np.hypot(*_from_nipple(skin))
    deep = np.maximum(radius, _DEEP)
    found: Floats = (away / np.maximum(radius, 1e-3)) * (deep - 1.0)
    return np.where(radius < _DEEP, np.minimum(found, -_RISE - 30.0), found)


@dataclass(frozen=True)
class Marginal:
    """Mean, standard deviation and range of a quantity."""

    mean: float
    sd: float
    low: float
    high: float

    def quantile(self, u: Floats) -> Floats:
        """Values at probabilities ``u`` of the beta distribution on the range with this mean and sd."""
        span = self.high - self.low
        m, v = (self.mean - self.low) / span, (self.sd / span) ** 2
        size = m * (1.0 - m) / v - 1.0
        return self.low + span * betaincinv(m * size, (1.0 - m) * size, u)


@dataclass(frozen=True)
class PhantomParameters:
    """The cohort's marginals; the defaults are the paper's Table 1."""

    age: Marginal = Marginal(40.78, 14.30, 18.0, 83.0)  # years
    bmi: Marginal = Marginal(23.66, 3.57, 16.9, 38.3)
    volume_left: Marginal = Marginal(477.0, 243.0, 71.0, 1259.0)  # cc
    volume_right: Marginal = Marginal(481.0, 240.0, 80.0, 1609.0)
    difference: Marginal = Marginal(80.0, 81.0, 0.3, 367.0)
    with_ptosis: float = 62 / 110
    operated: float = 72 / 110
    bmi_to_volume: float = 0.35  # rank correlations
    age_to_bmi: float = 0.2
    volume_to_difference: float = 0.45


LARGE = PhantomParameters(  # extremes: breasts of 1,000 cc and more, many of which touch each other
    volume_left=Marginal(1200.0, 130.0, 1000.0, 1600.0),
    volume_right=Marginal(1200.0, 130.0, 1000.0, 1600.0),
    bmi=Marginal(29.0, 4.0, 20.0, 38.3),
)


@dataclass(frozen=True)
class Subject:
    """One subject of the cohort.

    Attributes
    ----------
    id : str
    age : float
        Years.
    bmi : float
    operated : bool
    thorax : Thorax
    left, right : Breast
    absent : str
        Side after a mastectomy ("left" or "right"), otherwise empty. The breast's parameters stay: they are
        the truth a prediction is compared with.
    operation : Mastectomy
        How that side was operated.
    """

    id: str
    age: float
    bmi: float
    operated: bool
    thorax: Thorax
    left: Breast
    right: Breast
    absent: str = ""
    operation: Mastectomy = field(default_factory=Mastectomy)

    def breast(self, side: str) -> Breast:
        """The breast of a side."""
        return self.left if side == "left" else self.right


def draw_cohort(
    n: int, seed: int, one_sided: int = 0, parameters: PhantomParameters | None = None
) -> list[Subject]:
    """Draw ``n`` subjects.

    Marginals are stratified: each of the n equal shares of a distribution is met once, so that small cohorts
    follow Table 1 too.

    Parameters
    ----------
    n : int
    seed : int
    one_sided : int
        How many of them are flat on one side, as after a mastectomy; the last ones.
    parameters : PhantomParameters, optional
    """
    if n < 1:
        raise BreastMorphError("a cohort of {n} subjects cannot be drawn", "Ask for at least one", n=n)
    if not 0 <= one_sided <= n:
        raise BreastMorphError(
            "{one_sided} of {n} subjects cannot be one-sided", "Choose 0 to {n}", one_sided=one_sided, n=n
        )
    p = parameters or PhantomParameters()
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    size, age, bmi, gap = _linked_scores(rng, n, p)
    left, right = _volumes(rng, _strata(rng, size), _strata(rng, gap), p)
    operated = _chosen(rng.normal(size=n), p.operated)
    tendency = 0.8 * age + 0.8 * size - 1.2 * operated + 0.8 * rng.normal(size=n)
    ptosis = _chosen(tendency, p.with_ptosis)
    bmi_share = _strata(rng, bmi)
    ages, bmis, adiposity = p.age.quantile(_strata(rng, age)), p.bmi.quantile(bmi_share), ndtri(bmi_share)
    scores = np.clip(rng.normal(size=(n, N_SCORES)), -2.6, 2.6)
    sides = rng.permutation(np.arange(n) % 2)
    subjects = []
    for i in range(n):
        thorax = replace(Thorax.from_scores(scores[i]), adiposity=float(np.clip(adiposity[i], -2.2, 2.6)))
        breasts = _draw_breasts(rng, (left[i], right[i]), bool(operated[i]), bool(ptosis[i]))
        subjects.append(
            Subject(
                id=f"{i:03d}",
                age=round(float(ages[i]), 1),
                bmi=round(float(bmis[i]), 1),
                operated=bool(operated[i]),
                thorax=thorax,
                left=breasts[0],
                right=breasts[1],
                absent=SIDES[sides[i]] if i >= n - one_sided else "",
                # A child of the seed: who is operated, and how, changes no other subject.
                operation=Mastectomy.drawn(
                    np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3, i)))
                ),
            )
        )
    return subjects


def _linked_scores(rng: np.random.Generator, n: int, p: PhantomParameters) -> Floats:
    """Normal scores of size, age, BMI and left-right difference with their correlations, (4, n)."""
    own = rng.normal(size=(4, n))
    age, bmi = own[1], own[2]
    unexplained = 1.0 - p.age_to_bmi**2 - p.bmi_to_volume**2
    bmi = p.age_to_bmi * age + p.bmi_to_volume * own[0] + np.sqrt(unexplained) * bmi
    gap = p.volume_to_difference * own[0] + np.sqrt(1.0 - p.volume_to_difference**2) * own[3]
    return np.stack([own[0], age, bmi, gap])


def _strata(rng: np.random.Generator, scores: Floats) -> Floats:
    """Probabilities in the order of the scores, one in each of n equal strata."""
    return (scores.argsort().argsort() + rng.uniform(size=len(scores))) / len(scores)


def _volumes(
    rng: np.random.Generator, size: Floats, gap: Floats, p: PhantomParameters
) -> tuple[Floats, Floats]:
    """Volumes left and right: a common size and a difference of either sign."""
    one, other = p.volume_left, p.volume_right
    difference = p.difference.quantile(gap)
    # Both sides' variance holds a quarter of the signed difference's second moment.
    spread = p.difference.mean**2 + p.difference.sd**2
    sd = np.sqrt(0.5 * (one.sd**2 + other.sd**2) - 0.25 * spread)
    low, high = 0.5 * (one.low + other.low), 0.5 * (one.high + other.high)
    common = Marginal(0.5 * (one.mean + other.mean), float(sd), low, high).quantile(size)
    difference = np.minimum(difference, 1.5 * (common - low) + p.difference.low)
    sign = rng.permutation(np.where(np.arange(len(size)) % 2, 1.0, -1.0))
    left = np.clip(common - 0.5 * sign * difference, one.low, one.high)
    right = np.clip(common + 0.5 * sign * difference, other.low, other.high)
    return left, right


def _chosen(tendency: Floats, share: float) -> Bools:
    """The round(share * n) highest, (n,) bool."""
    count = round(share * len(tendency))
    return np.argsort(np.argsort(-tendency)) < count


def _draw_breasts(
    rng: np.random.Generator, volumes: tuple[float, float], operated: bool, ptosis: bool
) -> tuple[Breast, Breast]:
    # What both sides share, and how far each departs from it.
    shared = rng.normal(size=11)
    own = rng.normal(size=(2, 11))
    modes_shared = rng.normal(size=N_BREAST_MODES)
    modes_own = rng.normal(size=(2, N_BREAST_MODES))
    excess = float(np.clip(rng.gamma(1.6, 0.14), 0.03, 0.65))
    firm = float(rng.beta(1.6, 2.4)) * (0.6 if operated else 0.95)
    breasts = []
    for side in range(2):
        z = np.clip(0.88 * shared + 0.475 * own[side], -2.5, 2.5)
        modes = np.clip(0.75 * modes_shared + 0.66 * modes_own[side], -2.5, 2.5)
        volume = float(volumes[side])
        wide, tall = (volume / 450.0) ** 0.22 - 1.0, (volume / 450.0) ** 0.30 - 1.0
        if ptosis:  # small breasts cannot hang far; an operated one seldom does
            share = np.clip(volume / 400.0, 0.2, 1.0) * (0.6 if operated else 1.0)
            sag = 1.02 + max(excess * share + 0.05 * own[side, 9], 0.0)
        else:
            sag = float(np.clip(firm + 0.05 * own[side, 9], 0.0, 0.93))
        breasts.append(
            Breast(
                volume=volume,
                medial=float(np.clip(-18.0 * wide + 2.0 * z[0], -5.0, 12.0)),
                lateral=float(np.clip(64.0 * wide + 6.0 * z[1], -26.0, 16.0)),
                upper=float(np.clip(50.0 * wide + 8.0 * z[2], -32.0, 8.0)),
                fold=float(np.clip(9.0 * z[3], -22.0, 22.0)),
                lower_height=float(np.clip(46.0 * tall + 4.0 * z[10], -24.0, 26.0)),
                nipple_around=5.0 * z[4],
                nipple_up=5.0 * z[5],
                sag=float(sag),
                upper_fullness=float(
                    np.clip(0.35 + 0.3 * operated - 0.2 * min(sag, 1.3) + 0.15 * z[6], 0.0, 1.0)
                ),
                roundness=float(np.clip(0.4 + 0.25 * operated + 0.2 * z[7], 0.0, 1.0)),
                spread=float(np.clip(0.08 + 0.04 * ptosis - 0.03 * operated + 0.05 * z[8], 0.01, 0.25)),
                nipple_size=float(np.clip(4.5 + 1.2 * z[9], 2.0, 7.0)),
                modes=tuple(float(m) for m in modes),
            )
        )
    return breasts[0], breasts[1]


_POSTURE = (
    "sternum_lean", "kyphosis", "side_bend", "twist", "neck_tilt",
    "shoulder_height", "shoulder_forward", "shoulder_tilt", "shoulder_turn",
)  # fmt: skip
_ARMS = ("arm_raise_left", "arm_raise_right", "arm_forward_left", "arm_forward_right")
_DEPTH, _WIDTH = 5.5, 7.0  # mm that the chest's front and sides move with one score of depth and width


@dataclass(frozen=True)
class VisitParameters:
    """How much a person differs between two visits; standard deviations unless stated otherwise."""

    breath: float = 2.5  # mm that the front of the chest moves
    posture: float = 0.3  # standard scores of the traits of posture and shoulders
    arms: float = 0.7  # standard scores of the arms' angles, 5 to 6 degrees each
    bending: float = 0.06  # standard scores of the smooth fields: what no named trait says of posture
    lie: float = 0.05  # scores of the breasts' small modes, and the share of the way that a breast sags
    changed: float = 0.5  # share of the people one of whose breasts changes
    change: tuple[float, float] = (20.0, 150.0)  # cc, of either sign
    most: float = 0.4  # share of a breast's volume that a change may take or add


@dataclass(frozen=True)
class Visit:
    """A person at a later visit.

    Attributes
    ----------
    subject : Subject
        As she is then.
    breath : float
        mm that the front of the chest lies further forward than at the first visit.
    changed : str
        The side with a real change of volume, or empty.
    """

    subject: Subject
    breath: float
    changed: str


def later_visit(
    subject: Subject, rng: np.random.Generator, parameters: VisitParameters | None = None
) -> Visit:
    """A subject at another time."""
    p = parameters or VisitParameters()
    t, breath = subject.thorax, p.breath * float(rng.normal())
    moved = {name: p.posture * rng.normal() for name in _POSTURE}
    moved |= {name: p.arms * rng.normal() for name in _ARMS}
    # Ribs rise forward, and about half as far sideways; the belly goes along.
    moved |= {
        "chest_depth": breath / _DEPTH,
        "chest_width": 0.5 * breath / _WIDTH,
        "belly": 0.1 * rng.normal(),
    }
    bent = np.array(t.modes) + p.bending * rng.normal(size=len(t.modes))
    named = {name: float(getattr(t, name) + by) for name, by in moved.items()}
    thorax = replace(t, **named, modes=tuple(float(score) for score in bent))
    sides = [side for side in SIDES if side != subject.absent]
    changed = sides[int(rng.integers(len(sides)))] if rng.uniform() < p.changed else ""
    by = float(rng.uniform(*p.change)) * (1.0 if rng.uniform() < 0.5 else -1.0)
    breasts = {}
    for side in SIDES:
        old = subject.breast(side)
        modes = np.array(old.modes) + p.lie * rng.normal(size=len(old.modes))
        volume = old.volume
        if side == changed:
            volume += float(np.clip(by, -p.most * volume, p.most * volume))
        sag = max(old.sag + p.lie * float(rng.normal()), 0.0)
        breasts[side] = replace(old, volume=volume, sag=sag, modes=tuple(float(m) for m in modes))
    there = replace(subject, thorax=thorax, left=breasts["left"], right=breasts["right"])
    return Visit(there, breath, changed)


STERNUM_LEVELS = (0.0, -172.0)  # heights of notch and xiphoid on the mean torso's midline, mm
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
        With both breasts; differs from ``mesh`` only on the absent side of a one-sided subject, in the breast and
        as far beyond it as the operation reached.
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

    @property
    def remaining(self) -> float:
        """What the operation left over the chest wall of the absent side, cc."""
        there = sum(cc for side, cc in self.volumes.items() if side != self.absent)
        return volume_between(self.mesh.vertices, self.bare, self.mesh.faces) - there


def torso(subject: Subject) -> Torso:
    """The true torso of a subject."""
    breasts = {side: subject.breast(side) for side in SIDES}
    return build(subject.thorax, breasts, subject.absent, subject.operation)


def mean_torso() -> Torso:
    """The mean torso: symmetric in x = 0 to the last bit under :func:`mirror_vertices`."""
    return build(Thorax(), dict.fromkeys(SIDES, _MEAN_BREAST))


def topology() -> Ints:
    """Faces of the fixed topology, (m, 3)."""
    return lattice().faces


def mirror_vertices() -> Ints:
    """For every vertex of the fixed topology the one on the other side, (n,)."""
    return lattice().mirror


def build(
    thorax: Thorax, breasts: dict[str, Breast], absent: str = "", operation: Mastectomy | None = None
) -> Torso:
    """Shape the fixed topology into a torso with these breasts, that of the ``absent`` side removed."""
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
        if side == absent:
            shaped = patch.operated(shaped, operation or Mastectomy(), chest)
        else:
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
        relief = self.skin.breast.nipple_size * np.exp(-((away / 5.5) ** 4))
        relief += self.skin.breast.areola_height * np.exp(-((away / 17.0) ** 4))
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

    def operated(self, bare: Floats, operation: Mastectomy, chest: BareChest) -> Floats:
        """The bare torso's points with what the operation left of this breast."""

        def raised(height: Floats) -> Floats:
            out = bare.copy()
            out[self.ids] = to_space(chest, *self.skin.placed, height, SIGN[self.side]) + self.rest
            return out

        faces = lattice().faces  # beyond the breast too
        layer, relief = operation.layer(self.skin), operation.relief(self.skin)
        per_mm = volume_between(raised(layer), bare, faces)
        lacking = operation.pad_volume(self.skin.breast.volume) - volume_between(raised(relief), bare, faces)
        return raised(lacking / per_mm * layer + relief)


def _landmarks(points: Floats, breast: dict[str, Bools]) -> Landmarks:
    chart = skin_chart()
    levels = zip(STERNUM, STERNUM_LEVELS, strict=True)
    found = {name: points[chart.midline_vertex(level)] for name, level in levels}
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
