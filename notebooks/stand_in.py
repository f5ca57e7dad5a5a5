"""A stand-in for the published model: its layout, number of vertices and landmark vertices, with a synthetic shape."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from breastmorph import ShapeModel

VERTICES = 30_924
LANDMARKS = {
    "sternal_notch": 15505,
    "nipple_left": 9356,
    "nipple_right": 24934,
    "lower_pole_left": 8561,
    "lower_pole_right": 24139,
}


def write_stand_in(model: ShapeModel, path: Path) -> dict[str, int]:
    """Write a model as the published one is laid out, without anything of ours; returns where other landmarks went."""
    mean, faces = model.mean, model.faces
    modes = np.asarray(model.basis, dtype=np.float64).reshape(-1, 3, model.basis.shape[1])
    while len(mean) < VERTICES:
        split = faces[: VERTICES - len(mean)]  # each gets a vertex in its middle
        middle = len(mean) + np.arange(len(split))
        a, b, c = split.T
        thirds = [np.column_stack(corners) for corners in ((a, b, middle), (b, c, middle), (c, a, middle))]
        faces = np.concatenate([faces[len(split) :], *thirds])
        mean = np.concatenate([mean, mean[split].mean(axis=1)])
        modes = np.concatenate([modes, modes[split].mean(axis=1)])
    place = _places(model)
    order = np.argsort(place)  # the old vertex at every new place
    basis, triangle = np.linalg.qr(modes[order].reshape(3 * VERTICES, -1))
    basis *= np.sign(np.diag(triangle))
    with h5py.File(path, "x") as file:  # never over the real one
        file["version/majorVersion"], file["version/minorVersion"] = np.int32(0), np.int32(9)
        file["representer/points"] = mean[order].T.astype(np.float32)
        file["representer/cells"] = place[faces].T.astype(np.int32)
        file["representer"].attrs["name"] = np.bytes_("itkStandardMeshRepresenter")
        file["representer"].attrs["datasetType"] = np.bytes_("POLYGON_MESH")
        file["model/mean"] = mean[order].ravel().astype(np.float32)
        file["model/pcaBasis"] = basis.astype(np.float32)
        file["model/pcaVariance"] = model.variances.astype(np.float32)
        file["model/noiseVariance"] = np.zeros(1, np.float32)
    return {name: int(place[vertex]) for name, vertex in model.landmark_ids.items() if name not in LANDMARKS}


def _places(model: ShapeModel) -> np.ndarray:
    """Where every vertex goes, (30924,): the five landmarks to their known places, the rest in its order."""
    place = np.full(VERTICES, -1)
    for name, vertex in LANDMARKS.items():
        place[model.landmark_ids[name]] = vertex
    free = np.setdiff1d(np.arange(VERTICES), list(LANDMARKS.values()))
    place[place < 0] = free
    return place
