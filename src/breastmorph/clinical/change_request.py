"""What an edit shall do: requests and constraints, resolved against the features, regions and columns there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breastmorph.clinical.feature_requests import REGIONS, Feature, Request, named
from breastmorph.clinical.features import ModelFeatures
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Finding, note

_IMPOSSIBLE = {
    "mm": (N_("{name:measure} would be {value:length}"), N_("It is {now:length} now")),
    "cc": (N_("{name:measure} would be {value:.1f} cc"), N_("It is {now:.1f} cc now")),
}


@dataclass(frozen=True, eq=False)
class ChangeRequest:
    """A change request: what an edit shall attain and what must stay.

    Attributes
    ----------
    features : tuple of Feature
        Those asked for, then those that must stay.
    before : mapping from name to float
        Their present values.
    targets : mapping from name to float
        Wanted values of those asked for.
    constrained : tuple of str
        Features that must stay.
    regions : tuple of str
        Regions that must stay.
    shifts : mapping from column to float
        Changes of columns of the cohort's table.
    """

    features: tuple[Feature, ...]
    before: Mapping[str, float]
    targets: Mapping[str, float]
    constrained: tuple[str, ...]
    regions: tuple[str, ...]
    shifts: Mapping[str, float]

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return [feature.name for feature in self.features]

    def wanted(self, name: str) -> float:
        """The value that a feature shall have."""
        return self.targets.get(name, self.before[name])

    def described(self) -> Finding:
        """What is asked for."""
        parts = [valued(f, self.targets[f.name]) for f in self.features if f.name in self.targets]
        parts += [
            note("asked/column", "{name} {shift:+g}", name=column, shift=shift)
            for column, shift in self.shifts.items()
        ]
        itself = {f"volume-{region}" for region in self.regions}  # a constrained breast keeps it unasked
        names = [name for name in (*self.constrained, *self.regions) if name not in itself]
        stay = note(
            "asked/stays" if len(names) == 1 else "asked/stay",
            " while {names:measure} stays" if len(names) == 1 else " while {names:measure} stay",
            names=names,
        )
        return note("asked", "{parts:| with }{stay}", parts=parts, stay=stay if names else "")


def valued(feature: Feature, value: float) -> Finding:
    """A measure with a value, as a finding."""
    values = {"name": feature.name, "value": float(value)}
    if feature.unit == "mm":
        return note("asked/mm", "{name:measure} {value:length}", **values)
    return note("asked/cc", "{name:measure} {value:.1f} cc", **values)


def resolve(
    requests: Sequence[Request],
    hold: Sequence[str],
    features: ModelFeatures,
    shape: Floats,
    columns: Mapping[str, float | None],
) -> ChangeRequest:
    """Find what is meant.

    Parameters
    ----------
    requests : sequence of Request
    hold : sequence of str
        Features or regions that must stay.
    features : ModelFeatures
    shape : (n, 3) float
        The shape to be edited.
    columns : mapping from name to float or None
        Columns of the cohort's table with the shape's own value, None where it is unknown.

    Raises
    ------
    BreastMorphError
        A name is not known, named twice or both asked for and to stay, a unit or value is impossible.
    """
    chosen: dict[str, Feature] = {}
    before: dict[str, float] = {}
    targets: dict[str, float] = {}
    shifts: dict[str, float] = {}

    def add(feature: Feature) -> str:
        value = feature.value(shape)
        if not value == value:  # NaN
            raise BreastMorphError(
                "{name:measure} cannot be determined on this shape",
                "Choose another measure",
                code="not-determinable",
                name=feature.name,
            )
        chosen[feature.name], before[feature.name] = feature, value
        return feature.name

    for request in requests:
        feature, column = features.find(request.name), named(request.name, columns)
        if feature is None and column is None:
            raise BreastMorphError(
                "{name!r} is not known here",
                "{known}",
                code="unknown-measure",
                name=request.name,
                known=known(features, columns),
            )
        name = feature.name if feature is not None else str(column)
        if name in targets or name in shifts:
            raise BreastMorphError(
                "{name:measure} is asked for twice", "Keep one value", code="asked-twice", name=name
            )
        if feature is None:
            shifts[name] = _shift(name, request, columns[name])
            continue
        add(feature)
        targets[name] = request.in_unit(feature.unit) + (before[name] if request.relative else 0.0)
        if targets[name] <= 0.0:
            raise BreastMorphError(
                *_IMPOSSIBLE[feature.unit],
                code=f"impossible-value/{feature.unit}",
                name=name,
                value=targets[name],
                now=before[name],
            )
    constrained: list[str] = []
    regions: list[str] = []
    for text in hold:
        region, feature = named(text, REGIONS), features.find(text)
        if region is not None:
            regions.append(region)
        elif feature is None:
            raise BreastMorphError(
                "{name!r} cannot be held",
                "The regions are {regions}. {known}",
                code="cannot-be-held",
                name=text,
                regions=list(REGIONS),
                known=known(features, {}),
            )
        elif feature.name in targets:
            raise BreastMorphError(
                "{name:measure} is both to be changed and to be held",
                "Choose one of the two",
                code="changed-and-held",
                name=feature.name,
            )
        else:
            constrained.append(add(feature))
    return ChangeRequest(
        tuple(chosen.values()),
        before,
        targets,
        tuple(dict.fromkeys(constrained)),
        tuple(dict.fromkeys(regions)),
        shifts,
    )


def _shift(column: str, request: Request, own: float | None) -> float:
    """How much a column shall change."""
    amount = request.in_unit("")
    if request.relative:
        return amount
    if own is None:
        raise BreastMorphError(
            "no shape has a value of {column}",
            "Say by how much it shall change, for example {column}=+3",
            column=column,
        )
    return amount - own


def known(features: ModelFeatures, columns: Mapping[str, float | None]) -> Finding:
    """The names that can be used."""
    names, side = list(features.names), features.absent_side
    return note(
        "known-measures" if names else "known-measures/none",
        "The measures are {names:measure}{absent}{columns}"
        if names
        else "There are no measures: the model has too few landmarks (complete them with "
        "landmark_ids){absent}{columns}",
        names=names,
        absent=note("known-measures/absent", " (the {side} breast is absent)", side=side) if side else "",
        columns=note("known-measures/columns", "; columns of the table are {names}", names=list(columns))
        if columns
        else "",
    )
