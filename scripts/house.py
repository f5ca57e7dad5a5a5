"""How large the house is: the table in docs/architecture.md, made anew.

    python scripts/house.py           # print today's figures
    python scripts/house.py --docs    # write them into the page
    python scripts/house.py --src old/src   # what can be counted of another tree

The way of a prediction is traced: ``breastmorph predict`` with the demo model on a phantom after a mastectomy.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import io
import pkgutil
import statistics
import sys
import tempfile
import tokenize
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import grimp
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house: python scripts/house.py --docs -->", "<!-- end of house -->"
# Commit 699fddd, before the rooms were joined; the way of a prediction as it was traced then.
BEFORE = {
    "files": 312,
    "lines of code": 28135,
    "lines of the median module": 114,
    "modules upstream of `cli.predict`": 115,
    "files on the way of a prediction": 79,
    "importers of the largest hub": 164,
}
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """Lines that hold code: no blank ones, comments or docstrings."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                held.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(held)


def figures(src: Path) -> dict[str, int]:
    """What can be counted without running anything."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((src / "breastmorph").rglob("*.py"))]
    if str(src) not in sys.path:
        sys.path.insert(0, str(src))
    graph = grimp.build_graph("breastmorph", exclude_type_checking_imports=True, cache_dir=None)
    importers = {name: len(graph.find_modules_that_directly_import(name)) for name in graph.modules}
    return {
        "files": len(texts),
        "lines of code": sum(map(code_lines, texts)),
        "lines of the median module": int(statistics.median(text.count("\n") for text in texts)),
        "modules upstream of `cli.predict`": len(graph.find_upstream_modules("breastmorph.cli.predict")),
        "importers of the largest hub": max(importers.values()),
    }


def passed_by(work: Callable[[], object]) -> set[Path]:
    """Files of the package of which a function is called while something is done."""
    import breastmorph

    package, passed = Path(breastmorph.__file__).parent, set()
    for module in pkgutil.walk_packages([str(package)], "breastmorph."):
        importlib.import_module(module.name)  # what runs while a module is loaded is not on the way

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            passed.add(frame.f_code.co_filename)

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {Path(name) for name in passed if Path(name).is_relative_to(package)}


def way_of_a_prediction() -> int:
    """How many files a raw scan passes on its way to the sheet of a prediction."""
    import breastmorph
    from breastmorph.cli import main

    def run(*words: object) -> None:
        result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
        if result.exit_code:
            raise SystemExit(result.output)

    with tempfile.TemporaryDirectory() as folder:
        cohort, model = Path(folder, "cohort"), Path(folder, "model.h5")
        run("phantom", "--n", 1, "--one-sided", 1, "--out", cohort)
        (marks,) = (cohort / "landmarks").iterdir()
        (scan,) = (cohort / "scans").iterdir()
        side = "left" if "nipple_right" in marks.read_text(encoding="utf-8") else "right"
        breastmorph.demo_model().save(model)
        words = (
            "predict",
            model,
            scan,
            "--landmarks",
            marks,
            "--missing",
            side,
            "--out",
            Path(folder, "out"),
        )
        return len(passed_by(lambda: run(*words)))


def table(now: dict[str, int]) -> str:
    """The figures beside those of before, as the page has them."""
    rows = [f"| {what} | {before:,} | {now[what]:,} |" for what, before in BEFORE.items()]
    return "\n".join(["| | before | now |", "|---|---|---|", *rows])


def main() -> None:
    """Count, and print or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--src", type=Path, help="Another tree.")
    options = parser.parse_args()
    now = figures(options.src or ROOT / "src")
    if options.src:
        print("\n".join(f"{what}: {value:,}" for what, value in now.items()))
        return
    now["files on the way of a prediction"] = way_of_a_prediction()
    print(table(now))
    if options.docs:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table(now)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
