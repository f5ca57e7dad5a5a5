"""Make the pictures of docs/pictures from a finished demo study.

    breastmorph demo
    python scripts/docs_pictures.py demo

Everybody on them is synthetic.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from breastmorph.clinical.measure.examination import Examiner
from breastmorph.cohort import load_cohort
from breastmorph.mesh.files.writing import write_file
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.registration.pipeline import Registrar
from breastmorph.report.contact_sheet import scan_sheet
from breastmorph.report.figures.picture_panels import Page, cameras, height_of
from breastmorph.report.figures.printing import house_style, save_figure
from breastmorph.report.quality_sheet import quality_sheet_png
from breastmorph.report.render import Camera, View, look, render
from breastmorph.report.symmetry_map import save_symmetry_map
from breastmorph.scan.check import load_scan
from breastmorph.template.files import default_template

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).parents[1] / "docs" / "pictures"
_WIDEST = 1200  # pixels
_COLOURS = 160  # a palette: a third of the bytes, and no visible difference on shaded skin
# A figure of the study, its name in the docs.
_FIGURES = {
    "mask-contours": "masks",
    "modes": "modes",
    "variation": "variation",
    "experiment-1-curves": "curves",
    "editing": "editing",
    "prediction": "prediction",
}
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


def main(study: Path) -> None:
    """Draw and copy all pictures."""
    landmark_picture(study / "cohort" / "truth" / "topology.npz")
    for figure, name in _FIGURES.items():
        keep((study / "figures" / f"{figure}.png").read_bytes(), name)
    scans = study / "cohort"
    scan = load_scan(scans / "scans" / "003.ply", scans / "landmarks" / "003.json")
    keep(quality_sheet_png(scan, Registrar(default_template()).register(scan)), "registration")
    first = [
        load_scan(scans / "scans" / f"{k:03d}.ply", scans / "landmarks" / f"{k:03d}.json") for k in range(6)
    ]
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "sheet.png"
        scan_sheet(first, sheet)
        keep(sheet.read_bytes(), "phantom")
    symmetry_picture(study / "registered" / "masks", "004")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for page, name, size in (
            (study / "report.html", "quickstart-report", (1000, 700)),
            (study / "registered" / "masks" / "summary.html", "quickstart-summary", (1560, 700)),
        ):
            tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
            tab.goto(page.resolve().as_uri())
            tab.wait_for_timeout(1500)
            keep(tab.screenshot(), name)
        browser.close()


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


def keep(data: bytes, name: str, *, all_colours: bool = False) -> None:
    """A PNG no wider and, unless told otherwise, with no more colours than a page needs."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    if picture.width > _WIDEST:
        picture = picture.resize(
            (_WIDEST, round(picture.height * _WIDEST / picture.width)), Image.Resampling.LANCZOS
        )
    small = io.BytesIO()
    if not all_colours:
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
            axes = Page(figure).picture(render(mesh, camera=camera), camera, _SPACE, 0.05)
            _name_points(axes, mesh, camera, {name: points[name] for name in shown})
            (written,) = save_figure(figure, Path(folder) / name, kinds=("png",), dpi=170)
            keep(written.read_bytes(), name)


def _name_points(axes: Axes, mesh: TriangleMesh, camera: Camera, points: Mapping[str, Floats]) -> None:
    """Dots with lines to their names beside the picture; a dot that the body hides is hollow."""
    depth = look(mesh, camera).depth
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
