"""A language for tests, whose words are the English ones backwards, as a translator's catalogue makes it."""

from __future__ import annotations

import json
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

CODE = "eo"


def invent(locale: Path, *texts: str, **page: str) -> None:
    """Catalogues of some texts, and the page's own."""
    catalogue = Catalog(CODE)
    for text in texts:
        catalogue.add(text, text[::-1])
    catalogue.add("1,234.5", "1'234,5", context="number")
    folder = locale / CODE / "LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "breastmorph.mo").open("wb") as file:
        write_mo(file, catalogue)
    (folder / "page.json").write_text(json.dumps(page), encoding="utf-8")
