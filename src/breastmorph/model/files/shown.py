"""A model for programs that show meshes: morph targets and sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.files.gltf import Blob, packed
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.model.shape_model import ShapeModel

# --------------------------------------------------------------------------------------------------------------------
# A model as one binary glTF file: the mean with its modes as morph targets, for Blender and web viewers
# --------------------------------------------------------------------------------------------------------------------

_METRE = 0.001  # of a mm
_SKIN = [0.86, 0.72, 0.63, 1.0]


def write_morph_targets(model: ShapeModel, path: Path, modes: int = 20, deviations: float = 1.0) -> None:
    """Write the mean and the first modes.

    Parameters
    ----------
    model : ShapeModel
    path : Path
    modes : int
        At most so many.
    deviations : float
        A target's weight of 1 moves its mode by so many standard deviations.
    """
    blob = Blob()
    normals = _normals(model.mean, model.faces)
    attributes = {
        "POSITION": blob.array((_METRE * model.mean).astype("<f4"), "VEC3", bounds=True),
        "NORMAL": blob.array(normals.astype("<f4"), "VEC3"),
    }
    targets, names = [], []
    for mode in range(min(modes, model.n_components)):
        coefficients = np.zeros(mode + 1)
        coefficients[mode] = deviations * model.deviations[mode]
        shape = model.instance(coefficients)
        turned = _normals(shape, model.faces) - normals
        targets.append(
            {
                "POSITION": blob.array((_METRE * (shape - model.mean)).astype("<f4"), "VEC3", bounds=True),
                "NORMAL": blob.array(turned.astype("<f4"), "VEC3"),
            }
        )
        names.append(f"mode {mode + 1} (+{deviations:g} sd)")
    indices = blob.array(model.faces.reshape(-1, 1).astype("<u4"), "SCALAR", target=34963)
    primitive: dict[str, Any] = {"attributes": attributes, "indices": indices, "mode": 4, "material": 0}
    mesh: dict[str, Any] = {"name": "shape model", "primitives": [primitive]}
    if targets:
        primitive["targets"] = targets
        mesh |= {"weights": [0.0] * len(targets), "extras": {"targetNames": names}}
    skin = {"baseColorFactor": _SKIN, "metallicFactor": 0.0, "roughnessFactor": 0.8}
    document = {
        "asset": {"version": "2.0", "generator": "BreastMorph"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "mean"}],
        "meshes": [mesh],
        "materials": [{"pbrMetallicRoughness": skin, "doubleSided": True}],
    }
    write_file(path, packed(document, blob))


def _normals(shape: Floats, faces: Ints) -> Floats:
    """Unit normals; the format wants one of a vertex without faces too, which then looks to the front."""
    normals = vertex_normals(shape, faces)
    normals[~normals.any(axis=1)] = (0.0, 0.0, 1.0)
    return normals


# --------------------------------------------------------------------------------------------------------------------
# The modes of a model as mesh files: each from -3 to +3 standard deviations, numbered for viewers that play them
# --------------------------------------------------------------------------------------------------------------------


def write_mode_sequence(
    model: ShapeModel, folder: Path, modes: int = 8, deviations: float = 3.0, frames: int = 13
) -> list[Path]:
    """Write ``mode01_00.ply`` ... and the mean; returns the files."""
    if frames < 2 or modes < 1 or not deviations > 0:
        raise BreastMorphError("a sequence has at least one mode, two frames and some deviation")
    make_folder(folder)
    written = [folder / "mean.ply"]
    save_mesh(model.mean_mesh, written[0])
    for mode in range(min(modes, model.n_components)):
        for frame, amount in enumerate(np.linspace(-deviations, deviations, frames)):
            coefficients = np.zeros(mode + 1)
            coefficients[mode] = amount * model.deviations[mode]
            written.append(folder / f"mode{mode + 1:02d}_{frame:02d}.ply")
            save_mesh(model.mesh(model.instance(coefficients)), written[-1])
    return written
