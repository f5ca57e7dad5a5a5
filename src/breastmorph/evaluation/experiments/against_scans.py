"""Registered shapes and the model's reconstructions against the raw scans; every scan is read once for all variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.evaluation.experiments.modelled import ModelledCohort
from breastmorph.evaluation.experiments.recorded import Recorded, rounded
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_normals, vertex_normals
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.scan.check import CheckParameters, check_scan
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
        return self.squared.mean(axis=1)


def scan_distances(
    variants: Sequence[ModelledCohort],
    found: Sequence[ScanFiles],
    components: Ints,
    check: CheckParameters | None = None,
    on_subject: Callable[[], None] = lambda: None,
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
    on_subject : callable, optional
    """
    by_id = {files.id: files for files in found}
    ids = variants[0].ids
    reference = variants[0].training.cohort.template.as_reference
    rows = np.full((len(variants), len(ids), 4 + len(components)), np.nan)
    failures = []
    for subject, name in enumerate(ids):
        judged = check_scan(by_id[name], check, reference) if name in by_id else None
        if judged is None or judged.scan is None:
            failures.append(f"{name}: {'no scan of this name' if judged is None else judged.error}")
        else:
            surface = Surface(judged.scan.mesh)
            for v, variant in enumerate(variants):
                rows[v, subject] = _one(variant, subject, judged.scan, surface, components)
        on_subject()
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
    # Through the file's frame: the scan may have been set upright in another way than at registration.
    to_scan = scan.to_file.inverse().after(training.cohort.to_file[subject])
    shape = to_scan.apply(training.cohort.shape(subject))
    there, kept_there = _off(surface, shape)
    template = training.cohort.template.mesh
    back, kept_back = _off_template(template.with_vertices(shape), scan, surface)
    breast = variant.breast
    to_own = to_scan.after(training.transforms[subject].inverse())
    reconstructed = []
    for given_back in variant.folds.reconstructions(subject, components):
        off, kept = _off(surface, to_own.apply(given_back[breast]))
        reconstructed.append(_mean(off[kept]))
    return np.array(
        [
            _mean(there[kept_there] ** 2),
            _mean(back[kept_back] ** 2),
            _mean(there[kept_there & breast]),
            _mean(there[kept_there & ~breast]),
            *reconstructed,
        ]
    )


def _off(surface: Surface, points: Floats) -> tuple[Floats, Bools]:
    """Distances to a surface, and which of them count."""
    found = surface.closest(points)
    return found.distances, ~found.on_boundary


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


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
