"""What is in the files to take home: meshes, measures, landmarks and pages for the clinic, each made from one case."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.clinical.examination import Examination, as_row
from breastmorph.clinical.predicted_measures import predicted_nipples
from breastmorph.explorer.answers import bad_request, not_now
from breastmorph.explorer.asked import Download
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scans import landmark_json
from breastmorph.explorer.predicting import planned
from breastmorph.explorer.shapes import NamedShape, edited_name, shape_of
from breastmorph.explorer.uploads import harmless_name
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import csv_text
from breastmorph.foundation.language import N_
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


def mesh_file(session: Session, case: Case, spec: Any, kind: Any, *, plain: bool = False) -> Download:
    """A shape's mesh file.

    It is in the frame and unit of the patient's scan; GLB is upright and in metres. It has the patient's skin where
    the scan shows it, unless a ``plain`` one is asked for.
    """
    if kind not in MESHES:
        raise bad_request("meshes are written as {meshes}", meshes=", ".join(MESHES))
    shape = shape_of(session, case, spec)
    vertices = shape.to_file.apply(shape.vertices)
    if kind == "glb":  # glTF means metres and upright, whatever the scan was
        vertices = _METRES.apply(shape.vertices)
    mesh = TriangleMesh(vertices, session.view.model.faces, None if plain else shape.skin)
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"mesh.{kind}"
        save_mesh(mesh, path)
        return Download(named(shape.name, f".{kind}"), MESHES[kind], path.read_bytes())


def textured_file(session: Session, case: Case, spec: Any, job: Job) -> tuple[str, bytes]:
    """A shape as OBJ with its material and a picture of the patient's skin, in one archive: its name and content."""
    shape = shape_of(session, case, spec)
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


def solid_file(session: Session, case: Case, target: Any, side: Any, part: Any, kind: Any) -> Download:
    """What is to be added on a side, or taken away, as a closed solid; upright and in mm, as printers take it."""
    if kind not in ("stl", "ply") or part not in ("added", "removed"):
        raise bad_request("a solid is what is added or removed, as stl or ply")
    one = planned(session.view.model, case, target).plan.side(str(side))
    solid = (one.added if part == "added" else one.removed).solid
    if solid is None:
        raise BreastMorphError(*_NOT_PLANNED[part], code=f"nothing-planned/{part}", side=one.side)
    name = edited_name(case) if target == "edited" else case.name
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"solid.{kind}"
        save_mesh(solid, path)
        return Download(named(f"{name}-{part}-{one.side}", f".{kind}"), MESHES[kind], path.read_bytes())


def measures_file(session: Session, case: Case, specs: Any) -> Download:
    """A table of measures, one row a shape."""
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_SHAPES:
        raise bad_request("ask for one to {most_shapes} shapes", most_shapes=_MOST_SHAPES)
    shapes = [shape_of(session, case, spec) for spec in specs]
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


def landmark_file(session: Session, case: Case, kind: Any) -> Download:
    """A landmark file, in the scan's own coordinates."""
    if kind not in WRITABLE:
        raise bad_request("landmarks are written as {writable}", writable=", ".join(WRITABLE))
    name, to_file = named(case.name, kind), case.required_scan.read.to_file
    if kind == ".json":
        return Download(name, "application/json", landmark_json(case.picks, to_file))
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / f"landmarks{kind}"
        save_landmarks(case.picks.landmarks.transformed(to_file), path)
        return Download(name, "application/octet-stream", path.read_bytes())


def sheet(session: Session, case: Case, kind: Any, spec: Any = None) -> tuple[str, bytes]:
    """Name and content of a page for the clinic, as PNG."""
    from breastmorph.report.examination_sheet import caution, examination_page
    from breastmorph.report.prediction_sheet import prediction_page
    from breastmorph.report.shape_sheets import editing_page
    from breastmorph.report.sheet import page_png

    model, made_with = session.view.model, session.view.origin.name
    warning = caution(model)
    if kind == "edit":
        name = edited_name(case)
        page = editing_page(case.required_edit.edit, model.faces, Identity(name, model=made_with), warning)
        about = "edited"
    elif kind == "prediction":
        name, predicted = case.name, case.required_prediction
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
        about = "prediction"
    elif kind == "measures":
        shape = shape_of(session, case, spec)
        name, about = shape.name, "measures"
        page = examination_page(_examined(session, shape), Identity(name, model=made_with), warning)
    else:
        raise bad_request("a sheet is about an edit, a prediction or measures")
    return named(f"{name}-{about}", ".png"), page_png(page)


def handout_file(
    session: Session, case: Case, values: Mapping[str, Any], given: Mapping[str, str]
) -> tuple[str, bytes]:
    """Name and content of the page to take home, as PDF."""
    from breastmorph.report.handout import Handout, planned_handout, save_handout

    model, target = session.view.model, values.get("target")
    identity = Identity(model=session.view.origin.name)
    if target is None:
        shape = shape_of(session, case, values.get("shape"))
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
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "handout.pdf"
        save_handout(replace(page, identity=identity), path, given["language"], given["paper"])
        return named(f"{name}-handout", ".pdf"), path.read_bytes()


def named(stem: str, suffix: str) -> str:
    """A harmless name for a file."""
    return harmless_name(f"{stem or 'shape'}.x").removesuffix(".x") + suffix
