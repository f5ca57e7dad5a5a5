"""What commands share: options, how a result came about, what is printed, how a run is stopped."""

from __future__ import annotations

import functools
import hashlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.table import Table
from rich.text import Text

from breastmorph import __version__
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.foundation.errors import shown
from breastmorph.foundation.files import file_hash, json_text

if TYPE_CHECKING:
    from breastmorph.model.shape_model import ShapeModel
    from breastmorph.scan.check import CheckParameters
    from breastmorph.template import Template


# --------------------------------------------------------------------------------------------------------------------
# What commands print: tables, JSON, warnings, progress
# --------------------------------------------------------------------------------------------------------------------

Item = TypeVar("Item")
_LONG_WORD = 10  # letters


def print_json(value: Any) -> None:
    """Print a value as JSON."""

    click.echo(json_text(value))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with plain text cells; rich markup is allowed in them."""
    table = Table(title=title, title_justify="left", show_lines=False)
    lines = [list(row) for row in rows]
    for column, cells in zip(
        columns, zip(*lines, strict=True) if lines else [()] * len(columns), strict=True
    ):
        words = (word for cell in (column, *cells) for word in Text.from_markup(cell).plain.split())
        # On a narrow terminal long remarks may wrap, but not a word like "registered".
        table.add_column(column, overflow="fold", min_width=min(max(map(len, words), default=0), _LONG_WORD))
    for row in lines:
        table.add_row(*row)
    # Tables are not squeezed when the output goes to a file.
    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings, beside whatever is printed."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


@contextmanager
def progress_with(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal only; the value is called once per finished item."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Go through items with a progress bar."""
    with progress_with(what, len(items)) as advance:
        for item in items:
            yield item
            advance()


# --------------------------------------------------------------------------------------------------------------------
# Commands that can be stopped at any time: how they end, and what is said then
# --------------------------------------------------------------------------------------------------------------------

STOPPED = "Stopped. What is done is kept: run the same command again to go on."


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let a polite request to end (SIGTERM, a closed terminal) stop a run as Ctrl-C does: in order.

    What whoever started the run wants to be ignored stays ignored: under ``nohup`` a closed terminal stops nothing.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --------------------------------------------------------------------------------------------------------------------
# What several commands share: options, and how a result came about
# --------------------------------------------------------------------------------------------------------------------

# --------------------------------------------------------------------------------------------------------------------
# Options that several commands have, and the values they become
# --------------------------------------------------------------------------------------------------------------------


class _Folder(click.Path):
    """A path for which the shell offers folders only; a file is refused where it is used, in our own words."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="dir")]


PATH = click.Path(path_type=Path)
FOLDER = _Folder(path_type=Path)
COUNT = click.IntRange(min=1)

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON for machines.")
jobs_option = click.option(
    "--jobs", type=COUNT, show_default="all cores", help="Worker processes; the result does not depend on it."
)
landmarks_option = click.option(
    "--landmarks",
    type=PATH,
    help="Landmark folder (or file, for one scan); beside the scans when not given.",
)
table_option = click.option("--table", type=PATH, help="CSV file about the subjects, with a column id.")
model_argument = click.argument("model_file", metavar="MODEL", type=PATH)
landmark_ids_option = click.option(
    "--landmark-ids",
    type=PATH,
    help='JSON file of landmark vertices that the model file lacks: {"xiphoid": 15120}.',
)


def seed_option(same: str, default: int = 1) -> Callable[..., Any]:
    """``--seed``; ``same`` names what the same seed gives."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"Same seed, same {same}.",
    )


def opened_model(path: Path, landmark_ids: Path | None) -> ShapeModel:
    """The model with the landmarks that ``--landmark-ids`` adds."""
    from breastmorph.model.files import load_landmark_ids, load_model

    return load_model(path, load_landmark_ids(landmark_ids) if landmark_ids is not None else None)


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL and ``--landmark-ids``; they reach the command as ``model``, a :class:`ModelFile`."""

    @model_argument
    @landmark_ids_option
    @functools.wraps(command)
    def with_model(*args: Any, model_file: Path, landmark_ids: Path | None, **others: Any) -> Any:
        return command(*args, model=ModelFile(model_file, landmark_ids), **others)

    return with_model


@dataclass(frozen=True)
class ModelFile:
    """A model's file, and one of the landmark vertices that it lacks."""

    path: Path
    landmark_ids: Path | None = None

    @property
    def name(self) -> str:
        """As pages call it."""
        return self.path.name

    def open(self) -> ShapeModel:
        """Read the model."""
        return opened_model(self.path, self.landmark_ids)


def subject_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """SCAN, its landmarks and how it is read; they reach the command as ``subject``, a SubjectFile."""
    from breastmorph.usecases.subject import SubjectFile

    @click.argument("scan", type=PATH)
    @landmarks_option
    @scan_options
    @functools.wraps(command)
    def with_subject(
        *args: Any, scan: Path, landmarks: Path | None, check: CheckParameters, **others: Any
    ) -> Any:
        return command(*args, subject=SubjectFile(scan, landmarks, check), **others)

    return with_subject


def template_options(whose: str) -> Callable[..., Any]:
    """``--template``, with help in the words of ``whose``, and ``--template-landmarks``; see :func:`own_template`."""
    mesh = click.option("--template", "template_file", type=PATH, help=whose)
    landmarks = click.option("--template-landmarks", type=PATH, help="Landmarks of that template.")
    return lambda command: mesh(landmarks(command))


def own_template(mesh: Path | None, landmarks: Path | None, coarse: Path | None = None) -> Template | None:
    """The template of ``--template`` and ``--template-landmarks``; None where they are not given."""
    from breastmorph.template import load_template

    if (mesh is None) != (landmarks is None):
        raise click.UsageError("--template and --template-landmarks go together.")
    if coarse is not None and mesh is None:
        raise click.UsageError("--template-coarse belongs to --template.")
    return load_template(mesh, landmarks, coarse) if mesh is not None and landmarks is not None else None


def scan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that reads scans; they reach the command as ``check``, a CheckParameters."""
    from breastmorph.scan.anatomy import KnownDistance
    from breastmorph.scan.check import CheckParameters

    @click.option(
        "--unit",
        type=click.Choice(["auto", "mm", "cm", "m"]),
        default="auto",
        show_default=True,
        help="Unit of the files; auto decides from the length of the sternum.",
    )
    @click.option(
        "--scale-by",
        default="",
        metavar="A-B=LENGTH",
        help="For scans in no known unit: a straight distance between two landmarks, measured, as NL-NR=21cm.",
    )
    @click.option("--landmark-order", help="Names of a bare x,y,z list in its order, separated by commas.")
    @click.option(
        "--max-faces",
        type=COUNT,
        default=CheckParameters.max_faces,
        show_default=True,
        help="Refuse larger scans.",
    )
    @functools.wraps(command)
    def with_check(
        *args: Any, unit: str, scale_by: str, landmark_order: str | None, max_faces: int, **others: Any
    ) -> Any:
        if scale_by:
            KnownDistance.of(scale_by)  # a slip of the pen is told before any scan is read
            if unit != "auto":
                raise click.UsageError("--scale-by and --unit exclude each other.")
        order = tuple(name.strip() for name in landmark_order.split(",")) if landmark_order else None
        check = CheckParameters(unit=unit, scale_by=scale_by, landmark_order=order, max_faces=max_faces)
        return command(*args, check=check, **others)

    return with_check


# --------------------------------------------------------------------------------------------------------------------
# What a command's result was made from: version, parameters and hashes of the inputs, never a path
# --------------------------------------------------------------------------------------------------------------------

_NO_INPUT = ("as_json", "csv_file", "figures", "out")  # how and where results go does not change them


def handout_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How the page to take home is written."""
    for option in (
        click.option(
            "--date", default="", help="Date of the scan, as it shall stand on the page to take home."
        ),
        click.option(
            "--paper",
            type=click.Choice(("A4", "Letter")),
            default="A4",
            show_default=True,
            help="Of that page.",
        ),
        click.option(
            "--language",
            type=click.Choice(("en", "de")),
            default="en",
            show_default=True,
            help="Of that page.",
        ),
    ):
        command = option(command)
    return command


def provenance() -> dict[str, Any]:
    """Of the command that runs now: the same inputs and parameters give the same record.

    Returns
    -------
    dict
        ``software``; ``command``; ``parameters`` as given or by default, paths by their last part; ``inputs``, a
        SHA-256 for every file or folder named in a parameter.
    """
    context = click.get_current_context()
    parameters: dict[str, Any] = {}
    inputs: dict[str, str] = {}
    for name, value in sorted(context.params.items()):
        if value is None or name in _NO_INPUT:
            continue
        several = value if isinstance(value, tuple) else (value,)
        paths = [one for one in several if isinstance(one, Path)]
        for k, path in enumerate(paths, 1):
            key = name if len(paths) == 1 else f"{name} {k}"
            inputs[key] = _folder_hash(path) if path.is_dir() else file_hash(path)
        plain = [shown(one.name) if isinstance(one, Path) else one for one in several]
        parameters[name] = plain if isinstance(value, tuple) else plain[0]
    return {
        "software": f"BreastMorph {__version__}",
        "command": context.info_name,
        "parameters": parameters,
        "inputs": inputs,
    }


def _folder_hash(path: Path) -> str:
    """Of a registered folder what its records say of the meshes; of another one the names and contents of its files."""
    folder = RegisteredFolder(path)
    if folder.registered.is_dir():
        parts = [f"{scan_id} {sorted(_meshes(folder, scan_id))}" for scan_id in folder.ids()]
    else:
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        parts = [f"{shown(file.name)} {file_hash(file)}" for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _meshes(folder: RegisteredFolder, scan_id: str) -> list[str]:
    outputs = folder.record(scan_id).get("outputs")
    return (
        [str(digest) for name, digest in outputs.items() if name.endswith(".ply")]
        if isinstance(outputs, dict)
        else []
    )
