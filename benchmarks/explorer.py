"""The explorer: slider to picture and measures in a browser; register, predict and tables over HTTP; four tabs; memory.

    python benchmarks/explorer.py [--model model.h5] [--only page,server,memory] [--scans 40] [--peer http://127.0.0.1:8080]

Runs ``breastmorph explore`` with the demo model (30,328 vertices) or the one named, and headless Chromium with
software drawing. A slider is moved by a key; the picture counts as updated when a pixel of the canvas has changed.
``server`` asks as the page does, with a phantom's scan: each row after the first time, then with four tabs at once.
``memory`` opens so many scans in one tab, registers each, predicts and edits, and looks at the resident memory.
``--peer`` measures the first slider of any other page (viser, trame) in exactly the same way.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measuring import resident

LIMITS = {  # ms
    "slider to picture": 60.0,
    "slider to measures": 200.0,
    "page ready": 3000.0,
    "register": 2500.0,
    "predict": 3000.0,
    "measures of the patient": 200.0,
    "measures as CSV": 1000.0,
    # One user's prediction does not hold up another's page: little more than alone.
    "measures while three tabs predict": 300.0,
    "shape while three tabs predict": 300.0,
}
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
def explorer(words: list[str]) -> Iterator[tuple[str, int]]:
    """The command in a process of its own; gives its address and the process."""
    code = "from breastmorph.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", "--no-browser", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        file = re.findall(r"open file://(\S+),", process.stdout.readline())[0]
        yield re.findall(r"url=(http://[^\"]+)", Path(file).read_text())[0], process.pid
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
        with explorer(words) as (address, _):
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
    return table(rows)


def table(rows: dict[str, list[float]]) -> bool:
    """Print rows; whether those with a limit hold it."""
    for name, values in rows.items():
        limit = f"  (limit {LIMITS[name]:.0f} ms)" if name in LIMITS else ""
        print(f"{name:32s} {summary(values)}{limit}", flush=True)
    return all(statistics.median(values) <= LIMITS[name] for name, values in rows.items() if name in LIMITS)


class Tab:
    """A tab that talks to the server as the page does."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.headers = port, {"X-Token": token}
        self.headers["X-Session"] = json.loads(self.ask("POST", "/api/sessions"))["session"]

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """One request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        sent = json.dumps(body).encode() if isinstance(body, dict) else body
        connection.request(method, path, sent, self.headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status >= 400:
            raise RuntimeError(f"{path}: {content.decode()[:300]}")
        return content

    def job(self, path: str, body: Any = None) -> None:
        """A long one, until it is done."""
        state = json.loads(self.ask("POST", path, body or {}))
        while state["state"] == "running":
            time.sleep(0.02)
            state = json.loads(self.ask("GET", f"/api/jobs/{state['job']}"))
        if state["state"] != "done":
            raise RuntimeError(f"{path}: {state['error']}")

    def open(self, scan: Path, marks: Path) -> str:
        """A scan with its landmarks; gives its key."""
        key = json.loads(self.ask("POST", f"/api/scans?name={scan.name}", scan.read_bytes()))["scan"]
        self.ask("POST", f"/api/scans/{key}/landmarks?name={marks.name}", marks.read_bytes())
        return str(key)


def enter(address: str) -> tuple[int, str]:
    """Port and token, for the code of an address."""
    port, code = int(re.findall(r":(\d+)/", address)[0]), address.partition("#code=")[2]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/enter", b"", {"X-Code": code})
    token = json.loads(connection.getresponse().read())["token"]
    while True:
        tab = Tab(port, token)
        if json.loads(tab.ask("GET", "/api/model"))["status"] == "ready":
            return port, token
        time.sleep(0.2)


def prepared(tab: Tab) -> None:
    """Wait until the server has made ready what it makes ready after the start: it takes memory, once."""
    while True:
        try:
            tab.ask("GET", "/api/edit?base=mean")
            break
        except RuntimeError:  # still preparing
            time.sleep(0.5)
    tab.ask("POST", "/api/measures", {"shape": {"kind": "mean"}, "tape": True})


def timed(work: Any, repeats: int) -> list[float]:
    """Milliseconds of each time but the first, in which things are prepared."""
    found = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - begin))
    return found[1:]


def measure_server(words: list[str], scan: Path, marks: Path) -> bool:
    """Register, predict, measures and tables of one tab, then with three others at work."""
    with explorer(words) as (address, _):
        port, token = enter(address)
        tab = Tab(port, token)
        key = tab.open(scan, marks)
        shape = {"shape": {"kind": "patient"}}
        rows = {"register": timed(lambda: tab.job(f"/api/scans/{key}/register"), 3)}
        rows["predict"] = timed(lambda: tab.job("/api/predict", {"side": "right"}), 3)
        rows["measures of the patient"] = timed(lambda: tab.ask("POST", "/api/measures", shape), 10)
        rows["measures as CSV"] = timed(
            lambda: tab.ask("POST", "/api/download/measures", {"shapes": [{"kind": "patient"}]}), 3
        )
        good = table(rows)
        others = [Tab(port, token) for _ in range(3)]
        for other in others:
            other.job(f"/api/scans/{other.open(scan, marks)}/register")
        working = [
            threading.Thread(target=timed, args=(lambda o=other: o.job("/api/predict", {"side": "left"}), 2))
            for other in others
        ]
        for one in working:
            one.start()
        mean = {"shape": {"kind": "mean"}}
        good &= table(
            {
                "measures while three tabs predict": timed(
                    lambda: tab.ask("POST", "/api/measures", mean), 10
                ),
                "shape while three tabs predict": timed(lambda: tab.ask("POST", "/api/shape", shape), 10),
            }
        )
        for one in working:
            one.join()
    return good


def measure_memory(words: list[str], scan: Path, marks: Path, scans: int) -> bool:
    """Memory of the server while one tab works on patient after patient: below 2 GB."""
    with explorer(words) as (address, process):
        tab = Tab(*enter(address))
        prepared(tab)
        print(f"the model prepared: {resident(process):6.0f} MB", flush=True)
        seen = []
        for k in range(scans):
            key = tab.open(scan, marks)
            tab.ask("GET", f"/api/scans/{key}/geometry")
            tab.job(f"/api/scans/{key}/register")
            tab.job("/api/predict", {"side": "right"})
            features = json.loads(tab.ask("GET", "/api/edit?base=patient"))["features"]
            now = next(one["value"] for one in features if one["name"] == "SN-NL")
            wish = {"name": "SN-NL", "value": now + 3.0, "unit": "mm"}
            tab.ask("POST", "/api/edit", {"base": {"kind": "patient"}, "hold": [], "wishes": [wish]})
            if k + 1 in (1, 10, 20, 30, scans):
                seen.append(resident(process))
                print(f"{k + 1:4d} patients worked on: {seen[-1]:6.0f} MB", flush=True)
    return seen[-1] < 2048.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a model file instead of the demo model")
    parser.add_argument("--peer", help="address of another page with a slider")
    parser.add_argument("--only", default="page,server,memory", help="what to measure")
    parser.add_argument("--scans", type=int, default=40, help="worked on for the memory")
    given = parser.parse_args()
    words, only, good = [given.model] if given.model else [], given.only.split(","), True
    if not given.peer and {"server", "memory"} & set(only):
        from breastmorph.phantom.scanner import write_cohort

        with tempfile.TemporaryDirectory() as place:
            write_cohort(Path(place), n=1, seed=5)
            scan, marks = next(Path(place).glob("scans/*.ply")), next(Path(place).glob("landmarks/*.json"))
            if "server" in only:
                good &= measure_server(words, scan, marks)
            if "memory" in only:
                good &= measure_memory(words, scan, marks, given.scans)
    if not given.peer and "page" not in only:
        sys.exit(0 if good else 1)
    path = os.environ.get("BREASTMORPH_BROWSER") or shutil.which("chromium")
    if path is None:
        sys.exit("no Chromium found: install it, or name it with BREASTMORPH_BROWSER")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        if given.peer:
            measure_peer(browser, given.peer)
            return
        good &= measure(browser, words)
        browser.close()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
