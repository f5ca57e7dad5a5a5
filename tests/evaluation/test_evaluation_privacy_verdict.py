"""What a model reveals, in words that do not contradict each other."""

from __future__ import annotations

import pytest

from breastmorph.evaluation.privacy import Nearness, Privacy, PrivacyParameters, Recognition


def _verdict(samples: float, nearer: float, components: int = 15) -> str:
    near = Nearness("whole", samples, 1.0, 8.0, 6.0, nearer)
    seen = (Recognition(14, 0.1, 1.0, 0.99),)
    return " ".join(Privacy(40, False, (near,), seen, PrivacyParameters(), components).verdict())


@pytest.mark.parametrize(
    ("samples", "nearer", "said", "not_said"),
    [
        (7.9, 4.0, "what new people would give", "few subjects"),
        (6.0, 39.0, "no copies of subjects, but they vary about them less", "does not repeat"),
        (1.0, 100.0, "It repeats its subjects: do not release it", "no copies"),
    ],
)
def test_the_verdict_follows_from_its_figures(samples, nearer, said, not_said):
    words = _verdict(samples, nearer)
    assert said in words
    assert not_said not in words


def test_two_numbers_of_components_are_explained():
    assert "14 of its 15 components, all that a model without one of its subjects has" in _verdict(7.9, 4.0)
    assert "all its 14 components" in _verdict(7.9, 4.0, components=14)
