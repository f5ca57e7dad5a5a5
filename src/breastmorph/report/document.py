"""What stands on a page or a printed sheet: values, without markup. All texts are plain and may hold any character.

:func:`breastmorph.report.page.write_page` makes one HTML file of a :class:`Page`,
:func:`breastmorph.report.printing.print_page` PDF, PNG and SVG.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Self, TypeVar

from breastmorph import __version__
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.language import N_
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.render import ColourScale, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = (".pdf", ".svg", ".png", ".csv")  # endings of a figure's files, as they are offered
TO_FILL_IN = 14 * "_"  # a field that is filled in by hand
_LARGE_DRAWING = 400_000  # bytes: a drawing with more opens slowly, its picture is shown instead


class Verdict(Enum):
    """Whether a statement is true of the data at hand."""

    HOLDS = "holds"
    FAILS = "does not hold"
    SMALL = "too small to matter"
    UNTESTABLE = "not testable"


Cell = str | float | Verdict | None  # None is shown as a dash
_NUMBERS = re.compile(
    r"[<>≈]?\s*[+−-]?\d[\d.,]*(\s*[±/]\s*[+−-]?\d[\d.,]*)*\s*%?"
)  # texts such as 0.17 ± 0.02


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


@dataclass(frozen=True)
class Identity:
    """Whose document it is and what it was made from: every sheet and page of a person takes it from here.

    Attributes
    ----------
    patient : str
        As the patient is called in the files; empty fields are left to be filled in by hand.
    date, born : str
        Of the scan, and of birth.
    model : str
        The model or template behind the numbers.
    source : str
        What was looked at, for example a registered scan.
    side : str
        The side that it is about, in words.
    """

    patient: str = ""
    date: str = ""
    born: str = ""
    model: str = ""
    source: str = ""
    side: str = ""

    def lines(self, translated: Callable[[str], str] = str) -> tuple[str, str]:
        """Whose it is, and what it was made from; ``translated`` gives the labels in another language."""
        fields = (
            (N_("Identifier"), self.patient),
            (N_("Date of the scan"), self.date),
            (N_("Date of birth"), self.born),
        )
        whose = [
            f"{translated(label)}: {shorten(value, 40, placeholder='...') or TO_FILL_IN}"
            for label, value in fields
        ]
        made = [f"{translated(N_('Source'))}: {self.source}"] if self.source else []
        if self.side:
            made.append(self.side)
        if self.model:
            made.append(f"{translated(N_('Model'))}: {shorten(self.model, 60, placeholder='...')}")
        made.append(f"{translated(N_('Program'))}: BreastMorph {__version__}")
        return (6 * " ").join(whose), (6 * " ").join(made)


@dataclass(frozen=True)
class Text:
    """Paragraphs; with ``bullets``, points of a list."""

    paragraphs: tuple[str, ...]
    bullets: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to be typed or pasted into a terminal."""

    text: str


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : str
    unit : str
        Shown behind the title.
    digits : int, optional
        Decimals of its numbers; three significant digits otherwise.
    number : bool
        To be set to the right although its cells are texts. Columns of numbers and of texts such as ``0.17 ± 0.02``
        are so by themselves.
    """

    title: str
    unit: str = ""
    digits: int | None = None
    number: bool = False


@dataclass(frozen=True)
class Table:
    """A table; the first column names the rows.

    Attributes
    ----------
    caption : str
    columns : tuple of Column or str
    rows : tuple of tuples of cells
    note : str
        Shown below.
    marked : set of int
        Rows that stand out.
    """

    caption: str
    columns: tuple[Column | str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    marked: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns")

    def full_columns(self) -> list[Column]:
        """The columns, also those of which the title alone is given."""
        return [Column(column) if isinstance(column, str) else column for column in self.columns]

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Titles of the columns with their units, and the cells as texts; empty where the page shows a dash."""
        columns = self.full_columns()
        titles = [f"{column.title} ({column.unit})" if column.unit else column.title for column in columns]
        return titles, [
            [cell_text(cell, column) or "" for cell, column in zip(row, columns, strict=True)]
            for row in self.rows
        ]

    def numeric(self) -> list[bool]:
        """Which columns are set to the right: those of numbers."""
        found = []
        for k, column in enumerate(self.full_columns()):
            cells = [row[k] for row in self.rows if row[k] not in (None, "", "–", "-")]
            numbers = all(
                _NUMBERS.fullmatch(cell) is not None if isinstance(cell, str) else isinstance(cell, Real)
                for cell in cells
            )
            found.append(column.number or (bool(cells) and numbers))
        return found


def cell_text(cell: Cell, column: Column) -> str | None:
    """A cell as text; None where there is nothing."""
    if isinstance(cell, Verdict):
        return cell.value
    return cell if cell is None or isinstance(cell, str) else number_text(cell, column.digits)


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes
    ----------
    data : bytes
        A PNG or JPEG picture or an SVG drawing.
    caption : str
        May be long; what the reader should see in it; it is also the picture's alternative text.
    file : Path, optional
        Where the figure lies, without an ending: beside it are the same for print and the numbers behind it.
    """

    data: bytes
    caption: str
    file: Path | None = None

    @classmethod
    def load(cls, path: Path, caption: str) -> Self:
        """Of ``<path>.svg`` and ``<path>.png`` the better one for a page: the drawing, unless it is very large."""
        drawing, picture = (path.with_name(path.name + ending) for ending in (".svg", ".png"))
        there = [place for place in (drawing, picture) if place.is_file()]
        if not there:
            raise FileProblem("there is no such figure", "Make the figures first", picture)
        if len(there) == 2 and drawing.stat().st_size > _LARGE_DRAWING:
            there = [picture]
        return cls(there[0].read_bytes(), caption, path)

    def files(self) -> list[Path]:
        """The figure for print and the numbers behind it, as far as there are files of them."""
        if self.file is None:
            return []
        places = [self.file.with_name(self.file.name + ending) for ending in PRINTED]
        return [place for place in places if place.is_file()]

    @cached_property
    def kind(self) -> str:
        """Media type, from the content."""
        if self.data.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png"
        if self.data.startswith(b"\xff\xd8\xff"):
            return "image/jpeg"
        if re.search(rb"<svg[\s>]", self.data[:4096]):
            return "image/svg+xml"
        raise FileProblem("a figure is neither PNG, JPEG nor SVG", "Save it as SVG or PNG")


@dataclass(frozen=True)
class Chart:
    """Something that is drawn with axes, as wide as high.

    Attributes
    ----------
    draw : function of matplotlib axes
    """

    draw: Callable[[Axes], None]


@dataclass(frozen=True, eq=False)
class Panels:
    """Pictures of bodies and charts side by side, all pictures at one scale.

    Attributes
    ----------
    label : str
        Of the row.
    panels : tuple of Picture or Chart
    titles : tuple of str
        One a panel, or none.
    scale : ColourScale, optional
        Of the pictures, shown as a bar on their right.
    """

    label: str
    panels: tuple[Picture | Chart, ...]
    titles: tuple[str, ...] = ()
    scale: ColourScale | None = None


@dataclass(frozen=True, eq=False)
class ModelSliders:
    """The mean and the first modes of a model, to be turned and moved by sliders.

    Attributes
    ----------
    model : ShapeModel
    caption : str
    modes : int
        So many sliders, fewer if the model has fewer.
    """

    model: ShapeModel
    caption: str
    modes: int = 8


@dataclass(frozen=True)
class Reproducibility:
    """What is needed to make the results again: shown as a table and kept in the page as JSON.

    Attributes
    ----------
    record : mapping
        Parameters, versions, seeds, hashes of the input; mappings inside mappings are welcome.
    name : str
        Of the JSON file that a reader can save.
    """

    record: Mapping[str, Any]
    name: str = "record.json"


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; sections inside it get a smaller one. An appendix has a letter, no number."""

    title: str
    blocks: tuple[Block, ...]
    appendix: bool = False


Shown = TypeVar("Shown", bound="Block")
Block = Text | Code | Table | Figure | Panels | ModelSliders | Reproducibility | Section


@dataclass(frozen=True)
class Page:
    """A whole page, on the screen or on paper.

    Attributes
    ----------
    title : str
    blocks : tuple of blocks
        On the screen these are sections.
    subtitle : str
    facts : tuple of (name, value)
        A few figures at the top, such as the number of scans.
    notice : str
        What every reader has to know, such as that the data are synthetic.
    picture : Figure, optional
        Seen before anything else; it has no number.
    downloads : tuple of (name, file)
        Files beside the page that hold its figures and tables.
    identity : Identity, optional
        Of a page about a person.
    """

    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notice: str = ""
    picture: Figure | None = None
    downloads: tuple[tuple[str, str], ...] = ()
    identity: Identity | None = None

    @property
    def sections(self) -> tuple[Section, ...]:
        """The blocks that are sections."""
        return tuple(block for block in self.blocks if isinstance(block, Section))

    def numbered(self) -> dict[int, int]:
        """Numbers of figures and of tables in their order, each from 1, by the identity of the block."""
        return {id(block): k for kind in (Figure, Table) for k, block in enumerate(self.of(kind), 1)}

    def of(self, kind: type[Shown]) -> list[Shown]:
        """All blocks of a kind, in their order, also those inside sections."""
        return [block for block in flat(self.blocks) if isinstance(block, kind)]


def flat(blocks: tuple[Block, ...]) -> list[Block]:
    """The blocks in their order, those inside a section behind it."""
    found: list[Block] = []
    for block in blocks:
        found += [block, *(flat(block.blocks) if isinstance(block, Section) else ())]
    return found
