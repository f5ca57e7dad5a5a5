"""The page in another language: its catalogue has every text of the page, and nothing else."""

from __future__ import annotations

import ast
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from string import Formatter

from breastmorph.explorer.answers import Name, Spoken, sentences, spoken
from breastmorph.explorer.picking import guide
from breastmorph.foundation import words_de
from breastmorph.foundation.errors import Finding
from breastmorph.foundation.files import damaged as damaged_file
from breastmorph.foundation.words import LANDMARKS, MEASURES, PAIRS_IN_WORDS
from breastmorph.foundation.words_de_raised import RAISED
from breastmorph.foundation.words_of_models import CATALOGUE
from breastmorph.model.standing import LEVELS
from breastmorph.report.cards import DEMO_MODEL
from breastmorph.scan.scan import SIDES

PAGE = files("breastmorph.explorer").joinpath("page")
STRING = r'"((?:[^"\\]|\\.)*)"'
OWN = {"English", "Deutsch", "?", "BreastMorph", "STL", "PLY", "OBJ", "GLB", "BreastMorph explorer"}
# What the server says in single words.
FROM_SERVER = {
    "an earlier scan",  # what a prediction was given
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


def of_requests() -> set[str]:
    """What the server says of requests that it cannot answer now, and of jobs; what has values in it stays English."""
    found = set()
    for file in files("breastmorph.explorer").iterdir():
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if file.name.endswith(".py") else ()
        for node in nodes:
            if isinstance(node, ast.Call):
                said = [
                    one.value
                    for one in node.args
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                # A bad request without a remedy of its own is what no page sends.
                if called in ("not_now", "there", "RequestProblem", "at") or (
                    called == "bad_request" and len(said) > 1
                ):
                    found |= set(said)
    return found


def catalogue(language: str) -> dict[str, str]:
    text = PAGE.joinpath(f"words_{language}.js").read_text(encoding="utf-8")
    body = text[text.index("{") : text.rindex("}") + 1]
    return json.loads(re.sub(r",\s*}$", "}", body))


def test_the_german_catalogue_is_complete_and_has_nothing_else():
    wanted, known = of_page() | of_requests(), catalogue("de")
    assert sorted(wanted - set(known)) == []
    assert sorted(set(known) - wanted) == []


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_finding_that_the_page_can_tell_is_told_in_german():
    only_elsewhere = (
        "study/",
        "privacy/",
        "cannot-listen/",
    )  # pages of studies, releases and the command itself
    named = {
        "other-cohort",
        "no-table",
        "linear-hold",
        "too-few-subjects",
        "subject-not-made",
        "no-repeatability",
    }
    named |= {"too-few-visits", "nothing-repeated", "few-repeated", "copies", "mirrored", "unlike-others"}
    named |= {
        "unit-of-model",
        "missing/file",
        "register-again",
        "not-among-inputs",
    }  # of builds and `--verify`
    named |= {
        f"unreadable/{one}"
        for one in ("other-content", "learnt", "other-learnt", "no-record", "changed-record")
    }
    wanted = {name for name in CATALOGUE if not name.startswith(only_elsewhere)} - named
    assert set(words_de.SENTENCES) == wanted
    for name, translated in words_de.SENTENCES.items():
        english = [text if isinstance(text, str) else text["page"] for text in CATALOGUE[name]]
        for said, so in zip(english, translated, strict=True):
            assert bool(said) == bool(so), name
            assert fields(so) <= fields(said) | fields(english[0]), name
            assert fields(said) - fields(so) <= {"what"}, name  # an ending that German has elsewhere
    for known, german in ((MEASURES, words_de.MEASURES), (PAIRS_IN_WORDS, words_de.PAIRS_IN_WORDS)):
        assert set(known) == set(german)
    assert set(words_de.LANDMARKS) >= set(LANDMARKS)


# Where errors are raised that whoever works on the page may meet; words of commands, builds and releases stay English.
MET = (
    *(
        "foundation/files.py",
        "mesh/files",
        "mesh/triangle_mesh.py",
        "scan/landmark_files.py",
        "scan/frame.py",
    ),
    *("scan/scan.py", "scan/check.py", "registration/result.py", "mask.py", "model/fit_steps.py"),
    *(
        "model/procrustes.py",
        "explorer",
        "clinical/prediction.py",
        "clinical/predictor.py",
        "clinical/volume.py",
    ),
    *("clinical/editing.py", "clinical/patient.py"),
)
RAISING = {"FileProblem", "MeshProblem", "LandmarkProblem", "BreastMorphError", "truncated", "damaged"}
AT_START = {  # of the demo model as it is built
    "the demo model keeps the scores of its subjects",
    "Build it with them",
}


def template(node: ast.expr, known: dict[str, str]) -> str:
    """A text of the source with {} for its values; empty where it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    return known.get(node.id, "") if isinstance(node, ast.Name) else ""


def raised() -> set[str]:
    """Causes and remedies of all errors that keep their words where they are raised."""
    package, found = Path(str(files("breastmorph"))), set()
    for where in MET:
        for file in sorted((package / where).rglob("*.py")) if "." not in where else [package / where]:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            named = {
                one.targets[0].id: template(one.value, {})
                for one in tree.body
                if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in RAISING:
                    found |= {template(one, named) for one in node.args[:2]}
    return {one for one in found if re.search(r"[A-Za-z]{2}", one)} - AT_START


def test_errors_with_words_of_their_own_are_told_in_german():
    wanted = raised()
    assert len(wanted) > 200
    assert sorted(wanted - set(RAISED)) == []
    for text, translated in RAISED.items():
        assert text.count("{}") == translated.count("{}"), text
    damaged = damaged_file("a face names vertex 12,000, but there are only 8,000 vertices")
    assert Spoken(damaged.name, damaged.values).said("de") == (
        "die Datei ist beschädigt: eine Fläche nennt Punkt 12.000, es gibt aber nur 8.000 Punkte"
    )
    assert Spoken(damaged.name, damaged.values).said("en") == damaged.cause
    strange = Spoken("problem/as-raised", {"cause": "no such sentence", "remedy": ""})
    assert strange.said("de") == "no such sentence"


def test_findings_are_phrased_in_german_with_german_numbers_and_names():
    far = Spoken("landmark-improbable", {"name": "lower_pole_left", "distance": 12.4, "place": "x"})
    assert far.said("de").startswith("Linker unterer Pol liegt 12 mm von dort")
    assert (
        Spoken("asked/mm", {"name": "SN-NL", "value": 215.0}).said("de")
        == "Drosselgrube bis linke Brustwarze 21,5 cm"
    )
    held = Spoken("asked/stay", {"names": ["thorax", "left breast"]})
    assert held.said("de") == ", während Brustkorb, linke Brust bleiben"
    assert (
        Spoken("too-large", {"faces": 1234567, "most": 900000})
        .said("de")
        .startswith("zu groß: 1.234.567 Dreiecke")
    )
    folded = Spoken(
        "unlike-model", {"reasons": [Finding("unlike-model/misfit", {"misfit": 3.25})], "hint": ""}
    )
    assert (
        folded.said("de") == "der Scan sieht nicht aus wie das Modell: die Oberfläche bleibt 3,2 mm entfernt"
    )
    record = {
        "warnings": sentences([Finding("side-mirrored", {"side": "left"})]),
        "names": {"SN-NL": Name("SN-NL")},
    }
    assert spoken(record, "de")["warnings"] == [
        "die linke Brust fehlt: diese Seite folgt nur der Haut des Scans"
    ]
    assert spoken(record, "xx") == {  # an unknown language is English
        "warnings": ["the left breast is missing: that side follows the skin of the scan only"],
        "names": {"SN-NL": "Sternal notch to left nipple"},
    }


def test_translations_keep_every_value_and_say_something():
    for text, translated in catalogue("de").items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", translated)), text
        assert translated.strip(), text
