"""What `make lint` checks beside code: that the files around the code agree with each other and with the code.

    python scripts/consistency.py

Every check yields a complaint for each thing that does not agree; any complaint fails the lint.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PACKAGE, DOCS = ROOT / "src" / "breastmorph", ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SOURCES = sorted(PACKAGE.rglob("*.py"))

Complaints = Iterator[str]


def text_of(*parts: str) -> str:
    """The text of a file of the repository."""
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def script(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def differing(values: dict[str, Any]) -> Complaints:
    """A complaint unless all the named values are equal."""
    if len({json.dumps(value, sort_keys=True) for value in values.values()}) > 1:
        yield "these should agree: " + "; ".join(f"{name}: {value}" for name, value in values.items())


def python_versions() -> list[str]:
    """The versions of Python that the package says it runs on."""
    kinds = PROJECT["project"]["classifiers"]
    return [kind.rsplit(" ", 1)[1] for kind in kinds if re.search(r"Python :: 3\.\d+$", kind)]


def package_version() -> str:
    """The version, read without importing the package."""
    found = re.search(r'^__version__ = "(.+)"', text_of("src", "breastmorph", "__init__.py"), re.MULTILINE)
    return found[1] if found else "unknown"


def metadata() -> Complaints:
    """Name, version, description and licence are the same in every file that states them."""
    project, meta = PROJECT["project"], json.loads(text_of("codemeta.json"))
    cited = yaml.safe_load(text_of("CITATION.cff"))
    yield from differing({"the package's version": package_version(), "codemeta.json": meta["version"]})
    yield from differing({"codemeta.json": meta["name"], "CITATION.cff": cited["title"]})
    yield from differing(
        {
            "codemeta.json": meta["description"],
            "pyproject.toml": project["description"],
            "CITATION.cff": cited["abstract"].removesuffix("."),
        }
    )
    licence = {"codemeta.json": meta["license"].removeprefix("https://spdx.org/licenses/")}
    yield from differing({**licence, "pyproject.toml": project["license"], "CITATION.cff": cited["license"]})
    authors = {"codemeta.json": meta["author"], "CITATION.cff": cited["authors"]}
    yield from differing({name: [author["name"] for author in listed] for name, listed in authors.items()})
    yield from differing({"codemeta.json": meta["keywords"], "pyproject.toml": project["keywords"]})
    yield from differing(
        {
            "codemeta.json": meta["referencePublication"]["name"],
            "CITATION.cff": cited["preferred-citation"]["title"],
        }
    )
    platforms = [f"CPython {version}" for version in python_versions()]
    yield from differing({"codemeta.json": meta["runtimePlatform"], "pyproject.toml": platforms})
    language = meta["programmingLanguage"]["version"]
    yield from differing({"codemeta.json": language, "pyproject.toml": project["requires-python"]})
    yield from differing({"requires-python": language, "classifiers": f">={python_versions()[0]}"})
    sections = re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
    yield from differing({"CHANGELOG.md": sections[:2], "expected": ["Unreleased", package_version()]})


def workflows() -> Complaints:
    """Workflows have no rights and no secrets, try every Python and system, and call targets that exist."""
    jobs: dict[str, Any] = {}
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        found = yaml.safe_load(text)
        jobs |= found["jobs"]
        if found["permissions"] != {"contents": "read"} or any(
            "permissions" in job for job in found["jobs"].values()
        ):
            yield f"{path.name}: a workflow may read the contents and nothing else"
        if "secrets" in text.replace("No secrets", "") or "pull_request_target" in text:
            yield f"{path.name}: names secrets, or runs a stranger's change with our rights"
        for action in re.findall(r"uses: (\S+)", text):
            if not re.fullmatch(r"actions/[\w-]+@v\d+", action):
                yield f"{path.name}: {action} is not one of the platform's own actions"
        for name, job in found["jobs"].items():
            if "timeout-minutes" not in job:
                yield f"{path.name}: {name} has no limit of time"
    grids = {name: job["strategy"]["matrix"] for name, job in jobs.items() if "strategy" in job}
    for name, grid in grids.items():
        yield from differing({f"workflow {name}": grid["python"], "pyproject.toml": python_versions()})
        systems = [system.split("-")[0] for system in grid["os"]]
        yield from differing({f"workflow {name}": systems, "expected": ["ubuntu", "macos", "windows"]})
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    commands += text_of(".ci", "run").splitlines()
    words = [word for command in commands if command.startswith("make ") for word in command.split()[1:]]
    made = {word for word in words if not word.startswith("-") and "=" not in word}
    for word in sorted(made - set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))):
        yield f"the Makefile has no target {word}, which a workflow or .ci/run calls"


def make_and_hooks() -> Complaints:
    """Hooks call the tools of `make lint`, and `make quick` leaves out every marker of tests."""
    hooks = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    if [repository["repo"] for repository in hooks] != ["local"]:
        yield "a hook would be fetched"
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", text_of("Makefile"), re.MULTILINE)
    called = {hook["entry"].split()[0] for hook in hooks[0]["hooks"] if hook["language"] == "system"}
    tools = re.findall(r"\$\(BIN\)/([\w-]+)", lint[1] if lint else "")
    yield from differing(
        {"hooks": sorted(called), "make lint": sorted({f".venv/bin/{tool}" for tool in tools})}
    )
    markers = {line.split(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    quick = re.search(r"^QUICK := -m \"(.*)\"$", text_of("Makefile"), re.MULTILINE)
    left_out = set((quick[1] if quick else "").split(" and "))
    yield from differing(
        {"make quick": sorted(left_out), "markers": sorted(f"not {marker}" for marker in markers)}
    )


def issue_forms() -> Complaints:
    """Opening an issue requires the statement that nothing comes from a patient."""
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        promised = [part for part in form["body"] if part.get("id") == "no-patient"]
        if not promised or promised[0]["attributes"]["options"][0]["required"] is not True:
            yield f"{path.name}: does not require the statement that nothing comes from a patient"
        if "Never attach data of a patient" not in form["body"][0]["attributes"]["value"]:
            yield f"{path.name}: does not begin with the warning about patients' data"


def architecture() -> Complaints:
    """The layers of docs/architecture.md are those of the contract, and the files that it names exist."""
    page = text_of("docs", "architecture.md")
    table = page.split("<!-- layers: from top to bottom -->")[1].split("<!-- end of layers -->")[0]
    rows = [
        set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines() if row.startswith("| `")
    ]
    contract = PROJECT["tool"]["importlinter"]["contracts"][0]
    enforced = [{part.split(".")[-1] for part in layer.split(" | ")} for layer in contract["layers"]]
    yield from differing(
        {"docs/architecture.md": [*map(sorted, rows)], "pyproject.toml": [*map(sorted, enforced)]}
    )
    for name in sorted(set(re.findall(r"`((?:[\w]+/)*[\w]+\.(?:py|npz))`", page))):
        if not [*ROOT.glob(name), *PACKAGE.rglob(name)]:
            yield f"docs/architecture.md names {name}, which does not exist"


def links() -> Complaints:
    """Links of the pages that are read in the repository itself lead somewhere."""
    names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
    for path in [*(ROOT / name for name in names), *sorted((ROOT / "notebooks").glob("*.ipynb"))]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if (
                not link.startswith(("http://", "https://"))
                and not (path.parent / link.split("#")[0]).exists()
            ):
                yield f"{path.name}: {link} leads nowhere"


def quoted_messages() -> Complaints:
    """The messages that docs/faq.md quotes are the program's."""
    lines = [line for line in text_of("docs", "faq.md").splitlines() if line.startswith("| `")]
    quoted = [part for line in lines for part in re.findall(r"`([^`]+)`", line.split(" | ")[0])]
    texts = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(re.sub(r"{[^{}]*}", "…", node.value))
                texts.append(node.value)
    program = "\n".join(texts)
    for message in quoted:
        if message not in program:
            yield f"docs/faq.md quotes {message!r}, which the program does not say"


def benchmarks() -> Complaints:
    """docs/benchmarks.md names every benchmark, and its first table is what `make bench` runs."""
    page = text_of("docs", "benchmarks.md")

    def named(text: str) -> set[str]:
        return set(re.findall(r"`(\w+\.py)[^`]*`", text))

    run = {command.split()[0] for _, command in script(ROOT / "benchmarks" / "all.py").PARTS}
    table = named(page.split("|---|---|---|")[1].split("\n\n")[0])
    yield from differing({"docs/benchmarks.md": sorted(table), "make bench": sorted(run)})
    for name in sorted({path.name for path in (ROOT / "benchmarks").glob("*.py")} - {"all.py"} - named(page)):
        yield f"docs/benchmarks.md does not name {name}"


def measured_tables() -> Complaints:
    """The tables of the paper and of the docs hold the numbers that were computed, and no others."""
    numbers, kept = (
        script(ROOT / "scripts" / "paper_numbers.py"),
        json.loads(text_of("paper", "numbers.json")),
    )
    runs, models = (json.loads(text_of("benchmarks", f"{name}.json")) for name in ("peers", "models"))
    again = "run scripts/paper_numbers.py"
    if kept["peers"] != numbers.from_peers(runs) or kept["models"] != numbers.from_models(models):
        yield f"paper/numbers.json is not made of benchmarks/*.json: {again}"
    if numbers.rendered(kept) != text_of("paper", "paper.md"):
        yield f"paper/paper.md is not made of paper/numbers.json: {again}"
    for name, page in numbers.PAGES.items():
        begin, end = numbers.marks(name)
        shown = page.read_text(encoding="utf-8").split(begin)[1].split(end)[0]
        if shown.strip() != numbers.markdown(kept["study"]["tables"][name]):
            yield f"{page.name}: the table {name} is not that of paper/numbers.json: {again}"
    body = re.sub(
        r"{{.*?}}|`[^`]*`|\[@[^]]*\]|@\w+|3D", "", text_of("paper", "paper.md.j2").split("# Summary")[1]
    )
    for figure in re.findall(r"\d+", body):
        yield f"paper/paper.md.j2: {figure} is written by hand"
    known = set(re.findall(r"^@\w+{(\w+),", text_of("paper", "paper.bib"), re.MULTILINE))
    cited = set(re.findall(r"@(\w+)", text_of("paper", "paper.md").split("# Summary")[1]))
    yield from differing({"paper.bib": sorted(known), "paper.md": sorted(cited)})
    peers = text_of("docs", "peers.md")
    for name, rows in (("peers", runs), ("neural_model", models)):
        module = script(ROOT / "benchmarks" / f"{name}.py")
        if peers.split(module.BEGIN)[1].split(module.END)[0].strip() != module.as_markdown(rows).strip():
            yield f"docs/peers.md: a table is not what benchmarks/{name}.py measured"
    from breastmorph.report.cards import as_markdown

    if text_of("docs", "cards.md") != as_markdown():
        yield "docs/cards.md is not made of report/cards.py"


# Modules that run what a file says, or that talk to other machines; calls and options that do.
UNSAFE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "ftplib", "smtplib", "telnetlib"}
UNSAFE |= {
    "requests",
    "http.client",
    "urllib.request",
    "httpx",
    "aiohttp",
    "xmlrpc",
    "xml.sax",
    "xml.dom",
    "yaml",
}
CALLS, OPTIONS = {"eval", "exec", "compile", "__import__"}, {"shell", "allow_pickle"}
ALLOWED = {"workers.py": {"pickle"}}  # between a process and its own children only


def unsafe_code() -> Complaints:
    """No module of the package runs what a file says or calls out."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: set[str] = set()
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names} & UNSAFE
            elif isinstance(node, ast.ImportFrom):
                found = {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)} & UNSAFE
            elif isinstance(node, ast.Call):
                found = {getattr(node.func, "id", "")} & CALLS
                given = {key.arg for key in node.keywords if getattr(key.value, "value", None) is True}
                found |= {str(name) for name in given & OPTIONS}
            for name in sorted(found - ALLOWED.get(path.name, set())):
                yield f"{path.relative_to(ROOT)}: {name} runs what a file says or calls out"


def markup() -> Complaints:
    """Only templates write markup, and in them only the pages' own scripts and styles go without escaping."""
    by_hand = re.compile(r"html import escape|html\.escape|\bMarkup\(|autoescape=False")
    for path in SOURCES:
        if by_hand.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)} writes markup by hand; use a template"
    allowed = {f"{{{{ {what}|safe }}}}" for what in ("style", "script")}
    for path in PACKAGE.rglob("*.j2"):
        unescaped = re.findall(r"{{[^}]*\|\s*safe\b[^}]*}}|autoescape", path.read_text(encoding="utf-8"))
        if set(unescaped) - (allowed if path.name == "document.html.j2" else set()):
            yield f"{path.relative_to(ROOT)} lets through {unescaped}"


def pins() -> Complaints:
    """The lock holds every pinned version with its hashes; the lowest versions are those asked for."""

    def pinned(name: str) -> dict[str, str]:
        found = re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)", text_of(name), re.MULTILINE)
        return {package.lower(): version for package, version in found}

    lock = text_of("requirements.lock")
    yield from differing(
        {"requirements.txt": pinned("requirements.txt"), "requirements.lock": pinned("requirements.lock")}
    )
    for block in re.split(r"\n(?=[A-Za-z])", lock.split("\n", 2)[2]):
        if not re.search(r"--hash=sha256:[0-9a-f]{64}", block):
            yield f"requirements.lock: no hash: {block.splitlines()[0]}"
    if "://" in lock:
        yield "requirements.lock names an address"
    bounds = dict(dependency.lower().split(">=") for dependency in PROJECT["project"]["dependencies"])
    yield from differing(
        {"requirements-lowest.txt": pinned("requirements-lowest.txt"), "pyproject.toml": bounds}
    )


CHECKS: tuple[Callable[[], Complaints], ...] = (
    metadata,
    workflows,
    make_and_hooks,
    issue_forms,
    architecture,
    links,
    quoted_messages,
    benchmarks,
    measured_tables,
    unsafe_code,
    markup,
    pins,
)


def main() -> None:
    """Run every check; print what does not agree."""
    found = [f"{check.__name__}: {complaint}" for check in CHECKS for complaint in check()]
    print("\n".join(found) or f"{len(CHECKS)} checks of consistency passed")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
