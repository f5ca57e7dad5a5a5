"""Features of a model's shapes: distances, volumes and heights by any name in use, measured, with their gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.borders import SubjectLandmarks, distance_spread
from breastmorph.clinical.distance_meter import DistanceMeter
from breastmorph.clinical.distances import DISTANCES, KINDS, STRAIGHT, parse_measure
from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.feature_requests import Feature, same_name
from breastmorph.clinical.skin_points import Reading, SkinLandmarks
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES


@dataclass(frozen=True)
class DistanceFeature:
    """A distance of shapes with the same triangles, mm."""

    meter: DistanceMeter
    distance: str
    kind: str
    unit: str = "mm"

    @property
    def name(self) -> str:
        """``SN-NL`` for the straight distance, ``SN-NL tape`` for the one over the skin."""
        return self.distance if self.kind == STRAIGHT else f"{self.distance} {self.kind}"

    def value(self, shape: Floats) -> float:
        """The distance in an upright shape (n, 3), mm."""
        return self.meter.measures(shape, [(self.distance, self.kind)])[0].value

    def read(self, shape: Floats) -> Reading:
        """The distance with its gradient."""
        return self.meter.read(shape, self.distance, self.kind)


@dataclass(frozen=True)
class VolumeFeature:
    """A side's volume as a feature that can be edited; its unit is cc."""

    volumes: BreastVolumes
    side: str
    unit: str = "cc"

    @property
    def name(self) -> str:
        """``volume-left`` or ``volume-right``."""
        return f"volume-{self.side}"

    def value(self, shape: Floats) -> float:
        """Volume of a shape (n, 3), cc."""
        return self.volumes.cc(shape, self.side)

    def read(self, shape: Floats) -> Reading:
        """The volume with its gradient."""
        return self.volumes.read(shape, self.side)


def measured_features(model: ShapeModel, landmarks: SkinLandmarks | None = None) -> tuple[Feature, ...]:
    """All measures that landmarks determine, those of the model's vertices or a subject's own; fewer without some."""
    meter = (
        DistanceMeter(model.faces, landmarks)
        if landmarks is not None
        else DistanceMeter.of_vertices(model.faces, model.landmark_ids)
    )
    found: list[Feature] = [
        DistanceFeature(meter, distance.name, kind)
        for distance in DISTANCES.values()
        for kind in distance.kinds
        if not meter.lacks(distance.name)
    ]
    try:
        volumes = BreastVolumes.of_model(model)
    except BreastMorphError:
        return tuple(found)
    return (*found, *(VolumeFeature(volumes, side) for side in SIDES))


class ModelFeatures:
    """Distances and volumes of all shapes of a model.

    Parameters
    ----------
    model : ShapeModel
    kind : {"straight", "tape"}
        Of the distances, where none is given.
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
            raise BreastMorphError(
                "distances are not measured {kind!r}", "Choose {kinds}", kind=kind, kinds=" or ".join(KINDS)
            )
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
        """The feature that a text means: ``SN-NL``, ``tape sn-nl``, ``volume left``; None when there is none."""
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
            together = distances[0].meter.measures(np.asarray(shape), asked)
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
