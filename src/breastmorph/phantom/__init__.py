"""The phantom: a synthetic cohort of adult torso scans whose truth is known at every point."""

from breastmorph.phantom.body import Thorax
from breastmorph.phantom.cohort import (
    PhantomParameters,
    Subject,
    Torso,
    Visit,
    VisitParameters,
    draw_cohort,
    later_visit,
    mean_torso,
    mirror_vertices,
    topology,
    torso,
)
from breastmorph.phantom.scanner import ScannedTorso, ScannerParameters, scan_subject, write_cohort
from breastmorph.phantom.skin import Breast, Complexion

__all__ = [
    "Breast",
    "Complexion",
    "PhantomParameters",
    "ScannedTorso",
    "ScannerParameters",
    "Subject",
    "Thorax",
    "Torso",
    "Visit",
    "VisitParameters",
    "draw_cohort",
    "later_visit",
    "mean_torso",
    "mirror_vertices",
    "scan_subject",
    "topology",
    "torso",
    "write_cohort",
]
