"""The canonical frame of a scan: x to the patient's left, y up, z forward.

Landmarks alone give only a start: the sternum leans back, by 21 +- 6 degrees on realistic torsos, and nipples
set the yaw wrongly on an asymmetric chest. Nor does the chest's surface tell the upright: aligned with an upright
template it follows the sternum (5 degrees off on average, 13 at worst, on twelve realistic torsos). What is level is
the scanner, so its traces are looked for first: a straight lower edge of the scan (which no rotation of the file can
hide), then the file's own axes, and only then an upright reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.closest import Surface, closest_to_few
from breastmorph.mesh.geometry import Similarity, distances_from, face_cross, face_normals, vertex_normals
from breastmorph.mesh.topology import boundary_vertices, face_components, faces_with_all
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import STERNUM, Landmarks

LANDMARK_TOLERANCE = 15.0  # degrees: how far off "up" may be when neither file nor reference helps
STERNUM_LEAN = 21.0  # degrees, mean over realistic torsos; its spread is 6 degrees
_NIPPLE_LEAN = (
    28.0  # degrees, the same for the line from the notch down to the nipples' height; spread 6 degrees
)
# Degrees between the start and an axis of the file for that axis to be kept. 30 degrees would do for a start along
# the sternum; this start already leans with the average sternum, which leaves three times its spread.
_FILE_AXIS_TOLERANCE = 20.0
_EDGE_TOLERANCE = 30.0  # degrees between the start and the normal of a level lower edge
_LEVEL_TOLERANCE = 3.0  # degrees between the file's up axis and the lower edge's for the two to agree
_ON_PLANE = 4.0  # mm that a vertex of a level edge may lie off its plane
_AROUND = 25.0  # mm around a landmark: what shows which side of the surface is out

# Alignment of an upright reference to a scan.
_ITERATIONS = 60
_POINTS = 3000  # of the reference
_KEPT = 0.8  # share of the closest pairs that count
_NORMAL_AGREEMENT = 0.7  # cosine below which a pair is void
_STERNUM_SHARE = 0.2  # weight of the sternum beside the surface pairs
_SETTLED = 1e-5  # radians and relative scale per iteration

Reference = tuple[TriangleMesh, Landmarks]  # an upright torso in the canonical frame


@dataclass(frozen=True, eq=False)
class Frame:
    """Where a scan's canonical axes point in its file.

    Attributes
    ----------
    axes : (3, 3) float
        Rows: left, up, forward in file coordinates.
    source : str
        What decided: "file axes", "file's up axis", "level lower edge", "reference" or "landmarks".
    """

    axes: Floats
    source: str


def upright_frame(mesh: TriangleMesh, landmarks: Landmarks, reference: Reference | None = None) -> Frame:
    """Find the canonical axes of a scan in millimetres.

    Parameters
    ----------
    mesh : TriangleMesh
        Oriented outwards; in mm, otherwise as in the file.
    landmarks : Landmarks
        In the same coordinates; as :func:`breastmorph.scan.anatomy.require_enough` wants them.
    reference : (TriangleMesh, Landmarks), optional
        An upright torso in the canonical frame, used where the file's axes do not help.
    """
    # Without a complete side, the front is where the skin there faces.
    front = _to_the_nipples(landmarks) if landmarks.complete_sides else _outwards(mesh, landmarks)
    start = landmark_axes(landmarks, front)
    largest = np.abs(start).argmax(axis=1)
    nearest = np.eye(3)[largest] * np.sign(start[range(3), largest])[:, None]  # the file's axes
    near = _degrees_between(start, nearest) <= _FILE_AXIS_TOLERANCE
    level = level_lower_edge(mesh, start)
    if level is not None and _degrees_between(level[None], nearest[1:2])[0] > _LEVEL_TOLERANCE:
        near[:] = False  # the file was turned after the scan
    if near[1] and near[2]:
        return Frame(_frame_from(up=nearest[1], forward=nearest[2]), "file axes")
    best = start if reference is None else align(*reference, mesh, landmarks).rotation.T
    if near[1]:
        return Frame(_frame_from(up=nearest[1], forward=best[2]), "file's up axis")
    if level is not None:
        return Frame(_frame_from(up=level, forward=best[2]), "level lower edge")
    return Frame(best, "landmarks" if reference is None else "reference")


def level_lower_edge(mesh: TriangleMesh, start: Floats) -> Floats | None:
    """Up direction of a scan whose lower border is one plane, as a levelled scanner's capture volume leaves it.

    Parameters
    ----------
    mesh : TriangleMesh
        In mm.
    start : (3, 3) float
        First guess of left, up, forward.

    Returns
    -------
    (3,) float or None
        None where the lower border is too short, not planar or too far from the first guess.
    """
    height = mesh.vertices @ start[1]
    low = height < height.min() + 0.35 * np.ptp(height)
    border = mesh.vertices[boundary_vertices(mesh.faces, mesh.n_vertices) & low]
    if len(border) < 30:
        return None
    triples = border[np.random.default_rng(0).integers(len(border), size=(400, 3))]
    normals = np.cross(triples[:, 1] - triples[:, 0], triples[:, 2] - triples[:, 0])
    length = np.linalg.norm(normals, axis=1)
    sound = length > 1e3  # mm^2: three points far apart
    normals, anchors = normals[sound] / length[sound, None], triples[sound, 0]
    normals *= np.sign(normals @ start[1])[:, None]
    steep = normals @ start[1] > np.cos(np.radians(_EDGE_TOLERANCE))
    normals, anchors = normals[steep], anchors[steep]
    if not len(normals):
        return None
    inside = np.abs(border @ normals.T - (anchors * normals).sum(axis=1)) < _ON_PLANE
    on_plane = inside[:, inside.sum(axis=0).argmax()]
    for _ in range(3):
        centre = border[on_plane].mean(axis=0)
        up = np.linalg.svd(border[on_plane] - centre, full_matrices=False)[2][2]
        up *= np.sign(up @ start[1])
        height = (border - centre) @ up
        on_plane = np.abs(height) < _ON_PLANE
    # Nearly everywhere across the trunk the lowest point of the border must lie on that plane.
    across = border @ start[0]
    strip = np.minimum(((across - across.min()) / np.ptp(across) * 20).astype(int), 19)
    lowest = np.full(20, np.inf)
    np.minimum.at(lowest, strip, height)
    straight = (np.abs(lowest) < _ON_PLANE).mean() > 0.8
    return up if straight and np.ptp(border[on_plane] @ start[2]) > 60.0 else None


def landmark_axes(landmarks: Landmarks, front: Floats | None = None) -> Floats:
    """First guess of left, up and forward (rows) from landmarks alone, (3, 3).

    Parameters
    ----------
    landmarks : Landmarks
    front : (3,) float, optional
        Rough direction from back to front; needed where no side is complete.

    Raises
    ------
    LandmarkProblem
        The landmarks span no frame, or left and right contradict the body's front and back.
    """
    front = _to_the_nipples(landmarks) if front is None else front
    left = _leftwards(landmarks, front)
    if "xiphoid" in landmarks:
        _require_notch_above(landmarks)
        sternum, lean = _unit(landmarks["sternal_notch"] - landmarks["xiphoid"]), STERNUM_LEAN
    else:
        # The nipples' height in the plane of symmetry: as good a guide as the xiphoid, as torsos show.
        nipples = landmarks.array(f"nipple_{side}" for side in landmarks.nipple_sides).mean(axis=0)
        rise = landmarks["sternal_notch"] - nipples
        sternum, lean = _unit(rise - (rise @ left) / (left @ left) * left), _NIPPLE_LEAN
    left = left - (left @ sternum) * sternum
    if np.linalg.norm(left) < 10.0:
        raise LandmarkProblem(
            "nipples and sternum lie on one line, so left and right cannot be distinguished",
            "Check the positions of the nipples, sternal notch and xiphoid",
        )
    left = _unit(left)
    forward = np.cross(left, sternum)
    if front @ forward < 0:
        raise LandmarkProblem(
            "left and right contradict front and back: sides swapped or file mirrored",
            "Check the names of the left and right landmarks (sides are the patient's), and of the upper and lower "
            "ones; if all are right, the file is mirrored: export it again without mirroring",
            code="sides-swapped",
        )
    # The sternum leans back: straight up is a little forward of it.
    lean = np.radians(lean)
    up = np.cos(lean) * sternum + np.sin(lean) * forward
    return _frame_from(up=up, forward=forward)


def _leftwards(landmarks: Landmarks, front: Floats) -> Floats:
    """Rough direction to the patient's left."""
    if len(landmarks.nipple_sides) == 2:
        return landmarks["nipple_left"] - landmarks["nipple_right"]
    side = landmarks.nipple_sides[0]
    if side in landmarks.complete_sides and "xiphoid" in landmarks:
        # Nipple and lateral pole lie before and behind the frontal plane through the sternum.
        middle = landmarks.array(STERNUM).mean(axis=0)
        outward = landmarks.array([f"nipple_{side}", f"lateral_pole_{side}"]).mean(axis=0) - middle
    else:
        lower = landmarks["xiphoid" if "xiphoid" in landmarks else "navel"]
        across = np.cross(landmarks["sternal_notch"] - lower, front)
        outward = across * np.sign(across @ (landmarks[f"nipple_{side}"] - lower))
    return np.asarray(outward if side == "left" else -outward)


def _require_notch_above(landmarks: Landmarks) -> None:
    """Refuse an exchanged sternum: nipples lie near the height of the xiphoid, never near that of the notch."""
    nipples = landmarks.array([f"nipple_{side}" for side in landmarks.nipple_sides]).mean(axis=0)
    down = landmarks["xiphoid"] - landmarks["sternal_notch"]
    if (nipples - landmarks["sternal_notch"]) @ down / (down @ down) < 0.25:
        raise LandmarkProblem(
            "the nipples lie nearer to the sternal notch than to the xiphoid",
            "Sternal notch and xiphoid seem to be exchanged: the notch is the upper end of the breastbone",
            code="sternum-exchanged",
        )


def faces_inside_out(mesh: TriangleMesh, landmarks: Landmarks) -> bool:
    """Whether most of the surface around the landmarks of the body's front (in mm) faces its inside."""
    if not landmarks.complete_sides:
        # Without a lateral pole no landmarks tell front from back. A trunk is round: most of its skin faces away from
        # its middle (0.4 to 0.6 of what a ball's would, on realistic torsos).
        corners, outwards = mesh.vertices[mesh.faces], face_cross(mesh.vertices, mesh.faces)
        middle = np.average(corners.mean(axis=1), axis=0, weights=np.linalg.norm(outwards, axis=1))
        return bool(((corners.mean(axis=1) - middle) * outwards).sum() < 0)
    return bool(_outwards(mesh, landmarks) @ _to_the_nipples(landmarks) < 0)


def _outwards(mesh: TriangleMesh, landmarks: Landmarks) -> Floats:
    """Sum of the faces' normals around the landmarks of the body's front, (3,)."""
    one_breast = len(landmarks.nipple_sides) == 1 and not landmarks.complete_sides
    front = ("sternal", "xiphoid", "navel") if one_breast else ("nipple", "sternal", "xiphoid", "lower")
    ahead = [name for name in landmarks if name.startswith(front)]
    points, _, found = closest_to_few(mesh, landmarks.array(ahead))
    # Single faces of a noisy scan face anywhere. Those of a patch add up to what its border alone decides.
    close = distances_from(points, mesh.vertices) < _AROUND
    near = faces_with_all(close, mesh.faces)
    near[found] = True
    # Only what hangs together with the landmarks there: a thick shell has another wall, facing the other way.
    patch = face_components(mesh.faces[near])
    wanted = np.isin(patch, patch[(np.cumsum(near) - 1)[found]])
    return np.asarray(face_cross(mesh.vertices, mesh.faces[near][wanted]).sum(axis=0))


def align(
    reference: TriangleMesh,
    reference_landmarks: Landmarks,
    mesh: TriangleMesh,
    landmarks: Landmarks,
) -> Similarity:
    """Similarity that lays an upright reference onto a scan in any pose.

    Iterated closest points from the landmarks' best similarity, trimmed, without the scan's border, and constrained by
    the sternum so that the nearly cylindrical trunk does not slide.
    """
    shared = reference_landmarks.only(landmarks.names)
    bone = np.array([10.0 if name in STERNUM else 1.0 for name in shared.names])
    targets = landmarks.array(shared.names)
    transform = Similarity.fit(shared.points, targets, bone)
    step = max(1, reference.n_vertices // _POINTS)
    source = reference.vertices[::step]
    source_normals = vertex_normals(reference.vertices, reference.faces)[::step]
    surface = Surface(mesh)
    normals = face_normals(mesh.vertices, mesh.faces)
    bones = [name for name in shared if name in STERNUM]
    sternum_source, sternum_target = reference_landmarks.array(bones), landmarks.array(bones)
    for _ in range(_ITERATIONS):
        found = surface.closest(transform.apply(source))
        agree = (normals[found.faces] * (source_normals @ transform.rotation.T)).sum(axis=1)
        usable = np.flatnonzero(~found.on_boundary & (agree > _NORMAL_AGREEMENT))
        if len(usable) < 50:
            return transform
        order = np.argsort(found.distances[usable], kind="stable")
        usable = usable[order[: max(50, int(_KEPT * len(usable)))]]
        weights = np.concatenate(
            [np.ones(len(usable)), np.full(len(bones), _STERNUM_SHARE * len(usable) / 2)]
        )
        refined = Similarity.fit(
            np.concatenate([source[usable], sternum_source]),
            np.concatenate([found.points[usable], sternum_target]),
            weights,
        )
        change = np.abs(refined.rotation - transform.rotation).max() + abs(
            refined.scale / transform.scale - 1
        )
        transform = refined
        if change < _SETTLED:
            break
    return transform


def _to_the_nipples(landmarks: Landmarks) -> Floats:
    """Rough direction from back to front: nipples lie before the lateral poles, whatever the sides' names."""
    forward = [landmarks[f"nipple_{s}"] - landmarks[f"lateral_pole_{s}"] for s in landmarks.complete_sides]
    together: Floats = np.sum(forward, axis=0)
    return together


def _frame_from(up: Floats, forward: Floats) -> Floats:
    up = _unit(up)
    left = _unit(np.cross(up, forward))
    return np.stack([left, up, np.cross(left, up)])


def _unit(vector: Floats) -> Floats:
    length = np.linalg.norm(vector)
    if length == 0:
        raise LandmarkProblem(
            "two landmarks are at the same place", "Check the positions of the sternal notch and xiphoid"
        )
    return vector / length


def _degrees_between(a: Floats, b: Floats) -> Floats:
    degrees: Floats = np.degrees(np.arccos(np.clip((a * b).sum(axis=1), -1.0, 1.0)))
    return degrees
