"""NumPy archives (.npz) and XML without their traps.

No pickle, nothing is unpacked that the file is too small for; no entities, no external parts, no bottomless nesting.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, printable

_SMALL = 64 * 1024**2  # bytes that may always be unpacked
_MOST_COMPRESSED = 100  # times smaller a compressed file may be than its content
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those NumPy writes


@contextmanager
def open_archive(data: bytes) -> Iterator[Mapping[str, NDArray[Any]]]:
    """The arrays of an archive by name, each unpacked when it is asked for.

    Use inside :func:`breastmorph.foundation.files.problems_of`: a damaged archive raises all kinds of errors.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive, warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy only warns of headers it has to guess at
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > max(_SMALL, _MOST_COMPRESSED * len(data)):
            raise damaged(
                "it announces arrays of {size:,.0f} MB, more than the file can hold", size=size / 1024**2
            )
        for member in members:
            if member.compress_type not in _METHODS:
                raise damaged(
                    "{filename} is compressed as NumPy does not compress", filename=printable(member.filename)
                )
            with archive.open(member) as stream:
                _check_header(stream, member)
    with np.load(io.BytesIO(data), allow_pickle=False) as parts:
        yield parts


def _check_header(stream: IO[bytes], member: zipfile.ZipInfo) -> None:
    """Refuse an array that announces more numbers than are there, before memory is taken for them."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    if size > member.file_size:
        raise damaged(
            "{filename} announces {size:,} bytes, fewer are there",
            filename=printable(member.filename),
            size=size,
        )


_DEEPEST = 64


def parse_xml(data: bytes, allow_bare_doctype: bool = False) -> Element:
    """The root element of an XML text.

    Parameters
    ----------
    data : bytes
    allow_bare_doctype : bool
        Accept ``<!DOCTYPE name>``, which MeshLab writes and which declares nothing. One that declares
        entities or points elsewhere is always refused.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise damaged("the XML is nested too deeply")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def doctype(name: str, system: str | None, public: str | None, internal: int) -> None:
        if not allow_bare_doctype or system or public or internal:
            raise FileProblem(
                "the XML has a document type declaration (DOCTYPE), which is not accepted",
                "Remove it, or export the file again",
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise damaged("the XML breaks off or is not well formed ({why})", why=str(error)) from error
    return builder.close()
