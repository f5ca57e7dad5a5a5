"""``breastmorph explore``: the model in a browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breastmorph.cli import silent_ctrl_c
from breastmorph.cli.options import PATH
from breastmorph.explorer.settings import EVERYWHERE, MEGABYTE, Settings, is_loopback
from breastmorph.foundation.errors import FileProblem

if TYPE_CHECKING:
    from breastmorph.explorer.server import Entrance

_MODELS = (b"\x89HDF\r\n\x1a\n", b"PK\x03\x04")  # how HDF5 and NPZ files begin


def _require_model(path: Path) -> None:
    """Refuse at once what cannot be a model; the whole file is read when the page is there."""
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except OSError as error:
        raise FileProblem(
            "it cannot be read ({why})", "Check its permissions", path, why=error.strerror
        ) from error
    if not begin.startswith(_MODELS):
        raise FileProblem(
            "this is not a model (.h5 or .npz)",
            "For a scan, start without it and open it on the page, or give the folder that it lies in",
            path,
        )


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _shown(way: Entrance) -> str:
    """The way in for the terminal; others may read what the output is kept in, so there only the file is named."""
    if _is_terminal():
        return f"{way.address} (works once)"
    return f"{way.address.partition('#')[0]} (open {way.file.as_uri()}, which only you can read)"


@click.command("explore")
@click.argument("start", metavar="[MODEL | FOLDER]", required=False, type=PATH)
@click.option("--model", "model_file", type=PATH, help="The model, beside a FOLDER of scans.")
@click.option("--host", default="127.0.0.1", help="Address to listen on; others can then reach it too.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option("--by-hand", is_flag=True, help="Propose no landmarks, for a study of what people set.")
@click.option("--no-browser", is_flag=True, help="Only print how to get in.")
@click.option("--max-upload", type=click.IntRange(1, 4096), default=500, help="MB that a file may have.")
def command(
    start: Path | None,
    model_file: Path | None,
    host: str,
    port: int,
    by_hand: bool,
    no_browser: bool,
    max_upload: int,
) -> None:
    """Open the explorer in a browser: a model to look at and edit, a patient's scan, or a FOLDER of scans.

    Without a model the synthetic demo model is shown. Landmarks are proposed by the program, with how sure it is, and
    confirmed or set by clicking; in a FOLDER of scans they are saved as FOLDER/landmarks/<id>.json. Everything stays on
    this computer; Ctrl-C ends it and deletes what was uploaded.

    Only you get in: the address has a code that works once, and the next one is printed when it was used. Where the
    output is no terminal, a file is named instead that only you can read; open it in a browser.

    \b
    Examples:
      breastmorph explore
      breastmorph explore model.h5
      breastmorph explore scans/ --model model.h5
    """
    folder = start if start is not None and start.is_dir() else None
    if start is not None and folder is None:
        if model_file is not None:
            raise click.UsageError("Give the model once: as MODEL or with --model.")
        model_file = start
    if model_file is not None and not model_file.is_file():
        raise FileProblem("there is no such file or folder", "Check the path", model_file)
    if model_file is not None:
        _require_model(model_file)
    settings = Settings(
        model=model_file,
        folder=folder,
        propose=not by_hand,
        host=host,
        port=port,
        max_upload=max_upload * MEGABYTE,
    )
    with silent_ctrl_c():
        from breastmorph.explorer.server import serve

    def ready(way: Entrance) -> None:
        click.echo(f"The explorer is at {_shown(way)}")
        if not is_loopback(host):
            click.echo("Other computers can reach it; anyone who has this address with its code can use it.")
        if host in EVERYWHERE:
            click.echo(
                f"There, write this computer's own address (as 192.168.1.5) instead of {EVERYWHERE[host]}."
            )
        click.echo("Ctrl-C ends it.")
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(way.file.as_uri(),), daemon=True).start()

    def entered(way: Entrance) -> None:
        with suppress(OSError):  # the reader of the output may have ended
            click.echo(f"Opened in a browser. For another one: {_shown(way)}")

    serve(settings, ready, entered)
    click.echo("Ended; uploaded files are deleted.")
    sys.stdout.flush()
    os._exit(0)  # everything is put away; threads in the middle of a computation are not worth waiting for
