"""What the documentation takes from the program itself: the reference of all commands."""

from __future__ import annotations

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from breastmorph.cli import main


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated."""
    files.append(File.generated(config, "reference/cli.md", content=cli_reference()))
    return files


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
    context.max_content_width = 100
    return f"```text\n{command.get_help(context)}\n```"
