"""Three ways to say where the breast is: a radial function, an ellipsoid, and two ellipsoids (the mask itself)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.mask import BreastEllipsoids, BreastMask, measure_breasts
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.figures.panels import (
    RELIEF,
    WIDE,
    PanelPage,
    cameras,
    draw_levels,
    height_of,
    printed,
)
from breastmorph.report.render import SKIN, View, as_picture, colormap, look
from breastmorph.scan.scan import Landmarks

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_MAP = "Blues"
_FINE = 2  # points looked at per pixel along each side
_LEFT, _GAP, _TOP, _FOOT, _BAR = 0.05, 0.10, 0.22, 0.16, 0.55  # inches


def save_mask_contours(path: Path, mesh: TriangleMesh, landmarks: Landmarks) -> None:
    """Draw the levels of the three masks on a torso seen from the front.

    The radial function has the volume of the ellipsoid around the nipple; both are halved, so that all three
    masks have about the same height.

    Parameters
    ----------
    path : Path
        Without an ending.
    mesh : TriangleMesh
        Upright.
    landmarks : Landmarks
        Of the torso; one side may be absent.
    """
    masks = _masks(measure_breasts(mesh, landmarks).mask(landmarks))
    cell = (WIDE - _LEFT - _BAR) / len(masks) - _GAP
    (camera,) = cameras([(View(), [mesh.vertices])], cell)
    tall = height_of(camera)
    seen = look(mesh, camera.finer(_FINE))
    with printed(path, (WIDE, _TOP + tall + _FOOT), free=True) as figure:
        page = PanelPage(figure)
        for k, (label, mask) in enumerate(masks.items()):
            left = _LEFT + k * (cell + _GAP)
            values = mask.at(mesh.vertices)
            base = _bands(seen.at_pixels(values))
            axes = page.picture(as_picture(seen.shaded(base, RELIEF), _FINE), camera, left, _TOP)
            draw_levels(axes, mesh, camera, values, _LEVELS)
            page.text(left + cell / 2, _TOP / 2, label, weight="bold")
        page.scale_bar(_LEFT + 0.05, _TOP + tall + 0.06, camera)
        ends = (0.0, float(_LEVELS[-1]))
        bar = page.colour_bar(
            WIDE - _BAR + 0.05, _TOP + 0.08 * tall, 0.84 * tall, ends, _MAP, "probability of the breast"
        )
        bar.images[0].set_data(_bands(np.linspace(ends[1], 1e-6, 512))[:, None])
        bar.set_yticks([0.0, *_LEVELS], [f"{level:g}" for level in (0.0, *_LEVELS)])


def _bands(values: Floats) -> Floats:
    """One colour between two levels, skin below the first, (k, 3)."""
    band = np.searchsorted(_LEVELS, values, side="right").astype(np.float64)
    return np.where((band > 0)[:, None], colormap(band + 1.0, 0.0, len(_LEVELS), _MAP), SKIN)


def _masks(mask: BreastMask) -> Mapping[str, BreastMask]:
    radial, elliptic = {}, {}
    for side, both in mask.sides.items():
        nipple = np.stack([both.centres[0]] * 2)  # the same function twice: a half instead of two quarters
        axes = both.semi_axes[0]
        elliptic[side] = BreastEllipsoids(nipple, np.stack([axes] * 2))
        radial[side] = BreastEllipsoids(nipple, np.full((2, 3), np.prod(axes) ** (1.0 / 3.0)))
    return {
        "radial function (RBF)": BreastMask(radial),
        "one ellipsoid (EBF)": BreastMask(elliptic),
        "two ellipsoids: the mask": mask,
    }
