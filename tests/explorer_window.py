"""The explorer as people use it: the command in a process of its own, its page in a browser."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from browser import Browser, Tab


@contextmanager
def explore(*words: object) -> Iterator[Path]:
    """Run ``breastmorph explore`` until the end of the block; gives the file that always holds a fresh address."""
    code = "from breastmorph.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", "--no-browser", *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"open file://(\S+),", line)
        assert found is not None, f"no file in {line!r}"
        yield Path(found[1])
    finally:
        process.terminate()
        process.communicate(timeout=120)


def address_in(file: Path) -> str:
    """The address that works for the next browser."""
    found = re.search(r"url=(http://[^\"]+)", file.read_text())
    assert found is not None, file.read_text()
    return found[1]


@contextmanager
def window(browser: Browser, file: Path, **options: Any) -> Iterator[Tab]:
    """A tab with the page, once it shows the model."""
    with browser.tab(address_in(file), width=1280, height=860, **options) as tab:
        tab.page.wait_for_selector("body[data-ready]")
        yield tab


# Takes all scans, edits, kept shapes and notes of a session away. Scans of a folder are read again when opened next.
EMPTY = """async () => { const headers = { 'X-Session': sessionStorage.getItem('breastmorph-session'),
      'X-Token': localStorage.getItem('breastmorph-token') };
    const forget = scan => fetch(`api/scans/${scan}`, { method: 'DELETE', headers });
    const state = async () => (await fetch('api/state', { headers })).json();
    for (let { scan } = await state(); scan; { scan } = await state()) await forget(scan);
    if ((await state()).queue)
      for (const { scan } of (await (await fetch('api/queue', { headers })).json()).scans) await forget(scan);
    for (const thing of ['edit', 'kept']) await fetch(`api/${thing}`, { method: 'DELETE', headers });
    await fetch('api/notes', { method: 'POST', headers, body: JSON.stringify({ notes: {}, joined: true }) }); }"""
LEFT = """() => { const { cases, edit, kept, patient, prediction } = explorer.state;
    return JSON.stringify([cases, edit, kept, patient, prediction]) === '[[],null,null,null,null]'
      && explorer.stage.kept === null && explorer.tabs.model.scores().every(score => !score)
      ? null : JSON.stringify([explorer.state, explorer.remember()]); }"""


def begin_again(tab: Tab) -> None:
    """Bring a page to where it was after its start, in the same session: there are only so many."""
    tab.page.unroute_all()
    tab.page.set_viewport_size({"width": 1280, "height": 860})
    tab.page.evaluate(EMPTY)
    tab.page.reload()
    tab.page.wait_for_selector("body[data-ready]")
    left = tab.page.evaluate(LEFT)
    assert left is None, f"the next test would not stand alone: {left}"
    tab.errors.clear()  # what the page asked for while its scans were taken away
    tab.outside.clear()


def settled(page: Any) -> None:
    """Wait until nothing is being computed."""
    page.wait_for_function("() => !document.body.hasAttribute('aria-busy')")


def cut_off(page: Any) -> list[str]:
    """Controls of the page whose text or box does not fit its place."""
    return page.evaluate(
        """() => { const scrolls = e => { const row = e.closest('#tabs, #toolbar');  // on a phone they are pushed aside
            return row && getComputedStyle(row).overflowX === 'auto' && row.scrollWidth > row.clientWidth; };
        return [...document.querySelectorAll(
            '#panels button, #panels select, #toolbar button, [role=tab], #panels td, .caption')]
        .filter(e => e.offsetParent && (e.scrollWidth > e.clientWidth + 1 && e.tagName !== 'SELECT'
          || !scrolls(e) && e.getBoundingClientRect().right
            > e.closest('#panels, #scene, #tabs').getBoundingClientRect().right + 1))
        .map(e => e.id || e.textContent); }"""
    )


def unnamed(page: Any) -> list[str]:
    """Controls without a name for a screen reader."""
    return page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role=slider], [role=tab], [role=application]')]
        .filter(e => !(e.getAttribute('aria-label') || e.labels?.[0]?.textContent.trim() || e.textContent.trim()))
        .map(e => e.outerHTML.slice(0, 80))"""
    )


def in_pdf(data: bytes) -> tuple[str, list[np.ndarray]]:
    """The words of a PDF as matplotlib writes it, and its pictures in colour, (height, width, 3)."""
    words, pictures = [], []
    for found in re.finditer(rb"<<((?:[^<>]|<<[^<>]*>>)*)>>\s*stream\r?\n", data):
        packed = data[found.end() : data.index(b"endstream", found.end())]
        size = {name: int(value) for name, value in re.findall(rb"/(Width|Height) (\d+)", found[1])}
        if b"/Subtype /Image" in found[1] and b"/Colors 3" in found[1]:  # packed as in a PNG
            header = struct.pack(">IIBBBBB", size[b"Width"], size[b"Height"], 8, 2, 0, 0, 0)
            chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
            png = b"".join(
                struct.pack(">I", len(content))
                + kind
                + content
                + struct.pack(">I", zlib.crc32(kind + content))
                for kind, content in chunks
            )
            pictures.append(np.asarray(Image.open(io.BytesIO(b"\x89PNG\r\n\x1a\n" + png))))
            continue
        try:
            content = zlib.decompressobj().decompress(packed)
        except zlib.error:
            continue
        for text in re.findall(rb"((?:\((?:[^()\\]|\\.)*\)\s*-?[\d.]*\s*)+)\]?\s*T[jJ]", content, re.DOTALL):
            pieces = re.findall(rb"\(((?:[^()\\]|\\.)*)\)", text, re.DOTALL)
            words.append(re.sub(rb"\\(.)", rb"\1", b"".join(pieces)).decode("utf-16-be", "replace"))
    return " ".join(words), pictures
