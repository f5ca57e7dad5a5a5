"""The page in another language: its catalogue has every text of the page, and nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files

from breastmorph.explorer.picking import guide
from breastmorph.foundation.words import MEASURES, PAIRS_IN_WORDS
from breastmorph.model.standing import LEVELS
from breastmorph.report.cards import DEMO_MODEL
from breastmorph.scan.scan import SIDES

PAGE = files("breastmorph.explorer").joinpath("page")
STRING = r'"((?:[^"\\]|\\.)*)"'
OWN = {"English", "Deutsch", "?", "BreastMorph", "STL", "PLY", "OBJ", "GLB", "BreastMorph explorer"}
# What the server says in single words.
FROM_SERVER = {
    *MEASURES.values(),
    *PAIRS_IN_WORDS.values(),
    *LEVELS,
    DEMO_MODEL.short,
    *SIDES,
    *(one[name] for one in guide() for name in ("label", "text")),
}


class Texts(HTMLParser):
    """Texts and spoken attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._silent = False

    def handle_starttag(self, tag, attrs):
        self._silent = tag in ("code", "script", "style")
        self._add(*(value for name, value in attrs if name in ("aria-label", "title", "placeholder")))

    def handle_endtag(self, tag):
        self._silent = False

    def handle_data(self, data):
        if not self._silent:
            self._add(data)

    def _add(self, *texts):
        self.found |= {plain for text in texts if re.search(r"[A-Za-z]", plain := " ".join(text.split()))}


def tagged(source: str) -> set[str]:
    """Keys of t`...${value}...`, with what stands inside the values."""
    found = set()
    for start in re.finditer(r"(?<![\w.$])t`", source):
        key, at, values = "", start.end(), 0
        while source[at] != "`":
            if source.startswith("${", at):
                key += f"{{{values}}}"
                values, depth, at = values + 1, 1, at + 2
                inside = 0
                while depth:
                    inside ^= source[at] == "`"
                    depth += (source[at] == "{") - (source[at] == "}")
                    at += 1
            else:
                step = 6 if source.startswith("\\u", at) else 1
                key += json.loads(f'"{source[at : at + step]}"') if step == 6 else source[at]
                at += step
        found.add(key)
    return found


def of_page() -> set[str]:
    html = Texts()
    html.feed(PAGE.joinpath("index.html").read_text(encoding="utf-8"))
    found = html.found - OWN
    for file in PAGE.iterdir():
        if not file.name.endswith(".js") or file.name.startswith("words_"):
            continue
        source = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.S)
        said = re.findall(rf"(?<![\w.$])(?:t|word)\({STRING}", source)
        pairs = re.findall(rf"(?<![\w.$])count\([^,]+, {STRING}, {STRING}\)", source)
        texts = {*said, *(one for pair in pairs for one in pair)}
        found |= {json.loads(f'"{one}"') for one in texts} | tagged(source)
    return {one for one in found if re.search(r"[A-Za-z]{2}", one)} | FROM_SERVER


def catalogue(language: str) -> dict[str, str]:
    text = PAGE.joinpath(f"words_{language}.js").read_text(encoding="utf-8")
    body = text[text.index("{") : text.rindex("}") + 1]
    return json.loads(re.sub(r",\s*}$", "}", body))


def test_the_german_catalogue_is_complete_and_has_nothing_else():
    wanted, known = of_page(), catalogue("de")
    assert sorted(wanted - set(known)) == []
    assert sorted(set(known) - wanted) == []


def test_translations_keep_every_value_and_say_something():
    for text, translated in catalogue("de").items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", translated)), text
        assert translated.strip(), text
