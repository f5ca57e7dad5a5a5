"""A part of a study: its parameters, what it needs, and when it is done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import breastmorph
from breastmorph import __version__
from breastmorph.foundation.files import plain
from breastmorph.scan.check import CheckParameters

if TYPE_CHECKING:
    from breastmorph.paper.folder import StudyFolder


# --------------------------------------------------------------------------------------------------------------------
# What a study does, and how much of it
# --------------------------------------------------------------------------------------------------------------------


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
        phantom=phantom or 16,
        seed=seed,
        printed_method=False,
        samples=200,
        predicted=6,
        shown=1,
    )


# --------------------------------------------------------------------------------------------------------------------
# A part of a study: what it needs, what it is computed with, and what is kept of it
# --------------------------------------------------------------------------------------------------------------------

Status = Literal["done", "not possible", "failed", "missing"]
# Shows that a part goes on: given what is done and how often, a context whose value is called after each.
Steps = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
_ONLY_SHOWS = (
    "cli/",
    "explorer/",
    "viewer/",
    "report/page/",
    "paper/sections.py",
    "paper/report.py",
    "paper/comparison.py",
)


def no_steps(what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """Steps that nobody sees."""
    return nullcontext(lambda: None)


class NotPossible(Exception):
    """A part cannot be done with this cohort, and that is nobody's fault.

    Parameters
    ----------
    why : str
        Without a closing full stop.
    result : mapping, optional
        What can be said all the same, as plain JSON values.
    """

    def __init__(self, why: str, result: Mapping[str, Any] | None = None) -> None:
        self.result = dict(result or {})
        super().__init__(why)


@dataclass(frozen=True, eq=False)
class PartJob:
    """What a part's work is given.

    Attributes
    ----------
    study : StudyFolder
    part : Part
    scratch : Path
        An empty folder; what is written to ``scratch/<place>`` becomes ``<place>`` of the study when all is done.
    jobs : int
        Processes it may use.
    steps : callable
        Shows progress.
    """

    study: StudyFolder
    part: Part
    scratch: Path
    jobs: int = 1
    steps: Steps = no_steps

    def place(self, name: str) -> Path:
        """Where to write a file that will be ``name`` in the study."""
        path = self.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def check(self) -> CheckParameters:
        """How scans are read, where the part's settings say so."""
        return check_parameters(self.part.settings["check"])

    def result(self, part: str) -> dict[str, Any]:
        """The result of a part that this one takes or is let through by; empty where there is none."""
        if part not in (*self.part.after, *self.part.gates):
            raise KeyError(f"{self.part.name} does not say that it needs {part}")
        return self.study.result(part)


@dataclass(frozen=True)
class Made:
    """What became of a part.

    Attributes
    ----------
    result : mapping
        Plain JSON values without timings: the same inputs give the same result.
    in_place : tuple of str
        Files of the study that were written where they belong, not to the scratch folder.
    timed : tuple of str
        The same for files that hold timings: they must stay as they are, but nothing depends on their content.
    note : str
        What came out in a few words, for those who watch; not kept.
    """

    result: Mapping[str, Any]
    in_place: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A part of a study.

    Attributes
    ----------
    name : str
        Of its record, ``parts/<name>.json``.
    title : str
        For readers.
    stage : str
        Parts of one stage are shown together.
    work : callable
        A function of a module, from a PartJob to what was Made; raises NotPossible.
    needs : tuple of str
        Parts without whose results it cannot be done.
    uses : tuple of str
        Parts whose results it takes where they exist.
    gates : tuple of str
        Parts that may say that this one is not possible, and shape its result in no other way.
    settings : mapping
        Plain JSON values that shape the result.
    spreads : bool
        It uses several processes by itself, or is done in no time; others run beside each other, in one process each.
    cost : float
        About how long it takes, relative to others: long ones start first.
    """

    name: str
    title: str
    stage: str
    work: Callable[[PartJob], Made]
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    spreads: bool = False
    cost: float = 1.0
    gates: tuple[str, ...] = ()

    @property
    def after(self) -> tuple[str, ...]:
        """Parts that come before it."""
        return (*self.needs, *self.uses)

    def key(self, states: Mapping[str, PartState], program: str) -> str:
        """A hash of all that shapes the result: settings, program, and digests of what it takes."""
        return digest([self.name, program, self.settings, {name: states[name].digest for name in self.after}])


@dataclass(frozen=True)
class PartState:
    """What is known of a part.

    Attributes
    ----------
    status : {"done", "not possible", "failed", "missing"}
    key : str
        Empty where something that it needs is missing.
    digest : str
        Of its result and files; empty unless done or not possible.
    why : str
        Of a part that is not done.
    note : str
        Of a part that was computed just now: what came out.
    """

    status: Status
    key: str = ""
    digest: str = ""
    why: str = ""
    note: str = ""

    @property
    def settled(self) -> bool:
        """Nothing more is to be done."""
        return self.status in ("done", "not possible")


@cache
def this_program() -> str:
    """A hash of the program's source, without what only shows results.

    The version alone would let results of an older checkout pass for those of a newer one.
    """
    root = Path(breastmorph.__file__).parent
    found = hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if not place.startswith(_ONLY_SHOWS):
            found.update(place.encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def digest(value: Any) -> str:
    """A hash of a plain JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()
