"""Which point of the skin a click means, and what looks wrong with the points so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.explorer.answers import bad_request, finding_record
from breastmorph.explorer.picks import Picks, landmark_name
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_cross, face_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import STERNUM_LENGTH, require_adult_anatomy
from breastmorph.scan.frame import STERNUM_LEAN, landmark_axes
from breastmorph.scan.scan import (
    SIGN,
    STERNUM,
    Landmarks,
)

_CAUDAL_REACH = 20.0  # mm around a click that are searched for the lowest point of a hanging breast
_CAUDAL_BAND = (
    2.0  # mm above the lowest vertex: the contour is level there, so one vertex says little about across
)
_UPRIGHT = 35.0  # degrees between the shown up and the breastbone: beyond, the guess of the pose was wrong


@dataclass(frozen=True, eq=False)
class Picked:
    """What a click means.

    Attributes
    ----------
    landmark : str
    point : (3,) float
    front : (3,) float
        Normal of the skin there, towards the viewer.
    moved : float
        From the click to the lowest point of a hanging breast, mm; else 0.
    """

    landmark: str
    point: Floats
    front: Floats
    moved: float = 0.0


def pick(surface: Surface, picks: Picks, asked: Mapping[str, Any]) -> Picked:
    """The point on the skin that a click means.

    Parameters
    ----------
    surface : Surface
        All of the scan, in the coordinates it is shown in.
    picks : Picks
        What is there already: the breastbone tells where down is.
    asked : mapping
        ``landmark``; ``ray`` with ``origin`` and ``direction``; ``snap`` where a lower pole shall stay at the click.
    """
    name = landmark_name(asked.get("landmark"))
    click, face, away = _along_ray(surface, asked.get("ray"))
    mesh = surface.mesh
    front = face_normals(mesh.vertices, mesh.faces[face : face + 1])[0]
    if outwards(mesh) < 0.0:  # the file is inside out
        front = -front
    if front @ away < 0.0:
        raise bad_request(
            "this is the inside of the scan, seen through a hole", "Turn the scan and click on the skin"
        )
    if name.startswith("lower_pole") and asked.get("snap", True):
        lowest = most_caudal(surface, click, up_of(picks))
        if lowest is not None:
            return Picked(name, lowest, front, float(np.linalg.norm(lowest - click)))
    return Picked(name, click, front)


def outwards(mesh: TriangleMesh) -> float:
    """1 where the faces look away from the middle of the scan, -1 where the file is inside out."""
    across = face_cross(mesh.vertices, mesh.faces)
    outside = mesh.vertices[mesh.faces].mean(axis=1) - mesh.vertices.mean(axis=0)
    return 1.0 if float(np.einsum("ij,ij->", across, outside)) >= 0.0 else -1.0


def most_caudal(surface: Surface, click: Floats, up: Floats) -> Floats | None:
    """The lowest point of a hanging breast near a click, (3,); None where the skin only runs on downwards.

    A breast that hangs over has a lowest point *within* the neighbourhood of the click, or ends at the hole that a
    scanner leaves under it. Where the lowest skin lies at the neighbourhood's edge the surface goes on to the belly,
    and nothing but the eye can tell where the breast ends.
    """
    vertices, faces = surface.mesh.vertices, surface.mesh.faces
    start = int(np.linalg.norm(vertices - click, axis=1).argmin())
    near = np.linalg.norm(vertices - click, axis=1) <= _CAUDAL_REACH
    near[start] = True
    inside = near[faces].all(axis=1)
    if not inside.any():
        return None
    patch = _piece_with(faces[inside], start, len(vertices))
    ids = np.unique(patch)
    lowest = ids[(vertices[ids] @ up).argmin()]
    # At a hole under the breast the lowest skin that was scanned is the best there is; where skin goes on, it is not.
    goes_on = (faces[~inside] == lowest).any()
    if goes_on:
        return None
    heights = vertices[ids] @ up
    middle = vertices[ids[heights <= heights.min() + _CAUDAL_BAND]].mean(axis=0)
    nearest: Floats = surface.closest(middle[None]).points[0]
    return nearest


def up_of(picks: Picks) -> Floats:
    """Up in the shown coordinates: their own y, unless the breastbone says that the guess of the pose was wrong."""
    y = np.array([0.0, 1.0, 0.0])
    if not all(name in picks.points for name in STERNUM):
        return y
    bone = picks.points["sternal_notch"] - picks.points["xiphoid"]
    bone = bone / max(float(np.linalg.norm(bone)), 1e-9)
    if bone @ y > np.cos(np.radians(_UPRIGHT)):
        return y
    front = picks.fronts.get("sternal_notch")
    if front is None:
        return bone
    forward = front - (front @ bone) * bone
    if np.linalg.norm(forward) < 1e-6:
        return bone
    forward /= np.linalg.norm(forward)
    lean = np.radians(STERNUM_LEAN)  # the breastbone leans back
    up: Floats = np.cos(lean) * bone + np.sin(lean) * forward
    return up


def landmark_warnings(picks: Picks, extent: float) -> list[dict[str, str]]:
    """What looks wrong with the landmarks so far: code, message, remedy.

    Parameters
    ----------
    picks : Picks
    extent : float
        Largest side of the scan, mm.
    """
    found: list[Finding] = []
    points = picks.points
    if all(name in points for name in STERNUM):
        length = float(np.linalg.norm(points["sternal_notch"] - points["xiphoid"]))
        if not STERNUM_LENGTH[0] <= length <= STERNUM_LENGTH[1]:
            found.append(
                warning(
                    "implausible-anatomy/sternum",
                    "sternal notch to xiphoid measures {length:.0f} mm (an adult's {least:.0f}-{most:.0f})",
                    "Check these two points and the unit of the file",
                    length=length,
                    least=STERNUM_LENGTH[0],
                    most=STERNUM_LENGTH[1],
                )
            )
        swapped = _on_the_wrong_side(picks)
        if swapped:
            found.append(
                warning(
                    "sides-swapped/picked",
                    "{name:landmark} lies on the patient's other side",
                    "Sides are the patient's: her left is on your right when she faces you. Exchange left "
                    "and right; if the points are right, the file is mirrored",
                    name=swapped,
                )
            )
    if picks.complete and not found:
        try:
            landmarks = picks.landmarks
            axes = landmark_axes(landmarks)
            require_adult_anatomy(landmarks.transformed(Similarity(axes)), extent)
        except LandmarkProblem as error:
            found.append(error.finding)
    return [finding_record(finding) for finding in found]


_LIKELY = 1.96  # deviations within which a landmark lies in 95 of 100 cases
_ROUND = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
_ABOVE = 0.8  # mm: a line on the skin would flicker in it
_HIDDEN = 3.0  # mm off the skin from which on a landmark is not on it


def rings(surface: Surface, landmarks: Landmarks) -> dict[str, dict[str, Any]]:
    """How sure the program is of what it found: words and figures, and a line on the skin around where it may lie."""
    names = [name for name in landmarks if name in landmarks.found]
    if not names:
        return {}
    mesh, points = surface.mesh, landmarks.array(names)
    home = surface.closest(points)
    normals = face_normals(mesh.vertices, mesh.faces[home.faces])
    spreads = [landmarks.found[name].covariance for name in names]
    lines = points[:, None] + np.array(list(map(_ellipse, spreads, normals)))
    near = surface.closest(lines.reshape(-1, 3))
    out = outwards(mesh) * face_normals(mesh.vertices, mesh.faces[near.faces])
    on_skin = (near.points + _ABOVE * out).reshape(lines.shape)
    # What the scanner did not see lies under the skin: on it the line would be at another place.
    lines = np.where((home.distances < _HIDDEN)[:, None, None], on_skin, lines).round(1)
    return {
        name: {"mm": _LIKELY * guess.sd, "how": guess.how, "doubtful": guess.doubtful, "ring": line.tolist()}
        for name, guess, line in zip(names, (landmarks.found[name] for name in names), lines, strict=True)
    }


def _ellipse(covariance: Floats, normal: Floats) -> Floats:
    """The likely region in the skin's plane, (k, 3) about its centre."""
    flat = np.eye(3) - np.outer(normal, normal)
    values, axes = np.linalg.eigh(flat @ covariance @ flat)  # the smallest is that of the normal: none
    long, wide = (_LIKELY * np.sqrt(np.maximum(values[1:], 0.0)) * axes[:, 1:]).T
    return np.outer(np.cos(_ROUND), long) + np.outer(np.sin(_ROUND), wide)


def _on_the_wrong_side(picks: Picks) -> str:
    """A landmark of one side that lies on the other, or empty; by the breastbone and the side of the skin seen."""
    notch, xiphoid = (picks.points[name] for name in STERNUM)
    seen = [picks.fronts[name] for name in STERNUM if name in picks.fronts]
    if not seen:
        return ""
    left = np.cross(notch - xiphoid, np.mean(seen, axis=0))
    left = left / max(float(np.linalg.norm(left)), 1e-9)
    for name, point in picks.points.items():
        sign = SIGN.get(name.rpartition("_")[2])
        if sign is not None and sign * float((point - xiphoid) @ left) < -15.0:
            return name.replace("_", " ")
    return ""


def _along_ray(surface: Surface, ray: Any) -> tuple[Floats, int, Floats]:
    if not isinstance(ray, Mapping):
        raise bad_request("a ray has an origin and a direction")
    origin, direction = _vector(ray.get("origin"), "origin"), _vector(ray.get("direction"), "direction")
    length = float(np.linalg.norm(direction))
    if length < 1e-9:
        raise bad_request("the ray has no direction")
    direction = direction / length
    faces, distance, _ = surface.first_hit(origin[None], direction[None])
    if faces[0] < 0:
        raise bad_request("the click does not meet the scan", "Click on the surface")
    return origin + float(distance[0]) * direction, int(faces[0]), -direction


def _vector(value: Any, what: str) -> Floats:
    sound = isinstance(value, list) and len(value) == 3
    if not sound or not all(isinstance(number, (int, float)) and abs(number) < 1e6 for number in value):
        raise bad_request("{what} must be three numbers", what=what)
    return np.array(value, dtype=float)


def _piece_with(faces: np.ndarray, vertex: int, n: int) -> np.ndarray:
    """The connected part of some faces that holds a vertex."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_matrix((np.ones(len(ends)), ends.T), shape=(n, n))
    piece = connected_components(graph, directed=False)[1]
    chosen: np.ndarray = faces[piece[faces[:, 0]] == piece[vertex]]
    return chosen if len(chosen) else faces
