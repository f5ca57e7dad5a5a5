"""What a model file holds, as one hash: a file that was changed or damaged differs from the hash it carries."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from breastmorph.model.shape_model import ShapeModel

CONTENT = "content"  # where a model's info has the hash itself


def content_hash(model: ShapeModel) -> str:
    """SHA-256 of a model's shape, components, landmarks and provenance.

    As 32-bit numbers, so that it is the same in every format; without what is kept of the training subjects.
    """
    digest = hashlib.sha256()
    for values in (model.mean, model.basis, model.variances, np.array([model.noise_variance])):
        digest.update(np.asarray(values, dtype=np.float32).tobytes())
    digest.update(model.faces.astype(np.int32).tobytes())
    said = {key: value for key, value in model.info.items() if key != CONTENT}
    digest.update(json.dumps([sorted(model.landmark_ids.items()), said], sort_keys=True).encode())
    return digest.hexdigest()


def is_unchanged(model: ShapeModel) -> bool | None:
    """Whether a model that was read is what was written; None where its file carries no hash."""
    said = model.info.get(CONTENT)
    return None if said is None else bool(said == content_hash(model))
