"""Links of the pages that are read in the repository itself lead somewhere."""

from __future__ import annotations

import json
import re

import pytest

from docs_world import ROOT

FILES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
FILES += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb"))


def words_of(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    if not name.endswith(".ipynb"):
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("name", FILES)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)\s]+)\)", words_of(name))
    inside = [link for link in links if not link.startswith(("http://", "https://"))]
    broken = [link for link in inside if not ((ROOT / name).parent / link.split("#")[0]).exists()]
    assert not broken


def test_there_are_links_to_look_at():
    assert len(re.findall(r"\]\(docs/", words_of("README.md"))) > 15
