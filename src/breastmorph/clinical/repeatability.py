"""How well repeated scans of an unchanged person agree: where the +- of a change come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.clinical.measure_table import Measure
from breastmorph.foundation.checks import AnyPath, check_path
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import json_text, read_object, write_file

if TYPE_CHECKING:
    pass


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
        """Standard deviation of the difference of two measurements; NaN where nobody knows it."""
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

    Raises
    ------
    FileProblem
        It is another file.
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
        found = Repeatability(measures, volume, int(record["people"]), str(record["source"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileProblem(
            "this is not the result of a repeatability study",
            "Make one with compare_repeated and give its repeatability.json",
            path,
            code="no-repeatability",
        ) from error
    numbers = [*measures.values(), volume.floor, volume.share, volume.hidden, volume.posture]
    if not all(math.isfinite(number) and number >= 0.0 for number in numbers) or not volume.floor > 0.0:
        raise FileProblem(
            "this is not the result of a repeatability study",
            "Make one with compare_repeated and give its repeatability.json",
            path,
            code="no-repeatability",
        )
    return found
