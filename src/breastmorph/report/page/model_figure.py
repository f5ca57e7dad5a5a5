"""The markup of a model's 3D view: its data, its sliders, and a still picture of the mean."""

from __future__ import annotations

from html import escape
from string import Template

from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.contact_sheet import sheet_png
from breastmorph.report.page.content import Figure, ModelView
from breastmorph.report.page.document import json_element, page_asset
from breastmorph.report.page.number_text import number_text
from breastmorph.report.page.packing import packed_model
from breastmorph.report.page.pictures import image_html
from breastmorph.report.render import View, render

_VIEWS = (
    *(("front", "Front"), ("oblique-right", "Oblique right"), ("oblique-left", "Oblique left")),
    *(("right", "Patient's right"), ("left", "Patient's left"), ("below", "Below")),
)
_LIMIT = 3.0  # standard deviations: where the sliders end


def model_html(shown: ModelView, number: str) -> str:
    """Markup of the view; ``number`` makes the names of its sliders unique on the page."""
    data = packed_model(shown.model, shown.modes)
    ids = shown.model.landmark_ids
    data["landmarks"] = {name.replace("_", " "): int(ids[name]) for name in sorted(ids)}
    views = "".join(f'<button type="button" data-view="{view}">{name}</button>' for view, name in _VIEWS)
    sliders = "\n".join(
        f'<div class="mode"><label for="mode-{number}-{k}">Mode {k + 1} <span class="unit">'
        f"{number_text(100 * share, 1)} % of variance</span></label>"
        f'<output for="mode-{number}-{k}">0.0 sd</output>'
        f'<button type="button" data-play="{k}" aria-pressed="false" aria-label="Play mode {k + 1}" '
        f'title="Play"></button>'
        f'<input type="range" id="mode-{number}-{k}" data-mode="{k}" min="{-_LIMIT:g}" max="{_LIMIT:g}" '
        f'step="0.1" value="0"></div>'
        for k, share in enumerate(data["shares"])
    )
    still = image_html(Figure(_still(shown.model), ""), "The mean shape from four sides", "still")
    return Template(page_asset("model_view.html")).substitute(
        caption=escape(shown.caption),
        still=still,
        views=views,
        sliders=sliders,
        data=json_element("model-data", data),
    )


def _still(model: ShapeModel) -> bytes:
    """The mean from four sides as a PNG: for paper, and where the 3D view cannot run."""
    views = {
        "front: patient's left is on the right": View(),
        "from the patient's left, oblique": View(yaw=40.0),
        "from the patient's left": View(yaw=90.0),
        "from below": View(pitch=-55.0),
    }
    mesh = model.mean_mesh
    return sheet_png([render(mesh, view, size=(300, 320)) for view in views.values()], list(views), 4)
