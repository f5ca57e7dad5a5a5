"""Pieces of sentences: numbers with their nouns, and lists that stay short."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """A number with its noun: "1 component", "2 components"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short_list(names: Sequence[str], most: int = 8) -> str:
    """Names in one line, the first of them where there are many."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
