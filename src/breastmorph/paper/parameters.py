"""What a study does, and how much of it: the ways to register, the sizes, the seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from breastmorph.foundation.files import plain
from breastmorph.scan.check import CheckParameters


@dataclass(frozen=True)
class Variant:
    """One way to register the cohort.

    Attributes
    ----------
    name : str
        Of its folder and model file.
    title : str
        For readers.
    preset : str
        See :func:`breastmorph.registration.parameters.preset`.
    masks : bool
    """

    name: str
    title: str
    preset: str
    masks: bool


MASKS = Variant("masks", "default method with masks", "default", True)
NO_MASKS = Variant("no-masks", "default method without masks", "default", False)
PAPER_MASKS = Variant("paper-masks", "printed method with masks", "paper", True)
PAPER_NO_MASKS = Variant("paper-no-masks", "printed method without masks", "paper", False)


@dataclass(frozen=True)
class StudyParameters:
    """All that shapes a study's results beside the scans themselves.

    Attributes
    ----------
    phantom : int, optional
        Size of the synthetic cohort; None for a cohort of one's own.
    seed : int
        Of everything that is drawn: phantom, samples, subsets.
    printed_method : bool
        Also register by the paper's printed method, with and without masks.
    samples : int
        Random shapes for specificity.
    subsets : tuple of int
        Sizes of the random subsets of the second experiment; the paper's when empty, in proportion for small cohorts.
    draws : int
        Random subsets of each size, and of operated subjects.
    predicted : int
        Subjects whose breasts are predicted by the others, both sides each.
    shown : int
        Subjects in pictures of editing and prediction.
    check : CheckParameters
        How scans are read.
    """

    phantom: int | None = None
    seed: int = 1
    printed_method: bool = True
    samples: int = 1000
    subsets: tuple[int, ...] = ()
    draws: int = 3
    predicted: int = 24
    shown: int = 2
    check: CheckParameters = field(default_factory=CheckParameters)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The ways the cohort is registered."""
        own = (MASKS, NO_MASKS)
        return (*own, PAPER_MASKS, PAPER_NO_MASKS) if self.printed_method else own

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        values: dict[str, Any] = plain(asdict(self))
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` gave; what it does not name keeps its default."""
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        known["subsets"] = tuple(known.get("subsets", cls.subsets))
        known["check"] = check_parameters(known.get("check", {}))
        return cls(**known)


def check_parameters(values: Mapping[str, Any]) -> CheckParameters:
    """From plain values."""
    order = values.get("landmark_order")
    return CheckParameters(**{**values, "landmark_order": tuple(order) if order else None})


def making_command(parameters: StudyParameters, cohort: object) -> str:
    """Which command makes a study with these parameters, of a phantom or of a cohort of one's own."""
    small = demo_parameters(False, parameters.seed, parameters.phantom)
    return "demo" if not cohort and parameters == small else "paper"


def demo_parameters(full: bool, seed: int, phantom: int | None = None) -> StudyParameters:
    """The study behind ``breastmorph demo``: small, or of the paper's size."""
    if full:
        return StudyParameters(phantom=phantom or 110, seed=seed)
    return StudyParameters(
        phantom=phantom or 16, seed=seed, printed_method=False, samples=200, predicted=6, shown=1
    )
