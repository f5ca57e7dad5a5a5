"""Make the pictures of the explorer in docs/pictures: the demo model and phantom scans in headless Chromium.

    python scripts/explorer_pictures.py

Everybody on them is synthetic.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from breastmorph.foundation.files import write_file
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.phantom.scanner import write_cohort
from breastmorph.scan.landmark_files import load_landmarks

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "tests"))

from browser import open_browser  # noqa: E402 - needs the path above
from explorer_window import address_in, explore, settled  # noqa: E402

OUT = HERE / "docs" / "pictures"
PATIENCE = 120_000  # ms
_COLOURS = (
    256  # a palette: half of the bytes; with k-means also the few pixels of a colour bar keep their colours
)


def main(out: Path) -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as place, open_browser() as browser:
        cohort = Path(place) / "cohort"
        write_cohort(cohort, n=4, seed=5, one_sided=1)
        with explore() as file:
            with browser.tab(address_in(file), width=1440, height=900) as tab:
                shown = Camera(tab.page, out)
                model(shown)
                editing(shown)
                patient(shown, *one_sided(cohort))
            with browser.tab(address_in(file), width=820, height=1180) as tab:
                compare(Camera(tab.page, out), "tablet")
        with explore("--by-hand") as file, browser.tab(address_in(file), width=1440, height=900) as tab:
            picking(Camera(tab.page, out), *one_sided(cohort))
        clinic = Path(place) / "clinic"
        whole = [one for one in sorted(cohort.glob("scans/*.ply")) if one != one_sided(cohort)[0]]
        for folder in ("spring", "autumn"):
            (clinic / folder).mkdir(parents=True)
            for scan in whole:
                shutil.copy(scan, clinic / folder)
        with explore(clinic) as file, browser.tab(address_in(file), width=1440, height=900) as tab:
            queue(Camera(tab.page, out))


class Camera:
    """A page whose pictures are kept, each once it has come to rest."""

    def __init__(self, page: Any, out: Path) -> None:
        self.page, self.out = page, out
        page.set_default_timeout(PATIENCE)
        page.wait_for_selector("body[data-ready]")

    def take(self, name: str, *, while_busy: bool = False) -> None:
        """Keep a picture."""
        if not while_busy:
            for _ in range(2):  # one thing may follow another
                settled(self.page)
                self.page.wait_for_timeout(2500)  # measures come, and the picture gets sharp
            settled(self.page)
        small = io.BytesIO()
        Image.open(io.BytesIO(self.page.screenshot())).convert("RGB").quantize(
            _COLOURS, kmeans=4, dither=Image.Dither.NONE
        ).save(small, "PNG", optimize=True)
        write_file(self.out / f"explorer-{name}.png", small.getvalue())
        print(f"explorer-{name}.png {len(small.getvalue()) / 1024:.0f} KB")


def model(shown: Camera) -> None:
    """Sliders of the model, and two shapes beside each other."""
    page = shown.page
    page.wait_for_selector("#strip-SN-NL")
    page.fill("#mode-1", "1.2")
    page.fill("#mode-3", "-1")
    shown.take("model")
    page.click("#model-reset")
    compare(shown, "compare")
    page.select_option("#colouring", "plain")
    page.click("#forget")
    page.click("#model-reset")


def compare(shown: Camera, name: str) -> None:
    """The average beside another shape."""
    page = shown.page
    page.wait_for_selector("#strip-SN-NL")
    page.click("#keep")
    page.fill("#mode-1", "1.5")
    page.select_option("#colouring", "distance")
    shown.take(name)


def editing(shown: Camera) -> None:
    """A wish in centimetres, and one that is refused."""
    page = shown.page
    page.click("#tab-measures")
    page.wait_for_selector("#edit-SN-NL-number")
    page.wait_for_selector("#row-SN-NL")
    now = float(page.input_value("#edit-SN-NL-number"))
    page.fill("#edit-SN-NL-number", f"{now - 1.5:.1f}")
    page.keyboard.press("Enter")
    page.wait_for_selector("#edit-changes:not([hidden])")
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'edit'")
    page.select_option("#colouring", "moved")
    page.locator("#edit-hold").scroll_into_view_if_needed()
    shown.take("editing")
    page.select_option("#colouring", "plain")
    page.fill("#edit-SN-NL-number", "3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#error:not([hidden])")
    shown.take("refused")
    page.click("#error-close")
    page.click("#edit-reset")
    settled(page)


def one_sided(cohort: Path) -> tuple[Path, Path]:
    """Scan and landmarks of the one without a breast: her landmark file has fewer points."""
    marks = min(cohort.glob("landmarks/*.json"), key=lambda path: path.read_text().count("["))
    return cohort / "scans" / f"{marks.stem}.ply", marks


def patient(shown: Camera, scan: Path, marks: Path) -> None:
    """A scan from its landmarks to the predicted breast."""
    page = shown.page
    page.click("#tab-scan")
    page.set_input_files("#scan-files", str(scan))
    page.wait_for_function("() => Object.keys(explorer.tabs.scan.state()?.found ?? {}).length > 4")
    shown.take("proposed")
    with page.expect_response("**/landmarks*"):
        page.set_input_files("#scan-picker [data-part=file-input]", str(marks))
    page.wait_for_timeout(500)
    settled(page)
    if page.is_visible("#scan-picker [data-part=suggestion] button"):
        page.click("#scan-picker [data-part=suggestion] button")
    page.wait_for_function("() => explorer.tabs.scan.state().complete")
    page.click("#scan-register")
    page.wait_for_selector("#busy:not([hidden])")
    page.wait_for_function("() => document.querySelector('#busy-step').textContent.startsWith('registering')")
    page.wait_for_timeout(1000)
    shown.take("busy", while_busy=True)
    page.wait_for_selector("#scan-predict")
    shown.take("registered")
    page.click("#scan-predict")
    page.wait_for_selector("#missing-predict:not([disabled])")
    page.click("#missing-predict")
    page.wait_for_selector("#missing-result:not([hidden])")
    page.wait_for_function("() => explorer.stage.shape.spec.kind === 'prediction'")
    shown.take("missing")
    page.click("#tab-compare")
    page.wait_for_selector("#compare-shape option >> nth=2", state="attached")
    page.select_option("#compare-other", index=1)
    page.wait_for_function("() => explorer.stage.kept")
    page.check("[name=compare-map][value=difference]")
    page.check("#lines-show")
    page.wait_for_selector("#lines-table:not([hidden])")
    page.locator("#compare-how").scroll_into_view_if_needed()
    shown.take("lines")
    page.click("#tab-save")
    shown.take("save")
    page.click("#tab-missing")
    paint(shown)


def paint(shown: Camera) -> None:
    """The lower half of the breast that is there, stroke by stroke."""
    page = shown.page
    page.check("[name=missing][value=paint]")
    page.wait_for_function("() => explorer.stage.colouring === 'painted'")
    box = page.locator(".bv-canvas").bounding_box()
    for stroke in ((0.29, 0.70), (0.41, 0.70)), ((0.30, 0.76), (0.40, 0.76)), ((0.31, 0.82), (0.38, 0.82)):
        for k, (x, y) in enumerate(stroke):
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
            (page.mouse.up if k else page.mouse.down)()
    page.locator("#panel-missing h2").scroll_into_view_if_needed()
    shown.take("painting")


def picking(shown: Camera, scan: Path, marks: Path) -> None:
    """The first two landmarks of a scan, set by hand."""
    page = shown.page
    page.click("#tab-scan")
    page.set_input_files("#scan-files", str(scan))
    page.wait_for_selector("#scan-body:not([hidden])")
    page.wait_for_function("() => explorer.stage.scan?.positions")
    there = np.array(page.evaluate("Array.from(explorer.stage.scan.positions)")).reshape(-1, 3)
    to_shown = Similarity.fit(load_mesh(scan).vertices, there)
    known = load_landmarks(marks).transformed(to_shown)
    for name in ("sternal_notch", "xiphoid"):
        page.mouse.click(*page.evaluate("point => explorer.stage.view.project(point)", known[name].tolist()))
        page.wait_for_function("name => name in explorer.tabs.scan.state().landmarks", arg=name)
    shown.take("picking")


def queue(shown: Camera) -> None:
    """A folder whose landmarks the program found, and how good its registrations are."""
    page = shown.page
    page.select_option("#folder-choice", index=1)
    page.wait_for_selector(
        "#folder-accept:not([hidden])", timeout=8 * PATIENCE
    )  # it works behind everything else
    page.wait_for_selector("#folder-proposing", state="hidden", timeout=8 * PATIENCE)
    shown.take("folder")
    page.click("#folder-accept")
    page.wait_for_selector("#folder-register:not([disabled])")
    page.click("#folder-register")
    page.wait_for_selector("#folder-quality:not([hidden])")
    settled(page)
    page.locator("#folder-build").scroll_into_view_if_needed()
    shown.take("quality")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
