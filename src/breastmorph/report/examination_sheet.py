"""The sheet of a subject's measures, with their lines on the body; and the map of her symmetry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.clinical.distance_meter import densely, tape_lines
from breastmorph.clinical.distances import CALIPER, DISTANCES, DRAWN
from breastmorph.clinical.examination import Examination, Symmetry
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.messages import READERS, sentences
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import Identity, Page, Panels, Text
from breastmorph.report.measure_tables import examined_table
from breastmorph.report.render import (
    SKIN,
    Camera,
    ColourScale,
    Marker,
    Picture,
    View,
    VisibleSurface,
    cameras_around,
    round_end,
    views_of,
    visible_surface,
    with_sides_and_scale,
)
from breastmorph.report.sheet import Layout, print_page

SIDES_NOTE = "Left and right are the patient's: from the front, her left is on the right of the picture."
FROM_THREE_SIDES = {
    "from the patient's right": View(yaw=-45.0),
    "from the front": View(),
    "from the patient's left": View(yaw=45.0),
}
_VIEWS = (View(), View(yaw=55.0), View(yaw=-55.0))
_SIZE, _MAP_SIZE = (520, 520), (360, 360)
_ENDS = (2.0, 50.0)  # mm: where the colours of the map may end
_RED, _BLUE, _GREEN = (0.79, 0.16, 0.16), (0.09, 0.39, 0.67), (0.17, 0.54, 0.24)
_PURPLE, _ORANGE, _WHITE, _BLACK = (0.53, 0.18, 0.61), (0.85, 0.28, 0.06), (1.0, 1.0, 1.0), (0.1, 0.1, 0.1)
_COLOURS = dict(
    zip(DRAWN, (_RED, _RED, _BLUE, _GREEN, _GREEN, _PURPLE, _PURPLE, _ORANGE), strict=True)
)  # of lines along the skin
_BEHIND = 4.0  # mm that a point of a line may lie under the surface and still be drawn


def caution(model: ShapeModel) -> str:
    """What must not be overlooked on a sheet made with a model; empty for most."""
    return "Synthetic model: not for planning." if model.is_synthetic else ""


def examination_page(one: Examination, identity: Identity, warning: str = "") -> Page:
    """One subject's measures as a page with their lines on the body.

    Parameters
    ----------
    one : Examination
        With its mesh and landmarks.
    identity : Identity
    warning : str
        What must not be overlooked.
    """
    notes = (
        SIDES_NOTE,
        "Red: sternal notch to nipple; blue: nipple to nipple; green: nipple to fold; violet, dashed: base width, "
        "straight; orange: between the breasts; white: border of the volume. Lines are drawn where they are seen.",
        "\N{PLUS-MINUS SIGN} is one standard deviation: of landmarks set again, of the chest wall, which no camera "
        "sees (volume), of the border (areas), of hidden skin where the breast hangs over the fold, of the model where "
        "a breast is predicted.",
        *(f"Note: {sentence}." for sentence in sentences(one.warnings, READERS)),
        "Computed from a 3D surface; no replacement for an examination.",
    )
    pictures = tuple(drawn_measures(one, view) for view in _VIEWS)
    return Page(
        f"{one.id}: measures",
        (Panels("From the front, from her left, from her right", pictures), examined_table(one), Text(notes)),
        notice=warning,
        identity=replace(
            identity,
            model=identity.model or "built-in template",
            source=one.source,
            side=f"{one.absent} side absent" if one.absent else "",
        ),
    )


def drawn_measures(one: Examination, view: View) -> Picture:
    """A subject with the lines of her measures, the border of the volume, sides and a scale bar."""
    mesh, places = one.mesh, one.landmarks
    if mesh is None or places is None:
        raise ValueError("an examination without its mesh cannot be drawn")
    camera = Camera.around(mesh.vertices, view, _SIZE)
    visible = visible_surface(mesh, camera)
    picture = visible.shaded(np.array(SKIN))
    surface = Surface(mesh)
    for border in one.borders:
        _paint(picture, visible, mesh.vertices[border].mean(axis=1), _WHITE)
    for name, colour in _COLOURS.items():
        ends = DISTANCES[name].landmarks[:2]
        if not all(end in places for end in ends):
            continue
        if DISTANCES[name].form == CALIPER:
            straight = densely(np.array([places[end] for end in ends]), camera.pixel)
            _paint(picture, visible, straight, colour, dashed=True)
        else:
            line = tape_lines(surface, *(SkinPoints.on(surface, places[end][None]) for end in ends))[0]
            if line is not None:
                _paint(picture, visible, densely(line.points.at(mesh.vertices), camera.pixel), colour)
    visible.mark(picture, [Marker(point, _BLACK) for point in places.points], 3.0)
    return with_sides_and_scale(np.round(255 * picture).astype(np.uint8), camera)


def _paint(
    picture: Floats,
    visible: VisibleSurface,
    points: Floats,
    colour: tuple[float, float, float],
    *,
    dashed: bool = False,
) -> None:
    """Colour the pixels of points that the surface does not hide; dashed lines also where it does."""
    at = visible.camera.project(points)
    columns, rows = (np.floor(at[:, k]).astype(int) for k in (0, 1))
    height, width = visible.depth.shape
    inside = (columns >= 0) & (columns < width - 1) & (rows >= 0) & (rows < height - 1)
    columns, rows, depth = columns[inside], rows[inside], at[inside, 2]
    shown = np.arange(len(rows)) % 10 < 6 if dashed else depth > visible.depth[rows, columns] - _BEHIND
    for across in (0, 1):
        for down in (0, 1):
            picture[rows[shown] + down, columns[shown] + across] = colour


def save_symmetry_map(mesh: TriangleMesh, symmetry: Symmetry, path: Path, title: str = "") -> None:
    """Write a PNG of where each breast lies outside or inside the mirror image of the other, from three views.

    Parameters
    ----------
    mesh : TriangleMesh
        The subject, upright, in mm.
    symmetry : Symmetry
        Of that mesh.
    path : Path
    title : str
        For example whose it is.
    """
    end = float(np.clip(round_end(symmetry.signed, 0.95), *_ENDS))
    scale = ColourScale.signed(end, "outside (+) or inside (-) the mirror image of the other side, mm")
    cameras = cameras_around(mesh.vertices, list(FROM_THREE_SIDES.values()), _MAP_SIZE)
    pictures = views_of(mesh, cameras, scale.of(symmetry.signed))
    heading = f"{title}: mean deviation" if title else "Mean deviation"
    page = Page(
        f"{heading} {symmetry.deviation:.1f} mm", (Panels("", pictures, tuple(FROM_THREE_SIDES), scale),)
    )
    print_page(page, path.with_suffix(""), ("png",), Layout((11.0, 4.6), dpi=110))
