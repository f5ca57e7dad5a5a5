"""How a value is shown in a notebook: a 3D view that needs no network, and a picture where scripts are blocked."""

from __future__ import annotations

from typing import Any

import numpy as np

from breastmorph.clinical.prediction import Prediction
from breastmorph.foundation.arrays import templates
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import ModelSliders
from breastmorph.report.page.writing import document, model_html, page_asset
from breastmorph.report.render import AMOUNT, Marker, View, colormap, picture_grid, render
from breastmorph.scan.scan import Landmarks
from breastmorph.viewer import SCRIPTS, STYLES, asset

_MOST_FACES = 200_000  # a notebook keeps what it shows; of a scan with more, a thinner copy is shown
_THINNED = 3.0  # mm, about the edges of that copy
_HEIGHT = 620  # CSS pixels
_FRAME = "body{display:block;padding:0;max-width:none}figure{margin:0}.live{height:24rem;min-height:0}"
_ONE_SHAPE = (
    ".modes,.hint,label:has(select),[data-do=reset],[data-do=random]{display:none}"  # nothing to move
)
_IFRAME = """<iframe sandbox="allow-scripts allow-downloads" title="{{ title }}"
 style="width:100%;height:{{ height }}px;border:0" srcdoc="{{ page }}"></iframe>"""
_VIEWS = {"front": View(), "oblique": View(yaw=40.0), "patient's left": View(yaw=90.0)}


def _mesh(value: Any) -> TriangleMesh:
    if isinstance(value, ShapeModel):
        return value.mean_mesh
    mesh: TriangleMesh = value if isinstance(value, TriangleMesh) else value.mesh
    return mesh if mesh.n_faces <= _MOST_FACES else thinned(mesh, _THINNED)


def _landmarks(value: Any) -> Landmarks:
    found = getattr(value, "landmarks", None)
    return found if isinstance(found, Landmarks) else Landmarks.of({})


def png(value: Any) -> bytes:
    """A still picture, with landmarks as dots and the uncertainty of a prediction in colours."""
    mesh, colors = _mesh(value), None
    if isinstance(value, Prediction):
        colors = colormap(value.sd, 0.0, max(float(value.sd.max()), 1e-9), AMOUNT)
    markers = [Marker(point) for point in _landmarks(value).points]
    pictures = [render(mesh, view, colors=colors, markers=markers) for view in _VIEWS.values()]
    return picture_grid(pictures, list(_VIEWS), len(_VIEWS))


def html(value: Any) -> str:
    """A 3D view in a frame of its own: the notebook and it cannot reach each other."""
    model = value if isinstance(value, ShapeModel) else _as_model(_mesh(value), _landmarks(value))
    page = document(
        "document.html.j2",
        repr(value),
        styles=[
            page_asset("page.css"),
            *(asset(name) for name in STYLES),
            _FRAME + ("" if model.n_components else _ONE_SHAPE),
        ],
        scripts=[*(asset(name) for name in SCRIPTS), page_asset("model_view.js"), page_asset("page.js")],
        body=model_html(ModelSliders(model, repr(value)), "1"),
    )
    return templates().from_string(_IFRAME).render(title=repr(value), height=_HEIGHT, page=page)


def _as_model(mesh: TriangleMesh, landmarks: Landmarks) -> ShapeModel:
    """A mesh as a model that knows one shape only: what the pages can show."""
    away = {name: np.linalg.norm(mesh.vertices - point, axis=1) for name, point in landmarks.items()}
    ids = {name: int(distances.argmin()) for name, distances in away.items()}
    return ShapeModel(
        mesh.vertices, np.zeros((3 * mesh.n_vertices, 0), np.float32), np.zeros(0), mesh.faces, ids
    )
