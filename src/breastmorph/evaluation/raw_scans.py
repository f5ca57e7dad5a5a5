"""Generalization against the raw left-out scan: a collapsed cohort cannot look good here.

The model of the others reconstructs a subject's registered shape; the reconstruction is taken back to the subject's own
size and place and compared with what the scanner saw, inside the breast: from the reconstruction to the scan's
surface, and from the scan to the reconstruction's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.errors import BreastMorphError
from breastmorph.evaluation.curve import Curve, mean_of_known
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.subject_scans import SubjectScans, onto_scan
from breastmorph.evaluation.training_set import TrainingSet
from breastmorph.mask import IN_BREAST, breast_mask
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.plain import plain
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.landmarks import Landmarks
from breastmorph.scan.scan import Scan


@dataclass(frozen=True, eq=False)
class RawScans:
    """Distances to raw scans inside the breast, in mm at the subject's own size.

    Attributes
    ----------
    to_scan, from_scan : Curve
        From the reconstruction's vertices to the scan's surface, and from the scan's vertices to the reconstruction's.
    registered : (2,) float
        The same two distances of the registered shapes themselves: what no model can beat.
    failures : tuple of (id, message)
        Subjects whose scan is missing or refused.
    """

    to_scan: Curve
    from_scan: Curve
    registered: Floats
    failures: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "to_scan": self.to_scan.as_dict(),
            "from_scan": self.from_scan.as_dict(),
            "registered": dict(zip(("to_scan", "from_scan"), plain(self.registered), strict=True)),
            "failures": [{"id": scan_id, "message": message} for scan_id, message in self.failures],
        }


def raw_scan_generalization(
    training: TrainingSet,
    folds: LeaveOneOut,
    faces: Ints,
    found: Sequence[ScanFiles],
    components: Ints,
    check: CheckParameters | None = None,
    on_fold: Callable[[], None] = lambda: None,
) -> RawScans:
    """Distance between raw left-out scans and what the model of the others makes of them.

    Parameters
    ----------
    training : TrainingSet
    folds : LeaveOneOut
        Of the training set's shapes.
    faces : (m, 3) int
        The model's.
    found : sequence of ScanFiles
        The scans, matched to the subjects by id.
    components : (c,) int
    check : CheckParameters, optional
        How scans are read.

    Raises
    ------
    BreastMorphError
        When no subject's scan can be read, or the model is one of asymmetry only.
    """
    if training.asymmetry:
        raise BreastMorphError(
            "a model of asymmetry does not hold whole subjects to compare with their scans",
            "Leave out the scans",
        )
    scans = SubjectScans(training.cohort, found, check)
    rows, failures, registered = [], [], []
    for subject, scan_id in enumerate(training.cohort.ids):
        scan = scans.read(subject)
        if isinstance(scan, str):
            failures.append((scan_id, scan))
        else:
            onto = onto_scan(training.cohort, subject, scan)
            back = onto.after(training.transforms[subject].inverse())
            landmarks = _with_registered(scan, onto.apply(training.cohort.shape(subject)), training.cohort)
            shapes = np.concatenate(
                [training.shapes[subject][None], folds.reconstructions(subject, components)]
            )
            both = _two_sided(scan, landmarks, back.apply(shapes), faces, training.breast)
            registered.append(both[0])
            rows.append(both[1:])
        on_fold()
    if not rows:
        raise BreastMorphError(
            f"none of the {len(failures)} subjects has a readable scan ({failures[0][0]}: {failures[0][1]})",
            "Give the folder of the scans that were registered, and their landmarks",
        )
    values = np.array(rows)  # (k, c, 2)
    return RawScans(
        Curve("scan", "breast", components, values[:, :, 0]),
        Curve("scan", "breast", components, values[:, :, 1]),
        mean_of_known(np.array(registered)),
        tuple(failures),
    )


def _with_registered(scan: Scan, shape: Floats, cohort: Cohort) -> Landmarks:
    """The scan's landmarks, and those that are not set where the registered shape has them."""
    own = Landmarks.at_vertices(cohort.template.landmark_ids, shape).only(scan.landmarks.unset)
    return Landmarks.of({**scan.landmarks, **own})


def _two_sided(scan: Scan, landmarks: Landmarks, shapes: Floats, faces: Ints, breast: Bools) -> Floats:
    """Mean distances to and from a scan of several shapes in its frame, (c, 2)."""
    surface = Surface(scan.mesh)
    seen = scan.mesh.vertices[breast_mask(scan.mesh, landmarks) > IN_BREAST]
    return np.array(
        [
            (
                mean_distance(surface, shape[breast]),
                mean_distance(Surface(TriangleMesh(shape, faces)), seen),
            )
            for shape in shapes
        ]
    )


def mean_distance(surface: Surface, points: Floats) -> float:
    """Mean distance to a surface of the points (k, 3) that do not lie beyond its border or over its holes; or NaN."""
    found = surface.closest(points)
    return float(mean_of_known(found.distances[~found.on_boundary]))
