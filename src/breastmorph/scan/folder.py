"""Finding scans and their landmark files: matched by the file's stem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from breastmorph.errors import FileProblem
from breastmorph.mesh import files as mesh_files
from breastmorph.scan import files as landmark_files

_TAILS = ("_picked_points", "_landmarks", "-landmarks")  # MeshLab's habit, and people's


@dataclass(frozen=True)
class ScanFiles:
    """The files of one scan.

    Attributes
    ----------
    id : str
        The mesh file's stem.
    mesh : Path
    landmarks : tuple of Path
        Usually one; none or several is for the check to judge.
    """

    id: str
    mesh: Path
    landmarks: tuple[Path, ...] = ()


def find_scans(scans: Path, landmarks: Path | None = None) -> list[ScanFiles]:
    """List the scans of a folder (or one file) with their landmark files, sorted by id.

    Parameters
    ----------
    scans : Path
        A mesh file or a folder of them.
    landmarks : Path, optional
        A folder of landmark files, or one file for one scan; beside the scans when not given.

    Raises
    ------
    FileProblem
        Nothing there to work on.
    """
    for path in (scans, landmarks):
        if path is not None and not path.exists():
            raise FileProblem("there is no such file or folder", "Check the path", path)
    meshes = [scans] if scans.is_file() else _files(scans, mesh_files.READABLE)
    first: dict[str, Path] = {}
    for other in meshes:
        one = first.setdefault(other.stem, other)
        if one is not other:
            raise FileProblem(
                f"two scans have the same name: {one.name} and {other.name}",
                "Rename or remove one of them",
                scans,
            )
    if not meshes:
        raise FileProblem(
            "there is no scan in this folder", f"Supported formats: {' '.join(mesh_files.READABLE)}", scans
        )
    if landmarks is not None and landmarks.is_file():
        if len(meshes) > 1:
            raise FileProblem(
                f"one landmark file cannot serve {len(meshes)} scans",
                "Give a folder with one landmark file per scan, named after the scan",
                landmarks,
            )
        return [ScanFiles(meshes[0].stem, meshes[0], (landmarks,))]
    home = landmarks or (scans.parent if scans.is_file() else scans)
    by_stem: dict[str, list[Path]] = {}
    apart = not any(mesh.parent.samefile(home) for mesh in meshes)
    for path in _files(home, landmark_files.APART if apart else landmark_files.READABLE):
        by_stem.setdefault(landmark_stem(path), []).append(path)
    return [ScanFiles(mesh.stem, mesh, tuple(by_stem.get(mesh.stem, ()))) for mesh in meshes]


def landmark_stem(path: Path) -> str:
    """The scan a landmark file belongs to, by its name."""
    name = path.name
    suffix = next((s for s in landmark_files.APART if name.lower().endswith(s)), path.suffix)
    stem = name[: len(name) - len(suffix)]
    return next((stem.removesuffix(tail) for tail in _TAILS if stem.endswith(tail)), stem)


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.name.lower().endswith(suffixes) and not path.name.startswith(".")
    )
