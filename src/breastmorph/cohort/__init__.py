"""Cohorts: registered subjects in correspondence, read through one loader with flat memory."""

from breastmorph.cohort.cohort import Cohort
from breastmorph.cohort.reading import load_cohort

__all__ = ["Cohort", "load_cohort"]
