"""Requests as people write them."""

from __future__ import annotations

import pytest

from breastmorph.clinical.feature_requests import Request, parse_request
from breastmorph.foundation.errors import BreastMorphError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SN-NL=21.5cm", Request("SN-NL", 21.5, "cm", False)),
        ("SN-NL = 215", Request("SN-NL", 215.0, "", False)),
        ("volume-left=400CC", Request("volume-left", 400.0, "CC", False)),
        ("NL-NR=+8mm", Request("NL-NR", 8.0, "mm", True)),
        ("bmi=-2,5", Request("bmi", -2.5, "", True)),
        ("tape SN-NL=.5 cm", Request("tape SN-NL", 0.5, "cm", False)),
    ],
)
def test_requests_are_read(text, expected):
    assert parse_request(text) == expected


@pytest.mark.parametrize("text", ["SN-NL", "=3", "SN-NL=", "SN-NL=long", "SN-NL=1e5x9", "SN-NL=nan", ""])
def test_no_request_is_refused(text):
    with pytest.raises(BreastMorphError, match="is no request"):
        parse_request(text)


def test_units_belong_to_their_quantity():
    assert Request("x", 2.0, "cm").in_unit("mm") == 20.0
    assert Request("x", 2.0, "ml").in_unit("cc") == 2.0
    for unit, of in (("cc", "mm"), ("cm", "cc"), ("kg", "")):
        with pytest.raises(BreastMorphError, match="not measured in"):
            Request("x", 2.0, unit).in_unit(of)
