"""What stands on a page: values, without any markup. All texts are plain and may hold any character."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from breastmorph.foundation.errors import FileProblem
from breastmorph.model.shape_model import ShapeModel

PRINTED = (".pdf", ".svg", ".png", ".csv")  # endings of a figure's files, as they are offered
_LARGE_DRAWING = 400_000  # bytes: a drawing with more opens slowly, its picture is shown instead


class Verdict(Enum):
    """Whether a statement is true of the data at hand."""

    HOLDS = "holds"
    FAILS = "does not hold"
    SMALL = "too small to matter"
    UNTESTABLE = "not testable"


Cell = str | float | Verdict | None  # None is shown as a dash


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
    """

    caption: str
    columns: tuple[Column | str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns")


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes
    ----------
    data : bytes
        A PNG or JPEG picture or an SVG drawing.
    caption : str
        May be long; what the reader should see in it, also said to those who cannot see it.
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


Shown = TypeVar("Shown", bound="Figure | Table")
Block = Text | Code | Table | Figure | ModelSliders | Reproducibility | Section


@dataclass(frozen=True)
class Page:
    """A whole page.

    Attributes
    ----------
    title : str
    sections : tuple of Section
    subtitle : str
    facts : tuple of (name, value)
        A few figures at the top, such as the number of scans.
    notice : str
        What every reader has to know, such as that the data are synthetic.
    picture : Figure, optional
        Seen before anything else; it has no number.
    downloads : tuple of (name, file)
        Files beside the page that hold its figures and tables.
    """

    title: str
    sections: tuple[Section, ...]
    subtitle: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notice: str = ""
    picture: Figure | None = None
    downloads: tuple[tuple[str, str], ...] = ()

    def numbered(self) -> dict[int, int]:
        """Numbers of figures and of tables in their order, each from 1, by the identity of the block."""
        return {id(one): k for kind in (Figure, Table) for k, one in enumerate(self.of(kind), 1)}

    def of(self, kind: type[Shown]) -> list[Shown]:
        """All figures, or all tables, in their order."""
        found: list[Shown] = []

        def walk(blocks: tuple[Block, ...]) -> None:
            for block in blocks:
                if isinstance(block, Section):
                    walk(block.blocks)
                elif isinstance(block, kind):
                    found.append(block)

        walk(self.sections)
        return found
