"""Files that visitors send: kept privately, read in a process of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import ClientDisconnect, Request

from breastmorph.explorer.answers import RequestProblem, bad_request, unknown
from breastmorph.explorer.settings import MEGABYTE, without_name
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.files.corners import split_at_seams
from breastmorph.mesh.geometry import (
    Similarity,
    face_areas,
    face_normals,
    without_non_finite,
    without_unreferenced,
)
from breastmorph.mesh.topology import with_three_corners
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import UNITS, USUAL_EXTENT, unit_of_extent
from breastmorph.scan.check import require_size

# --------------------------------------------------------------------------------------------------------------------
# Reading a scan for the page, in a worker process: the checked reader, a guessed pose, fewer triangles to show
# --------------------------------------------------------------------------------------------------------------------

_OPEN = 0.1  # length of the mean normal from which on a surface has a front
_ROUNDS = 4  # of finding a grid that leaves few enough triangles


@dataclass(frozen=True, eq=False)
class ReadScan:
    """A scan as it was read, and as it is shown.

    Attributes
    ----------
    mesh : TriangleMesh
        All of it, upright as far as can be guessed, in mm: x to the patient's left, y up, z forward.
    to_file : Similarity
        From there to the coordinates of the file.
    vertices : (v, 3) float32
        What is shown, in the same coordinates.
    faces : (f, 3) uint32
    uv : (v, 2) float32, optional
    colors : (v, 3) uint8, optional
    image : bytes
        The texture's picture; empty without one.
    """

    mesh: TriangleMesh
    to_file: Similarity
    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    uv: NDArray[np.float32] | None = None
    colors: NDArray[np.uint8] | None = None
    image: bytes = b""


def reader() -> Callable[[tuple[Any, ...]], Any]:
    """Setup of a reading process; an item is a function, the path of a file from elsewhere, and its other arguments."""

    def read(item: tuple[Any, ...]) -> Any:
        function, path, *more = item
        try:
            return function(path, *more)
        except BreastMorphError as error:
            error.where = path.name  # the folder is the server's own business
            raise

    return read


def read_scan(path: Path, most_faces: int) -> ReadScan:
    """Read a mesh file; show it with at most about so many triangles."""
    mesh = load_mesh(path)
    require_size(mesh)
    return shown_scan(mesh, most_faces)


def shown_scan(mesh: TriangleMesh, most_faces: int, to_shown: Similarity | None = None) -> ReadScan:
    """A mesh as it is shown; ``to_shown`` brings it upright where that is known."""
    mesh = without_unreferenced(without_non_finite(mesh)[0])[0]
    if not mesh.n_faces:
        raise MeshProblem("no face of the file has finite corners", "Export the scan again", code="no-faces")
    upright = to_shown or guessed_pose(mesh)
    mesh = mesh.with_vertices(upright.apply(mesh.vertices))
    image = mesh.texture.image if mesh.texture is not None else b""
    full = mesh if image else replace(mesh, texture=None)
    shown = clustered(full, most_faces) if full.n_faces > most_faces else full
    vertices, faces, uv, colors = _drawn(shown)
    return ReadScan(
        TriangleMesh(mesh.vertices, mesh.faces), upright.inverse(), vertices, faces, uv, colors, image
    )


def guessed_pose(mesh: TriangleMesh) -> Similarity:
    """From the file to an upright torso in mm that faces forward, by what files usually are.

    The front of an open scan is where its normals point on average; up is the file's y axis, or z where y points
    forward. The unit is the one in which the scan has an adult's size.
    """
    low, high = np.quantile(mesh.vertices, (0.005, 0.995), axis=0)
    extent = float((high - low).max())
    unit = unit_of_extent(extent)
    scale = UNITS[unit] if unit is not None else USUAL_EXTENT / max(extent, 1e-300)
    areas = face_areas(mesh.vertices, mesh.faces)
    normal = areas @ face_normals(mesh.vertices, mesh.faces) / max(float(areas.sum()), 1e-300)
    forward = np.array([0.0, 0.0, 1.0])
    if np.linalg.norm(normal) > _OPEN:
        axis = int(np.abs(normal).argmax())
        forward = np.eye(3)[axis] * np.sign(normal[axis])
    up = np.array([0.0, 1.0, 0.0]) if abs(forward[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    rotation = np.stack([np.cross(up, forward), up, forward])
    return Similarity(rotation, -scale * rotation @ (0.5 * (low + high)), scale)


def clustered(mesh: TriangleMesh, most_faces: int) -> TriangleMesh:
    """The mesh with vertices of one cell of a grid joined, so that about so many triangles are left; for showing only.

    Corners keep their place in the texture.
    """
    area = float(face_areas(mesh.vertices, mesh.faces).sum())
    cell = np.sqrt(2.0 * area / most_faces)
    for _ in range(_ROUNDS):
        home = _cells(mesh.vertices, cell)
        faces = home[mesh.faces]
        kept = with_three_corners(faces)
        if kept.sum() <= most_faces:
            break
        cell *= max(1.1, float(np.sqrt(kept.sum() / most_faces)))
    texture = mesh.texture and replace(mesh.texture, uv=mesh.texture.uv[kept])
    return without_unreferenced(replace(mesh, faces=faces[kept], texture=texture))[0]


def _cells(vertices: Floats, cell: float) -> Ints:
    """For every vertex the first one in its cell of a grid, (n,)."""
    index = np.floor((vertices - vertices.min(axis=0)) / cell).astype(np.int64)
    sizes = index.max(axis=0) + 1
    flat = (index[:, 0] * sizes[1] + index[:, 1]) * sizes[2] + index[:, 2]
    _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def _drawn(
    mesh: TriangleMesh,
) -> tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32] | None, NDArray[np.uint8] | None]:
    """Vertices, faces, uv and colours for the graphics card, which knows one uv per vertex."""
    colors = None if mesh.colors is None else mesh.colors[:, :3]
    if mesh.texture is None:
        return mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32), None, colors
    source, faces, uv = split_at_seams(mesh)
    return (
        mesh.vertices[source].astype(np.float32),
        faces.astype(np.uint32),
        uv.astype(np.float32),
        None if colors is None else colors[source],
    )


# --------------------------------------------------------------------------------------------------------------------
# Files that visitors send: counted while they come, kept in a private folder, called by ids
# --------------------------------------------------------------------------------------------------------------------

_LONGEST_NAME = 100
_SPARE = 200 * MEGABYTE  # of disk that is never filled
_MOST_FILES = 3000
_WRITE = MEGABYTE  # bytes that are written at a time
_LONGEST_STEM = 160  # bytes: file systems count these, and results get longer names
# An OBJ file names its materials and pictures, so what does no harm is kept as it is.
_ALSO = set("._-() +,'&#@!~[]{}=;$^%`")


@dataclass(frozen=True)
class Upload:
    """A file that came.

    Attributes
    ----------
    id : str
    path : Path
        Its name is what the visitor called it, made harmless.
    size : int
    holder : int, optional
        See :func:`~breastmorph.explorer.settings.without_name`.
    """

    id: str
    path: Path
    size: int
    holder: int | None = None

    def let_go(self) -> None:
        """After the path is gone: end the content too."""
        if self.holder is not None:
            os.close(self.holder)


def harmless_name(name: str) -> str:
    """A file name without folders, control characters and hidden beginnings.

    Raises
    ------
    RequestProblem
        Nothing usable is left.
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(one if _is_harmless(one) else "_" for one in last).strip(" .")
    stem, dot, suffix = kept.rpartition(".")
    if not stem or not dot or not suffix.isalnum():
        raise bad_request("a file needs a name with an ending", "Name it for example torso.ply")
    short = stem[: _LONGEST_NAME - 12].encode()[:_LONGEST_STEM].decode(errors="ignore")
    return f"{short}.{suffix[:10]}"


def _is_harmless(letter: str) -> bool:
    return letter.isalnum() or letter in _ALSO or unicodedata.combining(letter) > 0  # accents of their own


async def body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body of a request, piece by piece; refused as soon as it is known to be too large.

    Raises
    ------
    RequestProblem
        413 where it is larger than ``limit`` bytes.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise too_large(limit)
    seen = 0
    try:
        async for piece in request.stream():
            seen += len(piece)
            if seen > limit:
                raise too_large(limit)
            yield piece
    except ClientDisconnect:
        raise bad_request("the upload broke off", "Try again") from None


def too_large(limit: int) -> RequestProblem:
    """The refusal of a body that is too large."""
    return RequestProblem(
        413,
        f"the file is larger than the {limit / MEGABYTE:,.0f} MB allowed",
        "Export a smaller file, for example one with fewer triangles",
        code="too-large",
    )


class UploadFolder:
    """The files of one session.

    Parameters
    ----------
    folder : Path
        A private one that exists.
    quota : int
        Bytes of all files together.
    """

    def __init__(self, folder: Path, quota: int) -> None:
        self.folder, self._quota = folder, quota
        self._files: dict[str, Upload] = {}

    async def receive(self, request: Request, name: str, limit: int) -> Upload:
        """Write a body to a new file; nothing is left of one that is refused."""
        from anyio import to_thread

        name = harmless_name(name)
        held = sum(one.size for one in self._files.values())
        if len(self._files) >= _MOST_FILES or held >= self._quota:
            raise RequestProblem(
                413, "this session holds too many files", "Close scans you no longer need", code="quota"
            )
        room = shutil.disk_usage(self.folder).free - _SPARE
        most = min(limit, self._quota - held)
        if room < most // 8:
            raise RequestProblem(507, "the disk is nearly full", "Free some space", code="disk-full")
        path, size, waiting = self._place() / name, 0, bytearray()
        upload = Upload(secrets.token_urlsafe(12), path, 0)
        try:
            with open(path, "xb") as file:
                upload = replace(upload, holder=without_name(path, file))
                async for piece in body(request, min(most, max(room, 0))):
                    waiting += piece
                    size += len(piece)
                    if len(waiting) >= _WRITE:
                        await to_thread.run_sync(file.write, bytes(waiting))
                        waiting.clear()
                file.write(waiting)
            if not size:
                raise bad_request("the file is empty", "Choose another file")
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            upload.let_go()
            raise
        return self._listed(replace(upload, size=size))

    def keep(self, name: str, data: bytes) -> Upload:
        """A file that the server made, to be fetched later."""
        path = self._place() / harmless_name(name)
        with open(path, "xb") as file:
            holder = without_name(path, file)
            file.write(data)
        return self._listed(Upload(secrets.token_urlsafe(12), path, len(data), holder))

    def _place(self) -> Path:
        place = self.folder / f"u{secrets.token_hex(8)}"
        place.mkdir(mode=0o700)
        return place

    def _listed(self, upload: Upload) -> Upload:
        self._files[upload.id] = upload
        return upload

    def find(self, key: str) -> Upload:
        """A file of this session."""
        try:
            return self._files[key]
        except KeyError:
            raise unknown("file") from None

    def fetched(self, key: str) -> tuple[str, bytes]:
        """Name and content of a file, which goes: what has been fetched must not fill the session."""
        upload = self.find(key)
        content = upload.path.read_bytes()
        upload.path.unlink()
        self._files.pop(key).let_go()
        return upload.path.name, content

    def together(self, main: Upload, others: Sequence[str]) -> None:
        """Bring the files that one mesh needs (materials, pictures; by their ids) beside it."""
        for other in map(self.find, others):
            target = main.path.parent / other.path.name
            if target.exists():
                raise bad_request(f"two files are called {target.name}", "Rename one of them")
            self._files[other.id] = replace(other, path=other.path.rename(target))

    def drop(self, key: str) -> None:
        """Delete a file, and what was brought beside it."""
        upload = self._files.pop(key, None)
        if upload is None:
            return
        shutil.rmtree(upload.path.parent, ignore_errors=True)
        upload.let_go()
        for gone in [one for one, other in self._files.items() if not other.path.exists()]:
            self._files.pop(gone).let_go()

    def close(self) -> None:
        """Delete all files."""
        for key in list(self._files):
            self.drop(key)
