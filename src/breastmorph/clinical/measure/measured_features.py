"""Measures as features of a model's shapes: numbers that can be asked for, with their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from breastmorph.clinical.features import Feature, Reading
from breastmorph.clinical.measure.distances import DISTANCES, STRAIGHT
from breastmorph.clinical.measure.measures import Gauge
from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES


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


def measured_features(model: ShapeModel) -> tuple[Feature, ...]:
    """All measures that a model's landmarks determine; a published model has fewer."""
    gauge = Gauge.of_vertices(model.faces, model.landmark_ids)
    found: list[Feature] = [
        DistanceFeature(gauge, distance.name, kind)
        for distance in DISTANCES.values()
        for kind in distance.kinds
        if not gauge.lacks(distance.name)
    ]
    try:
        volumes = BreastVolumes(model.mean_mesh, model.landmarks)
    except BreastMorphError:
        return tuple(found)
    return (*found, *(VolumeFeature(volumes, side) for side in SIDES))
