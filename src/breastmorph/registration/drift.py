"""Drift: what a registered folder says of its files, compared with the files themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.names import name_of
from breastmorph.registration.folder import RegisteredFolder
from breastmorph.registration.product import file_hash, input_hashes
from breastmorph.scan.folder import ScanFiles
from breastmorph.template.files import from_npz


def folder_drift(path: Path, scans: Mapping[str, ScanFiles] | None = None) -> Iterator[FileProblem]:
    """Everything in a registered folder that differs from what was written, one problem a file.

    Parameters
    ----------
    path : Path
        The ``--out`` of ``breastmorph register``.
    scans : mapping from id to ScanFiles, optional
        The inputs, when they shall be compared too.
    """
    folder = RegisteredFolder(path)
    yield from _template_drift(folder)
    ids, templates = folder.ids(), set()
    for scan_id in ids:
        record = folder.registered / f"{scan_id}.json"
        if not record.exists():
            continue  # failed, and the folder says so
        said = folder.record(scan_id)
        outputs = said.get("outputs")
        if not isinstance(outputs, dict):
            yield FileProblem("the record cannot be read", "Register this scan again", record)
            continue
        templates.add(str(said.get("template")))
        if len(templates) > 1:
            yield FileProblem("it names another template than records before it", "Register it again", record)
        for name, digest in outputs.items():
            yield from compared(folder.output(name), digest, "Register this scan again")
        if scans is not None:
            yield from _input_drift(scan_id, said.get("inputs"), scans, record)
    for mesh in sorted(folder.registered.glob("[!.]*.ply")):
        if name_of(mesh.stem) not in ids:
            yield FileProblem("no record knows this mesh", "Remove it, or register its scan", mesh)


def _template_drift(folder: RegisteredFolder) -> Iterator[FileProblem]:
    path = folder.path / "template.npz"
    try:
        from_npz(path.read_bytes())
    except (OSError, BreastMorphError) as error:
        yield FileProblem(f"the template cannot be read ({error})", "Register the scans again", path)


def compared(path: Path, digest: object, remedy: str) -> Iterator[FileProblem]:
    """What is wrong with a file of which a record keeps the hash, if anything is."""
    if not digest:
        return  # a picture that could not be drawn
    try:
        if not path.exists():
            yield FileProblem("the file is missing", remedy, path, code="missing")
        elif file_hash(path) != digest:
            yield FileProblem("its content is not what the record says", remedy, path)
    except FileProblem as problem:
        yield problem


def _input_drift(
    scan_id: str, said: object, scans: Mapping[str, ScanFiles], record: Path
) -> Iterator[FileProblem]:
    if scan_id not in scans:
        yield FileProblem("its scan is not among the inputs", "Check --scans", record)
        return
    try:
        now = input_hashes(scans[scan_id])
    except FileProblem as problem:
        yield problem
        return
    before = said if isinstance(said, dict) else {}
    for name in sorted({*now, *before}):
        if now.get(name) != before.get(name):
            yield FileProblem(
                f"the input {name} is not the one it was made from", "Register it again", record
            )
