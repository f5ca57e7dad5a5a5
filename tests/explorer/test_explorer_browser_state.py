"""What the explorer's page shows and saves after reloads, quick hands, other scans and damaged files."""

from __future__ import annotations

import csv
import json
import re
import threading

import numpy as np
import pytest
from PIL import Image

from breastmorph.explorer.server import address_of
from breastmorph.explorer.settings import Settings
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.phantom.cohort import draw_cohort, torso
from breastmorph.phantom.scanner import scan_subject
from explorer_client import running
from explorer_window import explore, settled, window

# The next request to a path waits until ``letGo()``; ``asked`` lists the bodies of all that were sent there.
HOLD = """path => { const real = window.realFetch ??= window.fetch; let first = true; window.asked = [];
    window.fetch = async (to, how) => {
      if (!String(to).endsWith(path) || how.method !== 'POST') return real(to, how);
      window.asked.push(how.body);
      if (first) { first = false; await new Promise(done => { window.letGo = done; }); }
      return real(to, how); }; }"""


@pytest.fixture(scope="module")
def entrance(folder):
    with explore(folder / "model.h5") as found:
        yield found


@pytest.fixture(scope="module")
def textured(tmp_path_factory):
    """A scan with a texture that was cut off on its way."""
    home = tmp_path_factory.mktemp("textured")
    (home / "skin.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (home / "torso.mtl").write_text("newmtl skin\nmap_Kd skin.png\n")
    (home / "torso.obj").write_text(
        "mtllib torso.mtl\nusemtl skin\nv 0 0 0\nv 300 0 0\nv 300 300 0\nv 0 300 0\n"
        "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n"
    )
    return [str(home / name) for name in ("torso.obj", "torso.mtl", "skin.png")]


def opened(page, folder) -> None:
    page.click("#tab-scan")
    page.set_input_files("#scan-files", [str(folder / "scan.ply"), str(folder / "scan.json")])
    page.wait_for_function("() => explorer.tabs.scan.state()?.complete")
    settled(page)


def downloaded(page, button, folder):
    with page.expect_download() as waiting:
        page.click(button)
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def set_measure(page, name, value) -> None:
    page.wait_for_selector(f"#edit-{name}-number")
    page.evaluate("document.querySelector('#status').textContent = ''")
    page.fill(f"#edit-{name}-number", value)
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#status').textContent.startsWith('Computed')")


def test_from_a_raw_scan_to_a_missing_breast_in_four_clicks(tab, tmp_path):
    page, (subject,) = tab.page, draw_cohort(1, 31, one_sided=1)
    save_mesh(scan_subject(torso(subject), np.random.default_rng(3)).mesh, tmp_path / "raw.ply")
    page.evaluate(
        "window.clicks = 0; addEventListener('click', event => { clicks += event.isTrusted; }, true)"
    )
    page.click("#tab-scan")
    with page.expect_file_chooser() as choosing:
        page.click("#scan-choose")
    choosing.value.set_files(tmp_path / "raw.ply")
    page.wait_for_function("() => explorer.tabs.scan.state()?.proposal")
    settled(page)
    state = page.evaluate("explorer.tabs.scan.state()")
    assert state["absent_side"] == subject.absent
    assert f"finds no {subject.absent} breast" in page.inner_text("#scan-picker [data-part=proposal]")
    assert "± " in page.inner_text("#scan-picker [data-landmark=xiphoid]")
    ringed = page.evaluate(
        "explorer.stage.view.markers.filter(marker => marker.ring).map(({ name }) => name)"
    )
    assert set(ringed) == set(state["found"])
    assert len(ringed) >= 5
    page.click("#scan-register")
    page.wait_for_selector("#scan-predict")
    settled(page)
    page.click("#scan-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    settled(page)
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'prediction'")
    assert page.evaluate("explorer.state.prediction.side") == subject.absent
    assert page.evaluate("window.clicks") <= 4


def test_a_patient_is_saved_reloaded_predicted_painted_and_removed(
    tab, browser, entrance, folder, textured, tmp_path
):
    page = tab.page
    shows = "kind => explorer.stage.shape?.spec.kind === kind"
    opened(page, folder)
    before = page.evaluate("explorer.stage.scan.turn")
    page.click("[data-turn=z]")
    turned = page.evaluate("explorer.stage.scan.turn")
    assert turned != before
    page.click("#tab-model")
    page.click("#tab-scan")
    assert page.evaluate("explorer.stage.scan.turn") == turned  # a scan stays as it was turned
    assert page.is_visible("[data-turn=z]")
    page.click("#scan-fit")
    page.wait_for_selector("#scan-predict")
    settled(page)

    # What is saved is the patient whose scan is shown, also after a reload.
    page.click("#tab-save")
    assert page.inner_text("#save-shape") == "patient"
    target = downloaded(page, "[data-format=stl]", tmp_path)
    assert target.name == "scan.stl"
    assert np.ptp(load_mesh(target).vertices, axis=0).max() < 60.0  # cm, as the scan; the average is in mm
    with open(downloaded(page, "#save-measures", tmp_path), newline="") as table:
        assert [row["id"] for row in csv.DictReader(table)] == ["scan"]
    page.click("#tab-scan")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("explorer.tab") == "scan"
    page.wait_for_selector("#scan-predict")

    # A region is painted and cleared; painting does not turn the view.
    page.click("#scan-predict")
    page.check("[name=missing][value=paint]")
    page.wait_for_function(
        "() => explorer.stage.shape.spec.kind === 'patient' && explorer.stage.colouring === 'painted'"
    )
    box = page.locator(".bv-canvas").bounding_box()
    ids = "explorer.stage.shape.maps.painted.reduce((sum, value) => sum + value, 0)"
    camera = page.evaluate("explorer.stage.view.camera.position.toArray()")
    page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 0.55 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.40 * box["width"], box["y"] + 0.60 * box["height"], steps=4)
    page.mouse.up()
    assert page.evaluate(ids) > 15  # vertices; they are 10 mm apart
    assert page.evaluate("explorer.stage.view.camera.position.toArray()") == camera
    page.click("#paint-clear")
    assert page.evaluate(ids) == 0
    assert page.is_disabled("#missing-predict")

    # A prediction is not shown as that of the other side.
    page.check("[name=missing][value=right]")
    page.click("#missing-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    settled(page)
    page.wait_for_function(shows, arg="prediction")
    page.check("[name=missing][value=left]")
    page.wait_for_function(shows, arg="patient")
    assert page.is_hidden("#missing-result")
    page.click("#tab-model")
    page.click("#tab-missing")
    page.wait_for_function(shows, arg="patient")
    page.check("[name=missing][value=right]")
    page.wait_for_function(shows, arg="prediction")
    assert page.is_visible("#missing-result")

    # Her session is opened in another tab, which does not see this one's data.
    page.click("#tab-save")
    file = downloaded(page, "#save-session", tmp_path)
    with window(browser, entrance) as other:
        assert other.page.evaluate("explorer.state.patient") is None
        other.page.set_input_files("#session-file", str(file))
        other.page.wait_for_function(
            "() => explorer.state.patient !== null && explorer.state.prediction !== null"
        )
        settled(other.page)
        assert other.page.evaluate("explorer.state.prediction.side") == "right"
        assert other.complaints() == []

    # A shape that was kept is of her: it does not stand beside the next scan.
    page.click("#tab-missing")
    page.click("#keep")
    page.wait_for_function("() => explorer.stage.kept")
    page.click("#tab-save")
    assert page.input_value("#handout-identifier") == "scan"
    page.click("#tab-scan")
    page.set_input_files("#scan-files", textured)
    page.wait_for_function("() => explorer.tabs.scan.state()?.name === 'torso'")
    settled(page)
    assert page.evaluate("explorer.stage.kept") is None
    assert "cannot be shown" in page.inner_text("#scan-about")  # its texture is damaged
    assert page.is_hidden("#error")
    page.click("#tab-save")
    assert page.input_value("#handout-identifier") == "torso"
    page.click("#tab-scan")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("explorer.stage.scan.key === explorer.tabs.scan.state().scan")
    assert page.is_hidden("#error")

    # Removing the other scan leaves the patient; a session that cannot be opened leaves none.
    page.click("#scan-close")
    page.wait_for_function("() => document.querySelector('#status').innerText.includes('removed')")
    assert page.evaluate("explorer.state.patient.name") == "scan"
    page.click("#tab-measures")
    page.wait_for_function(shows, arg="patient")
    page.click("#tab-save")
    # The server has forgotten her before it finds that it cannot go on.
    page.route(
        "**/api/session-file*",
        lambda route: route.fulfill(status=422, json={"cause": "cut", "remedy": "again"}),
    )
    key = page.evaluate("explorer.state.patient.scan")
    page.evaluate(
        "key => fetch(`api/scans/${key}`, { method: 'DELETE', headers: "
        "{ 'X-Session': sessionStorage.getItem('breastmorph-session'), "
        "'X-Token': localStorage.getItem('breastmorph-token') } })",
        key,
    )
    page.set_input_files("#session-file", str(file))
    page.wait_for_selector("#error:not([hidden])")
    settled(page)
    assert page.evaluate("explorer.state.patient") is None
    assert page.is_hidden("#scan-predict")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("explorer.state.patient") is None
    assert page.is_hidden("#error")
    # She was deleted behind the page's back: what it still asked of her was refused.
    tab.errors[:] = [text for text in tab.errors if not re.search("status of 4(22|04|09)", text)]


def test_edits_and_quick_hands_and_reloads_keep_the_page_true(tab, folder, textured, tmp_path):
    page = tab.page
    # An edit and what was asked for are there after a reload.
    page.click("#tab-model")
    page.fill("#mode-1", "1")
    page.click("#tab-measures")
    page.select_option("#edit-base", "model")
    page.wait_for_function("() => explorer.measures.shown && explorer.measures.asking?.scores?.[0] === 1")
    page.wait_for_selector("#edit-NL-NR-number")
    wished = f"{float(page.input_value('#edit-NL-NR-number')) + 0.4:.1f}"
    set_measure(page, "NL-NR", wished)
    page.click("#keep")
    page.wait_for_selector("#layout")
    again = f"{float(wished) + 0.4:.1f}"
    set_measure(page, "NL-NR", again)
    page.click("#tab-save")
    with open(downloaded(page, "#save-measures", tmp_path), newline="") as table:
        rows = {row["id"]: float(row["NL-NR straight mm"]) for row in csv.DictReader(table)}
    assert rows["model-edited"] == pytest.approx(10.0 * float(again), abs=0.2)
    assert rows["model-edited-kept"] == pytest.approx(10.0 * float(wished), abs=0.2)  # as it was then

    # What still runs can be cancelled after the reload.
    job = {"job": "x", "kind": "fit", "state": "running", "progress": None, "step": ""}
    job |= {"result": None, "error": None}

    def with_job(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "job": job})

    def of_job(route):
        if route.request.method == "DELETE":
            job["state"] = "cancelled"
        route.fulfill(json=job)

    page.route("**/api/state", with_job)
    page.route("**/api/jobs/x", of_job)
    session = "sessionStorage.getItem('breastmorph-session')"
    before = page.evaluate(session)
    page.reload()
    page.wait_for_selector("#busy-cancel:not([hidden])")
    assert "Fitting" in page.inner_text("#busy")
    page.click("#busy-cancel")
    page.wait_for_function("() => document.querySelector('#status').innerText === 'Stopped.'")
    settled(page)
    assert job["state"] == "cancelled"
    page.unroute_all()
    assert page.evaluate(session) == before
    with page.expect_popup() as waiting:
        page.evaluate("() => { window.open('/'); }")  # with the memory of this one, as a duplicate has
    other = waiting.value
    other.wait_for_selector("body[data-ready]")
    assert other.evaluate(session) != before  # it gets a session of its own
    other.close()

    page.click("#tab-measures")
    page.wait_for_selector("#edit-NL-NR-number")
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'edit'")
    assert page.input_value("#edit-NL-NR-number") == again
    assert page.input_value("#edit-base") == "model"
    assert page.evaluate("explorer.tabs.model.scores()[0]") == 1
    assert page.is_enabled("#edit-reset")
    page.click("#tab-model")
    page.fill("#mode-1", "-1")  # another start: the edit is not about it
    page.click("#tab-measures")
    page.wait_for_function("() => explorer.state.edit === null && explorer.stage.shape.spec.kind === 'model'")
    assert page.is_hidden("#edit-changes")

    # Measures are those of the shape that is shown: asked for while an older answer is awaited, once more.
    page.click("#tab-model")
    page.click("#forget")
    page.click("#model-reset")
    page.wait_for_selector("#strip-NL-NR")
    settled(page)
    page.evaluate(HOLD, "api/measures")
    page.evaluate("() => { explorer.measures.again(); }")
    page.wait_for_function("() => window.letGo")
    newest = {"kind": "model", "scores": [1.5]}
    page.evaluate(
        "spec => { explorer.measures.follow(spec); explorer.measures.again(); window.letGo(); }", newest
    )
    page.wait_for_function("() => window.asked.length >= 2")
    assert json.loads(page.evaluate("window.asked.at(-1)"))["shape"] == newest
    page.wait_for_function("() => explorer.measures.asking.scores?.[0] === 1.5")

    # A picture of a synthetic model says so.
    assert not page.evaluate("explorer.state.model.synthetic")
    page.click("#tab-save")
    plain = np.asarray(Image.open(downloaded(page, "#save-picture", tmp_path)).convert("RGB")).astype(int)
    page.evaluate("() => { explorer.state.model.synthetic = true; }")
    noted = np.asarray(Image.open(downloaded(page, "#save-picture", tmp_path)).convert("RGB")).astype(int)
    changed = np.abs(noted - plain).max(axis=2) > 20
    high, wide = changed.shape
    assert changed[: high // 8, : wide // 2].mean() > 0.02  # a box with words at the upper left
    assert not changed[high // 4 :].any()

    # Measures that are still awaited are not shown beside a scan.
    page.click("#tab-model")
    page.wait_for_selector("#strip-NL-NR")
    page.evaluate(HOLD, "api/measures")
    page.evaluate("() => { explorer.measures.again(); }")
    page.wait_for_function("() => window.letGo")
    page.evaluate("() => { explorer.measures.follow({ kind: 'mean' }); }")  # waits behind it
    page.click("#tab-scan")
    files = [folder / "scan.ply", folder / "scan.json", *textured]
    page.set_input_files("#scan-files", list(map(str, files)))  # several are opened one after the other
    page.wait_for_function("() => document.querySelector('#status').innerText.includes('2 scans are loaded')")
    page.evaluate("window.letGo()")
    page.wait_for_timeout(300)
    assert "registered or fitted" in page.inner_text("#strip")
    assert len(page.evaluate("window.asked")) == 1
    assert page.locator("#cases-list .case strong").all_inner_texts() == ["scan", "torso"]
    page.click("#cases-list .case >> nth=0")
    page.wait_for_function("() => explorer.tabs.scan.state()?.complete && explorer.stage.scan")
    assert page.evaluate("explorer.stage.scan.key === explorer.state.scan")
    settled(page)

    # A second click is not taken for the same point.
    page.set_input_files("#scan-files", str(folder / "scan.ply"))
    page.wait_for_function("() => explorer.state.cases.length === 3 && explorer.tabs.scan.state()?.proposal")
    page.wait_for_function("() => explorer.picker !== null && explorer.stage.scan !== null")
    settled(page)
    page.click("#scan-picker [data-part=undo]")  # without what the program proposes
    page.wait_for_function(
        "() => explorer.picker.current() === 'sternal_notch' && !explorer.tabs.scan.state().complete"
    )
    page.evaluate(HOLD, "/pick")
    page.evaluate(
        "() => { const [x, y] = explorer.stage.centre(); explorer.picker.pick(x, y); explorer.picker.pick(x + 20, y); }"
    )
    page.wait_for_function("() => window.letGo")
    assert "One moment" in page.inner_text("#status")
    page.evaluate("window.letGo()")
    page.wait_for_function("() => explorer.picker.current() === 'xiphoid'")
    assert len(page.evaluate("window.asked")) == 1
    assert page.evaluate("Object.keys(explorer.tabs.scan.state().landmarks)") == ["sternal_notch"]


def test_a_closed_tab_may_give_way_but_not_a_reloaded_one(browser, folder):
    with running(Settings(model=folder / "model.h5")) as explorer:
        address = address_of(explorer.settings, explorer.keys.code)
        with browser.tab(address) as tab:
            tab.page.wait_for_selector("body[data-ready]")
            (session,) = explorer._sessions.values()
            tab.page.reload()
            tab.page.wait_for_selector("body[data-ready]")
            assert not session.is_left
            left = threading.Event()
            leave = session.leave
            session.leave = lambda: (leave(), left.set())
        assert left.wait(30.0)
        assert session.is_left
