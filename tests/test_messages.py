"""Messages: values in the words of an audience, translations, and records of findings."""

from __future__ import annotations

import json

import pytest

from breastmorph.foundation import language as languages
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import ENGLISH, Plural, language
from breastmorph.foundation.messages import PYTHON, READERS, Finding, Message, recorded, repair, warning
from breastmorph.foundation.terms import MEASURES, landmark_in_words, measure_in_words
from breastmorph.scan.scan import PlausibilityReport
from invented_language import CODE, invent

GERMAN = language("de")


def test_names_and_lengths_are_codes_and_mm_in_python_and_words_and_cm_on_pages():
    wide = Message("{name:measure} is {value:length}, {value:cm}", {"name": "SN-NL tape", "value": 249.0})
    assert wide.text() == "SN-NL tape is 249.0 mm, 24.9"
    assert wide.text(READERS) == "Sternal notch to left nipple, tape is 24.9 cm, 24.9"
    lost = Message("missing: {names:landmark| and }", {"names": ["lower_pole_right", "xiphoid"]})
    assert lost.text() == "missing: lower_pole_right and xiphoid"
    assert lost.text(READERS) == "missing: right lower pole and xiphoid"


def test_messages_and_findings_stand_in_messages():
    why = warning("why", "it folds by {much:.1f} %", "Ask for {less}", much=3.25, less="less")
    outer = Message("not possible: {whys:|; } ({whys:remedy}){end}", {"whys": [why], "end": Message("")})
    assert outer.text() == "not possible: it folds by 3.2 % (Ask for less)"


def test_numbers_and_names_are_written_as_a_language_writes_them():
    reader = READERS.speaking(GERMAN)
    assert Message("{n:,} and {x:.1f} of {name!r}", {"n": 1234567, "x": 0.5, "name": "1.5"}).text(reader) == (
        "1.234.567 and 0,5 of '1.5'"
    )
    assert measure_in_words("SN-NL tape", GERMAN) == "Drosselgrube bis linke Brustwarze, auf der Haut"
    assert landmark_in_words("lower_pole_left", GERMAN) == "Linker unterer Pol"
    assert all(GERMAN.text(words) != words for words in MEASURES.values())


def test_one_thing_and_several_have_sentences_of_their_own():
    holes = Plural("{n} hole", "{n} holes")
    assert [Message(holes, {"n": n}).text() for n in (1, 2)] == ["1 hole", "2 holes"]


@pytest.mark.parametrize("code", ["en", "xx", "../../etc", ""])
def test_a_language_without_a_catalogue_is_english(code):
    assert language(code) == ENGLISH


def test_a_finding_is_the_same_from_its_record():
    inner = repair("inner", "{n:,} faces", n=3)
    holes = Message(Plural("{n} hole", "{n} holes"), {"n": 1})
    finding = warning(
        "outer/which", "{inner} and {holes}: {sizes}", "Mend {inner}", inner=inner, holes=holes, sizes=[1.5]
    )
    assert Finding.from_dict(json.loads(json.dumps(finding.as_dict()))) == finding
    assert finding.code == "outer"
    assert str(finding) == "3 faces and 1 hole: 1.5"


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        3,
        {"name": "holes", "values": {"n": 2}, "level": "note"},  # as written before version 0.9
        {"name": "a", "values": {"n": 2}, "level": "note", "cause": "{lost}", "remedy": "{lost}"},
    ],
)
def test_a_record_that_is_not_understood_keeps_its_text(record):
    assert str(recorded(record, "{as} it was")) == "{as} it was"


def test_a_plausibility_report_of_an_earlier_version_is_read():
    old = {
        "name": "landmark-improbable/far",
        "values": {"name": "xiphoid", "distance": 30.0},
        "level": "warning",
    }
    (found,) = PlausibilityReport.from_dict({"warnings": [old], "rather": {}}).warnings
    assert (found.code, found.level) == ("landmark-improbable", "warning")
    assert str(found) == "landmark-improbable/far"


def test_another_language_is_one_more_catalogue(tmp_path, monkeypatch):
    invent(tmp_path, "the file is empty")
    monkeypatch.setattr(languages, "LOCALE", tmp_path)
    assert languages.languages() == ["en", CODE]
    spoken = PYTHON.speaking(language(CODE))
    assert BreastMorphError("the file is empty").text(spoken) == "the file is empty"[::-1]
    assert Message("{n:,}", {"n": 1234}).text(spoken) == "1'234"
