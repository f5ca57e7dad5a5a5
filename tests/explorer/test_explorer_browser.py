"""The explorer in a real browser: shapes, measures, editing, a patient's scan, a predicted breast, files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from breastmorph.mesh.files import load_mesh
from breastmorph.phantom.scanner import write_cohort
from breastmorph.template import default_template
from breastmorph.viewer import SCRIPTS
from explorer_window import address_in, cut_off, explore, in_pdf, settled, unnamed


@pytest.fixture(scope="module")
def entrance():
    """The command without a model: it offers the demo model."""
    with explore() as found:
        yield found


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """A phantom scan with its landmark file."""
    home = tmp_path_factory.mktemp("phantom")
    write_cohort(home, n=1, seed=5)
    return next(home.glob("scans/*.ply")), next(home.glob("landmarks/*.json"))


def positions(page) -> np.ndarray:
    return np.array(page.evaluate("Array.from(explorer.stage.view.positions('shape'))")).reshape(-1, 3)


def number(text: str) -> float:
    return float(re.search(r"[\d.]+", text)[0])


def shown(page, measure: str) -> float:
    """A value of the full table, in mm or cc."""
    text = page.inner_text(f"#row-{measure} td.shown")
    return number(text) * (10.0 if "cm" in text else 1.0)


def test_the_model_is_looked_at_from_all_sides_on_all_screens(tab):
    page = tab.page
    assert "synthetic" in page.inner_text("#panel-model").lower()
    assert "Demo" in page.inner_text("#model-name")
    assert "not for planning" in page.inner_text("header")
    assert len(positions(page)) == default_template().mesh.n_vertices
    scripts = "[...document.querySelectorAll('script[defer]')].map(e => e.src.split('/').pop())"
    assert page.evaluate(scripts) == list(SCRIPTS)
    for view, words in (
        ("front", "Patient's left"),
        ("left", "Seen from patient's left"),
        ("below", "Patient's right"),
    ):
        page.click(f"[data-view={view}]")
        page.wait_for_function(
            "words => [...document.querySelectorAll('.bv-side')].some(e => e.textContent === words"
            " && Number(e.style.opacity) > 0.9)",
            arg=words,
        )
    page.click("[data-view=front]")
    assert page.get_attribute("[data-view=front]", "aria-pressed") == "true"

    page.wait_for_selector("#strip-SN-NL")
    before, measures = positions(page), page.inner_text("#strip")
    page.focus("#mode-1")
    for _ in range(15):
        page.keyboard.press("ArrowRight")
    assert page.input_value("#mode-1") == "1.5"
    page.wait_for_function("before => document.querySelector('#strip').innerText !== before", arg=measures)
    assert np.linalg.norm(positions(page) - before, axis=1).max() > 3.0
    assert "+1.5 sd" in page.inner_text("#model-sliders")
    page.click("#model-reset")
    np.testing.assert_allclose(positions(page), before, atol=1e-3)

    page.click("#keep")
    page.wait_for_function("() => explorer.stage.view.meshes.has('kept')")
    page.click("#model-sample")
    page.wait_for_function("() => explorer.tabs.model.scores().some(score => score !== 0)")
    offsets = "['kept', 'shape'].map(name => explorer.stage.view.meshes.get(name).style.offset[0])"
    left, right = page.evaluate(offsets)
    assert right - left > 200  # mm: beside, not in each other
    page.select_option("#layout", "overlay")
    assert page.evaluate(offsets) == [0, 0]
    assert page.evaluate("explorer.stage.view.meshes.get('kept').style.opacity") < 1
    page.select_option("#colouring", "distance")
    assert "mm" in page.inner_text(".bv-bar")
    page.select_option("#colouring", "plain")
    page.click("#forget")
    page.click("#model-reset")
    assert not page.is_visible("#layout")

    assert unnamed(page) == []
    for width, height in ((1024, 768), (810, 1080), (390, 844), (700, 400), (1000, 480)):
        page.set_viewport_size({"width": width, "height": height})
        page.click("#tab-model")
        box = page.locator(".bv-canvas").bounding_box()
        assert box["height"] >= (220 if width == 810 else 240), (width, height)
        assert box["width"] >= 300
        assert page.evaluate(
            "document.documentElement.scrollWidth <= innerWidth"
        )  # nothing beside the window
        if height < 768:
            continue
        for name in ("measures", "scan", "folder", "missing", "compare", "save", "model"):
            page.click(f"#tab-{name}")
            assert cut_off(page) == [], (width, name)
        if width < 1024:  # the picture stays in sight while a slider moves
            last = page.locator("#model-sliders input:visible").last
            last.scroll_into_view_if_needed()
            slider, canvas = last.bounding_box(), page.locator(".bv-canvas").bounding_box()
            assert canvas["height"] >= 220, (width, height)
            assert 0 <= canvas["y"] <= slider["y"] - canvas["height"]  # above the slider, both on the screen
            assert slider["y"] + slider["height"] <= height
    page.click("#tab-save")
    page.keyboard.press("ArrowUp")  # tabs by keyboard
    assert page.evaluate("explorer.tab") == "compare"


def refused(page, words: str) -> None:
    """Wait for a refusal that says so, and close it."""
    page.wait_for_function(
        "words => document.querySelector('#error:not([hidden])')?.innerText.includes(words)", arg=words
    )
    page.click("#error-close")


def test_measures_are_set_and_what_cannot_be_is_refused(tab, tmp_path):
    page = tab.page
    page.click("#tab-measures")
    page.wait_for_selector("#edit-SN-NL-number")
    page.wait_for_selector("#row-SN-NL")
    now, before = page.input_value("#edit-SN-NL-number"), positions(page)
    page.fill("#edit-SN-NL-number", "1")  # the first digit: measures that arrive do not overwrite it
    page.evaluate("explorer.measures.dispatchEvent(new Event('change'))")
    assert page.input_value("#edit-SN-NL-number") == "1"
    for typed, words in (("x", "not a number"), ("2", "Sternal notch to left nipple 2.0 cm")):
        page.fill("#edit-SN-NL-number", typed)
        page.keyboard.press("Enter")
        page.wait_for_selector("#error:not([hidden])")
        assert "SN-NL" not in page.inner_text("#error")
        refused(page, words)
        page.wait_for_function(
            "now => document.querySelector('#edit-SN-NL-number').value === now || now === ''",
            arg=now if typed == "x" else "",
        )
        assert page.evaluate("explorer.state.edit") is None

    wanted = shown(page, "SN-NL") + 12.0
    page.fill("#edit-SN-NL-number", f"{wanted / 10:.1f}".replace(".", ","))  # a decimal comma is as good
    page.keyboard.press("Enter")
    page.wait_for_function("() => explorer.state.edit !== null && explorer.stage.shape.spec.kind === 'edit'")
    page.wait_for_function("() => explorer.measures.shown && explorer.measures.spec.kind === 'edit'")
    page.wait_for_function(
        "mm => Math.abs(explorer.measures.value('SN-NL').value - mm) < 0.5", arg=round(wanted, 0)
    )
    assert abs(shown(page, "SN-NL") - round(wanted, 0)) <= 0.5
    moved = np.linalg.norm(positions(page) - before, axis=1)
    assert moved.max() > 3.0
    assert np.median(moved) < 3.0  # the thorax is held
    assert page.is_checked("#hold-right")
    assert "right breast is held" in page.inner_text("#hold-note")
    before_after = page.locator("#change-SN-NR td").all_inner_texts()
    held, _, spread = before_after[1].partition(" \N{PLUS-MINUS SIGN} ")
    assert f"{held} cm" == before_after[0]
    assert spread.endswith(" cm")
    page.click("#edit-reset")
    page.wait_for_function("() => explorer.state.edit === null")
    page.wait_for_function("() => document.querySelector('#status').innerText.includes('undone')")
    assert page.is_hidden("#edit-changes")
    np.testing.assert_allclose(positions(page), before, atol=1e-3)

    # A refusal that comes late is not shown elsewhere.
    page.evaluate(
        """() => { const real = window.fetch; window.answers = 0;
        window.fetch = async (path, asked) => {
          if (path !== 'api/edit' || asked.method !== 'POST') return real(path, asked);
          await new Promise(done => { window.letGo = done; });
          window.fetch = real;
          return real(path, asked).finally(() => { window.answers += 1; }); }; }"""
    )
    page.fill("#edit-SN-NL-number", "2")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#status').innerText === 'Computing.'")
    page.click("#edit-reset")
    page.click("#tab-model")
    page.evaluate("window.letGo()")
    page.wait_for_function("() => window.answers === 1")
    page.wait_for_timeout(200)
    assert page.is_hidden("#error")
    assert page.evaluate("explorer.state.edit") is None

    # A scan that cannot be read is refused in words, and the page goes on.
    (tmp_path / "broken.ply").write_bytes(
        b"ply\nformat binary_little_endian 1.0\nelement vertex 10\nproperty float x\nend_header\n\x00"
    )
    (tmp_path / "notes.docx").write_bytes(b"x")
    page.click("#tab-scan")
    for name in ("broken.ply", "notes.docx"):
        page.set_input_files("#scan-files", str(tmp_path / name))
        page.wait_for_selector("#error:not([hidden])")
        assert len(page.inner_text("#error-cause")) > 10
        assert len(page.inner_text("#error-remedy")) > 10  # what to do
        settled(page)
        refused(page, name if name == "notes.docx" else "")
    page.click("#tab-model")
    page.fill("#mode-2", "1")
    assert page.evaluate("explorer.tabs.model.scores()[1]") == 1
    # The browser itself reports the refusals; they are no fault of the page.
    tab.errors[:] = [text for text in tab.errors if "status of 422" not in text]


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "consultation.md"
DOING = re.compile(
    r"(?P<do>[Pp]ress|[Tt]ick) \*\*(?P<name>.+?)\*\*|[Ss]et \*\*(?P<field>.+?)\*\* to `(?P<value>.+?)`"
    r"|and \*\*(?P<field2>.+?)\*\* to `(?P<value2>.+?)`"
    r"|Drop `(?P<first>.+?)` and `(?P<second>.+?)` into the window, or .*?\."
    r"|[Yy]ou read \*(?P<seen>.+?)\*|it saves `(?P<file>.+?)`",
    re.DOTALL,
)


def guided(page, scan, tmp_path):
    """Do what the guide says, line by line; yields the title of each of its sections once that is done."""
    for section in GUIDE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        done = list(DOING.finditer(" ".join(text.split())))
        assert all(word in text for word in ("1. ", "**")), title
        for k, one in enumerate(done):
            do = one.groupdict()
            if do["name"]:
                control = named(page, do["name"])
                saves = done[k + 1].groupdict()["file"] if k + 1 < len(done) else None
                if saves:
                    with page.expect_download() as waiting:
                        control.click()
                    assert waiting.value.suggested_filename == saves
                    waiting.value.save_as(tmp_path / saves)
                elif do["do"].lower() == "tick":
                    control.check()
                else:
                    control.click()
            elif do["field"] or do["field2"]:
                field, value = named(page, do["field"] or do["field2"]), do["value"] or do["value2"]
                if field.evaluate("e => e.tagName") == "SELECT":
                    field.select_option(label=value)
                else:
                    field.fill(value)
            elif do["first"]:
                files = [
                    {"name": name, "mimeType": "", "buffer": path.read_bytes()}
                    for name, path in zip((do["first"], do["second"]), scan, strict=True)
                ]
                page.set_input_files("#scan-files", files)
                page.wait_for_function("() => explorer.tabs.scan.state()?.complete")
            elif do["seen"]:
                page.get_by_text(re.compile(re.escape(do["seen"]))).locator("visible=true").first.wait_for()
            page.wait_for_timeout(100)
            settled(page)
        yield title


def named(page, words: str):
    """The control that can be seen and is called so, as a person finds it: by the words on it or beside it."""
    here = page.locator("dialog[open]") if page.locator("dialog[open]").count() else page
    text = re.escape(words).replace("'", "['\u2019]")  # as it is typed, or as it is printed
    exact = re.compile(rf"^\s*{text}\s*$")
    # Controls of the open panel come first: "Save" is a tab, and a button of a question.
    found = [
        *here.locator("#panels button:visible, dialog button:visible").filter(has_text=exact).all(),
        *here.locator("button:visible").filter(has_text=exact).all(),
        *here.get_by_label(re.compile(rf"^\s*{text}")).locator("visible=true").all(),
    ]
    assert found, f"nothing is called {words}"
    return found[0]


def test_a_consultation_in_ten_minutes_goes_as_the_guide_says(tab, scan, tmp_path):
    page = tab.page
    steps = guided(page, scan, tmp_path)
    assert "Open her scan" in next(steps)
    assert page.inner_text("#scan-about").startswith("p017_2026-03-02")
    assert page.inner_text("#cases-list .person").startswith("P017")
    assert "Bring the model" in next(steps)
    assert number(re.search(r"lies ([\d.]+) mm", page.inner_text("#scan-result"))[1]) < 3.0
    assert page.is_visible("#scan-show")
    assert "mm" in page.inner_text(".bv-bar")  # colours of the residual have a legend
    assert "Look and measure" in next(steps)
    lines = page.locator("#lines-table tbody tr").all_inner_texts()
    assert any(row.startswith("Sternal notch to left nipple\t") and "cm" in row for row in lines)
    before = positions(page)

    assert "What would" in next(steps)
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'prediction' && explorer.stage.kept")
    predicted = positions(page)
    moved = np.linalg.norm(predicted - before, axis=1)
    assert moved.max() > 1.0
    assert moved[before[:, 0] > 60].max() < 1e-3  # x is to the patient's left: that side stays as scanned
    assert page.evaluate("explorer.stage.layout") == "split"
    assert re.search(r"\d ± \d+ cc", page.inner_text("#plan-table"))
    state = "JSON.stringify([explorer.state.cases.map(({ thumbnail, ...one }) => one), explorer.state.prediction])"
    before_mistake = page.evaluate(state)
    assert "A mistake" in next(steps)
    assert page.evaluate(state) == before_mistake
    assert "take home" in next(steps)
    page_home(page, (tmp_path / "p017_2026-03-02-handout.pdf").read_bytes())
    predicting_again(page, tmp_path)
    assert "Before the next" in next(steps)
    assert page.evaluate("explorer.state.cases") == []
    assert next(steps, None) is None


def page_home(page, pdf: bytes) -> None:
    """The page that was made: one sheet with her views, and the numbers that the explorer shows."""
    assert pdf.startswith(b"%PDF-")
    assert b"/MediaBox [ 0 0 595" in pdf  # A4
    words, pictures = in_pdf(pdf)
    for text in (
        "P017",
        "Mar 2, 2026",
        "From the front",
        "From her left",
        "Demo model",
        "Synthetic model: not for planning",
    ):
        assert text in words, text
    shown = page.evaluate("explorer.measures.value('volume-left')")
    assert f"{shown['value']:.0f} ± {shown['sd']:.0f} cc" in words
    assert not re.search(r"SN-N|volume-|_left|vertex|landmark", words)
    assert len(pictures) >= 3
    for one in pictures:  # a body on paper, and not the same view twice
        body = one.min(axis=2) < 235
        assert 0.1 < body.mean() < 0.9
    assert (
        np.abs(pictures[0].astype(int) - pictures[1]).mean() > 5.0 or pictures[0].shape != pictures[1].shape
    )


def predicting_again(page, tmp_path):
    """What else the tab of the missing breast does, with the patient of the guide."""
    page.click("#tab-missing")
    page.wait_for_selector("#missing-result:not([hidden])")
    page.select_option("#missing-show", "prediction")
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'prediction'")
    predicted = positions(page)
    assert "±" in page.inner_text("#missing-table")
    assert "ncertainty" in page.inner_text(".bv-bar")
    page.click("#missing-predict")
    page.click("#busy-cancel")
    page.wait_for_function("() => document.querySelector('#status').innerText === 'Stopped.'")
    settled(page)

    page.fill("#alternative-1", "1.5")
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'alternative'")
    assert np.linalg.norm(positions(page) - predicted, axis=1).max() > 0.5
    page.click("#alternative-reset")

    # What is known of the lost breast: a word instead of a number is told, a volume is taken.
    page.click("#known summary")
    page.fill("#known-volume", "much")
    page.click("#missing-predict")
    page.wait_for_function("() => document.querySelector('#error-cause').innerText.includes('no number')")
    page.fill("#known-volume", "301,4")
    page.click("#missing-predict")
    told = "Given: Right breast volume 301 cc"
    page.wait_for_function(f"() => document.querySelector('#missing-source').innerText.includes('{told}')")
    settled(page)
    # What would have to be filled between the chest and the prediction, cc.
    assert re.search(r"-?\d+ ± \d+", page.inner_text("#predicted-difference td"))
    assert abs(number(page.inner_text("#predicted-volume-right td").split(" ")[0]) - 300.0) < 40.0
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'prediction'")
    predicted = positions(page)

    page.click("#tab-save")
    assert page.inner_text("#save-shape") == "predicted breast"
    with page.expect_download() as waiting:
        page.click("[data-format=stl]")
    target = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(target)
    mesh = load_mesh(target)
    assert target.suffix == ".stl"
    size = np.ptp(mesh.vertices, axis=0)
    np.testing.assert_allclose(np.sort(size), np.sort(np.ptp(predicted, axis=0)), rtol=0.25)
    assert len(mesh.faces) == len(default_template().mesh.faces)


def test_the_file_leads_in_and_who_has_no_address_is_told_why_not(browser, entrance):
    used = address_in(entrance)
    with browser.tab(used.partition("#")[0]) as stranger:
        stranger.page.wait_for_selector("#locked:not([hidden])")
        assert "Each address works once" in stranger.page.inner_text("#locked")
        assert not stranger.page.is_visible("main")
        stranger.page.goto(used)  # pasted into the same tab
        stranger.page.wait_for_selector("body[data-ready]")
        assert stranger.page.url == used.partition("#")[0]
    with browser.tab(
        entrance.as_uri()
    ) as owner:  # as the command opens it: a page of another origin leads here
        owner.page.wait_for_selector("body[data-ready]")
        assert owner.errors == []
        second = owner.page.context.new_page()  # another tab of the same browser is in, whatever the address
        second.goto(used)
        second.wait_for_selector("body[data-ready]")
        assert address_in(entrance) not in (used, owner.page.url)
    with browser.tab(used) as late:
        late.page.wait_for_selector("#locked:not([hidden])")
        assert "opened before" in late.page.inner_text("#locked")
