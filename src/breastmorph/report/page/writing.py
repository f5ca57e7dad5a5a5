"""A page of blocks as one file: the markup of each, and numbers, pictures and models inside it."""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from numbers import Integral, Real
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from breastmorph.foundation.arrays import Floats
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
from breastmorph.report.page.document import document, json_element, page_asset
from breastmorph.report.render import View, render
from breastmorph.viewer import SCRIPTS, STYLES, asset

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


def image_html(figure: Figure, alt: str, name: str = "") -> str:
    """Markup of a picture, of a class ``name``."""
    width, height = _size(figure)
    # Decoded with the page around it: never an empty frame, neither on the screen nor on paper.
    # As an image, a drawing can neither run scripts nor fetch anything, whatever stands in it.
    address = f"data:{figure.kind};base64,{b64encode(figure.data).decode()}"
    size = f' width="{width}" height="{height}"' if width else ""
    named = f' class="{name}"' if name else ""
    return f'<img{named} decoding="sync"{size} alt="{escape(alt)}" src="{address}">'


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


def record_html(what: Reproducibility) -> str:
    """Markup of the record: single values in a table, groups to be unfolded, and all of it as JSON."""
    record = plain(_unfrozen(what.record))
    groups = {name: value for name, value in record.items() if isinstance(value, dict)}
    single = {name: value for name, value in record.items() if name not in groups}
    parts = [_record_table(single)] if single else []
    for name, value in groups.items():
        count = sum(1 for _ in _flat(value))
        parts.append(
            f'<details><summary>{escape(name.replace("_", " "))} <span class="unit">{count} '
            f"{'entry' if count == 1 else 'entries'}</span></summary>{_record_table(value)}</details>"
        )
    return f"""<div class="record-box" data-name="{escape(what.name)}">
<div class="row" hidden><button type="button" data-do="copy">Copy as JSON</button>
<button type="button" data-do="save-record">Save as file</button>
<button type="button" data-do="unfold">Open all</button>
<span role="status"></span></div>
{"".join(parts)}
{json_element("record", record)}
</div>"""


def _record_table(record: dict[str, Any]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in _flat(record)
    )
    return f'<table class="record"><tbody>\n{rows}\n</tbody></table>'


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
_LIMIT = 3.0  # standard deviations: where the sliders end


def model_html(shown: ModelSliders, number: str) -> str:
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


# --------------------------------------------------------------------------------------------------------------------
# The markup of what stands on a page. Every text is escaped where it becomes markup
# --------------------------------------------------------------------------------------------------------------------

_NUMBERS = re.compile(
    r"[<>≈]?\s*[+−-]?\d[\d.,]*(\s*[±/]\s*[+−-]?\d[\d.,]*)*\s*%?"
)  # texts such as 0.17 ± 0.02
_MARKS = {Verdict.HOLDS: ("holds", "✓"), Verdict.FAILS: ("fails", "✗"), Verdict.UNTESTABLE: ("open", "–")}


def block_html(block: Block, number: str, level: int = 3) -> str:
    """Markup of one block.

    Parameters
    ----------
    block : Block
    number : str
        Its place on the page, such as ``2.1``; makes its addresses unique.
    level : int
        Of the heading, if it is a section.
    """
    match block:
        case Text():
            return _text(block)
        case Code():
            return f"<pre><code>{escape(block.text)}</code></pre>"
        case Table():
            return table_html(block)
        case Figure():
            return _figure(block)
        case ModelSliders():
            return model_html(block, number)
        case Reproducibility():
            return record_html(block)
        case Section():
            return section_html(block, number, level)


def section_html(section: Section, number: str, level: int = 2) -> str:
    """Markup of a section with everything in it."""
    inside = "\n".join(
        block_html(block, f"{number}.{k}", min(level + 1, 6)) for k, block in enumerate(section.blocks, 1)
    )
    shown = f'<span class="number">{number}</span> ' if level == 2 else ""
    place = section_place(number)
    return (
        f'<section id="{place}" aria-labelledby="{place}-title">\n'
        f'<h{level} id="{place}-title">{shown}{escape(section.title)}</h{level}>\n{inside}\n</section>'
    )


def section_place(number: str) -> str:
    """Address of a section inside the page."""
    return f"section-{number.replace('.', '-')}"


def table_html(table: Table) -> str:
    """Markup of a table: numbers to the right, the first column as headings of the rows."""
    columns = [Column(column) if isinstance(column, str) else column for column in table.columns]
    right = [column.number or _all_numbers(table, k) for k, column in enumerate(columns)]
    heads = "".join(
        f'<th scope="col"{_align(to_right)}>{escape(column.title)}'
        + (f' <span class="unit">{escape(column.unit)}</span>' if column.unit else "")
        + "</th>"
        for column, to_right in zip(columns, right, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            f'<th scope="row"{_align(right[0])}>{_cell(cell, column)}</th>'
            if k == 0
            else f"<td{_align(right[k])}>{_cell(cell, column)}</td>"
            for k, (cell, column) in enumerate(zip(row, columns, strict=True))
        )
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    # The box scrolls by itself where a table is wider than the screen; the keyboard has to reach it for that.
    return (
        f'<div class="table"><div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f"<table>\n<caption>{escape(table.caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table></div>{note}</div>"
    )


def _align(right: bool) -> str:
    return ' class="right"' if right else ""


def _all_numbers(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] not in (None, "", "–", "-")]
    return bool(cells) and all(
        _NUMBERS.fullmatch(cell) is not None if isinstance(cell, str) else isinstance(cell, Real)
        for cell in cells
    )


def _cell(cell: Cell, column: Column) -> str:
    if cell is None:
        return '<span class="none">–</span>'
    if isinstance(cell, Verdict):
        name, mark = _MARKS[cell]
        return f'<span class="verdict {name}"><span aria-hidden="true">{mark}</span> {cell.value}</span>'
    return escape(cell if isinstance(cell, str) else number_text(cell, column.digits))


def _text(text: Text) -> str:
    if text.bullets:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in text.paragraphs) + "</ul>"
    return "\n".join(f"<p>{escape(line)}</p>" for line in text.paragraphs)


def _figure(figure: Figure) -> str:
    return (
        f"<figure>{image_html(figure, figure.caption)}"
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


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
    return document(page.title, _body(page), styles=styles, scripts=scripts)


def _body(page: Page) -> str:
    numbered = [(str(k), section) for k, section in enumerate(page.sections, 1)]
    links = "".join(
        f'<li><a href="#{section_place(number)}">{escape(section.title)}</a></li>'
        for number, section in numbered
    )
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.facts
    )
    return "\n".join(
        part
        for part in (
            '<a class="skip" href="#content">Skip to the content</a>',
            "<header>",
            f"<h1>{escape(page.title)}</h1>",
            f'<p class="subtitle">{escape(page.subtitle)}</p>' if page.subtitle else "",
            f'<p class="notice" role="note">{escape(page.notice)}</p>' if page.notice else "",
            f'<dl class="facts">{facts}</dl>' if facts else "",
            "</header>",
            f'<nav aria-label="Contents"><h2>Contents</h2><ol>{links}</ol></nav>' if links else "",
            '<main id="content">',
            *(section_html(section, number) for number, section in numbered),
            "</main>",
        )
        if part
    )


def _has_view(block: Block) -> bool:
    if isinstance(block, Section):
        return any(_has_view(inner) for inner in block.blocks)
    return isinstance(block, ModelSliders)
