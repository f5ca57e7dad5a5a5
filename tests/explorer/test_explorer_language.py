"""The page in another language: what the server says is translated when it is asked, the rest by the page."""

from __future__ import annotations

from breastmorph.explorer.answers import sentences, spoken
from breastmorph.foundation import language
from breastmorph.foundation.messages import Message, warning
from breastmorph.foundation.terms import MEASURES
from explorer_client import Visitor
from invented_language import CODE, invent


def test_a_record_is_given_in_the_language_that_the_page_asks_for():
    off = warning(
        "off", "{name:landmark} is {distance:.1f} mm off the surface", name="imf_left", distance=20.0
    )
    record = {"warnings": sentences([off]), "names": {"SN-NL": Message(MEASURES["SN-NL"])}}
    assert spoken(record, "de")["names"] == {"SN-NL": "Drosselgrube bis linke Brustwarze"}
    assert spoken(record, "xx") == {  # an unknown language is English
        "warnings": ["fold under the left breast is 20.0 mm off the surface"],
        "names": {"SN-NL": "Sternal notch to left nipple"},
    }


def test_another_language_is_one_more_catalogue_for_the_server_and_its_page(explorer, tmp_path, monkeypatch):
    invent(tmp_path, "this cannot be done there", "Sternal notch to left nipple", English="Esperanto")
    monkeypatch.setattr(language, "LOCALE", tmp_path)
    visitor = Visitor.of(explorer)
    assert visitor.get("/words.json").json == {CODE: {"English": "Esperanto"}}
    refused = visitor.ask("DELETE", "/", X_Language=CODE)
    assert refused.json["cause"] == "this cannot be done there"[::-1]
    names = visitor.ask("POST", "/api/sessions", X_Language=CODE).json["measure_names"]
    assert names["SN-NL"] == "Sternal notch to left nipple"[::-1]
    visitor.leave()


def test_the_german_page_has_its_texts_and_its_name(explorer):
    german = Visitor.of(explorer).get("/words.json").json["de"]
    assert german["English"] == "Deutsch"
    assert german["Close"] == "Schließen"
