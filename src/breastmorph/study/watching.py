"""Whoever looks on while a study runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from breastmorph.study.part import Part, State, Steps, no_steps


class Watch(Protocol):
    """Whoever looks on while a study runs."""

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """What this run will see to, and what an earlier one left; more may turn out to be missing later."""

    def started(self, parts: Sequence[Part]) -> None:
        """Parts that run beside each other from now on."""

    def steps(self, part: Part) -> Steps:
        """Shows the progress of a part that says how far it is."""

    def ended(self, part: Part, state: State, seconds: float) -> None:
        """A part is finished, for good or not."""


class Unwatched:
    """Nobody looks on."""

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """See :class:`Watch`."""

    def started(self, parts: Sequence[Part]) -> None:
        """See :class:`Watch`."""

    def steps(self, part: Part) -> Steps:
        """See :class:`Watch`."""
        return no_steps

    def ended(self, part: Part, state: State, seconds: float) -> None:
        """See :class:`Watch`."""
