"""The report page in a real browser: it opens offline, its 3D view moves, its labels are true, it prints."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from functools import cache

import numpy as np
import pytest
from PIL import Image

from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.document import (
    Column,
    Figure,
    ModelSliders,
    Page,
    Reproducibility,
    Section,
    Table,
    Text,
    Verdict,
)
from breastmorph.report.page.writing import write_page
from small_cohort import built, small_cohort

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="9" height="9"/></svg>'
# Text, opacity and middle of the labels at the left edge, at the right edge and between.
LABELS = """() => ["left", "right", "middle"].map(side => {
  const label = document.querySelector(`.bv-side-${side}`), box = label.getBoundingClientRect();
  return [label.textContent, Number(label.style.opacity), box.left + box.width / 2];
})"""


@cache
def small_model() -> ShapeModel:
    return built(small_cohort())


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    table = Table("Statements", ("statement", "verdict"), (("true", Verdict.HOLDS), ("false", Verdict.FAILS)))
    sections = (
        Section("First", (Text(("Some <b>text</b>.",)), table, Figure(DRAWING, "A drawing"))),
        Section("Model", (ModelSliders(small_model(), "The model", modes=4),)),
        Section("Again", (Reproducibility({"seed": 7, "parameters": {"a": 1}}, "study.json"),)),
    )
    write_page(path, Page("Report", sections))
    return path.as_uri()


@pytest.fixture(scope="module")
def opened(browser, address):
    """The page, opened once for all tests."""
    with browser.tab(address) as found:
        found.page.locator("figure.model").scroll_into_view_if_needed()
        found.page.wait_for_selector(".controls:not([hidden])")
        yield found


@pytest.fixture
def tab(opened):
    """The page as it opens: the mean from the front, in the colour of skin."""
    opened.page.click("text=Reset to the mean")
    opened.page.select_option("[name=colour]", "skin")
    opened.page.uncheck("[name=landmarks]")
    opened.page.evaluate("document.querySelector('.model').modelView.view.view('front').render()")
    yield opened
    opened.page.emulate_media(media="screen")


def slide(tab, mode: int, amount: float) -> None:
    tab.page.locator(f"[data-mode='{mode}']").fill(str(amount))


def positions(tab) -> np.ndarray:
    found = tab.page.evaluate(
        "Array.from(document.querySelector('.model').modelView.view.positions('shape'))"
    )
    return np.array(found).reshape(-1, 3)


def picture(tab) -> np.ndarray:
    address = tab.page.evaluate(
        "document.querySelector('.model').modelView.view.screenshot({overlay: false})"
    )
    return np.asarray(Image.open(io.BytesIO(b64decode(address.partition(",")[2]))).convert("RGB")).astype(int)


def eventually(tab, script: str, is_right):
    """What a script gives once it is right: a busy machine draws late."""
    for _ in range(600):
        found = tab.page.evaluate(script)
        if is_right(found):
            break
        tab.page.wait_for_timeout(100)
    return found


def test_the_page_opens_offline_without_complaint(tab):
    assert tab.complaints() == []
    assert tab.page.locator("figure img").first.evaluate("image => image.naturalWidth") > 0
    assert not tab.page.locator(".still").is_visible()


def test_a_slider_moves_the_mesh_and_the_picture(tab):
    before = picture(tab)
    slide(tab, 0, 2.5)
    slide(tab, 2, -1.5)
    model = small_model()
    coefficients = np.array([2.5, 0.0, -1.5, 0.0]) * model.deviations[:4]
    np.testing.assert_allclose(positions(tab), model.instance(coefficients), atol=0.05)
    assert (np.abs(picture(tab) - before).max(axis=2) > 20).mean() > 0.01
    assert tab.page.locator("output").all_inner_texts() == ["+2.5 sd", "0.0 sd", "−1.5 sd", "0.0 sd"]
    tab.page.click("text=Reset to the mean")
    np.testing.assert_allclose(positions(tab), model.mean, atol=0.05)
    assert np.abs(picture(tab) - before).max() <= 2


def test_the_picture_is_drawn_only_when_something_changes(tab):
    frames = "document.querySelector('.model').modelView.view.frames"

    def comes_to_rest() -> bool:
        before = tab.page.evaluate(frames)
        tab.page.wait_for_timeout(500)
        return tab.page.evaluate(frames) == before

    assert any(comes_to_rest() for _ in range(30))
    before = tab.page.evaluate(frames)
    slide(tab, 1, 1)
    assert eventually(tab, frames, lambda now: now > before) > before


def test_playing_a_mode_moves_it_until_it_is_stopped(tab):
    tab.page.click("[data-play='1']")
    tab.page.wait_for_selector("output[for$='-1']:has-text('+')")
    tab.page.click("[data-play='1']")
    stopped = positions(tab)
    tab.page.wait_for_timeout(200)
    assert tab.page.get_attribute("[data-play='1']", "aria-pressed") == "false"
    assert np.array_equal(positions(tab), stopped)
    amount = float(tab.page.input_value("[data-mode='1']"))  # on its way to and fro it may just be 0
    model = small_model()
    np.testing.assert_allclose(
        stopped, model.instance(np.array([0.0, amount]) * model.deviations[:2]), atol=0.05
    )


def test_colours_show_the_distance_from_the_mean(tab):
    slide(tab, 0, 3)
    tab.page.select_option("[name=colour]", "distance")
    moved = 3 * np.linalg.norm(
        (small_model().basis[:, 0] * small_model().deviations[0]).reshape(-1, 3), axis=1
    )
    ticks = [float(text) for text in tab.page.locator(".bv-bar-tick").all_inner_texts()]
    assert ticks[-1] == 0
    assert moved.max() <= ticks[0] <= 2 * moved.max() + 1
    assert "mm" in tab.page.inner_text(".bv-bar-title")
    tab.page.select_option("[name=colour]", "outward")
    assert tab.page.locator(".bv-bar-tick").last.inner_text().startswith("−")
    tab.page.select_option("[name=colour]", "skin")
    assert not tab.page.locator(".bv-bar").is_visible()


def test_picking_finds_the_surface_at_the_clicked_place(tab):
    slide(tab, 0, 2)
    found = tab.page.evaluate(
        """() => {
          const view = document.querySelector(".model").modelView.view, box = view.canvas.getBoundingClientRect();
          const hits = [];
          for (const preset of ["front", "oblique-left", "below"]) {
            view.view(preset).render();
            for (const [u, v] of [[0.4, 0.5], [0.5, 0.5], [0.55, 0.45]]) {
              const [x, y] = [box.left + u * box.width, box.top + v * box.height], hit = view.pick(x, y);
              if (hit) hits.push({ ...hit, wanted: [x, y], shown: view.project(hit.point) });
            }
          }
          return { hits, miss: view.pick(box.left + 2, box.top + 2) };
        }"""
    )
    shape, faces = positions(tab), small_model().faces
    assert len(found["hits"]) >= 7
    assert found["miss"] is None
    for hit in found["hits"]:
        np.testing.assert_allclose(hit["shown"], hit["wanted"], atol=0.05)
        np.testing.assert_allclose(
            np.array(hit["barycentric"]) @ shape[faces[hit["face"]]], hit["point"], atol=1e-3
        )
        assert min(hit["barycentric"]) > -1e-5
        assert hit["mesh"] == "shape"


def test_a_click_from_the_front_meets_the_nearer_surface(tab):
    hit = tab.page.evaluate(
        """() => { const view = document.querySelector(".model").modelView.view;
          view.view("front").render();
          const box = view.canvas.getBoundingClientRect();
          return view.pick(box.left + box.width / 2, box.top + box.height / 2); }"""
    )
    model = small_model()
    near = np.linalg.norm((model.mean - hit["point"])[:, :2], axis=1) < 25
    assert hit["point"][2] > model.mean[near][:, 2].min() - 10


@pytest.mark.parametrize(
    ("preset", "left", "right"),
    [
        ("front", "Patient's right", "Patient's left"),
        ("below", "Patient's right", "Patient's left"),
        ("oblique-left", "Patient's right", "Patient's left"),
        ([180, 0], "Patient's left", "Patient's right"),  # from behind
    ],
)
def test_labels_of_the_sides_are_where_the_sides_are(tab, preset, left, right):
    model = small_model()
    ids = model.landmark_ids
    tab.page.evaluate(f"document.querySelector('.model').modelView.view.view({preset!r}).render()")
    (left_text, shown, left_at), (right_text, _, right_at), (_, middle, _) = tab.page.evaluate(LABELS)
    assert (left_text, right_text) == (left, right)
    assert left_at < right_at
    assert shown > 0.8
    assert middle < 0.1
    # The words agree with where the nipples are on the screen.
    ends = [
        tab.page.evaluate(
            "point => document.querySelector('.model').modelView.view.project(point)[0]",
            model.mean[ids[name]].tolist(),
        )
        for name in ("nipple_left", "nipple_right")
    ]
    assert (ends[0] > ends[1]) == (right_text == "Patient's left")


@pytest.mark.parametrize("side", ["left", "right"])
def test_from_the_side_the_label_names_the_side(tab, side):
    tab.page.click(f"[data-view='{side}']")
    (_, edges, _), _, (text, shown, _) = eventually(tab, LABELS, lambda labels: labels[2][1] > 0.9)
    assert text == f"Seen from patient's {side}"
    assert shown > 0.9
    assert edges < 0.1


def test_the_keyboard_turns_the_view_and_moves_sliders(tab):
    tab.page.focus(".bv-canvas")
    camera = "document.querySelector('.model').modelView.view.camera.position.toArray()"
    front = np.array(tab.page.evaluate(camera))
    tab.page.keyboard.press("ArrowLeft")
    turned = np.array(tab.page.evaluate(camera))
    tab.page.keyboard.press("+")
    nearer = np.array(tab.page.evaluate(camera))
    tab.page.keyboard.press("Home")
    assert np.linalg.norm(turned - front) > 50
    assert np.linalg.norm(nearer - turned) > 50
    np.testing.assert_allclose(tab.page.evaluate(camera), front, atol=1e-6)
    tab.page.focus("[data-mode='0']")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.input_value("[data-mode='0']") == "0.1"
    assert tab.page.get_attribute("[data-mode='0']", "aria-valuetext") == "+0.1 standard deviations"
    assert tab.page.get_attribute(".bv-canvas", "aria-label").startswith("The model")


def test_dragging_turns_the_view(tab):
    box = tab.page.locator(".bv-canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = picture(tab)
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x - 120, y, steps=4)
    tab.page.mouse.up()
    assert np.abs(picture(tab) - before).max() > 30
    assert tab.complaints() == []


def test_landmarks_follow_the_shape(tab):
    tab.page.check("[name=landmarks]")
    slide(tab, 0, 3)
    names = tab.page.locator(".bv-name").all_inner_texts()
    markers = tab.page.evaluate(
        "document.querySelector('.model').modelView.view.markers.map(m => [m.name, m.position])"
    )
    shape = small_model().instance([3 * small_model().deviations[0]])
    assert "nipple left" in names
    for name, place in markers:
        vertex = small_model().landmark_ids[name.replace(" ", "_")]
        np.testing.assert_allclose(place, shape[vertex], atol=0.05)


def test_the_record_can_be_saved_as_a_file(tab):
    with tab.page.expect_download() as saved:
        tab.page.click("text=Save as file")
    assert saved.value.suggested_filename == "study.json"
    with open(saved.value.path()) as file:
        assert re.sub(r"\s", "", file.read()) == '{"seed":7,"parameters":{"a":1}}'
    tab.page.click("text=Copy as JSON")
    tab.page.wait_for_selector("text=Copied.")
    assert tab.complaints() == []


def test_on_paper_the_mean_is_a_picture_and_everything_is_unfolded(tab):
    tab.page.evaluate(
        """() => addEventListener("beforeprint", () => { window.unfolded =
          [...document.querySelectorAll("details")].every(part => part.open); })"""
    )
    paper = tab.page.pdf(prefer_css_page_size=True)
    assert paper.startswith(b"%PDF")
    assert tab.page.evaluate("window.unfolded") is True
    tab.page.emulate_media(media="print")
    assert tab.page.locator(".still").is_visible()
    assert not tab.page.locator(".live").is_visible()
    assert not tab.page.locator(".controls").is_visible()


def test_without_scripts_the_page_can_be_read(browser, address):
    with browser.tab(address, java_script_enabled=False) as tab:
        assert tab.page.locator(".still").is_visible()
        assert not tab.page.locator(".controls").is_visible()
        assert tab.page.locator("h2:has-text('Again')").is_visible()


def test_without_webgl_the_picture_stays_and_a_note_says_why(browser, address):
    with browser.tab("about:blank") as tab:
        tab.page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
        tab.page.goto(address)
        tab.page.locator("figure.model").scroll_into_view_if_needed()
        tab.page.wait_for_selector(".bv-missing")
        assert "WebGL" in tab.page.inner_text(".bv-missing")
        assert tab.page.locator(".still").is_visible()
        assert tab.errors == []


@pytest.mark.parametrize("width", [1400, 820, 390])
def test_the_page_is_never_wider_than_the_screen(browser, address, width):
    with browser.tab(address, width=width) as tab:
        tab.page.locator("figure.model").scroll_into_view_if_needed()
        tab.page.wait_for_selector(".controls:not([hidden])")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        box = tab.page.locator(".bv-canvas").bounding_box()
        assert box["width"] >= 0.5 * min(width, 1000)


def test_every_column_of_a_comparison_is_seen_on_a_phone(browser, tmp_path):
    numbers = (Column(name, number=True) for name in ("scan_2023-05-01", "scan_2025-06-12", "change"))
    rows = (
        (
            "Half-chest width, right (tape)",
            "15.4 cm",
            "16.8 cm",
            "+1.5 \N{PLUS-MINUS SIGN} 1.2 cm",
            "within noise",
        ),
    )
    table = Table("Measures", ("measure", *numbers, ""), rows)
    write_page(tmp_path / "page.html", Page("Comparison", (Section("Measures", (table,)),)))
    with browser.tab((tmp_path / "page.html").as_uri(), width=390) as tab:
        inner, shown = tab.page.evaluate(
            "(box => [box.scrollWidth, box.clientWidth])(document.querySelector('.scroll'))"
        )
        assert inner <= shown


def test_text_that_looks_like_markup_cannot_run(browser, tmp_path):
    evil = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
    write_page(tmp_path / "evil.html", Page("Good", (Section(evil, (Text((evil,)),)),)))
    with browser.tab((tmp_path / "evil.html").as_uri()) as tab:
        assert tab.page.title() == "Good"
        assert tab.page.evaluate("document.images.length") == 0
        assert tab.complaints() == []
