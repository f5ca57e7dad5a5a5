"""The Python functions: what a researcher writes works, and what she gets wrong is refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import breastmorph as bm
from breast_cohort import breast_model, breast_shapes
from breastmorph.template import default_template, from_npz
from docs_world import small_template
from python_world import write_world
from refusals import refused
from small_cohort import built, small_cohort, write_registered
from small_cohort import random_shapes as small_shapes

SUBJECTS = 6  # with both breasts; fewer than five are too few to predict from
# Word for word what the README and the quickstart promise.
SCRIPT = """
import breastmorph as bm
scans  = bm.load_scans("scans/", "landmarks/")
fits   = bm.register(scans, jobs=2, progress=True)
model  = bm.build_model(fits)
model.save("model.h5"); model = bm.load_model("model.h5")
shape  = model.sample(seed=1)
print(bm.measure(fits[0]))
edited = bm.edit(model, fits[0], {"SN-NL": "+1 cm"}, hold=["thorax"])
lost   = bm.predict(model, fits[1], missing="right", replace=True)
lost.mesh, lost.sd, lost.measures, lost.samples(5)
fitted = bm.fit(model, "cloud.xyz")
scores = bm.evaluate(model, fits)
bm.register(scans[0], preset="paper")
"""
SMALL = """
import pathlib
import breastmorph.template.files
breastmorph.template.files._DEFAULT = pathlib.Path({template!r})
"""
AFTERWARDS = """
for value in (scans[0], fits[0], model, shape, edited, lost, lost.measures, fitted, scores):
    print("is", repr(value))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory, breast_template):
    folder = tmp_path_factory.mktemp("python")
    write_world(folder, SUBJECTS, breast_template)
    return folder


@pytest.fixture(scope="module")
def fits(world, breast_template):
    """Two registered subjects; the second lacks a breast."""
    template = breast_template
    names = ("s0", f"s{SUBJECTS}")
    scans = [
        bm.load_scan(world / "scans" / f"{n}.ply", world / "landmarks", template=template) for n in names
    ]
    return bm.register(scans, template=template)


@pytest.fixture(scope="module")
def model():
    return built(small_cohort())


@pytest.mark.slow
def test_the_script_of_the_first_page_runs_as_a_script(tmp_path_factory):
    """In a process of its own and without ``if __name__``: its worker processes must not run it again."""
    world = tmp_path_factory.mktemp("script")
    write_world(world, SUBJECTS, from_npz(small_template(tmp_path_factory).read_bytes()))
    # On bumps like these no landmark is sure enough to begin from; tests/docs runs the line as it is, on a body.
    script = SCRIPT.replace('"cloud.xyz")', '"cloud.xyz", "cloud.json")')
    code = SMALL.format(template=str(world / "template.npz")) + script + AFTERWARDS
    (world / "script.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=world, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("is ")]
    kinds = [line[3:].partition("(")[0] for line in said]
    assert kinds == [
        "Scan", "Registration", "ShapeModel", "TriangleMesh", "Edit", "Prediction", "MeasureTable", "Fit", "Evaluation"
    ]  # fmt: skip
    assert f"ShapeModel({SUBJECTS - 1} components of {SUBJECTS} subjects" in said[2]
    assert "volume-left" in done.stdout
    assert "Registering" in done.stderr
    assert (
        f"BreastMorphWarning: left out of the model, because a breast is absent: s{SUBJECTS}" in done.stderr
    )


def test_the_first_page_shows_that_script():
    page = (Path(__file__).parents[1] / "README.md").read_text()
    calls = [line.split("=", 1)[-1].split("#")[0].strip() for line in SCRIPT.splitlines() if "bm." in line]
    squeezed = page.replace(" ", "")
    assert [call for call in calls if call.replace(" ", "") not in squeezed] == []


def test_a_subject_after_mastectomy_is_left_out_of_a_model_with_a_word(fits, tmp_path):
    whole = [replace(fits[0], id=f"w{k}", mesh=fits[0].mesh.with_vertices(shape)) for k, shape in
             enumerate(breast_shapes(4, seed=5))]  # fmt: skip
    assert fits[1].absent_side == "right"
    with pytest.warns(bm.BreastMorphWarning, match=rf"breast is absent: {fits[1].id}$"):
        model = bm.build_model([*whole, fits[1]])
    assert model.info["subjects"] == 4
    assert model.info["left_out"] == {"absent breast": 1}
    assert bm.build_model([*whole, fits[1]], with_absent=True).info["subjects"] == 5
    write_registered(tmp_path, small_shapes(4), {"002": "left"})
    with pytest.warns(bm.BreastMorphWarning, match="002"):
        assert bm.build_model(tmp_path).info["subjects"] == 3


@pytest.mark.slow
def test_one_scan_that_fails_does_not_stop_the_others(world, tmp_path, monkeypatch, breast_template):
    for part in ("scans", "landmarks"):
        (tmp_path / part).mkdir()
        for name in ("s0", "s1"):
            file = next((world / part).glob(f"{name}.*"))
            (tmp_path / part / file.name).write_bytes(file.read_bytes())
    (tmp_path / "scans" / "s1.ply").write_bytes(b"ply\nrubbish")
    with pytest.warns(bm.BreastMorphWarning, match=r"s1 is left out: .*s1\.ply"):
        scans = bm.load_scans(tmp_path / "scans", tmp_path / "landmarks")
    assert [scan.id for scan in scans] == ["s0"]
    elsewhere = replace(
        scans[0], id="far", landmarks=bm.Landmarks(scans[0].landmarks.names, scans[0].landmarks.points + 90)
    )
    with pytest.warns(bm.BreastMorphWarning, match="far is left out: .*another scan"):
        fits = bm.register([elsewhere, scans[0]], template=breast_template)
    assert [one.id for one in fits] == ["s0"]
    with pytest.raises(bm.LandmarkProblem, match="another scan"):
        bm.register([elsewhere], template=breast_template)


def test_measures_are_those_of_the_command(fits, breast_template):
    from breastmorph.clinical.examiner import Examiner

    fit, template = fits[0], breast_template
    command = Examiner(template.mesh, template.landmark_ids).shape(
        fit.id, fit.vertices, annotated=fit.landmarks
    )
    found = bm.measure(fit)
    assert [m.value for m in found.measures] == pytest.approx(
        [m.value for m in command.measures], nan_ok=True
    )
    assert found["volume-left"].sd == command.uncertainties["left"]
    assert found["SN-NL"].kind == "straight"
    assert found["sn-nl tape"].kind == "tape"
    assert (found["SN-NR"].side, found["volume-left"].side, found["NL-NR"].side) == ("right", "left", "")
    lines = str(found).splitlines()
    assert lines[1].split() == ["measure", "value", "±", "unit", "side"]
    assert next(line.split() for line in lines if line.startswith("volume-left"))[3:] == ["cc", "left"]
    with refused(which="girth"):
        found["girth"]


def test_landmarks_go_from_one_function_into_the_next(tmp_path):
    (tmp_path / "a.fcsv").write_text("# Markups fiducial file version = 4.11\n# CoordinateSystem = RAS\n"
                                     "# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n"
                                     "1,1,2,3,0,0,0,1,1,1,0,SN,,\n2,4,5,6,0,0,0,1,1,1,0,mole,,\n")  # fmt: skip
    found = bm.load_landmarks(str(tmp_path / "a.fcsv"))
    assert type(found) is bm.Landmarks
    assert (found.names, found.space) == (("sternal_notch",), "RAS")
    assert found.notes == ("labels not understood: 'mole'",)
    assert repr(found) == "Landmarks(sternal_notch, labels not understood: 'mole')"
    bm.save_landmarks(found, tmp_path / "b.fcsv")  # in the axes they are in, not in others
    assert bm.load_landmarks(tmp_path / "b.fcsv").space == "RAS"
    (tmp_path / "c.csv").write_text("1,2,3\n4,5,6\n7,8,9\n0,0,1\n")
    assert "taken in the order sternal_notch, navel" in bm.load_landmarks(tmp_path / "c.csv").notes[0]


def test_a_sample_is_a_mesh_and_the_same_for_the_same_seed(model):
    assert np.array_equal(model.sample(seed=3).vertices, model.drawn(np.random.default_rng(3)))
    assert np.allclose(model.instance(model.project(model.sample(2))), model.sample(2).vertices, atol=1e-3)


def wrong(model, fits):
    """Calls that people get wrong, and a word that the answer must have."""
    mesh, metres = model.mean_mesh, model.mesh(model.mean / 1000.0)
    lying = model.mesh(model.mean[:, [0, 2, 1]] * [1, -1, 1])
    other, cohort, people = default_template().mesh, small_cohort(), breast_model(12)
    edited = bm.edit(people, None, {"SN-NL": "+1 cm"})
    return {
        "a list for a path": (lambda: bm.load_mesh([1]), "kind list"),
        "nothing for a path": (lambda: bm.load_model(None), "None"),
        "bytes in a path": (lambda: bm.load_cohort(b"a"), "kind bytes"),
        "a path that cannot be": (lambda: bm.load_scan("a\0b"), "path"),
        "a list for a mesh": (lambda: bm.save_mesh([1, 2], "a.ply"), "kind list"),
        "text for vertices": (lambda: bm.TriangleMesh("abc", [[0, 1, 2]]), "numbers"),
        "a scale in words": (lambda: bm.Similarity(scale="x"), "scale of a similarity"),
        "a list for a rotation": (lambda: bm.Similarity([[1, 0], [0, 1]]), "shape (3, 3)"),
        "a mesh for landmarks": (lambda: bm.save_landmarks(mesh, "a.json"), "TriangleMesh"),
        "a mesh for a scan": (lambda: bm.register(mesh), "TriangleMesh"),
        "a path for a scan": (lambda: bm.register("scan.ply"), "load_scan"),
        "a path among scans": (lambda: bm.register(["scan.ply"]), "kind str"),
        "no scan": (lambda: bm.register([]), "empty"),
        "a number for a model": (lambda: bm.evaluate(3), "kind int"),
        "meshes for registrations": (lambda: bm.build_model([mesh, mesh]), "TriangleMesh"),
        "one registration for a model": (lambda: bm.build_model(fits[0]), "Registration"),
        "the same subject twice": (lambda: bm.build_model([fits[0], fits[0]]), "called"),
        "an unknown preset": (lambda: bm.register(fits, preset="papr"), "preset"),
        "an unknown unit": (lambda: bm.load_scan("a.ply", unit="inch"), "inch"),
        "a fit for another model": (lambda: bm.edit(model, fits[0], {"SN-NL": 200}), "triangles"),
        "metres for an edit": (lambda: bm.edit(model, metres, {"SN-NL": "+1 cm"}), "in mm"),
        "metres for a prediction": (lambda: bm.predict(model, metres, "left"), "in mm"),
        "metres for measures": (lambda: bm.measure(metres, model=model), "in mm"),
        "metres for a fit": (lambda: bm.fit(model, mesh.vertices / 1000.0), "read in mm"),
        "somebody lying": (lambda: bm.edit(model, lying, {"SN-NL": "+1 cm"}), "upright"),
        "other triangles": (lambda: bm.measure(other, model=model), "triangles"),
        "other vertices": (lambda: model.project(other.vertices), "no shape"),
        "a text for a shape": (lambda: model.align("mean"), "kind str"),
        "a text for coefficients": (lambda: model.instance("abc"), "numbers"),
        "a generator for a seed": (lambda: model.sample(np.random.default_rng(0)), "seed"),
        "nothing to change": (lambda: bm.edit(model, None, {}), "no change"),
        "a list of changes": (lambda: bm.edit(model, None, ["SN-NL"]), "no change"),
        "nothing for a value": (lambda: bm.edit(model, None, {"SN-NL": None}), "SN-NL"),
        "an unknown measure": (lambda: bm.edit(model, None, {"girth": "1 cm"}), "girth"),
        "no subject": (lambda: bm.predict(model, None, "left"), "no subject"),
        "an unknown side": (lambda: bm.predict(model, model.sample(1), "both"), "left"),
        "vertices that are not there": (lambda: bm.predict(model, model.sample(1), [10**9]), "vertices"),
        "a breast that is there": (lambda: bm.predict(model, model.sample(1), "left"), "replace=True"),
        "letters for points": (lambda: bm.fit(model, np.array(["a"])), "numbers"),
        "values of another mesh": (lambda: bm.picture(mesh, values=[1.0, 2.0]), "one number a vertex"),
        "a number for a picture": (lambda: bm.picture(7), "kind int"),
        "letters for a picture's values": (lambda: bm.picture(mesh, values="abc"), "one number a vertex"),
        "a picture of no size": (lambda: bm.picture(mesh, size=360), "width and height"),
        "a picture half a pixel wide": (lambda: bm.picture(mesh, size=(0.5, 9)), "whole number"),
        "a picture seen from a text": (lambda: bm.picture(mesh, yaw="left"), "yaw"),
        "components in words": (lambda: bm.build_model(cohort, components="three"), "'three'"),
        "a share above all": (lambda: bm.build_model(cohort, variance=3.0), "at most 1"),
        "an unknown part": (lambda: bm.build_model(cohort, part="up"), "left, right"),
        "a number for names": (lambda: bm.build_model(cohort, exclude=3), "list of texts"),
        "fewer than no components": (lambda: bm.fit(model, mesh, components=-3), "from 1 to 8"),
        "an unknown unit of points": (lambda: bm.fit(model, mesh, unit="inch"), "inch"),
        "samples in words": (lambda: bm.evaluate(model, cohort, samples="x"), "samples"),
        "a text for a seed": (lambda: bm.evaluate(model, cohort, seed="x"), "seed"),
        "a number to hold": (lambda: bm.edit(model, None, {"SN-NL": "+1 cm"}, hold=3), "list of texts"),
        "a number for what is known": (lambda: bm.predict(model, mesh, "left", known=3), "420cc"),
        "a text for a target": (lambda: bm.plan(model, mesh, "edited"), "bm.edit"),
        "another model's target": (lambda: bm.plan(model, mesh, edited), "triangles"),
        "somebody else's target": (lambda: bm.plan(people, people.sample(1), edited), "another shape"),
        "meshes for visits": (lambda: bm.compare([mesh, mesh]), "load_scan"),
        "a list of people": (lambda: bm.compare_repeated([mesh]), "by name"),
        "a list for a scan": (lambda: bm.find_landmarks([1]), "kind list"),
        "a mapping for landmarks": (lambda: bm.breast_mask(mesh, {"a": 1}), "kind dict"),
        "a mask of no side": (lambda: bm.breast_mask(mesh, model.landmarks, "up"), "left, right"),
        "a list for points": (lambda: bm.Landmarks.of([1]), "by name"),
        "phantoms in words": (lambda: bm.make_phantoms("no", "many"), "subjects"),
        "phantoms of no seed": (lambda: bm.make_phantoms("no", 1, seed="x"), "seed"),
        "nobody to work": (lambda: bm.make_phantoms("no", 1, jobs=0), "worker processes"),
        "more one-sided than there are": (lambda: bm.make_phantoms("no", 1, one_sided=2), "from 0 to 1"),
        "letters for vertices": (lambda: model.marginal("x"), "whole numbers"),
        "more components than there are": (lambda: model.truncate(99), "from 0 to 8"),
    }


def answer(call):
    """What a wrong call is answered with."""
    try:
        return f"accepted: {call()}"
    except bm.BreastMorphError as error:
        return str(error) if error.remedy else f"without a remedy: {error}"
    except Exception as error:
        return f"not ours: {error!r}"


def test_wrong_arguments_are_told_in_our_words(model, fits):
    answers = {name: (answer(call), word) for name, (call, word) in wrong(model, fits).items()}
    strangely = ("accepted: ", "without a remedy: ", "not ours: ")
    odd = {
        name: said for name, (said, word) in answers.items() if said.startswith(strangely) or word not in said
    }
    assert odd == {}


def test_every_value_says_in_one_line_what_it_is(model, fits, world, breast_template, small_template):
    values = [fits[0], model, fits[0].mesh, breast_template, small_cohort(), bm.measure(fits[0])]
    values.append(bm.check_scan(world / "scans" / "s0.ply", world / "landmarks" / "s0.json"))
    for value in values:
        assert repr(value).startswith(f"{type(value).__name__}(")
        assert "\n" not in repr(value)
        assert len(repr(value)) < 120
    assert repr(small_cohort()) == f"Cohort(9 subjects, {small_template.mesh.n_vertices} vertices)"


def test_values_show_themselves_in_a_notebook(model, fits):
    for value in (fits[0], model, model.sample(1)):
        shown = value._repr_mimebundle_()
        assert shown["text/plain"] == repr(value)
        assert shown["image/png"].startswith(b"\x89PNG")
        page = shown["text/html"]
        assert page.startswith('<iframe sandbox="allow-scripts allow-downloads"')
        assert "allow-same-origin" not in page  # what is shown cannot reach the notebook
        assert "data:image/png" in page  # a still picture, where the frame may not run scripts
        assert "default-src 'none'" in unescape(unescape(page))  # and nothing is asked for


def test_a_mesh_of_a_notebook_can_be_turned_in_a_browser(browser, model, tmp_path):
    page = tmp_path / "cell.html"
    page.write_text(f"<!doctype html><title>cell</title>{model.sample(1)._repr_html_()}", encoding="utf-8")
    with browser.tab(page.as_uri()) as tab:
        frame = tab.page.frame_locator("iframe")
        frame.locator("canvas").wait_for()
        frame.get_by_role("button", name="Below").click()
        assert not frame.get_by_text("Random shape").is_visible()  # a mesh has nothing to move
        assert frame.get_by_text("TriangleMesh(").first.is_visible()
        assert tab.complaints() == []


@pytest.mark.slow
def test_a_folder_is_registered_as_the_command_does_it(world, tmp_path, breast_template):
    place = tmp_path / "two"
    for part in ("scans", "landmarks"):
        (place / part).mkdir(parents=True)
        for name in ("s0", "s1"):
            file = next((world / part).glob(f"{name}.*"))
            (place / part / file.name).write_bytes(file.read_bytes())
    options = {"template": breast_template}
    cohort = bm.register_folder(place / "scans", place / "landmarks", place / "out", **options)
    assert cohort.ids == ("s0", "s1")
    assert (place / "out" / "summary.html").is_file()
    assert np.isfinite(cohort.shape(1)).all()
