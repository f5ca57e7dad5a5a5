"""Making a template: one half of a scan, mirrored into a perfectly symmetric, evenly meshed surface."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Surface, clip, closest_on_segments, insert_points, largest_piece
from breastmorph.mesh.geometry import (
    Plane,
    Similarity,
    consistently_oriented,
    edge_lengths,
    face_angles,
    face_areas,
    normal_consistency,
    without_degenerate_faces,
    without_non_manifold_edges,
    without_pinches,
)
from breastmorph.mesh.halves import (
    QUICK,
    ends_of_middle,
    fill_holes,
    half_with_count,
    half_with_mean_edge,
    smoothed,
    symmetry_plane,
    whole_of_half,
)
from breastmorph.mesh.remeshing import isotropic
from breastmorph.mesh.topology import boundary_vertices, edge_table, face_components
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.scan.scan import NAMES, OF_A_BREAST, OPTIONAL, SIDES, STERNUM, Landmarks, Scan
from breastmorph.template.template import Template

_MIDLINE = (*STERNUM, "navel")
_OF_LEFT_HALF = tuple(name for name in NAMES if not name.endswith("_right"))


@dataclass(frozen=True)
class Outline:
    """Where a template ends, found from landmarks (mm, upright frame); no arms, no back, a rounded border.

    Attributes
    ----------
    above_notch : float
    below_lower_pole : float
    behind_lateral_pole, behind_notch : float
        The coronal cut runs this far behind these two landmarks, leaning as they do.
    armhole_out, armhole_up, armhole_radius : float
        Arm and shoulder are cut away, seen from the front, by an arc from the flank to the vertical; its
        centre (out and up from the lateral pole) and radius in parts of the height from pole to notch.
    rounding : float
        Radius with which the cuts pass into each other.
    ragged : float
        Where the scan itself ends sooner, this many of its mean edges go with its ragged border.
    """

    above_notch: float = 12.0
    below_lower_pole: float = 40.0
    behind_lateral_pole: float = 6.0
    behind_notch: float = 10.0
    armhole_out: float = 0.43
    armhole_up: float = 0.67
    armhole_radius: float = 0.47
    rounding: float = 15.0
    ragged: float = 2.5


@dataclass(frozen=True)
class TemplateParameters:
    """How a template is made.

    Attributes
    ----------
    edge : float
        Mean edge length, mm.
    coarse_vertices : int
        Vertices of the coarse twin.
    side : str
        "left" or "right": the patient's side that is mirrored.
    outline : Outline
    smoothing : float
        Undulations of this wavelength (mm) lose half their height, shorter ones vanish, longer ones stay.
    seam : float
        Within about this distance (mm) of the mid-line smoothing is stronger, so that no crease is left.
    seam_strength : float
        By how much there: 1 would let go of the surface.
    loose : float
        mm kept around the outline until the surface is smooth.
    rough_edge : float
        Edge until then, of ``edge``.
    nipple_weight, nipple_radius : float
        How much more the surface counts there, and within how many mm.
    in_hole : float
        Weight of a filling: next to nothing, yet enough to fix one that reaches the border.
    hole_rim : float
        Edges around a hole that are taken for frayed.
    border_weight : float
        Least weight of the border: a free one would curl.
    ragged_from : float
        Of ``loose``, outside the outline: what of the border lies within was not made by the cut.
    ragged_smoothing : float
        Of the outline's rounding, for the distance from a ragged border.
    off_surface : float
        mm that landmarks, also those of the mid-line, may lie beside the mirrored half.
    sites : int
        Vertices, about, by which the plane of symmetry is found.
    """

    edge: float = 2.05
    coarse_vertices: int = 646
    side: str = "left"
    outline: Outline = field(default_factory=Outline)
    smoothing: float = 20.0
    seam: float = 10.0
    seam_strength: float = 0.95
    loose: float = 20.0
    rough_edge: float = 1.2
    nipple_weight: float = 20.0
    nipple_radius: float = 8.0
    in_hole: float = 1e-4
    hole_rim: float = 1.5
    border_weight: float = 0.1
    ragged_from: float = 0.8
    ragged_smoothing: float = 3.0
    off_surface: float = 15.0
    sites: int = 5000


@dataclass(frozen=True, eq=False)
class MadeTemplate:
    """A template made from a scan, exactly symmetric to x = 0, and how the making went.

    Attributes
    ----------
    template : Template
        With the permutations to the mirror image.
    to_scan : Similarity
        Brings the template back to where the scan lies.
    asymmetry : float
        Median distance (mm) between the scan and its mirror image.
    filled : float
        Share of the template's area that was a hole in the scan.
    """

    template: Template
    to_scan: Similarity
    asymmetry: float
    filled: float


def make_template(scan: Scan, parameters: TemplateParameters | None = None) -> MadeTemplate:
    """Make a symmetric template of one half of a scan.

    Parameters
    ----------
    scan : Scan
        In the canonical frame. The chosen side needs nipple, lower pole and lateral pole.
    parameters : TemplateParameters, optional
    """
    p = parameters or TemplateParameters()
    _check(scan, p)
    mesh, n_old = fill_holes(_sound(scan.mesh))
    to_sagittal, asymmetry = _to_sagittal(scan, p)
    mesh = mesh.with_vertices(to_sagittal.apply(mesh.vertices))
    landmarks = scan.landmarks.transformed(to_sagittal)
    if p.side == "right":
        # The rest works on the left; a symmetric surface is its own mirror image.
        mesh, landmarks = mesh.mirrored(), landmarks.mirrored()
    landmarks = landmarks.only(_OF_LEFT_HALF)
    patch = mesh.kept(np.arange(mesh.n_faces) >= n_old) if n_old < mesh.n_faces else None

    half, filled = _smooth_half(mesh, patch, landmarks, p)
    half, ids = _with_landmarks(half, landmarks, p.off_surface)
    names = tuple(ids)
    fine, fine_ids = half_with_mean_edge(half, np.array(list(ids.values())), p.edge)
    coarse, coarse_ids = half_with_count(fine, fine_ids, p.coarse_vertices)
    whole, mirror = whole_of_half(fine)
    coarse_whole, coarse_mirror = whole_of_half(coarse)
    template = Template(
        whole,
        _both_sides(names, fine_ids, mirror),
        coarse_whole,
        _both_sides(names, coarse_ids, coarse_mirror),
        mirror,
        coarse_mirror,
    )
    return MadeTemplate(template, to_sagittal.inverse(), asymmetry, filled)


def quality(made: MadeTemplate) -> dict[str, float]:
    """Figures a template is judged by (mm, degrees, counts)."""
    template = made.template
    mesh, coarse = template.mesh, template.coarse
    angles = np.degrees(face_angles(mesh.vertices, mesh.faces)).min(axis=1)
    facing = np.concatenate([normal_consistency(m.vertices, m.faces) for m in (mesh, coarse)])
    off = [
        np.abs(m.vertices[permutation] * MIRROR - m.vertices).max()
        for m, permutation in ((mesh, template.mirror), (coarse, template.coarse_mirror))
    ]
    return {
        "vertices": mesh.n_vertices,
        "mean_edge_mm": float(edge_lengths(mesh.vertices, mesh.faces).mean()),
        "smallest_angle_deg": float(angles.min()),
        "angles_above_20_deg_percent": float(100.0 * (angles > 20.0).mean()),
        "flipped_triangles": int((facing <= 0.0).sum()),
        "components": int(face_components(mesh.faces).max()) + 1,
        "symmetry_error_mm": float(max(off)),
        "coarse_vertices": coarse.n_vertices,
        "coarse_mean_edge_mm": float(edge_lengths(coarse.vertices, coarse.faces).mean()),
        "coarse_border_distance_mm": border_distance(mesh, coarse),
        "scan_asymmetry_mm": made.asymmetry,
        "filled_percent": 100.0 * made.filled,
    }


def border_distance(one: TriangleMesh, other: TriangleMesh) -> float:
    """Largest distance from a border vertex of either mesh to the border of the other (Hausdorff)."""

    def farthest(source: TriangleMesh, target: TriangleMesh) -> float:
        points = source.vertices[boundary_vertices(source.faces, source.n_vertices)]
        found = closest_on_segments(points, target.vertices[edge_table(target.faces).boundary])
        return float(np.linalg.norm(points - found, axis=1).max())

    return max(farthest(one, other), farthest(other, one))


def _check(scan: Scan, p: TemplateParameters) -> None:
    if p.side not in SIDES:
        raise LandmarkProblem("there is no side {side!r}", "Say left or right, the patient's", side=p.side)
    missing = [name for name in STERNUM if name not in scan.landmarks]
    missing += [f"{part}_{p.side}" for part in OF_A_BREAST if f"{part}_{p.side}" not in scan.landmarks]
    if missing:
        raise LandmarkProblem(
            "a template of the {side} half needs the landmark {missing}",
            "Choose the side of the healthy breast or add the landmark",
            scan.id,
            side=p.side,
            missing=missing[0],
        )
    if p.edge <= 0 or p.coarse_vertices < 50:
        raise MeshProblem("a template needs an edge length above 0 and at least 50 coarse vertices")


def _sound(mesh: TriangleMesh) -> TriangleMesh:
    mesh = TriangleMesh(mesh.vertices, mesh.faces)
    for repair in (
        without_degenerate_faces,
        without_non_manifold_edges,
        consistently_oriented,
        without_pinches,
    ):
        mesh, _ = repair(mesh)
    return largest_piece(mesh)


def _to_sagittal(scan: Scan, p: TemplateParameters) -> tuple[Similarity, float]:
    """Motion that brings the plane of symmetry to x = 0 and the sternum on the origin; its residual."""
    landmarks = scan.landmarks
    sternum = landmarks.array(STERNUM)
    pairs = [
        landmarks[f"{part}_left"] - landmarks[f"{part}_right"]
        for part in OF_A_BREAST
        if f"{part}_left" in landmarks and f"{part}_right" in landmarks
    ]
    across = np.mean([pair / np.linalg.norm(pair) for pair in pairs], axis=0) if pairs else np.eye(3)[0]
    along = sternum[0] - sternum[1]
    across = across - (across @ along) / (along @ along) * along
    across /= np.linalg.norm(across)
    start = Plane(across, float(sternum.mean(axis=0) @ across))

    # Only the future template's extent counts: arms are never in the same pose.
    side = landmarks.complete_sides[0]
    placed = landmarks.transformed(start.to_sagittal())
    placed = (placed.mirrored() if side == "right" else placed).only(_OF_LEFT_HALF)
    inside = extent(start.to_sagittal().apply(scan.mesh.vertices), placed, p.outline) > 0
    points = scan.mesh.vertices[inside]
    points = points[:: max(1, len(points) // p.sites)]
    if len(points) < 100:
        raise MeshProblem(
            "the surface hardly covers the chest between the landmarks",
            "Check that landmarks and surface belong together",
            scan.id,
        )
    plane, residual = symmetry_plane(Surface(scan.mesh), points, start, sternum)
    motion = plane.to_sagittal()
    middle = motion.apply(sternum).mean(axis=0)
    shift = np.array([0.0, middle[1], middle[2]])
    return Similarity(motion.rotation, motion.translation - shift), residual


def _smooth_half(
    mesh: TriangleMesh, patch: TriangleMesh | None, landmarks: Landmarks, p: TemplateParameters
) -> tuple[TriangleMesh, float]:
    """The left half inside the outline, without noise and creases, and the share of it that was a hole."""
    rough = clip(mesh, extent(mesh.vertices, landmarks, p.outline) + p.loose)
    rough = _on_plane(clip(rough, rough.vertices[:, 0]))
    half, _ = isotropic(rough, p.rough_edge * p.edge, fixed=ends_of_middle(rough), parameters=QUICK)
    whole, mirror = whole_of_half(half)

    vertices = whole.vertices
    weights = 1.0 - p.seam_strength * np.exp(-((vertices[:, 0] / p.seam) ** 2))
    nipple = landmarks["nipple_left"] * np.stack([np.ones(3), MIRROR])
    near = np.linalg.norm(vertices[:, None] - nipple, axis=2).min(axis=1)
    weights += p.nipple_weight * np.exp(
        -((near / p.nipple_radius) ** 2)
    )  # the nipple is a detail worth keeping
    in_hole = np.zeros(half.n_vertices, bool)
    if patch is not None:
        # A scan frays around its holes, so a little of the rim goes as well.
        in_hole = Surface(patch).closest(half.vertices).distances < p.hole_rim * p.edge
        weights[np.concatenate([in_hole, in_hole[mirror[half.n_vertices :]]])] = p.in_hole
    border = boundary_vertices(whole.faces, whole.n_vertices)
    weights[border] = np.maximum(weights[border], p.border_weight)  # a free border would curl
    smooth = smoothed(vertices, whole.faces, weights, p.smoothing)
    smooth = 0.5 * (smooth + smooth[mirror] * MIRROR)
    smooth[mirror == np.arange(len(mirror)), 0] = 0.0

    inside = extent(smooth, landmarks, p.outline)
    ones = np.ones(len(smooth))
    ragged = border & (
        extent(vertices, landmarks, p.outline) > -p.ragged_from * p.loose
    )  # not made by the cut
    if ragged.any():
        away = cKDTree(smooth[ragged]).query(smooth)[0]
        away -= p.outline.ragged * edge_lengths(mesh.vertices, mesh.faces).mean()
        # Lines of equal distance to a ragged border still follow its teeth; those of its smooth part do not.
        away = smoothed(smooth, whole.faces, ones, p.ragged_smoothing * p.outline.rounding, away[:, None])[
            :, 0
        ]
        inside = soft_minimum(np.stack([inside, away]), p.outline.rounding)
    inside = smoothed(smooth, whole.faces, ones, p.outline.rounding, inside[:, None])[:, 0]
    n = half.n_vertices
    smooth_half = half.with_vertices(smooth[:n])
    cut = _on_plane(clip(smooth_half, 0.5 * (inside + inside[mirror])[:n]))
    hole_area = face_areas(smooth_half.vertices, smooth_half.faces)[in_hole[half.faces].all(axis=1)].sum()
    return cut, float(hole_area / face_areas(cut.vertices, cut.faces).sum())


def _on_plane(mesh: TriangleMesh) -> TriangleMesh:
    """The largest piece, with what rounding left next to x = 0 exactly on it."""
    mesh = largest_piece(mesh)
    vertices = mesh.vertices.copy()
    vertices[np.abs(vertices[:, 0]) < 1e-6, 0] = 0.0
    return mesh.with_vertices(vertices)


def _with_landmarks(
    half: TriangleMesh, landmarks: Landmarks, off_surface: float
) -> tuple[TriangleMesh, dict[str, int]]:
    """Put a vertex at every landmark; those of the mid-line go on it, optional ones outside are left out."""
    border = edge_table(half.faces).boundary
    track = half.vertices[border[(half.vertices[border][:, :, 0] == 0.0).all(axis=1)]]
    places: dict[str, Floats] = {}
    surface = Surface(half)
    for name, point in landmarks.items():
        if name in _MIDLINE:
            place, outside = closest_on_segments(point[None], track)[0], False
        else:
            hit = surface.closest(point[None])
            place, outside = hit.points[0], bool(hit.on_boundary[0])
        if outside or np.linalg.norm(place - point) > off_surface:
            if name in OPTIONAL:
                continue
            raise MeshProblem(
                "the surface does not reach the landmark {name}",
                "The scan is too small for a template, or its holes are open to the side",
                name=name,
            )
        places[name] = place
    half, ids = insert_points(half, np.array(list(places.values())))
    return half, dict(zip(places, ids.tolist(), strict=True))


def _both_sides(names: tuple[str, ...], ids: Ints, mirror: Ints) -> dict[str, int]:
    """Vertex of every landmark of the whole, from those of the left half."""
    found = dict(zip(names, ids.tolist(), strict=True))
    found |= {
        name.replace("_left", "_right"): int(mirror[vertex])
        for name, vertex in found.items()
        if name.endswith("_left")
    }
    return {name: found[name] for name in NAMES if name in found}


def extent(points: Floats, landmarks: Landmarks, outline: Outline) -> Floats:
    """How far inside the template's outline points lie (mm, about; negative outside), (k,)."""
    notch, lower, lateral = (
        landmarks[name] for name in ("sternal_notch", "lower_pole_left", "lateral_pole_left")
    )
    x, y, z = np.abs(points[:, 0]), points[:, 1], points[:, 2]
    height = notch[1] - lateral[1]
    back_low, back_high = lateral[2] - outline.behind_lateral_pole, notch[2] - outline.behind_notch
    lean = (back_high - back_low) / height
    # Outside this span the cut goes on vertically: an extrapolated lean would reach into the belly.
    level = np.clip(y, lateral[1], notch[1]) - lateral[1]
    back = (z - back_low - lean * level) / np.hypot(1.0, lean)
    radius = outline.armhole_radius * height
    # The hole goes on outwards and upwards for ever, whatever the arm's length and the shoulder's width.
    out = np.minimum(x - lateral[0] - outline.armhole_out * height, 0.0)
    up = np.minimum(y - lateral[1] - outline.armhole_up * height, 0.0)
    sides = np.stack(
        [
            notch[1] + outline.above_notch - y,
            y - lower[1] + outline.below_lower_pole,
            back,
            np.hypot(out, up) - radius,
        ]
    )
    return soft_minimum(sides, outline.rounding)


def soft_minimum(values: Floats, radius: float) -> Floats:
    """Minimum over the first axis; corners of the zero level are rounded with about this radius."""
    # Where several values fall below the radius the level lines are circles that touch both sides.
    short = np.maximum(radius - values, 0.0)
    least: Floats = np.maximum(values.min(axis=0), radius) - np.linalg.norm(short, axis=0)
    return least
