"""The demo model: a small synthetic model that comes with the package, for people who have none yet."""

from __future__ import annotations

import io
import json
from importlib.resources import files

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.template import default_template

_FILE = "demo_model.npz"
_STEP = 0.02  # mm: resolution of every mode at one standard deviation; rougher ones would show in the shading
_NOTE = "Made from scans of a mathematical phantom; no person was scanned."


def demo_model() -> ShapeModel:
    """The model that comes with the package."""
    return from_bytes(files("breastmorph").joinpath("data", _FILE).read_bytes())


def to_bytes(model: ShapeModel) -> bytes:
    """A model on the default template as a small NPZ file."""
    if model.training is None:
        raise FileProblem("the demo model keeps the scores of its subjects", "Build it with them")
    scaled = (model.basis * model.deviations).T  # (q, 3n): mm at one standard deviation
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        mean=model.mean.astype(np.float32),
        modes=_differences(scaled.reshape(len(scaled), -1, 3).transpose(0, 2, 1).reshape(len(scaled), -1)),
        variances=model.variances,
        noise_variance=np.array(model.noise_variance),
        scores=model.training.scores.astype(np.float32),
        scales=model.training.scales.astype(np.float32),
        info=np.array(json.dumps(dict(model.info), sort_keys=True)),
    )
    return buffer.getvalue()


def from_bytes(data: bytes) -> ShapeModel:
    """The model from what :func:`to_bytes` wrote."""
    template = default_template()
    n = template.mesh.n_vertices
    with np.load(io.BytesIO(data), allow_pickle=False) as parts:
        mean = parts["mean"].astype(np.float64)
        modes = _summed(parts["modes"]).reshape(-1, 3, n).transpose(0, 2, 1).reshape(-1, 3 * n)
        deviations = np.sqrt(parts["variances"])
        rough = (modes / deviations[:, None]).T
        # The steps leave the columns orthonormal to a few parts in a million; this makes it exact.
        basis = rough @ np.linalg.inv(np.linalg.cholesky(rough.T @ rough)).T
        return ShapeModel(
            mean,
            np.ascontiguousarray(basis, dtype=np.float32),
            parts["variances"],
            template.mesh.faces,
            landmark_ids=template.landmark_ids,
            noise_variance=float(parts["noise_variance"]),
            mirror=template.mirror,
            training=Training(parts["scores"].astype(float), parts["scales"].astype(float)),
            info={**json.loads(str(parts["info"])), "synthetic": _NOTE},
        )


def _differences(rows: Floats) -> np.ndarray:
    """Rows in whole steps, each number as its difference from the one before: small numbers compress well."""
    steps = np.rint(rows / _STEP).astype(np.int32)
    return np.diff(steps, axis=1, prepend=0).astype(np.int16)


def _summed(differences: np.ndarray) -> Floats:
    return _STEP * np.cumsum(differences, axis=1, dtype=np.float64)
