"""What several commands share: options, and how a result came about."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from breastmorph import __version__
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.foundation.errors import shown
from breastmorph.foundation.files import file_hash

if TYPE_CHECKING:
    from breastmorph.model.shape_model import ShapeModel
    from breastmorph.template import Template


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
        if isinstance(value, Path):
            inputs[name] = _folder_hash(value) if value.is_dir() else file_hash(value)
        parameters[name] = shown(value.name) if isinstance(value, Path) else value
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
