"""docs/architecture.md says what is true of the tree."""

from __future__ import annotations

import re
import tomllib

import grimp

from docs_world import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "breastmorph"


def layers_of_the_page() -> list[set[str]]:
    table = PAGE.split("<!-- layers: from top to bottom -->")[1].split("<!-- end of layers -->")[0]
    return [
        set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines() if row.startswith("| `")
    ]


def test_the_layers_are_those_of_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    enforced = [{part.split(".")[-1] for part in layer.split(" | ")} for layer in contract["layers"]]
    assert layers_of_the_page() == enforced


def test_every_package_has_its_layer():
    there = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set().union(*layers_of_the_page()) == there - {"__init__", "__main__"}


def test_imports_go_down_the_list_only():
    graph = grimp.build_graph("breastmorph", exclude_type_checking_imports=True)
    height = {name: -row for row, layer in enumerate(layers_of_the_page()) for name in layer}
    seen = 0
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            one, other = (name.split(".")[1] if "." in name else "" for name in (importer, imported))
            if one in height and other in height and one != other:
                seen += 1
                assert height[other] < height[one], f"{importer} imports {imported}"
    assert seen > 100


def test_the_way_to_a_prediction_stays_short():
    graph = grimp.build_graph("breastmorph", exclude_type_checking_imports=True)
    assert len(graph.find_upstream_modules("breastmorph.cli.predict")) <= 65


def test_the_files_it_names_exist():
    named = set(re.findall(r"`((?:[\w]+/)*[\w]+\.(?:py|npz))`", PAGE))
    missing = []
    for name in named:
        near = list(ROOT.glob(name)) + list(PACKAGE.rglob(name))
        if not near:
            missing.append(name)
    assert len(named) > 20
    assert not missing
