"""STL, ascii and binary. It repeats the corners of every triangle; equal positions are joined on reading.

Not read with trimesh: of an ascii file that is cut off it silently makes an empty scene, and it splits one of several
solids into parts.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import damaged, floats, space_in, truncated, write_file
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.topology import joined
from breastmorph.mesh.triangle_mesh import TriangleMesh

_HEADER = 84
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def is_whole(data: bytes) -> bool:
    """Whether the length is exactly what the binary header announces (text never fits by chance)."""
    return len(data) > _HEADER and len(data) == _HEADER + _announced(data) * _RECORD.itemsize


def _announced(data: bytes) -> int:
    return int.from_bytes(data[80:84], "little")


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an STL file."""
    # Many programs begin binary files with "solid" too, so the length decides first, then the text.
    corners: NDArray[np.floating]
    if not is_whole(data) and re.match(rb"\s*solid\b", data) and b"\0" not in data[:1024]:
        header, corners = data[:256].splitlines()[0], _text_corners(data)
    else:
        header, corners = data[:80], _binary_corners(data)
    kept, new_id = joined(corners)
    return TriangleMesh(
        corners[kept].astype(np.float64), new_id.reshape(-1, 3), space=space_in(header.decode("latin-1"))
    )


def _binary_corners(data: bytes) -> NDArray[np.float32]:
    if len(data) < _HEADER:
        raise truncated(
            "a binary STL header has {header} bytes, the file has {n_data}", header=_HEADER, n_data=len(data)
        )
    count = _announced(data)
    there = (len(data) - _HEADER) // _RECORD.itemsize
    if there < count:
        raise truncated(
            "the STL header announces {count:,} triangles, {there:,} are there", count=count, there=there
        )
    return np.frombuffer(data, _RECORD, count, _HEADER)["corners"].reshape(-1, 3)


def _text_corners(data: bytes) -> Floats:
    text = data.replace(b"\r", b"\n").lower()
    if not re.search(rb"\n[ \t]*endsolid\b", text[text.rfind(b"endfacet") + 1 :]):
        raise truncated("the STL text has no closing 'endsolid'")
    corners = re.findall(rb"\n[ \t]*vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*(?=\n)", text)
    facets = len(re.findall(rb"\n[ \t]*endfacet\b", text))
    if len(corners) != 3 * facets or facets != len(re.findall(rb"\n[ \t]*facet\b", text)):
        raise damaged("an STL facet does not have exactly three corners of three numbers")
    return floats([number for corner in corners for number in corner], "STL corner").reshape(-1, 3)


def write(mesh: TriangleMesh, path: Path) -> None:
    """Write binary STL. The format has 32-bit floats, no colours, no texture and no unused vertices."""
    records = np.zeros(mesh.n_faces, _RECORD)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is written as it is
        records["corners"] = mesh.vertices.astype(np.float32)[mesh.faces]
        records["normal"] = face_normals(mesh.vertices, mesh.faces)
    header = f"BreastMorph. SPACE={mesh.space}" if mesh.space else "BreastMorph."
    count = np.uint32(mesh.n_faces).tobytes()
    write_file(path, b"".join([header.encode().ljust(80), count, records.view(np.uint8).data]))
