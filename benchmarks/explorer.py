"""The explorer in a browser: slider to picture, measures' round trip, page ready after the command.

    python benchmarks/explorer.py [--model model.h5] [--peer http://127.0.0.1:8080]

Runs ``breastmorph explore`` with the demo model (30,328 vertices) or the one named, and headless Chromium with
software drawing. A slider is moved by a key; the picture counts as updated when a pixel of the canvas has changed.
``--peer`` measures the first slider of any other page (viser, trame) in exactly the same way.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIMITS = {"slider to picture": 100.0, "page ready": 3000.0}  # ms
REPEATS, STARTS = 50, 5
SWITCHES = (
    *("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# What the eye sees: the canvas, or the picture a server draws, made small and summed up.
PROBE = """
const context = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, options) {
  const drawn = String(kind).startsWith("webgl");
  return context.call(this, kind, drawn ? { ...options, preserveDrawingBuffer: true } : options);
};
window.pictureSum = () => {
  const small = window.smallCanvas ??= context.call(
    Object.assign(document.createElement("canvas"), { width: 160, height: 120 }), "2d", { willReadFrequently: true });
  let sum = 0;
  for (const picture of document.querySelectorAll("canvas, img")) {
    if (picture.clientWidth < 300 || picture.clientHeight < 200 || !picture.width) continue;
    small.drawImage(picture, 0, 0, 160, 120);
    for (const value of small.getImageData(0, 0, 160, 120).data) sum = (sum * 31 + value) | 0;
  }
  return sum;
};
window.untilChanged = look => new Promise(done => {
  const before = look();
  addEventListener("keydown", () => {
    const start = performance.now();
    const soon = () => requestAnimationFrame(() => setTimeout(ask));  // after everybody else has drawn this frame
    const ask = () => look() !== before ? done(performance.now() - start)
      : performance.now() - start > 20000 ? done(NaN) : soon();
    soon();
  }, { once: true, capture: true });
});
"""
PICTURE = "() => { window.waiting = untilChanged(pictureSum); }"
STRIP = "() => { window.waiting = untilChanged(() => document.querySelector('#strip').innerText); }"


@contextmanager
def explorer(words: list[str]) -> Iterator[str]:
    """The command in a process of its own; gives its address."""
    code = "from breastmorph.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", "--no-browser", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        file = re.findall(r"open file://(\S+),", process.stdout.readline())[0]
        yield re.findall(r"url=(http://[^\"]+)", Path(file).read_text())[0]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def keyed(page: Any, slider: Any, watch: str, repeats: int) -> list[float]:
    """Milliseconds from a key on the slider until what is watched has changed."""
    found = []
    for k in range(repeats):
        slider.focus()
        time.sleep(0.15)
        page.evaluate(watch)
        page.keyboard.press("ArrowRight" if (k // 10) % 2 == 0 else "ArrowLeft")
        found.append(page.evaluate("() => window.waiting"))
        if watch == STRIP:
            page.wait_for_timeout(300)
    return found


def summary(values: list[float]) -> str:
    """Median, and the ends: on a busy machine the best run is nearest to what an idle one does."""
    return f"median {statistics.median(values):6.0f} ms, best {min(values):6.0f}, worst {max(values):6.0f}"


def measure_peer(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(PROBE)
    page.goto(address)
    slider = page.locator("[role=slider], input[type=range]").first
    slider.wait_for()
    time.sleep(5)
    print(
        f"{address}: slider to picture {summary(keyed(page, slider, PICTURE, 20))}, load {os.getloadavg()[0]:.1f}"
    )


def measure(browser: Any, words: list[str]) -> bool:
    """Print the table; whether all limits hold."""
    starts, rows = [], {}
    for last in [False] * (STARTS - 1) + [True]:
        begin = time.perf_counter()
        with explorer(words) as address:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            page.add_init_script(PROBE)
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            starts.append(1000 * (time.perf_counter() - begin))
            if last:
                page.wait_for_selector("#strip-SN-NL")
                page.wait_for_timeout(3000)  # what the server prepares after the start is no part of this
                slider = page.locator("#mode-1")
                keyed(page, slider, PICTURE, 3)
                rows["slider to picture"] = keyed(page, slider, PICTURE, REPEATS)
                rows["slider to measures"] = keyed(page, slider, STRIP, 20)
                vertices = page.evaluate("() => explorer.model.mean.length / 3")
            page.close()
    rows["page ready"] = starts
    print(f"{vertices} vertices, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, values in rows.items():
        limit = f"  (limit {LIMITS[name]:.0f} ms)" if name in LIMITS else ""
        print(f"{name:20s} {summary(values)}{limit}")
    return all(statistics.median(rows[name]) <= limit for name, limit in LIMITS.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a model file instead of the demo model")
    parser.add_argument("--peer", help="address of another page with a slider")
    given = parser.parse_args()
    path = os.environ.get("BREASTMORPH_BROWSER") or shutil.which("chromium")
    if path is None:
        sys.exit("no Chromium found: install it, or name it with BREASTMORPH_BROWSER")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        if given.peer:
            measure_peer(browser, given.peer)
            return
        good = measure(browser, [given.model] if given.model else [])
        browser.close()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
