"""The modes of a model as mesh files: each from -3 to +3 standard deviations, numbered for viewers that play them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from breastmorph.errors import BreastMorphError
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.files.writing import make_folder
from breastmorph.model.shape_model import ShapeModel


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
