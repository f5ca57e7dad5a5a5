"""The built site: no warnings, every link and picture leads somewhere, and nothing is asked of another host."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from docs_world import ROOT, shared

pytestmark = pytest.mark.slow

NEEDED = ("mkdocs", "material", "mkdocstrings")
LOADED = {  # what a browser asks for by itself: the element and the attribute that says where
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("link", "href"),
}
WITH_SCALE = (
    "masks",
    "modes",
    "variation",
    "prediction",
    "prediction-sheet",
    "registration",
    "fit",
    "symmetry",
)
NOT_LOADED = {"canonical", "next", "prev", "edit"}  # rel of links that only say something


@dataclass
class Found(HTMLParser):
    """What a page refers to."""

    page: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    pictures_without_words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img" and not values.get("alt"):
            self.pictures_without_words.append(values.get("src", ""))
        for element, attribute in LOADED:
            says_only = tag == "link" and values.get("rel") in NOT_LOADED
            if tag == element and values.get(attribute) and not says_only:
                self.loads.append(values[attribute])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -r requirements-dev.txt")
    return shared(tmp_path_factory, "docs-site", build)


def build(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "WARNING" not in said, said


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Found]:
    found = {path: Found(path) for path in sorted(site.rglob("*.html"))}
    return {path: page for path, page in found.items() if path.name != "404.html"}


def elsewhere(address: str) -> bool:
    return bool(urlsplit(address).scheme or address.startswith("//"))


def test_every_page_of_the_docs_is_built(site, pages):
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in pages}
    assert written <= built
    assert Path("reference/cli.html") in built


HELP = """
import json, click
from click.testing import CliRunner
from breastmorph.cli import main
asked = [(name, CliRunner().invoke(main, [name, "--help"], prog_name="breastmorph", terminal_width=80))
         for name in main.list_commands(click.Context(main))]
print(json.dumps({name: result.output for name, result in asked}))
"""


def test_commands_are_shown_with_the_help_they_have(site):
    shown = html.unescape((site / "reference" / "cli.html").read_text(encoding="utf-8"))
    # In a process of its own: click keeps the names of the help option from a command's first call.
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert "register" in said
    assert [name for name, text in said.items() if text.strip() not in shown] == []


def test_links_and_anchors_lead_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if elsewhere(link):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (
                anchor and target in pages and anchor != "__top" and anchor not in pages[target].ids
            ):
                broken.append(f"{path.name}: {link}")
    assert sum(len(page.links) for page in pages.values()) > 500
    assert not broken


def test_what_pages_load_is_there_and_ours(pages):
    loads = [(path, address) for path, page in pages.items() for address in page.loads]
    assert len(loads) > 100
    outside = [f"{path.name}: {address}" for path, address in loads if elsewhere(address)]
    assert not outside
    missing = [
        f"{path.name}: {address}"
        for path, address in loads
        if not (path.parent / unquote(urlsplit(address).path)).exists()
    ]
    assert not missing


def test_styles_load_nothing_from_elsewhere(site):
    styles = sorted(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text(encoding="utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), style.name


def test_pictures_are_small_and_described(pages):
    large = [path.name for path in (ROOT / "docs" / "pictures").glob("*") if path.stat().st_size > 300 * 1024]
    assert not large
    assert not [page.pictures_without_words for page in pages.values() if page.pictures_without_words]


@pytest.mark.parametrize("name", WITH_SCALE)
def test_a_colour_scale_keeps_its_colours(name):
    with Image.open(ROOT / "docs" / "pictures" / f"{name}.png") as picture:
        assert picture.mode == "RGB", "a palette shifts colours that stand for millimetres"


def test_every_picture_is_shown(pages):
    shown = {Path(urlsplit(address).path).name for page in pages.values() for address in page.loads}
    kept = {path.name for path in (ROOT / "docs" / "pictures").glob("*.png")}
    assert kept <= shown


def test_formulas_are_drawn(site):
    drawn = 0
    for path in (ROOT / "docs").rglob("*.md"):
        wanted = len(re.findall(r"^```math$", path.read_text(encoding="utf-8"), re.MULTILINE))
        page = site / path.relative_to(ROOT / "docs").with_suffix(".html")
        assert len(re.findall(r'<div class="formula"[^>]*><svg', page.read_text(encoding="utf-8"))) == wanted
        drawn += wanted
    assert drawn > 10


def test_no_page_is_wider_than_a_telephone(pages, browser):
    first, *others = pages
    wider = []
    with browser.tab(first.as_uri(), width=390, height=844) as tab:
        for path in (first, *others):
            tab.page.goto(path.as_uri())
            if tab.page.evaluate("document.documentElement.scrollWidth") > 390:
                wider.append(path.name)
        assert tab.complaints() == []
    assert not wider


def test_search_works_from_the_disk(site, browser):
    with browser.tab((site / "landmarks.html").as_uri()) as tab:
        field = tab.page.locator(".md-search__input")
        field.wait_for()
        field.click()
        field.press_sequentially("mastectomy")
        tab.page.locator(".md-search-result__item").first.wait_for()
        assert "Predicting a missing breast" in tab.page.locator(".md-search-result__list").inner_text()
        assert tab.complaints() == []
