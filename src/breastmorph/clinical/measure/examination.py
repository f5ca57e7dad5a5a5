"""An examination: all measures of one subject together, from a scan, a registered mesh or a model's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from breastmorph.clinical.measure.measures import Gauge, Measure, asymmetries, measure_distances
from breastmorph.clinical.measure.ptosis import Ptosis, both_sides
from breastmorph.clinical.measure.skin_points import reached
from breastmorph.clinical.measure.symmetry import Symmetry, SymmetryGauge
from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.scan.landmarks import SIDES, Landmarks
from breastmorph.scan.scan import Scan


@dataclass(frozen=True, eq=False)
class Examination:
    """One subject's measures.

    Attributes
    ----------
    id : str
    source : str
        "scan", "registered" or "model".
    absent : str
        The side without a breast, or empty.
    distances : tuple of Measure
    volumes : tuple of Measure
        Of both sides, cc.
    uncertainties : mapping from side to float
        Of the volumes, cc; empty where there are none.
    ptosis : tuple of Ptosis
    symmetry : Symmetry, optional
    mesh : TriangleMesh, optional
        What the symmetry's map belongs to.
    symmetry_reason : str
        Why there is no symmetry.
    warnings : tuple of str
    """

    id: str
    source: str
    absent: str
    distances: tuple[Measure, ...]
    volumes: tuple[Measure, ...]
    uncertainties: Mapping[str, float]
    ptosis: tuple[Ptosis, ...]
    symmetry: Symmetry | None
    mesh: TriangleMesh | None
    symmetry_reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Distances and volumes."""
        return self.distances + self.volumes

    @property
    def asymmetries(self) -> tuple[Measure, ...]:
        """Left minus right."""
        return asymmetries(self.measures)


class Examiner:
    """A template or a model's mean prepared to examine many shapes in its correspondence.

    Parameters
    ----------
    mesh : TriangleMesh
        Upright, in mm.
    landmark_ids : mapping from name to vertex
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image.
    """

    def __init__(
        self, mesh: TriangleMesh, landmark_ids: Mapping[str, int], mirror: Ints | None = None
    ) -> None:
        self.mesh, self.ids, self._mirror = mesh, dict(landmark_ids), mirror

    def shape(
        self,
        name: str,
        shape: Floats,
        absent: str = "",
        source: str = "registered",
        annotated: Landmarks | None = None,
    ) -> Examination:
        """Examine a shape (n, 3), upright, in mm.

        ``annotated`` are the subject's own landmarks. Without them the template's landmark vertices serve; they are
        right for sternum and nipples, but the poles are not the same skin in every subject.
        """
        mesh = self.mesh.with_vertices(shape)
        warnings: tuple[str, ...] = ()
        if annotated:
            landmarks = reached(Surface(mesh), annotated)
            warnings = tuple(
                f"the mesh does not reach {mark}" for mark in annotated if mark not in landmarks.names
            )
            distances = measure_distances(mesh, landmarks)
        else:
            ids = {mark: at for mark, at in self.ids.items() if not (absent and mark.endswith(absent))}
            landmarks = Landmarks.at_vertices(ids, shape)
            distances = Gauge.of_vertices(mesh.faces, ids).measures(shape)
        volumes, uncertainties = self._measured_volumes(shape, absent)
        symmetry, reason = self._measured_symmetry(shape, absent)
        return Examination(
            name,
            source,
            absent,
            distances,
            volumes,
            uncertainties,
            both_sides(landmarks),
            symmetry,
            mesh if symmetry else None,
            reason,
            warnings,
        )

    def scan(
        self, scan: Scan, registered: Floats, absent: str = "", warnings: tuple[str, ...] = ()
    ) -> Examination:
        """Examine a scan: distances on its own surface, the rest on its registered shape (n, 3)."""
        own = self.distances(scan)
        return replace(
            self.shape(scan.id, registered, absent, "scan"),
            distances=own.distances,
            ptosis=own.ptosis,
            warnings=warnings,
        )

    def distances(self, scan: Scan) -> Examination:
        """What a scan's landmarks tell without a registration."""
        reason = "needs a registration"
        nan = float("nan")
        return Examination(
            scan.id,
            "scan",
            "".join(scan.landmarks.absent_sides[:1]),
            measure_distances(scan.mesh, scan.landmarks),
            tuple(Measure(f"volume-{side}", "volume", nan, "cc", reason) for side in SIDES),
            {},
            both_sides(scan.landmarks),
            None,
            None,
            reason,
            scan.warnings,
        )

    @cached_property
    def _landmarks(self) -> Landmarks:
        return Landmarks.at_vertices(self.ids, self.mesh.vertices)

    @cached_property
    def _volumes(self) -> BreastVolumes | str:
        try:
            return BreastVolumes(self.mesh, self._landmarks)
        except BreastMorphError as error:
            return error.cause

    @cached_property
    def _symmetry(self) -> SymmetryGauge | str:
        try:
            return SymmetryGauge(self.mesh, self._landmarks, self._mirror)
        except BreastMorphError as error:
            return error.cause

    def _measured_volumes(self, shape: Floats, absent: str) -> tuple[tuple[Measure, ...], dict[str, float]]:
        out, uncertainties = [], {}
        for side in SIDES:
            name, nan = f"volume-{side}", float("nan")
            if side == absent:
                out.append(Measure(name, "volume", nan, "cc", f"{side} side absent"))
            elif isinstance(self._volumes, str):
                out.append(Measure(name, "volume", nan, "cc", self._volumes))
            else:
                volume = self._volumes.estimate(shape, side)
                out.append(Measure(name, "volume", volume.cc, "cc"))
                uncertainties[side] = volume.uncertainty
        return tuple(out), uncertainties

    def _measured_symmetry(self, shape: Floats, absent: str) -> tuple[Symmetry | None, str]:
        if absent:
            return None, f"{absent} side absent"
        if isinstance(self._symmetry, str):
            return None, self._symmetry
        return self._symmetry.of(np.asarray(shape)), ""
