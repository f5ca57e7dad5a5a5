"""Which scans a folder holds, and the judgement of each before any computing starts: usable, repaired or refused."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import (
    BreastMorphError,
    FileProblem,
    LandmarkProblem,
    MeshProblem,
    error_context,
)
from breastmorph.foundation.language import N_, Plural
from breastmorph.foundation.messages import Finding, note, repair, warning
from breastmorph.foundation.text import name_of
from breastmorph.mesh import files as mesh_files
from breastmorph.mesh import geometry
from breastmorph.mesh.closest import closest_to_few
from breastmorph.mesh.geometry import Similarity, edge_lengths, face_areas
from breastmorph.mesh.topology import boundary_loops, face_components
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import (
    UNITS,
    USUAL_EXTENT,
    KnownDistance,
    enough_landmarks,
    missing_landmarks,
    require_adult_anatomy,
    require_enough,
    unit_of,
    unit_of_extent,
)
from breastmorph.scan.finder import FOUND_NAMES, FoundLandmarks, find_landmarks, recheck_landmarks
from breastmorph.scan.frame import LANDMARK_TOLERANCE, Reference, faces_inside_out, upright_frame
from breastmorph.scan.landmark_files import APART, READABLE, LandmarkFile, read_landmarks
from breastmorph.scan.scan import REQUIRED, STERNUM, Check, Landmarks, Note, PlausibilityReport, Scan
from breastmorph.scan.suspicion import suspicions

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
                "two scans have the same name: {name} and {name2}",
                "Rename or remove one of them",
                scans,
                name=one.name,
                name2=other.name,
            )
    if not meshes:
        raise _no_scan(scans)
    if landmarks is not None and landmarks.is_file():
        if len(meshes) > 1:
            raise FileProblem(
                "one landmark file cannot serve {n_meshes} scans",
                "Give a folder with one landmark file per scan, named after the scan",
                landmarks,
                n_meshes=len(meshes),
            )
        return [_scan_files(name_of(meshes[0].stem), meshes[0], (landmarks,))]
    home = landmarks or (scans.parent if scans.is_file() else scans)
    by_id: dict[str, list[Path]] = {scan_id: [] for scan_id in first}
    apart = not any(mesh.parent.samefile(home) for mesh in meshes)
    for path in _files(home, APART if apart else READABLE):
        by_id.setdefault(landmark_stem(path, first), []).append(path)
    return [_scan_files(scan_id, mesh, tuple(by_id[scan_id])) for scan_id, mesh in sorted(first.items())]


def _scan_files(scan_id: str, mesh: Path, landmarks: tuple[Path, ...]) -> ScanFiles:
    return ScanFiles(scan_id, mesh, landmarks, mesh_files.needed_beside(mesh))


def landmark_stem(path: Path, scans: Container[str] = ()) -> str:
    """The scan a landmark file belongs to, by its name; one of ``scans`` may itself be called p_landmarks."""
    name = path.name
    suffix = next((s for s in APART if name.lower().endswith(s)), path.suffix)
    stem = name_of(name[: len(name) - len(suffix)])
    if stem in scans:
        return stem
    return next((stem.removesuffix(tail) for tail in _TAILS if stem.endswith(tail)), stem)


def passed_over(scans: Path) -> str:
    """What to say of scans in subfolders, which :func:`find_scans` does not look into; empty where there are none."""
    below = folders_of_scans(scans) if scans.is_dir() else {}
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
        return FileProblem(
            "there is no scan in this folder", "Supported formats: {formats}", folder, formats=formats
        )
    one = next(iter(folders_of_scans(folder)))
    return FileProblem(
        "there is no scan in this folder itself; {below}",
        "Name a subfolder, for example {one}",
        folder,
        below=below,
        one=one,
    )


def folders_of_scans(folder: Path, depth: int = _DEEPEST) -> dict[Path, int]:
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
            found |= folders_of_scans(child, depth - 1) if depth > 1 else {}
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


@dataclass(frozen=True)
class CheckParameters:
    """What is asked of a scan."""

    unit: str = "auto"  # auto, mm, cm or m
    scale_by: str = ""  # a distance measured on the patient, NL-NR=21cm: the scale of a file in no known unit
    landmark_order: Sequence[str] | None = None  # names of a bare list of points
    landmark_distance: float = 10.0  # mm a landmark may lie off the surface
    mean_edge: float = 8.0  # mm; coarser scans have lost the breast's shape
    max_faces: int = 5_000_000
    lost_share: float = 0.02  # of the faces that repairs may remove
    loose_share: float = 0.5  # of the area that may lie in pieces without landmarks
    doubts: bool = True  # also look for what is wrong but plausible, as in a scan that was not checked before


def check_scan(
    files: ScanFiles,
    parameters: CheckParameters | None = None,
    reference: Reference | None = None,
    known: PlausibilityReport | None = None,
) -> Check:
    """Read, repair and judge one scan. Never raises for what is wrong with the files.

    Parameters
    ----------
    files : ScanFiles
    parameters : CheckParameters, optional
    reference : (TriangleMesh, Landmarks), optional
        An upright torso that settles the frame of scans turned out of the upright.
    known : Doubts, optional
        Of an earlier check of the same files with the same parameters and reference: they are not sought again.
    """
    p = parameters or CheckParameters()
    findings: list[Finding] = []
    facts: dict[str, float | int | str] = {}
    outcome: Scan | BreastMorphError
    try:
        with error_context(files.mesh):
            mesh = mesh_files.load_mesh(files.mesh)
            facts |= {"vertices": mesh.n_vertices, "faces": mesh.n_faces}
            mesh = repaired(mesh, p, findings.append)
            given = with_found(mesh, _read_landmarks(files, p), p, findings.append)
            with error_context(files.landmarks[0] if files.landmarks else files.mesh, LandmarkProblem):
                outcome = upright_scan(files.id, mesh, given, p, reference, findings.append, facts, known)
    except BreastMorphError as error:
        outcome = error
        findings.append(error.finding)
    return Check(files.id, tuple(findings), facts, outcome)


def load_scan(
    mesh: str | Path,
    landmarks: str | Path,
    *,
    parameters: CheckParameters | None = None,
    reference: Reference | None = None,
) -> Scan:
    """Read one scan, repaired where that is safe.

    Raises
    ------
    BreastMorphError
        The scan was refused; the message names file, cause and remedy.
    """
    files = ScanFiles(name_of(Path(mesh).stem), Path(mesh), (Path(landmarks),))
    return check_scan(files, parameters, reference).accepted()


def upright_scan(
    scan_id: str,
    mesh: TriangleMesh,
    given: LandmarkFile,
    p: CheckParameters,
    reference: Reference | None,
    add: Note,
    facts: dict[str, float | int | str],
    known: PlausibilityReport | None = None,
) -> Scan:
    """A repaired surface and its landmarks, both as in their files, as a scan; ``facts`` is added to."""
    require_enough(given.landmarks, given.labels_not_understood)
    note_landmarks(given, add)
    mm, facts["unit"] = scale_of(given.landmarks, p, add)
    mesh, landmarks, mm_per_file_unit = in_mm(mesh, given, mm, p.landmark_distance, add)
    mesh = _piece_with_landmarks(mesh, landmarks, p.loose_share, add)
    if faces_inside_out(mesh, landmarks):
        mesh = mesh.flipped()
        add(repair("inverted-orientation", "surface was inside out; turned"))
    frame = upright_frame(mesh, landmarks, reference)
    facts["frame"] = frame.source
    if frame.source == "landmarks":
        add(
            note(
                "frame-from-landmarks",
                "no upright axis found in the file; up is estimated from the landmarks (within "
                "{degrees:.0f} degrees)",
                degrees=LANDMARK_TOLERANCE,
            )
        )
    centre = landmarks.only(STERNUM).points.mean(axis=0)
    from_mm = Similarity(frame.axes, -frame.axes @ centre)
    mesh = mesh.with_vertices(from_mm.apply(mesh.vertices))
    landmarks = landmarks.transformed(from_mm)
    require_adult_anatomy(landmarks, max(float(np.ptp(along)) for along in mesh.vertices.T))
    _describe(mesh, p, add, facts)
    if landmarks.absent_sides:
        side = landmarks.absent_sides[0]
        facts["absent_side"] = side
        add(note("absent-side", "{side} side absent (no nipple, no poles)", side=side))
    if landmarks.unset:
        facts["landmarks_unset"] = ", ".join(landmarks.unset)
    to_file = Similarity(scale=1.0 / mm_per_file_unit).after(from_mm.inverse())
    report = known or _plausibility_report(mesh, landmarks, to_file, p)
    for finding in report.warnings:
        add(finding)
    return Scan(scan_id, mesh, landmarks, to_file, report.warnings, report.rather)


def _plausibility_report(
    mesh: TriangleMesh, landmarks: Landmarks, to_file: Similarity, p: CheckParameters
) -> PlausibilityReport:
    """What speaks against an upright scan that breaks no rule."""
    doubtful = warning(
        "landmarks-doubtful",
        "found, but doubtful: {names:landmark}",
        "Look at them on the scan, and set them by hand where they are wrong",
        names=[name for name in landmarks.doubtful if name in REQUIRED],
    )
    warnings = (doubtful,) if doubtful.values["names"] else ()
    if not p.doubts:
        return PlausibilityReport(warnings)
    improbable, suggested = recheck_landmarks(mesh, landmarks, to_file)
    return PlausibilityReport((*suspicions(mesh, landmarks.on_skin), *improbable, *warnings), suggested)


def note_landmarks(given: LandmarkFile, add: Note) -> None:
    """Say which landmarks were named by a convention alone, and which are not set."""
    if given.assumed_order:
        add(
            note(
                "landmark-order",
                "points without names taken in the order {names:landmark}; make sure that it is so",
                names=given.assumed_order,
            )
        )
    if given.landmarks.unset:
        add(
            note(
                "landmarks-not-set",
                "not set: {names:landmark}; a registration estimates them for its mask, and they are "
                "left out of measures{but_found}",
                names=given.landmarks.unset,
                but_found=given.labels_not_understood,
            )
        )


def scale_of(landmarks: Landmarks, p: CheckParameters, add: Note) -> tuple[float, str]:
    """Millimetres per unit of the landmarks, and the unit's name."""
    if not p.scale_by:
        unit = unit_of(landmarks, p.unit)
        if p.unit == "auto" and unit != "mm":
            by_sternum = note(
                "unit/sternum", "unit taken as {unit} from the length of the sternum", unit=unit
            )
            by_nipples = note(
                "unit/nipples", "unit taken as {unit} from the distance from notch to nipples", unit=unit
            )
            add(by_sternum if "xiphoid" in landmarks else by_nipples)
        return UNITS[unit], unit
    mm = scale_by(p.scale_by, landmarks, add)
    return mm, f"{mm:.4g} mm"


def scale_by(text: str, landmarks: Landmarks, add: Note) -> float:
    """Millimetres per unit of the landmarks by a measured distance; says so, and where that is nearly a usual unit."""
    known = KnownDistance.of(text)
    mm = known.mm_per_unit(landmarks)
    near = [
        note(
            "scaled/near",
            ", {off:+.0f} % against {unit}; if the file is in {unit}, check the distance",
            unit=unit,
            off=100 * (mm / usual - 1),
        )
        for unit, usual in UNITS.items()
        if 0.5 < mm / usual < 2.0 and abs(mm / usual - 1.0) > 0.05
    ]
    add(
        note(
            "scaled",
            "scaled by {first:landmark} to {second:landmark} = {length:g} mm: one unit of the file "
            "is {mm:.4g} mm{near}",
            first=known.first,
            second=known.second,
            length=known.length,
            mm=mm,
            near=near[:1],
        )
    )
    return mm


def _read_landmarks(files: ScanFiles, p: CheckParameters) -> LandmarkFile:
    if not files.landmarks:
        return LandmarkFile(Landmarks((), np.zeros((0, 3))))
    if len(files.landmarks) > 1:
        names = [path.name for path in files.landmarks]
        raise FileProblem(
            "several landmark files fit this scan: {names}",
            "Keep one",
            files.mesh,
            code="ambiguous-landmarks",
            names=names,
        )
    return read_landmarks(files.landmarks[0], p.landmark_order)


_SAME_PLACE = 0.05  # of a scan's extent: landmarks that lie farther off it are in another unit or other axes


def with_found(
    mesh: TriangleMesh,
    given: LandmarkFile,
    p: CheckParameters,
    add: Note,
    enough: Callable[[Landmarks], bool] = enough_landmarks,
) -> LandmarkFile:
    """The landmarks as given, and those that are not set as the program finds them, on a surface or a cloud.

    A file with the sternum and one whole breast says that the other is absent; any other gap is one to be filled, and
    where it cannot be, landmarks that are ``enough`` stay alone.
    """
    marks = given.landmarks
    if not missing_landmarks(marks):
        return given
    if len(marks) and _distances(mesh, marks).max() > _SAME_PLACE * np.ptp(mesh.vertices, axis=0).max():
        return given  # and the check of the surface refuses them
    mm, sized = _scale_of_set_landmarks(mesh, marks, p)
    try:
        found = find_landmarks(mesh, p.unit, mm, sized=sized, there=marks.nipple_sides)
    except MeshProblem as error:
        if not enough(marks):
            raise
        add(replace(error.finding, level="note"))
        return given
    landmarks = marks.completed(found.landmarks, FOUND_NAMES)
    for reason in found.left_out.values():
        add(reason)
    new = [name for name in landmarks if name not in marks]
    if new:
        add(
            note(
                "landmarks-found",
                "found by the program: {names:landmark}{but_found}",
                names=new,
                but_found=given.labels_not_understood,
            )
        )
    return replace(given, landmarks=landmarks)


def _scale_of_set_landmarks(
    mesh: TriangleMesh, marks: Landmarks, p: CheckParameters
) -> tuple[float | None, bool]:
    """Millimetres per unit by landmarks that are set, None where only the surface shows it; and whether it is known."""
    telling = "sternal_notch" in marks and ("xiphoid" in marks or bool(marks.nipple_sides))
    if not p.scale_by:
        return UNITS[unit_of(marks, p.unit)] if telling else None, True
    known = KnownDistance.of(p.scale_by)
    if known.first in marks and known.second in marks:
        return known.mm_per_unit(marks), True
    extent = float(np.ptp(mesh.vertices, axis=0).max())
    # To find landmarks the scale need only be about right; the measured distance tells it then.
    return None if unit_of_extent(extent) else USUAL_EXTENT / extent, False


# What is mended, its sentence, and that for a mesh with too much of it.
_REPAIRS = {
    "non-finite-vertices": (
        geometry.without_non_finite,
        Plural(
            "{n:,} vertex with NaN or infinite coordinates removed",
            "{n:,} vertices with NaN or infinite coordinates removed",
        ),
        N_(
            "too damaged to repair: {n:,} vertices with NaN or infinite coordinates on {share:.0%} of the faces"
        ),
    ),
    "unreferenced-vertices": (
        geometry.without_unreferenced,
        Plural("{n:,} vertex without faces removed", "{n:,} vertices without faces removed"),
        N_("too damaged to repair: {n:,} vertices without faces on {share:.0%} of the faces"),
    ),
    "duplicate-vertices": (
        geometry.welded,
        Plural("{n:,} duplicate vertex joined", "{n:,} duplicate vertices joined"),
        N_("too damaged to repair: {n:,} duplicate vertices on {share:.0%} of the faces"),
    ),
    "degenerate-faces": (
        geometry.without_degenerate_faces,
        Plural("{n:,} face without area removed", "{n:,} faces without area removed"),
        N_("too damaged to repair: {n:,} faces without area on {share:.0%} of the faces"),
    ),
    "duplicate-faces": (
        geometry.without_duplicate_faces,
        Plural("{n:,} duplicate face removed", "{n:,} duplicate faces removed"),
        N_("too damaged to repair: {n:,} duplicate faces on {share:.0%} of the faces"),
    ),
    "non-manifold-edges": (
        geometry.without_non_manifold_edges,
        Plural("faces at {n:,} non-manifold edge removed", "faces at {n:,} non-manifold edges removed"),
        N_("too damaged to repair: faces at {n:,} non-manifold edges on {share:.0%} of the faces"),
    ),
    "inconsistent-orientation": (
        geometry.consistently_oriented,
        Plural(
            "{n:,} face turned to agree with its neighbours",
            "{n:,} faces turned to agree with their neighbours",
        ),
        N_("too damaged to repair: {n:,} faces on {share:.0%} of the faces"),
    ),
    "pinched-vertices": (
        geometry.without_pinches,
        Plural(
            "{n:,} vertex split where only corners touched", "{n:,} vertices split where only corners touched"
        ),
        N_("too damaged to repair: {n:,} vertices on {share:.0%} of the faces"),
    ),
}


def require_size(mesh: TriangleMesh, max_faces: int = CheckParameters.max_faces) -> None:
    """Refuse a surface with more faces than are worth the time."""
    if mesh.n_faces > max_faces:
        raise MeshProblem(
            "too large: {faces:,} faces (at most {most:,})",
            "Decimate it first (300,000 faces are plenty), or raise max_faces",
            code="too-large",
            faces=mesh.n_faces,
            most=max_faces,
        )


def repaired(mesh: TriangleMesh, p: CheckParameters, add: Note) -> TriangleMesh:
    """A surface as read, mended where that is safe and refused where it is not."""
    require_size(mesh, p.max_faces)
    n_before = mesh.n_faces
    for code, (mend, mended, too_damaged) in _REPAIRS.items():
        n_faces = mesh.n_faces
        mesh, touched = mend(mesh)
        if not touched:
            continue
        # Duplicates and slivers carry no surface; what other repairs remove is surface lost.
        lost = n_faces - mesh.n_faces if code in ("non-finite-vertices", "non-manifold-edges") else 0
        if lost > p.lost_share * n_before or not mesh.n_faces:
            raise MeshProblem(
                too_damaged,
                "Repair the mesh (for example in MeshLab) or export the scan again",
                code=f"{code}/refused",
                n=touched,
                share=lost / n_before,
            )
        add(repair(code, mended, n=touched))
    return geometry.without_unreferenced(mesh)[0]


def landmarks_in(
    path: Path, parameters: CheckParameters | None = None
) -> tuple[TriangleMesh, FoundLandmarks]:
    """Read a scan, mend it and find its landmarks, whatever landmark files say; the mended surface, and what was found.

    Raises
    ------
    FileProblem
        It cannot be read.
    MeshProblem
        It cannot be mended, or is no adult torso that :func:`~breastmorph.scan.finder.find_landmarks` knows.
    """
    p = parameters or CheckParameters()
    with error_context(path):
        mesh = repaired(mesh_files.load_mesh(path), p, lambda _: None)
        found = find_landmarks(mesh, p.unit)
        return mesh.flipped() if found.warnings else mesh, found


def in_mm(
    mesh: TriangleMesh, given: LandmarkFile, mm: float, allowed: float, add: Note
) -> tuple[TriangleMesh, Landmarks, float]:
    """A surface and its landmarks in millimetres and the same axes, and the millimetres per unit of the mesh file.

    Parameters
    ----------
    mesh : TriangleMesh
        As in its file.
    given : LandmarkFile
    mm : float
        Millimetres per unit of the landmarks, and nearly always of the mesh.
    allowed : float
        mm that a landmark may lie off the surface.
    add : callable
    """
    scaled = mesh.with_vertices(mesh.vertices * mm)
    landmarks = given.landmarks.transformed(Similarity(scale=mm))
    factor, landmarks = _on_the_surface(scaled, landmarks, given.space, allowed, add)
    if factor == 1.0:
        return scaled, landmarks, mm
    return mesh.with_vertices(mesh.vertices * (mm * factor)), landmarks, mm * factor


def _on_the_surface(
    mesh: TriangleMesh, landmarks: Landmarks, space: str, allowed: float, add: Note
) -> tuple[float, Landmarks]:
    """Settle how mesh and landmarks lie to each other, by where the landmarks meet the surface.

    Returns
    -------
    scale : float
        Factor of the mesh's unit over the landmarks' (1 nearly always).
    landmarks : Landmarks
        In the mesh file's axes.
    """
    distances = _distances(mesh, landmarks)
    if distances.max() <= allowed:
        if distances.max() > allowed / 2:
            worst = landmarks.names[int(distances.argmax())]
            add(
                note(
                    "landmark-off-surface",
                    "{name:landmark} is {distance:.0f} mm off the surface",
                    name=worst,
                    distance=float(distances.max()),
                )
            )
        return 1.0, landmarks
    if space or mesh.space:
        # LPS and RAS differ by a half turn about the body axis; the surface tells which one the mesh uses.
        turned = landmarks.transformed(Similarity(np.diag([-1.0, -1.0, 1.0])))
        if _distances(mesh, turned).max() <= allowed:
            add(note("lps-ras", "landmarks and mesh use different axes (LPS/RAS); landmarks turned"))
            return 1.0, turned
    for scale in (1000.0, 100.0, 10.0, 0.1, 0.01, 0.001):
        if _distances(mesh.with_vertices(mesh.vertices * scale), landmarks).max() <= allowed:
            add(
                repair(
                    "units-differ",
                    "mesh unit differs from the landmarks'; mesh scaled by {scale:g}",
                    scale=scale,
                )
            )
            return scale, landmarks
    far = [
        note(
            "landmark-off-surface/one",
            "{name:landmark} {distance:.1f} mm",
            name=name,
            distance=float(distance),
        )
        for name, distance in zip(landmarks.names, distances, strict=True)
        if distance > allowed
    ]
    raise LandmarkProblem(
        "landmarks off the surface by more than {allowed:.0f} mm: {far}",
        "Check that they belong to this scan and were picked in its coordinates",
        code="landmark-off-surface/refused",
        allowed=allowed,
        far=far,
    )


def _distances(mesh: TriangleMesh, landmarks: Landmarks) -> Floats:
    """From surface or points; none of a fold that the scanner did not see."""
    on_skin = landmarks.on_skin
    if mesh.n_faces:
        away = closest_to_few(mesh, landmarks.points)[1]
    else:
        away = cKDTree(mesh.vertices).query(landmarks.points)[0]
    return np.where([name in on_skin for name in landmarks], away, 0.0)


def _piece_with_landmarks(
    mesh: TriangleMesh, landmarks: Landmarks, loose_share: float, add: Note
) -> TriangleMesh:
    piece = face_components(mesh.faces)
    n_pieces = int(piece.max()) + 1
    if n_pieces == 1:
        return mesh
    area = np.bincount(piece, weights=face_areas(mesh.vertices, mesh.faces))
    home = piece[closest_to_few(mesh, landmarks.points)[2]]
    main = np.bincount(home).argmax()
    elsewhere = [name for name, k in zip(landmarks.names, home, strict=True) if k != main]
    kept = mesh.kept(piece == main)
    if elsewhere and _distances(kept, landmarks.only(elsewhere)).max() > 5.0:
        raise MeshProblem(
            "the scan is in {pieces} pieces and {names:landmark} lies on another piece than the rest",
            "Join the pieces (for example in MeshLab: merge close vertices), or export the scan as "
            "one surface",
            code="landmarks-on-several-pieces",
            pieces=n_pieces,
            names=elsewhere,
        )
    loose = float(1.0 - area[main] / area.sum())
    if loose > loose_share:
        raise MeshProblem(
            "the piece with the landmarks is only {share:.0%} of the surface ({pieces} pieces)",
            "Remove what is not the patient (table, background) or join the pieces",
            code="several-components/refused",
            share=1 - loose,
            pieces=n_pieces,
        )
    add(
        repair(
            "several-components",
            "{pieces} loose pieces ({share:.1%} of the area) removed",
            pieces=n_pieces - 1,
            share=loose,
        )
    )
    return kept


def _describe(mesh: TriangleMesh, p: CheckParameters, add: Note, facts: dict[str, float | int | str]) -> None:
    mean_edge = float(edge_lengths(mesh.vertices, mesh.faces).mean())
    facts["mean_edge_mm"] = round(mean_edge, 2)
    if mean_edge > p.mean_edge:
        raise MeshProblem(
            "too coarse: mean edge {edge:.1f} mm (at most {most:g})",
            "Export the scan at a higher resolution (3.5 mm or finer is best)",
            code="too-coarse",
            edge=mean_edge,
            most=p.mean_edge,
        )
    loops = boundary_loops(mesh.faces)
    holes = loops[1:]
    facts["holes"] = len(holes)
    if not loops:
        add(note("closed-surface", "closed surface (no border); scans are usually open"))
    around = [mesh.vertices[loop] - mesh.vertices[np.roll(loop, 1)] for loop in holes]
    big = [length for sides in around if (length := float(np.linalg.norm(sides, axis=1).sum())) > 30.0]
    if len(big) > 1:
        add(note("holes", "{n} holes (largest {largest:.0f} mm around)", n=len(big), largest=max(big)))
    elif big:
        add(note("holes/one", "1 hole (largest {largest:.0f} mm around)", n=1, largest=big[0]))
