"""A day in the consultation room, in a browser: many scans, steps back, two visits, three screens, two languages."""

from __future__ import annotations

import io
import json
import random
import zipfile
from importlib.resources import files

import igl
import numpy as np
import pytest
from PIL import Image
from scipy.spatial import cKDTree

from breast_cohort import breast_shapes
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.skin import vertex_rgb
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh
from explored_patient import POSE
from explorer_window import cut_off, explore, settled, window

SCREENS = {"desktop": (1280, 860), "tablet": (810, 1080), "phone": (390, 844)}
TABS = ("model", "measures", "scan", "folder", "missing", "compare", "save")


@pytest.fixture(scope="module")
def entrance(folder):
    with explore(folder / "model.h5", "--by-hand") as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker of accessibility."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def opened(page, folder, name: str, *, points: bool = True) -> None:
    page.click("#tab-scan")
    files = [{"name": f"{name}.ply", "mimeType": "", "buffer": (folder / "scan.ply").read_bytes()}]
    if points:
        files.append({"name": f"{name}.json", "mimeType": "", "buffer": (folder / "scan.json").read_bytes()})
    page.set_input_files("#scan-files", files)
    page.wait_for_function(
        "([name, points]) => explorer.tabs.scan.state()?.name === name"
        " && explorer.tabs.scan.state().complete === points && explorer.stage.scan",
        arg=[name, points],
    )
    settled(page)


def registered(page, folder, name: str) -> None:
    opened(page, folder, name)
    page.click("#scan-register")
    page.wait_for_function("name => explorer.state.patient?.name === name", arg=name)
    page.wait_for_selector("#scan-predict")
    settled(page)


def predict_right(page) -> None:
    page.click("#tab-missing")
    page.check("[name=missing][value=right]")
    page.click("#missing-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    settled(page)


def on(page, screen: str) -> None:
    """Go on with the same work on another screen."""
    width, height = SCREENS[screen]
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(150)


def names(page) -> list[str]:
    return page.locator("#cases-list .case strong").all_inner_texts()


def said(page, words: str) -> None:
    page.wait_for_function("words => document.querySelector('#status').innerText.includes(words)", arg=words)
    settled(page)


@pytest.mark.slow
def test_thirty_scans_in_one_tab_are_named_grouped_removed_and_closed(tab, folder):
    page = tab.page
    page.keyboard.press("?")
    assert "Ctrl+Z" in page.inner_text("#shortcuts")
    page.click("#shortcuts-close")
    assert not page.evaluate("explorer.history.unsaved()")
    page.click("#tab-scan")
    content = (folder / "scan.ply").read_bytes()
    files = [f"p017_2024-{k % 12 + 1:02d}-05_{k}.ply" for k in range(30)]
    page.set_input_files("#scan-files", [{"name": name, "mimeType": "", "buffer": content} for name in files])
    said(page, "30 scans are loaded")
    assert len(names(page)) == 30
    for k, screen in ((3, "tablet"), (1, "phone")):  # visits of one person stand together, by their days
        on(page, screen)
        row = page.locator(f"#cases-list li:has(strong:text-is('p017_2024-{k + 1:02d}-05_{k}'))")
        row.locator("[data-act=rename]").click()
        page.fill("#rename-name", f"visit {k}")
        page.fill("#rename-person", "P017")
        page.click("#rename-form [type=submit]")
        said(page, f"visit {k}")
    assert page.inner_text("#cases-list .person").split() == ["P017", "–", "2", "visits"]
    both = names(page)
    assert both.index("visit 3") == both.index("visit 1") + 1

    page.click("#cases-list li:has(strong:text-is('visit 1')) .case")
    page.wait_for_function("() => explorer.tabs.scan.state()?.name === 'visit 1'")
    settled(page)
    on(page, "tablet")
    page.click("#cases-list li:has(strong:text-is('visit 1')) [data-act=remove]")
    said(page, "Undo brings it back")
    assert "visit 1" not in names(page)
    page.click("#undo")
    said(page, "Undone")
    assert names(page) == both
    page.click("#cases-list li:has(strong:text-is('visit 3')) [data-act=close]")
    assert "cannot be undone" in page.inner_text("#ask")
    page.click("#ask-no")
    assert names(page) == both
    on(page, "desktop")
    page.click("#cases-list li:has(strong:text-is('visit 3')) [data-act=close]")
    page.click("#ask-yes")
    said(page, "closed and deleted")
    assert len(names(page)) == 29
    page.wait_for_function("() => explorer.history.unsaved()")  # whoever leaves now is asked
    page.click("#tab-save")
    with page.expect_download():
        page.click("#save-session")
    page.wait_for_function("() => !explorer.history.unsaved()")


STATE = """async () => { await explorer.settled(); const { history, job, model, ...state } =
    await (await fetch('api/state', { headers: { 'X-Session': sessionStorage.getItem('breastmorph-session'),
      'X-Token': localStorage.getItem('breastmorph-token') } })).json();
    state.cases.forEach(one => { delete one.thumbnail; });
    return JSON.stringify([state, explorer.remember(), explorer.stage.kept?.positions[0] ?? null]); }"""


@pytest.mark.slow
def test_undo_and_redo_over_a_random_sequence_of_the_pages_actions(tab, folder):
    page, rng = tab.page, random.Random(5)
    registered(page, folder, "first")

    def slide():
        page.click("#tab-model")
        page.fill("#mode-1", f"{rng.uniform(-2, 2):.1f}")

    def turn():
        page.click("#tab-scan")
        page.click(f"[data-turn={rng.choice('xyz')}]")

    def wish():
        page.click("#tab-measures")
        page.wait_for_selector("#edit-SN-NL-number")
        now = float(page.input_value("#edit-SN-NL-number"))
        page.fill("#edit-SN-NL-number", f"{now + rng.choice((-0.3, 0.3)):.1f}")
        page.evaluate("document.querySelector('#status').textContent = ''")
        page.keyboard.press("Enter")
        said(page, "Computed")

    def choose():
        page.click("#tab-missing")
        page.check(f"[name=missing][value={rng.choice(['left', 'right', 'paint'])}]")

    def keep():
        page.click("#tab-model")
        page.click("#keep")

    def rename():
        page.click("#tab-scan")
        page.click("#cases-list [data-act=rename] >> nth=0")
        page.fill("#rename-name", f"n{rng.randrange(99)}")
        page.click("#rename-form [type=submit]")
        said(page, "Saved")

    def hold():
        page.click("#tab-measures")
        page.evaluate("document.querySelector('#status').textContent = ''")
        page.locator("#hold-right").click()  # the wish is about the other one
        if page.evaluate("explorer.state.edit !== null"):  # then it is computed anew
            said(page, "Computed")

    def paint():
        page.click("#tab-missing")
        page.check("[name=missing][value=paint]")
        page.wait_for_function("() => explorer.stage.colouring === 'painted'")
        x, y = page.evaluate("explorer.stage.centre()")
        page.mouse.move(x - rng.randrange(30), y)
        page.mouse.down()
        page.mouse.move(x + rng.randrange(30), y + 10, steps=3)
        page.mouse.up()

    def annotate():
        page.click("#tab-compare")
        settled(page)
        page.check("[name=tool][value=note]")
        page.fill("#note-text", f"note {rng.randrange(99)}")
        x, y = page.evaluate("explorer.stage.centre()")
        page.mouse.click(x + rng.randrange(20), y)
        said(page, "The note is set")

    def absent():
        page.click("#tab-scan")
        now = page.input_value("#scan-picker [data-part=absent]")
        page.select_option("#scan-picker [data-part=absent]", "left" if now != "left" else "")

    def another():
        opened(page, folder, f"other {rng.randrange(99)}")

    def remove():
        page.click("#tab-scan")
        page.click("#cases-list [data-act=remove] >> nth=-1")
        said(page, "Undo brings it back")

    def predict():
        predict_right(page)
        page.fill("#alternative-1", "1")

    seen = [page.evaluate(STATE)]
    steps = [slide, turn, choose, keep, rename, wish, hold, paint, annotate, absent]
    screens = list(SCREENS)
    for k, action in enumerate(
        [predict, *rng.sample(steps, len(steps)), another, remove, *rng.choices(steps[:4], k=2)]
    ):
        on(page, screens[k % len(screens)])
        action()
        page.wait_for_timeout(250)
        settled(page)
        now = page.evaluate(STATE)
        if now != seen[-1]:
            seen.append(now)
    assert len(seen) > 12
    for way, keys, told, states in (
        ("undo", "Control+z", "Undone", reversed(seen[:-1])),
        ("redo", "Control+Shift+z", "Done again", seen[1:]),
    ):
        for wanted in states:
            while (now := page.evaluate(STATE)) != wanted:  # an action may be two steps
                assert page.evaluate(f"explorer.state.history.{way}"), differing(now, wanted)
                page.keyboard.press(keys)
                said(page, told)
                page.evaluate("document.querySelector('#status').textContent = ''")


def differing(now: str, wanted: str, path: str = "") -> list[str]:
    """Where two states differ."""
    one, other = (json.loads(each) if isinstance(each, str) and not path else each for each in (now, wanted))
    if isinstance(one, dict) and isinstance(other, dict):
        return [d for key in {*one, *other} for d in differing(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            d for k, pair in enumerate(zip(one, other, strict=True)) for d in differing(*pair, f"{path}[{k}]")
        ]
    return [] if one == other else [f"{path}: {str(one)[:80]} instead of {str(other)[:80]}"]


def ruled(page) -> None:
    """Lay the ruler between the ends of a line: on every screen it says what the table of the measures says."""
    page.check("#lines-show")
    page.wait_for_selector("#lines-table tbody tr")
    settled(page)
    row = (
        page.locator("#lines-table tbody tr")
        .filter(has_text="Sternal notch to left nipple")
        .inner_text()
        .split("\t")
    )
    straight, along = (float(cell.split()[0]) for cell in row[1:])  # cm
    page.check("[name=tool][value=ruler]")
    for k, screen in enumerate(SCREENS):
        on(page, screen)
        ends = page.evaluate(
            "() => { const { points } = explorer.stage.bodyLines.find(line => line.name === 'SN-NL');"
            " return [points[0], points.at(-1)].map(point => explorer.stage.view.project(point)); }"
        )
        for x, y in ends:
            page.mouse.click(x, y)
            page.wait_for_timeout(300)
        page.wait_for_selector(f"#marks li >> nth={k}")
        told = page.locator("#marks li span").nth(k).inner_text().split(",")
        found = [float(part.split()[1]) for part in told]
        assert found[0] == pytest.approx(straight, abs=0.25)  # a pixel of a phone's picture is nearly 2 mm
        assert found[1] == pytest.approx(along, abs=0.4)
    on(page, "desktop")
    page.check("[name=tool][value=off]")
    page.uncheck("#lines-show")


@pytest.mark.slow
def test_two_visits_are_compared_measured_and_planned(tab, folder, tmp_path):
    page = tab.page
    registered(page, folder, "first")
    registered(page, folder, "second")
    page.click("#tab-compare")
    page.wait_for_selector("#compare-shape option >> nth=2", state="attached")
    page.select_option("#compare-shape", json.dumps({"kind": "patient"}, separators=(",", ":")))
    ruled(page)
    page.select_option("#compare-other", label="visit first")
    page.wait_for_selector("#compare-SN-NL")
    difference = page.evaluate("Math.max(...explorer.stage.shape.maps.difference.map(Math.abs))")
    assert difference < 0.05  # the same scan twice
    page.check("[name=compare-layout][value=split]")
    page.check("[name=compare-map][value=difference]")
    page.wait_for_function("() => explorer.stage.colouring === 'difference' && explorer.stage.view.split")
    at = 0.5
    for screen, to in (("phone", 0.6), ("tablet", 0.4), ("desktop", 0.3)):
        on(page, screen)
        box = page.locator("#stage").bounding_box()
        page.mouse.move(box["x"] + at * box["width"], box["y"] + 0.3 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + to * box["width"], box["y"] + 0.3 * box["height"], steps=3)
        page.mouse.up()
        assert page.evaluate("explorer.stage.splitAt") == pytest.approx(to, abs=0.02)
        at = to
    page.focus("#split")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("explorer.stage.view.split.at") == pytest.approx(0.35, abs=0.02)
    with page.expect_download() as waiting:
        page.click("#compare-page")
    assert waiting.value.suggested_filename == "first-comparison.html"
    waiting.value.save_as(tmp_path / "visits.html")
    told = (tmp_path / "visits.html").read_text(encoding="utf-8")
    assert "first to second" in told
    assert "What changed" in told
    settled(page)

    predict_right(page)
    page.click("#tab-compare")
    page.wait_for_selector("#plan:not([hidden]) [data-solid]")
    assert "not" in page.inner_text("#plan-note")  # what it is not
    name = page.get_attribute("[data-solid]", "data-solid").split("-")[0]
    row = page.locator("#plan-table tr").nth(1 if name == "added" else 2).inner_text()
    shown = float(row.split("\t")[1].split()[0])
    on(page, "phone")
    with page.expect_download() as waiting:
        page.click("[data-solid]")
    waiting.value.save_as(tmp_path / "solid.stl")
    solid = load_mesh(tmp_path / "solid.stl")
    assert len(igl.boundary_facets(np.array(solid.faces))[0]) == 0  # watertight
    corners = solid.vertices[solid.faces]
    volume = abs(np.einsum("ij,ij->", np.cross(corners[:, 0], corners[:, 1]), corners[:, 2])) / 6000.0
    assert volume == pytest.approx(shown, abs=0.51)
    page.select_option("#cut-side", "right")
    page.wait_for_selector(".cut svg >> nth=1")
    assert "cm²" in page.inner_text("#cuts")


@pytest.mark.slow
def test_a_folder_is_opened_registered_judged_and_made_a_model(browser, clinic, folder):
    with (
        explore(clinic, "--model", folder / "model.h5", "--by-hand") as entrance,
        window(browser, entrance) as tab,
    ):
        page = tab.page
        before = page.inner_text("#model-name")
        assert page.is_visible("#folder-choice")
        page.select_option("#folder-choice", label="clinic/spring \u2013 3 scans")
        page.wait_for_function("() => explorer.tabs.folder.state()?.complete")
        settled(page)
        assert page.is_hidden("#folder-quality")
        page.click("#folder-register")
        page.wait_for_selector("#quality-table [data-quality='scan 42']")
        settled(page)
        rows = page.locator("#quality-table [data-quality]").all_inner_texts()
        assert len(rows) == 3
        assert all(0.0 < float(row.split("\t")[1]) < 3.0 for row in rows), rows
        assert page.inner_text("#folder-build") == "Build a model of the 3 registered scans"
        page.click("#folder-build")
        page.wait_for_function("() => explorer.tab === 'model' && explorer.state.model.built")
        settled(page)
        assert page.inner_text("#model-name") == "Model: spring.h5"
        assert "Built from 3 subjects" in page.inner_text("#model-note")
        page.fill("#mode-1", "1")  # the model of three has two ways to differ
        assert page.locator("#model-sliders input").count() == 2
        page.wait_for_selector("#strip-SN-NL")
        with page.expect_download() as waiting:
            page.click("#model-save")
        assert waiting.value.suggested_filename == "spring.h5"
        for _ in range(2):  # the slider, the model
            page.click("#undo")
            said(page, "Undone")
            page.evaluate("document.querySelector('#status').textContent = ''")
        page.wait_for_function("name => document.querySelector('#model-name').innerText === name", arg=before)
        assert page.locator("#model-sliders input").count() > 2
        page.click("#redo")
        page.wait_for_function("() => explorer.state.model.built")
        assert tab.complaints() == []


@pytest.mark.slow
def test_every_tab_is_accessible_and_speaks_german_on_all_screens(browser, entrance, folder, axe):
    with window(browser, entrance, locale="de-DE") as tab:
        page = tab.page
        assert page.evaluate("document.documentElement.lang") == "de"
        assert page.inner_text("#tab-missing") == "Fehlende Brust"
        page.wait_for_selector("#strip-SN-NL")
        assert "," in page.inner_text("#strip-SN-NL")
        assert "Drosselgrube" in page.inner_text("#strip")
        assert page.inner_text(".bv-side-left") == "Rechte Seite der Patientin"
        registered(page, folder, "p017_2024-03-05")
        assert "5. März 2024" in page.inner_text("#cases-list")
        assert page.inner_text("[data-landmark=xiphoid]").startswith("✓")
        predict_right(page)  # with the widest tables
        page.click("#tab-compare")
        page.select_option("#compare-other", label="registriert: p017_2024-03-05")
        page.wait_for_selector("#compare-SN-NL")
        for screen in SCREENS:
            on(page, screen)
            for name in TABS:
                page.click(f"#tab-{name}")
                page.wait_for_timeout(100)
                settled(page)
                assert cut_off(page) == [], (screen, name)
        on(page, "desktop")
        page.select_option("#language", "en")
        page.wait_for_function("() => document.documentElement.lang === 'en' && document.body.dataset.ready")
        assert page.inner_text("#tab-missing") == "Missing breast"

        # What a page may not load by itself, its tester may put into it.
        page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
        page.evaluate(axe)
        found = {}
        for theme in ("light", "dark"):
            if page.evaluate("document.documentElement.dataset.theme") != theme:
                page.click("#theme")
            for name in TABS:
                page.click(f"#tab-{name}")
                settled(page)
                page.wait_for_timeout(200)
                rules = page.evaluate(
                    "async () => (await axe.run()).violations.map(one => [one.id, one.nodes.map(each => each.html)])"
                )
                if rules:
                    found[theme, name] = rules
        assert found == {}
        assert tab.complaints() == []


@pytest.fixture
def textured(breast_template, tmp_path):
    """Somebody's scan with a picture on it: its files, and the colour that belongs to every vertex of the model."""
    shape, faces = breast_shapes(41)[40], np.array(breast_template.mesh.faces)
    vertices, finer = igl.upsample(shape, faces)
    places, _ = igl.upsample(
        np.array(breast_template.mesh.vertices), faces
    )  # the same vertices, by correspondence
    low, high = places[:, :2].min(axis=0), places[:, :2].max(axis=0)
    uv = 0.05 + 0.9 * (places[:, :2] - low) / (high - low)
    nipple = uv[breast_template.landmark_ids["nipple_left"]]
    pixels = (np.arange(256) + 0.5) / 256
    picture = painted(*np.meshgrid(pixels, pixels[::-1]), nipple).round().astype(np.uint8)
    png = io.BytesIO()
    Image.fromarray(picture).save(png, "PNG")
    mesh = TriangleMesh(POSE.apply(vertices), finer[::-1], texture=Texture(uv[finer[::-1]], png.getvalue()))
    save_mesh(mesh, tmp_path / "torso.obj")
    return sorted(tmp_path.glob("torso*")), painted(*uv[: len(shape)].T, nipple)


def painted(u, v, spot) -> np.ndarray:
    """Colours of a body that is alike on both sides, but for a greenless spot on the left."""
    there = np.exp(-0.5 * ((u - spot[0]) ** 2 + (v - spot[1]) ** 2) / 0.04**2)
    return np.stack([60 + 150 * np.abs(2 * u - 1), 90 + 120 * v - 80 * there, 180 - 100 * v], axis=-1)


@pytest.mark.slow
def test_colours_of_a_scan_stay_where_they_belong_until_they_are_saved(
    tab, folder, textured, breast_template, tmp_path
):
    page, (scan, truth) = tab.page, textured
    skin = "explorer.stage.shape.skin && [...explorer.stage.shape.skin]"

    def shown(kind: str) -> np.ndarray:
        page.wait_for_function("kind => explorer.stage.shape?.spec.kind === kind", arg=kind)
        settled(page)
        return np.array(page.evaluate(skin), float).reshape(-1, 3)

    page.click("#tab-scan")
    page.set_input_files("#scan-files", [*map(str, scan), str(folder / "scan.json")])
    page.wait_for_function("() => explorer.tabs.scan.state()?.complete && explorer.stage.scan?.image")
    settled(page)
    page.click("#scan-register")
    page.wait_for_selector("#scan-predict")
    settled(page)
    page.click("#tab-measures")
    own = shown("patient")
    assert np.abs(own - truth).mean() < 3.0  # of 180 levels across the torso
    assert np.abs(own - truth[:, ::-1]).mean() > 30.0
    on(page, "tablet")
    page.wait_for_selector("#edit-SN-NL-number")
    now = float(page.input_value("#edit-SN-NL-number"))
    page.fill("#edit-SN-NL-number", f"{now + 0.5:.1f}")
    page.keyboard.press("Enter")
    assert np.array_equal(shown("edit"), own)
    on(page, "phone")
    predict_right(page)
    predicted = shown("prediction")
    gone = np.array(
        page.evaluate("[...explorer.stage.shape.maps.uncertainty].map(value => !Number.isNaN(value))")
    )
    assert gone.any()
    assert np.array_equal(predicted[~gone], own[~gone])
    places = np.array(breast_template.mesh.vertices)
    opposite = cKDTree(places).query(places * [-1, 1, 1])[1]
    spot = gone & (
        truth[opposite, 1] < truth[:, 1] - 40
    )  # where the left breast has one and the right has not
    assert spot.sum() > 3
    away = np.abs(np.array([predicted, own])[:, spot, 1] - own[opposite][spot, 1]).mean(axis=1)
    assert away[0] < 0.4 * away[1]  # the predicted breast has the skin of the other one, mirrored
    on(page, "desktop")
    assert page.is_checked("#own-skin")
    page.click("#tab-save")
    for kind in ("ply", "glb", "obj"):
        with page.expect_download() as waiting:
            page.click(f"[data-format={kind}]")
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        if kind == "obj":  # its skin is a picture, made anew from the scan's
            with zipfile.ZipFile(path) as archive:
                archive.extractall(tmp_path / "home")
            path = next((tmp_path / "home").glob("*.obj"))
        colours = vertex_rgb(load_mesh(path)).astype(float)
        assert np.abs(colours - predicted).mean() < (2.0 if kind == "obj" else 0.01)
        settled(page)
    page.click("#own-skin")
    with page.expect_download() as waiting:
        page.click("[data-format=ply]")
    waiting.value.save_as(tmp_path / "plain.ply")
    assert load_mesh(tmp_path / "plain.ply").colors is None


def test_fingers_turn_zoom_and_set_points(browser, entrance, folder):
    with window(browser, entrance, has_touch=True) as tab:
        page = tab.page
        on(page, "tablet")
        opened(page, folder, "first", points=False)
        fingers = page.context.new_cdp_session(page)
        x, y = page.evaluate("explorer.stage.centre()")

        def touch(kind, *points):
            fingers.send(
                "Input.dispatchTouchEvent",
                {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in points]},
            )

        def place():
            return np.array(page.evaluate("explorer.stage.view.camera.position.toArray()"))

        def distance():
            return page.evaluate(
                "explorer.stage.view.camera.position.distanceTo(explorer.stage.view.controls.target)"
            )

        before, far = place(), distance()
        touch("touchStart", (x, y))
        for step in range(1, 6):
            touch("touchMove", (x + 20 * step, y))
        touch("touchEnd")
        assert np.linalg.norm(place() - before) > 50.0  # mm: it was turned
        assert distance() == pytest.approx(far, rel=0.01)
        touch("touchStart", (x - 30, y), (x + 30, y))
        for step in range(1, 6):
            touch("touchMove", (x - 30 - 10 * step, y), (x + 30 + 10 * step, y))
        touch("touchEnd")
        assert distance() < 0.8 * far
        page.click("[data-view=front]")
        page.touchscreen.tap(x, y)
        page.wait_for_function("() => Object.keys(explorer.tabs.scan.state().landmarks).length === 1")
        assert tab.complaints() == []
