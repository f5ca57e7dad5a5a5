"""The displacements an edit may use: the model's modes about one shape, seen from that shape's own thorax.

A shape model knows neither pose nor size: both were removed before its modes were found. So a mode that enlarges the
breasts also moves and shrinks the thorax a little, only because the alignment centred and scaled the whole torso. Here
every mode is brought back by the rigid motion that keeps the thorax where it is (to first order), and size may become
a coordinate of its own, so that a thorax that is held settles it.

The few modes of a small cohort tie distant parts together that have nothing to do with each other. Then modes can be
made local: each fades out beyond the border of the part that may change (a taper of the covariance).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from breastmorph.clinical.features import Reading
from breastmorph.clinical.patient import Place
from breastmorph.mesh.geometry import lengths
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import Bools, Floats, TriangleMesh
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
    fading : (n,) float, optional
        Factors (0 to 1) of all movements; 1 everywhere when not given. See :func:`faded`.
    """

    def __init__(
        self,
        model: ShapeModel,
        shape: Floats,
        place: Place,
        anchor: Bools,
        *,
        with_size: bool,
        fading: Floats | None = None,
    ) -> None:
        self._fading = np.ones(len(shape)) if fading is None else fading
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
        return self.shape + (moved * self._fading[:, None]) @ self._turn

    def pulled_back(self, reading: Reading) -> Floats:
        """Gradient of a feature in the coordinates, (dim,)."""
        q = self._model.n_components
        gradient = (reading.gradient @ self._turn.T) * self._fading[reading.vertices, None]
        rows = self._model.rows(reading.vertices)
        along = np.zeros(self.dimension)
        along[:q] = (gradient.ravel().astype(rows.dtype) @ rows) * self._deviations
        if self._size is not None:
            along[q] = (gradient * self._size[reading.vertices]).sum()
        return along - np.einsum("ni,nij->j", gradient, self._motions[reading.vertices]) @ self._back

    def mean_square(self, region: Bools) -> Floats:
        """G (dim, dim) with u' G u = mean squared movement of a region's vertices in mm squared."""
        rows = self._rows(region) - self._motions[region].reshape(-1, 6) @ self._back
        rows *= np.repeat(self._fading[region], 3)[:, None]
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


def faded(mesh: TriangleMesh, free: Bools, inside: float, outside: float) -> Floats:
    """Factors that fade out over the border of a part, (n,): 1 well inside, 0 well outside, smooth between.

    Parameters
    ----------
    mesh : TriangleMesh
    free : (n,) bool
        The part.
    inside, outside : float
        mm along the edges from the border to where the factor is 1 and 0.
    """
    edges = edge_table(mesh.faces).edges
    n = mesh.n_vertices
    graph = coo_matrix((lengths(mesh.vertices, edges), edges.T), shape=(n, n)).tocsr()
    if not free.any() or free.all():
        return free.astype(float)
    away = [
        dijkstra(graph, directed=False, indices=np.flatnonzero(part), min_only=True, limit=inside + outside)
        for part in (free, ~free)
    ]
    signed = np.where(free, -away[1], away[0])
    return 0.5 * (1.0 + np.cos(np.pi * np.clip((signed + inside) / (inside + outside), 0.0, 1.0)))


def size_deviation(model: ShapeModel) -> float:
    """Standard deviation of the size of the model's subjects, relative to its mean."""
    if model.training is not None and len(model.training.scales) > 1:
        return float(model.training.scales.std(ddof=1) / model.training.scales.mean()) or _SIZE_DEVIATION
    removed = model.info.get("removed", {})
    try:
        return float(removed["scale_sd"]) / float(removed["scale_mean"]) or _SIZE_DEVIATION
    except (KeyError, TypeError, ZeroDivisionError):
        return _SIZE_DEVIATION
