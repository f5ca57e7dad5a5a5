"""docs/benchmarks.md names what `make bench` runs, and every other benchmark."""

from __future__ import annotations

import ast
import re

from docs_world import ROOT

PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def run_by_make() -> set[str]:
    tree = ast.parse((ROOT / "benchmarks" / "all.py").read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (parts,) = [node.value for node in assigned if getattr(node.targets[0], "id", "") == "PARTS"]
    return {command.split()[0] for _, command in ast.literal_eval(parts)}


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+\.py)[^`]*`", text))


def test_the_first_table_is_what_make_bench_runs():
    table = PAGE.split("|---|---|---|")[1].split("\n\n")[0]
    assert named(table) == run_by_make()


def test_every_benchmark_is_named():
    there = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - {"all.py"}
    assert there <= named(PAGE)
