"""A page of blocks as one file: the markup of each, and numbers, pictures and models inside it."""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.arrays import Floats, templates
from breastmorph.foundation.files import make_folder, plain, write_file
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.clinical_sheet import sheet_png
from breastmorph.report.page.content import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    ModelSliders,
    Page,
    Reproducibility,
    Section,
    Table,
    Text,
    Verdict,
)
from breastmorph.report.render import View, render
from breastmorph.viewer import SCRIPTS, STYLES, asset

if TYPE_CHECKING:
    from markupsafe import Markup

# --------------------------------------------------------------------------------------------------------------------
# Numbers as readers expect them
# --------------------------------------------------------------------------------------------------------------------


def number_text(value: float, digits: int | None = None) -> str:
    """A number with so many decimals, or with three significant digits; a dash for what is no number."""
    if not math.isfinite(value):
        return "–"
    if digits is None and isinstance(value, Integral):
        digits = 0
    if digits is None:
        if value and not 1e-4 <= abs(value) < 1e6:
            return f"{value:.1e}".replace("-", "−")
        digits = min(max(2 - math.floor(math.log10(abs(value))), 0), 4) if value else 0
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no negative zero


# --------------------------------------------------------------------------------------------------------------------
# A model small enough for a page: whole numbers of 16 bits instead of floats
# --------------------------------------------------------------------------------------------------------------------

_STEPS = 32767


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


# --------------------------------------------------------------------------------------------------------------------
# Pictures inside the page's own text
# --------------------------------------------------------------------------------------------------------------------

_UNITS = {"": 1.0, "px": 1.0, "pt": 96 / 72, "in": 96.0, "mm": 96 / 25.4, "cm": 96 / 2.54}  # in CSS pixels
_WIDEST = 1000  # CSS pixels: pictures for print have more pixels than a screen shows


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


# --------------------------------------------------------------------------------------------------------------------
# The markup of what is needed to make the results again
# --------------------------------------------------------------------------------------------------------------------


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
            yield name, _one_line(part)


def _one_line(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --------------------------------------------------------------------------------------------------------------------
# The markup of a model's 3D view: its data, its sliders, and a still picture of the mean
# --------------------------------------------------------------------------------------------------------------------

_VIEWS = (
    *(("front", "Front"), ("oblique-right", "Oblique right"), ("oblique-left", "Oblique left")),
    *(("right", "Patient's right"), ("left", "Patient's left"), ("below", "Below")),
)
_LIMIT = 3  # standard deviations: where the sliders end


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
    return sheet_png(
        [render(mesh, view, size=(300, 320)) for view in views.values()],
        list(views) if titled else [""] * 4,
        4,
        letters=18,  # 8 points on paper
    )


# --------------------------------------------------------------------------------------------------------------------
# The markup of what stands on a page, by the macros of ``blocks.html.j2``: every text is escaped there
# --------------------------------------------------------------------------------------------------------------------

_NUMBERS = re.compile(
    r"[<>≈]?\s*[+−-]?\d[\d.,]*(\s*[±/]\s*[+−-]?\d[\d.,]*)*\s*%?"
)  # texts such as 0.17 ± 0.02
_MARKS = {
    Verdict.HOLDS: ("holds", "✓"),
    Verdict.FAILS: ("fails", "✗"),
    Verdict.SMALL: ("open", "≈"),
    Verdict.UNTESTABLE: ("open", "–"),
}


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
            return _block("figure", _picture(block), block.caption, own, _offered(block))
        case ModelSliders():
            return model_html(block, number)
        case Reproducibility():
            return record_html(block)
        case Section():
            return section_html(block, number, level, counted)


def _offered(figure: Figure) -> list[tuple[str, str]]:
    """Endings and addresses of a figure's files, seen from the folder above theirs."""
    return [(file.suffix[1:].upper(), f"{file.parent.name}/{file.name}") for file in figure.files()]


def section_html(
    section: Section, number: str, level: int = 2, counted: Mapping[int, int] | None = None
) -> Markup:
    """Markup of a section with everything in it."""
    below = min(level + 1, 6)
    inside = [block_html(block, f"{number}.{k}", below, counted) for k, block in enumerate(section.blocks, 1)]
    return _block("section", section.title, number, level, inside)


def table_html(table: Table, number: int = 0) -> Markup:
    """Markup of a table: numbers to the right, the first column as headings of the rows."""
    columns = [Column(column) if isinstance(column, str) else column for column in table.columns]
    right = numeric_columns(table)
    rows = [[_cell(cell, column) for cell, column in zip(row, columns, strict=True)] for row in table.rows]
    return _block("table", table, list(zip(columns, right, strict=True)), rows, number)


def numeric_columns(table: Table) -> list[bool]:
    """Which columns are set to the right: those of numbers."""
    return [
        (isinstance(column, Column) and column.number) or _all_numbers(table, k)
        for k, column in enumerate(table.columns)
    ]


def _all_numbers(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] not in (None, "", "–", "-")]
    return bool(cells) and all(
        _NUMBERS.fullmatch(cell) is not None if isinstance(cell, str) else isinstance(cell, Real)
        for cell in cells
    )


def cell_text(cell: Cell, column: Column) -> str:
    """A cell as text, for files; empty where the page shows a dash."""
    shown = _cell(cell, column)
    return shown[2] if isinstance(shown, tuple) else shown or ""


def _cell(cell: Cell, column: Column) -> str | tuple[str, str, str] | None:
    if isinstance(cell, Verdict):
        return (*_MARKS[cell], cell.value)
    return cell if cell is None or isinstance(cell, str) else number_text(cell, column.digits)


# --------------------------------------------------------------------------------------------------------------------
# A page as one file
# --------------------------------------------------------------------------------------------------------------------


def write_page(path: Path, page: Page) -> None:
    """Write a page; the same page gives the same bytes. An existing file is replaced in one step.

    The file holds its pictures, styles and scripts and needs neither a network nor files beside it.
    """
    make_folder(path.parent)
    write_file(path, page_html(page).encode("utf-8", "replace"))


def page_html(page: Page) -> str:
    """The page as text."""
    styles, scripts = [page_asset("page.css")], [page_asset("page.js")]
    if any(_has_view(section) for section in page.sections):
        styles += [asset(name) for name in STYLES]
        scripts = [*(asset(name) for name in SCRIPTS), page_asset("model_view.js"), *scripts]
    places, counted = _places(page), page.numbered()
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


def _places(page: Page) -> list[str]:
    """Numbers of the sections; appendices have letters."""
    main = sum(not section.appendix for section in page.sections)
    return [
        chr(ord("A") + k - main) if section.appendix else str(k + 1)
        for k, section in enumerate(page.sections)
    ]


def _has_view(block: Block) -> bool:
    if isinstance(block, Section):
        return any(_has_view(inner) for inner in block.blocks)
    return isinstance(block, ModelSliders)


# --------------------------------------------------------------------------------------------------------------------
# An HTML document that runs only its own scripts and can reach no network
# --------------------------------------------------------------------------------------------------------------------


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
        Whole style sheets and scripts. The browser is told their hashes and to run nothing else, so markup that
        slipped in as somebody's text stays without effect.
    images : str
        Where pictures may come from.
    **values
        What else the template asks for.
    """
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            f"img-src {images}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    values |= {"title": title, "policy": policy, "styles": styles, "scripts": scripts}
    return templates().get_template(f"report/page/{template}").render(values)


def _hashes(texts: Sequence[str]) -> str:
    found = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{one}'" for one in found) or "'none'"
