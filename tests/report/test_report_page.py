"""Pages: everything in one file, safe against what texts contain, the same bytes for the same input."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from breastmorph.batch.summary import Flag, SummaryRow
from breastmorph.clinical.measure_table import Measure, MeasureTable
from breastmorph.explorer.server import entrance
from breastmorph.explorer.settings import Settings
from breastmorph.foundation.errors import FileProblem
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import (
    Code,
    Column,
    Figure,
    ModelSliders,
    Page,
    Reproducibility,
    Section,
    Table,
    Text,
    Verdict,
)
from breastmorph.report.page.writing import number_text, packed_model, page_html, write_page
from breastmorph.report.summary_page import summary_html
from breastmorph.scan.scan import Landmarks, Scan
from small_cohort import built, small_cohort

EVIL = "<script>alert('x')</script>\"&' </script> <!-- ]]> 日本 \u2028"
HOSTILE = "\"'><img src=x onerror=alert(1)>&\"'"  # as somebody's id
DRAWING = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="30pt"></svg>'


@cache
def small_model() -> ShapeModel:
    return built(small_cohort())


def page_of(*blocks, **others) -> Page:
    return Page("Title", (Section("Section", blocks),), **others)


class Reader(HTMLParser):
    """Elements of a page; every element is closed in its order."""

    EMPTY = frozenset(("meta", "img", "input", "link", "br"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.tags if name in (attributes.get("class") or "").split()]


def test_every_text_is_escaped():
    page = Page(
        EVIL,
        (
            Section(
                EVIL,
                (
                    Text((EVIL,)),
                    Text((EVIL,), bullets=True),
                    Code(EVIL),
                    Table(EVIL, (Column(EVIL, EVIL), "b"), ((EVIL, EVIL),), EVIL),
                    Figure(DRAWING, EVIL),
                    ModelSliders(small_model(), EVIL, modes=2),
                    Reproducibility({EVIL: {EVIL: EVIL}, "list": [EVIL]}, EVIL),
                    Section(EVIL, ()),
                ),
            ),
        ),
        EVIL,
        ((EVIL, EVIL),),
        EVIL,
    )
    read = Reader(page_html(page))
    scripts = [attributes for tag, attributes in read.tags if tag == "script"]
    running = [attributes for attributes in scripts if attributes.get("type") != "application/json"]
    plain = Reader(page_html(page_of(ModelSliders(small_model(), "caption", modes=2))))
    assert len(running) == len([t for t, a in plain.tags if t == "script" and not a.get("type")])
    assert read.texts["code"] == [EVIL]
    assert read.texts["h1"] == [EVIL]
    assert read.texts["caption"] == [f"Table 1. {EVIL}"]
    assert all(not name.startswith("on") for _, attributes in read.tags for name in attributes)


def hostile_report(folder: Path) -> str:
    table = Table(HOSTILE, (Column(HOSTILE, HOSTILE),), ((HOSTILE,),), HOSTILE)
    blocks = (Text((HOSTILE,)), table, Figure(DRAWING, HOSTILE), Reproducibility({HOSTILE: HOSTILE}, HOSTILE))
    return page_html(Page(HOSTILE, (Section(HOSTILE, blocks),), HOSTILE, ((HOSTILE, HOSTILE),), HOSTILE))


def hostile_summary(folder: Path) -> str:
    row = SummaryRow(HOSTILE, "registered", {}, 1.0, HOSTILE, (Flag("overlap", 4.0, HOSTILE),))
    return summary_html([row], HOSTILE, {f"{HOSTILE}.png"})


def hostile_cell(folder: Path) -> str:
    mesh = small_model().mean_mesh
    return Scan(HOSTILE, mesh, Landmarks.of({HOSTILE: mesh.vertices[0]}))._repr_html_()


def hostile_measures(folder: Path) -> str:
    return MeasureTable(HOSTILE, (Measure(HOSTILE, HOSTILE, 1.0, HOSTILE),), (HOSTILE,))._repr_html_()


def hostile_door(folder: Path) -> str:
    keys = SimpleNamespace(code="code")
    explorer = SimpleNamespace(settings=Settings(host=HOSTILE), keys=keys, folder=folder)
    return entrance(explorer).file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [hostile_report, hostile_summary, hostile_cell, hostile_measures, hostile_door]
)
def test_a_hostile_name_stays_a_text_on_every_kind_of_page(page, tmp_path):
    reads = [Reader(page(tmp_path))]
    reads += [Reader(attributes["srcdoc"]) for tag, attributes in reads[0].tags if tag == "iframe"]
    for read in reads:
        assert all(not name.startswith("on") for _, attributes in read.tags for name in attributes)
        assert "x" not in [attributes.get("src") for tag, attributes in read.tags if tag == "img"]
        values = [value for _, attributes in read.tags for value in attributes.values() if value]
        assert any(
            "<img src=x onerror=alert(1)>&" in text
            for texts in (*read.texts.values(), values)
            for text in texts
        )


def test_only_the_pages_own_scripts_and_styles_may_run():
    text = page_html(page_of(ModelSliders(small_model(), "caption", modes=2)))
    policy = unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        hashes = [f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in found]
        assert hashes
        assert rules[f"{tag}-src"].split() == hashes


def test_a_page_names_no_other_place():
    blocks = (
        Figure(DRAWING, "drawing"),
        ModelSliders(small_model(), "caption"),
        Reproducibility({"seed": 1}),
    )
    read = Reader(page_html(page_of(*blocks)))
    addresses = [
        value
        for _, attributes in read.tags
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "data", "poster")
    ]
    assert addresses
    assert all(address.startswith(("data:image/", "#")) for address in addresses)
    assert not re.search(r"@import|url\(\s*['\"]?http", "".join(read.texts["style"]))


def test_links_of_the_contents_lead_to_sections_and_names_are_unique():
    model = ModelSliders(small_model(), "caption", modes=2)
    page = Page("t", (Section("Same", (model, Section("Inner", (model,)))), Section("Same", (model,))))
    read = Reader(page_html(page))
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    links = [a["href"] for tag, a in read.tags if tag == "a"]
    fors = [a["for"] for tag, a in read.tags if tag in ("label", "output") and "for" in a]
    assert len(set(ids)) == len(ids)
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert len(links) == 3  # to the content and to both sections
    assert fors
    assert set(fors) <= set(ids)


def test_the_same_page_gives_the_same_bytes(tmp_path):
    page = page_of(
        Figure(DRAWING, "x"), ModelSliders(small_model(), "caption"), Reproducibility({"b": 1, "a": 2})
    )
    write_page(tmp_path / "new" / "one.html", page)
    write_page(tmp_path / "two.html", page)
    assert (tmp_path / "new" / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_verdict_has_a_word_and_a_mark_of_its_own():
    rows = tuple((verdict.name, verdict) for verdict in Verdict)
    text = page_html(page_of(Table("statements", ("statement", "verdict"), rows)))
    marks = re.findall(
        r'<span class="verdict (\w+)"><span aria-hidden="true">(.)</span> ([^<]*)</span>', text
    )
    assert [word for _, _, word in marks] == ["holds", "does not hold", "too small to matter", "not testable"]
    assert len({mark for _, mark, _ in marks}) == 4
    assert len({name for name, _, _ in marks}) == 3  # neither of the last two speaks for or against


def test_numbers_stand_to_the_right_and_texts_to_the_left():
    table = Table(
        "t",
        ("name", Column("error", "mm", 2), "count", "spread", "remark"),
        (
            ("a", 1.234, 3, "1.2 ± 2", "x"),
            ("b", None, np.int64(4), "−3 ± 4", "2 of 3"),
            ("c", np.float32(2), 5, "–", ""),
        ),
    )
    text = page_html(page_of(table))
    rows = [re.findall(r"<t[dh]([^>]*)>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    for row in rows:
        assert ["right" in attributes for attributes, _ in row] == [False, True, True, True, False]
    assert [cell for _, cell in rows[1]][:3] == ["a", "1.23", "3"]
    assert "–" in rows[2][1][1]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        *((0.12345, None, "0.123"), (12.3456, None, "12.3"), (1234.5, None, "1234"), (0, None, "0")),
        *(
            (0.0, None, "0"),
            (-2.5, 1, "−2.5"),
            (7, None, "7"),
            (3.2e-12, None, "3.2e−12"),
            (0.0001, None, "0.0001"),
        ),
        *((float("nan"), None, "–"), (float("inf"), 2, "–"), (2, 1, "2.0"), (-0.2, None, "−0.200")),
    ],
)
def test_numbers_are_short(value, digits, text):
    assert number_text(value, digits) == text


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2 columns"):
        Table("t", ("a", "b"), (("only",),))


def test_packed_positions_are_exact_to_a_twentieth_of_a_millimetre():
    model = small_model()
    packed = packed_model(model, 5)

    def values(part):
        return np.frombuffer(b64decode(part["values"]), "<i2").astype(float).reshape(-1, 3) * part["scale"]

    kind = "<u4" if packed["faces"]["wide"] else "<u2"
    faces = np.frombuffer(b64decode(packed["faces"]["values"]), kind).reshape(-1, 3)
    coefficients = np.array([3.0, -3.0, 2.0, 1.0, -3.0])
    shape = values(packed["mean"]) + packed["middle"]
    for amount, mode in zip(coefficients, packed["modes"], strict=True):
        shape += amount * values(mode)
    np.testing.assert_array_equal(faces, model.faces)
    np.testing.assert_allclose(shape, model.instance(coefficients * model.deviations[:5]), atol=0.05)
    np.testing.assert_allclose(packed["shares"], model.variances[:5] / model.variances.sum())


def test_a_model_without_modes_or_variance_still_has_a_page():
    model = small_model().truncate(0)
    still = ShapeModel(model.mean, np.zeros((model.mean.size, 1)), np.zeros(1), model.faces)
    assert '<input type="range"' not in page_html(page_of(ModelSliders(model, "none")))
    assert "0.0 % of variance" in page_html(page_of(ModelSliders(still, "flat")))


def test_the_record_is_in_the_page_word_by_word():
    record = {
        "seed": np.int64(7),
        "version": "1.2",
        "parameters": MappingProxyType({"fit": {"weights": (1.5, float("nan"))}, "name": EVIL}),
        "inputs": {"a.ply": "0" * 64},
    }
    text = page_html(page_of(Reproducibility(record, "study.json")))
    found = json.loads(re.search(r'<script type="application/json" class="record">(.*?)</script>', text)[1])
    assert found == {
        "seed": 7,
        "version": "1.2",
        "parameters": {"fit": {"weights": [1.5, None]}, "name": EVIL},
        "inputs": {"a.ply": "0" * 64},
    }
    read = Reader(text)
    assert read.texts["summary"] == ["parameters 2 entries", "inputs 1 entry"]
    assert "fit › weights" in "".join(read.texts["th"])


def test_a_figure_is_loaded_as_drawing_or_picture(tmp_path):
    picture = b"\x89PNG\r\n\x1a\n" + bytes(8) + (400).to_bytes(4, "big") + (300).to_bytes(4, "big")
    (tmp_path / "both.v1.svg").write_bytes(DRAWING)
    (tmp_path / "both.v1.png").write_bytes(picture)
    (tmp_path / "large.svg").write_bytes(DRAWING + b" " * 2_000_000)
    (tmp_path / "large.png").write_bytes(picture)
    assert Figure.load(tmp_path / "both.v1", "c").kind == "image/svg+xml"
    assert Figure.load(tmp_path / "large", "c").kind == "image/png"
    text = page_html(page_of(Figure.load(tmp_path / "both.v1", "c"), Figure.load(tmp_path / "large", "c")))
    assert 'width="120" height="40"' in text
    assert 'width="400" height="300"' in text
    with pytest.raises(FileProblem, match="no such figure"):
        Figure.load(tmp_path / "missing", "c")


def test_a_figure_of_an_unknown_kind_is_refused():
    with pytest.raises(FileProblem, match="neither PNG, JPEG nor SVG"):
        page_html(page_of(Figure(b"<html>", "c")))


def test_a_page_without_a_view_is_small():
    assert len(page_html(page_of(Text(("Hello",))))) < 20_000


# --- what a paper is written from ---------------------------------------------------------------------------------


def test_figures_and_tables_are_counted_and_appendices_have_letters():
    table, figure = Table("values", ("a", "b"), (("x", 1.0),)), Figure(DRAWING, "drawn")
    inner = Section("inner", (replace(table, caption="second"), replace(figure, caption="again")))
    page = Page("Title", (Section("one", (figure, table, inner)), Section("more", (), appendix=True)))
    text = page_html(page)
    read = Reader(text)
    assert [words.split(".")[0] for words in read.texts["caption"]] == ["Table 1", "Table 2"]
    assert [words.split(".")[0] for words in read.texts["figcaption"]] == ["Figure 1", "Figure 2"]
    assert 'href="#section-A"' in text
    assert 'id="section-A"' in text
    assert {"figure-1", "figure-2", "table-2"} <= {a.get("id") for _, a in read.tags}


def test_a_picture_stands_before_everything_else():
    text = page_html(
        page_of(Text(("words",)), picture=Figure(DRAWING, "mean"), downloads=(("all", "all.zip"),))
    )
    assert text.index("<img") < text.index("<nav") < text.index("words</p>")
    assert '<a href="all.zip" download>' in text


def test_a_page_can_be_read_in_the_dark_and_is_printed_on_white():
    text = page_html(page_of(Text(("words",))))
    assert "@media screen and (prefers-color-scheme: dark)" in text  # paper is not the screen


def test_files_of_a_figure_are_offered_beside_it(tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    for ending in (".svg", ".pdf", ".png", ".csv"):
        (folder / f"curves{ending}").write_bytes(DRAWING)
    figure = Figure.load(folder / "curves", "caption")
    assert [file.suffix for file in figure.files()] == [".pdf", ".svg", ".png", ".csv"]
    text = page_html(page_of(figure))
    for ending in ("pdf", "svg", "png", "csv"):
        assert f'href="figures/curves.{ending}"' in text
    assert str(tmp_path) not in text
    assert page_html(page_of(replace(figure, file=None))).count("curves.") == 0
