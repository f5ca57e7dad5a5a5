"""The most likely displacement that attains requested values while some regions hardly move, and the space of these.

The space is spanned by the model's modes about one shape, relative to that shape's own thorax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from breastmorph.clinical.patient import Place
from breastmorph.clinical.seam import Seam
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.model.shape_model import ShapeModel

Read = Callable[[Floats], tuple[Floats, Floats]]  # coordinates -> values (k,) and their gradients (k, dim)


@dataclass(frozen=True)
class SolverParameters:
    """When the iterations end."""

    tolerance: float = 1e-4  # of the values, in the unit the caller scaled them to
    steps: int = 12  # of the linearised problem, which takes the fewest readings
    settled: float = 0.02  # relative length of a step that changes nothing that matters
    wildest: float = 60.0  # standard deviations: farther, the steps run away
    iterations: int = 15  # of the minimiser for what bends too much for them
    precision: float = 1e-5  # of its objective; less drowns in the rounding of 32-bit modes
    restorations: int = 8  # Newton steps onto the constraints after it
    rounds: int = 5  # of finding the noise for it
    noise: tuple[float, float] = (1e-7, 1e7)  # mm squared
    target: float = 0.95  # of the limit: what the linearised problem aims at
    roughly: float = 1.5  # times the limit: what curvature may still mend
    close: float = 0.85  # of the limit: near enough to it, the most likely shape would win nothing more


@dataclass(frozen=True, eq=False)
class Solution:
    """What was found.

    Attributes
    ----------
    coordinates : (dim,) float
    values : (k,) float
    movements : (r,) float
        Root mean square movement of the fixed regions, mm.
    attained : bool
        Whether the values are those asked for.
    """

    coordinates: Floats
    values: Floats
    movements: Floats
    attained: bool


def most_likely(
    read: Read,
    targets: Floats,
    start: Floats,
    fixed: Sequence[Floats] = (),
    limit: float = 1.0,
    parameters: SolverParameters | None = None,
) -> Solution:
    """Solve the problem above.

    Parameters
    ----------
    read : callable
        Values and gradients at coordinates.
    targets : (k,) float
        Wanted values.
    start : (dim,) float
        The most likely coordinates without any constraint.
    fixed : sequence of (dim, dim) float
        G of every fixed region.
    limit : float
        mm.
    parameters : SolverParameters, optional

    Returns
    -------
    Solution
        The best found; ``attained`` and ``movements`` say whether it is what was asked for.
    """
    p = parameters or SolverParameters()
    # A minimiser asks for values and gradients of the same coordinates one after the other.
    last = lru_cache(maxsize=1)(lambda data: read(np.frombuffer(data).copy()))

    def reading(coordinates: Floats) -> tuple[Floats, Floats]:
        return last(coordinates.tobytes())

    problem = _Problem(reading, targets, start, fixed, p)
    found, attained = problem.by_steps(limit)
    if not attained and problem.holds_can_be_kept(found, limit):
        found, attained = problem.by_minimiser(limit)
    return Solution(found, reading(found)[0], _movements(found, fixed), attained)


class _Problem:
    def __init__(
        self, read: Read, targets: Floats, start: Floats, fixed: Sequence[Floats], p: SolverParameters
    ) -> None:
        self.read, self.targets, self.start, self.fixed, self.p = read, targets, start, fixed, p
        strengths, self._vectors = np.linalg.eigh(sum(fixed, np.zeros((len(start), len(start)))))
        self._strengths = np.maximum(strengths, 0.0)

    def by_steps(self, limit: float) -> tuple[Floats, bool]:
        """Linearise, solve, repeat; the last place and whether that settled."""
        at = self.start
        for _ in range(self.p.steps):
            new = self._linearised(at, self._noise_for(at, self.p.target * limit))
            # A step that hardly changes anything, from a place that has all that is asked for, ends it there.
            short = np.linalg.norm(new - at) <= self.p.settled * np.linalg.norm(new)
            if short and self._error(at) <= self.p.tolerance and self._worst(at) <= limit:
                return at, True
            if not np.linalg.norm(new) < self.p.wildest:
                return at, False
            at = new
        return at, False

    def holds_can_be_kept(self, at: Floats, limit: float) -> bool:
        """Whether the regions stay at least roughly when nothing else matters."""
        return self._worst(self._linearised(at, self.p.noise[0])) <= self.p.roughly * limit

    def by_minimiser(self, limit: float) -> tuple[Floats, bool]:
        """Sequential quadratic programming with a search along each step, for one noise after another."""
        noise = np.inf
        found, attained = self._minimised(noise, self.start)
        for _ in range(self.p.rounds if self.fixed else 0):
            worst = self._worst(found)
            if worst <= limit and (worst >= self.p.close * limit or noise == np.inf):
                break
            last, noise = noise, self._noise_for(found, self.p.target * limit)
            if abs(noise / last - 1.0) < 1e-3:
                break
            found, attained = self._minimised(noise, found)
        return found, attained

    def _minimised(self, noise: float, near: Floats) -> tuple[Floats, bool]:
        """The solution for one noise, from coordinates near it; and whether it attains the targets."""
        from scipy.optimize import minimize

        half, centre = self._half(noise), self._centre(noise)
        if not len(self.targets):
            return centre, True

        def off(v: Floats) -> Floats:
            return self.read(centre + half @ v)[0] - self.targets

        def slope(v: Floats) -> Floats:
            return self.read(centre + half @ v)[1] @ half

        first = self._vectors.T @ (near - centre) * np.sqrt(1.0 + self._strengths / noise)
        result = minimize(
            lambda v: (0.5 * float(v @ v), v),
            first,
            jac=True,
            method="SLSQP",
            constraints={"type": "eq", "fun": off, "jac": slope},
            options={"maxiter": self.p.iterations, "ftol": self.p.precision},
        )
        best = result.x if np.isfinite(result.x).all() else first
        for _ in range(self.p.restorations):
            error = off(best)
            if np.abs(error).max() <= 0.1 * self.p.tolerance:
                break
            step = np.linalg.lstsq(slope(best), -error, rcond=1e-10)[0]
            if not np.abs(off(best + step)).max() < np.abs(error).max():
                break
            best = best + step
        found = centre + half @ best
        return found, self._error(found) <= self.p.tolerance

    def _linearised(self, at: Floats, noise: float) -> Floats:
        """The solution, were the values linear about ``at``."""
        half, centre = self._half(noise), self._centre(noise)
        values, slopes = self.read(at)
        wanted = self.targets - values + slopes @ (at - centre)
        solved: Floats = centre + half @ np.linalg.lstsq(slopes @ half, wanted, rcond=1e-10)[0]
        return solved

    def _noise_for(self, at: Floats, limit: float) -> float:
        """The largest noise that keeps the regions within the limit, were the values linear about ``at``."""
        if self._worst(self._linearised(at, np.inf)) <= limit:
            return np.inf
        low, high = np.log(self.p.noise)
        for _ in range(30):
            middle = (low + high) / 2.0
            if self._worst(self._linearised(at, float(np.exp(middle)))) <= limit:
                low = middle
            else:
                high = middle
        return float(np.exp(low))

    def _error(self, at: Floats) -> float:
        return float(np.abs(self.read(at)[0] - self.targets).max(initial=0.0))

    def _worst(self, at: Floats) -> float:
        return float(_movements(at, self.fixed).max(initial=0.0))

    def _half(self, noise: float) -> Floats:
        """A square root of the covariance (I + G / noise)^-1."""
        return self._vectors / np.sqrt(1.0 + self._strengths / noise)

    def _centre(self, noise: float) -> Floats:
        half = self._half(noise)
        centre: Floats = half @ (half.T @ self.start)
        return centre


def _movements(coordinates: Floats, fixed: Sequence[Floats]) -> Floats:
    return np.sqrt(np.array([max(float(coordinates @ gram @ coordinates), 0.0) for gram in fixed]))


_SIZE_DEVIATION = 0.08  # of adults' torsos, where the model does not say


class EditSpace:
    """Displacements of one shape by standard coordinates u: independent, of variance 1 in the model.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        In mm, in its own frame and size.
    place : Place
        Where the shape stands in the model.
    anchor : (n,) bool
        Vertices whose rigid motion is taken out: the thorax.
    with_size : bool
        Whether the last coordinate is the shape's size.
    seam : Seam, optional
        Its region moves and all else stays where it is: what the coordinates would move at the border is taken off the
        region too, fading out inside it, so that the skin is joined without a step or a crease. All moves when not
        given.
    """

    def __init__(
        self,
        model: ShapeModel,
        shape: Floats,
        place: Place,
        anchor: Bools,
        *,
        with_size: bool,
        seam: Seam | None = None,
    ) -> None:
        self._seam = seam
        self.shape, self._place, self._model = shape, place, model
        self._deviations = model.deviations * place.size
        self._turn = place.to_model.rotation
        points = (shape - shape[anchor].mean(axis=0)) @ self._turn.T
        axes = np.eye(3)
        motions = [np.broadcast_to(axis, points.shape) for axis in axes]
        motions += [np.cross(axis, points) for axis in axes]
        self._motions = np.stack(motions, axis=2)  # (n, 3, 6), in the model's axes
        self._size = points * size_deviation(model) if with_size and not model.keeps_size else None
        at_anchor = self._motions[anchor].reshape(-1, 6)
        self._back = np.linalg.solve(at_anchor.T @ at_anchor, at_anchor.T @ self._rows(anchor))  # (6, dim)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self._model.n_components + (self._size is not None)

    def displaced(self, coordinates: Floats) -> Floats:
        """The shape moved by coordinates (dim,), (n, 3) in its own frame."""
        q = self._model.n_components
        basis = self._model.basis
        moved = (
            (basis @ (self._deviations * coordinates[:q]).astype(basis.dtype)).reshape(-1, 3).astype(float)
        )
        if self._size is not None:
            moved += self._size * coordinates[q]
        moved -= self._motions @ (self._back @ coordinates)
        if self._seam is None:
            return self.shape + moved @ self._turn
        free = moved[self._seam.region] - self._seam.continued(moved[self._seam.border])
        out = np.array(self.shape)
        out[self._seam.region] += free @ self._turn
        return out

    def pulled_back(self, reading: Reading) -> Floats:
        """Gradient of a feature in the coordinates, (dim,)."""
        q = self._model.n_components
        vertices, gradient = self._of_coordinates(reading.vertices, reading.gradient @ self._turn.T)
        rows = self._model.rows(vertices)
        along = np.zeros(self.dimension)
        along[:q] = (gradient.ravel().astype(rows.dtype) @ rows) * self._deviations
        if self._size is not None:
            along[q] = (gradient * self._size[vertices]).sum()
        return along - np.einsum("ni,nij->j", gradient, self._motions[vertices]) @ self._back

    def _of_coordinates(self, vertices: Ints, gradient: Floats) -> tuple[Ints, Floats]:
        """From a derivative by the shape's vertices to that by what the coordinates would move, were all free."""
        if self._seam is None:
            return vertices, gradient
        place = np.full(len(self.shape), -1)
        place[self._seam.region] = np.arange(len(self._seam.region))
        free = place[vertices] >= 0
        if not free.any():
            return vertices[:0], gradient[:0]
        inside = np.zeros((len(self._seam.region), 3))
        np.add.at(inside, place[vertices[free]], gradient[free])
        at_border = -self._seam.pulled_back(inside)
        return np.concatenate([vertices[free], self._seam.border]), np.vstack([gradient[free], at_border])

    def mean_square(self, region: Bools) -> Floats:
        """G (dim, dim) with u' G u = mean squared movement of a region in mm squared, were nothing fixed."""
        rows = self._rows(region) - self._motions[region].reshape(-1, 6) @ self._back
        gram: Floats = rows.T @ rows / max(int(region.sum()), 1)
        return gram

    def coordinates(self, change: Floats, size_change: float) -> Floats:
        """Coordinates (dim,) of a change of coefficients (q,) and of a relative change of the size."""
        q = self._model.n_components
        found = np.zeros(self.dimension)
        np.divide(change, self._model.deviations, out=found[:q], where=self._model.variances > 0.0)
        if self._size is not None:
            found[q] = size_change / size_deviation(self._model)
        return found

    def coefficients(self, coordinates: Floats) -> Floats:
        """Model coefficients after moving by coordinates, (q,)."""
        change = self._model.deviations * coordinates[: self._model.n_components]
        return self._place.coefficients + change

    def size_change(self, coordinates: Floats) -> float:
        """Relative change of the size."""
        return float(coordinates[-1]) * size_deviation(self._model) if self._size is not None else 0.0

    def _rows(self, vertices: Bools | np.ndarray) -> Floats:
        """Displacement of some vertices by each coordinate, without the way back, (3k, dim), the model's axes."""
        rows = self._model.rows(vertices) * self._deviations
        if self._size is None:
            return np.asarray(rows, dtype=float)
        return np.column_stack([rows, self._size[vertices].ravel()])


def size_deviation(model: ShapeModel) -> float:
    """Standard deviation of the size of the model's subjects, relative to its mean."""
    if model.training is not None and len(model.training.scales) > 1:
        return float(model.training.scales.std(ddof=1) / model.training.scales.mean()) or _SIZE_DEVIATION
    removed = model.info.get("removed", {})
    try:
        return float(removed["scale_sd"]) / float(removed["scale_mean"]) or _SIZE_DEVIATION
    except (KeyError, TypeError, ZeroDivisionError):
        return _SIZE_DEVIATION
