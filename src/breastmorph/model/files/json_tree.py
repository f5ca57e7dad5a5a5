"""HDF5-JSON (hdf5-json.readthedocs.io), as Scalismo from 0.92 on writes it, as a tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged, printable


class JsonTree:
    """A parsed HDF5-JSON text: groups link to groups and datasets by their ids."""

    def __init__(self, data: bytes) -> None:
        content = json.loads(data.decode("utf-8-sig"))
        if not (isinstance(content, dict) and isinstance(content.get("groups"), dict)):
            raise FileProblem(
                "this JSON is no HDF5-JSON (it has no groups)", "Give a model that Scalismo wrote"
            )
        self.groups: dict[str, Any] = content["groups"]
        self.datasets: dict[str, Any] = content.get("datasets") or {}
        self.root = str(content.get("root"))
        self._links: dict[int, dict[str, Any]] = {}  # of groups that were looked into
        if self.root not in self.groups:
            raise damaged("its root group is missing")

    def _at(self, path: str) -> tuple[str, Any]:
        """Kind ("group", "dataset" or empty) and content of what is at a path."""
        kind, here = "group", self.groups[self.root]
        for name in (part for part in path.split("/") if part):
            target = self._targets(here).get(name) if kind == "group" else None
            if target in self.datasets:
                kind, here = "dataset", self.datasets[target]
            elif target in self.groups:
                kind, here = "group", self.groups[target]
            else:
                return "", {}
        return kind, here

    def _targets(self, group: Any) -> dict[str, Any]:
        """What a group links to, by title; made once, as a catalog may have thousands."""
        if id(group) not in self._links:
            links = reversed(group.get("links") or [])  # of a title given twice the first counts
            self._links[id(group)] = {link.get("title", ""): link.get("id") for link in links}
        return self._links[id(group)]

    def _value(self, path: str) -> Any:
        kind, found = self._at(path)
        return found.get("value") if kind == "dataset" else None

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""
        value = self._value(path)
        if value is None:
            return None
        kinds = _kinds(value)
        if kinds == {str}:
            return np.array(value, dtype=object)  # else every text would take as much as the longest
        if not kinds <= {int, float}:
            raise damaged(f"{printable(path, 100)} does not hold numbers")
        array = np.array(value)  # rows of different lengths raise ValueError
        if array.dtype.kind not in "iuf":
            raise damaged(f"{printable(path, 100)} holds numbers beyond the range")
        return array

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        value = self._value(path)
        return value if isinstance(value, str) else None

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        _, found = self._at(path)
        for attribute in found.get("attributes") or []:
            if attribute.get("name") == name:
                return str(attribute.get("value"))
        return None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        kind, found = self._at(path)
        return list(self._targets(found))[::-1] if kind == "group" else []


def _kinds(value: Any) -> set[type]:
    """The types of all values in nested lists."""
    kinds, lists = set(), [value]
    while lists:
        here = lists.pop()
        if isinstance(here, list):
            found = set(map(type, here))
            if list in found:
                lists += here
            else:
                kinds |= found
        else:
            kinds.add(type(here))
    return kinds
