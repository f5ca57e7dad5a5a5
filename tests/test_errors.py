"""Errors say where, once; and what is told to people has one catalogue of words for all doors."""

from __future__ import annotations

import ast
import json
import pickle
import re
from functools import cache
from pathlib import Path
from string import Formatter
from types import CodeType

import pytest

from breastmorph.foundation.errors import (
    AS_RAISED,
    BreastMorphError,
    FileProblem,
    Finding,
    LandmarkProblem,
    MeshProblem,
    error_context,
    recorded,
    warning,
)
from breastmorph.foundation.words import AUDIENCES
from breastmorph.foundation.words_of_models import CATALOGUE


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (LandmarkProblem("xiphoid is missing", "Add it"), Path("a.json")),
        (FileProblem("the file is empty"), Path("a.ply")),
        (LandmarkProblem("xiphoid is missing", "Add it", "b.json"), "b.json"),
    ],
)
def test_the_nearest_place_of_its_kind_is_named(error, where):
    with (
        pytest.raises(BreastMorphError) as caught,
        error_context(Path("a.ply")),
        error_context(Path("a.json"), LandmarkProblem),
    ):
        raise error
    assert caught.value is error
    assert error.where == where
    assert str(error).startswith(f"{where}: {error.cause}")


# --- one catalogue of words -------------------------------------------------------------------------------------------

_SOURCES = Path(__file__).parents[1] / "src" / "breastmorph"
_OPTION = re.compile(r"(?<![\w-])--[a-z]")


@cache
def source_of(path):
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path):
    return ast.parse(source_of(path))


@cache
def texts_of(path):
    """The texts of a module without its docstrings, each with its line."""
    tree = tree_of(path)
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    is_doc = {id(node.body[0].value) for node in owners if isinstance(node.body[0], ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in is_doc
    ]


def test_nothing_below_the_commands_speaks_of_options():
    below = [
        path
        for path in sorted(_SOURCES.rglob("*.py"))
        if path.relative_to(_SOURCES).parts[0] != "cli" and not path.name.startswith("words")
    ]
    assert len(below) > 100
    found = [
        (path.name, line, text)
        for path in below
        if _OPTION.search(source_of(path))  # few have even a comment that does
        for line, text in texts_of(path)
        if _OPTION.search(text)
    ]
    assert found == []


def fields_of(words):
    """The values that an entry's sentences name, each with all that is asked of it."""
    asked = {}
    for text in (text for part in words for text in ([part] if isinstance(part, str) else part.values())):
        for _, name, spec, _ in Formatter().parse(text):
            if name is not None:
                asked.setdefault(name, set()).add(spec)
    return asked


def value_for(specs):
    if "remedy" in specs:
        return Finding("not-a-torso")
    if any("|" in spec for spec in specs):
        return ["nipple_left", "nipple_right"]
    return "nipple_left" if specs <= {"", "landmark", "measure"} else 15


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_of_the_catalogue_can_be_said_at_every_door(name):
    words = CATALOGUE[name]
    for part in words:
        assert isinstance(part, str) or set(part) == set(AUDIENCES)
    finding = Finding(name, {field: value_for(specs) for field, specs in fields_of(words).items()})
    for audience in AUDIENCES:
        said = finding.said(audience)
        assert said.cause
        assert "{" not in said.cause + said.remedy
        if audience != "command" and not name.startswith("study/"):
            assert not _OPTION.search(said.cause + said.remedy)
    assert Finding.from_dict(json.loads(json.dumps(finding.as_dict()))) == finding


@cache
def told():
    """Whatever the sources tell by a name in a call: the names, as patterns, and the values (None: made elsewhere)."""
    return list(_told())


def _told():
    for path in sorted(_SOURCES.rglob("*.py")):
        if not re.search(r"Finding\(|warning\(|_refuse\(|(Problem|Error)\.of\(", source_of(path)):
            continue
        for node in ast.walk(tree_of(path)):
            called = name_of(node.func) if isinstance(node, ast.Call) and node.args else ""
            if called in ("Finding", "warning", "self._refuse") or re.fullmatch(
                r"\w+(Problem|Error)\.of", called
            ):
                for name in names_in(node.args[called == "self._refuse"]):
                    yield name, keys_of(node, called)


def name_of(function):
    """Of what is called by a name or as an attribute of one."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def names_in(node):
    if isinstance(node, ast.Constant):
        yield re.escape(node.value)
    elif isinstance(node, ast.IfExp):
        yield from (*names_in(node.body), *names_in(node.orelse))
    elif isinstance(node, ast.JoinedStr):
        yield "".join(re.escape(one.value) if isinstance(one, ast.Constant) else ".+" for one in node.values)


def keys_of(call, called):
    if called == "Finding" and len(call.args) > 1:
        literal = isinstance(call.args[1], ast.Dict) and all(call.args[1].keys)
        return {key.value for key in call.args[1].keys} if literal else None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    own = {"asked", "usual"} if called == "self._refuse" else set()
    return own | {keyword.arg for keyword in call.keywords if called != "Finding"}


def test_what_the_program_says_is_in_the_catalogue_with_the_values_it_gives():
    found = [(name, keys) for name, keys in told() if AS_RAISED not in name and name != ".+/.+"]
    assert len({name for name, _ in found}) > 150
    for name, keys in found:
        entries = [known for known in CATALOGUE if re.fullmatch(name, known)]
        assert entries, name
        fitting = [entry for entry in entries if keys is None or set(fields_of(CATALOGUE[entry])) <= keys]
        assert fitting, f"{name} needs other values than {keys}"


def test_every_entry_of_the_catalogue_is_said_somewhere():
    texts = {
        text
        for path in _SOURCES.rglob("*.py")
        if not path.name.startswith("words")
        for text in constants_of(
            compile(source_of(path), str(path), "exec", optimize=2)
        )  # which drops docstrings
    }
    patterns = {name for name, _ in told()} - {".+/.+"}
    unsaid = [
        name
        for name in CATALOGUE
        if name not in texts and not any(re.fullmatch(pattern, name) for pattern in patterns)
    ]
    assert unsaid == []
    assert "Lay the lattice (about a second; kept)." not in texts
    assert "too-large" in texts


def constants_of(code):
    """All texts in compiled code, far quicker found than in its tree."""
    left = [code]
    while left:
        one = left.pop()
        if isinstance(one, CodeType):
            left += one.co_consts
        elif isinstance(one, (tuple, frozenset)):
            left += one
        elif isinstance(one, str):
            yield one


def test_each_door_says_an_error_in_its_own_words():
    error = MeshProblem.of("too-large", Path("a.ply"), faces=6_000_000, most=5_000_000)
    assert error.code == "too-large"
    assert error.text("command") == (
        "a.ply: too large: 6,000,000 faces (at most 5,000,000). "
        "Decimate it first (300,000 faces are plenty), or raise --max-faces"
    )
    assert error.text("page").endswith("(300,000 faces are plenty)")
    assert str(error).endswith("or raise max_faces")
    sent = pickle.loads(pickle.dumps(error))  # as between processes
    assert sent.text("command") == error.text("command")


def test_names_and_lengths_are_words_and_cm_on_the_page():
    usual = Finding("usual/mm", {"name": "SN-NL tape", "mean": 249.0, "sd": 19.0})
    assert usual.said("command").cause == "SN-NL tape 249 ± 19 mm"
    assert usual.said("page").cause == "Sternal notch to left nipple, tape 24.9 ± 1.9 cm"
    off = warning("landmark-moved", name="imf_left", distance=20.0)
    assert str(off) == "landmark imf_left lies 20 mm off the surface; moved onto it"
    assert "fold under the left breast lies 20 mm" in off.said("page").cause
    missing = LandmarkProblem.of("missing-landmarks", names=["lower_pole_right", "xiphoid"], but_found="")
    assert missing.said("page").cause == "missing landmarks: right lower pole, xiphoid"


@pytest.mark.parametrize(
    "record", [None, {}, {"name": "of a later version", "values": {}, "level": "note"}, 3]
)
def test_a_record_that_is_not_understood_keeps_its_own_words(record):
    assert str(recorded(record, "as it was said")) == "as it was said"
