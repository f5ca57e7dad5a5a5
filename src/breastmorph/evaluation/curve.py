"""A metric over the number of components, with the value of every subject or sample behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints
from breastmorph.plain import plain

Distance = Literal["point", "surface", "scan"]

# Vertices over which a distance is averaged, by name ("whole", "breast").
Regions = Mapping[str, Bools]


@dataclass(frozen=True, eq=False)
class Curve:
    """Distances in mm for several numbers of components.

    Attributes
    ----------
    distance : {"point", "surface", "scan"}
        Between corresponding vertices; from vertices to the closest point of the other registered surface; between
        the model's surface and the raw scan.
    region : str
        Over which vertices the mean is taken.
    components : (c,) int
    values : (k, c) float
        Of every left-out subject, or of every sample.
    """

    distance: Distance
    region: str
    components: Ints
    values: Floats

    @property
    def mean(self) -> Floats:
        """Mean over subjects or samples, (c,); NaN where none has a value."""
        return mean_of_known(self.values)

    @property
    def sd(self) -> Floats:
        """Standard deviation over subjects or samples, (c,); 0 for a single one."""
        known = np.isfinite(self.values)
        n = known.sum(axis=0)
        squares = np.where(known, (self.values - self.mean) ** 2, 0.0).sum(axis=0)
        return np.where(n > 0, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file; who has which value is left out."""
        return {
            "distance": self.distance,
            "region": self.region,
            "n": len(self.values),
            "components": self.components.tolist(),
            "mean": plain(self.mean),
            "sd": plain(self.sd),
        }


def region_columns(regions: Regions) -> Floats:
    """One column of ones and zeros a region, (n, r)."""
    return np.stack([np.asarray(inside, dtype=float) for inside in regions.values()], axis=1)


def curves_by_region(
    distance: Distance, regions: Regions, components: Ints, values: Floats
) -> dict[str, Curve]:
    """Curves of values (k, c, r) whose last axis are the regions."""
    return {name: Curve(distance, name, components, values[:, :, r]) for r, name in enumerate(regions)}


def whole(n_vertices: int) -> dict[str, Bools]:
    """The one region of all vertices."""
    return {"whole": np.ones(n_vertices, bool)}


def counts_of(wanted: Iterable[int], most: int) -> Ints:
    """The wanted numbers of components that exist, and the most, (c,)."""
    return np.array(sorted({count for count in wanted if count < most} | {most}), dtype=np.int64)


def mean_of_known(values: Floats) -> Floats:
    """Mean over the first axis of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
