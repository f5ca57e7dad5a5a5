"""Whether a breast is absent: decided here for commands, page and Python alike."""

from __future__ import annotations

from breastmorph.clinical.missing_region import BOTH, painted_side
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, other_side

_GONE = 0.35  # of the other breast's volume: what a flat chest may seem to hold
_STATED_GONE = 0.7  # the same without landmarks of that side: only a clear breast contradicts
_NO_BREAST = 40.0  # cc: less than any adult breast
_FLAT = 100.0  # cc that a volume may be wrong by on a flat chest


def counts_as_gone(
    model: ShapeModel, shape: Floats, missing: str | Bools, absent_side: str = "", *, replace: bool = False
) -> bool:
    """Whether there is no breast where one is to be predicted; what contradicts the scan is refused.

    The registration asks another question of a side without landmarks: from which template it starts.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        A registered scan, mm.
    missing : {"left", "right", "both"} or (n,) bool
        The side, or painted vertices. Painted ones may be part of a breast: of them only ``absent_side`` tells.
    absent_side : str
        The side that the scan has no landmarks of, or empty. Points there are worth nothing, so it counts as gone.
    replace : bool
        A breast that is there is predicted nevertheless.

    Raises
    ------
    BreastMorphError
        The other side is the one without a breast, neither side has one, or it is there and not to be replaced.
    """
    side = missing if isinstance(missing, str) else (absent_side and painted_side(model, missing))
    if side in SIDES and absent_side == other_side(side):
        raise BreastMorphError(
            "the {absent} side is the one without a breast, not the {side}",
            "Predict the {absent} side",
            code="other-side-absent",
            absent=absent_side,
            side=side,
        )
    if not isinstance(missing, str):
        return bool(absent_side)
    if missing == BOTH:
        volumes = BreastVolumes.of_model(model)
        there = [one for one in SIDES if volumes.cc(shape, one) > _NO_BREAST + _FLAT]
        if there and not replace:
            raise BreastMorphError(
                "the {side} breast is there",
                "Give replace=True to predict it nevertheless, as if it were missing",
                code="breast-there",
                side=there[0],
            )
        return not there
    gone = is_gone(model, shape, missing, stated=bool(absent_side))
    if not gone and not replace:
        raise BreastMorphError(
            "the {side} breast is there: it has no landmarks, but its skin shows it"
            if absent_side
            else "the {side} breast is there",
            "Give replace=True to predict it nevertheless, as if it were missing",
            code="breast-there/without-landmarks" if absent_side else "breast-there",
            side=missing,
        )
    return gone or bool(absent_side)


def is_gone(model: ShapeModel, shape: Floats, side: str, *, stated: bool = False) -> bool:
    """Whether a side of a registered shape (n, 3), mm, has no breast, by its volume against the other side's.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
    side : str
    stated : bool
        Whether the scan came without landmarks of that side.

    Raises
    ------
    BreastMorphError
        When neither side has one.
    """
    volumes = BreastVolumes.of_model(model)
    own, other = volumes.cc(shape, side), volumes.cc(shape, other_side(side))
    if other < _NO_BREAST:
        raise BreastMorphError(
            "the {side} side has no breast either ({other:.0f} cc), so there is nothing to predict from",
            "A prediction needs one breast",
            code="no-breast",
            side=other_side(side),
            other=max(other, 0.0),
        )
    return own < (max(_STATED_GONE * other, _FLAT) if stated else max(_GONE * other, _NO_BREAST))
