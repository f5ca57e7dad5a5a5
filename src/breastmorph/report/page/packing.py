"""A model small enough for a page: whole numbers of 16 bits instead of floats."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np

from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel

_STEPS = 32767


def packed_model(model: ShapeModel, modes: int) -> dict[str, Any]:
    """Mean, faces and first modes as JSON values.

    Returns
    -------
    dict
        ``mean`` and every entry of ``modes`` are ``{scale, values}``: little-endian int16 of (n, 3) in base64, times
        ``scale`` in mm. A mode is one standard deviation long. ``shares`` are the modes' parts of all variance.
        A torso of 60 cm is rounded to steps of 0.01 mm, modes to finer ones.
    """
    kept = min(modes, model.n_components)
    total = float(model.variances.sum()) + model.noise_variance * model.mean.size
    middle = (model.mean.min(axis=0) + model.mean.max(axis=0)) / 2
    wide = model.n_vertices > 0xFFFF
    return {
        "middle": [float(value) for value in middle],
        "mean": _whole(model.mean - middle),
        "faces": {"wide": wide, "values": _base64(model.faces.astype("<u4" if wide else "<u2"))},
        "modes": [_whole(model.basis[:, k] * model.deviations[k]) for k in range(kept)],
        "shares": [float(variance / total) if total > 0.0 else 0.0 for variance in model.variances[:kept]],
    }


def _whole(values: Floats) -> dict[str, Any]:
    scale = float(np.abs(values).max(initial=0.0)) / _STEPS or 1.0
    return {"scale": scale, "values": _base64(np.round(values / scale).astype("<i2"))}


def _base64(values: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode()
