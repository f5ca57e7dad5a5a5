"""Distances and volumes as features of a model's shapes: numbers that can be asked for, with their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from breastmorph.clinical.distance_meter import Gauge
from breastmorph.clinical.distances import DISTANCES, STRAIGHT
from breastmorph.clinical.feature_requests import Feature
from breastmorph.clinical.skin_points import Reading, SkinLandmarks
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES


@dataclass(frozen=True)
class DistanceFeature:
    """A distance of shapes with the same triangles, mm."""

    gauge: Gauge
    distance: str
    kind: str
    unit: str = "mm"

    @property
    def name(self) -> str:
        """``SN-NL`` for the straight distance, ``SN-NL tape`` for the one over the skin."""
        return self.distance if self.kind == STRAIGHT else f"{self.distance} {self.kind}"

    def value(self, shape: Floats) -> float:
        """The distance in an upright shape (n, 3), mm."""
        return self.gauge.measures(shape, [(self.distance, self.kind)])[0].value

    def read(self, shape: Floats) -> Reading:
        """The distance with its gradient."""
        return self.gauge.read(shape, self.distance, self.kind)


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
    gauge = (
        Gauge(model.faces, landmarks)
        if landmarks is not None
        else Gauge.of_vertices(model.faces, model.landmark_ids)
    )
    found: list[Feature] = [
        DistanceFeature(gauge, distance.name, kind)
        for distance in DISTANCES.values()
        for kind in distance.kinds
        if not gauge.lacks(distance.name)
    ]
    try:
        volumes = BreastVolumes.of_model(model)
    except BreastMorphError:
        return tuple(found)
    return (*found, *(VolumeFeature(volumes, side) for side in SIDES))
