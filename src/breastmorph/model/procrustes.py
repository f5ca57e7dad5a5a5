"""Generalised Procrustes analysis: shapes in correspondence brought into one frame (paper section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned shapes.

    Attributes
    ----------
    shapes : (k, n, 3) float
    mean : (n, 3) float
        At the mean centroid size of the inputs, centred.
    transforms : tuple of Similarity
        Take each input to its aligned shape.
    iterations : int
    """

    shapes: Floats
    mean: Floats
    transforms: tuple[Similarity, ...]
    iterations: int


def align_shapes(
    shapes: Floats, *, with_scale: bool = True, tolerance: float = 1e-10, max_iterations: int = 100
) -> Alignment:
    """Align shapes to their mean, iterated until the mean stands still.

    Parameters
    ----------
    shapes : (k, n, 3) float
    with_scale : bool
        False keeps size (rigid alignment).
    tolerance : float
        Largest change of the mean per iteration, relative to its centroid size.
    """
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    size = float(np.mean([np.linalg.norm(shape) for shape in centred]))
    mean = centred[0] * (size / np.linalg.norm(centred[0]) if with_scale else 1.0)
    for iteration in range(1, max_iterations + 1):
        transforms = tuple(Similarity.fit(shape, mean, with_scale=with_scale) for shape in shapes)
        aligned = np.stack([t.apply(shape) for t, shape in zip(transforms, shapes, strict=True)])
        new = aligned.mean(axis=0)
        if with_scale:
            new = new * (size / np.linalg.norm(new))
        # The mean must not turn with the shapes, or it would drift for ever.
        new = Similarity.fit(new, mean, with_scale=False).apply(new)
        change = np.linalg.norm(new - mean) / size
        mean = new
        if change < tolerance:
            break
    return Alignment(aligned, mean, transforms, iteration)
