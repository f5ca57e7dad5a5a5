"""What a statismo model is read from: a tree of arrays and texts, whatever it is stored in."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Tree(Protocol):
    """A tree of named arrays; paths are written ``/model/mean``."""

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
