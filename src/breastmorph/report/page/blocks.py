"""The markup of what stands on a page. Every text is escaped where it becomes markup."""

from __future__ import annotations

import re
from html import escape
from numbers import Real

from breastmorph.report.page.content import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    ModelView,
    Reproducibility,
    Section,
    Table,
    Text,
    Verdict,
)
from breastmorph.report.page.model_figure import model_html
from breastmorph.report.page.number_text import number_text
from breastmorph.report.page.pictures import image_html
from breastmorph.report.page.record_box import record_html

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
        case ModelView():
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
