"""Registered shapes and the model's reconstructions against the raw scans; every scan is read once for all variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.evaluation.curve import mean_of_known
from breastmorph.evaluation.experiments.modelled import ModelledCohort
from breastmorph.evaluation.experiments.recorded import Recorded, rounded
from breastmorph.evaluation.raw_scans import mean_distance
from breastmorph.evaluation.subject_scans import SubjectScans, onto_scan
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_normals, vertex_normals
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.scan import Scan

_FACING = 0.5  # cosine between normals: 60 degrees, as in registration
_FAR = 5.0  # mm: beyond it a scan's point must not have its closest point where the scan has another one


@dataclass(frozen=True, eq=False)
class ScanDistances(Recorded):
    """Distances between a cohort and its raw scans, at the subjects' own size; NaN where a scan is not known.

    Points whose closest point lies on the other surface's border (beyond the scan, over its holes) do not count, nor
    do those of the scan that the template does not cover, such as the arms.

    Attributes
    ----------
    squared : (k, 2) float
        Mean squared distance in square mm: from the registered vertices to the scan, and from the scan's vertices to
        the registered surface.
    distance_breast, distance_outside : (k,) float
        Mean distance in mm from the registered vertices to the scan, by the template's mask.
    components : (c,) int
    reconstructed_breast : (k, c) float
        Mean distance in mm from the left-out subject's reconstruction to its scan, in the breast.
    failures : tuple of str
        Subjects without a readable scan, and why.
    """

    squared: Floats
    distance_breast: Floats
    distance_outside: Floats
    components: Ints
    reconstructed_breast: Floats
    failures: tuple[str, ...]

    @property
    def mean_squared(self) -> Floats:
        """Both directions together, (k,): the paper's MSE."""
        both: Floats = self.squared.mean(axis=1)
        return both


def scan_distances(
    variants: Sequence[ModelledCohort],
    found: Sequence[ScanFiles],
    components: Ints,
    check: CheckParameters | None = None,
) -> tuple[ScanDistances, ...]:
    """Measure several registrations of the same subjects against their scans.

    Parameters
    ----------
    variants : sequence of ModelledCohort
        With the same subjects in the same order.
    found : sequence of ScanFiles
        Matched to the subjects by id.
    components : (c,) int
    check : CheckParameters, optional
        How scans are read.
    """
    scans = SubjectScans(variants[0].training.cohort, found, check)
    ids = variants[0].ids
    rows = np.full((len(variants), len(ids), 4 + len(components)), np.nan)
    failures = []
    for subject, name in enumerate(ids):
        scan = scans.read(subject)
        if isinstance(scan, str):
            failures.append(f"{name}: {scan}")
            continue
        surface = Surface(scan.mesh)
        for v, variant in enumerate(variants):
            rows[v, subject] = _one(variant, subject, scan, surface, components)
    return tuple(
        ScanDistances(
            rounded(row[:, :2]),
            rounded(row[:, 2]),
            rounded(row[:, 3]),
            components,
            rounded(row[:, 4:]),
            tuple(failures),
        )
        for row in rows
    )


def _one(variant: ModelledCohort, subject: int, scan: Scan, surface: Surface, components: Ints) -> Floats:
    training = variant.training
    to_scan = onto_scan(training.cohort, subject, scan)
    shape = to_scan.apply(training.cohort.shape(subject))
    found = surface.closest(shape)
    there, kept_there = found.distances, ~found.on_boundary
    template = training.cohort.template.mesh
    back, kept_back = _off_template(template.with_vertices(shape), scan, surface)
    breast = variant.breast
    to_own = to_scan.after(training.transforms[subject].inverse())
    reconstructed = [
        mean_distance(surface, to_own.apply(given_back[breast]))
        for given_back in variant.folds.reconstructions(subject, components)
    ]
    return np.array(
        [
            mean_of_known(there[kept_there] ** 2),
            mean_of_known(back[kept_back] ** 2),
            mean_of_known(there[kept_there & breast]),
            mean_of_known(there[kept_there & ~breast]),
            *reconstructed,
        ]
    )


def _off_template(registered: TriangleMesh, scan: Scan, surface: Surface) -> tuple[Floats, Bools]:
    """Distances of a scan's vertices to the registered surface, and which of them the template covers."""
    found = Surface(registered).closest(scan.mesh.vertices)
    normals = vertex_normals(scan.mesh.vertices, scan.mesh.faces)
    there = face_normals(registered.vertices, registered.faces)[found.faces]
    covered: Bools = ~found.on_boundary & ((normals * there).sum(axis=1) > _FACING)
    # An arm's closest point lies on the flank, where the scan has skin of its own.
    far = np.flatnonzero(covered & (found.distances > _FAR))
    if len(far):
        own = surface.closest(found.points[far]).distances
        covered[far] = own > found.distances[far] / 2.0
    return found.distances, covered
