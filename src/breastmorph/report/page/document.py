"""An HTML document that runs only its own scripts and can reach no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from breastmorph.foundation.showing import templates


def page_asset(name: str) -> str:
    """Text of a script or style sheet of the pages."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def document(
    template: str,
    title: str,
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    images: str = "data: blob:",
    **values: Any,
) -> str:
    """A document as text.

    Parameters
    ----------
    template : str
        A file beside this one that fills ``document.html.j2``.
    title : str
    styles, scripts : sequence of str
        Whole style sheets and scripts. The browser is told their hashes and to run nothing else, so markup that
        slipped in as somebody's text stays without effect.
    images : str
        Where pictures may come from.
    **values
        What else the template asks for.
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
    values |= {"title": title, "policy": policy, "styles": styles, "scripts": scripts}
    return templates().get_template(f"report/page/{template}").render(values)


def _hashes(texts: Sequence[str]) -> str:
    found = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{one}'" for one in found) or "'none'"
