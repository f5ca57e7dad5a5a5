"""docs/architecture.md shows the layers that import-linter enforces, and names files that exist."""

from __future__ import annotations

import re
import tomllib

from docs_world import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "breastmorph"


def test_the_layers_are_those_of_the_contract():
    table = PAGE.split("<!-- layers: from top to bottom -->")[1].split("<!-- end of layers -->")[0]
    shown = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    assert [set(names) for names in shown] == [set(layer.split(" | ")) for layer in contract["layers"]]


def test_the_files_it_names_exist():
    named = set(re.findall(r"`((?:[\w]+/)*[\w]+\.(?:py|npz))`", PAGE))
    assert len(named) > 20
    assert [name for name in named if not [*ROOT.glob(name), *PACKAGE.rglob(name)]] == []
