"""The phantom: a synthetic cohort of adult torso scans whose truth is known at every point."""

from breastmorph.phantom.breast import Breast
from breastmorph.phantom.cohort import PhantomParameters, Subject, draw_cohort
from breastmorph.phantom.dense_truth import Torso, mean_torso, mirror_vertices, topology, torso
from breastmorph.phantom.files import write_cohort
from breastmorph.phantom.scanner import ScannedTorso, ScannerParameters, scan_subject
from breastmorph.phantom.thorax import Thorax

__all__ = [
    "Breast",
    "PhantomParameters",
    "ScannedTorso",
    "ScannerParameters",
    "Subject",
    "Thorax",
    "Torso",
    "draw_cohort",
    "mean_torso",
    "mirror_vertices",
    "scan_subject",
    "topology",
    "torso",
    "write_cohort",
]
