"""Learn how the trunks of adults vary, from phantoms with known truth, for the warp's prior.

    python scripts/make_trunk_modes.py

Writes src/breastmorph/data/trunk_modes.npz; run it again whenever the phantom, the default template or the functions
of the warp change (some ten minutes on one core). Volumes are drawn more widely than the paper's Table 1, so that large
and small breasts are met often. Of the breasts nothing is kept: how their skin moves is the phantom's own idea.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from breastmorph.evaluation.truth import Tie
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import write_file
from breastmorph.foundation.machine import one_thread
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.phantom import mean_torso
from breastmorph.phantom.cohort import Marginal, PhantomParameters, draw_cohort, torso
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.pipeline import lay_on, look_at
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template

OUT = Path(__file__).parents[1] / "src" / "breastmorph" / "data" / "trunk_modes.npz"
SEEDS, EACH = (9001, 9002), 220
WIDE = PhantomParameters(
    volume_left=Marginal(620.0, 360.0, 60.0, 1700.0),
    volume_right=Marginal(620.0, 360.0, 60.0, 1700.0),
    difference=Marginal(100.0, 100.0, 0.3, 450.0),
)
MODES = 60


def tied_anchors(template: Template) -> Tie:
    """Where the coarse twin's vertices lie on the phantom's topology."""
    mean = mean_torso()
    names = [name for name in template.landmarks if name in mean.landmarks]
    place = Similarity.fit(template.landmarks.array(names), mean.landmarks.array(names), with_scale=False)
    found = Surface(mean.mesh).closest(place.apply(template.coarse.vertices))
    return Tie(mean.mesh.faces[found.faces], found.weights, float(found.distances.mean()))


def displacements(prepared: PreparedTemplate, tie: Tie) -> Floats:
    """How the true skin of phantoms lies to the anchors after the rigid stage, (n, a, 3)."""
    rows = []
    for seed in SEEDS:
        for subject in draw_cohort(EACH, seed, parameters=WIDE):
            true = torso(subject)
            try:
                laid = lay_on(prepared, look_at(prepared, Scan(subject.id, true.mesh, true.landmarks)))
            except BreastMorphError as error:
                print(f"{seed} {subject.id}: left out, {error}")
                continue
            rows.append(laid.transform.inverse().apply(tie.at(true.mesh.vertices)))
        print(f"seed {seed}: {len(rows)} torsos so far", flush=True)
    return np.stack(rows) - prepared.coarse.mesh.vertices


def trunk_modes(prepared: PreparedTemplate, moved: Floats, mirror: Floats) -> Floats:
    """Modes (a, 3, r) of the trunk's share of displacements (n, a, 3) and their mirror images, about the template."""
    both = np.concatenate([moved, moved[:, mirror] * MIRROR])
    functions = prepared.functions
    coefficients = functions.read_off(np.moveaxis(both, 0, 2))
    coefficients[len(coefficients) - functions.n_local :] = 0.0
    trunk = np.einsum("af,fin->ain", functions.anchors, coefficients) / np.sqrt(len(both))
    vectors, values, _ = np.linalg.svd(trunk.reshape(-1, len(both)), full_matrices=False)
    print(f"{MODES} modes hold {(values[:MODES] ** 2).sum() / (values**2).sum():.2%} of the variance")
    return (vectors * values)[:, :MODES].reshape(*trunk.shape[:2], MODES)


def main() -> None:
    """Learn and write them."""
    template = default_template()
    prepared = PreparedTemplate(template, RegistrationParameters())
    with one_thread():
        modes = trunk_modes(prepared, displacements(prepared, tied_anchors(template)), template.coarse_mirror)
    made = io.BytesIO()
    np.savez_compressed(made, modes=modes.astype(np.float32))
    write_file(OUT, made.getvalue())
    print(f"{OUT.name}: {len(made.getvalue()) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
