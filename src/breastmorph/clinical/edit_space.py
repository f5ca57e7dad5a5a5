"""The displacements an edit may use: the model's modes about one shape, relative to that shape's own thorax."""

from __future__ import annotations

import numpy as np

from breastmorph.clinical.patient import Place
from breastmorph.clinical.seam import Seam
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.model.shape_model import ShapeModel

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
        """G (dim, dim) with u' G u = mean squared movement of a region in mm squared, were nothing held."""
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
