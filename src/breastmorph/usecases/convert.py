"""Convert a model: into another model file, morph targets, or a sequence of meshes of its modes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from breastmorph.model.files import save_model, write_mode_sequence, write_morph_targets
from breastmorph.model.shape_model import ShapeModel


@dataclass(frozen=True, eq=False)
class ConvertRequest:
    """Which model becomes which file.

    Attributes
    ----------
    model : ShapeModel
    out : Path
        A .glb gets morph targets, a folder or a name without ending a sequence of meshes, else a model file.
    components : int, optional
        Keep only the first ones.
    drop_scores : bool
        Leave out everything about single subjects.
    modes : int, optional
        How many modes a .glb (20) or a sequence (8) shows.
    sd : float, optional
        How far modes go, in standard deviations: 1 in a .glb, 3 in a sequence.
    """

    model: ShapeModel
    out: Path
    components: int | None = None
    drop_scores: bool = False
    modes: int | None = None
    sd: float | None = None

    @property
    def kind(self) -> Literal["model", "targets", "sequence"]:
        """What is written."""
        if self.out.suffix.lower() == ".glb":
            return "targets"
        return "sequence" if self.out.is_dir() or not self.out.suffix else "model"


@dataclass(frozen=True, eq=False)
class ConvertedModel:
    """The model as it was written, and the files."""

    model: ShapeModel
    written: tuple[Path, ...]


def convert(request: ConvertRequest) -> ConvertedModel:
    """Write a model in another form."""
    model = request.model
    if request.components is not None and request.components < model.n_components:
        model = model.truncate(request.components)
    if request.drop_scores:
        model = model.without_training()
    if request.kind == "sequence":
        written = write_mode_sequence(model, request.out, request.modes or 8, request.sd or 3.0)
        return ConvertedModel(model, tuple(written))
    if request.kind == "targets":
        write_morph_targets(model, request.out, request.modes or 20, request.sd or 1.0)
    else:
        save_model(model, request.out)
    return ConvertedModel(model, (request.out,))
