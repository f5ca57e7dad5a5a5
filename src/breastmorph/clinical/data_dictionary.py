"""The data dictionary: what every measure is, for people and machines."""

from __future__ import annotations

from dataclasses import dataclass

from breastmorph.clinical.borders import HEIGHTS, height_landmarks
from breastmorph.clinical.distances import DISTANCES
from breastmorph.clinical.volume import DEFINITIONS
from breastmorph.scan.scan import SIDES


@dataclass(frozen=True)
class Definition:
    """One line of the data dictionary.

    Attributes
    ----------
    name, kinds, unit : str
    points : str
        Landmarks that it needs.
    meaning : str
    """

    name: str
    kinds: str
    unit: str
    points: str
    meaning: str


def dictionary() -> tuple[Definition, ...]:
    """Every measure there is, in the order in which tables show them."""
    lines = [
        Definition(one.name, " and ".join(one.kinds), "mm", ", ".join(one.landmarks), one.meaning)
        for one in DISTANCES.values()
    ]
    for side in SIDES:
        lines += [
            Definition(
                f"{name}-{side}",
                "height",
                "mm",
                ", ".join(height_landmarks(name, side)),
                meaning,
            )
            for name, (_, _, meaning) in HEIGHTS.items()
        ]
        lines += [
            Definition(f"surface-{side}", "area", "cm2", "breast region", "Skin of the breast"),
            Definition(
                f"footprint-{side}", "area", "cm2", "breast region", "Chest wall that the breast stands on"
            ),
        ]
    lines.append(
        Definition(
            "under-bust-seen",
            "tape",
            "mm",
            "imf_left, imf_right",
            "Girth 5 mm below the lower fold, only the part that the mesh shows",
        )
    )
    lines += [
        Definition(f"{name}-{side}", "volume", "cc", "breast region", meaning)
        for name, meaning in DEFINITIONS.items()
        for side in SIDES
    ]
    lines.append(
        Definition(
            "mirror deviation",
            "mean",
            "mm",
            "breast regions",
            "Mean distance of each breast from the mirror image of the other, aligned by the thorax",
        )
    )
    return tuple(lines)
