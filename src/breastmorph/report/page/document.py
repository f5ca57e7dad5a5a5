"""An HTML document that runs only its own scripts and can reach no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any


def page_asset(name: str) -> str:
    """Text of a script or style sheet of the pages."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def document(
    title: str, body: str, *, styles: Sequence[str], scripts: Sequence[str], images: str = "data: blob:"
) -> str:
    """A document as text.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        Markup; texts in it have to be escaped already.
    styles, scripts : sequence of str
        Whole style sheets and scripts. The browser is told their hashes and to run nothing else, so markup that
        slipped in as somebody's text stays without effect.
    images : str
        Where pictures may come from.
    """
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            f"img-src {images}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            *(f"<style>{style}</style>" for style in styles),
            "</head>",
            "<body>",
            body,
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def json_element(name: str, value: Any) -> str:
    """Data inside a document for its scripts: an element of the class ``name`` that no text in it can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f'<script type="application/json" class="{name}">{text.replace("<", chr(92) + "u003c")}</script>'


def _hashes(texts: Sequence[str]) -> str:
    found = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{one}'" for one in found) or "'none'"
