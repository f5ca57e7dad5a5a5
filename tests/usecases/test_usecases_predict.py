"""Prediction as commands, Python and the page ask for it: composed once, so it is asked once what it gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.patient import Patient
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import warning
from breastmorph.usecases.predict import PredictorCache, PredictRequest, predict
from predicted_people import flattened, model, predictor


class Fitted(PredictorCache):
    """The predictors that all tests share."""

    def fitted(self, model, side, evidence):
        return predictor(evidence, side)


def asked(shape, absent="", **fields):
    return predict(
        PredictRequest(model(), Patient("p", shape, absent_side=absent), "right", **fields), Fitted()
    )


@pytest.mark.parametrize(
    ("share", "absent", "decided"),
    [
        (0.0, "", False),
        (0.3, "right", True),  # half the volume of the other breast: only its landmarks tell
        (0.3, "", False),
        (0.0, "right", "breast-there/without-landmarks"),
        (1.0, "", True),
        (1.0, "right", True),
        (1.0, "left", "other-side-absent"),
    ],
)
def test_whether_a_breast_is_absent_is_decided_by_its_landmarks_and_volume(share, absent, decided, strangers):
    shape = (1.0 - share) * strangers[3] + share * flattened(strangers[3], "right")
    if isinstance(decided, str):
        with pytest.raises(BreastMorphError) as refused:
            asked(shape, absent, replace=None)
        assert refused.value.name == decided
        return
    result = asked(shape, absent, replace=None)
    assert result.was_absent == decided
    assert result.prediction.evidence == ("surface" if decided else "points")
    if not decided:  # and is only replaced where that is asked for
        with pytest.raises(BreastMorphError) as refused:
            asked(shape, absent)
        assert refused.value.code == "breast-there"


def test_nothing_of_a_half_that_was_operated_on_is_evidence(strangers):
    result = asked(strangers[3], operated=True)
    assert (result.prediction.evidence, result.was_absent) == ("surface", False)


def test_the_value_holds_measures_nipples_and_all_warnings(strangers):
    spoken = warning("landmarks-moved", "landmarks moved")
    flat, earlier = flattened(strangers[3], "right"), Patient("p", strangers[3])
    patient = replace(Patient("p", flat, absent_side="right"), warnings=(spoken,))
    result = predict(PredictRequest(model(), patient, "right", earlier=earlier), Fitted())
    found = result.prediction
    assert found.given == ("an earlier scan",)
    assert found.measures["volume-right"].value > 100.0
    assert found.measures["difference"].value == result.difference.volume > 0.0
    assert [nipple.name for nipple in result.nipples] == ["nipple_right"]
    assert found.warnings == (spoken, *result.own_warnings)
    wanted = found.measures["volume-right"].value + 30.0
    stated = asked(flat, "right", known=(parse_request(f"volume-right={wanted:.0f}cc"),))
    assert stated.prediction.measures["volume-right"].value == pytest.approx(wanted, rel=0.03)


def test_fitted_predictors_are_kept_for_the_model_used_last(monkeypatch):
    fitted = []
    monkeypatch.setattr("breastmorph.usecases.predict.fit_predictor", lambda *key: fitted.append(key) or key)
    cache = PredictorCache(most=2)
    for side in ("left", "right", "left"):
        cache.fitted(model(), side, "points")
    assert len(fitted) == 2
    cache.fitted(model(), "both", "surface")  # the right one was used longest ago
    cache.fitted(model(), "left", "points")
    assert len(fitted) == 3
    cache.fitted(replace(model(), info={}), "left", "points")
    assert len(fitted) == 4
    assert np.all([key[0] is model() for key in fitted[:3]])
