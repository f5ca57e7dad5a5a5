"""Editing a shape by its measures (paper section 5.1): the printed linear version, and one that attains them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from breastmorph.clinical.change_request import ChangeRequest, known, resolve, valued
from breastmorph.clinical.edit import FOLDED, Edit, unusual_about, usual_length
from breastmorph.clinical.edit_solver import EditSpace, Solution, SolverParameters, most_likely
from breastmorph.clinical.examiner import landmarks_of
from breastmorph.clinical.feature_regression import Regression, RegressionParameters, population, regress
from breastmorph.clinical.feature_requests import Feature, Request
from breastmorph.clinical.features import ModelFeatures
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.patient import Patient, place
from breastmorph.clinical.seam import JoinedBorder, Seam
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.foundation.language import N_
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.messages import Message, note, warning
from breastmorph.mask import breast_regions
from breastmorph.model.plausibility import Plausibility, model_population
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.result import shape_metrics
from breastmorph.scan.scan import SIDES

_NO_HOLD = 1e-3  # of a measure's standard deviation: what free skin cannot change
UNATTAINABLE = "unattainable"  # code of a refusal that asking for less, or holding less, may mend


_LESS = N_("Ask for less, or hold less{usual}")
_USUAL = {
    "mm": N_("{name} {mean:.0f} ± {sd:.0f} mm"),
    "cc": N_("{name:measure} {mean:.0f} ± {sd:.0f} cc"),
}
# Why a change is refused.
_REFUSED = {
    "unattainable/lost": N_("{asked} cannot be attained ({why})"),
    "unattainable/moved": N_(
        "{asked} cannot be attained; the {region} would have to move by {moved:.1f} mm on average"
    ),
    "unattainable/nearest": N_("{asked} cannot be attained; the nearest shape found has {best}"),
    "unattainable/far": N_(
        "{asked} is out of reach: the shape would change by {length:.0f} standard deviations"
    ),
    "unattainable/folds": N_("{asked} would fold the surface ({percent:.1f} % of the triangles)"),
    "unattainable/bent": N_(
        "{asked} cannot be attained: along the border of what is held the skin would be bent "
        "{bend:.1f} times as much as any two of the model's people differ there"
    ),
    "unattainable/on-held": N_("{asked} cannot be attained: {name:measure} lies wholly on held skin"),
    "unattainable/all-held": N_("{asked} cannot be attained: all of the skin is held"),
    "beyond-model": N_(
        "{asked} cannot be attained: {name:measure} is out of reach, {deviations:.0f} standard "
        "deviations from the mean; the model knows nothing about such shapes"
    ),
}


@dataclass(frozen=True)
class EditParameters:
    """What an edit must keep to."""

    tolerance: float = 0.02  # mm or cc: how near a requested or constrained measure must come
    # mm, root mean square, by which the model's own change may miss a fixed region before it is joined to what stays:
    # the first with which the request is attained.
    misses: tuple[float, ...] = (1.0, 2.0, 4.0)
    blend: float = 20.0  # mm over which the join runs out into the free skin
    bent: float = (
        1.0  # times as sharply as any two people's skin differs along that border: beyond, a warning
    )
    broken: float = 2.0  # times: beyond, a refusal
    unusual: float = 3.0  # standard deviations: beyond, a warning
    reach: float = 6.0  # standard deviations of a value asked for: beyond, a refusal
    longest: float = 6.0  # standard deviations of the whole change that are never refused
    folded: float = 0.02  # percent of triangles turned over by the edit: beyond, a warning
    torn: float = 0.3  # percent: beyond, a refusal
    solver: SolverParameters = field(default_factory=SolverParameters)
    regression: RegressionParameters = field(default_factory=RegressionParameters)


@dataclass(frozen=True, eq=False)
class _FixedRegions:
    """What is prepared of fixed regions: where the rest can go, how the skin along their border may bend."""

    space: EditSpace
    border: JoinedBorder
    movements: Mapping[str, Floats]  # of every region, see EditSpace.mean_square


class Editor:
    """A patient prepared for edits.

    Parameters
    ----------
    model : ShapeModel
    patient : Patient
        Her shape with the model's triangles, or the model's mean.
    features : ModelFeatures, optional
        What can be asked for, constrained and reported; straight distances and volumes when not given.
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
        self._fixed: dict[tuple[str, ...], _FixedRegions] = {}
        self._regressions: dict[tuple[str, ...], Regression] = {}
        self._populations: dict[str, tuple[float, float]] = {}

    @cached_property
    def _plausibility_before(self) -> Plausibility | None:
        absent = self.patient.absent_side
        return None if absent else model_population(self.model).judge_shape(self.patient.shape)

    def usual(self, name: str) -> tuple[Feature, float, float]:
        """A feature with its mean and standard deviation in the model, at this patient's size."""
        feature = self.features.find(name)
        if feature is None:
            raise BreastMorphError(
                "{name!r} is not known here",
                "{known}",
                code="unknown-measure",
                name=name,
                known=known(self.features, {}),
            )
        return feature, *self._population(feature)

    def _population(self, feature: Feature) -> tuple[float, float]:
        if feature.name not in self._populations:
            self._populations[feature.name] = population(self.model, feature, self.place.size)
        return self._populations[feature.name]

    @in_one_thread
    def exact(self, requests: Sequence[Request], hold: Sequence[str] = ()) -> Edit:
        """The most likely shape that attains the requests.

        Of all shapes that have the requested and the constrained measures, the one whose change from the patient has
        the smallest Mahalanobis length. Fixed regions do not move at all: the model's change, conditioned on their
        staying, is joined to them (see :class:`EditSpace`), and the measures are those of the joined shape.

        Parameters
        ----------
        requests : sequence of Request
        hold : sequence of str
            Measures that must stay, or regions: ``thorax``, ``left``, ``right``. A fixed breast keeps its volume too,
            also where the chest wall behind it moves. An absent side always stays.

        Raises
        ------
        BreastMorphError
            The request names what does not exist, contradicts itself, or no sensible shape attains it.
        """
        absent = self.patient.absent_side
        # Where there is no breast, the model's modes of one mean nothing.
        change = self._resolved(requests, [*hold, absent] if absent and self._regions else hold)
        if not change.regions:
            space = self._space(with_size=bool(change.shifts))
            return self._attempt(change, space, change.features, {}, np.inf)
        fixed = self._fixed_regions(change)
        change = self._with_volumes(change)
        free = tuple(feature for feature in change.features if self._can_change(feature, fixed))
        stuck = set(change.targets) - {feature.name for feature in free}
        for name in sorted(stuck):
            if abs(change.targets[name] - change.before[name]) > self.parameters.tolerance:
                self._refuse(change, "unattainable/on-held", name=name)
        refusal = BreastMorphError("nothing can be held", "Hold less", code="unattainable/nothing")
        for miss in self.parameters.misses:
            try:
                edit = self._attempt(change, fixed.space, free, fixed.movements, miss)
            except BreastMorphError as error:
                refusal = error
                if error.code != UNATTAINABLE:
                    break
            else:
                return self._joined(edit, change, fixed)
        raise refusal

    def _joined(self, edit: Edit, change: ChangeRequest, fixed: _FixedRegions) -> Edit:
        """The edit with a warning where the skin along the border of fixed regions is bent sharply."""
        bend = fixed.border.bend(edit.before, edit.shape)
        if bend > self.parameters.broken:
            self._refuse(change, "unattainable/bent", bend=bend)
        warnings = edit.warnings
        if bend > self.parameters.bent:
            warnings = (
                *warnings,
                warning(
                    "edit-bent",
                    "along the border of what is held ({regions:measure}) the skin is bent {bend:.1f} times "
                    "as much as any two of the model's people differ there; look at the border",
                    regions=change.regions,
                    bend=bend,
                ),
            )
        return replace(edit, warnings=warnings, coefficients=place(self.model, edit.shape).coefficients)

    def _attempt(
        self,
        change: ChangeRequest,
        space: EditSpace,
        features: tuple[Feature, ...],
        fixed: Mapping[str, Floats],
        miss: float,
    ) -> Edit:
        """The edit in a space.

        Parameters
        ----------
        change : ChangeRequest
        space : EditSpace
        features : tuple of Feature
            Those asked for and constrained that can change there.
        fixed : mapping from region to (dim, dim) float
            How fixed regions would move, see :meth:`EditSpace.mean_square`.
        miss : float
            mm, root mean square, by which they may.
        """
        scales = np.array([self._population(feature)[1] for feature in features])
        if (scales <= 0.0).any():
            stiff = features[int(np.argmin(scales))].name
            raise BreastMorphError(
                "{name:measure} is the same in all shapes of this model",
                "Choose another measure",
                code="same-in-all",
                name=stiff,
            )
        start, basis = np.zeros(space.dimension), ""
        if change.shifts:
            regression = self._regression((), tuple(change.shifts))
            start = space.coordinates(regression.step(change.shifts), regression.size_step(change.shifts))
            basis = regression.source

        def read(coordinates: Floats) -> tuple[Floats, Floats]:
            shape = space.displaced(coordinates)
            readings = [feature.read(shape) for feature in features]
            values = np.array([reading.value for reading in readings]) / scales
            slopes = np.array([space.pulled_back(reading) for reading in readings]).reshape(
                -1, space.dimension
            )
            return values, slopes / scales[:, None]

        wanted, tolerance = (
            np.array([change.wanted(feature.name) for feature in features]) / scales,
            self.parameters.tolerance / scales.max(initial=1e-9),
        )
        solver = replace(self.parameters.solver, tolerance=tolerance)
        try:
            found = most_likely(read, wanted, start, list(fixed.values()), miss, solver)
        except BreastMorphError as error:  # on the way the shape lost what a measure needs
            self._refuse(change, "unattainable/lost", why=error.finding)
        self._require_attained(found, scales, change, features, fixed, miss)
        u = found.coordinates
        shape = space.displaced(u) if u.any() else self.patient.shape
        return self._judged(shape, space.coefficients(u), u, space.size_change(u), change, "exact", basis)

    @in_one_thread
    def linear(self, requests: Sequence[Request], hold: Sequence[str] = ()) -> Edit:
        """The paper's version: coefficients regressed on features, M = A F+, and the change M delta f.

        It does not attain the measures, only nearly; constrained measures are features whose delta is 0.
        """
        change = self._resolved(requests, hold)
        if change.regions:
            raise BreastMorphError(
                "the linear version cannot hold the {region}",
                "Use the exact version, or do not hold it",
                code="linear-hold",
                region=change.regions[0],
            )
        regression = self._regression(change.features, tuple(change.shifts))
        deltas = {name: value - change.before[name] for name, value in change.targets.items()}
        deltas = {**deltas, **dict.fromkeys(change.constrained, 0.0), **change.shifts}
        space = self._space(with_size=bool(change.shifts))
        u = space.coordinates(regression.step(deltas), regression.size_step(deltas))
        shape = space.displaced(u)
        return self._judged(
            shape, space.coefficients(u), u, space.size_change(u), change, "linear", regression.source
        )

    def _resolved(self, requests: Sequence[Request], hold: Sequence[str]) -> ChangeRequest:
        at_mean = not self.place.coefficients.any()
        own = {
            name: float(np.nanmean(values)) if at_mean else None for name, values in self._columns().items()
        }
        change = resolve(requests, hold, self.features, self.patient.shape, own)
        for region in change.regions:
            self._region(region)
        self._require_in_reach(change)
        return change

    def _require_in_reach(self, change: ChangeRequest) -> None:
        """Refuse values far from the model's mean, unless they are nearer to it than the present ones."""
        far = [(name, abs(shift), 0.0, self._column_deviation(name)) for name, shift in change.shifts.items()]
        for feature in change.features:
            name, (mean, sd) = feature.name, self._population(feature)
            if name in change.targets and sd > 0.0:
                far.append((name, abs(change.targets[name] - mean), abs(change.before[name] - mean), sd))
        for name, wanted, now, sd in far:
            if wanted > max(self.parameters.reach * sd, now):
                self._refuse(change, "beyond-model", name=name, deviations=wanted / sd)

    def _columns(self) -> Mapping[str, Floats]:
        return self.model.training.columns if self.model.training is not None else {}

    def _column_deviation(self, column: str) -> float:
        deviation = float(np.nanstd(self._columns()[column]))
        if deviation <= 0.0:
            raise BreastMorphError(
                "{column} is the same in all subjects of this model", "Choose another measure", column=column
            )
        return deviation

    def _region(self, name: str) -> Bools:
        if self._no_regions is not None:
            error = self._no_regions
            raise LandmarkProblem(
                "the {region} cannot be fixed: {why}",
                "{why:remedy}",
                code="region-not-held",
                region=name,
                why=error.finding,
            )
        return self._regions[name]

    def _space(self, *, with_size: bool) -> EditSpace:
        if with_size not in self._spaces:
            anchor = self._regions.get("thorax", np.ones(self.model.n_vertices, bool))
            self._spaces[with_size] = EditSpace(
                self.model, self.patient.shape, self.place, anchor, with_size=with_size
            )
        return self._spaces[with_size]

    def _fixed_regions(self, change: ChangeRequest) -> _FixedRegions:
        """What is prepared once for the same fixed regions."""
        key = tuple(sorted(change.regions))
        if key not in self._fixed:
            free: Bools = ~np.any([self._region(region) for region in change.regions], axis=0)
            if not free.any():
                self._refuse(change, "unattainable/all-held")
            seam = Seam(self.model.mean_mesh, free, self.parameters.blend)
            space = EditSpace(
                self.model,
                self.patient.shape,
                self.place,
                self._regions["thorax"],
                with_size=True,
                seam=seam,
            )
            movements = {region: space.mean_square(self._region(region)) for region in change.regions}
            self._fixed[key] = _FixedRegions(space, JoinedBorder(self.model, free), movements)
        return self._fixed[key]

    def _with_volumes(self, change: ChangeRequest) -> ChangeRequest:
        """A fixed breast keeps its volume, whatever the chest behind it does."""
        names = [f"volume-{side}" for side in SIDES if side in change.regions]
        for name in names:
            feature, before = self.features.find(name), self.before.get(name, np.nan)
            if name in change.targets:
                self._refuse(change, "unattainable/on-held", name=name)
            if feature is not None and name not in change.before and np.isfinite(before):
                change = replace(
                    change,
                    features=(*change.features, feature),
                    before={**change.before, name: before},
                    constrained=(*change.constrained, name),
                )
        return change

    def _can_change(self, feature: Feature, fixed: _FixedRegions) -> bool:
        """Whether free skin has a part in a measure."""
        slope = fixed.space.pulled_back(feature.read(self.patient.shape))
        return float(np.linalg.norm(slope)) > _NO_HOLD * self._population(feature)[1]

    def _regression(self, features: Sequence[Feature], columns: tuple[str, ...]) -> Regression:
        key = (*(feature.name for feature in features), *columns)
        if key not in self._regressions:
            self._regressions[key] = regress(
                self.model, features, columns, self.place.size, self.parameters.regression
            )
        return self._regressions[key]

    def _require_attained(
        self,
        found: Solution,
        scales: Floats,
        change: ChangeRequest,
        features: Sequence[Feature],
        fixed: Iterable[str],
        miss: float,
    ) -> None:
        for region, moved in zip(fixed, found.movements, strict=True):
            if moved > miss:
                self._refuse(change, "unattainable/moved", region=region, moved=float(moved))
        if not found.attained:
            best = [valued(f, value) for f, value in zip(features, found.values * scales, strict=True)]
            self._refuse(change, "unattainable/nearest", best=best)

    def _judged(
        self,
        shape: Floats,
        coefficients: Floats,
        coordinates: Floats,
        size_change: float,
        change: ChangeRequest,
        method: str,
        basis: str,
    ) -> Edit:
        """The edit with all its measures and warnings; refused when no body has such a shape."""
        moved = ((shape - self.patient.shape) ** 2).sum(axis=1)
        edit = Edit(
            shape=shape,
            before=self.patient.shape,
            faces=self.model.faces,
            coefficients=coefficients,
            coefficients_before=self.place.coefficients,
            length=float(np.linalg.norm(coordinates)),
            size_change=size_change,
            changes=self._changes(shape, change),
            movements={name: float(np.sqrt(moved[region].mean())) for name, region in self._regions.items()},
            method=method,
            basis=basis,
            skin=self.patient.skin,
        )
        if edit.length > max(self.parameters.longest, usual_length(self.model, self.parameters.unusual)):
            self._refuse(change, "unattainable/far", length=edit.length)
        flipped = [
            shape_metrics(self.model.mean, one, self.model.faces)["flipped_percent"]
            for one in (edit.before, shape)
        ]
        folded = flipped[1] - flipped[0]
        if folded > self.parameters.torn:
            self._refuse(change, "unattainable/folds", percent=folded)
        if not self.patient.absent_side:  # every subject of the model has both breasts
            far = {one.name: one.deviations for one in edit.changes if one.deviations is not None}
            edit = replace(edit, plausibility=model_population(self.model).judge_shape(shape, far))
        warnings = unusual_about(edit, self._plausibility_before, self.parameters.unusual)
        if folded > self.parameters.folded:
            warnings.append(
                warning(
                    FOLDED,
                    "{percent:.2f} % of the triangles are folded over; look at the shape before using it",
                    percent=folded,
                )
            )
        return replace(edit, warnings=tuple(warnings))

    def _refuse(self, change: ChangeRequest, name: str, /, **values: Any) -> NoReturn:
        usual = []
        for feature in change.features:
            mean, sd = self._population(feature)
            values_of = {"name": feature.name, "mean": mean, "sd": sd}
            usual.append(Message(_USUAL[feature.unit], values_of))
        measures = note("usual", ". Usual at this size: {measures}", measures=usual) if usual else ""
        raise BreastMorphError(
            _REFUSED[name], _LESS, code=name, asked=change.described(), usual=measures, **values
        )

    def _changes(self, shape: Floats, change: ChangeRequest) -> tuple[Measure, ...]:
        changes = []
        for column, shift in change.shifts.items():
            nan = float("nan")
            own = nan if self.place.coefficients.any() else float(np.nanmean(self._columns()[column]))
            # Where the own value is unknown, only the change can be judged.
            far = shift / self._column_deviation(column)
            beside = {"before": own, "requested": own + shift, "deviations": far}
            changes.append(Measure(column, "", nan, "", beside=beside))
        for feature in change.features:
            name, before = feature.name, change.before[feature.name]
            mean, sd = self._population(feature)
            wanted = change.wanted(name)
            beside = {"before": before, "requested": wanted}
            if name in change.targets and sd > 0.0:
                beside["deviations"] = (wanted - mean) / sd
            held, after = name in change.constrained, feature.value(shape)
            spread = self.features.spread(feature, shape)
            changes.append(Measure(name, "", after, feature.unit, None, *spread, held=held, beside=beside))
        values = self.features.measured(shape)
        for one in self.features.reported:
            if one.name not in change.before:
                sd, source = self.features.spread(one, shape)
                beside = {"before": self.before[one.name]}
                changes.append(
                    Measure(one.name, "", values[one.name], one.unit, None, sd, source, beside=beside)
                )
        return tuple(changes)
