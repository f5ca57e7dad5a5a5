"""What is made for the documentation when it is built: the reference of all commands, benchmarks, formulas."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

import click
from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from breastmorph.cli import main

_FORMULA = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPACE_OF_A_NUMBER = re.compile(r"(?<=\d) (?=[±%]|(?:mm|cm|cc|s|ms|MB|GB)\b)|(?<=±) ")  # where no line ends
_NO_RESULTS = "# Results\n\nNone yet: run `make bench`."
_RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated."""
    files.append(File.generated(config, "reference/cli.md", content=cli_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the formulas, and add what `make bench` wrote to the page about benchmarks."""
    if page.file.src_uri == "benchmarks.md":
        results = _RESULTS.read_text(encoding="utf-8") if _RESULTS.exists() else _NO_RESULTS
        markdown += "\n\n" + re.sub(r"^(#+ [A-Z])", r"#\1", results, flags=re.MULTILINE)
    return _FORMULA.sub(lambda found: formula(found[1].strip()), markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link pictures to themselves, to see them larger; say where lines may break; leave out marks as :class:."""
    content = re.sub(r'(<img [^>]*src="([^"]+)"[^>]*>)', r'<a href="\2">\1</a>', content)
    content = re.sub(r"<code>test_\w+</code>", lambda found: found[0].replace("_", "_<wbr>"), content)
    content = re.sub(r"<code>(--[\w-]+)</code>", r'<code class="option">\1</code>', content)
    content = re.sub(r"<td[^>]*>.*?</td>", lambda cell: _SPACE_OF_A_NUMBER.sub("&nbsp;", cell[0]), content)
    return re.sub(r":(?:class|func|meth|mod|attr):(?=<code)", "", content)


def formula(tex: str) -> str:
    """A formula as a drawing in the page: no script, no font and no network is needed to read it."""
    with rc_context({"mathtext.fontset": "cm", "svg.fonttype": "path", "svg.hashsalt": "formula"}):
        drawn = io.StringIO()
        math_to_image(f"${tex}$", drawn, prop=FontProperties(size=12), format="svg")
    picture = drawn.getvalue()
    picture = re.sub(r"<metadata>.*?</metadata>|\s+", " ", picture[picture.index("<svg") :], flags=re.DOTALL)
    return f'<div class="formula" role="img" aria-label="{html.escape(tex)}">{picture}</div>'


def cli_reference() -> str:
    """Help texts of all commands as one page."""
    overview = click.Context(main, info_name="breastmorph", **main.context_settings)
    parts = ["# Commands", _help(main, overview)]
    for name in main.list_commands(overview):
        command = main.get_command(overview, name)
        if command is not None:
            parts += [f"## {name}", _help(command, click.Context(command, info_name=name, parent=overview))]
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command, context: click.Context) -> str:
    context.terminal_width = 80  # what a page shows without scrolling
    return f"```text\n{command.get_help(context)}\n```"
