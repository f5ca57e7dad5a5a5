"""Landmarks and the scan value, what a check finds in it, and the files that it is read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from breastmorph.foundation.arrays import Floats, Shown, doubted
from breastmorph.foundation.checks import check_type
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.foundation.messages import Finding, recorded
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh

SIDES = ("left", "right")  # always the patient's
SIGN = {"left": 1.0, "right": -1.0}  # of x, which points to the patient's left
STERNUM = ("sternal_notch", "xiphoid")
OF_A_BREAST = ("nipple", "lower_pole", "lateral_pole")
REQUIRED = STERNUM + tuple(f"{part}_{side}" for part in OF_A_BREAST for side in SIDES)
OPTIONAL = ("navel", "coracoid_left", "coracoid_right", "imf_left", "imf_right")
NAMES = REQUIRED + OPTIONAL
# Points without names, as the programs of the RBSM family ask for them; the newer one with the coracoids.
RBSM_ORDER = ("sternal_notch", "navel", "nipple_left", "nipple_right", "coracoid_left", "coracoid_right")

_MIDLINE_ALIASES = {
    "sternal_notch": "sn ssn jugularnotch suprasternalnotch sternalnotch notch jugulum jugular fossajugularis",
    "xiphoid": "xi xp xiphoid xiphoidprocess processusxiphoideus xyphoid",
    "navel": "navel umbilicus omphalion belly button bellybutton",
}
_SIDED_ALIASES = {
    "nipple": "n ni nip nipple mamilla mammilla nac areola",
    "lower_pole": "lbp lp lowerpole lowerbreastpole inferiorpole caudalpole",
    "lateral_pole": "labp lap lateralpole lateralbreastpole latpole",
    "coracoid": "co coracoid coracoidprocess processuscoracoideus",
    "imf": "imf fold inframammaryfold submammaryfold inframammarycrease",
}
_SIDE_WORDS = {"l": "left", "left": "left", "r": "right", "right": "right"}
_ALIASES = {
    alias: name
    for table in (_MIDLINE_ALIASES, _SIDED_ALIASES)
    for name, words in table.items()
    for alias in words.split()
}


def is_same_skin(landmark: str) -> bool:
    """Whether a landmark is the same skin on every person: notch, xiphoid and nipples."""
    return landmark in STERNUM or landmark.startswith("nipple")


def other_side(side: str) -> str:
    """Right for left and left for right."""
    return "right" if side == "left" else "left"


def canonical_name(label: str) -> str | None:
    """Our name for a label as people write it (``SN``, ``N-L``, ``LBP_R``, ``left nipple``), or None."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)  # LowerPoleLeft -> Lower Pole Left
    words = re.findall(r"[a-z]+", spaced.lower())
    sides = [_SIDE_WORDS[word] for word in words if word in _SIDE_WORDS]
    core = "".join(word for word in words if word not in _SIDE_WORDS)
    if not sides and core not in _ALIASES and core[-1:] in _SIDE_WORDS:  # NL, LBPR
        core, sides = core[:-1], [_SIDE_WORDS[core[-1]]]
    base = _ALIASES.get(core)
    if base in _MIDLINE_ALIASES:
        return None if sides else base
    return f"{base}_{sides[0]}" if base and len(sides) == 1 else None


@dataclass(frozen=True, eq=False)
class Found:
    """How a landmark that no person set was found, and how sure it is.

    Attributes
    ----------
    how : str
        "shape", "shape and colour", or "estimate" where the scanner did not see the place.
    sd : float
        Standard deviation per direction along the skin, mm.
    covariance : (3, 3) float
        mm^2, in the axes of the landmark.
    doubtful : bool
        Whether a person should look at it.
    """

    how: str
    sd: float
    covariance: Floats
    doubtful: bool = False

    def turned(self, rotation: Floats) -> Self:
        """In other axes."""
        return replace(self, covariance=rotation @ self.covariance @ rotation.T)


@dataclass(frozen=True, eq=False)
class Landmarks(Mapping[str, Floats]):
    """Named points; a mapping from name to (3,) float.

    Attributes
    ----------
    names : tuple of str
    points : (k, 3) float
    space : str
        "LPS" or "RAS" where the file that they were read from declares its axes, otherwise empty.
    notes : tuple of str
        What was odd about that file: labels that are not known, names that were assumed.
    found : mapping from name to Found
        Those that the program found; the others were set by a person.
    """

    names: tuple[str, ...]
    points: Floats
    space: str = ""
    notes: tuple[str, ...] = ()
    found: Mapping[str, Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            points = np.array(self.points, dtype=np.float64).reshape(-1, 3)
        except (TypeError, ValueError) as error:
            raise LandmarkProblem(
                "landmarks are no points of three numbers", "Give x, y, z for each"
            ) from error
        if len(points) != len(self.names):
            raise LandmarkProblem(
                "{n_names} landmark names but {n_points} points",
                n_names=len(self.names),
                n_points=len(points),
            )
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise LandmarkProblem(
                "landmark {twice} is given twice", "Keep one point per name", twice=twice[0]
            )
        points.flags.writeable = False
        object.__setattr__(self, "points", points)

    @classmethod
    def of(cls, points: Mapping[str, Iterable[float]]) -> Self:
        """Landmarks from a mapping of names to coordinates."""
        check_type(
            points, Mapping, "what was given for points", 'Give them by name: {"sternal_notch": (0, 0, 0)}'
        )
        return cls(tuple(points), np.array([list(point) for point in points.values()]).reshape(-1, 3))

    @classmethod
    def at_vertices(cls, ids: Mapping[str, int], shape: Floats) -> Self:
        """Landmarks that are vertices of a shape (n, 3)."""
        return cls(tuple(ids), shape[list(ids.values())])

    def __getitem__(self, name: str) -> Floats:
        try:
            point: Floats = self.points[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None
        return point

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        odd = f", {'; '.join(self.notes)}" if self.notes else ""
        return f"Landmarks({', '.join(self.names) or 'none'}{odd})"

    def array(self, names: Iterable[str]) -> Floats:
        """Coordinates of the named landmarks in that order, (k, 3)."""
        return np.array([self[name] for name in names]).reshape(-1, 3)

    def only(self, names: Iterable[str]) -> Self:
        """Those of the named landmarks that exist, in the order asked for."""
        chosen = tuple(name for name in names if name in self.names)
        found = {name: one for name, one in self.found.items() if name in chosen}
        return replace(self, names=chosen, points=self.array(chosen), found=found)

    def transformed(self, transform: Similarity) -> Self:
        """The landmarks after a similarity transform."""
        found = {name: one.turned(transform.rotation) for name, one in self.found.items()}
        return type(self)(self.names, transform.apply(self.points), found=found)

    def mirrored(self) -> Self:
        """The mirror image across x = 0: left becomes right."""

        def swapped(name: str) -> str:
            return re.sub(r"(left|right)$", lambda side: other_side(side.group()), name)

        found = {swapped(name): one.turned(np.diag(MIRROR)) for name, one in self.found.items()}
        return type(self)(tuple(map(swapped, self.names)), self.points * MIRROR, found=found)

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Those that were found, and that a person should look at."""
        return tuple(name for name in self.names if name in self.found and self.found[name].doubtful)

    @property
    def on_skin(self) -> Self:
        """Without folds that the scanner did not see: those are estimates in the open."""
        unseen = [name for name, one in self.found.items() if one.how == "estimate" and name in OPTIONAL]
        return self.only(name for name in self.names if name not in unseen)

    def completed(self, others: Landmarks, names: Iterable[str]) -> Self:
        """With those of the named landmarks that are not here and that others have."""
        more = others.only(name for name in names if name not in self.names)
        points = np.vstack([self.points, more.points])
        return replace(self, names=self.names + more.names, points=points, found={**self.found, **more.found})

    @property
    def absent_sides(self) -> tuple[str, ...]:
        """Sides without nipple and poles (as after a mastectomy)."""
        return tuple(
            side for side in SIDES if not any(f"{part}_{side}" in self.names for part in OF_A_BREAST)
        )

    @property
    def nipple_sides(self) -> tuple[str, ...]:
        """Sides with a nipple: the breasts that are there."""
        return tuple(side for side in SIDES if f"nipple_{side}" in self.names)

    @property
    def unset(self) -> tuple[str, ...]:
        """What is not set of the sternum and of the sides that are not absent."""
        absent = {f"{part}_{side}" for side in self.absent_sides for part in OF_A_BREAST}
        return tuple(name for name in REQUIRED if name not in self.names and name not in absent)

    @property
    def complete_sides(self) -> tuple[str, ...]:
        """Sides with nipple, lower pole and lateral pole."""
        return tuple(side for side in SIDES if all(f"{part}_{side}" in self.names for part in OF_A_BREAST))


@dataclass(frozen=True, eq=False)
class Scan(Shown):
    """A surface and its landmarks in the canonical frame.

    The frame: millimetres, x to the patient's left, y up (cranial), z forward (anterior).

    Attributes
    ----------
    id : str
        The file's stem.
    mesh : TriangleMesh
    landmarks : Landmarks
    to_file : Similarity
        Takes canonical coordinates back to those of the scan's file (its axes and its unit).
    warnings : tuple of Finding
        What its shape says against it; see docs/checking.md. Every result of the scan repeats them.
    rather : Landmarks
        Where the program would put landmarks that a person set where they are improbable; see :meth:`trusted`.
    """

    id: str
    mesh: TriangleMesh
    landmarks: Landmarks
    to_file: Similarity = field(default_factory=Similarity)
    warnings: tuple[Finding, ...] = ()
    rather: Landmarks = field(default_factory=lambda: Landmarks.of({}))

    @property
    def trusted(self) -> Landmarks:
        """The landmarks, but between both places where a person and the program disagree.

        The disagreement is taken as the person's standard deviation: so one landmark far off does not carry the
        surface with it, and one that is a little off keeps its say.
        """
        points, found = self.landmarks.points.copy(), dict(self.landmarks.found)
        for name, place in self.rather.items():
            here, own = self.landmarks[name], self.rather.found[name]
            doubt = float(((here - place) ** 2).sum()) * np.eye(3)
            share = doubt @ np.linalg.inv(doubt + own.covariance)
            points[self.landmarks.names.index(name)] = here + share @ (place - here)
            found[name] = replace(own, covariance=share @ own.covariance)
        return replace(self.landmarks, points=points, found=found)

    def __repr__(self) -> str:
        absent = "".join(f", {side} side absent" for side in self.landmarks.absent_sides)
        doubts = doubted(self.warnings)
        return f"Scan({self.id!r}, {self.mesh.n_vertices:,} vertices, {len(self.landmarks)} landmarks{absent}{doubts})"


Verdict = Literal["usable", "repaired", "refused"]
Note = Callable[[Finding], None]  # called with every finding
Facts = Mapping[str, float | int | str]


@dataclass(frozen=True, eq=False)
class PlausibilityReport:
    """What a scan's shape says against it and its landmarks: the costliest part of a check.

    Attributes
    ----------
    warnings, rather
        See :class:`Scan`.
    """

    warnings: tuple[Finding, ...] = ()
    rather: Landmarks = field(default_factory=lambda: Landmarks.of({}))

    @classmethod
    def of(cls, scan: Scan) -> Self:
        """A scan's own, to be kept for another reading of the same files."""
        return cls(scan.warnings, scan.rather)

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` makes it again, to the last bit."""
        seen = {
            name: [place.tolist(), own.how, own.sd, own.covariance.tolist(), own.doubtful]
            for name, place in self.rather.items()
            for own in (self.rather.found[name],)
        }
        return {"warnings": [one.as_dict() for one in self.warnings], "rather": seen}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` made of it, in any version."""
        kept = record["rather"]
        places = Landmarks.of({name: one[0] for name, one in kept.items()})
        found = {name: Found(one[1], one[2], np.array(one[3]), one[4]) for name, one in kept.items()}
        warnings = tuple(recorded(one, str(one["name"]), str(one["name"])) for one in record["warnings"])
        return cls(warnings, replace(places, found=found))


@dataclass(frozen=True, eq=False)
class Check:
    """The judgement of one scan.

    Attributes
    ----------
    id : str
    findings : tuple of Finding
    facts : mapping
        Figures of the scan: vertices, faces, mean edge in mm, unit, frame, absent side ...
    outcome : Scan or BreastMorphError
        The scan, repaired where needed, or why it was refused.
    """

    id: str
    findings: tuple[Finding, ...]
    facts: Facts
    outcome: Scan | BreastMorphError

    def __repr__(self) -> str:
        return f"Check({self.id!r}, {self.verdict}, {len(self.findings)} findings)"

    @property
    def scan(self) -> Scan | None:
        """Ready for use; None when refused."""
        return self.outcome if isinstance(self.outcome, Scan) else None

    @property
    def error(self) -> BreastMorphError | None:
        """Why it was refused, or None."""
        return None if isinstance(self.outcome, Scan) else self.outcome

    def accepted(self) -> Scan:
        """The scan; raises why it was refused."""
        if isinstance(self.outcome, BreastMorphError):
            raise self.outcome
        return self.outcome

    @property
    def verdict(self) -> Verdict:
        """Usable as it is, usable after repair, or refused."""
        if self.scan is None:
            return "refused"
        return "repaired" if any(finding.level == "repair" for finding in self.findings) else "usable"
