"""What an edit is asked for, what a model can do of it, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr

from breastmorph.clinical.borders import SubjectLandmarks
from breastmorph.clinical.distances import (
    KINDS,
    REGIONS,
    STRAIGHT,
    Feature,
    Request,
    named,
    parse_measure,
    same_name,
)
from breastmorph.clinical.examination import distance_spread, examiner_of
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.measures import DistanceFeature, VolumeFeature, measured_features
from breastmorph.foundation.arrays import Floats, Ints, Shown, doubted
from breastmorph.foundation.errors import BreastMorphError, Finding, sentences, warning
from breastmorph.foundation.files import plain
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.model.standing import LEVELS, Standing

# --------------------------------------------------------------------------------------------------------------------
# The features of a model's shapes, found by any name people use, and measured together
# --------------------------------------------------------------------------------------------------------------------


class ModelFeatures:
    """Distances and volumes of all shapes of a model.

    Parameters
    ----------
    model : ShapeModel
    kind : {"straight", "tape"}
        Of the distances, where nobody says.
    absent_side : str
        A side whose landmarks do not count, because the patient has no breast there.
    landmarks : SubjectLandmarks, optional
        What the measures run between; those of the model's mean when not given.

    Attributes
    ----------
    reported : tuple of Feature
        Those of that kind, and volumes.
    absent_side : str
    """

    def __init__(
        self,
        model: ShapeModel,
        kind: str = STRAIGHT,
        absent_side: str = "",
        landmarks: SubjectLandmarks | None = None,
    ) -> None:
        if kind not in KINDS:
            raise BreastMorphError(f"distances are not measured {kind!r}", f"Choose {' or '.join(KINDS)}")
        self._kind, self.absent_side = kind, absent_side
        places = landmarks or examiner_of(model).landmarks(model.mean)
        self._spreads = places.sd
        found = measured_features(model, places.without(absent_side).skin)
        self._features = {
            feature.name: feature for feature in found if feature.name != f"volume-{absent_side}"
        }
        taped = {one.distance for one in found if isinstance(one, DistanceFeature) and one.kind == kind}
        self.reported: tuple[Feature, ...] = tuple(
            one
            for one in self._features.values()
            if not isinstance(one, DistanceFeature) or one.kind == kind or one.distance not in taped
        )

    @property
    def names(self) -> list[str]:
        """Of the features reported."""
        return [feature.name for feature in self.reported]

    def find(self, text: str) -> Feature | None:
        """The feature that somebody means: ``SN-NL``, ``tape sn-nl``, ``volume left``; None when there is none."""
        for words in (f"{self._kind} {text}", text):
            try:
                distance, kind = parse_measure(words)
            except BreastMorphError:
                continue
            same = (one for one in self._features.values() if isinstance(one, DistanceFeature))
            return next((one for one in same if (one.distance, one.kind) == (distance, kind)), None)
        return next((one for name, one in self._features.items() if same_name(name, text)), None)

    def measured(self, shape: Floats) -> dict[str, float]:
        """Values of the features reported in a shape (n, 3); NaN where one cannot be determined."""
        distances = [one for one in self.reported if isinstance(one, DistanceFeature)]
        read: dict[str, float] = {}
        if distances:  # together, because tape lines share the preparation of the surface
            asked = [(one.distance, one.kind) for one in distances]
            together = distances[0].gauge.measures(np.asarray(shape), asked)
            read = {one.name: measure.value for one, measure in zip(distances, together, strict=True)}
        return {one.name: read[one.name] if one.name in read else one.value(shape) for one in self.reported}

    def spread(self, feature: Feature, shape: Floats) -> tuple[float, str]:
        """Standard deviation of a feature in a shape, and what it comes from: as everywhere else."""
        if isinstance(feature, DistanceFeature):
            return distance_spread(feature.distance, self._spreads)
        if isinstance(feature, VolumeFeature):
            volume = feature.volumes.estimate(shape, feature.side)
            return volume.uncertainty, volume.source
        return float("nan"), ""


# --------------------------------------------------------------------------------------------------------------------
# What an edit returns: the shape, and every measure before and after
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Edit(Shown):
    """An edited shape.

    Attributes
    ----------
    shape : (n, 3) float
        In the patient's upright frame, mm.
    before : (n, 3) float
    faces : (m, 3) int
    coefficients, coefficients_before : (q,) float
    length : float
        Of the change, in the model's standard deviations.
    size_change : float
        Relative change of the size that all coefficients share.
    changes : tuple of Measure
        The measures asked for and held first, then all others.
    movements : mapping from region to float
        Root mean square movement in mm.
    method : str
        "exact" or "linear".
    basis : str
        What a regression was trained on; empty where none was used.
    warnings : tuple of Finding
    standing : Standing, optional
        How unusual the edited shape is among the model's subjects; None where a breast is absent.
    skin : (n, 4) uint8, optional
        The patient's.
    """

    shape: Floats
    before: Floats
    faces: Ints
    coefficients: Floats
    coefficients_before: Floats
    length: float
    size_change: float
    changes: tuple[Measure, ...]
    movements: Mapping[str, float]
    method: str
    basis: str = ""
    warnings: tuple[Finding, ...] = ()
    standing: Standing | None = None
    skin: NDArray[np.uint8] | None = None

    @property
    def mesh(self) -> TriangleMesh:
        """The edited shape."""
        return TriangleMesh(self.shape, self.faces, self.skin)

    def __repr__(self) -> str:
        asked = ", ".join(
            f"{c.name} {c.before:.1f} to {c.after:.1f} {c.unit}".rstrip()
            for c in self.changes
            if c.requested is not None and not c.held
        )
        return f"Edit({asked}, {self.length:.1f} standard deviations{doubted(self.warnings)})"

    @property
    def largest_error(self) -> float:
        """Of the measures asked for and held, mm or cc."""
        return max(
            (abs(c.error) for c in self.changes if c.error is not None and np.isfinite(c.error)), default=0.0
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "units": "mm and cc; sd is one standard deviation of the value after",
            "method": self.method,
            "trained_on": self.basis,
            "changes": [
                {
                    "name": c.name,
                    "unit": c.unit,
                    "before": plain(c.before),
                    "requested": plain(c.requested),
                    "after": plain(c.after),
                    "sd": plain(c.sd),
                    "sd_source": c.source,
                    "error": plain(c.error),
                    "held": c.held,
                    "requested_sd": plain(c.deviations),
                }
                for c in self.changes
            ],
            "movement_mm": plain(dict(self.movements)),
            "length_sd": self.length,
            "size_change": self.size_change,
            "standing": self.standing.as_dict() if self.standing is not None else None,
            "coefficients_before": self.coefficients_before.tolist(),
            "coefficients": self.coefficients.tolist(),
            "warnings": sentences(self.warnings),
        }


# --------------------------------------------------------------------------------------------------------------------
# What is unusual about an edited shape, in words
# --------------------------------------------------------------------------------------------------------------------


_WORSE = 0.005  # share of the subjects: who was as unusual before is not warned


def usual_length(model: ShapeModel, deviations: float) -> float:
    """Mahalanobis distance that is as rare in the model as so many standard deviations are for a single number.

    It bounds the length of a change, whoever is changed. How unusual the shape is that comes out, the gauge says
    (:mod:`breastmorph.model.standing`): the two differ for a patient who was unusual before.
    """
    return float(np.sqrt(chdtri(max(model.n_components, 1), 2.0 * ndtr(-deviations))))


FOLDED = "edit-folded"  # code of a warning: look at the shape


def unusual_about(edit: Edit, before: Standing | None, deviations: float) -> list[Finding]:
    """What lies beyond so many standard deviations of the values asked for, and the shape if it became unusual."""
    found = [
        warning(
            "unusual-value/above" if change.deviations > 0 else "unusual-value/below",
            name=change.name,
            deviations=abs(change.deviations),
        )
        for change in edit.changes
        if change.deviations is not None and abs(change.deviations) > deviations
    ]
    now = edit.standing
    if now is not None and now.level != LEVELS[0] and (before is None or now.share > before.share + _WORSE):
        found.append(warning("unusual-shape", level=now.level, standing=now.finding))
    return found


# --------------------------------------------------------------------------------------------------------------------
# What an edit shall do: requests and holds, resolved against the features, regions and columns that there are
# --------------------------------------------------------------------------------------------------------------------


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

    def wanted(self, name: str) -> float:
        """The value that a feature shall have."""
        return self.targets.get(name, self.before[name])

    def described(self) -> Finding:
        """What is asked for."""
        parts = [valued(f, self.targets[f.name]) for f in self.features if f.name in self.targets]
        parts += [
            Finding("asked/column", {"name": column, "shift": shift}) for column, shift in self.shifts.items()
        ]
        itself = {f"volume-{region}" for region in self.regions}  # nobody asks for what a held breast keeps
        names = [name for name in (*self.held, *self.regions) if name not in itself]
        stay = Finding("asked/stays" if len(names) == 1 else "asked/stay", {"names": names})
        return Finding("asked", {"parts": parts, "stay": stay if names else ""})


def valued(feature: Feature, value: float) -> Finding:
    """A measure with a value, to be told."""
    return Finding(f"asked/{feature.unit}", {"name": feature.name, "value": float(value)})


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
            raise BreastMorphError.of("not-determinable", name=feature.name)
        chosen[feature.name], before[feature.name] = feature, value
        return feature.name

    for request in requests:
        feature, column = features.find(request.name), named(request.name, columns)
        if feature is None and column is None:
            raise BreastMorphError.of("unknown-measure", name=request.name, known=known(features, columns))
        name = feature.name if feature is not None else str(column)
        if name in targets or name in shifts:
            raise BreastMorphError.of("asked-twice", name=name)
        if feature is None:
            shifts[name] = _shift(name, request, columns[name])
            continue
        add(feature)
        targets[name] = request.in_unit(feature.unit) + (before[name] if request.relative else 0.0)
        if targets[name] <= 0.0:
            raise BreastMorphError.of(
                f"impossible-value/{feature.unit}", name=name, value=targets[name], now=before[name]
            )
    held: list[str] = []
    regions: list[str] = []
    for wish in hold:
        region, feature = named(wish, REGIONS), features.find(wish)
        if region is not None:
            regions.append(region)
        elif feature is None:
            raise BreastMorphError.of(
                "cannot-be-held", name=wish, regions=list(REGIONS), known=known(features, {})
            )
        elif feature.name in targets:
            raise BreastMorphError.of("changed-and-held", name=feature.name)
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


def known(features: ModelFeatures, columns: Mapping[str, float | None]) -> Finding:
    """The names that can be used."""
    names, side = list(features.names), features.absent_side
    return Finding(
        "known-measures" if names else "known-measures/none",
        {
            "names": names,
            "absent": Finding("known-measures/absent", {"side": side}) if side else "",
            "columns": Finding("known-measures/columns", {"names": list(columns)}) if columns else "",
        },
    )
