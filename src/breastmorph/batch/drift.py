"""Whether the files of a registered folder are what its records state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from breastmorph.batch.cohort_prior import digest
from breastmorph.batch.product import input_hashes
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import file_hash
from breastmorph.foundation.messages import Finding, note
from breastmorph.foundation.text import name_of
from breastmorph.scan.check import ScanFiles
from breastmorph.template import from_npz

_AGAIN = note("register-again", "Register this scan again")


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
    kept = path / "template.npz"
    try:
        from_npz(kept.read_bytes())
    except (OSError, BreastMorphError) as error:
        yield FileProblem(
            "the template cannot be read ({why})", "Register the scans again", kept, why=str(error)
        )
    prior = folder.prior.read_bytes() if folder.prior.exists() else b""
    ids, templates = folder.ids(), set()
    for scan_id in ids:
        file = folder.registered / f"{scan_id}.json"
        if not file.exists():
            continue  # failed, and the folder says so
        record = folder.record(scan_id)
        outputs = record.get("outputs")
        if not isinstance(outputs, dict):
            yield FileProblem(
                "the record cannot be read", "{again}", file, code="unreadable/no-record", again=_AGAIN
            )
            continue
        templates.add(str(record.get("template")))
        if len(templates) > 1:
            yield FileProblem("it names another template than records before it", "Register it again", file)
        if record.get("learnt") and record["learnt"] != digest(prior):
            yield FileProblem(
                "it was registered with another cohort prior than that in learnt.npz",
                "{again}",
                file,
                code="unreadable/other-learnt",
                again=_AGAIN,
            )
        for name, content in outputs.items():
            yield from compared(folder.output(name), content, _AGAIN)
        if scans is not None:
            yield from _input_drift(scan_id, record.get("inputs"), scans, file)
    for mesh in sorted(folder.registered.glob("[!.]*.ply")):
        if name_of(mesh.stem) not in ids:
            yield FileProblem("no record knows this mesh", "Remove it, or register its scan", mesh)


def compared(path: Path, digest: object, again: Finding) -> Iterator[FileProblem]:
    """What is wrong with a file of which a record keeps the hash, if anything is."""
    if not digest:
        return  # a picture that could not be drawn
    try:
        if not path.exists():
            yield FileProblem("the file is missing", "{again}", path, code="missing/file", again=again)
        elif file_hash(path) != digest:
            yield FileProblem(
                "its content is not what the record says",
                "{again}",
                path,
                code="unreadable/other-content",
                again=again,
            )
    except FileProblem as problem:
        yield problem


def _input_drift(
    scan_id: str, recorded: object, scans: Mapping[str, ScanFiles], file: Path
) -> Iterator[FileProblem]:
    if scan_id not in scans:
        yield FileProblem(
            "its scan is not among the inputs", "Check the folder of scans", file, code="not-among-inputs"
        )
        return
    try:
        now = input_hashes(scans[scan_id])
    except FileProblem as problem:
        yield problem
        return
    before = recorded if isinstance(recorded, dict) else {}
    for name in sorted({*now, *before}):
        if now.get(name) != before.get(name):
            yield FileProblem(
                "the input {name} is not the one it was made from", "Register it again", file, name=name
            )
