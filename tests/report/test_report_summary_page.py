"""The summary page and its thumbnails: offline, safe against what files contain, quick with thousands of rows."""

from __future__ import annotations

import csv
import io
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import MappingProxyType

import numpy as np
import pytest
from PIL import Image

from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.summary import FIGURES, Flag, SummaryRow
from breastmorph.mesh.geometry import Similarity
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.result import Registration
from breastmorph.report.registration_pictures import SIZE, ScanPictures, thumbnail
from breastmorph.report.summary_page import summary_html, write_summaries
from breastmorph.scan.scan import Scan
from breastmorph.template import default_template
from small_cohort import random_shapes, write_registered
from torso import torso


class Reader(HTMLParser):
    """Tags with their attributes, and the text of the table's cells by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert tag in self.open, f"</{tag}> closes nothing"
        self.open = self.open[: len(self.open) - 1 - self.open[::-1].index(tag)]

    def handle_data(self, data):
        if self.rows and any(tag in self.open for tag in ("td", "th")):
            self.rows[-1][-1] += data


def row(name: str, **changes) -> SummaryRow:
    figures = {figure.name: 0.123456 for figure in FIGURES}
    return replace(SummaryRow(name, "registered", figures, 1.5, "a warning"), **changes)


def test_one_row_a_scan_with_figures_flags_and_message():
    flag = Flag("angle_distortion", 5.0, "triangle angles change by 13 degrees; look at the landmarks")
    rows = [row("a"), row("b", flags=(flag,)), row("c", status="failed", figures={}, message="no landmarks")]
    read = Reader(summary_html(rows, "Registrations", {"a.png", "b.png", "c.png"}))
    head, *body = read.rows
    assert head[:4] == ["picture", "scan", "status", "flags"]
    assert [cells[1] for cells in body] == ["a", "b", "c"]
    assert len({len(cells) for cells in read.rows}) == 1  # every row has a cell under every heading
    assert body[0][4] == "0.123"
    assert flag.text in body[1][3]
    assert body[2][2:5] == ["failed", "no landmarks", ""]
    states = [attributes.get("class") for tag, attributes in read.tags if tag == "tr"]
    assert states == [None, "fine", "flagged", "failed"]
    pictures = [attributes for tag, attributes in read.tags if tag == "img"]
    assert [picture["src"] for picture in pictures] == ["thumbnails/a.png", "thumbnails/b.png"]
    assert all(picture["loading"] == "lazy" and picture["alt"] for picture in pictures)
    assert ("td", {"class": "odd"}) in read.tags


def test_the_page_asks_nobody_for_anything():
    text = summary_html([row("a")], "Registrations", {"a.png"})
    read = Reader(text)
    addresses = [
        value
        for _, attributes in read.tags
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "data")
    ]
    assert addresses == ["thumbnails/a.png"]
    assert not re.search(r"https?:|//cdn|@import|url\(|fetch|XMLHttp", text)


def test_nothing_from_a_file_can_become_code():
    nasty = "<script>alert('x')</script>\"'&{title}"
    flag = Flag("overlap", 4.0, nasty)
    rows = [row(nasty, message=nasty, flags=(flag,))]
    text = summary_html(rows, nasty, {f"{nasty}.png", nasty.rpartition("/")[2] + ".png"})
    read = Reader(text)
    assert [tag for tag, _ in read.tags].count("script") == 1  # our own
    assert read.rows[1][1] == nasty
    assert nasty in read.rows[1][3]
    pictures = [attributes["src"] for tag, attributes in read.tags if tag == "img"]
    assert all(not set("<>\"' ") & set(source) for source in pictures)


def test_headings_are_buttons_so_that_the_keyboard_reaches_them():
    read = Reader(summary_html([row("a")], "Registrations", set()))
    buttons = [attributes for tag, attributes in read.tags if tag == "button"]
    assert len(buttons) == len(read.rows[0]) - 1  # all but the picture
    assert {button["data-kind"] for button in buttons} == {"text", "number"}
    shown = [
        attributes["value"]
        for tag, attributes in read.tags
        if tag == "input" and attributes["type"] == "radio"
    ]
    assert shown == ["all", "flagged", "failed"]


@pytest.mark.slow
def test_thousands_of_rows_stay_small():
    rows = [row(f"{k:05d}") for k in range(5000)]
    text = summary_html(rows, "Registrations", {f"{k:05d}.png" for k in range(0, 5000, 500)})
    assert text.count('<tr class="fine">') == 5000
    assert text.count("<img") == 10  # no dead links
    assert len(text) < 3e6


def test_a_registered_folder_is_summarised_with_its_outlier(tmp_path, small_template):
    shapes = random_shapes(12, size=3.0)
    right = small_template.mesh.vertices[:, 0] < 0
    shapes[4][right] += np.random.default_rng(0).normal(scale=4.0, size=(right.sum(), 3))
    write_registered(tmp_path / "out", shapes)
    (tmp_path / "out" / "thumbnails").mkdir()
    (tmp_path / "out" / "thumbnails" / "003.png").touch()
    outcomes = [Outcome(f"{k:03d}", "unchanged", {"metrics": {}}) for k in range(12)]
    outcomes.append(Outcome("lost", "failed", {}, "there is no landmark file"))
    rows = write_summaries(iter(outcomes), tmp_path / "out")
    flagged = {one.id: {flag.figure for flag in one.flags} for one in rows if one.flags}
    assert "stretch_right" in flagged["004"]
    with open(tmp_path / "out" / "summary.csv") as file:
        table = {line["id"]: line for line in csv.DictReader(file)}
    assert "right breast" in table["004"]["flags"]
    assert table["lost"]["message"] == "there is no landmark file"
    text = (tmp_path / "out" / "summary.html").read_text()
    assert re.findall(r'<img[^>]* src="([^"]*)"', text) == ["thumbnails/003.png"]  # only what is there
    body = Reader(text).rows[1:]
    assert [cells[1] for cells in body] == [one.id for one in rows]


def test_a_folder_without_results_still_has_a_summary(tmp_path):
    write_summaries([Outcome("a", "failed", {}, "empty file")], tmp_path)
    assert "empty file" in (tmp_path / "summary.html").read_text()
    assert not (tmp_path / "cohort").exists()


# -- thumbnails ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registration():
    """A scan and a result that lies exactly on it."""
    mesh, landmarks = torso(edge=6)
    nipples = np.stack([landmarks["nipple_left"], landmarks["nipple_right"]])
    away = np.linalg.norm(mesh.vertices[:, None] - nipples, axis=2).min(axis=1)
    mask = 0.5 * np.exp(-((away / 60.0) ** 2))
    result = Registration(
        "a", mesh, Similarity(), mask, mask, "", (), MappingProxyType({}), MappingProxyType({}), (),
        RegistrationParameters(), default_template(), landmarks, Similarity(),
    )  # fmt: skip
    return Scan("a", mesh, landmarks), result


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


def test_a_thumbnail_shows_scan_and_result_with_the_patients_left_on_the_right(registration):
    scan, result = registration
    picture = pixels(thumbnail(scan, result))
    assert picture.shape == (SIZE[1], SIZE[0], 3)
    halves = picture[:, : SIZE[0] // 2], picture[:, SIZE[0] // 2 :]
    for half in halves:
        assert 0.3 < (half.min(axis=2) < 250).mean() < 0.95  # a body before a white background
    blue = halves[1][:, :, 2] - halves[1][:, :, 0] > 20
    assert blue.sum() > 50  # rings, on the result only
    assert (halves[0][:, :, 2] - halves[0][:, :, 0] > 20).sum() == 0
    only_left = scan.mesh.vertices[:, 0] > 0
    one_sided = replace(result, template_mask=np.where(only_left, result.template_mask, 0.0))
    half = pixels(thumbnail(scan, one_sided))[:, SIZE[0] // 2 :]
    columns = np.flatnonzero((half[:, :, 2] - half[:, :, 0] > 20).sum(axis=0))
    assert columns.min() > half.shape[1] / 2


def test_rings_move_with_the_correspondence_although_the_surface_is_the_same(registration):
    scan, result = registration
    lower = np.interp(scan.mesh.vertices[:, 1], [-210, 130], [0.5, 0.0])
    moved = replace(result, template_mask=lower)
    right = pixels(thumbnail(scan, result)), pixels(thumbnail(scan, moved))
    changed = np.abs(right[0] - right[1]).max(axis=2) > 30  # more than another palette does
    assert changed[:, : SIZE[0] // 2].sum() < 10  # the scan is the same
    assert changed.sum() > 200


def test_triangles_larger_than_pixels_leave_no_holes(registration):
    mesh, landmarks = torso(edge=40)
    result = replace(registration[1], mesh=mesh, template_mask=np.zeros(mesh.n_vertices))
    scan = Scan(
        "a", mesh, landmarks.only(["sternal_notch"])
    )  # no dots with their white rims where rows are looked at
    picture = pixels(thumbnail(scan, result))[:, : SIZE[0] // 2]
    body = picture.min(axis=2) < 250
    rows = range(SIZE[1] // 3, 2 * SIZE[1] // 3)
    for one in (body[k] for k in rows):
        inside = one[np.flatnonzero(one)[0] : np.flatnonzero(one)[-1] + 1]
        assert inside.all()


def test_pictures_travel_to_other_processes_and_say_what_they_make(registration):
    made = pickle.loads(pickle.dumps(ScanPictures()))(*registration)
    assert tuple(made) == ScanPictures().places("a") == ("thumbnails/a.png",)
    assert made["thumbnails/a.png"].startswith(b"\x89PNG")
    assert ScanPictures(quality_sheet=True).places("a") == ("thumbnails/a.png", "sheets/a.png")
