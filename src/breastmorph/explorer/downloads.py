"""Files to take home: meshes, measures, landmarks, pages for the clinic, and the session file."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.clinical.examination import Examination, as_row
from breastmorph.clinical.predicted_measures import predicted_nipples
from breastmorph.explorer.answers import bad_request, not_now
from breastmorph.explorer.app import Asked, Download
from breastmorph.explorer.jobs import Job, WorkerCalls
from breastmorph.explorer.model_view import NamedShape, shape_of
from breastmorph.explorer.open_scans import OpenScan
from breastmorph.explorer.patients import comparer
from breastmorph.explorer.predicting import planned
from breastmorph.explorer.session_file import restore, saved
from breastmorph.explorer.uploads import harmless_name
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, measure_in_words
from breastmorph.foundation.files import csv_text
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.skin import SEEN, baked
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmark_files import WRITABLE, save_landmarks
from breastmorph.usecases.subject import template_of

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session


# --------------------------------------------------------------------------------------------------------------------
# What is in them
# --------------------------------------------------------------------------------------------------------------------

MESHES = {
    "stl": "model/stl",
    "ply": "application/octet-stream",
    "obj": "text/plain",
    "glb": "model/gltf-binary",
}
_MOST_SHAPES = 20
_METRES = Similarity(scale=0.001)  # from mm


def mesh_file(session: Session, spec: Any, kind: Any, *, plain: bool = False) -> Download:
    """A shape's mesh file.

    It is in the frame and unit of the patient's scan; GLB is upright and in metres. It has the patient's skin where
    the scan shows it, unless a ``plain`` one is asked for.
    """
    if kind not in MESHES:
        raise bad_request(f"meshes are written as {', '.join(MESHES)}")
    shape = shape_of(session, spec)
    vertices = shape.to_file.apply(shape.vertices)
    if kind == "glb":  # glTF means metres and upright, whatever the scan was
        vertices = _METRES.apply(shape.vertices)
    mesh = TriangleMesh(vertices, session.view.model.faces, None if plain else shape.skin)
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"mesh.{kind}"
        save_mesh(mesh, path)
        return Download(_named(shape.name, f".{kind}"), MESHES[kind], path.read_bytes())


def textured_file(session: Session, spec: Any, job: Job) -> tuple[str, bytes]:
    """A shape as OBJ with its material and a picture of the patient's skin, in one archive: its name and content."""
    shape = shape_of(session, spec)
    if shape.skin is None:
        raise not_now("this shape has no skin colours", "Save it as it is", code="no-skin")
    job.at("painting the skin", 0.05)
    faces = session.view.model.faces
    on_scan, surface, own = _skin_of_scan(session, shape)
    painted = baked(
        TriangleMesh(on_scan, faces),
        shape.skin,
        surface,
        own,
        on_done=lambda share: job.at("painting the skin", 0.05 + 0.9 * share),
    )
    mesh = TriangleMesh(shape.to_file.apply(shape.vertices), faces, texture=painted)
    name, archive = _named(shape.name, ""), io.BytesIO()
    with tempfile.TemporaryDirectory(dir=session.folder) as place, zipfile.ZipFile(archive, "w") as file:
        save_mesh(mesh, Path(place) / f"{name}.obj")
        for path in sorted(Path(place).iterdir()):
            packing = zipfile.ZIP_STORED if path.suffix == ".png" else zipfile.ZIP_DEFLATED
            file.write(path, path.name, packing)
    return f"{name}-obj.zip", archive.getvalue()


def _skin_of_scan(session: Session, shape: NamedShape) -> tuple[Floats, Surface | None, Bools | None]:
    """Where a shape's vertices lay on the scan it was made of, that scan, and which of them still have its skin."""
    patient = session.patient
    if patient is None or patient.scan != shape.source or patient.patient.skin is None or shape.skin is None:
        return shape.vertices, None, None
    read = session.scan(patient.scan).read
    upright = patient.patient.to_file.inverse().after(read.to_file)
    skin = patient.patient.skin
    own = (shape.skin == skin).all(axis=1) & (skin[:, 3] == SEEN)
    scan = read.mesh.with_vertices(upright.apply(read.mesh.vertices))
    return patient.patient.shape, Surface(scan), own


def solid_file(session: Session, target: Any, side: Any, part: Any, kind: Any) -> Download:
    """What is to be added on a side, or taken away, as a closed solid; upright and in mm, as printers take it."""
    if kind not in ("stl", "ply") or part not in ("added", "removed"):
        raise bad_request("a solid is what is added or removed, as stl or ply")
    plan = planned(session, target)
    one = plan.side(str(side))
    solid = (one.added if part == "added" else one.removed).solid
    if solid is None:
        raise BreastMorphError.of(f"nothing-planned/{part}", side=one.side)
    name = session.required_edit.patient.id if target == "edited" else session.required_patient.patient.id
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"solid.{kind}"
        save_mesh(solid, path)
        return Download(_named(f"{name}-{part}-{one.side}", f".{kind}"), MESHES[kind], path.read_bytes())


def measures_file(session: Session, specs: Any) -> Download:
    """A table of measures, one row a shape."""
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_SHAPES:
        raise bad_request(f"ask for one to {_MOST_SHAPES} shapes")
    shapes = [shape_of(session, spec) for spec in specs]
    rows = [as_row(_examined(session, one)) for one in shapes]
    return Download("measures.csv", "text/csv; charset=utf-8", csv_text(list(rows[0]), rows).encode())


def _examined(session: Session, shape: NamedShape) -> Examination:
    return session.view.examiner.shape(
        shape.name,
        shape.vertices,
        shape.absent_side,
        "model",
        landmarks=shape.landmarks,
        predicted=shape.predicted,
    )


def landmark_file(session: Session, scan: OpenScan, kind: Any) -> Download:
    """A landmark file, in the scan's own coordinates."""
    if kind not in WRITABLE:
        raise bad_request(f"landmarks are written as {', '.join(WRITABLE)}")
    name = _named(scan.name, kind)
    if kind == ".json":
        return Download(name, "application/json", scan.landmark_json)
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"landmarks{kind}"
        save_landmarks(scan.picks.landmarks.transformed(scan.read.to_file), path)
        return Download(name, "application/octet-stream", path.read_bytes())


def sheet(session: Session, kind: Any, spec: Any = None) -> tuple[str, bytes]:
    """Name and content of a page for the clinic, as PNG."""
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        if kind == "edit":
            files, name = _editing_sheet(session, Path(folder))
        elif kind == "prediction":
            files, name = _prediction_sheet(session, Path(folder))
        elif kind == "measures":
            files, name = _measure_sheet(session, shape_of(session, spec), Path(folder))
        else:
            raise bad_request("a sheet is about an edit, a prediction or measures")
        png = next(path for path in files if path.suffix == ".png")
        return _named(name, ".png"), png.read_bytes()


_HANDOUT = {
    "language": "en",
    "paper": "A4",
    "identifier": "",
    "date": "",
}  # what may be told, and what is usual


def handout_file(session: Session, values: Mapping[str, Any], told: Mapping[str, str]) -> tuple[str, bytes]:
    """Name and content of the page to take home, as PDF."""
    from breastmorph.report.handout import Handout, compared, save_handout

    model, target = session.view.model, values.get("target")
    if target is None:
        shape = shape_of(session, values.get("shape"))
        page = Handout(_examined(session, shape), "", shape.name, synthetic=model.is_synthetic)
    else:
        plan = planned(session, target)
        kinds = {"predicted": "prediction", "mirrored": "mirrored", "edited": "edit"}
        there = shape_of(session, {"kind": kinds[plan.target]})
        if plan.target == "edited":  # of whatever shape it began with
            own = replace(there, vertices=plan.before, name=session.required_edit.patient.id)
        else:
            own = shape_of(session, {"kind": "patient"})
        page = compared(model, plan, _examined(session, own), _examined(session, there))
    name = told["identifier"] or page.identifier
    page = replace(page, made_with=session.view.origin.name, identifier=name, date=told["date"])
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "handout.pdf"
        save_handout(page, path, told["language"], told["paper"])
        return _named(f"{page.examination.id}-handout", ".pdf"), path.read_bytes()


def _editing_sheet(session: Session, folder: Path) -> tuple[Sequence[Path], str]:
    from breastmorph.report.shape_sheets import save_editing_sheet

    edited = session.required_edit
    changes = edited.edit.changes
    asked = ", ".join(
        measure_in_words(one.name) for one in changes if one.requested is not None and not one.held
    )
    title = f"{edited.patient.id}: {asked}"
    faces, warning = session.view.model.faces, _warning(session)
    files = save_editing_sheet(edited.edit, faces, title, folder, warning, session.view.origin.name)
    return files, f"{edited.patient.id}-edited"


def _prediction_sheet(session: Session, folder: Path) -> tuple[Sequence[Path], str]:
    from breastmorph.report.clinical_sheet import save_prediction_sheet

    predicted, patient = session.required_prediction, session.required_patient.patient
    found = predicted.prediction
    as_if = ", as if it were missing" if predicted.record["breast_was_there"] else ""
    title = f"{patient.id}: predicted {found.region.called}{as_if}"
    files = save_prediction_sheet(
        found,
        patient.shape,
        found.measures.measures,
        title,
        folder,
        warning=_warning(session),
        nipples=predicted_nipples(session.view.model, found),
        made_with=session.view.origin.name,
    )
    return files, f"{patient.id}-prediction"


def _warning(session: Session) -> str:
    from breastmorph.report.clinical_sheet import caution

    return caution(session.view.model)


def _measure_sheet(session: Session, shape: NamedShape, folder: Path) -> tuple[Sequence[Path], str]:
    from breastmorph.report.clinical_sheet import save_measure_sheet

    files = save_measure_sheet(
        _examined(session, shape), folder, made_with=session.view.origin.name, warning=_warning(session)
    )
    return files, f"{shape.name}-measures"


def _named(stem: str, suffix: str) -> str:
    return harmless_name(f"{stem or 'shape'}.x").removesuffix(".x") + suffix


# --------------------------------------------------------------------------------------------------------------------
# What the endpoints do
# --------------------------------------------------------------------------------------------------------------------

_LARGEST_PAGE = 64 * 1024  # bytes of the page's own notes


def mesh(asked: Asked) -> Download:
    """A shape as a mesh file."""
    plain = asked.values.get("plain") is True
    return mesh_file(asked.session, asked.values.get("shape"), asked.values.get("format"), plain=plain)


def textured(asked: Asked) -> Job:
    """OBJ with a picture of the skin; painted in the background."""
    session, spec = asked.session, asked.values.get("shape")

    def work(job: Job) -> dict[str, Any]:
        kept = session.uploads.keep(*textured_file(session, spec, job))
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def solid(asked: Asked) -> Download:
    """A part of a plan: ``target``, ``side``, ``part`` and ``format``."""
    told = asked.values
    return solid_file(
        asked.session, told.get("target"), told.get("side"), told.get("part"), told.get("format", "stl")
    )


def measures(asked: Asked) -> Download:
    """A table of measures."""
    return measures_file(asked.session, asked.values.get("shapes"))


def landmarks(asked: Asked) -> Download:
    """The landmarks of a scan."""
    key = asked.values.get("scan")
    if not isinstance(key, str):
        raise bad_request("say which scan")
    return landmark_file(asked.session, asked.session.scan(key), asked.values.get("format", ".json"))


def page(asked: Asked) -> Job:
    """A page for the clinic; drawn in the background."""
    session, values = asked.session, asked.values

    def work(job: Job) -> dict[str, Any]:
        job.at("drawing", 0.2)
        name, content = sheet(session, values.get("kind"), values.get("shape"))
        kept = session.uploads.keep(name, content)
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def handout(asked: Asked) -> Job:
    """The page to take home, of ``target`` where one is named, otherwise of ``shape``; drawn in the background."""
    session, values = asked.session, asked.values
    told = {key: str(values.get(key) or default) for key, default in _HANDOUT.items()}
    if told["language"] not in ("en", "de") or told["paper"] not in ("A4", "Letter"):
        raise bad_request("the page is in English or German, on A4 or Letter")

    def work(job: Job) -> dict[str, Any]:
        job.at("drawing", 0.2)
        kept = session.uploads.keep(*handout_file(session, values, told))
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def comparison(asked: Asked) -> Job:
    """The page of ``breastmorph compare`` of two open ``scans`` of one person, the earlier visit first."""
    session, keys = asked.session, asked.values.get("scans")
    if not isinstance(keys, list) or len(keys) != 2 or not all(isinstance(key, str) for key in keys):
        raise bad_request("a comparison is of two open scans")
    visits = [session.case_of(key) for key in keys]
    if all(one.day for one in visits):
        visits.sort(key=lambda one: one.day)
    scans, template = [session.scan(one.key) for one in visits], template_of(session.view.model)

    def work(job: Job) -> dict[str, Any]:
        job.at("comparing the visits")
        with (
            tempfile.TemporaryDirectory(dir=session.folder, ignore_cleanup_errors=True) as place,
            WorkerCalls(comparer, session.explorer.settings.computing) as calls,
        ):
            folder = Path(place)
            files = [
                replace(scan.files(folder), id=case.name) for scan, case in zip(scans, visits, strict=True)
            ]
            content = calls.call((template, files, folder), lambda: job.is_cancelled)
        kept = session.uploads.keep(_named(f"{visits[0].name}-comparison", ".html"), content)
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def session(asked: Asked) -> Download:
    """The session file."""
    notes = asked.values.get("page")
    if len(json.dumps(notes)) > _LARGEST_PAGE:
        raise bad_request("the page's notes are too long")
    about = asked.session.case.name
    name = _named(f"{about}-session", ".zip") if about else "session.zip"
    return Download(name, "application/zip", saved(asked.session, notes))


def reopen(asked: Asked) -> Job:
    """A session file; opened in the background."""
    session, file = asked.session, asked.file

    def work(job: Job) -> dict[str, Any]:
        try:
            return restore(session, file.path, job)
        finally:
            session.uploads.drop(file.id)

    return session.jobs.start("reopen", work)
