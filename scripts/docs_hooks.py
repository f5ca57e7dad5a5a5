"""What the documentation takes from the program itself: the reference of all commands, and the latest benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from breastmorph.cli import main

_RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated."""
    files.append(File.generated(config, "reference/cli.md", content=cli_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Add what `make bench` wrote to the page about benchmarks."""
    if page.file.src_uri != "benchmarks.md" or not _RESULTS.exists():
        return markdown
    results = _RESULTS.read_text(encoding="utf-8")
    return markdown + "\n\n" + re.sub(r"^(#+ [A-Z])", r"#\1", results, flags=re.MULTILINE)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Without the marks that other programs for docstrings know (:class: and the like)."""
    return re.sub(r":(?:class|func|meth|mod|attr):(?=<code)", "", html)


def cli_reference() -> str:
    """Help texts of all commands as one page."""
    overview = click.Context(main, info_name="breastmorph")
    parts = ["# Commands", _help(main, overview)]
    for name in main.list_commands(overview):
        command = main.get_command(overview, name)
        if command is not None:
            parts += [f"## {name}", _help(command, click.Context(command, info_name=name, parent=overview))]
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command, context: click.Context) -> str:
    context.terminal_width = 80  # what a page shows without scrolling
    return f"```text\n{command.get_help(context)}\n```"
