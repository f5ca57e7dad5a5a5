"""Cuts: where a plane meets the skin, and the area within."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel


@dataclass(frozen=True, eq=False)
class Outline:
    """Where a plane meets a surface.

    Attributes
    ----------
    line : (p, 3) float
        The longest connected line, mm.
    area : float
        cm2 between it and the straight line that joins its ends.
    """

    line: Floats
    area: float


@dataclass(frozen=True, eq=False)
class Section:
    """A cut through several shapes of one torso at the same place.

    Attributes
    ----------
    kind : {"level", "upright"}
        Level through both breasts, or from top to bottom through one.
    side : str
        Whose nipple it goes through.
    at : float
        Height (y) of a level cut or place (x) of an upright one, mm.
    outlines : mapping from name to Outline
    """

    kind: str
    side: str
    at: float
    outlines: Mapping[str, Outline]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file: mm and cm2."""
        return {
            "kind": self.kind,
            "side": self.side,
            "at_mm": self.at,
            "outlines": {
                name: {"line_mm": np.round(one.line, 3).tolist(), "area_cm2": plain(one.area)}
                for name, one in self.outlines.items()
            },
        }


def sections(model: ShapeModel, shapes: Mapping[str, Floats], side: str) -> tuple[Section, Section]:
    """The level and the upright cut through a nipple.

    Parameters
    ----------
    model : ShapeModel
    shapes : mapping from name to (n, 3) float
        Upright, mm. The nipple is that of the last one, so that a missing breast is cut where it is predicted.
    side : {"left", "right"}
    """
    name = f"nipple_{side}"
    if name not in model.landmark_ids:
        raise BreastMorphError("needs {names:landmark| and }", code="needs-landmarks", names=[name])
    nipple = list(shapes.values())[-1][model.landmark_ids[name]]
    cuts = []
    for kind, axis in (("level", 1), ("upright", 0)):
        at = float(nipple[axis])
        found = {key: cut(TriangleMesh(shape, model.faces), axis, at) for key, shape in shapes.items()}
        cuts.append(Section(kind, side, at, found))
    return cuts[0], cuts[1]


def cut(mesh: TriangleMesh, axis: int, at: float) -> Outline:
    """Where the plane at a place of an axis meets a surface.

    A closed line ends where it begins.
    """
    off = mesh.vertices[:, axis] - at
    off = np.where(
        np.abs(off) < 1e-9, 1e-9, off
    )  # no vertex lies on the plane: every cut face has two cut edges
    faces = mesh.faces[np.ptp(np.sign(off)[mesh.faces], axis=1) > 0]
    ends = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2)  # (f, 3, 2)
    crossing = np.sign(off[ends[..., 0]]) != np.sign(off[ends[..., 1]])
    edges = np.sort(ends[crossing], axis=1)  # two a face, one after the other
    keys, which = np.unique(edges, axis=0, return_inverse=True)
    share = off[keys[:, 0]] / (off[keys[:, 0]] - off[keys[:, 1]])
    start, end = mesh.vertices[keys[:, 0]], mesh.vertices[keys[:, 1]]
    points = start + share[:, None] * (end - start)
    chains = _chains(which.reshape(-1, 2), len(keys))
    lines = [points[chain] for chain in chains]
    if not lines:
        return Outline(np.zeros((0, 3)), float("nan"))
    line = max(lines, key=lambda one: float(np.linalg.norm(np.diff(one, axis=0), axis=1).sum()))
    u, v = np.delete(line, axis, axis=1).T
    area = 0.5 * abs(float(np.sum(u * np.roll(v, -1) - np.roll(u, -1) * v))) / 100.0
    return Outline(line, area)


def _chains(pairs: Ints, count: int) -> list[list[int]]:
    """Connected lines of segments between numbered points; open ones first begin at an end."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs.tolist():
        beside[a].append(b)
        beside[b].append(a)
    used = [False] * count
    found = []
    for begin in sorted(range(count), key=lambda one: len(beside[one]) != 1):
        if used[begin]:
            continue
        chain, here = [begin], begin
        used[begin] = True
        while True:
            step = next((one for one in beside[here] if not used[one]), None)
            if step is None:
                break
            used[step] = True
            chain.append(step)
            here = step
        if len(chain) > 2 and begin in beside[here]:
            chain.append(begin)
        found.append(chain)
    return found
