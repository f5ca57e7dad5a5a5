"""How well repeated scans of unchanged people agree: where the +- of a change come from, and their study."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.distances import PAIRS
from breastmorph.clinical.measure_table import SURE, Measure
from breastmorph.clinical.volume import VOLUME
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import json_text, read_object, write_file
from breastmorph.foundation.language import Plural
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mesh.files import READABLE
from breastmorph.scan.check import ScanFiles, find_scans

if TYPE_CHECKING:
    from breastmorph.clinical.comparison import Comparison


@dataclass(frozen=True)
class VolumeNoise:
    """Standard deviation of a change of volume where nothing changed, by what can be seen of the two scans.

    Its square is the sum of four squares: ``floor``, ``share`` of the volume, ``hidden`` times the volume and the share
    of the breast's skin that one of the scans does not show, and ``posture`` for every mm that the chest bent.
    """

    floor: float  # cc
    share: float
    hidden: float
    posture: float  # cc per mm

    def sd(self, volume: float, hidden: float, posture: float) -> float:
        """For a breast of so many cc, cc."""
        parts = (self.floor, self.share * volume, self.hidden * hidden * volume, self.posture * posture)
        return math.sqrt(sum(part**2 for part in parts))

    def times(self, factor: float) -> VolumeNoise:
        """So many times as much."""
        return VolumeNoise(*(factor * part for part in (self.floor, self.share, self.hidden, self.posture)))


@dataclass(frozen=True)
class Repeatability:
    """What repeated scans of unchanged people show.

    Attributes
    ----------
    measures : mapping from name and kind to float
        Within-subject standard deviation of one measurement, ``{"SN-NL straight": 1.4}``, each in the unit of machine
        files: mm, cm2 or cc.
    volume : VolumeNoise
    people : int
        How many were scanned again.
    source : str
        Who they were.
    """

    measures: Mapping[str, float]
    volume: VolumeNoise
    people: int
    source: str

    def of_change(self, measure: Measure) -> float:
        """Standard deviation of the difference of two measurements; NaN where unknown."""
        return math.sqrt(2.0) * self.measures.get(key_of(measure), math.nan)

    def as_record(self) -> dict[str, Any]:
        """For JSON; see :func:`load_repeatability`."""
        noise = self.volume
        return {
            "people": self.people,
            "source": self.source,
            "units": "mm; areas cm2; volumes cc",
            "within_subject_sd": dict(self.measures),
            "volume_change_sd": {
                "floor_cc": noise.floor,
                "share": noise.share,
                "hidden": noise.hidden,
                "posture_cc_per_mm": noise.posture,
            },
        }

    def save(self, path: AnyPath) -> None:
        """Write a file that a later comparison can be given."""
        write_file(check_path(path), json_text(self.as_record()).encode())


def key_of(measure: Measure) -> str:
    """A measure by name and kind."""
    return f"{measure.name} {measure.kind}"


def load_repeatability(path: AnyPath) -> Repeatability:
    """Read what a repeatability study wrote.

    Parameters
    ----------
    path : path
        ``repeatability.json`` of ``breastmorph compare --repeat``, or of ``study.repeatability.save``.

    Returns
    -------
    Repeatability

    Raises
    ------
    FileProblem
        It is another file.

    Examples
    --------
    >>> study = bm.compare_repeated({"A": [scan, bm.load_scan("scans/s0.ply", "landmarks")]}, source="one volunteer")
    >>> study.repeatability.save("repeatability.json")
    >>> bm.load_repeatability("repeatability.json").source
    'one volunteer'
    """
    place = check_path(path)
    return _read_repeatability(read_object(place), place)


@lru_cache(maxsize=1)
def builtin_repeatability() -> Repeatability:
    """That of phantoms scanned twice with another posture and breath; `benchmarks/visits.py` made it."""
    place = Path(str(files("breastmorph").joinpath("data", "repeatability.json")))
    return _read_repeatability(read_object(place), place)


def _read_repeatability(record: Mapping[str, Any], path: Path) -> Repeatability:
    try:
        noise = record["volume_change_sd"]
        volume = VolumeNoise(
            *(float(noise[name]) for name in ("floor_cc", "share", "hidden", "posture_cc_per_mm"))
        )
        # Studies of earlier versions have lengths only.
        spread = record["within_subject_sd" if "within_subject_sd" in record else "within_subject_sd_mm"]
        measures = {str(name): float(sd) for name, sd in spread.items()}
        numbers = [*measures.values(), volume.floor, volume.share, volume.hidden, volume.posture]
        if not all(math.isfinite(number) and number >= 0.0 for number in numbers) or not volume.floor > 0.0:
            raise ValueError(numbers)
        return Repeatability(measures, volume, int(record["people"]), str(record["source"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileProblem(
            "this is not the result of a repeatability study",
            "Make one with compare_repeated and give its repeatability.json",
            path,
            code="no-repeatability",
        ) from error


FEW = 8  # people: fewer hardly tell a standard deviation


@dataclass(frozen=True, eq=False)
class RepeatedMeasure(Measure):
    """A measure of people who were scanned again: ``value`` is the mean of later minus first.

    Attributes
    ----------
    people : tuple of str
    first, second : (k,) float
        The first and a later measurement of one person, a pair a row.
    within_sd : float
        Within-subject standard deviation of one measurement.
    """

    people: tuple[str, ...] = ()
    first: Floats = field(default_factory=lambda: np.empty(0))
    second: Floats = field(default_factory=lambda: np.empty(0))
    within_sd: float = math.nan

    @property
    def coefficient(self) -> float:
        """Repeatability coefficient: 95 % of the differences of two measurements lie within it."""
        return SURE * math.sqrt(2.0) * self.within_sd

    @property
    def bias(self) -> float:
        """Mean of later minus first."""
        return self.value


@dataclass(frozen=True, eq=False)
class RepeatStudy:
    """What repeated scans of unchanged people showed.

    Attributes
    ----------
    measures : tuple of RepeatedMeasure
    repeatability : Repeatability
        What later comparisons take.
    warnings : tuple of Finding
    """

    measures: tuple[RepeatedMeasure, ...]
    repeatability: Repeatability
    warnings: tuple[Finding, ...] = ()


_NUMBERED = re.compile(r"(?P<person>.+)_(?P<visit>\d+)")


def repeated_people(folder: Path, landmarks: Path | None = None) -> dict[str, list[ScanFiles]]:
    """Who was scanned more than once, with the scans in their order.

    Parameters
    ----------
    folder : Path
        With a subfolder of scans for every person, or with scans called NAME_1, NAME_2 and so on.
    landmarks : Path, optional
        Folder of the landmark files; beside the scans, or found, when not given.

    Raises
    ------
    BreastMorphError
        Nobody was.
    """
    if not folder.is_dir():
        raise FileProblem("there is no such folder", "Check the path", folder)
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    people: dict[str, list[ScanFiles]] = {}
    if any(path.suffix.lower() in READABLE for path in folder.iterdir() if path.is_file()):
        for files in find_scans(folder, landmarks):
            numbered = _NUMBERED.fullmatch(files.id)
            if numbered:
                people.setdefault(numbered["person"], []).append(files)
        for visits in people.values():
            visits.sort(key=lambda files: int(files.id.rpartition("_")[2]))
    else:
        people = {path.name: find_scans(path, landmarks) for path in inside}
    people = {person: visits for person, visits in people.items() if len(visits) > 1}
    if not people:
        raise BreastMorphError(
            "no person was scanned twice",
            "Put the scans of a person into a folder of her own, or call them NAME_1, NAME_2 and so on",
            folder,
            code="nothing-repeated",
        )
    return people


def repeat_study(
    comparisons: Mapping[str, Comparison], source: str, form: VolumeNoise | None = None
) -> RepeatStudy:
    """Summarise comparisons of people who did not change.

    Parameters
    ----------
    comparisons : mapping from person to Comparison
    source : str
        Who they were, in a few words.
    form : VolumeNoise, optional
        How the spread of volumes depends on what can be seen, known up to a factor; the built-in one when not given.
    """
    if not comparisons:
        raise BreastMorphError(
            "no person was scanned twice",
            "Put the scans of a person into a folder of her own, or call them NAME_1, NAME_2 and so on",
            code="nothing-repeated",
        )
    form = form or builtin_repeatability().volume
    values: dict[tuple[str, str, str], list[tuple[str, float, float]]] = {}
    squares = []
    for person, found in comparisons.items():
        for visit in found.changes:
            for one in visit.all:
                if math.isfinite(one.change):
                    values.setdefault((one.name, one.kind, one.unit), []).append(
                        (person, one.before, one.after)
                    )
            for side, volume in visit.volumes.items():
                if math.isfinite(volume.change):
                    sd = form.sd(
                        0.5 * (volume.before + volume.after), visit.hidden[side], visit.stance.posture
                    )
                    squares.append((volume.change / sd) ** 2)
    measures = tuple(_repeated(*key, pairs) for key, pairs in values.items())
    # A volume's spread depends on its size and on what is seen of it; see VolumeNoise.
    within = {f"{one.name} {one.kind}": one.within_sd for one in measures if one.name not in PAIRS[VOLUME]}
    factor = math.sqrt(float(np.mean(squares))) if squares else 1.0
    found_warnings = (
        (
            warning(
                "few-repeated",
                Plural(
                    "only {n} person was scanned again; the spread is known poorly",
                    "only {n} people were scanned again; their spread is known poorly",
                ),
                "Scan ten people or more",
                n=len(comparisons),
            ),
        )
        if len(comparisons) < FEW
        else ()
    )
    return RepeatStudy(
        measures, Repeatability(within, form.times(factor), len(comparisons), source), found_warnings
    )


def _repeated(name: str, kind: str, unit: str, pairs: Sequence[tuple[str, float, float]]) -> RepeatedMeasure:
    """Pooled over people, each of whom may have been scanned more than twice."""
    visits: dict[str, list[float]] = {}
    for person, before, after in pairs:
        visits.setdefault(person, [before]).append(after)
    squares = sum(float(np.var(several) * len(several)) for several in visits.values())
    freedom = sum(len(several) - 1 for several in visits.values())
    first, second = (np.array([pair[k] for pair in pairs]) for k in (1, 2))
    return RepeatedMeasure(
        name,
        kind,
        float((second - first).mean()),
        unit,
        people=tuple(pair[0] for pair in pairs),
        first=first,
        second=second,
        within_sd=math.sqrt(squares / freedom),
    )
