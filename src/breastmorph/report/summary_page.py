"""How registrations look: quality sheets, thumbnails and the page over a folder."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.summary import FIGURES, SummaryRow, unexplained_stretch, write_summary
from breastmorph.cohort import load_cohort
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import write_file
from breastmorph.mask import IN_BREAST
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_angles, face_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.report.page.writing import document
from breastmorph.report.render import (
    AMOUNT,
    SKIN,
    Camera,
    Marker,
    Picture,
    View,
    as_picture,
    colormap,
    picture_grid,
    render,
    visible_surface,
)
from breastmorph.scan.scan import Scan

# --------------------------------------------------------------------------------------------------------------------
# The quality sheet of a registration: scan, result, signed distance, triangle quality
# --------------------------------------------------------------------------------------------------------------------

_VIEWS = (View(), View(yaw=45.0), View(pitch=-35.0))
_SIZE = (300, 300)
_RANGE = 3.0  # mm: ends of the signed distance's colours
_ANGLE = 30.0  # degrees: a triangle whose smallest angle falls below is shown dark


def quality_sheet_png(scan: Scan, result: Registration) -> bytes:
    """A PNG: rows are the scan, the result, signed distance, triangle quality; from three views."""
    margin = 15.0
    box = result.vertices.min(axis=0) - margin, result.vertices.max(axis=0) + margin
    distance = _signed_distance(scan.mesh, result.vertices)
    smallest = np.degrees(face_angles(result.vertices, result.mesh.faces).min(axis=1))
    by_vertex = np.full(result.mesh.n_vertices, 60.0)
    np.minimum.at(by_vertex, result.mesh.faces.ravel(), np.repeat(smallest, 3))
    markers = [Marker(point) for point in scan.landmarks.points]
    rows: list[tuple[str, TriangleMesh, Floats | None, list[Marker]]] = [
        (f"{scan.id}: scan and landmarks", scan.mesh, None, markers),
        ("template in this shape, with the scan's landmarks", result.mesh, None, markers),
        (
            f"signed distance, blue inside and red outside the scan by {_RANGE:g} mm; "
            f"mean in the breast {result.metrics['distance_inside']:.2f} mm",
            result.mesh,
            colormap(distance, -_RANGE, _RANGE),
            [],
        ),
        (
            f"smallest angle, dark blue below {_ANGLE:g} degrees; flipped {result.metrics['flipped_percent']:.2f} %",
            result.mesh,
            colormap(2 * _ANGLE - by_vertex, 0.0, 2 * _ANGLE, AMOUNT),
            [],
        ),
    ]
    cells: list[Picture] = []
    for _, mesh, colors, marks in rows:
        views = [render(mesh, view, size=_SIZE, colors=colors, markers=marks, box=box) for view in _VIEWS]
        cells.append(np.concatenate(views, axis=1))
    return picture_grid(cells, [caption for caption, *_ in rows], columns=2)


def _signed_distance(scan: TriangleMesh, points: Floats) -> Floats:
    """Distance of points to a scan's surface in mm, negative inside the body; 0 beyond its border, (n,)."""
    found = Surface(scan).closest(points)
    normals = face_normals(scan.vertices, scan.faces)[found.faces]
    side = np.sign(((points - found.points) * normals).sum(axis=1))
    return np.where(found.on_boundary, 0.0, side * found.distances)


# --------------------------------------------------------------------------------------------------------------------
# Thumbnails of registrations: the scan beside the template in its shape, drawn in a few hundredths of a second
# --------------------------------------------------------------------------------------------------------------------

_CELL = (150, 160)  # pixels of one of the two pictures
SIZE = (2 * _CELL[0], _CELL[1])
_FINE = 2  # rays per pixel along each side
_LIGHT = (-0.42, 0.51, 0.75)  # from above left of the camera
_RINGS = (IN_BREAST, 0.3, 0.4)  # levels of the mask
_TINT = (0.80, 0.90, 1.0)
_RING_WIDTH = 1.6  # fine pixels
_RING = (0.16, 0.32, 0.52)
_DOT = 4.0  # fine pixels: radius of a landmark


@dataclass(frozen=True)
class ScanPictures:
    """Which pictures belong to a scan; called where the scan is registered, so that it can be sent there.

    Attributes
    ----------
    quality_sheet : bool
        Also the large sheet of :mod:`breastmorph.report.summary_page`.
    """

    quality_sheet: bool = False

    def __call__(self, scan: Scan, result: Registration) -> dict[str, bytes]:
        """PNG files by their place in the output folder."""

        made = {thumbnail_place(scan.id): thumbnail(scan, result)}
        if self.quality_sheet:
            made[f"sheets/{scan.id}.png"] = quality_sheet_png(scan, result)
        return made

    def places(self, scan_id: str) -> tuple[str, ...]:
        """The files that a call will give for a scan."""
        return (thumbnail_place(scan_id), *((f"sheets/{scan_id}.png",) if self.quality_sheet else ()))


def thumbnail_place(scan_id: str) -> str:
    """Where a scan's thumbnail lies in the output folder."""
    return f"thumbnails/{scan_id}.png"


def thumbnail(scan: Scan, result: Registration) -> bytes:
    """A PNG of the scan with its landmarks and of the result with the template's rings, from the front."""
    from PIL import Image, ImageDraw, ImageFont

    camera = Camera.around(result.vertices, View(), _CELL).finer(_FINE)
    cells = [
        _draw(scan.mesh, camera, scan.landmarks.points),
        _draw(result.mesh, camera, scan.landmarks.points, result.template_mask),
    ]
    picture = Image.fromarray(np.concatenate(cells, axis=1))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=13)
    for left in (0, _CELL[0]):  # seen from the front, the patient's right is on the left
        draw.text((left + 5, 3), "R", fill="black", font=font)
        draw.text((left + _CELL[0] - 13, 3), "L", fill="black", font=font)
    buffer = io.BytesIO()
    picture.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG")
    return buffer.getvalue()


def _draw(mesh: TriangleMesh, camera: Camera, landmarks: Floats, mask: Floats | None = None) -> Picture:
    seen = visible_surface(mesh, camera)
    # Both sides are lit alike: at this size the inside behind a hole is for the large sheet.
    light = np.abs(face_normals(mesh.vertices, mesh.faces[seen.faces]) @ _LIGHT)
    picture = np.ones((*seen.hit.shape, 3))
    picture[seen.hit] = (0.35 + 0.65 * light)[:, None] * SKIN
    if mask is not None:
        level = np.where(seen.hit, seen.as_image(mask), 0.0)
        picture[level > _RINGS[0]] *= _TINT
        slope = np.maximum(np.hypot(*np.gradient(level)), 1e-9)
        for ring in _RINGS:
            picture[seen.hit & (np.abs(level - ring) < _RING_WIDTH / 2 * slope)] = _RING
    seen.mark(picture, [Marker(point) for point in landmarks], _DOT)
    return as_picture(picture, _FINE)


# --------------------------------------------------------------------------------------------------------------------
# ``summary.html``: all registrations of a folder on one page, to be sorted, filtered and looked at
# --------------------------------------------------------------------------------------------------------------------

_SHOWN = 0.75  # of a thumbnail's size: its pixels are fine enough for sharp screens


def write_summaries(outcomes: Iterable[Outcome], out: Path) -> list[SummaryRow]:
    """Write ``summary.csv`` and ``summary.html`` of a registered folder; returns the rows.

    Parameters
    ----------
    outcomes : iterable of Outcome
        Of all scans of the folder, also those that an earlier run registered.
    out : Path
        The output folder of the registration. Its cohort file is brought up to date on the way.
    """
    try:
        cohort = load_cohort(out)
    except BreastMorphError:  # nothing registered yet, or not readable: the figures of the records are left
        stretch = {}
    else:
        found = unexplained_stretch(cohort.shapes(), cohort.template, cohort.absent)
        stretch = dict(zip(cohort.ids, found, strict=True))
    rows = write_summary(outcomes, out / "summary.csv", stretch)
    thumbnails = {place.name for place in (out / "thumbnails").glob("*.png")}
    page = summary_html(rows, f"Registrations in {out.resolve().name}", thumbnails)
    write_file(out / "summary.html", page.encode("utf-8", "replace"))
    return rows


def summary_html(rows: Sequence[SummaryRow], title: str, thumbnails: set[str]) -> str:
    """The page as text.

    Parameters
    ----------
    rows : sequence of SummaryRow
    title : str
    thumbnails : set of str
        File names that exist.
    """
    flagged = sum(bool(row.flags) for row in rows)
    failed = sum(row.status == "failed" for row in rows)
    choices = (("all", len(rows)), ("flagged", flagged), ("failed", failed))
    heads = [
        *(("scan", "text"), ("status", "text"), ("flags", "number")),
        *((figure.title, "number") for figure in FIGURES),
        ("seconds", "number"),
    ]
    return document(
        "summary.html.j2",
        title,
        styles=[_STYLE],
        scripts=[_SCRIPT],
        images="'self' file: data:",
        choices=choices,
        heads=heads,
        size=[round(_SHOWN * side) for side in SIZE],
        rows=[_row(row, thumbnails) for row in rows],
    )


def _row(row: SummaryRow, thumbnails: set[str]) -> tuple[SummaryRow, str, str, str, list[tuple[str, bool]]]:
    """The row, its picture's address, its state, its worst flag, and its figures: each a text, and if it is odd."""
    place = thumbnail_place(row.id)
    has_picture = row.status != "failed" and place.rpartition("/")[2] in thumbnails
    state = row.status if row.status == "failed" else "flagged" if row.flags else "fine"
    worst = max((flag.score for flag in row.flags), default=0.0)
    unusual = {flag.figure for flag in row.flags}
    figures = [(_short(row.figures.get(figure.name)), figure.name in unusual) for figure in FIGURES]
    return (
        row,
        quote(place) if has_picture else "",
        state,
        f"{worst:.3f}",
        [*figures, (_short(row.seconds), False)],
    )


def _short(value: float | None) -> str:
    """Three digits, but no more than three decimals: nobody looks at less than a thousandth of a millimetre."""
    return "" if value is None else f"{round(value, 3):.3g}"


_STYLE = """
body { font: 13px/1.35 system-ui, sans-serif; margin: 1.5rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.3rem; margin: 0 0 .3rem }
p { max-width: 60rem; margin: .3rem 0 .8rem }
form { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; margin-bottom: .8rem }
table { border-collapse: collapse }
thead th { position: sticky; top: 0; background: #f1f3f5; border-bottom: 2px solid #adb5bd; padding: 0;
  vertical-align: bottom; text-align: left }
thead button { font: inherit; font-weight: 600; border: 0; background: none; padding: .35rem; cursor: pointer;
  text-align: left }
thead button:focus-visible { outline: 2px solid #1864ab }
th[aria-sort=ascending] button::after { content: " ▲" }
th[aria-sort=descending] button::after { content: " ▼" }
td, tbody th { border-bottom: 1px solid #dee2e6; padding: .2rem .35rem; text-align: left; vertical-align: top;
  font-variant-numeric: tabular-nums }
td:nth-child(4) { min-width: 18rem; max-width: 26rem; overflow-wrap: anywhere }
tbody th { overflow-wrap: anywhere; max-width: 12rem }
td ul { margin: 0 0 .2rem; padding-left: 1.1rem }
td img { display: block }
tr.flagged > th, td.odd { background: #fff3bf }
td.odd { font-weight: 600 }
tr.failed > th, tr.failed > td { background: #ffe3e3 }
@media print {
  @page { size: landscape; margin: 8mm }
  body { margin: 0; font-size: 8px; -webkit-print-color-adjust: exact; print-color-adjust: exact }
  form { display: none }
  thead { display: table-header-group }
  thead th { position: static }
  thead button { padding: 1px 2px }
  td, tbody th { padding: 1px 3px }
  tr { break-inside: avoid }
  td img { width: 120px; height: auto }
  td:nth-child(4) { min-width: 9rem; max-width: 16rem }
}
"""

_SCRIPT = """
const body = document.querySelector("tbody"), rows = [...body.rows], form = document.querySelector("form");
const value = (row, column, kind) => {
  const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
  return kind === "text" ? text : text === "" ? NaN : Number(text);
};
document.querySelectorAll("thead button").forEach(button => button.addEventListener("click", () => {
  const head = button.parentElement, kind = button.dataset.kind;
  const down = head.ariaSort === "none" ? kind === "number" : head.ariaSort === "ascending";
  document.querySelectorAll("thead th[aria-sort]").forEach(other => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = rows.map(row => [value(row, head.cellIndex, kind), row]);
  const order = (a, b) => kind === "text" ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
  keyed.sort(([a], [b]) => Number.isNaN(a) || Number.isNaN(b)  // rows without a value come last either way
    ? Number.isNaN(a) - Number.isNaN(b) : (down ? -1 : 1) * order(a, b));
  body.append(...keyed.map(([, row]) => row));
}));
const show = () => {
  const state = form.elements.show.value, part = form.elements.part.value.toLowerCase();
  for (const row of rows) {
    row.hidden = (state !== "all" && row.className !== state)
      || !row.cells[1].textContent.toLowerCase().includes(part);
  }
};
form.addEventListener("input", show);
form.addEventListener("submit", event => event.preventDefault());
show();
"""
