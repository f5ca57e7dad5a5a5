"""What an edit shall do: requests and holds, resolved against the features, regions and columns that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breastmorph.clinical.edit.model_features import ModelFeatures
from breastmorph.clinical.features import REGIONS, Feature, Request, named
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats


@dataclass(frozen=True, eq=False)
class Wishes:
    """An edit's task.

    Attributes
    ----------
    features : tuple of Feature
        Those asked for, then those held.
    before : mapping from name to float
        Their present values.
    targets : mapping from name to float
        Wanted values of those asked for.
    held : tuple of str
        Features that must stay.
    regions : tuple of str
        Regions that must stay.
    shifts : mapping from column to float
        Changes of columns of the cohort's table.
    """

    features: tuple[Feature, ...]
    before: Mapping[str, float]
    targets: Mapping[str, float]
    held: tuple[str, ...]
    regions: tuple[str, ...]
    shifts: Mapping[str, float]

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return [feature.name for feature in self.features]

    @property
    def wanted(self) -> list[float]:
        """The value that every feature shall have."""
        return [self.targets.get(name, self.before[name]) for name in self.names]

    def described(self) -> str:
        """What is asked for, in words."""
        parts = [
            f"{f.name} {self.targets[f.name]:.1f} {f.unit}" for f in self.features if f.name in self.targets
        ]
        parts += [f"{column} {shift:+g}" for column, shift in self.shifts.items()]
        stay = [*self.held, *self.regions]
        return " with ".join(parts) + (
            f" while {', '.join(stay)} stay{'s' if len(stay) == 1 else ''}" if stay else ""
        )


def resolve(
    requests: Sequence[Request],
    hold: Sequence[str],
    features: ModelFeatures,
    shape: Floats,
    columns: Mapping[str, float | None],
) -> Wishes:
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
        Columns of the cohort's table with the shape's own value, None where nobody knows it.

    Raises
    ------
    BreastMorphError
        A name is not known, named twice or both asked for and held, a unit or value is impossible.
    """
    chosen: dict[str, Feature] = {}
    before: dict[str, float] = {}
    targets: dict[str, float] = {}
    shifts: dict[str, float] = {}

    def add(feature: Feature) -> str:
        value = feature.value(shape)
        if not value == value:  # NaN
            raise BreastMorphError(
                f"{feature.name} cannot be determined on this shape", "Choose another measure"
            )
        chosen[feature.name], before[feature.name] = feature, value
        return feature.name

    for request in requests:
        feature, column = features.find(request.name), named(request.name, columns)
        if feature is None and column is None:
            raise BreastMorphError(f"{request.name!r} is not known here", known(features, columns))
        name = feature.name if feature is not None else str(column)
        if name in targets or name in shifts:
            raise BreastMorphError(f"{name} is asked for twice", "Keep one value")
        if feature is None:
            shifts[name] = _shift(name, request, columns[name])
            continue
        add(feature)
        targets[name] = request.in_unit(feature.unit) + (before[name] if request.relative else 0.0)
        if targets[name] <= 0.0:
            raise BreastMorphError(
                f"{name} would be {targets[name]:.1f} {feature.unit}",
                f"It is {before[name]:.1f} {feature.unit} now",
            )
    held: list[str] = []
    regions: list[str] = []
    for wish in hold:
        region, feature = named(wish, REGIONS), features.find(wish)
        if region is not None:
            regions.append(region)
        elif feature is None:
            raise BreastMorphError(
                f"{wish!r} cannot be held", f"Regions are {', '.join(REGIONS)}. {known(features, {})}"
            )
        elif feature.name in targets:
            raise BreastMorphError(
                f"{feature.name} is both to be changed and to be held", "Choose one of the two"
            )
        else:
            held.append(add(feature))
    return Wishes(
        tuple(chosen.values()),
        before,
        targets,
        tuple(dict.fromkeys(held)),
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
            f"no shape tells its {column}", f"Say by how much it shall change, for example {column}=+3"
        )
    return amount - own


def known(features: ModelFeatures, columns: Mapping[str, float | None]) -> str:
    """The names that can be used, in words."""
    names = (
        ", ".join(features.names)
        or "none: the model has too few landmarks (complete them with --landmark-ids)"
    )
    absent = f" (the {features.absent_side} breast is absent)" if features.absent_side else ""
    return f"Measures are {names}{absent}" + (
        f"; columns of the table are {', '.join(columns)}" if columns else ""
    )
