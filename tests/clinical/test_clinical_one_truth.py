"""One subject through command, page, sheet, CSV, JSON and Python: the same numbers, names, units and deviations."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import breastmorph as bm
from breastmorph.cli import main
from breastmorph.clinical import volume
from breastmorph.clinical.borders import BorderFinder
from breastmorph.clinical.data_dictionary import dictionary
from breastmorph.clinical.distance_meter import section_length
from breastmorph.clinical.distances import DISTANCES, KINDS, PAIRS
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.examination import Examination, as_record, as_row
from breastmorph.clinical.examiner import examiner_of, landmarks_of
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.patient import mean_patient
from breastmorph.clinical.predicted_measures import predicted_measures, predicted_side
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import load_cohort
from breastmorph.explorer.model_view import ModelOrigin, ModelView
from breastmorph.explorer.shapes import NamedShape
from breastmorph.foundation.terms import MEASURES, PAIRS_IN_WORDS, measure_in_words
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.demo_model import demo_model
from breastmorph.model.files import load_model, save_model
from breastmorph.phantom import write_cohort
from breastmorph.report.document import Identity, Page, Table
from breastmorph.report.examination_sheet import examination_page
from breastmorph.report.measure_tables import in_cm, measure_row, shown_measure
from breastmorph.report.prediction_sheet import prediction_page
from breastmorph.report.shape_sheets import editing_page
from breastmorph.scan.scan import Landmarks
from breastmorph.template import default_template
from breastmorph.usecases.subject import SubjectFile, registered_patient, scanned_patient
from predicted_people import model as predicted_model
from small_cohort import built, random_shapes, small_cohort, write_registered
from torso import torso


def key(one: dict) -> tuple:
    return one["name"], one["kind"], one["unit"], one["value"], one["sd"], one["predicted"]


def keys(measures: tuple[Measure, ...]) -> dict[tuple[str, str], Measure]:
    return {(one.name, one.kind): one for one in measures if one.known}


def assert_same(records: list[dict], measures: tuple[Measure, ...]) -> None:
    """The same measures in records of JSON; where there is no deviation, both have none."""
    found = {(one["name"], one["kind"]): one for one in records if one["value"] is not None}
    wanted = keys(measures)
    assert set(found) == set(wanted)
    for name, one in wanted.items():
        assert found[name]["value"] == pytest.approx(one.value, abs=1e-9), name
        assert found[name]["unit"] == one.unit
        assert found[name]["predicted"] == one.predicted
        assert (found[name]["sd"] is None) == (one.sd != one.sd)
        if one.sd == one.sd:
            assert found[name]["sd"] == pytest.approx(one.sd, abs=1e-9), name


@pytest.fixture(scope="module")
def registered(tmp_path_factory, small_template) -> Path:
    """A registered subject with landmarks of her own: a lower pole 12 mm beside the template's vertex."""
    out = tmp_path_factory.mktemp("truth") / "out"
    shape = random_shapes(1, size=2.0)
    write_registered(out, shape)
    path = out / "registered" / "000.json"
    record = json.loads(path.read_text())
    points = {name: shape[0][vertex].tolist() for name, vertex in small_template.landmark_ids.items()}
    neighbours = np.argsort(np.linalg.norm(shape[0] - points["lower_pole_left"], axis=1))
    points["lower_pole_left"] = shape[0][neighbours[3]].tolist()
    path.write_text(json.dumps({**record, "landmarks": points, "landmarks_found": {"xiphoid": 6.5}}))
    return out


def test_a_subject_has_the_same_measures_at_every_door(registered, tmp_path, monkeypatch):
    command = CliRunner().invoke(
        main,
        ["measure", str(registered), "--json", "--csv", str(tmp_path / "m.csv")],
    )
    assert command.exit_code == 0, command.output
    [told] = json.loads(command.stdout)["subjects"]
    cohort = load_cohort(registered, packed_in=tmp_path / "packed")
    one = examiner_of(cohort.template).shape("000", cohort.shape(0), annotated=cohort.landmarks[0])
    # JSON and Python
    assert_same(told["distances"] + told["others"] + told["volumes"], one.measures)
    assert {one.name for one in one.measures if one.known} > {"NL-IMFL", "base-width-left", "volume-left"}
    # CSV
    with open(tmp_path / "m.csv", newline="") as table:
        [row] = csv.DictReader(table)
    for m in one.measures:
        column = f"{m.name}{'' if m.kind == 'volume' else f' {m.kind}'} {m.unit}"
        assert row[column] == (f"{m.value:.2f}" if m.known else "")
        assert row[f"{column} sd"] == (f"{m.sd:.2f}" if m.known else "")
    # The page: a model of the template that is built in
    monkeypatch.setattr(volume, "default_template", lambda: cohort.template)
    model = built(small_cohort())
    patient = registered_patient(model, registered / "registered" / "000.ply")
    own = landmarks_of(model, patient).at(patient.shape)
    np.testing.assert_allclose(own["lower_pole_left"], cohort.landmarks[0]["lower_pole_left"], atol=1e-6)
    shown = NamedShape("000", patient.shape, landmarks=landmarks_of(model, patient))
    assert_same(ModelView(ModelOrigin(), model, 3).measures(shown, tape=True)["measures"], one.measures)
    # Table of the command and sheet
    text = CliRunner().invoke(main, ["measure", str(registered)], env={"COLUMNS": "200"}).output
    sheet = examination_page(one, Identity(one.id))
    assert (sheet.identity.patient, sheet.identity.model) == (one.id, "built-in template")
    assert_shown(
        one, [line.split("\N{BOX DRAWINGS LIGHT VERTICAL}") for line in text.splitlines()], in_words=False
    )
    assert_shown(one, rows_of(sheet))


def assert_shown(one: Examination, rows: Iterable[Sequence[str]], *, in_words: bool = True) -> None:
    """Every measure stands in a table for people in the row of its name, with its deviation."""
    cells = [[cell.strip() for cell in row] for row in rows]
    pairs = {side: name for name, sides in PAIRS.items() for side in sides}
    known = [m for m in (*one.measures, *one.asymmetries) if m.known]
    assert len(known) > 60
    for m in known:
        name = pairs.get(m.name, m.name)
        words = MEASURES.get(name) or PAIRS_IN_WORDS.get(name, name)
        asked = f"{words}, {m.kind}" if m.kind in KINDS else words
        difference = m.name in PAIRS
        here = [row for row in cells if (asked in row if in_words else name in row and m.kind in row)]
        assert any(shown_measure(m, "+" if difference else "") in row for row in here), (m.name, m.kind)
        assert ("\N{PLUS-MINUS SIGN}" in shown_measure(m)) == (m.sd == m.sd)


def test_an_edit_has_the_same_measures_at_every_door(breast_model, tmp_path):
    save_model(breast_model, tmp_path / "model.h5")
    model = load_model(tmp_path / "model.h5")  # a file has single precision
    asked = ["edit", str(tmp_path / "model.h5"), "--set", "SN-NL=+6mm", "--hold", "NL-NR", "--no-sheet"]
    command = CliRunner().invoke(main, [*asked, "--out", str(tmp_path), "--json"])
    assert command.exit_code == 0, command.output
    text = CliRunner().invoke(main, [*asked, "--out", str(tmp_path)], env={"COLUMNS": "200"}).output
    found = Editor(model, mean_patient(model)).exact([parse_request("SN-NL=+6mm")], ["NL-NR"])
    places = landmarks_of(model, mean_patient(model))
    shape = NamedShape("edit", found.shape, landmarks=places)
    page = ModelView(ModelOrigin(), model, 3).measures(shape, tape=True)["measures"]
    written = examiner_of(model).shape("edit", found.shape, landmarks=places)
    # Page, JSON, CSV and the sheet of measures: everything
    record, row = as_record(written), as_row(written)
    assert_same(page, written.measures)
    assert_same(record["distances"] + record["others"] + record["volumes"], written.measures)
    for m in written.measures:
        column = f"{m.name}{'' if m.kind == 'volume' else f' {m.kind}'} {m.unit}"
        assert row[column] == (f"{m.value:.2f}" if m.known else "")
        assert row[f"{column} sd"] == (f"{m.sd:.2f}" if m.known else "")
    assert_shown(written, rows_of(examination_page(written, Identity("edit"))))
    # What the edit itself tells: Python, edit.json, its CSV, its sheet, the terminal
    told = {one["name"]: one for one in json.loads(command.stdout)["changes"]}
    assert told == {one["name"]: one for one in json.loads((tmp_path / "edit.json").read_bytes())["changes"]}
    with open(tmp_path / "measures.csv", newline="") as table:
        rows = {one["measure"]: one for one in csv.DictReader(table)}
    sheet = editing_page(found, model.faces, Identity("mean", model="model.h5"))
    on_sheet = {line[0]: line for line in rows_of(sheet)}
    printed = [
        [cell.strip() for cell in line.split("\N{BOX DRAWINGS LIGHT VERTICAL}")] for line in text.splitlines()
    ]
    straight = {one["name"]: one for one in page if one["kind"] != "tape"}
    assert {change.name for change in found.changes} > {"SN-NL", "NL-NR", "volume-left"}
    assert set(told) == set(rows) == {change.name for change in found.changes}
    for change in found.changes:
        of_page = straight[change.name]
        assert of_page["value"] == pytest.approx(change.after, abs=1e-6), change.name
        assert of_page["sd"] == pytest.approx(change.sd, abs=1e-9), change.name
        assert (of_page["unit"], of_page["sd_source"]) == (change.unit, change.source)
        assert told[change.name]["after"] == pytest.approx(change.after, abs=1e-6)
        for key in ("unit", "sd", "sd_source"):
            assert told[change.name][key] == pytest.approx(of_page[key]), change.name
        assert rows[change.name]["after"] == f"{change.after:.2f}"
        assert rows[change.name]["sd"] == f"{change.sd:.2f}"
        assert rows[change.name]["unit"] == change.unit
        after = in_cm(change.after, change.unit, 2, sd=change.sd)
        assert on_sheet[measure_in_words(change.name)][3] == after
        assert any(change.name in line and after in line for line in printed), change.name


def rows_of(page: Page) -> tuple[tuple[str, ...], ...]:
    """The rows of the table of a sheet."""
    return page.of(Table)[0].rows


def test_a_prediction_has_the_same_measures_at_every_door(tmp_path, predictor, strangers, monkeypatch):
    save_model(predicted_model(), tmp_path / "model.h5")
    model, found = load_model(tmp_path / "model.h5"), predictor.predict(strangers[0])
    measures = {one.name: one for one in predicted_measures(model, found)}
    shape = NamedShape("p", found.shape, predicted=predicted_side(found))
    page = {one["name"]: one for one in ModelView(ModelOrigin(), model, 3).measures(shape)["measures"]}
    written = examiner_of(model).shape("p", found.shape, predicted=predicted_side(found))
    row, record = as_row(written), as_record(written)
    assert row["predicted_side"] == "right"
    sheet = prediction_page(found, strangers[0], list(measures.values()), Identity("p"))
    on_sheet = {line[0]: line for line in rows_of(sheet)}
    cells = {cell for line in rows_of(examination_page(written, Identity("p"))) for cell in line}
    records = {(m["name"], m["kind"]): m for m in record["distances"] + record["others"] + record["volumes"]}
    assert set(measures) > {"volume-right", "SN-NR", "NL-NR", "NR-IMFR", "surface-right"}
    for name, one in measures.items():
        own = next(m for m in written.measures if (m.name, m.kind) == (name, one.kind))
        column = f"{name}{'' if one.kind == 'volume' else f' {one.kind}'} {one.unit}"
        assert page[name]["predicted"]
        assert own.predicted
        assert records[name, one.kind]["predicted"]
        for value in (page[name]["value"], own.value, records[name, one.kind]["value"]):
            assert value == pytest.approx(one.value, abs=1e-6), name
        assert row[column] == f"{one.value:.2f}"
        assert shown_measure(own).endswith("predicted")
        assert shown_measure(own) in cells, name
        assert on_sheet[measure_in_words(name)][2] == in_cm(one.value, one.unit, 1 if one.unit == "mm" else 0)
        if one.sd == one.sd:
            assert page[name]["sd"] == pytest.approx(one.sd, rel=1e-6)
            assert own.sd == pytest.approx(one.sd, rel=1e-6)
            assert row[f"{column} sd"] == f"{one.sd:.2f}"
        else:
            assert page[name]["sd"] is None
            assert records[name, one.kind]["sd"] is None
    # What the command writes: JSON, CSV and the table on the terminal
    wrote = _predict_command(model, strangers[0], found, tmp_path, monkeypatch)
    for name, one in measures.items():
        told, line, cells = wrote[name]
        assert told["predicted"] == pytest.approx(one.value, abs=1e-6), name
        assert line["predicted"] == f"{one.value:.2f}"
        assert (told["unit"], line["unit"]) == (one.unit, one.unit)
        assert line["sd"] == (f"{one.sd:.2f}" if one.sd == one.sd else "")
        assert (told["deviation"] is None) == (one.sd != one.sd)
        assert cells == measure_row(one, in_words=False)
        assert cells[1:] == measure_row(one, in_words=True)[1:] == list(on_sheet[measure_in_words(name)])[1:]
    assert row["volume-right cc sd"] == f"{measures['volume-right'].sd:.2f}"
    assert not page["volume-left"]["predicted"]
    # No deviation of a fixed border on a breast that is not there.
    assert next(m for m in record["others"] if m["name"] == "surface-right")["sd"] is None


def _predict_command(model, shape, found, folder, monkeypatch) -> dict[str, tuple[dict, dict, list[str]]]:
    """What `predict` says of a prediction, by measure: in its JSON, in its CSV, and on the terminal."""
    save_mesh(TriangleMesh(shape, model.faces), folder / "patient.ply")
    monkeypatch.setattr("breastmorph.usecases.predict.fit_predictor", lambda *_, **__: None)
    monkeypatch.setattr("breastmorph.usecases.predict.predicted_by", lambda *_, **__: found)
    asked = [
        "predict",
        str(folder / "model.h5"),
        str(folder / "patient.ply"),
        "--missing",
        "right",
        "--replace",
    ]
    asked += ["--out", str(folder / "predicted"), "--samples", "0", "--no-sheet"]
    told, text = (
        CliRunner().invoke(main, [*asked, *more], env={"COLUMNS": "200"}) for more in (["--json"], [])
    )
    assert told.exit_code == text.exit_code == 0, told.output + text.output
    with open(folder / "predicted" / "measures.csv", newline="") as table:
        lines = {line["measure"]: line for line in csv.DictReader(table)}
    printed = [
        [cell.strip() for cell in line.split("\N{BOX DRAWINGS LIGHT VERTICAL}")[1:-1]]
        for line in text.output.splitlines()
    ]
    cells = {line[0]: line for line in printed if line}
    return {
        one["name"]: (one, lines[one["name"]], cells.get(one["name"], []))
        for one in json.loads(told.stdout)["measures"]
    }


def test_every_measure_is_in_the_dictionary_and_the_docs(small_template):
    one = examiner_of(small_template).shape("x", small_template.mesh.vertices)
    lines = {line.name: line for line in dictionary()}
    assert set(lines) == {m.name for m in one.measures} | {"mirror deviation"}
    for m in one.measures:
        assert lines[m.name].unit == m.unit
        assert m.kind in lines[m.name].kinds
        assert lines[m.name].meaning
        assert m.name in MEASURES
    assert {d.name for d in one.asymmetries} == set(PAIRS_IN_WORDS)
    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
    for line in dictionary():
        assert f"| `{line.name}` | {line.kinds} | {line.unit} | {line.meaning} |" in page, line.name
    assert CliRunner().invoke(main, ["measure", "--dictionary"]).exit_code == 0


def test_fold_and_poles_are_found_where_the_skin_turns():
    mesh, landmarks = torso(4.0)
    finder = BorderFinder(mesh, landmarks)
    shape = mesh.vertices - [0.0, 25.0, 0.0]
    found = finder.borders(shape)["left"]
    places = dict(zip(found.names, found.points.at(shape), strict=True))
    # The bump ends some 50 to 100 mm below the nipple; the lateral pole is at the nipple's height.
    assert 40.0 < landmarks["nipple_left"][1] - 25.0 - places["imf_left"][1] < 100.0
    assert places["lateral_pole_left"][1] == pytest.approx(landmarks["nipple_left"][1] - 25.0, abs=3.0)
    assert 0.0 < places["medial_border_left"][0] < landmarks["nipple_left"][0]
    assert found.sd["imf_left"] > 0.0
    moved = finder.landmarks(shape, {}, own=Landmarks.of({"imf_left": places["imf_left"] + [0, 6.0, 0]}))
    assert moved.at(shape)["imf_left"][1] == pytest.approx(places["imf_left"][1] + 6.0, abs=2.0)
    assert not any(name.endswith("right") for name in finder.landmarks(shape, {}, "right").skin.names)


def test_the_girth_of_a_level_cut():
    angles = np.radians(np.linspace(-90, 90, 91))
    rows = [np.column_stack([np.sin(angles), np.full(91, y), np.cos(angles)]) for y in (0.0, 1.0)]
    a = np.arange(90)
    faces = np.concatenate([np.column_stack([a, a + 1, a + 92]), np.column_stack([a, a + 92, a + 91])])
    skin = 100.0 * np.concatenate(rows)
    assert section_length(skin, faces, 40.0) == pytest.approx(100.0 * np.pi, rel=1e-3)
    assert np.isnan(section_length(skin, faces, 1e4))
    assert DISTANCES["base-width-left"].kinds == ("straight",)


def assert_same_by(template, model, shape):
    """Measures of a shape by the built-in template and in a model of it."""
    by_template, in_model = (keys(examiner_of(one).shape("x", shape).measures) for one in (template, model))
    assert {"volume-left", "surface-left", "base-width-left"} <= {name for name, _ in by_template}
    assert set(in_model) == set(by_template)
    for name, one in by_template.items():
        assert (in_model[name].value, in_model[name].sd) == pytest.approx((one.value, one.sd), abs=1e-9), name


@pytest.mark.slow
def test_a_scan_has_the_same_measures_by_the_command_in_python_and_in_the_demo_model(tmp_path):
    write_cohort(tmp_path, 1, seed=5)
    scan, marks = tmp_path / "scans" / "000.ply", tmp_path / "landmarks" / "000.json"
    asked = ["measure", str(scan), "--landmarks", str(marks), "--json"]
    [told] = json.loads(CliRunner().invoke(main, asked).stdout)["subjects"]
    found = bm.measure(bm.load_scan(scan, marks))
    assert_same(told["distances"] + told["others"] + told["volumes"], found.measures)
    model = demo_model()
    patient = scanned_patient(model, SubjectFile(scan, marks))
    shown = NamedShape("scan", patient.shape, landmarks=landmarks_of(model, patient))
    assert_same(ModelView(ModelOrigin(), model, 3).measures(shown, tape=True)["measures"], found.measures)
    assert_same_by(default_template(), model, model.instance(np.array([1.5, -1.0, 0.5])))


def test_a_shape_has_the_same_measures_by_a_builtin_template_and_in_a_model_of_it(
    breast_template, breast_model, monkeypatch
):
    shape = breast_model.instance(np.array([1.5, -1.0, 0.5]))
    cc = [BreastVolumes.of_model(breast_model).cc(shape, "left")]
    monkeypatch.setattr(volume, "default_template", lambda: breast_template)
    cc.append(BreastVolumes.of_model(breast_model).cc(shape, "left"))
    assert (
        abs(cc[1] - cc[0]) > 0.1
    )  # by a template that is not built in, the model's mean would say where breasts are
    assert_same_by(breast_template, replace(breast_model), shape)  # a copy, which nobody has measured by yet
