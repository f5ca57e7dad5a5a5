"""Pages for people to read, print and keep: one file that holds everything itself and asks for nothing.

>>> page = Page("Study", (Section("Results", (Text(("What we found.",)),)),))
>>> write_page(Path("report.html"), page)  # doctest: +SKIP
"""

from breastmorph.report.document import (
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
from breastmorph.report.page.export import write_archive
from breastmorph.report.page.writing import mean_png, page_html, write_page

__all__ = [
    "Block",
    "Cell",
    "Code",
    "Column",
    "Figure",
    "ModelSliders",
    "Page",
    "Reproducibility",
    "Section",
    "Table",
    "Text",
    "Verdict",
    "mean_png",
    "page_html",
    "write_archive",
    "write_page",
]
