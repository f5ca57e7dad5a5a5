"""Headless Chromium for tests of our pages.

The fixture ``browser`` (one for a test module, see conftest.py) hands it to tests::

    def test_page(browser):
        with browser.tab(page_file.as_uri()) as tab:
            tab.page.click("text=Reset")
            assert tab.complaints() == []

Pages that forbid ``eval`` also forbid playwright's ``wait_for_function``: wait for an element instead.

The browser is Debian's ``chromium`` or what the variable BREASTMORPH_BROWSER names. Without one the test is
skipped; with BREASTMORPH_NEED_BROWSER=1 it fails instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

PATIENCE = 120_000  # ms; a busy machine must not fail a test
NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
)


def find_browser() -> str | None:
    """Path of a browser that can be started without a screen."""
    named = os.environ.get("BREASTMORPH_BROWSER")
    if named:
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Tab:
    """One page with what went wrong on it.

    Attributes
    ----------
    page : playwright.sync_api.Page
    errors : list of str
        Errors and warnings on the console, and exceptions that nobody caught.
    outside : list of str
        Addresses asked for that are neither in the page itself nor on its own server.
    """

    page: Any
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        """Everything that should not have happened."""
        return [*self.errors, *(f"asked for {address}" for address in self.outside)]


@dataclass
class Browser:
    """A running browser."""

    chromium: Any

    @contextmanager
    def tab(self, address: str, *, width: int = 1280, height: int = 900, **options: Any) -> Iterator[Tab]:
        """Open a page in a context of its own; ``options`` as in playwright's ``new_context``."""
        context = self.chromium.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        try:
            tab = Tab(context.new_page())
            own = urlsplit(address)

            def asked(url: str) -> None:
                parts = urlsplit(url)
                same = parts.netloc == own.netloc and own.hostname in ("127.0.0.1", "localhost", "::1")
                if parts.scheme not in ("file", "data", "blob") and not same:
                    tab.outside.append(url)

            tab.page.on("request", lambda request: asked(request.url))
            tab.page.on("websocket", lambda socket: asked(socket.url))
            tab.page.on("pageerror", lambda error: tab.errors.append(f"uncaught: {error}"))
            tab.page.on(
                "console",
                lambda line: (
                    tab.errors.append(f"{line.type}: {line.text} ({line.location.get('url', '')})")
                    if line.type in ("error", "warning") and not _of_software_drawing(line.text)
                    else None
                ),
            )
            tab.page.goto(address)
            yield tab
        finally:
            context.close()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser, or skip the test where there is none."""
    path = find_browser()
    if path is None:
        reason = "no Chromium found; install the package chromium or set BREASTMORPH_BROWSER to its path"
        if os.environ.get("BREASTMORPH_NEED_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=list(SWITCHES))
        try:
            yield Browser(chromium)
        finally:
            chromium.close()


def _of_software_drawing(text: str) -> bool:
    """Chromium's remark that reading pixels back from WebGL is slow; it says nothing about the page."""
    return "GPU stall due to ReadPixels" in text
