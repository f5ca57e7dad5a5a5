"""The patient: prediction of a missing breast."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answering import Asked
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.predicting import predict as predicted


def predict(asked: Asked) -> Job:
    """Predict a side, or what is painted."""
    session = asked.session
    patient = session.required_patient

    def work(job: Job) -> dict[str, Any]:
        found = predicted(session, patient.patient, asked.values, job)
        session.take_prediction(found, patient, job)
        return found.record

    return session.jobs.start("predict", work, patient.scan)


def alternatives(asked: Asked) -> bytes:
    """For the sliders."""
    session = asked.session
    return session.required_prediction.alternatives(session.required_patient.to_shown)


def forget(asked: Asked) -> None:
    """Drop the prediction."""
    asked.session.predicted = None
