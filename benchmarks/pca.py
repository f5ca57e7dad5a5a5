"""The model at full size on one core: alignment, principal components against scikit-learn, load, sample, file size.

    python benchmarks/pca.py

110 synthetic subjects on a mesh of the published model's size (30,924 vertices). Seconds are CPU seconds, medians.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.model.building import principal_components
from breastmorph.model.files import load_model, save_model
from breastmorph.model.procrustes import common_frame
from breastmorph.model.shape_model import ShapeModel
from measuring import compare, cpu_seconds

SUBJECTS, VERTICES = 110, 30_924
LIMITS = {"components": 0.5, "load": 1.0, "sample": 0.020}  # seconds
LARGEST = 100.0  # MB
REPEATS = 5


median = partial(cpu_seconds, repeats=REPEATS)


def main() -> int:
    """Measure and judge."""
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(1)
    base = rng.normal(size=(VERTICES, 3)) * [120.0, 150.0, 60.0]
    loadings = rng.normal(size=(SUBJECTS, 60)) * 6.0 * 0.95 ** np.arange(60)
    shapes = base + (loadings @ rng.normal(size=(60, 3 * VERTICES))).reshape(SUBJECTS, VERTICES, 3) / 8.0
    packed = shapes.astype(np.float32)
    aligning, frame = median(lambda: common_frame(packed, np.arange(SUBJECTS), base))
    aligned = np.stack([t.apply(s) for t, s in zip(frame.transforms, packed, strict=True)])
    centred = aligned - frame.mean

    def ours() -> Any:
        groups = [(SUBJECTS, lambda ids: centred[:, ids[0] : ids[-1] + 1])]
        return principal_components(groups, np.arange(VERTICES), SUBJECTS - 1)

    seconds, found = median(ours)
    peer_seconds, peer = cpu_seconds(lambda: PCA(svd_solver="full").fit(aligned.reshape(SUBJECTS, -1)))
    compare("principal components", "CPU s", seconds, "scikit-learn PCA", peer_seconds)
    q = len(found.variances)
    off = float(np.abs(found.variances / peer.explained_variance_[:q] - 1.0).max())
    faces = np.stack([np.arange(VERTICES - 2), np.arange(1, VERTICES - 1), np.arange(2, VERTICES)], axis=1)
    model = ShapeModel(frame.mean, found.basis, found.variances, faces)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.h5"
        save_model(model, path)
        megabytes = path.stat().st_size / 1e6
        loading, back = median(lambda: load_model(path))
    sampling, _ = median(lambda: back.drawn(rng))
    print(f"{SUBJECTS} subjects, {VERTICES:,} vertices, {q} components, one core, CPU seconds")
    print(f"alignment            {aligning:8.3f} s, {frame.removed.iterations} iterations")
    print(f"principal components {seconds:8.3f} s (at most {LIMITS['components']})")
    print(
        f"scikit-learn         {peer_seconds:8.3f} s, ratio {peer_seconds / seconds:.0f} x, variances within {off:.0e}"
    )
    print(f"load                 {loading:8.3f} s (at most {LIMITS['load']})")
    print(f"sample               {sampling:8.4f} s (at most {LIMITS['sample']})")
    print(f"file                 {megabytes:8.1f} MB (at most {LARGEST:.0f})")
    times = {"components": seconds, "load": loading, "sample": sampling}
    good = all(times[name] <= limit for name, limit in LIMITS.items())
    return 0 if good and megabytes <= LARGEST and off < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
