"""Finding scans and their landmark files: matched by the file's stem."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from breastmorph.foundation.errors import FileProblem, name_of
from breastmorph.mesh import files as mesh_files
from breastmorph.scan import landmark_files

_DEEPEST = 3  # folders below the one given that are looked into for scans ...
_NAMED = 5  # ... and named in a message
_RESULTS = ("registered", "study.json", "truth")  # what lies in folders that we write
_TAILS = ("_picked_points", "_landmarks", "-landmarks")  # MeshLab's habit, and people's


@dataclass(frozen=True)
class ScanFiles:
    """The files of one scan.

    Attributes
    ----------
    id : str
        The mesh file's stem, as :func:`~breastmorph.foundation.errors.name_of` has it.
    mesh : Path
    landmarks : tuple of Path
        Usually one; none or several is for the check to judge.
    beside : tuple of Path
        Files without which the mesh file has no shape.
    """

    id: str
    mesh: Path
    landmarks: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, the mesh's first."""
        return (self.mesh, *self.landmarks, *self.beside)

    def moved(self, to: Callable[[Path], Path]) -> ScanFiles:
        """The same scan with its files elsewhere."""
        return ScanFiles(self.id, to(self.mesh), tuple(map(to, self.landmarks)), tuple(map(to, self.beside)))


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
        one = first.setdefault(name_of(other.stem), other)
        if one is not other:
            raise FileProblem(
                f"two scans have the same name: {one.name} and {other.name}",
                "Rename or remove one of them",
                scans,
            )
    if not meshes:
        raise _no_scan(scans)
    if landmarks is not None and landmarks.is_file():
        if len(meshes) > 1:
            raise FileProblem(
                f"one landmark file cannot serve {len(meshes)} scans",
                "Give a folder with one landmark file per scan, named after the scan",
                landmarks,
            )
        return [_scan_files(name_of(meshes[0].stem), meshes[0], (landmarks,))]
    home = landmarks or (scans.parent if scans.is_file() else scans)
    by_id: dict[str, list[Path]] = {scan_id: [] for scan_id in first}
    apart = not any(mesh.parent.samefile(home) for mesh in meshes)
    for path in _files(home, landmark_files.APART if apart else landmark_files.READABLE):
        by_id.setdefault(landmark_stem(path, first), []).append(path)
    return [_scan_files(scan_id, mesh, tuple(by_id[scan_id])) for scan_id, mesh in sorted(first.items())]


def _scan_files(scan_id: str, mesh: Path, landmarks: tuple[Path, ...]) -> ScanFiles:
    return ScanFiles(scan_id, mesh, landmarks, mesh_files.needed_beside(mesh))


def landmark_stem(path: Path, scans: Container[str] = ()) -> str:
    """The scan a landmark file belongs to, by its name; one of ``scans`` may itself be called p_landmarks."""
    name = path.name
    suffix = next((s for s in landmark_files.APART if name.lower().endswith(s)), path.suffix)
    stem = name_of(name[: len(name) - len(suffix)])
    if stem in scans:
        return stem
    return next((stem.removesuffix(tail) for tail in _TAILS if stem.endswith(tail)), stem)


def passed_over(scans: Path) -> str:
    """What to say of scans in subfolders, which :func:`find_scans` does not look into; empty where there are none."""
    below = _subfolders(scans) if scans.is_dir() else {}
    if not below:
        return ""
    names = ", ".join(
        f"{name_of(str(path.relative_to(scans)))} ({below[path]})" for path in islice(below, _NAMED)
    )
    more = f" and {len(below) - _NAMED} more" if len(below) > _NAMED else ""
    return f"scans in subfolders are not read: {names}{more}"


def _no_scan(folder: Path) -> FileProblem:
    below = passed_over(folder)
    if not below:
        formats = " ".join(mesh_files.READABLE)
        return FileProblem("there is no scan in this folder", f"Supported formats: {formats}", folder)
    one = next(iter(_subfolders(folder)))
    return FileProblem(
        f"there is no scan in this folder itself; {below}", f"Name a subfolder, for example {one}", folder
    )


def _subfolders(folder: Path, depth: int = _DEEPEST) -> dict[Path, int]:
    """Folders below one, with the number of their scans; landmarks, results of ours and what is hidden left out."""
    found: dict[Path, int] = {}
    for child in sorted(folder.iterdir()):
        if child.name.startswith(".") or child.is_symlink() or not child.is_dir():
            continue
        if child.name == "landmarks" or any((child / mark).exists() for mark in _RESULTS):
            continue
        with suppress(PermissionError):
            count = len(_files(child, mesh_files.READABLE))
            found |= {child: count} if count else {}
            found |= _subfolders(child, depth - 1) if depth > 1 else {}
    return found


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files by the ends of their names; a link that leads nowhere is one that cannot be read."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(suffixes)
        and not path.name.startswith(".")
        and (path.is_file() or (path.is_symlink() and not path.exists()))
    )
