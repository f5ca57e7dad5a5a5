"""A synthetic scan for visitors who have none at hand, with landmarks; no person was scanned for it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from breastmorph.mesh.files.ply import encoded
from breastmorph.phantom.cohort import draw_cohort, torso
from breastmorph.phantom.scanner import scan_subject
from breastmorph.scan.scan import Landmarks

NAME = "synthetic-scan.ply"
_COHORT, _SEED = 12, 77  # not those of the demo model


@lru_cache(maxsize=1)
def example_scan() -> tuple[bytes, Landmarks]:
    """A PLY file of an average adult torso and its landmarks, in the file's coordinates."""
    subjects = draw_cohort(_COHORT, _SEED)
    volumes = np.array([[subject.left.volume, subject.right.volume] for subject in subjects]).mean(axis=1)
    subject = subjects[int(np.abs(volumes - np.median(volumes)).argmin())]
    found = scan_subject(torso(subject), np.random.default_rng(_SEED))
    return encoded(found.mesh), found.landmarks
