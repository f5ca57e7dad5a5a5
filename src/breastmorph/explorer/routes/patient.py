"""The patient: prediction of a missing breast."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answering import Asked
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.shapes import required_prediction


def predict(asked: Asked) -> Job:
    """Predict a side, or what is painted."""
    session = asked.session
    patient = session.required_patient

    def work(job: Job) -> dict[str, Any]:
        predicted = session.predicting.predict(patient.patient, asked.values, job)
        if session.patient is patient:
            session.predicted = predicted
        return predicted.record

    return session.jobs.start("predict", work)


def alternatives(asked: Asked) -> bytes:
    """For the sliders."""
    predicted = required_prediction(asked.session)
    return predicted.alternatives(asked.session.required_patient.to_shown)


def forget(asked: Asked) -> None:
    """Drop the prediction."""
    asked.session.predicted = None
