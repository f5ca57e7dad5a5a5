"""Options that several commands have, and the values they become."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from breastmorph.foundation.language import languages

if TYPE_CHECKING:
    from breastmorph.model.shape_model import ShapeModel
    from breastmorph.scan.check import CheckParameters


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
    "--landmarks", type=PATH, help="Landmark folder (or file, for one scan); beside the scans when not given."
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
        "--seed", type=click.IntRange(min=0), default=default, help=f"Same seed, same {same}."
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


def template_options(whose: str, *, coarse: bool = False) -> Callable[..., Any]:
    """``--template``, with help in the words of ``whose``, and ``--template-landmarks``.

    They reach the command as ``template``, a Template; None where they are not given. ``coarse`` adds
    ``--template-coarse``.
    """

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_template(
            *args: Any,
            template_file: Path | None,
            template_landmarks: Path | None,
            template_coarse: Path | None = None,
            **others: Any,
        ) -> Any:
            from breastmorph.template import load_template

            if (template_file is None) != (template_landmarks is None):
                raise click.UsageError("--template and --template-landmarks go together.")
            if template_coarse is not None and template_file is None:
                raise click.UsageError("--template-coarse belongs to --template.")
            template = None
            if template_file is not None and template_landmarks is not None:
                template = load_template(template_file, template_landmarks, template_coarse)
            return command(*args, template=template, **others)

        added = [
            click.option("--template", "template_file", type=PATH, help=whose),
            click.option("--template-landmarks", type=PATH, help="Landmarks of that template."),
        ]
        if coarse:
            added.append(
                click.option("--template-coarse", type=PATH, help="Its coarse twin; derived when not given.")
            )
        for option in reversed(added):
            with_template = option(with_template)
        return with_template

    return with_options


def scan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that reads scans; they reach the command as ``check``, a CheckParameters."""
    from breastmorph.scan.anatomy import KnownDistance
    from breastmorph.scan.check import CheckParameters

    @click.option(
        "--unit",
        type=click.Choice(["auto", "mm", "cm", "m"]),
        default="auto",
        help="Unit of the files; auto decides from the length of the sternum.",
    )
    @click.option(
        "--scale-by",
        default="",
        show_default=False,
        metavar="A-B=LENGTH",
        help="For scans in no known unit: a straight distance between two landmarks, measured, as NL-NR=21cm.",
    )
    @click.option("--landmark-order", help="Names of a bare x,y,z list in its order, separated by commas.")
    @click.option("--max-faces", type=COUNT, default=CheckParameters.max_faces, help="Refuse larger scans.")
    @functools.wraps(command)
    def with_check(
        *args: Any, unit: str, scale_by: str, landmark_order: str | None, max_faces: int, **others: Any
    ) -> Any:
        if scale_by:
            KnownDistance.of(scale_by)  # a typing error is refused before any scan is read
            if unit != "auto":
                raise click.UsageError("--scale-by and --unit exclude each other.")
        order = tuple(name.strip() for name in landmark_order.split(",")) if landmark_order else None
        check = CheckParameters(unit=unit, scale_by=scale_by, landmark_order=order, max_faces=max_faces)
        return command(*args, check=check, **others)

    return with_check


def handout_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How the page to take home is written."""
    for option in (
        click.option(
            "--date",
            default="",
            show_default=False,
            help="Date of the scan, as it shall stand on the page to take home.",
        ),
        click.option("--paper", type=click.Choice(("A4", "Letter")), default="A4", help="Of that page."),
        click.option("--language", type=click.Choice(languages()), default="en", help="Of that page."),
    ):
        command = option(command)
    return command
