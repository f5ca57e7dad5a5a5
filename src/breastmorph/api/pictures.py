"""Pictures of meshes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.checks import check_float, check_int, check_type
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.scan.scan import Scan


def picture(
    mesh: TriangleMesh | Scan | Registration,
    values: Floats | None = None,
    *,
    low: float = 0.0,
    high: float | None = None,
    colours: str = "",
    yaw: float = 0.0,
    pitch: float = 0.0,
    size: tuple[int, int] = (360, 400),
) -> np.ndarray:
    """A shaded picture, (height, width, 3) uint8; for example for matplotlib's ``imshow``.

    Parameters
    ----------
    mesh : TriangleMesh, Scan or Registration
        Upright.
    values : (n,) float, optional
        Of the vertices, shown as colours.
    low, high : float
        Where the colours begin and end; the largest value when not given.
    colours : str
        A colour map of matplotlib; that of all our pictures of amounts when not given.
    yaw, pitch : float
        Degrees: 45 shows the patient's left side; -45 looks up from below.
    size : (width, height) in pixels

    Returns
    -------
    (height, width, 3) uint8

    Raises
    ------
    BreastMorphError
        There is no mesh, or not one number for each vertex.

    Examples
    --------
    >>> bm.picture(model.mean_mesh, values=model.vertex_deviations(), yaw=45, size=(90, 100)).shape
    (100, 90, 3)
    """
    from breastmorph.report.render import AMOUNT, View, colormap, render

    surface = mesh.mesh if isinstance(mesh, (Scan, Registration)) else mesh
    check_type(surface, TriangleMesh, "what shall be drawn", "Give a mesh, as the .mesh of a scan or result")
    view = View(check_float(yaw, "the yaw"), check_float(pitch, "the pitch"))
    if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:
        raise BreastMorphError(
            "a picture has no size {size!r}", "Give its width and height in pixels", size=size
        )
    width, height = (check_int(one, "a side of the picture") for one in size)
    colors = None
    if values is not None:
        try:
            shown = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise MeshProblem("the values are no numbers", "Give one number a vertex") from None
        if shown.shape != (surface.n_vertices,):
            raise MeshProblem(
                "{shape} values for {n_vertices} vertices",
                "Give one number a vertex",
                shape=shown.shape,
                n_vertices=surface.n_vertices,
            )
        begin, end = (
            check_float(low, "low"),
            float(np.nanmax(shown)) if high is None else check_float(high, "high"),
        )
        colors = colormap(shown, begin, end, colours or AMOUNT)
    return render(surface, view, size=(width, height), colors=colors, relief=1.0 if colors is None else 0.5)
