"""A part of a study: what it needs, what it is computed with, what is kept of it, and when it is done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import breastmorph
from breastmorph import __version__
from breastmorph.paper.parameters import check_parameters
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases import Steps, no_steps

if TYPE_CHECKING:
    from breastmorph.paper.folder import StudyFolder

Status = Literal["done", "not possible", "failed", "missing"]
_ONLY_SHOWS = (
    *(
        "cli/",
        "explorer/",
        "viewer/",
        "report/page/",
        "paper/blocks.py",
        "paper/sections.py",
        "paper/report.py",
    ),
    *("paper/export.py", "paper/comparison.py", "paper/commands.py", "paper/progress.py"),
)


class NotPossible(Exception):
    """A part cannot be done with this cohort; that is no failure.

    Parameters
    ----------
    why : str
        Without a closing full stop.
    result : mapping, optional
        What is known all the same, as plain JSON values.
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
