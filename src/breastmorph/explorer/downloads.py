"""Files to take home: meshes, measures, landmarks, pages for the clinic, and the session file."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.clinical.examination import Examination, as_row
from breastmorph.clinical.predicted_measures import predicted_nipples
from breastmorph.explorer.answers import bad_request, not_now
from breastmorph.explorer.app import Asked, Download
from breastmorph.explorer.jobs import Job, WorkerCalls
from breastmorph.explorer.open_scans import landmark_json, scan_files
from breastmorph.explorer.patients import comparer
from breastmorph.explorer.predicting import planned
from breastmorph.explorer.restoring import restore
from breastmorph.explorer.session_file import saved
from breastmorph.explorer.shapes import NamedShape, edited_name, shape_of
from breastmorph.explorer.uploads import harmless_name
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import csv_text
from breastmorph.foundation.language import N_, languages
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.skin import SEEN, baked
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.document import Identity
from breastmorph.scan.landmark_files import WRITABLE, save_landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

MESHES = {
    "stl": "model/stl",
    "ply": "application/octet-stream",
    "obj": "text/plain",
    "glb": "model/gltf-binary",
}
_MOST_SHAPES = 20
_METRES = Similarity(scale=0.001)  # from mm
_NOT_PLANNED = {
    "added": (N_("nothing is added on the {side} side"), N_("Take what is removed there")),
    "removed": (N_("nothing is removed on the {side} side"), N_("Take what is added there")),
}
_HANDOUT = {
    "language": "en",
    "paper": "A4",
    "identifier": "",
    "date": "",
}  # what may be given, and what is usual
_LARGEST_PAGE = 64 * 1024  # bytes of the page's own notes


def mesh(asked: Asked) -> Download:
    """A shape as a mesh file.

    It is in the frame and unit of the patient's scan; GLB is upright and in metres. It has the patient's skin where
    the scan shows it, unless a ``plain`` one is asked for.
    """
    kind = asked.values.get("format")
    if kind not in MESHES:
        raise bad_request("meshes are written as {meshes}", meshes=", ".join(MESHES))
    shape = shape_of(asked.session, asked.case, asked.values.get("shape"))
    # glTF means metres and upright, whatever the scan was
    vertices = (_METRES if kind == "glb" else shape.to_file).apply(shape.vertices)
    skin = None if asked.values.get("plain") is True else shape.skin
    return _mesh_download(
        asked, TriangleMesh(vertices, asked.session.view.model.faces, skin), shape.name, kind
    )


def textured(asked: Asked) -> Job:
    """A shape as OBJ with material and a picture of the patient's skin, in one archive; made in the background."""
    session, case = asked.session, asked.case

    def paint(job: Job) -> tuple[str, bytes]:
        shape = shape_of(session, case, asked.values.get("shape"))
        if shape.skin is None:
            raise not_now("this shape has no skin colours", "Save it as it is", code="no-skin")
        job.at("painting the skin", 0.05)
        faces = session.view.model.faces
        on_scan, surface, own = _skin_of_scan(case, shape)
        painted = baked(
            TriangleMesh(on_scan, faces),
            shape.skin,
            surface,
            own,
            on_done=lambda share: job.at("painting the skin", 0.05 + 0.9 * share),
        )
        mesh = TriangleMesh(shape.to_file.apply(shape.vertices), faces, texture=painted)
        name, archive = named(shape.name, ""), io.BytesIO()
        with tempfile.TemporaryDirectory(dir=session.folder) as place, zipfile.ZipFile(archive, "w") as file:
            save_mesh(mesh, Path(place) / f"{name}.obj")
            for path in sorted(Path(place).iterdir()):
                packing = zipfile.ZIP_STORED if path.suffix == ".png" else zipfile.ZIP_DEFLATED
                file.write(path, path.name, packing)
        return f"{name}-obj.zip", archive.getvalue()

    return _kept(asked, paint)


def solid(asked: Asked) -> Download:
    """What is to be added on a ``side`` to get to ``target``, or taken away (``part``), as a solid; upright, mm."""
    case, target, part = asked.case, asked.values.get("target"), asked.values.get("part")
    kind = asked.values.get("format", "stl")
    if kind not in ("stl", "ply") or part not in ("added", "removed"):
        raise bad_request("a solid is what is added or removed, as stl or ply")
    change = planned(asked.session.view.model, case, target).plan.side(str(asked.values.get("side")))
    found = (change.added if part == "added" else change.removed).solid
    if found is None:
        raise BreastMorphError(*_NOT_PLANNED[part], code=f"nothing-planned/{part}", side=change.side)
    name = edited_name(case) if target == "edited" else case.name
    return _mesh_download(asked, found, f"{name}-{part}-{change.side}", kind)


def measures(asked: Asked) -> Download:
    """A table of measures, one row a shape."""
    session, specs = asked.session, asked.values.get("shapes")
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_SHAPES:
        raise bad_request("ask for one to {most_shapes} shapes", most_shapes=_MOST_SHAPES)
    shapes = [shape_of(session, asked.case, spec) for spec in specs]
    rows = [as_row(_examined(session, shape)) for shape in shapes]
    return Download("measures.csv", "text/csv; charset=utf-8", csv_text(list(rows[0]), rows).encode())


def landmarks(asked: Asked) -> Download:
    """The landmarks of a scan, in its own coordinates."""
    key, kind = asked.values.get("scan"), asked.values.get("format", ".json")
    if not isinstance(key, str):
        raise bad_request("say which scan")
    case = asked.session.open(key)
    if kind not in WRITABLE:
        raise bad_request("landmarks are written as {writable}", writable=", ".join(WRITABLE))
    name, to_file = named(case.name, kind), case.required_scan.read.to_file
    if kind == ".json":
        return Download(name, "application/json", landmark_json(case.picks, to_file))
    content = _written(
        asked.session, kind, lambda path: save_landmarks(case.picks.landmarks.transformed(to_file), path)
    )
    return Download(name, "application/octet-stream", content)


def page(asked: Asked) -> Job:
    """A page for the clinic, as PNG; drawn in the background."""
    session, case, kind = asked.session, asked.case, asked.values.get("kind")

    def draw(job: Job) -> tuple[str, bytes]:
        from breastmorph.report.examination_sheet import caution, examination_page
        from breastmorph.report.prediction_sheet import prediction_page
        from breastmorph.report.shape_sheets import editing_page
        from breastmorph.report.sheet import page_png

        job.at("drawing", 0.2)
        model, made_with = session.view.model, session.view.origin.name
        warning = caution(model)
        if kind == "edit":
            name, about = edited_name(case), "edited"
            identity = Identity(name, model=made_with)
            page = editing_page(case.required_edit.edit, model.faces, identity, warning)
        elif kind == "prediction":
            name, about, predicted = case.name, "prediction", case.required_prediction
            found = predicted.prediction
            page = prediction_page(
                found,
                case.required_patient.patient.shape,
                found.measures.measures,
                Identity(name, model=made_with),
                nipples=predicted_nipples(model, found),
                as_if=predicted.record["breast_was_there"],
                warning=warning,
            )
        elif kind == "measures":
            shape = shape_of(session, case, asked.values.get("shape"))
            name, about = shape.name, "measures"
            page = examination_page(_examined(session, shape), Identity(name, model=made_with), warning)
        else:
            raise bad_request("a sheet is about an edit, a prediction or measures")
        return named(f"{name}-{about}", ".png"), page_png(page)

    return _kept(asked, draw)


def handout(asked: Asked) -> Job:
    """The page to take home, of ``target`` where one is named, otherwise of ``shape``; PDF, drawn in the background."""
    session, case, target = asked.session, asked.case, asked.values.get("target")
    given = {key: str(asked.values.get(key) or default) for key, default in _HANDOUT.items()}
    known = languages()
    if given["language"] not in known or given["paper"] not in ("A4", "Letter"):
        raise bad_request("a page is on A4 or Letter, in one of the languages {known}", known=known)

    def draw(job: Job) -> tuple[str, bytes]:
        from breastmorph.report.handout import Handout, planned_handout, save_handout

        job.at("drawing", 0.2)
        model, identity = session.view.model, Identity(model=session.view.origin.name)
        if target is None:
            shape = shape_of(session, case, asked.values.get("shape"))
            page = Handout(_examined(session, shape), identity, synthetic=model.is_synthetic)
            is_patients = bool(shape.source)
        else:
            result = planned(model, case, target)
            page = planned_handout(model, result.plan, *result.examinations, identity)
            is_patients = target != "edited" or case.required_edit.base == "patient"
        name = page.examination.id
        identity = replace(identity, patient=name)
        if is_patients:  # the model's mean, or an edit of it, never carries a patient's name
            identity = replace(identity, patient=given["identifier"] or name, date=given["date"])
        page = replace(page, identity=identity)
        content = _written(
            session, "handout.pdf", lambda path: save_handout(page, path, given["language"], given["paper"])
        )
        return named(f"{name}-handout", ".pdf"), content

    return _kept(asked, draw)


def comparison(asked: Asked) -> Job:
    """The page of ``breastmorph compare`` of two open ``scans`` of one person, the earlier visit first."""
    session, keys = asked.session, asked.values.get("scans")
    if not isinstance(keys, list) or len(keys) != 2 or not all(isinstance(key, str) for key in keys):
        raise bad_request("a comparison is of two open scans")
    visits = [session.open(key) for key in keys]
    if all(visit.day for visit in visits):
        visits.sort(key=lambda visit: visit.day)
    template = session.view.template

    def draw(job: Job) -> tuple[str, bytes]:
        job.at("comparing the visits")
        with (
            tempfile.TemporaryDirectory(dir=session.folder, ignore_cleanup_errors=True) as place,
            WorkerCalls(comparer, session.explorer.settings.computing) as calls,
        ):
            folder = Path(place)
            files = [replace(scan_files(visit, folder), id=visit.name) for visit in visits]
            content = calls.call((template, files, folder), lambda: job.is_cancelled)
        return named(f"{visits[0].name}-comparison", ".html"), content

    return _kept(asked, draw)


def session(asked: Asked) -> Download:
    """The session file."""
    notes, name = asked.values.get("page"), asked.case.name
    if len(json.dumps(notes)) > _LARGEST_PAGE:
        raise bad_request("the page's notes are too long")
    content = saved(asked.session, asked.case, notes)
    return Download(named(f"{name}-session", ".zip") if name else "session.zip", "application/zip", content)


def reopen(asked: Asked) -> Job:
    """A session file; opened in the background."""
    session, file = asked.session, asked.file

    def work(job: Job) -> dict[str, Any]:
        try:
            return restore(session, file.path, job)
        finally:
            session.uploads.drop(file.id)

    return session.jobs.start("reopen", work)


def _kept(asked: Asked, make: Callable[[Job], tuple[str, bytes]]) -> Job:
    """Make a file, its name and content, in the background; the page fetches it by its id."""
    session = asked.session

    def work(job: Job) -> dict[str, Any]:
        kept = session.uploads.keep(*make(job))
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def _written(session: Session, name: str, save: Callable[[Path], Any]) -> bytes:
    """What a function writes to a file of this name."""
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / name
        save(path)
        return path.read_bytes()


def _mesh_download(asked: Asked, mesh: TriangleMesh, name: str, kind: str) -> Download:
    content = _written(asked.session, f"mesh.{kind}", lambda path: save_mesh(mesh, path))
    return Download(named(name, f".{kind}"), MESHES[kind], content)


def _skin_of_scan(case: Case, shape: NamedShape) -> tuple[Floats, Surface | None, Bools | None]:
    """Where a shape's vertices lay on the scan it was made of, that scan, and which of them still have its skin."""
    patient = case.patient
    if patient is None or case.key != shape.source or patient.patient.skin is None or shape.skin is None:
        return shape.vertices, None, None
    read = case.required_scan.read
    upright = patient.patient.to_file.inverse().after(read.to_file)
    skin = patient.patient.skin
    own = (shape.skin == skin).all(axis=1) & (skin[:, 3] == SEEN)
    scan = read.mesh.with_vertices(upright.apply(read.mesh.vertices))
    return patient.patient.shape, Surface(scan), own


def _examined(session: Session, shape: NamedShape) -> Examination:
    return session.view.examiner.shape(
        shape.name,
        shape.vertices,
        shape.absent_side,
        "model",
        landmarks=shape.landmarks,
        predicted=shape.predicted,
    )


def named(stem: str, suffix: str) -> str:
    """A harmless name for a file."""
    return harmless_name(f"{stem or 'shape'}.x").removesuffix(".x") + suffix
