"""HDF5-JSON (hdf5-json.readthedocs.io), as Scalismo from 0.92 on writes it, as a tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged


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
        if self.root not in self.groups:
            raise damaged("its root group is missing")

    def _at(self, path: str) -> tuple[str, Any]:
        """Kind ("group", "dataset" or empty) and content of what is at a path."""
        kind, here = "group", self.groups[self.root]
        for name in (part for part in path.split("/") if part):
            links = here.get("links") or [] if kind == "group" else []
            target = next((link.get("id") for link in links if link.get("title") == name), None)
            if target in self.datasets:
                kind, here = "dataset", self.datasets[target]
            elif target in self.groups:
                kind, here = "group", self.groups[target]
            else:
                return "", {}
        return kind, here

    def _value(self, path: str) -> Any:
        kind, found = self._at(path)
        return found.get("value") if kind == "dataset" else None

    def array(self, path: str) -> NDArray | None:
        """The array at a path, or None where there is none."""
        value = self._value(path)
        if value is None:
            return None
        array = np.array(value)  # rows of different lengths raise ValueError
        if array.dtype.kind not in "iufSU":
            raise damaged(f"{path} does not hold numbers")
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
        return [link.get("title", "") for link in found.get("links") or []] if kind == "group" else []
