"""A page's figures and tables as files for a paper: LaTeX, Word and CSV tables, and an archive that holds them all."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from breastmorph.foundation.files import csv_text, make_folder, write_file
from breastmorph.report.document import Figure, Page, Table

_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{
        "±": r"$\pm$",
        "−": "$-$",
        "–": "--",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "≈": r"$\approx$",
        "°": r"$^\circ$",
    },
    **{"²": "$^2$", "³": "$^3$", "✓": "", "✗": "", "\N{NO-BREAK SPACE}": "~", "<": "$<$", ">": "$>$"},
}


_LONG = 30  # letters of a cell beyond which its column is broken into lines
_CAPPED = 70  # letters that count for a column's share of the width


def latex(text: str) -> str:
    """A text as LaTeX shows it."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def table_latex(table: Table, number: int) -> str:
    """A table as a LaTeX float for the package booktabs: numbers to the right, long texts in lines, the note below."""
    titles, rows = table.texts()
    widest = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    letters = sum(min(width, _CAPPED) for width in widest)
    kinds = "".join(
        "r"
        if right
        else f"p{{{0.85 * min(width, _CAPPED) / letters:.2f}\\textwidth}}"
        if width > _LONG
        else "l"
        for right, width in zip(table.numeric(), widest, strict=True)
    )
    body = [" & ".join(map(latex, row)) + r" \\" for row in rows]
    note = [rf"\par\footnotesize {latex(table.note)}"] if table.note else []
    lines = [
        r"\begin{table}",
        rf"\caption{{{latex(table.caption)}}}",
        rf"\label{{tab:breastmorph-{number}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(map(latex, titles)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *note,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def table_csv(table: Table) -> str:
    """A table as CSV, as it is shown."""
    titles, rows = table.texts()
    columns = [f"{k}" for k in range(len(titles))]
    text = csv_text(columns, [dict(zip(columns, row, strict=True)) for row in [titles, *rows]])
    return text.partition("\n")[2]  # titles may be the same twice, so they are the first row


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = (
    f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)


def tables_docx(tables: Sequence[Table]) -> bytes:
    """All tables as one Word document, each with its caption above and its note below."""
    document = Element("w:document", {"xmlns:w": _WORD})
    body = SubElement(document, "w:body")
    for number, table in enumerate(tables, 1):
        _word_text(body, f"Table {number}. {table.caption}", bold=True)
        _word_table(body, table)
        _word_text(body, table.note)
    parts = {
        "[Content_Types].xml": _TYPES.encode(),
        "_rels/.rels": _RELATIONS.encode(),
        "word/document.xml": tostring(document, "utf-8", xml_declaration=True),
    }
    return zipped(parts.items())


def _word_table(body: Element, table: Table) -> None:
    titles, rows = table.texts()
    right = table.numeric()
    shown = SubElement(body, "w:tbl")
    look = SubElement(shown, "w:tblPr")
    SubElement(look, "w:tblW", {"w:w": "0", "w:type": "auto"})
    borders = SubElement(look, "w:tblBorders")
    for side, size in (("top", "8"), ("bottom", "8"), ("insideH", "2")):
        SubElement(borders, f"w:{side}", {"w:val": "single", "w:sz": size})
    grid = SubElement(shown, "w:tblGrid")
    for _ in titles:
        SubElement(grid, "w:gridCol")
    for k, cells in enumerate([titles, *rows]):
        row = SubElement(shown, "w:tr")
        for cell, to_right in zip(cells, right, strict=True):
            _word_text(SubElement(row, "w:tc"), cell, k == 0, to_right)


def _word_text(parent: Element, text: str, bold: bool = False, to_right: bool = False) -> None:
    """A paragraph."""
    paragraph = SubElement(parent, "w:p")
    if to_right:
        SubElement(SubElement(paragraph, "w:pPr"), "w:jc", {"w:val": "right"})
    run = SubElement(paragraph, "w:r")
    look = SubElement(run, "w:rPr")
    if bold:
        SubElement(look, "w:b")
    SubElement(look, "w:sz", {"w:val": "18"})
    shown = SubElement(run, "w:t", {"xml:space": "preserve"})
    shown.text = "".join(letter for letter in text if letter.isprintable())  # XML has no control characters


def write_archive(path: Path, page: Page, texts: dict[str, str]) -> None:
    """Write figures (PDF, SVG, PNG, CSV), their captions, and tables (LaTeX, CSV, Word) as one ZIP file.

    Parameters
    ----------
    path : Path
    page : Page
        Whose figures and tables they are; files carry the numbers they have there.
    texts : mapping from name to text
        Further files, for example the methods paragraph.
    """
    figures, tables = page.of(Figure), page.of(Table)
    entries: list[tuple[str, bytes]] = [(name, text.encode()) for name, text in texts.items()]
    for number, figure in enumerate(figures, 1):
        entries += [
            (f"figures/figure-{number:02d}-{file.name}", file.read_bytes()) for file in figure.files()
        ]
    captions = [f"Figure {number}. {figure.caption}" for number, figure in enumerate(figures, 1)]
    entries.append(("figures/captions.txt", ("\n\n".join(captions) + "\n").encode()))
    for number, table in enumerate(tables, 1):
        entries.append((f"tables/table-{number:02d}.tex", table_latex(table, number).encode()))
        entries.append((f"tables/table-{number:02d}.csv", table_csv(table).encode()))
    if tables:
        entries.append(("tables/tables.docx", tables_docx(tables)))
    make_folder(path.parent)
    write_file(path, zipped(entries))


def zipped(entries: Iterable[tuple[str, bytes]]) -> bytes:
    """Files as a ZIP archive; the same files give the same bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()
