"""How large the house is: the table in docs/architecture.md, before (commit e73b6fc) and now.

    python scripts/house.py                       # print the table
    python scripts/house.py --docs                # write it into the page
    python scripts/house.py --src old-checkout    # the numbers of another checkout

Nothing enforces these numbers. How they are counted:

lines of code
    Lines with code: no blank lines, comments or docstrings. The core is ``src`` without ``paper`` and ``phantom``.
calls from `breastmorph register`, from `bm.register(scan)` to the first stage
    Functions of the package that are entered, one inside the other, between the function of the command (of Python)
    and the first stage of the method: the function that calls the first one of ``registration/rigid.py``. Traced with
    ``sys.setprofile`` while one phantom is registered in this process.
catalogues of sentences
    ``.po`` files, and tables of 15 texts or more (by their keys), most of which are sentences, in Python modules or in
    ``words*.js``.
private functions used once and short
    Functions and methods with a leading underscore, of at most six lines of code, whose name occurs in one other place.
numbers in functions; numeric constants of modules
    What stands outside the parameter dataclasses of the packages that compute (mask, mesh without its formats, scan,
    template, registration, batch, cohort, model without its files, clinical, evaluation): numeric literals except 0, 1,
    2, -1 and 0.5, powers of ten, indexes, slices, arguments of ``range``, axes and other integers given by keyword.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import re
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from types import FrameType

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house: python scripts/house.py --docs -->", "<!-- end of house -->"
# Of commit e73b6fc, by `python scripts/house.py --src CHECKOUT`.
BEFORE = {
    "lines of code, all of `src`": 41687,
    "without `paper` and `phantom`": 34729,
    "tests": 24661,
    "`api`": 745,
    "`batch`": 1148,
    "`cli`": 3458,
    "`clinical`": 4884,
    "`cohort`": 508,
    "`evaluation`": 2495,
    "`explorer`": 4875,
    "`foundation`": 3074,
    "`mesh`": 4037,
    "`model`": 2588,
    "`phantom`": 1619,
    "`registration`": 2074,
    "`report`": 3689,
    "`scan`": 2648,
    "`study`": 2961,
    "`template`": 477,
    "`viewer`": 6,
    "calls from `breastmorph register` to the first stage": 9,
    "catalogues of sentences": 6,
    "private functions used once and at most six lines": 152,
    "numbers in functions that compute": 545,
    "numeric constants of modules that compute": 463,
}
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_COMPUTES = (
    "mask.py",
    "mesh",
    "scan",
    "template",
    "registration",
    "batch",
    "cohort",
    "model",
    "clinical",
    "evaluation",
)
_SENTENCES = 15  # texts that make a table of them a catalogue
_SHORT = 6  # lines


def code_lines(text: str) -> int:
    """Lines that hold code: no blank ones, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def sizes(root: Path) -> dict[str, int]:
    """Lines of code of a checkout: of every package, of the core, of all, of the tests."""
    package = root / "src" / "breastmorph"
    found: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        found[path.relative_to(package).parts[0].removesuffix(".py")] += code_lines(path.read_text("utf-8"))
    # Before, the paper had no package of its own.
    apart = {"paper", "phantom", "study"}
    experiments = sum(
        code_lines(path.read_text("utf-8"))
        for folder in ("evaluation/experiments", "report/figures")
        for path in (package / folder).glob("*.py")
    )
    of_packages = {f"`{name}`": found[name] for name in sorted(found) if (package / name).is_dir()}
    return {
        "lines of code, all of `src`": sum(found.values()),
        "without `paper` and `phantom`": sum(n for name, n in found.items() if name not in apart)
        - experiments,
        "tests": sum(code_lines(path.read_text("utf-8")) for path in (root / "tests").rglob("*.py")),
        **of_packages,
    }


def catalogues(package: Path) -> int:
    """Stores of sentences."""
    found = len(list(package.rglob("*.po")))
    for path in package.rglob("words*.js"):
        found += (
            len(re.findall(r'^\s*"[^"]+":\s*$|^\s*"[^"]+": "', path.read_text("utf-8"), re.MULTILINE))
            >= _SENTENCES
        )
    for path in {*package.rglob("*.py")} - {package / "cli" / "__init__.py"}:  # which lists the commands
        found += any(_is_catalogue(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    return found


def _is_catalogue(node: ast.AST) -> bool:
    if not isinstance(node, ast.Dict) or len(node.values) < _SENTENCES:
        return False
    texts = [
        any(isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.count(" ") > 1
            for part in ast.walk(value))
        for value in node.values
    ]  # fmt: skip
    return sum(texts) > len(texts) / 2


def short_and_used_once(package: Path) -> list[str]:
    """Private functions that could stand where they are used."""
    names: Counter[str] = Counter()
    short: list[str] = []
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name):
                names[node.id] += 1
            elif isinstance(node, ast.Attribute):
                names[node.attr] += 1
            elif (
                isinstance(node, ast.FunctionDef)
                and node.name.startswith("_")
                and not node.name.endswith("__")
            ):
                lines = dedent(ast.get_source_segment(text, node, padded=True) or "")
                if code_lines(lines) <= _SHORT and not node.decorator_list:
                    short.append(node.name)
    return [name for name in short if names[name] == 1]


def loose_numbers(package: Path) -> tuple[int, int]:
    """How many numeric literals stand in functions, and how many in constants of modules."""
    in_functions = in_constants = 0
    for part in _COMPUTES:
        place = package / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if "files" in path.parts or path.name == "files.py":
                continue
            for node in ast.parse(path.read_text("utf-8")).body:
                count = len(list(_numbers(ast.Module([node], []))))
                if isinstance(node, ast.Assign | ast.AnnAssign):
                    in_constants += count
                else:
                    in_functions += count
    return in_functions, in_constants


def _numbers(node: ast.AST) -> Iterator[float]:
    for child in _counted(node):
        if isinstance(child, ast.Constant) and type(child.value) in (int, float):
            if child.value not in (0, 1, 2, 0.5) and not re.fullmatch(r"1(e[-+]\d+|0*)", f"{child.value:g}"):
                yield child.value
        else:
            yield from _numbers(child)


def _counted(node: ast.AST) -> Iterable[ast.AST]:
    """Parts of a node whose numbers count."""
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        return [one for one in node.body if isinstance(one, ast.FunctionDef)]
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            return []
        keywords = [one.value for one in node.keywords]
        whole = [one for one in keywords if isinstance(one, ast.Constant) and isinstance(one.value, int)]
        return [node.func, *node.args, *(one for one in keywords if one not in whole)]
    return ast.iter_child_nodes(node)


def calls_to_the_method(root: Path) -> tuple[int, int]:
    """How deep below the command's function, and below the Python function, the first stage is entered."""
    sys.path.insert(0, str(root / "src"))
    from click.testing import CliRunner

    import breastmorph
    from breastmorph.cli import main

    package = Path(breastmorph.__file__).parent
    if not package.is_relative_to(root):
        raise SystemExit(f"another checkout is imported: {package}")
    chains: list[list[tuple[Path, str]]] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        if (
            event != "call"
            or chains[-1:] != [[]]
            or Path(frame.f_code.co_filename) != package / "registration" / "rigid.py"
        ):
            return
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return  # the module itself is loaded
        above = frame.f_back
        while above is not None:
            file = Path(above.f_code.co_filename)
            if file.is_relative_to(package) and not above.f_code.co_name.startswith("<"):
                chains[-1].append((file, above.f_code.co_name))
            above = above.f_back

    def traced(work: Callable[[], object], file: Path, name: str) -> int:
        chains.append([])
        sys.setprofile(called)
        try:
            work()
        finally:
            sys.setprofile(None)
        return chains[-1].index((package / file, name))

    def run(*words: object) -> None:
        result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
        if result.exit_code:
            raise SystemExit(result.output)

    with tempfile.TemporaryDirectory() as folder:
        cohort, out = Path(folder, "cohort"), Path(folder, "out")
        run("phantom", "--n", 1, "--out", cohort)
        scans, landmarks = cohort / "scans", cohort / "landmarks"
        of_command = traced(
            lambda: run("register", scans, "--landmarks", landmarks, "--out", out, "--jobs", 1),
            Path("cli", "register.py"),
            "command",
        )
        (scan,) = breastmorph.load_scans(scans, landmarks)
        return of_command, traced(
            lambda: breastmorph.register(scan, progress=False), Path("api", "scans.py"), "register"
        )


def numbers_of(root: Path) -> dict[str, int]:
    """All numbers of a checkout."""
    package = root / "src" / "breastmorph"
    in_functions, in_constants = loose_numbers(package)
    of_command, of_function = calls_to_the_method(root)
    return {
        **sizes(root),
        "calls from `breastmorph register` to the first stage": of_command,
        "calls from `bm.register(scan)` to the first stage": of_function,
        "catalogues of sentences": catalogues(package),
        "private functions used once and at most six lines": len(short_and_used_once(package)),
        "numbers in functions that compute": in_functions,
        "numeric constants of modules that compute": in_constants,
    }


def table(now: dict[str, int]) -> str:
    """The numbers beside those of before, as the page has them."""
    rows = [
        f"| {what} | {BEFORE.get(what, 0):,} | {now.get(what, 0):,} |"
        for what in dict.fromkeys([*now, *BEFORE])
    ]
    return "\n".join(["| | before | now |", "|---|---|---|", *rows]).replace("| 0 |", "| - |")


def main() -> None:
    """Count, and print or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--src", type=Path, help="Another checkout.")
    options = parser.parse_args()
    now = numbers_of((options.src or ROOT).resolve())
    if options.src:
        print("\n".join(f'    "{what}": {number},' for what, number in now.items()))
        return
    print(table(now))
    if options.docs:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table(now)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
