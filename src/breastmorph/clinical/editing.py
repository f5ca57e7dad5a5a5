"""Editing a shape by its measures (paper section 5.1): the printed linear version, and one that attains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from breastmorph.clinical.edit_space import (
    EditSpace,
    Regression,
    RegressionParameters,
    Solution,
    SolverParameters,
    faded,
    most_likely,
    population,
    regress,
)
from breastmorph.clinical.examination import landmarks_of
from breastmorph.clinical.features import Feature, Request
from breastmorph.clinical.patient import Patient, place
from breastmorph.clinical.wishes import (
    FOLDED,
    Change,
    Edit,
    ModelFeatures,
    Wishes,
    known,
    resolve,
    unusual_about,
    usual_length,
    valued,
)
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, Finding, LandmarkProblem, warning
from breastmorph.foundation.machine import in_one_thread
from breastmorph.model.regions import breast_regions
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.result import shape_metrics

UNATTAINABLE = "unattainable"  # code of a refusal that asking for less, or holding less, may mend


@dataclass(frozen=True)
class EditParameters:
    """What an edit must keep to."""

    tolerance: float = 0.02  # mm or cc: how near a requested or held measure must come
    movement: float = 0.99  # mm, root mean square, that a held region may move
    unusual: float = 3.0  # standard deviations: beyond, a warning
    reach: float = 6.0  # standard deviations of a value asked for: beyond, a refusal
    longest: float = 6.0  # standard deviations of the whole change that are never refused
    folded: float = 0.02  # percent of triangles turned over by the edit: beyond, a warning
    torn: float = 0.3  # percent: beyond, a refusal
    # Where local modes begin to fade before the border of a held region, and where they end beyond it (mm): the
    # widest that keeps the region is the smoothest.
    fadings: tuple[tuple[float, float], ...] = ((10.0, 30.0), (15.0, 15.0), (25.0, 3.0))
    solver: SolverParameters = field(default_factory=SolverParameters)
    regression: RegressionParameters = field(default_factory=RegressionParameters)


class Editor:
    """A patient prepared for edits.

    Parameters
    ----------
    model : ShapeModel
    patient : Patient
        Her shape with the model's triangles, or the model's mean.
    features : ModelFeatures, optional
        What can be asked for, held and reported; straight distances and volumes when not given.
    parameters : EditParameters, optional

    Notes
    -----
    The change is added to the patient's own shape, so what the model cannot express of her stays as it was, and an
    edit that asks for what is already there returns her shape.
    """

    @in_one_thread
    def __init__(
        self,
        model: ShapeModel,
        patient: Patient,
        features: ModelFeatures | None = None,
        parameters: EditParameters | None = None,
    ) -> None:
        if not model.n_components:
            raise BreastMorphError(
                "the model has no components: it knows one shape only", "Use another model"
            )
        self.model, self.patient = model, patient
        self.features = (
            features
            if features is not None
            else ModelFeatures(model, absent_side=patient.absent_side, landmarks=landmarks_of(model, patient))
        )
        self.parameters = parameters or EditParameters()
        self.place = place(model, patient.shape)
        self.before = self.features.measured(patient.shape)
        self._regions: dict[str, Bools] = {}
        self._no_regions: LandmarkProblem | None = None
        try:
            breasts = breast_regions(model.mean_mesh, model.landmarks)
            self._regions = {"thorax": ~(breasts["left"] | breasts["right"]), **breasts}
        except LandmarkProblem as error:  # a model of one breast, or with too few landmarks
            self._no_regions = error
        self._spaces: dict[bool, EditSpace] = {}
        self._regressions: dict[tuple[str, ...], Regression] = {}
        self._populations: dict[str, tuple[float, float]] = {}

    def usual(self, name: str) -> tuple[Feature, float, float]:
        """A feature with its mean and standard deviation in the model, at this patient's size."""
        feature = self.features.find(name)
        if feature is None:
            raise BreastMorphError.of("unknown-measure", name=name, known=known(self.features, {}))
        return feature, *self._population(feature)

    def _population(self, feature: Feature) -> tuple[float, float]:
        if feature.name not in self._populations:
            self._populations[feature.name] = population(self.model, feature, self.place.size)
        return self._populations[feature.name]

    # --- the two versions -------------------------------------------------------------------------------------

    @in_one_thread
    def exact(self, requests: Sequence[Request], hold: Sequence[str] = ()) -> Edit:
        """The most likely shape that attains the requests.

        Of all shapes that have the requested and the held measures, and whose held regions stay, the one whose
        change from the patient has the smallest Mahalanobis length.

        Parameters
        ----------
        requests : sequence of Request
        hold : sequence of str
            Measures that must stay, or regions: ``thorax``, ``left``, ``right``. An absent side always stays.

        Raises
        ------
        BreastMorphError
            The request names what does not exist, contradicts itself, or no sensible shape attains it.
        """
        absent = self.patient.absent_side
        # Where there is no breast, the model's modes of one mean nothing.
        wishes = self._resolved(requests, [*hold, absent] if absent and self._regions else hold)
        with_size = bool(wishes.regions or wishes.shifts)
        try:
            return self._attempt(wishes, self._space(with_size=with_size))
        except BreastMorphError as error:
            refusal = error
        if not wishes.regions or refusal.code != UNATTAINABLE:
            raise refusal
        for inside, outside in self.parameters.fadings:
            try:
                edit = self._attempt(wishes, self._local_space(wishes.regions, inside, outside))
            except BreastMorphError as error:
                refusal = error
                continue
            note = warning("modes-made-local", inside=inside, outside=outside)
            found = place(self.model, edit.shape).coefficients
            return replace(edit, warnings=(*edit.warnings, note), coefficients=found)
        raise refusal

    def _attempt(self, wishes: Wishes, space: EditSpace) -> Edit:
        scales = np.array([self._population(feature)[1] for feature in wishes.features])
        if (scales <= 0.0).any():
            stiff = wishes.names[int(np.argmin(scales))]
            raise BreastMorphError.of("same-in-all", name=stiff)
        start, basis = np.zeros(space.dimension), ""
        if wishes.shifts:
            regression = self._regression((), tuple(wishes.shifts))
            start = space.coordinates(regression.step(wishes.shifts), regression.size_step(wishes.shifts))
            basis = regression.source

        def read(coordinates: Floats) -> tuple[Floats, Floats]:
            shape = space.displaced(coordinates)
            readings = [feature.read(shape) for feature in wishes.features]
            values = np.array([reading.value for reading in readings]) / scales
            slopes = np.array([space.pulled_back(reading) for reading in readings]).reshape(
                -1, space.dimension
            )
            return values, slopes / scales[:, None]

        wanted, tolerance = (
            np.array(wishes.wanted) / scales,
            self.parameters.tolerance / scales.max(initial=1e-9),
        )
        held = [space.mean_square(self._region(name)) for name in wishes.regions]
        solver = replace(self.parameters.solver, tolerance=tolerance)
        try:
            found = most_likely(read, wanted, start, held, self.parameters.movement, solver)
        except BreastMorphError as error:  # on the way the shape lost what a measure needs
            self._refuse(wishes, "unattainable/lost", why=Finding.of(error))
        self._require_attained(found, scales, wishes)
        u = found.coordinates
        shape = space.displaced(u) if u.any() else self.patient.shape
        return self._judged(shape, space.coefficients(u), u, space.size_change(u), wishes, "exact", basis)

    @in_one_thread
    def linear(self, requests: Sequence[Request], hold: Sequence[str] = ()) -> Edit:
        """The paper's version: coefficients regressed on features, M = A F+, and the change M delta f.

        It does not attain the measures, only nearly; held measures are features whose delta is 0.
        """
        wishes = self._resolved(requests, hold)
        if wishes.regions:
            raise BreastMorphError.of("linear-hold", region=wishes.regions[0])
        regression = self._regression(wishes.features, tuple(wishes.shifts))
        deltas = {name: value - wishes.before[name] for name, value in wishes.targets.items()}
        deltas = {**deltas, **dict.fromkeys(wishes.held, 0.0), **wishes.shifts}
        space = self._space(with_size=bool(wishes.shifts))
        u = space.coordinates(regression.step(deltas), regression.size_step(deltas))
        shape = space.displaced(u)
        return self._judged(
            shape, space.coefficients(u), u, space.size_change(u), wishes, "linear", regression.source
        )

    # --- preparing --------------------------------------------------------------------------------------------

    def _resolved(self, requests: Sequence[Request], hold: Sequence[str]) -> Wishes:
        at_mean = not self.place.coefficients.any()
        own = {
            name: float(np.nanmean(values)) if at_mean else None for name, values in self._columns().items()
        }
        wishes = resolve(requests, hold, self.features, self.patient.shape, own)
        for region in wishes.regions:
            self._region(region)
        self._require_in_reach(wishes)
        return wishes

    def _require_in_reach(self, wishes: Wishes) -> None:
        """Refuse values far from the model's mean, unless they are nearer to it than the present ones."""
        far = [(name, abs(shift), 0.0, self._column_deviation(name)) for name, shift in wishes.shifts.items()]
        for feature in wishes.features:
            name, (mean, sd) = feature.name, self._population(feature)
            if name in wishes.targets and sd > 0.0:
                far.append((name, abs(wishes.targets[name] - mean), abs(wishes.before[name] - mean), sd))
        for name, wanted, now, sd in far:
            if wanted > max(self.parameters.reach * sd, now):
                self._refuse(wishes, "beyond-model", name=name, deviations=wanted / sd)

    def _columns(self) -> Mapping[str, Floats]:
        return self.model.training.columns if self.model.training is not None else {}

    def _column_deviation(self, column: str) -> float:
        deviation = float(np.nanstd(self._columns()[column]))
        if deviation <= 0.0:
            raise BreastMorphError(
                f"{column} is the same in all subjects of this model", "Choose another measure"
            )
        return deviation

    def _region(self, name: str) -> Bools:
        if self._no_regions is not None:
            error = self._no_regions
            raise LandmarkProblem.of("region-not-held", region=name, why=Finding.of(error))
        return self._regions[name]

    def _space(self, *, with_size: bool) -> EditSpace:
        if with_size not in self._spaces:
            anchor = self._regions.get("thorax", np.ones(self.model.n_vertices, bool))
            self._spaces[with_size] = EditSpace(
                self.model, self.patient.shape, self.place, anchor, with_size=with_size
            )
        return self._spaces[with_size]

    def _local_space(self, held: Sequence[str], inside: float, outside: float) -> EditSpace:
        """Modes that fade out where the held regions begin."""
        free: Bools = np.ones(self.model.n_vertices, bool)
        for region in held:
            free &= ~self._region(region)
        fading = faded(self.model.mesh(self.patient.shape), free, inside, outside)
        return EditSpace(
            self.model, self.patient.shape, self.place, self._regions["thorax"], with_size=True, fading=fading
        )

    def _regression(self, features: Sequence[Feature], columns: tuple[str, ...]) -> Regression:
        key = (*(feature.name for feature in features), *columns)
        if key not in self._regressions:
            self._regressions[key] = regress(
                self.model, features, columns, self.place.size, self.parameters.regression
            )
        return self._regressions[key]

    # --- judging ----------------------------------------------------------------------------------------------

    def _require_attained(self, found: Solution, scales: Floats, wishes: Wishes) -> None:
        for region, moved in zip(wishes.regions, found.movements, strict=True):
            if moved > self.parameters.movement:
                self._refuse(wishes, "unattainable/moved", region=region, moved=float(moved))
        if not found.attained:
            best = [valued(f, value) for f, value in zip(wishes.features, found.values * scales, strict=True)]
            self._refuse(wishes, "unattainable/nearest", best=best)

    def _judged(
        self,
        shape: Floats,
        coefficients: Floats,
        coordinates: Floats,
        size_change: float,
        wishes: Wishes,
        method: str,
        basis: str,
    ) -> Edit:
        """The edit with all its measures and warnings; refused when no body looks like that."""
        moved = ((shape - self.patient.shape) ** 2).sum(axis=1)
        edit = Edit(
            shape=shape,
            before=self.patient.shape,
            faces=self.model.faces,
            coefficients=coefficients,
            coefficients_before=self.place.coefficients,
            length=float(np.linalg.norm(coordinates)),
            size_change=size_change,
            changes=self._changes(shape, wishes),
            movements={name: float(np.sqrt(moved[region].mean())) for name, region in self._regions.items()},
            method=method,
            basis=basis,
        )
        if edit.length > max(self.parameters.longest, usual_length(self.model, self.parameters.unusual)):
            self._refuse(wishes, "unattainable/far", length=edit.length)
        flipped = [
            shape_metrics(self.model.mean, one, self.model.faces)["flipped_percent"]
            for one in (edit.before, shape)
        ]
        folded = flipped[1] - flipped[0]
        if folded > self.parameters.torn:
            self._refuse(wishes, "unattainable/folds", percent=folded)
        warnings = unusual_about(edit, self.model, self.parameters.unusual)
        if folded > self.parameters.folded:
            warnings.append(warning(FOLDED, percent=folded))
        return replace(edit, warnings=tuple(warnings))

    def _refuse(self, wishes: Wishes, name: str, /, **values: Any) -> NoReturn:
        usual = []
        for feature in wishes.features:
            mean, sd = self._population(feature)
            told = {"name": feature.name, "mean": mean, "sd": sd}
            usual.append(Finding(f"usual/{feature.unit}", told))
        measures = Finding("usual", {"measures": usual}) if usual else ""
        raise BreastMorphError.of(name, asked=wishes.described(), usual=measures, **values)

    def _changes(self, shape: Floats, wishes: Wishes) -> tuple[Change, ...]:
        changes = []
        for column, shift in wishes.shifts.items():
            nan = float("nan")
            own = nan if self.place.coefficients.any() else float(np.nanmean(self._columns()[column]))
            # Of somebody whose own value nobody knows, only the change can be judged.
            far = shift / self._column_deviation(column)
            changes.append(Change(column, "", own, nan, own + shift, deviations=far))
        for feature in wishes.features:
            name, before = feature.name, wishes.before[feature.name]
            mean, sd = self._population(feature)
            wanted = wishes.targets.get(name, before)
            deviations = (wanted - mean) / sd if name in wishes.targets and sd > 0.0 else None
            changes.append(
                Change(
                    name, feature.unit, before, feature.value(shape), wanted, name in wishes.held, deviations
                )
            )
        after = self.features.measured(shape)
        changes += [
            Change(one.name, one.unit, self.before[one.name], after[one.name])
            for one in self.features.reported
            if one.name not in wishes.before
        ]
        return tuple(changes)
