"""Small cohorts in correspondence for tests: the default template's coarse twin, bent smoothly and at random."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from breastmorph.cohort import Cohort
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.template import Template, default_template, template_hash, to_npz


@cache
def small_template() -> Template:
    """A symmetric template of about 650 vertices."""
    full = default_template()
    ids = full.coarse_landmark_ids
    return Template(full.coarse, ids, full.coarse, ids, full.coarse_mirror, full.coarse_mirror)


def random_shapes(k: int = 9, seed: int = 0, size: float = 6.0) -> np.ndarray:
    """Upright torsos on the small template, (k, n, 3), mm."""
    rng = np.random.default_rng(seed)
    points = small_template().mesh.vertices
    waves = rng.normal(scale=1 / 50.0, size=(3 * k, 3))
    fields = np.cos(points @ waves.T + rng.uniform(0, 6, 3 * k))  # (n, 3k)
    amounts = rng.normal(scale=size, size=(k, 3 * k, 3)) / np.sqrt(k)
    return points + np.einsum("nw,kwd->knd", fields, amounts)


def moved(shapes: np.ndarray, seed: int = 1) -> np.ndarray:
    """The same shapes, each in a pose and size of its own."""
    rng = np.random.default_rng(seed)
    turns = Rotation.random(len(shapes), rng).as_matrix()
    return np.stack(
        [
            Similarity(turn, rng.normal(size=3) * 500, rng.uniform(0.7, 1.4)).apply(shape)
            for turn, shape in zip(turns, shapes, strict=True)
        ]
    )


def small_cohort(k: int = 9, seed: int = 0) -> Cohort:
    """A cohort without files."""
    return Cohort.of(random_shapes(k, seed), small_template())


def built(cohort: Cohort, **options: Any) -> ShapeModel:
    """A model of a cohort; the options are those of BuildParameters."""
    return build_model(cohort, BuildParameters(**options))


def write_registered(folder, shapes: np.ndarray, absent: dict[str, str] | None = None) -> None:
    """Write shapes as ``breastmorph register`` does: subjects 000, 001, ..."""
    template = small_template()
    (folder / "registered").mkdir(parents=True)
    (folder / "template.npz").write_bytes(to_npz(template))
    for k, shape in enumerate(shapes):
        name = f"{k:03d}"
        path = folder / "registered" / f"{name}.ply"
        save_mesh(template.mesh.with_vertices(shape), path)
        record = {
            "id": name,
            "to_file": Similarity().as_dict(),
            "absent_side": (absent or {}).get(name, ""),
            "template": template_hash(template),
            "outputs": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()},
        }
        (folder / "registered" / f"{name}.json").write_text(json.dumps(record))
