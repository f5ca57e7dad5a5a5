"""Measures as features of a model's shapes: numbers that can be asked for, with their gradients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from breastmorph.clinical.features import Feature, Reading
from breastmorph.clinical.measure.distances import DISTANCES, KINDS, STRAIGHT
from breastmorph.clinical.measure.measures import Gauge
from breastmorph.clinical.measure.volume import BreastVolumes, VolumeFeature
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES, Landmarks


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


def measured_features(
    model: ShapeModel, kinds: Iterable[str] = KINDS, *, with_volumes: bool = True
) -> tuple[Feature, ...]:
    """All measures that a model's landmarks determine; a published model has fewer."""
    gauge = Gauge.of_vertices(model.faces, model.landmark_ids)
    chosen = set(kinds)
    found: list[Feature] = [
        DistanceFeature(gauge, distance.name, kind)
        for distance in DISTANCES.values()
        for kind in distance.kinds
        if kind in chosen and not gauge.lacks(distance.name)
    ]
    if with_volumes:
        landmarks = Landmarks(tuple(model.landmark_ids), model.mean[list(model.landmark_ids.values())])
        try:
            volumes = BreastVolumes(model.mean_mesh, landmarks)
        except BreastMorphError:
            return tuple(found)
        found += [VolumeFeature(volumes, side) for side in SIDES]
    return tuple(found)
