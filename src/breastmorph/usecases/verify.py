"""Verify results: hash their files again and say what differs from what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from breastmorph.foundation.errors import BreastMorphError, FileProblem


@dataclass(frozen=True)
class VerifyRequest:
    """Which results to verify, and what to compare them with.

    Attributes
    ----------
    results : tuple of Path
        Model files, registered folders, studies.
    scans, landmarks : Path, optional
        The inputs of the registered folders, when they are compared too.
    cohort : Path, optional
        The registered folder a model was built from, when its shapes are compared too.
    """

    results: tuple[Path, ...]
    scans: Path | None = None
    landmarks: Path | None = None
    cohort: Path | None = None


@dataclass(frozen=True)
class VerifiedResult:
    """What differs in one result; nothing where it is as it was written."""

    path: Path
    problems: tuple[BreastMorphError, ...]


def verify(
    request: VerifyRequest, study_drift: Callable[[Path], Iterator[FileProblem]]
) -> tuple[VerifiedResult, ...]:
    """Verify results one by one.

    Parameters
    ----------
    request : VerifyRequest
    study_drift : callable
        Gives the problems of a folder for which :func:`is_study` is true.

    Raises
    ------
    FileProblem
        A path is missing, or holds no results.
    """
    from breastmorph.batch.drift import folder_drift
    from breastmorph.scan.check import find_scans

    for path in request.results:
        if not path.exists():
            raise FileProblem("there is no such file or folder", "Check the path", path)
    scans = None if request.scans is None else find_scans(request.scans, request.landmarks)
    inputs = None if scans is None else {files.id: files for files in scans}

    def problems(path: Path) -> Iterator[BreastMorphError]:
        if path.is_file():
            return model_drift(path, request.cohort)
        if is_study(path):
            return study_drift(path)
        if is_registered(path):
            return folder_drift(path, inputs)
        raise FileProblem(
            "this folder holds no results",
            "Give a folder of results of `breastmorph register` or `paper`",
            path,
        )

    return tuple(VerifiedResult(path, tuple(problems(path))) for path in request.results)


def is_study(path: Path) -> bool:
    """Whether a folder is a study's."""
    return (path / "study.json").exists()


def is_registered(path: Path) -> bool:
    """Whether a folder holds registered scans, and is no study's."""
    return (path / "registered").is_dir() and not is_study(path)


def model_drift(path: Path, cohort: Path | None) -> Iterator[BreastMorphError]:
    """What differs in a model file, and from the shapes of a registered folder where one is given."""
    from breastmorph.cohort import load_cohort
    from breastmorph.model.building import built_with, usable
    from breastmorph.model.files import is_unchanged, load_model

    model = load_model(path)
    unchanged = is_unchanged(model)
    if unchanged is None:
        yield FileProblem(
            "the model carries no hash of its content",
            "Only models that BreastMorph wrote can be verified",
            path,
        )
    elif not unchanged:
        yield FileProblem("the model is not what was written", "Build it again", path)
    if cohort is not None:
        subjects = usable(load_cohort(cohort), with_absent=built_with(model).with_absent)
        if model.info.get("shapes") != subjects.fingerprint():
            yield FileProblem(
                "the model was not built from these shapes, or not from all of them", "Build it again", path
            )
