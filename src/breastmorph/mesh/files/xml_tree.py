"""XML without its traps: no entities, no external parts, no bottomless nesting."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged

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
        raise damaged(f"the XML breaks off or is not well formed ({error})") from error
    return builder.close()
