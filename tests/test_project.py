"""The files around the code agree with each other: versions, Python versions, markers, workflows, metadata."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import breastmorph

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
JOBS = [
    (name, job)
    for path in WORKFLOWS
    for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# Calls that end another process.
ENDS = {"killpg", "kill", "terminate", "send_signal"}


def test_metadata_agree():
    project, meta = PROJECT["project"], json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert meta["version"] == breastmorph.__version__
    assert meta["name"] == cited["title"]
    assert meta["description"] == project["description"] == cited["abstract"].removesuffix(".")
    assert meta["license"] == f"https://spdx.org/licenses/{project['license']}"
    assert cited["license"] == project["license"]
    assert [author["name"] for author in meta["author"]] == [author["name"] for author in cited["authors"]]
    assert meta["keywords"] == project["keywords"]
    assert meta["referencePublication"]["name"] == cited["preferred-citation"]["title"]
    assert meta["programmingLanguage"]["version"] == project["requires-python"]
    assert meta["runtimePlatform"] == [f"CPython {version}" for version in python_versions()]


def test_the_changelog_begins_with_what_is_not_released_and_knows_this_version():
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:2] == ["Unreleased", breastmorph.__version__]


def python_versions() -> list[str]:
    kinds = PROJECT["project"]["classifiers"]
    return [kind.rsplit(" ", 1)[1] for kind in kinds if re.search(r"Python :: 3\.\d+$", kind)]


def test_workflows_try_every_python_version_and_system():
    versions = python_versions()
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == versions[0]
    grids = {name: job["strategy"]["matrix"] for name, job in JOBS if "strategy" in job}
    assert set(grids) == {"tests", "install"}
    for grid in grids.values():
        assert grid["python"] == versions
        assert [system.split("-")[0] for system in grid["os"]] == ["ubuntu", "macos", "windows"]
    assert grids["install"]["kind"] == ["whl", "tar.gz"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_no_rights_and_no_secrets(path):
    text = path.read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    assert found["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in found["jobs"].values())
    assert "secrets" not in text.replace("No secrets", "")
    assert "pull_request_target" not in text  # would run a stranger's change with our rights
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in actions)
    assert all("timeout-minutes" in job for job in found["jobs"].values())


def test_what_workflows_make_can_be_made():
    commands = [step["run"] for _, job in JOBS for step in job["steps"] if "run" in step]
    commands += (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    words = [word for command in commands if command.startswith("make ") for word in command.split()[1:]]
    made = {word for word in words if not word.startswith("-")}
    assert {"lint", "test", "wheel-test"} <= made
    assert made <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


def test_hooks_do_what_lint_does():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repository["repo"] for repository in hooks] == ["local"]  # nothing is fetched
    called = {hook["entry"].split()[0] for hook in hooks[0]["hooks"] if hook["language"] == "system"}
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    assert called == {f".venv/bin/{tool}" for tool in re.findall(r"\$\(BIN\)/([\w-]+)", lint)}


def test_quick_leaves_out_every_marker():
    markers = {line.split(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    quick = re.search(r"^QUICK := -m \"(.*)\"$", MAKEFILE, re.MULTILINE)[1]
    assert set(quick.split(" and ")) == {f"not {marker}" for marker in markers}


def test_tests_that_end_processes_say_so():
    unmarked = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(f".{name}(" in text for name in ENDS):
            continue
        tree = ast.parse(text)
        whole = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
        for test in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            said = [*map(ast.unparse, test.decorator_list), *(text for text in whole if "pytestmark" in text)]
            marked = any(re.search(r"mark\.(kill|cluster)", text) for text in said)
            if test.name.startswith("test_") and calls(test) & ENDS and not marked:
                unmarked.append(f"{path.name}: {test.name}")
    assert unmarked == []


def calls(test: ast.FunctionDef) -> set[str]:
    """Names of the methods that a test calls."""
    return {
        node.func.attr
        for node in ast.walk(test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


def test_browsers_are_opened_by_the_fixture_alone():
    """It is by the fixture that a test is known to need one."""
    others = {
        path.name for path in (ROOT / "tests").rglob("*.py") if "open_browser" in path.read_text("utf-8")
    }
    own = {"browser.py", "conftest.py", Path(__file__).name}
    assert others - own == {"test_report_page_viewer.py"}  # what happens where there is no browser


def test_coverage_is_told_by_package(tmp_path):
    def of(*counts):
        names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
        return {"summary": dict(zip(names, counts, strict=True))}

    files = {
        "src/breastmorph/mesh/a.py": of(10, 10, 4, 1),
        "src/breastmorph/mesh/files/b.py": of(10, 9, 0, 0),
        "src/breastmorph/mask.py": of(200, 199, 0, 0),
    }
    (tmp_path / "coverage.json").write_text(json.dumps({"files": files}))
    command = [sys.executable, ROOT / "scripts" / "coverage_table.py", tmp_path / "coverage.json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    assert [line.replace(" %", "").split() for line in said] == [
        ["mask", "200", "99", "0", "-"],  # not 100: a line is missed
        ["mesh", "20", "95", "4", "25"],
        ["all", "220", "99", "4", "25"],
    ]


def test_types_of_public_modules_are_strict():
    mypy = PROJECT["tool"]["mypy"]
    assert mypy["strict"] is True
    lax = {
        module
        for rule in mypy["overrides"]
        if rule.get("warn_return_any") is False
        for module in rule["module"]
    }
    strict = {
        module for rule in mypy["overrides"] if rule.get("warn_return_any") for module in rule["module"]
    }
    packages = tuple(module.removesuffix("*") for module in lax)
    assert {home for home in breastmorph._HOME.values() if f"{home}.".startswith(packages)} == strict


@pytest.mark.parametrize("name", ["problem.yml", "wish.yml"])
def test_whoever_opens_an_issue_says_that_nothing_comes_from_a_patient(name):
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8"))
    promised = [part for part in form["body"] if part.get("id") == "no-patient"]
    assert promised[0]["attributes"]["options"][0]["required"] is True
    assert "Never attach data of a patient" in form["body"][0]["attributes"]["value"]
