"""What is asked of a patient: the prediction of a missing breast, what is to be added or taken away, cuts."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answers import bad_request
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.asked import Asked
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.predicting import planned, predict_patient
from breastmorph.explorer.shapes import shape_of
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.scan import SIDES

_MOST_CUT = 4  # shapes in one cut


def predict(asked: Asked) -> Job:
    """Predict a side, or what is painted."""
    session, case = asked.session, asked.case
    _ = case.required_patient

    def work(job: Job) -> dict[str, Any]:
        found = predict_patient(session, case, asked.values, job)
        session.take_prediction(found, case, job)
        return found.record

    return session.jobs.start("predict", work, case.key)


def alternatives(asked: Asked) -> bytes:
    """For the sliders."""
    return asked.case.required_prediction.alternatives(asked.case.required_patient.to_shown)


def forget_prediction(asked: Asked) -> None:
    """Drop the prediction."""
    asked.change("predict", predicted=None)


def plan(asked: Asked) -> dict[str, Any]:
    """What is to be added or taken away to get to ``target``, by side."""
    found = planned(asked.session.view.model, asked.case, asked.values.get("target")).plan
    return found.as_dict() | {"note": found.note.cause}


def thickness(asked: Asked) -> bytes:
    """The same at every vertex of the target, mm."""
    found = planned(asked.session.view.model, asked.case, asked.values.get("target")).plan
    return packed({"thickness": found.thickness})


def cuts(asked: Asked) -> dict[str, Any]:
    """The level and the upright cut through the nipple of ``side``, of some shapes; the last one says where it is.

    ``line_mm`` is in the upright frame of the patient, ``shown`` the same line where the page shows her.
    """
    from breastmorph.clinical.planning import sections

    session, case = asked.session, asked.case
    specs, side = asked.values.get("shapes"), asked.values.get("side")
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_CUT or side not in SIDES:
        raise bad_request(
            "a cut goes through one to {most_cut} shapes, on the left or on the right", most_cut=_MOST_CUT
        )
    to_shown = case.patient.to_shown if case.patient is not None else Similarity()
    shapes = [shape_of(session, case, spec) for spec in specs]
    placed = {
        f"{k}": to_shown.inverse().apply(shape.to_shown.apply(shape.vertices))
        for k, shape in enumerate(shapes)
    }
    found = []
    for section in sections(session.view.model, placed, str(side)):
        record = section.as_dict()
        lines = [
            {
                **record["outlines"][key],
                "name": shape.name,
                "shown": to_shown.apply(section.outlines[key].line),
            }
            for key, shape in zip(placed, shapes, strict=True)
        ]
        found.append(record | {"outlines": lines})
    return {"sections": found}
