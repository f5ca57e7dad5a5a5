"""A page as one file."""

from __future__ import annotations

from html import escape
from pathlib import Path

from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.report.page.blocks import section_html, section_place
from breastmorph.report.page.content import Block, ModelView, Page, Section
from breastmorph.report.page.document import document, page_asset
from breastmorph.viewer import SCRIPTS, STYLES, asset


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
    return isinstance(block, ModelView)
