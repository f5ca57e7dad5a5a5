"""The one renderer of HTML pages: a page as one file that holds its pictures, models, styles and scripts."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.arrays import Floats, templates
from breastmorph.foundation.files import make_folder, plain, write_file
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import (
    Block,
    Code,
    Figure,
    ModelSliders,
    Page,
    Panels,
    Reproducibility,
    Section,
    Table,
    Text,
    Verdict,
    cell_text,
    flat,
    number_text,
)
from breastmorph.report.render import View, picture_grid, render
from breastmorph.report.sheet import Layout, page_png
from breastmorph.viewer import SCRIPTS, STYLES, asset

if TYPE_CHECKING:
    from markupsafe import Markup

_STEPS = 32767  # numbers of a packed model are whole, of 16 bits
_UNITS = {"": 1.0, "px": 1.0, "pt": 96 / 72, "in": 96.0, "mm": 96 / 25.4, "cm": 96 / 2.54}  # in CSS pixels
_WIDEST = 1000  # CSS pixels: pictures for print have more pixels than a screen shows
_VIEWS = (
    *(("front", "Front"), ("oblique-right", "Oblique right"), ("oblique-left", "Oblique left")),
    *(("right", "Patient's right"), ("left", "Patient's left"), ("below", "Below")),
)
_LIMIT = 3  # standard deviations: where the sliders end
_MARKS = {
    Verdict.HOLDS: ("holds", "✓"),
    Verdict.FAILS: ("fails", "✗"),
    Verdict.SMALL: ("open", "≈"),
    Verdict.UNTESTABLE: ("open", "–"),
}


def packed_model(model: ShapeModel, modes: int) -> dict[str, Any]:
    """Mean, faces and first modes as JSON values.

    Returns
    -------
    dict
        ``mean`` and every entry of ``modes`` are ``{scale, values}``: little-endian int16 of (n, 3) in base64, times
        ``scale`` in mm. A mode is one standard deviation long. ``shares`` are the modes' parts of all variance.
        A torso of 60 cm is rounded to steps of 0.01 mm, modes to finer ones.
    """
    kept = min(modes, model.n_components)
    total = float(model.variances.sum()) + model.noise_variance * model.mean.size
    middle = (model.mean.min(axis=0) + model.mean.max(axis=0)) / 2
    wide = model.n_vertices > 0xFFFF
    return {
        "middle": [float(value) for value in middle],
        "mean": _whole(model.mean - middle),
        "faces": {"wide": wide, "values": _base64(model.faces.astype("<u4" if wide else "<u2"))},
        "modes": [_whole(model.basis[:, k] * model.deviations[k]) for k in range(kept)],
        "shares": [float(variance / total) if total > 0.0 else 0.0 for variance in model.variances[:kept]],
    }


def _whole(values: Floats) -> dict[str, Any]:
    scale = float(np.abs(values).max(initial=0.0)) / _STEPS or 1.0
    return {"scale": scale, "values": _base64(np.round(values / scale).astype("<i2"))}


def _base64(values: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _picture(figure: Figure) -> dict[str, Any]:
    width, height = _size(figure)
    address = f"data:{figure.kind};base64,{b64encode(figure.data).decode()}"
    return {"width": width, "height": height, "address": address}


def _size(figure: Figure) -> tuple[int, int]:
    """Width and height in CSS pixels, (0, 0) where the file does not say; keeps the place until it is decoded."""
    if figure.kind == "image/png" and len(figure.data) >= 24:
        width, height = struct.unpack(">II", figure.data[16:24])
        shrink = max(1.0, width / _WIDEST)
        return round(width / shrink), round(height / shrink)
    if figure.kind == "image/svg+xml":
        head = figure.data[:8192].decode("utf-8", "replace").partition("<svg")[2].partition(">")[0]
        sides = [re.search(rf'\b{side}="([0-9.]+)(px|pt|in|mm|cm|)"', head) for side in ("width", "height")]
        if all(sides):
            width, height = (round(float(side[1]) * _UNITS[side[2]]) for side in sides if side)
            return width, height
    return 0, 0


def record_html(what: Reproducibility) -> Markup:
    """Markup of the record: single values in a table, groups to be unfolded, and all of it as JSON."""
    record = plain(_unfrozen(what.record))
    groups = {name: value for name, value in record.items() if isinstance(value, dict)}
    single = {name: value for name, value in record.items() if name not in groups}
    unfolded = [(name.replace("_", " "), list(_flat(value))) for name, value in groups.items()]
    return _block("record", what.name, list(_flat(single)), unfolded, record)


def _unfrozen(value: Any) -> Any:
    """With plain dictionaries, also where a mapping is read-only, and with texts for what JSON does not know."""
    if isinstance(value, Mapping):
        return {str(key): _unfrozen(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unfrozen(part) for part in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (str, Real, type(None))) or hasattr(value, "tolist") else str(value)


def _flat(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, part in value.items():
        name = f"{before}{key}"
        if isinstance(part, dict) and part:
            yield from _flat(part, f"{name} › ")
        else:
            text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
            yield name, "none" if part is None else text


def model_html(shown: ModelSliders, number: str) -> Markup:
    """Markup of the view; ``number`` makes the names of its sliders unique on the page."""
    data = packed_model(shown.model, shown.modes)
    ids = shown.model.landmark_ids
    data["landmarks"] = {name.replace("_", " "): int(ids[name]) for name in sorted(ids)}
    shares = [number_text(100 * share, 1) for share in data["shares"]]
    still = _picture(Figure(mean_png(shown.model), ""))
    return _block("model", shown.caption, number, still, _VIEWS, _LIMIT, shares, data)


def mean_png(model: ShapeModel, titled: bool = True) -> bytes:
    """The mean from four sides as a PNG: for paper, and where the 3D view cannot run."""
    views = {
        "front, her left on the right": View(),
        "oblique, from her left": View(yaw=40.0),
        "from her left": View(yaw=90.0),
        "from below": View(pitch=-55.0),
    }
    mesh = model.mean_mesh
    return picture_grid(
        [render(mesh, view, size=(300, 320)) for view in views.values()],
        list(views) if titled else [""] * 4,
        4,
        letters=18,  # 8 points on paper
    )


def _block(macro: str, *values: Any) -> Markup:
    made: Markup = getattr(templates().get_template("report/page/blocks.html.j2").module, macro)(*values)
    return made


def block_html(block: Block, number: str, level: int = 3, counted: Mapping[int, int] | None = None) -> Markup:
    """Markup of one block.

    Parameters
    ----------
    block : Block
    number : str
        Its place on the page, such as ``2.1``; makes its addresses unique.
    level : int
        Of the heading, if it is a section.
    counted : mapping, optional
        Numbers of figures and tables, see :meth:`Page.numbered`.
    """
    own = (counted or {}).get(id(block), 0)
    match block:
        case Text():
            return _block("text", block)
        case Code():
            return _block("code", block.text)
        case Table():
            return table_html(block, own)
        case Figure():
            files = [(file.suffix[1:].upper(), f"{file.parent.name}/{file.name}") for file in block.files()]
            return _block("figure", _picture(block), block.caption, own, files)
        case Panels():
            drawn = page_png(Page("", (replace(block, label=""),)), Layout((8.3, 3.2)))
            return _block("figure", _picture(Figure(drawn, block.label)), block.label, own, [])
        case ModelSliders():
            return model_html(block, number)
        case Reproducibility():
            return record_html(block)
        case Section():
            return section_html(block, number, level, counted)


def section_html(
    section: Section, number: str, level: int = 2, counted: Mapping[int, int] | None = None
) -> Markup:
    """Markup of a section with everything in it."""
    below = min(level + 1, 6)
    inside = [block_html(block, f"{number}.{k}", below, counted) for k, block in enumerate(section.blocks, 1)]
    return _block("section", section.title, number, level, inside)


def table_html(table: Table, number: int = 0) -> Markup:
    """Markup of a table: numbers to the right, the first column as headings of the rows."""
    columns = table.full_columns()
    rows = [
        [
            (*_MARKS[cell], cell.value) if isinstance(cell, Verdict) else cell_text(cell, column)
            for cell, column in zip(row, columns, strict=True)
        ]
        for row in table.rows
    ]
    return _block("table", table, list(zip(columns, table.numeric(), strict=True)), rows, number)


def write_page(path: Path, page: Page) -> None:
    """Write a page; the same page gives the same bytes. An existing file is replaced in one step.

    The file holds its pictures, styles and scripts and needs neither a network nor files beside it.
    """
    make_folder(path.parent)
    write_file(path, page_html(page).encode("utf-8", "replace"))


def page_html(page: Page) -> str:
    """The page as text."""
    styles, scripts = [page_asset("page.css")], [page_asset("page.js")]
    if any(isinstance(block, ModelSliders) for block in flat(page.blocks)):
        styles += [asset(name) for name in STYLES]
        scripts = [*(asset(name) for name in SCRIPTS), page_asset("model_view.js"), *scripts]
    counted, main = page.numbered(), sum(not section.appendix for section in page.sections)
    places = [  # appendices have letters
        chr(ord("A") + k - main) if section.appendix else str(k + 1)
        for k, section in enumerate(page.sections)
    ]
    sections = [
        section_html(section, place, counted=counted)
        for section, place in zip(page.sections, places, strict=True)
    ]
    return document(
        "page.html.j2",
        page.title,
        styles=styles,
        scripts=scripts,
        page=page,
        sections=sections,
        contents=[(place, section.title) for section, place in zip(page.sections, places, strict=True)],
        picture=_picture(page.picture) if page.picture is not None else None,
    )


def page_asset(name: str) -> str:
    """Text of a script or style sheet of the pages."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def document(
    template: str,
    title: str,
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    images: str = "data: blob:",
    **values: Any,
) -> str:
    """A document as text.

    Parameters
    ----------
    template : str
        A file beside this one that fills ``document.html.j2``.
    title : str
    styles, scripts : sequence of str
        Whole style sheets and scripts. The browser gets their hashes and runs nothing else, so that markup inside a
        text has no effect.
    images : str
        Where pictures may come from.
    **values
        What else the template asks for.
    """

    def hashes(texts: Sequence[str]) -> str:
        digests = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
        return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"

    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {hashes(scripts)}",
            f"style-src {hashes(styles)}",
            f"img-src {images}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    values |= {"title": title, "policy": policy, "styles": styles, "scripts": scripts}
    return templates().get_template(f"report/page/{template}").render(values)
