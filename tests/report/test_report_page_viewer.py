"""The 3D view of the pages by itself, in a real browser: what it draws, picks and refuses."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.viewer import SCRIPTS, STYLES, asset
from browser import open_browser


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """A page with nothing but a view of a square of 100 mm at z = 0, facing forward; opened once for all tests."""
    path = tmp_path_factory.mktemp("bare") / "bare.html"
    scripts = "".join(f"<script>{asset(name)}</script>" for name in SCRIPTS)
    styles = "".join(f"<style>{asset(name)}</style>" for name in STYLES)
    path.write_text(
        f"""<!doctype html><meta charset="utf-8">{styles}<div id="v" style="width:400px;height:300px"></div>{scripts}
        <script>
        const square = z => new Float32Array([-50, -50, z, 50, -50, z, 50, 50, z, -50, 50, z]);
        const faces = new Uint32Array([0, 1, 2, 0, 2, 3]);
        const view = new BreastView(document.getElementById("v"), {{}});
        view.setMesh("near", square(0), faces, {{ colour: "#c00000" }}).view("front").render();
        const colourAt = (x, y) => {{
          view.render({{ fine: true }});
          const gl = view.renderer.getContext(), found = new Uint8Array(4), box = view.canvas;
          gl.readPixels(x * box.width, (1 - y) * box.height, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, found);
          return [...found.slice(0, 3)];
        }};
        </script>"""
    )
    with browser.tab(path.as_uri()) as tab:
        yield tab


@pytest.fixture
def bare(opened):
    """That page as it opens."""
    opened.page.reload()
    return opened


def test_the_nearest_of_several_meshes_is_picked_and_offsets_are_taken_off(bare):
    hit = bare.page.evaluate(
        """() => { view.setMesh("far", square(-40), faces, { offset: [0, 0, 60] });
          const [x, y] = view.project([10, 20, 20]); return view.pick(x, y); }"""
    )
    assert hit["mesh"] == "far"  # its offset brings it in front
    np.testing.assert_allclose(hit["point"], [10, 20, -40], atol=1e-3)
    hit = bare.page.evaluate(
        "() => { view.setStyle('far', { visible: false }); const [x, y] = view.project([10, 20, 0]);"
        " return view.pick(x, y) }"
    )
    assert hit["mesh"] == "near"
    np.testing.assert_allclose(hit["point"], [10, 20, 0], atol=1e-3)


def test_textures_stand_upright(bare):
    found = bare.page.evaluate(
        """() => {
          const image = document.createElement("canvas");
          image.width = image.height = 64;
          const context = image.getContext("2d");
          context.fillStyle = "#0000ff"; context.fillRect(0, 0, 64, 64);
          context.fillStyle = "#00ff00"; context.fillRect(0, 0, 32, 32);  // the upper left quarter
          view.setTexture("near", new Float32Array([0, 0, 1, 0, 1, 1, 0, 1]), image);
          return [colourAt(0.42, 0.35), colourAt(0.58, 0.35), colourAt(0.42, 0.65)];
        }"""
    )
    upper_left, upper_right, lower_left = found
    assert upper_left[1] > 150 > 60 > upper_left[2]
    assert upper_right[2] > 150 > 60 > upper_right[1]
    assert lower_left[2] > 150 > 60 > lower_left[1]
    assert bare.complaints() == []


def test_colours_of_vertices_overlay_and_removal(bare):
    found = bare.page.evaluate(
        """() => {
          const own = colourAt(0.5, 0.5);
          view.setColours("near", Uint8Array.from({ length: 12 }, (_, i) => i % 3 === 1 ? 255 : 0));
          const green = colourAt(0.5, 0.5);
          view.setColours("near", null);
          const back = colourAt(0.5, 0.5);
          view.setMesh("veil", square(5), faces, { colour: "#0000ff", opacity: 0.5 });
          const veiled = colourAt(0.5, 0.5);
          view.remove("veil").remove("near");
          return { own, green, back, veiled, empty: colourAt(0.5, 0.5) };
        }"""
    )
    assert found["own"] == found["back"]
    assert found["own"][0] > 3 * max(found["own"][1:])
    assert found["green"][1] > 3 * max(found["green"][0], found["green"][2])
    assert found["veiled"][0] > 60
    assert found["veiled"][2] > 60
    assert min(found["empty"]) > 220


@pytest.mark.parametrize(
    "wrong",
    [
        "view.setPositions('near', new Float32Array(9))",
        "view.setPositions('unknown', new Float32Array(12))",
        "view.setColours('near', new Uint8Array(4))",
        "view.setTexture('near', new Float32Array(5), document.createElement('canvas'))",
        "view.setMesh('bad', new Float32Array(9), new Uint32Array([0, 1, 3]))",
        "BreastColours.colour([1], { map: 'unknown' })",
    ],
)
def test_arrays_that_do_not_fit_are_refused(bare, wrong):
    message = bare.page.evaluate(
        f"() => {{ try {{ {wrong}; return '' }} catch (error) {{ return error.message }} }}"
    )
    assert len(message) > 10
    assert bare.page.evaluate("view.meshes.size") == 1


def test_colour_maps_reach_from_end_to_end(bare):
    found = bare.page.evaluate(
        "Array.from(BreastColours.colour([-5, 0, 10, 99, NaN], { min: 0, max: 10, map: 'viridis' }))"
    )
    low, start, end, high, missing = np.array(found).reshape(-1, 3)
    np.testing.assert_array_equal(low, start)
    np.testing.assert_array_equal(high, end)
    np.testing.assert_array_equal(start, [68, 1, 84])
    np.testing.assert_array_equal(end, [253, 231, 37])
    assert len(set(missing)) == 1


def test_without_a_browser_a_test_is_skipped_or_fails_as_asked(monkeypatch):
    monkeypatch.setenv("BREASTMORPH_BROWSER", "no-such-browser")
    monkeypatch.delenv("BREASTMORPH_NEED_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install the package chromium"), open_browser():
        pass
    monkeypatch.setenv("BREASTMORPH_NEED_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="install the package chromium"), open_browser():
        pass
