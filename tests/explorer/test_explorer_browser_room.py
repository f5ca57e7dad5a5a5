"""A day in the consultation room, in a browser: many scans, steps back, two visits, three screens, two languages."""

from __future__ import annotations

import json
import random
from importlib.resources import files

import igl
import numpy as np
import pytest

from breastmorph.mesh.files import load_mesh
from explorer_window import cut_off, explore, settled

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


def names(page) -> list[str]:
    return page.locator("#cases-list .case strong").all_inner_texts()


def said(page, words: str) -> None:
    page.wait_for_function("words => document.querySelector('#status').innerText.includes(words)", arg=words)
    settled(page)


@pytest.mark.slow
def test_thirty_scans_in_one_tab_are_named_grouped_removed_and_closed(tab, folder):
    page = tab.page
    page.click("#tab-scan")
    content = (folder / "scan.ply").read_bytes()
    files = [f"p017_2024-{k % 12 + 1:02d}-05_{k}.ply" for k in range(30)]
    page.set_input_files("#scan-files", [{"name": name, "mimeType": "", "buffer": content} for name in files])
    said(page, "30 scans are loaded")
    assert len(names(page)) == 30
    for k in (3, 1):  # visits of one person stand together, by their days
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
    page.click("#cases-list li:has(strong:text-is('visit 3')) [data-act=close]")
    page.click("#ask-yes")
    said(page, "closed and deleted")
    assert len(names(page)) == 29


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
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('#status').innerText.startsWith('Computed')")

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

    seen = [page.evaluate(STATE)]
    steps = [slide, turn, choose, keep, rename, wish]
    for action in [*rng.sample(steps, len(steps)), *rng.choices(steps, k=3)]:
        action()
        page.wait_for_timeout(250)
        settled(page)
        now = page.evaluate(STATE)
        if now != seen[-1]:
            seen.append(now)
    assert len(seen) > 6
    for wanted in reversed(seen[:-1]):
        while page.evaluate(STATE) != wanted:  # an action may be two steps
            page.keyboard.press("Control+z")
            said(page, "Undone")
            page.evaluate("document.querySelector('#status').textContent = ''")
    for wanted in seen[1:]:
        while page.evaluate(STATE) != wanted:
            page.keyboard.press("Control+Shift+z")
            said(page, "Done again")
            page.evaluate("document.querySelector('#status').textContent = ''")


@pytest.mark.slow
def test_two_visits_are_compared_measured_and_planned(tab, folder, tmp_path):
    page = tab.page
    registered(page, folder, "first")
    registered(page, folder, "second")
    page.click("#tab-compare")
    page.wait_for_selector("#compare-shape option >> nth=2", state="attached")
    page.select_option("#compare-shape", json.dumps({"kind": "patient"}, separators=(",", ":")))
    page.select_option("#compare-other", label="visit first")
    page.wait_for_selector("#compare-SN-NL")
    difference = page.evaluate("Math.max(...explorer.stage.shape.maps.difference.map(Math.abs))")
    assert difference < 0.05  # the same scan twice
    page.check("[name=compare-layout][value=split]")
    page.check("[name=compare-map][value=difference]")
    page.wait_for_function("() => explorer.stage.colouring === 'difference' && explorer.stage.view.split")
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"], steps=3)
    page.mouse.up()
    assert page.evaluate("explorer.stage.splitAt") == pytest.approx(0.3, abs=0.02)
    page.focus("#split")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("explorer.stage.view.split.at") == pytest.approx(0.35, abs=0.02)

    page.check("[name=tool][value=ruler]")
    middle = page.evaluate("explorer.stage.centre()")
    for away in (-40, 40):
        page.mouse.click(middle[0] + away, middle[1] - 20)
        page.wait_for_timeout(300)
    page.wait_for_selector("#marks li")
    text = page.inner_text("#marks li span")
    straight, along = (float(part.split()[1]) for part in text.split(","))
    ends = page.evaluate("Object.values(explorer.remember().marks)[0][0].points")
    assert 10.0 * straight == pytest.approx(np.linalg.norm(np.subtract(*ends)), abs=0.6)
    assert along >= straight

    page.click("#tab-missing")
    page.check("[name=missing][value=right]")
    page.click("#missing-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    settled(page)
    page.click("#tab-compare")
    page.wait_for_selector("#plan:not([hidden]) [data-solid]")
    assert "not" in page.inner_text("#plan-note")  # what it is not
    name = page.get_attribute("[data-solid]", "data-solid").split("-")[0]
    row = page.locator("#plan-table tr").nth(1 if name == "added" else 2).inner_text()
    shown = float(row.split("\t")[1].split()[0])
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
    from explorer_window import window

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


@pytest.mark.parametrize("screen", ["tablet", "phone"])
def test_the_picture_stays_in_sight_while_a_slider_moves(tab, screen):
    page = tab.page
    width, height = SCREENS[screen]
    page.set_viewport_size({"width": width, "height": height})
    page.click("#tab-model")
    last = page.locator("#model-sliders input:visible").last
    last.scroll_into_view_if_needed()
    slider, canvas = last.bounding_box(), page.locator(".bv-canvas").bounding_box()
    assert canvas["y"] >= 0
    assert canvas["height"] >= 220
    assert canvas["y"] + canvas["height"] <= slider["y"]  # above the slider, both on the screen
    assert slider["y"] + slider["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in TABS:
        page.click(f"#tab-{name}")
        page.wait_for_timeout(100)
        assert cut_off(page) == [], name


@pytest.mark.slow
def test_axe_finds_nothing_on_any_tab_in_both_themes(tab, folder, axe):
    page = tab.page
    registered(page, folder, "first")
    page.click("#tab-missing")
    page.check("[name=missing][value=right]")
    page.click("#missing-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    settled(page)
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
    page.click("#theme")
    assert found == {}


def test_the_page_speaks_german_and_writes_numbers_so(browser, entrance, folder):
    from explorer_window import window

    with window(browser, entrance, locale="de-DE") as tab:
        page = tab.page
        assert page.evaluate("document.documentElement.lang") == "de"
        assert page.inner_text("#tab-missing") == "Fehlende Brust"
        page.wait_for_selector("#strip-SN-NL")
        assert "," in page.inner_text("#strip-SN-NL")
        assert "Drosselgrube" in page.inner_text("#strip")
        assert page.inner_text(".bv-side-left") == "Rechts der Patientin"
        opened(page, folder, "p017_2024-03-05")
        assert "5. März 2024" in page.inner_text("#cases-list")
        assert page.inner_text("[data-landmark=xiphoid]").startswith("✓")
        for screen in SCREENS.values():
            page.set_viewport_size({"width": screen[0], "height": screen[1]})
            for name in TABS:
                page.click(f"#tab-{name}")
                page.wait_for_timeout(100)
                assert cut_off(page) == [], (screen, name)
        page.select_option("#language", "en")
        page.wait_for_function("() => document.documentElement.lang === 'en' && document.body.dataset.ready")
        assert page.inner_text("#tab-missing") == "Missing breast"
        assert tab.complaints() == []


def test_who_leaves_unsaved_work_is_asked_and_the_shortcuts_are_listed(tab, folder):
    page = tab.page
    page.keyboard.press("?")
    assert "Ctrl+Z" in page.inner_text("#shortcuts")
    page.click("#shortcuts-close")
    assert not page.evaluate("explorer.history.unsaved()")
    opened(page, folder, "first")
    page.wait_for_function("() => explorer.history.unsaved()")
    page.click("#tab-save")
    with page.expect_download():
        page.click("#save-session")
    page.wait_for_function("() => !explorer.history.unsaved()")
