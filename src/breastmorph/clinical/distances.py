"""Clinical distances: what they are called and between which points they run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from breastmorph.clinical.feature_requests import same_name
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.scan.scan import SIDES, canonical_name

TAPE, STRAIGHT = "tape", "straight"
KINDS = (TAPE, STRAIGHT)
CALIPER = "caliper"
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
        "between" the two ends; "caliper": the same without a tape, which would run around the breast; "from plane": of
        the first end from the sagittal plane through the sternum; "over chord": of the nipple from the straight
        line between the two ends.
    meaning : str
        For the data dictionary.
    """

    name: str
    landmarks: tuple[str, ...]
    ends_at_midline: bool = False
    form: str = "between"
    meaning: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it exists in; a height over a chord has no tape line."""
        return (STRAIGHT,) if self.form in ("over chord", CALIPER) else KINDS


def _distances() -> dict[str, Distance]:
    found = [
        Distance("SN-XI", ("sternal_notch", "xiphoid"), meaning="Length of the sternum"),
        Distance("NL-NR", ("nipple_left", "nipple_right"), meaning="Between the nipples"),
        Distance(
            "intermammary",
            ("medial_border_left", "medial_border_right"),
            meaning="Between the inner borders of the breasts",
        ),
    ]
    for side, letter in zip(SIDES, "LR", strict=True):
        nipple, lateral = f"nipple_{side}", f"lateral_pole_{side}"
        found += [
            Distance(f"SN-N{letter}", ("sternal_notch", nipple), meaning="How low the nipple stands"),
            Distance(f"N{letter}-LP{letter}", (nipple, f"lower_pole_{side}"), meaning="To the lowest point"),
            Distance(
                f"N{letter}-IMF{letter}",
                (nipple, f"imf_{side}"),
                meaning="To the fold, at rest; the tape is the arc of the lower pole",
            ),
            Distance(
                f"N{letter}-M",
                (nipple, "sternal_notch"),
                ends_at_midline=True,
                form="from plane",
                meaning="To the middle of the sternum; straight: from the sagittal plane through it",
            ),
            Distance(
                f"base-width-{side}",
                (f"medial_border_{side}", lateral),
                form=CALIPER,
                meaning="Width of the breast's base, from its inner border to the anterior axillary line",
            ),
            Distance(
                f"half-chest-width-{side}",
                (lateral, "sternal_notch", nipple),
                ends_at_midline=True,
                meaning="From the anterior axillary line to the midline at the height of the nipple; no base width",
            ),
            Distance(
                f"projection-{side}",
                (lateral, "sternal_notch", nipple),
                ends_at_midline=True,
                form="over chord",
                meaning="Of the nipple before the straight line of the half-chest width",
            ),
        ]
    return {one.name: one for one in found}


DISTANCES: Mapping[str, Distance] = MappingProxyType(_distances())
# Those whose lines are drawn on the body, on sheets and on the page.
DRAWN = (
    *("SN-NL", "SN-NR", "NL-NR", "NL-IMFL", "NR-IMFR"),
    *("base-width-left", "base-width-right", "intermammary"),
)
PAPER = ("SN-NL", "SN-NR", "NL-NR")  # those of the paper's experiments and figures
PAIRS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {  # what exists on both sides: left, right
        "SN-N": ("SN-NL", "SN-NR"),
        "N-LP": ("NL-LPL", "NR-LPR"),
        "N-IMF": ("NL-IMFL", "NR-IMFR"),
        "N-M": ("NL-M", "NR-M"),
        **{
            name: (f"{name}-left", f"{name}-right")
            for name in (
                *("base-width", "half-chest-width", "projection", "volume", "volume-inner-border"),
                *("volume-flat-wall", "surface", "footprint"),
                *("fold-height", "nipple-above-fold", "nipple-above-lower-pole"),
            )
        },
    }
)


def parse_measure(text: str) -> tuple[str, str]:
    """Name and kind of a distance as people write it: ``SN-NL``, ``tape sn-nl``, ``nipple_left to sternal_notch``.

    Returns
    -------
    name, kind : str
        The kind is "straight" where none is given.

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
        raise BreastMorphError(
            "{text!r} is no measure",
            "Known distances: {distances}",
            text=text,
            distances=", ".join(DISTANCES),
        )
    if kind not in DISTANCES[name].kinds:
        raise BreastMorphError(
            "{name} has no {kind} measure",
            "It is {kinds}",
            name=name,
            kind=kind,
            kinds=" or ".join(DISTANCES[name].kinds),
        )
    return name, kind


def _by_ends(label: str) -> str | None:
    """The distance between two named landmarks."""
    if same_name(label, "N-N"):
        return "NL-NR"
    ends = re.split(r"\s+to\s+|-|\s*/\s*", label, maxsplit=1)
    if len(ends) != 2:
        return None
    named = {canonical_name(end) for end in ends}
    plain = (one for one in DISTANCES.values() if not one.ends_at_midline)
    return next((one.name for one in plain if set(one.landmarks) == named), None)
