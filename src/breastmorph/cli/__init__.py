"""The ``breastmorph`` command. Each subcommand lives in a module of its own and loads only when called."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from importlib import import_module
from io import TextIOWrapper
from typing import Any

from breastmorph.cli.wording import COMMAND


@contextmanager
def silent_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process at once while modules are loaded: nothing is done yet that has to be put away.

    As an exception it would come up in the middle of an import, and Python prints it with a traceback.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


with silent_ctrl_c():
    import platform

    import click
    from click.shell_completion import CompletionItem

    from breastmorph import __version__
    from breastmorph.foundation.errors import BreastMorphError
    from breastmorph.foundation.messages import Finding
    from breastmorph.foundation.text import SHOWN

# Name of the command, which is that of its module: its line in the overview.
_COMMANDS = {
    "demo": "The whole job from start to end on a synthetic cohort.",
    "phantom": "Make a synthetic cohort of adult torso scans with known truth.",
    "check": "Judge scans and landmarks before any computing starts.",
    "landmarks": "Find the landmarks of raw scans, with how sure each one is.",
    "register": "Bend the template onto every scan: dense correspondence.",
    "build": "Build a shape model from registered scans.",
    "evaluate": "Compactness, generalization and specificity of a model.",
    "sample": "Draw random shapes from a model, or show its modes.",
    "convert": "Turn a model file into another format.",
    "measure": "Clinical distances, volumes and symmetry.",
    "compare": "What changed between scans of one person, and is it more than noise?",
    "edit": "Change a shape by its clinical measures.",
    "predict": "Predict a missing breast, with its uncertainty.",
    "plan": "What is to be added or taken away, where, and how thick.",
    "fit": "Fit a model to a raw scan or point cloud.",
    "verify": "Hash results again: are they what was written?",
    "doctor": "Check this installation.",
    "paper": "Every experiment of the paper on a cohort, with figures and a report.",
    "report": "The report of a study as one page.",
    "explore": "The model in a browser: look, edit, pick landmarks, predict.",
    "template": "Make a symmetric template from one scan.",
}


_FULL = (errno.ENOSPC, errno.EDQUOT)


class _Notes(logging.Handler):
    """Prints what the library notes, findings in the words of commands."""

    def emit(self, record: logging.LogRecord) -> None:
        noted: object = record.msg
        if isinstance(noted, Finding):
            record = copy(record)
            record.msg = noted.cause.text(COMMAND)
        click.echo(self.format(record), err=True)


@contextmanager
def _printed_notes() -> Iterator[None]:
    """What the library notes while a command runs is printed on standard error."""
    log, notes = logging.getLogger("breastmorph"), _Notes(logging.WARNING)
    log.addHandler(notes)
    try:
        yield
    finally:
        log.removeHandler(notes)


class _LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        with silent_ctrl_c():
            command: click.Command = import_module(f"breastmorph.cli.{cmd_name}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands by their lines in the overview: loading all of them would keep the user waiting."""
        offered = [CompletionItem(name, help=line) for name, line in _COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in offered if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])

    def main(self, *args: Any, **others: Any) -> Any:
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # A letter that the terminal's or the file's encoding lacks must not end a run that did its work.
                stream.reconfigure(errors=SHOWN)
        return super().main(*args, **others)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _printed_notes():
                return super().invoke(ctx)
        except BreastMorphError as error:
            click.echo(f"breastmorph: {error.text(COMMAND)}", err=True)
            sys.exit(2)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            click.echo(
                f"breastmorph: {error.strerror}. Free some space, then run the same command again", err=True
            )
            with suppress(OSError):  # what waits to be printed has no place either
                sys.stdout.close()
            sys.exit(2)


def _open_closed_streams() -> None:
    """Discard what is written to a closed stream (``>&-``); else the next file opened would become that stream."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as we run


_BUILD = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="breastmorph", message=f"%(prog)s %(version)s ({_BUILD})")
def main() -> None:
    """Statistical shape models of the female breast from 3D torso scans, and their clinical use.

    Exit codes: 0 all well, 1 some inputs failed, 2 wrong usage or nothing done.
    """
