"""Make the pictures of docs/pictures from a finished demo study.

    breastmorph demo
    python scripts/docs_pictures.py demo

Everybody on them is synthetic.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import trimesh
from PIL import Image
from playwright.sync_api import sync_playwright

from breastmorph import cli as breastmorph
from breastmorph.clinical.distance_meter import tape_lines
from breastmorph.clinical.examiner import Examiner
from breastmorph.clinical.skin_points import SkinLandmarks
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import load_cohort
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.files import write_file
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.demo_model import demo_model
from breastmorph.model.fitting import fit_model
from breastmorph.paper.figures.panels import PanelPage, cameras, height_of
from breastmorph.registration.pipeline import Registrar
from breastmorph.report.examination_sheet import save_symmetry_map
from breastmorph.report.printing import house_style, save_figure
from breastmorph.report.registration_pictures import quality_sheet_png
from breastmorph.report.render import Camera, Marker, View, picture_grid, render, visible_surface
from breastmorph.report.shape_sheets import fit_sheet
from breastmorph.scan.check import ScanFiles, check_scan, load_scan
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).parents[1] / "docs" / "pictures"
_WIDEST = 1200  # pixels
_WIDTHS = {"modes": 800}  # forty-eight bodies in all colours: else a megabyte
_COLOURS = 160  # a palette: a third of the bytes, and no visible difference on shaded skin
# A figure of the study, its name in the docs.
_FIGURES = {
    "mask-contours": "masks",
    "modes": "modes",
    "variation": "variation",
    "experiment-1-curves": "curves",
    "editing": "editing",
    "prediction": "prediction",
    "experiment-2": "experiment-2",
    "experiment-4": "experiment-4",
}
# A palette would shift the colours of their scales.
_WITH_SCALE = {"masks", "modes", "variation", "prediction"}
# Optional landmarks on the mean torso, mm, drawn as "about here"; the folds lie behind the breasts.
_OPTIONAL = {
    "navel": (0.0, -338.0, 97.0),
    "coracoid_left": (128.0, -12.0, 25.0),
    "coracoid_right": (-128.0, -12.0, 25.0),
    "imf_left": (80.0, -205.0, 95.0),
    "imf_right": (-80.0, -205.0, 95.0),
}
_NEEDED, _EXTRA = "#A01818", "#0060A0"
_NEAR = 215.0  # mm: how far from the middle the picture reaches
_SPACE = 1.35  # inches beside a torso for the names
# Distances that are drawn, and where their names stand, mm from the middle of the line.
_TAPES = {"SN-NL": (30, -8), "SN-NR": (-30, -8), "NL-NR": (0, -12), "NL-LPL": (8, 34), "NR-LPR": (-8, 34)}
_ENDS = {
    "SN": "sternal_notch",
    "NL": "nipple_left",
    "NR": "nipple_right",
    "LPL": "lower_pole_left",
    "LPR": "lower_pole_right",
}
_LEFT, _RIGHT, _MIDDLE = (0.80, 0.15, 0.15), (0.10, 0.25, 0.80), (0.95, 0.85, 0.20)


def main(study: Path) -> None:
    """Draw and copy all pictures."""
    landmark_picture(study / "cohort" / "truth" / "topology.npz")
    measure_picture()
    check_picture(study / "cohort" / "scans" / "000.ply", study / "cohort" / "landmarks" / "000.json")
    for figure, name in _FIGURES.items():
        drawn = (study / "figures" / f"{figure}.png").read_bytes()
        keep(drawn, name, all_colours=name in _WITH_SCALE, widest=_WIDTHS.get(name, _WIDEST))
    registered = study / "registered" / "masks"
    symmetry_picture(registered, "004")
    scans = [
        load_scan(study / f"cohort/scans/{k:03d}.ply", study / f"cohort/landmarks/{k:03d}.json")
        for k in range(6)
    ]
    scan = scans[3]
    keep(
        quality_sheet_png(scan, Registrar(default_template()).register(scan)),
        "registration",
        all_colours=True,
        widest=1000,
    )
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "sheet.png"
        keep(_contact_sheet(scans), "phantom")
        fit = fit_model(demo_model(), scan.mesh, scan.landmarks)
        fit_sheet(scan.id, scan.mesh, fit, sheet)
        keep(sheet.read_bytes(), "fit", all_colours=True, widest=720)
        words = ["predict", f"{study}/models/masks.h5", f"{registered}/registered/000.ply", "--out", folder]
        breastmorph.main([*words, "--missing", "right", "--replace"], standalone_mode=False)
        keep(sheet.read_bytes(), "prediction-sheet", all_colours=True, widest=620)
    screenshot(study / "report.html", "quickstart-report", 1000)
    screenshot(registered / "summary.html", "quickstart-summary", 1560)


def _contact_sheet(scans: list[Scan]) -> bytes:
    """A PNG of scans with their landmarks, each from the front and from 45 degrees, all at one scale."""
    half = np.max([np.ptp(scan.mesh.vertices, axis=0) for scan in scans], axis=0) / 2
    pictures = []
    for scan in scans:
        middle = (scan.mesh.vertices.min(axis=0) + scan.mesh.vertices.max(axis=0)) / 2
        markers = [Marker(point) for point in scan.landmarks.points]
        box = middle - half, middle + half
        views = [
            render(scan.mesh, view, size=(300, 230), markers=markers, box=box)
            for view in (View(), View(yaw=45.0))
        ]
        pictures.append(np.concatenate(views, axis=1))
    return picture_grid(pictures, [scan.id for scan in scans], 3)


def screenshot(page: Path, name: str, width: int) -> None:
    """The top of a page as a browser shows it, cut where it would have to be made smaller."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 700})
        tab.goto(page.resolve().as_uri())
        tab.wait_for_timeout(1500)
        keep(tab.screenshot(clip={"x": 0, "y": 0, "width": min(width, _WIDEST), "height": 700}), name)
        browser.close()


def measure_picture() -> None:
    """The template with the lines that are measured, and a cut through skin and chest wall at the nipples."""
    from matplotlib.figure import Figure

    template = default_template()
    mesh, marks = template.mesh, SkinLandmarks.of_vertices(template.landmark_ids)
    pairs = [[_ENDS[end] for end in name.split("-")] for name in _TAPES]
    lines = tape_lines(Surface(mesh), *(marks.chosen(pair[k] for pair in pairs) for k in (0, 1)))
    (front,) = cameras([(View(), [mesh.vertices])], 3.3)
    with house_style(), tempfile.TemporaryDirectory() as folder:
        figure = Figure(figsize=(7.3, height_of(front) + 0.1))
        page = PanelPage(figure)
        axes = page.picture(render(mesh, camera=front), front, 0.05, 0.05)
        for (name, off), pair, line in zip(_TAPES.items(), pairs, lines, strict=True):
            if line is None:
                sys.exit(f"no line over the skin for {name}")
            tape = front.project(line.points.at(mesh.vertices))
            straight = front.project(marks.chosen(pair).at(mesh.vertices))
            axes.plot(tape[:, 0], tape[:, 1], color=_NEEDED, lw=1.6)
            axes.plot(straight[:, 0], straight[:, 1], color=_EXTRA, lw=1.1, ls="--")
            place = tape[:, :2].mean(axis=0) + np.array(off) / front.pixel
            axes.text(place[0], place[1], name, color=_NEEDED, fontsize=8.5, ha="center", va="center")
        axes.set(xlim=(0, front.size[0]), ylim=(front.size[1], 0))
        _draw_cut(page.panel(3.75, 0.6, 3.4, height_of(front) - 1.2), template)
        (written,) = save_figure(figure, Path(folder) / "measures", kinds=("png",), dpi=170)
        keep(written.read_bytes(), "measures")


def _draw_cut(axes: Axes, template: Template) -> None:
    """A level cut at the nipples, seen from below; the volume lies between skin and chest wall."""
    from matplotlib.collections import LineCollection

    mesh, landmarks = template.mesh, template.landmarks
    height = float(landmarks.array(["nipple_left", "nipple_right"])[:, 1].mean())
    walls = BreastVolumes(mesh, landmarks).walls
    wall = walls["right"].shape(walls["left"].shape(mesh.vertices))
    for vertices, colour in ((wall, _EXTRA), (mesh.vertices, "black")):
        cut = list(_cut(vertices, mesh.faces, height))
        axes.add_collection(LineCollection(cut, colors=colour, linewidths=1.4))
    axes.set_title(
        "cut at the nipples: skin (black), chest wall (blue)", fontsize=8, loc="center", weight="normal"
    )
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()


def _cut(vertices: Floats, faces: Ints, height: float) -> Floats:
    """Where triangles cross a height, as segments (k, 2, 2) of x and z."""
    ends = vertices[faces[:, [[0, 1], [1, 2], [2, 0]]]]  # (m, 3, 2, 3)
    above = ends[..., 1] > height
    crossed = above[..., 0] != above[..., 1]
    through = crossed.any(axis=1)
    one, other = ends[through][crossed[through]].swapaxes(0, 1)
    share = (height - one[:, 1:2]) / (other[:, 1:2] - one[:, 1:2])
    segments: Floats = (one + share * (other - one))[:, [0, 2]].reshape(-1, 2, 2)
    return segments


def check_picture(mesh_file: Path, landmark_file: Path) -> None:
    """One scan as it is and spoiled in three ways, with what the check says of each."""
    mesh, points = load_mesh(mesh_file), json.loads(landmark_file.read_text())
    points = {name: point for name, point in points.items() if isinstance(point, list)}
    scan = load_scan(mesh_file, landmark_file)
    ball = trimesh.creation.icosphere(subdivisions=3, radius=28.0)
    beside = scan.to_file.apply(ball.vertices + scan.landmarks["xiphoid"] + [60.0, -130.0, 90.0])
    more = TriangleMesh(
        np.vstack([mesh.vertices, beside]), np.vstack([mesh.faces, ball.faces + mesh.n_vertices])
    )
    off = scan.to_file.apply(scan.landmarks["nipple_left"] + [30.0, 40.0, 70.0])
    swapped = {"left": "right", "right": "left"}
    cases = {
        "as scanned": (mesh, points),
        "a stray piece": (more, points),
        "a point in the air": (mesh, points | {"nipple_left": off.tolist()}),
        "sides exchanged": (
            mesh,
            {
                re.sub("left|right", lambda side: swapped[side[0]], name): point
                for name, point in points.items()
            },
        ),
    }
    cells, captions = [], []
    to_upright = scan.to_file.inverse()
    low, high = (pick(scan.mesh.vertices, axis=0) for pick in (np.min, np.max))
    with tempfile.TemporaryDirectory() as folder:
        for case, (surface, named) in cases.items():
            files = ScanFiles("torso", Path(folder) / "torso.ply", (Path(folder) / "torso.json",))
            save_mesh(surface, files.mesh)
            files.landmarks[0].write_text(json.dumps(named))
            verdict = check_scan(files, reference=default_template().as_reference).verdict
            markers = [
                Marker(to_upright.apply(np.array(point)), _side_colour(name)) for name, point in named.items()
            ]
            upright = surface.with_vertices(to_upright.apply(surface.vertices))
            cells.append(render(upright, View(yaw=40.0), size=(300, 250), markers=markers, box=(low, high)))
            captions.append(f"{case}: {verdict}")
    keep(picture_grid(cells, captions, columns=4), "checking")


def _side_colour(landmark: str) -> tuple[float, float, float]:
    return _LEFT if landmark.endswith("_left") else _RIGHT if landmark.endswith("_right") else _MIDDLE


def symmetry_picture(registered: Path, subject: str) -> None:
    """The symmetry map of one registered subject."""
    cohort = load_cohort(registered)
    template = cohort.template
    examiner = Examiner(template.mesh, template.landmark_ids, template.mirror)
    found = examiner.shape(subject, np.asarray(cohort.shape(cohort.ids.index(subject)), dtype=float))
    if found.mesh is None or found.symmetry is None:
        sys.exit(found.symmetry_reason)
    with tempfile.TemporaryDirectory() as folder:
        save_symmetry_map(found.mesh, found.symmetry, Path(folder) / "map.png")
        keep((Path(folder) / "map.png").read_bytes(), "symmetry", all_colours=True)


def keep(data: bytes, name: str, *, all_colours: bool = False, widest: int = _WIDEST) -> None:
    """A PNG no wider and, unless told otherwise, with no more colours than a page needs."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    if picture.width > widest:
        height = round(picture.height * widest / picture.width)
        picture = picture.resize((widest, height), Image.Resampling.LANCZOS)
    small = io.BytesIO()
    if (
        widest < _WIDEST
    ):  # no palette, which would shift colours, but each of them a step of 8 of 255 from the next
        picture = picture.point([min(8 * round(value / 8), 255) for value in range(256)] * 3)
    elif not all_colours:
        picture = picture.quantize(_COLOURS, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    write_file(OUT / f"{name}.png", small.getvalue())
    print(f"{name}.png {picture.size} {len(small.getvalue()) / 1024:.0f} KB")


def landmark_picture(topology: Path) -> None:
    """The mean torso of the phantom from the front and obliquely, every landmark with its name."""
    from matplotlib.figure import Figure

    with np.load(topology, allow_pickle=False) as parts:
        mesh = TriangleMesh(parts["mean"], parts["faces"])
        points = dict(zip(parts["landmark_names"].tolist(), parts["landmark_true"], strict=True))
    points |= {name: np.array(point) for name, point in _OPTIONAL.items()}
    trunk = mesh.vertices[np.abs(mesh.vertices[:, 0]) < _NEAR]
    front, oblique = cameras([(View(), [trunk]), (View(yaw=58.0), [trunk])], 3.3, one_height=True)
    tall, wide = height_of(front), front.size[0] / front.size[1] * height_of(front)
    for camera, name, shown in (
        (front, "landmarks-front", list(points)),
        (oblique, "landmarks-left", [n for n in points if n.endswith("_left") and n not in _OPTIONAL]),
    ):
        with house_style(), tempfile.TemporaryDirectory() as folder:
            figure = Figure(figsize=(wide + 2 * _SPACE, tall + 0.1))
            axes = PanelPage(figure).picture(render(mesh, camera=camera), camera, _SPACE, 0.05)
            _name_points(axes, mesh, camera, {name: points[name] for name in shown})
            (written,) = save_figure(figure, Path(folder) / name, kinds=("png",), dpi=170)
            keep(written.read_bytes(), name)


def _name_points(axes: Axes, mesh: TriangleMesh, camera: Camera, points: Mapping[str, Floats]) -> None:
    """Dots with lines to their names beside the picture; a dot that the body hides is hollow."""
    depth = visible_surface(mesh, camera).depth
    width, height = camera.size
    places = camera.project(np.array(list(points.values())))
    named = sorted(zip(points, places, strict=True), key=lambda pair: pair[1][1])
    for at_left in (True, False):
        here = [
            (n, p) for n, p in named if (p[0] < width / 2 - 1 or n in ("navel", "sternal_notch")) == at_left
        ]
        rows = _apart([p[1] for _, p in here], height / 14)
        for (name, (column, row, towards)), text_row in zip(here, rows, strict=True):
            colour = _EXTRA if name in _OPTIONAL else _NEEDED
            hidden = towards < depth[int(row), int(column)] - 15.0
            edge = -0.03 * width if at_left else 1.03 * width
            axes.plot([edge, column], [text_row, row], color=colour, lw=0.7, clip_on=False)
            axes.plot(
                [column], [row], "o", ms=5.5, mew=1.1, clip_on=False,
                mfc="none" if hidden else colour, mec=colour if hidden else "white",
            )  # fmt: skip
            axes.text(
                edge, text_row, f"{name} " if at_left else f" {name}", color=colour, fontsize=9.5,
                ha="right" if at_left else "left", va="center",
            )  # fmt: skip
    axes.set(xlim=(0, width), ylim=(height, 0))


def _apart(rows: Sequence[float], least: float) -> list[float]:
    """Rows moved down where they would come nearer than so much to the one above."""
    placed: list[float] = []
    for row in rows:
        placed.append(max(row, placed[-1] + least) if placed else row)
    return placed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
