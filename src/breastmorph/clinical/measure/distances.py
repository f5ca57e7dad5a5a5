"""Clinical distances: what they are called and between which points they run.

Every distance exists as a *tape* (the shortest line over the skin; it follows the skin into hollows that a tape pulled
tight would span) and as a *straight* line through the air. See docs/measures.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from breastmorph.clinical.features import same_name
from breastmorph.errors import BreastMorphError
from breastmorph.scan.landmarks import SIDES, canonical_name

TAPE, STRAIGHT = "tape", "straight"
KINDS = (TAPE, STRAIGHT)
_KIND_WORDS = {
    "tape": TAPE,
    "geodesic": TAPE,
    "straight": STRAIGHT,
    "euclidean": STRAIGHT,
    "caliper": STRAIGHT,
}


@dataclass(frozen=True)
class Distance:
    """What a distance runs between.

    Attributes
    ----------
    name : str
    landmarks : tuple of str
        Those it needs. The first two are its ends, unless it ends at the midline.
    ends_at_midline : bool
        Whether its second end is the skin of the midline at the height of the nipple.
    form : str
        "between" the two ends, "from plane": of the first end from the sagittal plane through the sternum, or
        "over chord": of the nipple from the straight line between the two ends.
    """

    name: str
    landmarks: tuple[str, ...]
    ends_at_midline: bool = False
    form: str = "between"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it exists in; a height over a chord has no tape line."""
        return (STRAIGHT,) if self.form == "over chord" else KINDS


def _distances() -> dict[str, Distance]:
    found = [
        Distance("SN-XI", ("sternal_notch", "xiphoid")),
        Distance("NL-NR", ("nipple_left", "nipple_right")),
    ]
    for side, letter in zip(SIDES, "LR", strict=True):
        nipple, lateral = f"nipple_{side}", f"lateral_pole_{side}"
        found += [
            Distance(f"SN-N{letter}", ("sternal_notch", nipple)),
            Distance(f"N{letter}-LP{letter}", (nipple, f"lower_pole_{side}")),
            Distance(f"N{letter}-IMF{letter}", (nipple, f"imf_{side}")),
            Distance(f"N{letter}-M", (nipple, "sternal_notch"), ends_at_midline=True, form="from plane"),
            Distance(f"base-width-{side}", (lateral, "sternal_notch", nipple), ends_at_midline=True),
            Distance(
                f"projection-{side}",
                (lateral, "sternal_notch", nipple),
                ends_at_midline=True,
                form="over chord",
            ),
        ]
    return {one.name: one for one in found}


DISTANCES: Mapping[str, Distance] = MappingProxyType(_distances())
PAPER = ("SN-NL", "SN-NR", "NL-NR")  # those of the paper's experiments and figures
PAIRS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {  # what exists on both sides: left, right
        "SN-N": ("SN-NL", "SN-NR"),
        "N-LP": ("NL-LPL", "NR-LPR"),
        "N-IMF": ("NL-IMFL", "NR-IMFR"),
        "N-M": ("NL-M", "NR-M"),
        "base-width": ("base-width-left", "base-width-right"),
        "projection": ("projection-left", "projection-right"),
        "volume": ("volume-left", "volume-right"),
    }
)


def parse_measure(text: str) -> tuple[str, str]:
    """Name and kind of a distance as people write it: ``SN-NL``, ``tape sn-nl``, ``nipple_left to sternal_notch``.

    Returns
    -------
    name, kind : str
        The kind is "straight" where none is said.

    Raises
    ------
    BreastMorphError
        No distance is called that.
    """
    words = re.findall(r"[^\s:()]+", text)
    kinds = [_KIND_WORDS[word.lower()] for word in words if word.lower() in _KIND_WORDS]
    label = " ".join(word for word in words if word.lower() not in _KIND_WORDS)
    kind = kinds[0] if kinds else STRAIGHT
    name = next((name for name in DISTANCES if same_name(name, label)), None) or _by_ends(label)
    if name is None or len(kinds) > 1:
        raise BreastMorphError(f"{text!r} is no measure", f"Known are {', '.join(DISTANCES)}")
    if kind not in DISTANCES[name].kinds:
        raise BreastMorphError(f"{name} has no {kind} measure", f"It is {' or '.join(DISTANCES[name].kinds)}")
    return name, kind


def _by_ends(label: str) -> str | None:
    """The distance between two landmarks that somebody named."""
    if same_name(label, "N-N"):
        return "NL-NR"
    ends = re.split(r"\s+to\s+|-|\s*/\s*", label, maxsplit=1)
    if len(ends) != 2:
        return None
    named = {canonical_name(end) for end in ends}
    plain = (one for one in DISTANCES.values() if not one.ends_at_midline)
    return next((one.name for one in plain if set(one.landmarks) == named), None)
