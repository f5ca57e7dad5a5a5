"""Whoever looks on while a study runs."""

from __future__ import annotations

from collections.abc import Sequence

from breastmorph.study.part import Part, State, Steps, no_steps


class Watch:
    """Looks on while a study runs; this one says nothing."""

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """What this run will see to, and what an earlier one left; more may turn out to be missing later."""

    def started(self, parts: Sequence[Part]) -> None:
        """Parts that run beside each other from now on."""

    def steps(self, part: Part) -> Steps:
        """Shows the progress of a part that says how far it is."""
        return no_steps

    def ended(self, part: Part, state: State, seconds: float) -> None:
        """A part is finished, for good or not."""
