"""Learn how the bodies of adults vary, from phantoms with known truth, for the warp's prior.

    python scripts/make_known_bodies.py

Writes src/breastmorph/data/known_bodies.npz; run it again whenever the phantom, the default template or the functions
of the warp change (some five minutes on one core). Volumes are drawn more widely than the paper's Table 1, so that
large and small breasts are met often. How the skin of breasts moves is the phantom's own idea: the warp uses it to
find trunks, not breasts.
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
from breastmorph.registration.parameters import RegistrationParameters, WarpParameters
from breastmorph.registration.pipeline import RegistrationLog, align_rigidly, prepare_scan
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.warp import Bodies
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template

OUT = Path(__file__).parents[1] / "src" / "breastmorph" / "data" / "known_bodies.npz"
SEEDS, EACH = (9001, 9002), 220
WIDE = PhantomParameters(
    volume_left=Marginal(620.0, 360.0, 60.0, 1700.0),
    volume_right=Marginal(620.0, 360.0, 60.0, 1700.0),
    difference=Marginal(100.0, 100.0, 0.3, 450.0),
)
MODES = 80


def anchors_on_phantom(template: Template) -> Tie:
    """Where the coarse twin's vertices lie on the phantom's topology."""
    mean = mean_torso()
    names = [name for name in template.landmarks if name in mean.landmarks]
    place = Similarity.fit(template.landmarks.array(names), mean.landmarks.array(names), with_scale=False)
    found = Surface(mean.mesh).closest(place.apply(template.coarse.vertices))
    return Tie(mean.mesh.faces[found.faces], found.weights, float(found.distances.mean()))


def displacements(prepared: PreparedTemplate, tie: Tie) -> tuple[Floats, Floats]:
    """How the true skin of phantoms lies to the anchors after the rigid stage, (n, a, 3), and its log scales."""
    rows, sizes = [], []
    for seed in SEEDS:
        for subject in draw_cohort(EACH, seed, parameters=WIDE):
            true = torso(subject)
            try:
                scan, log = Scan(subject.id, true.mesh, true.landmarks), RegistrationLog()
                rigid = align_rigidly(prepared, prepare_scan(prepared, scan, log), log)
            except BreastMorphError as error:
                print(f"{seed} {subject.id}: left out, {error}")
                continue
            rows.append(rigid.transform.inverse().apply(tie.at(true.mesh.vertices)))
            sizes.append(np.log(rigid.transform.scale))
        print(f"seed {seed}: {len(rows)} torsos so far", flush=True)
    return np.stack(rows) - prepared.coarse.mesh.vertices, np.array(sizes)


def bodies(prepared: PreparedTemplate, moved: Floats, sizes: Floats, mirror: Floats) -> Bodies:
    """From displacements (n, a, 3) and their mirror images, about the template, and sizes (n,)."""
    both, sizes = np.concatenate([moved, moved[:, mirror] * MIRROR]), np.concatenate([sizes, sizes])
    smooth = np.einsum(
        "af,fin->ain", prepared.functions.anchors, prepared.functions.read_off(np.moveaxis(both, 0, 2))
    )
    by_size = smooth @ sizes / (sizes @ sizes)
    left = (smooth - by_size[:, :, None] * sizes) / np.sqrt(len(both))
    vectors, values, _ = np.linalg.svd(left.reshape(-1, len(both)), full_matrices=False)
    print(f"{MODES} modes have {(values[:MODES] ** 2).sum() / (values**2).sum():.2%} of the variance")
    return Bodies((vectors * values)[:, :MODES].reshape(*left.shape[:2], MODES), by_size)


def main() -> None:
    """Fit and write them."""
    template = default_template()
    nothing = RegistrationParameters(warp=WarpParameters(trunk_share=0.0))  # the file may not be there yet
    prepared = PreparedTemplate(template, nothing)
    with one_thread():
        known = bodies(
            prepared, *displacements(prepared, anchors_on_phantom(template)), template.coarse_mirror
        )
    made = io.BytesIO()
    np.savez_compressed(made, modes=known.modes.astype(np.float32), by_size=known.by_size.astype(np.float32))
    write_file(OUT, made.getvalue())
    print(f"{OUT.name}: {len(made.getvalue()) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
