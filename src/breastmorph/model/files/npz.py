"""Models as NumPy archives, without pickle: plain arrays for Python and Matlab users."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.numpy_archive import open_archive
from breastmorph.mesh.files.writing import write_file
from breastmorph.model.files.validation import (
    checked_info,
    checked_model,
    checked_training,
)
from breastmorph.model.shape_model import ShapeModel

_KIND = "BreastMorph model 1"


def write_npz(model: ShapeModel, path: Path) -> None:
    """Write a model; coordinates as 64-bit, the basis as it is."""
    parts: dict[str, NDArray[Any]] = {
        "kind": np.array(_KIND),
        "mean": model.mean,
        "basis": model.basis,
        "variances": model.variances,
        "faces": model.faces.astype(np.int32),
        "noise_variance": np.array(model.noise_variance),
        "landmark_names": np.array(list(model.landmark_ids), dtype=np.str_),
        "landmark_vertices": np.array(list(model.landmark_ids.values()), dtype=np.int32),
        "info": np.array(json.dumps(dict(model.info), sort_keys=True)),
    }
    if model.mirror is not None:
        parts["mirror"] = model.mirror.astype(np.int32)
    if model.training is not None:
        columns = model.training.columns
        parts |= {"scores": model.training.scores, "scales": model.training.scales}
        parts |= {"column_names": np.array(list(columns), dtype=np.str_)}
        parts |= {"columns": np.array(list(columns.values()))}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **parts)
    write_file(path, buffer.getvalue())


def model_from_npz(data: bytes) -> ShapeModel:
    """A model from the bytes of what :func:`write_npz` wrote."""
    with open_archive(data) as parts:
        if "kind" not in parts or str(parts["kind"]) != _KIND:
            raise FileProblem(
                "this NPZ file is no model", "Give a file that `breastmorph build` or `convert` wrote"
            )
        names, vertices = parts["landmark_names"].tolist(), parts["landmark_vertices"].tolist()
        variances, mean = parts["variances"], parts["mean"]
        column_names = parts["column_names"].tolist() if "column_names" in parts else []
        columns = dict(zip(column_names, parts["columns"], strict=True)) if column_names else {}
        return checked_model(
            mean,
            parts["basis"],
            variances,
            parts["faces"],
            noise_variance=float(parts["noise_variance"]),
            landmark_ids=dict(zip(names, vertices, strict=True)),
            mirror=parts.get("mirror"),
            training=checked_training(parts.get("scores"), parts.get("scales"), columns, variances.size),
            info=checked_info(str(parts["info"])),
        )
