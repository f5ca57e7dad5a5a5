"""A model as the page shows it: geometry and maps sent once, measures of any shape, its editor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.measure.distances import DISTANCES, KINDS, STRAIGHT
from breastmorph.clinical.measure.measures import Gauge, Measure, asymmetries
from breastmorph.clinical.measure.records import measure_record
from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.clinical.patient import mean_patient, place
from breastmorph.errors import BreastMorphError
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.model_source import ModelOrigin
from breastmorph.explorer.page_words import in_page_words
from breastmorph.explorer.problems import bad_request
from breastmorph.mask import measure_breasts
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.model.regions import completed_landmarks
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import REQUIRED, SIDES, STERNUM

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Editing

_FARTHEST = 6.0  # standard deviations a slider may ask for
_MIDLINE = 70.0  # mm beside the breastbone: where straight measures look for the skin of the midline


@dataclass(frozen=True, eq=False)
class ModelView:
    """A model prepared for the page.

    Attributes
    ----------
    origin : ModelOrigin
    model : ShapeModel
    modes : int
        How many the page has.
    """

    origin: ModelOrigin
    model: ShapeModel
    modes: int

    def with_landmarks(self, landmark_ids: Mapping[str, int]) -> ModelView:
        """With landmarks picked on the mean."""
        model = self.model.with_landmark_ids(landmark_ids)
        known = tuple((name, int(vertex)) for name, vertex in model.landmark_ids.items())
        return replace(self, origin=replace(self.origin, landmark_ids=known), model=model)

    # --- what is sent once --------------------------------------------------------------------------------------------

    def as_record(self) -> dict[str, Any]:
        """What the page says about the model."""
        model = self.model
        total = float(model.variances.sum()) + model.noise_variance * model.mean.size
        subjects = model.info.get("subjects")
        return {
            "name": self.origin.name,
            "synthetic": model.is_synthetic,
            "subjects": subjects if isinstance(subjects, int) else None,
            "deviations": model.deviations[: self.modes].tolist(),
            "shares": (model.variances[: self.modes] / max(total, 1e-300)).tolist(),
            "missing_landmarks": [name for name in REQUIRED if name not in model.landmark_ids],
        }

    @cached_property
    def geometry(self) -> bytes:
        """Mean, faces and modes in mm at one standard deviation."""
        scaled = self.model.basis[:, : self.modes] * self.model.deviations[: self.modes]
        modes = scaled.T.reshape(self.modes, -1, 3)
        return packed({"mean": self.model.mean, "faces": self.model.faces, "modes": modes})

    @cached_property
    def maps(self) -> bytes:
        """Standard deviation of every vertex, and its breast probability where the landmarks tell it."""
        model = self.model
        found: dict[str, np.ndarray] = {"sd": model.vertex_deviations()}
        with suppress(BreastMorphError):
            landmarks = completed_landmarks(model.mean_mesh, model.landmarks)
            found["mask"] = measure_breasts(model.mean_mesh, landmarks).mask(landmarks).at(model.mean)
        return packed(found)

    # --- shapes -------------------------------------------------------------------------------------------------------

    def scores(self, values: Any) -> Floats:
        """Scores from the page, checked; in standard deviations."""
        if not isinstance(values, list) or len(values) > self.model.n_components:
            raise bad_request(f"scores must be a list of at most {self.model.n_components} numbers")
        if not all(isinstance(one, (int, float)) and abs(one) <= 1e3 for one in values):
            raise bad_request("a score is not a number")
        scores: Floats = np.clip(np.array(values, dtype=float), -_FARTHEST, _FARTHEST)
        return scores

    def shape(self, scores: Floats) -> Floats:
        """The shape of scores, (n, 3)."""
        return self.model.instance(scores * self.model.deviations[: len(scores)])

    def scores_of(self, shape: Floats) -> Floats:
        """Scores of the page's modes of any shape with the model's triangles."""
        coefficients = place(self.model, shape).coefficients[: self.modes]
        deviations = self.model.deviations[: self.modes]
        return np.divide(coefficients, deviations, out=np.zeros_like(coefficients), where=deviations > 0.0)

    # --- measures -----------------------------------------------------------------------------------------------------

    @cached_property
    def volumes(self) -> BreastVolumes | str:
        """Volumes of all shapes of the model, or why there are none."""
        try:
            return BreastVolumes(self.model.mean_mesh, self.model.landmarks)
        except BreastMorphError as error:
            return error.cause

    def measures(self, shape: Floats, absent: str = "", *, tape: bool = False) -> dict[str, Any]:
        """Distances and volumes of a shape (n, 3), upright, in mm."""
        ids = {
            name: vertex
            for name, vertex in self.model.landmark_ids.items()
            if not (absent and name.endswith(absent))
        }
        kinds = KINDS if tape else (STRAIGHT,)
        asked = [(one.name, kind) for one in DISTANCES.values() for kind in one.kinds if kind in kinds]
        # Preparing the whole surface takes most of the time, and only tape lines need it.
        faces = self.model.faces if tape else self._midline_faces
        found = Gauge.of_vertices(faces, ids).measures(shape, asked)
        found += tuple(self._volume(shape, side, absent) for side in SIDES)
        return {
            "measures": [_in_page_words(measure_record(one)) for one in found],
            "left_minus_right": [measure_record(one) for one in asymmetries(found)],
        }

    @cached_property
    def _midline_faces(self) -> Ints:
        ids = [self.model.landmark_ids[name] for name in STERNUM if name in self.model.landmark_ids]
        if not ids:
            return self.model.faces
        across = self.model.mean[:, 0] - self.model.mean[ids, 0].mean()
        along: Ints = self.model.faces[(np.abs(across) < _MIDLINE)[self.model.faces].all(axis=1)]
        return along

    def _volume(self, shape: Floats, side: str, absent: str) -> Measure:
        volumes, reason = self.volumes, f"{side} side absent" if side == absent else ""
        if reason or isinstance(volumes, str):
            return Measure(f"volume-{side}", "volume", float("nan"), "cc", reason or str(volumes))
        return Measure(f"volume-{side}", "volume", volumes.cc(shape, side), "cc")

    # --- editing ------------------------------------------------------------------------------------------------------

    @cached_property
    def mean_editing(self) -> Editing:
        """The editor of the mean, shared by all who use this model."""
        from breastmorph.explorer.editing import Editing  # takes long to load; the page needs it late

        return Editing(self.model, mean_patient(self.model))


def _in_page_words(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"reason": in_page_words(record["reason"])} if "reason" in record else record
