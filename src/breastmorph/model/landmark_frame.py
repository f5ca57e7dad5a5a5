"""What a model's landmarks tell of its unit, its axes and its sides.

Models of other programs may be in metres, or stand along other axes of their file. Regions, measures and predictions
need millimetres and an upright body, and nothing else in a model's file says how it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.mesh.geometry import face_cross
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR, Floats, TriangleMesh
from breastmorph.scan.anatomy import UNITS
from breastmorph.scan.landmarks import Landmarks

# About where the landmarks of an upright adult lie, mm from the middle of her sternum (those of the default template).
_USUAL = {
    "sternal_notch": (0.0, 85.0, -30.0),
    "xiphoid": (0.0, -85.0, 30.0),
    "nipple_left": (98.0, -116.0, 71.0),
    "nipple_right": (-98.0, -116.0, 71.0),
    "lower_pole_left": (80.0, -149.0, 42.0),
    "lower_pole_right": (-80.0, -149.0, 42.0),
    "lateral_pole_left": (126.0, -116.0, -33.0),
    "lateral_pole_right": (-126.0, -116.0, -33.0),
}
_FEWEST = 5  # landmarks: fewer lie so nearly in one plane that their mirror image fits as well
_UNLIKE = 60.0  # mm, root mean square: landmarks that lie otherwise than any adult's (122 torsos: at most 32)
_MIRRORED = 0.8  # of the given ones' residual: a mirror image that fits better has its sides swapped
_SIZES = (0.5, 2.0)  # of the usual one: adults
_AROUND = 40.0  # mm around a landmark whose skin tells which way the surface looks


@dataclass(frozen=True, eq=False)
class LandmarkFrame:
    """How a model stands.

    Attributes
    ----------
    unit : str
        "mm", "cm" or "m".
    axes : (3, 3) float
        Rows: the axes of the file that point to the patient's left, up and forward.
    swapped : bool
        The landmarks are those of a mirror image: left and right are exchanged.
    """

    unit: str
    axes: Floats
    swapped: bool

    @property
    def to_ours(self) -> Similarity:
        """From the model's frame to ours: mm, x to the patient's left, y up, z forward."""
        return Similarity(self.axes, scale=UNITS[self.unit])

    @property
    def is_ours(self) -> bool:
        """Whether nothing is to be done."""
        return self.unit == "mm" and bool((self.axes == np.eye(3)).all()) and not self.swapped


def landmark_frame(landmarks: Landmarks) -> LandmarkFrame | None:
    """How a model with these landmarks on its mean stands; None where they do not tell.

    A body may lean in its frame by less than 45 degrees: only whole axes are told apart.
    """
    names = [name for name in _USUAL if name in landmarks]
    if len(names) < _FEWEST:
        return None
    usual, places = np.array([_USUAL[name] for name in names]), landmarks.array(names)
    straight, mirrored = (Similarity.fit(one, places) for one in (usual, usual * MIRROR))
    off, off_mirrored = (
        float(np.sqrt(((fit.apply(one) - places) ** 2).sum(axis=1).mean())) / max(fit.scale, 1e-12)
        for fit, one in ((straight, usual), (mirrored, usual * MIRROR))
    )
    swapped = off_mirrored < _MIRRORED * off
    fit = mirrored if swapped else straight
    units = [unit for unit, mm in UNITS.items() if _SIZES[0] <= mm * fit.scale <= _SIZES[1]]
    if min(off, off_mirrored) > _UNLIKE or not units:
        return None
    nearest = max(axis_rotations(), key=lambda axes: float((axes * fit.rotation.T).sum()))
    return LandmarkFrame(units[0], nearest, swapped)


def exchanged_sides(landmarks: Landmarks) -> list[str]:
    """Names of landmarks, without their sides, whose left one lies to the right in our frame."""
    pairs = [name.removesuffix("_left") for name in landmarks if name.endswith("_left")]
    both = [name for name in pairs if f"{name}_right" in landmarks]
    return [name for name in both if landmarks[f"{name}_left"][0] < landmarks[f"{name}_right"][0]]


def faces_backwards(mesh: TriangleMesh, landmarks: Landmarks) -> bool:
    """Whether the skin around the front landmarks of an upright mesh in mm looks backwards: it is inside out.

    A model's landmarks are vertices of its one skin, and front is known.
    :func:`breastmorph.scan.frame.faces_inside_out` serves scans in any pose; it needs the lateral poles, which the
    published model lacks, and a closest-point tree.
    """
    front = landmarks.only(name for name in _USUAL if not name.startswith("lateral"))
    near = cKDTree(front.points).query(mesh.vertices)[0] < _AROUND
    around = mesh.faces[near[mesh.faces].all(axis=1)]
    return bool(face_cross(mesh.vertices, around)[:, 2].sum() < 0.0)


def axis_rotations() -> list[Floats]:
    """The 24 rotations along the axes, (3, 3) each."""
    along = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), order] = signs
            if np.linalg.det(matrix) > 0:
                along.append(matrix)
    return along
