"""Catalogues of all texts that people read: what is marked in the sources, in every language.

``python scripts/catalogue.py`` collects the texts of the package and of the explorer's page, updates every
``locale/<language>/LC_MESSAGES/breastmorph.po`` and compiles it: ``.mo`` for gettext and ``page.json`` for the page.
With ``--check`` it changes nothing and fails where a catalogue is stale, lacks a text or a value of it. Both fail where
a sentence is raised without a value that it names, or names an option although it is not one of a command's.
Another language is one new ``.po`` (``--add fr``), made complete by a translator.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parents[1] / "src" / "breastmorph"
PAGE = PACKAGE / "explorer" / "page"
LOCALE = PACKAGE / "locale"
# Positions of the arguments that are texts for people, by what is called.
SENTENCES = {
    **dict.fromkeys(("BreastMorphError", "FileProblem", "MeshProblem", "LandmarkProblem"), (0, 1)),
    **dict.fromkeys(("note", "repair", "warning", "there", "RequestProblem"), (1, 2)),
    **dict.fromkeys(("bad_request", "not_now", "unknown"), (0, 1)),
    **dict.fromkeys(("Message", "N_", "damaged", "truncated", "preparing", "at"), (0,)),
}
OF_COMMANDS = ("cli", "paper")  # packages whose texts may name options
OF_PAGE = "page"  # the context of the page's own texts
NOT_TRANSLATED = {
    "English",
    "Deutsch",
    "?",
    "BreastMorph",
    "STL",
    "PLY",
    "OBJ",
    "GLB",
    "BreastMorph explorer",
}
_STRING = r'"((?:[^"\\]|\\.)*)"'
Key = tuple[str, str | tuple[str, str]]  # context and text, or texts of one and of several


def of_package(folder: Path = PACKAGE) -> set[Key]:
    """Texts of the Python sources."""
    found = set()
    for path in sorted(folder.rglob("*.py")):
        try:
            found |= set(of_source(path.read_text("utf-8")))
        except ValueError as error:
            raise SystemExit(f"{path}: {error}") from error
    return found


def of_source(source: str) -> Iterator[Key]:
    """Texts of one source; raises ValueError where a sentence is put together before it can be translated."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called == "in_context":
            context, *words = (ast.literal_eval(argument) for argument in node.args)
            yield from ((context, word) for word in words)
        elif called == "Plural" and len(node.args) == 2:
            one, many = (ast.literal_eval(argument) for argument in node.args)
            yield "", (one, many)
        elif called in SENTENCES and not _is_log(node.func):
            for k in SENTENCES[called]:
                if k < len(node.args):
                    yield from (("", text) for text in _texts(node.args[k]) if _is_text(text))


def raised_wrongly(source: str) -> Iterator[str]:
    """Sentences of one source that name values which they are not given where they are raised."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        called = getattr(getattr(node, "func", None), "id", "")
        if isinstance(node, ast.Call) and called in SENTENCES and called not in ("N_", "there"):
            given = {keyword.arg for keyword in node.keywords} - {"code", "where", "remedy"}
            if called == "Message" and len(node.args) == 2:
                values = node.args[1]
                keys = values.keys if isinstance(values, ast.Dict) else [None]
                given |= {key.value if isinstance(key, ast.Constant) else None for key in keys}
            for k in SENTENCES[called]:
                for text in (
                    _templates(node.args[k], constants) if k < len(node.args) and None not in given else ()
                ):
                    names = {re.split(r"[.\[]", name)[0] for name in _values(text)}
                    lacking = names - given if given else {name for name in names if name.isidentifier()}
                    if lacking or (not given and "{{" in text):
                        yield f"line {node.lineno}: {text!r} is not given {', '.join(sorted(lacking)) or 'values'}"


def _templates(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    """Texts that an argument may be, where it stands in the same file."""
    if isinstance(node, ast.Name) and node.id in constants:
        yield from _templates(constants[node.id], {})
    elif isinstance(node, ast.IfExp):
        yield from _templates(node.body, constants)
        yield from _templates(node.orelse, constants)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("N_", "Plural"):
        yield from (text for argument in node.args for text in _templates(argument, constants))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _reworded(source: str) -> set[str]:
    """Sentences that an audience is given in other words."""
    return {
        key.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call)
    }


def of_sources(folder: Path = PACKAGE) -> Iterator[str]:
    """What is wrong with the sentences of the sources."""
    known = {text for _, text in of_package(folder)}
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text("utf-8")
        if path.name == "wording.py":
            yield from (f"{path}: {text!r} is never raised" for text in _reworded(source) - known)
        yield from (f"{path}: {problem}" for problem in raised_wrongly(source))
        if path.relative_to(folder).parts[0] not in OF_COMMANDS:
            for _, text in of_source(source):
                if re.search(r"(?<!\S)\(?--[a-z]", str(text)):
                    yield f"{path}: {text!r} names an option; commands do so in cli/wording.py"


def _is_log(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ("warning", "at")
        and (isinstance(function.value, ast.Name) and function.value.id in ("_log", "warnings", "np"))
    )


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, (ast.JoinedStr, ast.BinOp)):
        raise ValueError(
            f"line {node.lineno}: {ast.unparse(node)} cannot be translated; give its values by name"
        )


def _is_text(text: str) -> bool:
    """Whether a text has words beside its values."""
    return any(re.search(r"[^\W\d_]{2}", literal) for literal, *_ in _parts(text))


def of_page(folder: Path = PAGE) -> set[Key]:
    """Texts of the page's markup and scripts."""
    markup = _Markup()
    markup.feed(folder.joinpath("index.html").read_text("utf-8"))
    found = markup.found - NOT_TRANSLATED
    for path in folder.glob("*.js"):
        source = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S)
        texts = set(re.findall(rf"(?<![\w.$])(?:t|word)\({_STRING}", source))
        pairs = re.findall(rf"(?<![\w.$])count\([^,]+, {_STRING}, {_STRING}\)", source)
        texts |= {text for pair in pairs for text in pair}
        found |= {json.loads(f'"{text}"') for text in texts} | _tagged(source)
    return {(OF_PAGE, text) for text in found if re.search(r"[A-Za-z]{2}", text)}


class _Markup(HTMLParser):
    """Texts and spoken attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in ("code", "script", "style")
        self._add(*(value or "" for name, value in attrs if name in ("aria-label", "title", "placeholder")))

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._add(data)

    def _add(self, *texts: str) -> None:
        self.found |= {plain for text in texts if re.search(r"[A-Za-z]", plain := " ".join(text.split()))}


def _tagged(source: str) -> set[str]:
    """Texts of t`...${value}...`, with {0} for the first value, and what stands inside the values."""
    found = set()
    for start in re.finditer(r"(?<![\w.$])t`", source):
        key, at, values = "", start.end(), 0
        while source[at] != "`":
            if source.startswith("${", at):
                key += f"{{{values}}}"
                values, depth, at = values + 1, 1, at + 2
                inside = 0
                while depth:
                    inside ^= source[at] == "`"
                    depth += (source[at] == "{") - (source[at] == "}")
                    at += 1
            else:
                step = 6 if source.startswith("\\u", at) else 1
                key += json.loads(f'"{source[at : at + step]}"') if step == 6 else source[at]
                at += step
        found.add(key)
    return found


def updated(known: Catalog, keys: set[Key]) -> Catalog:
    """A language's catalogue with exactly these texts; what was translated stays."""
    kept = Catalog(
        known.locale, project="BreastMorph", version="-", charset="utf-8", fuzzy=False,
        header_comment="# BreastMorph's texts. scripts/catalogue.py adds what is new and compiles this file.",
        creation_date=known.creation_date, revision_date=known.revision_date, last_translator="-", language_team="-",
        msgid_bugs_address="-",
    )  # fmt: skip
    for context, text in sorted(keys, key=lambda key: (key[0], str(key[1]))):
        english = text if isinstance(text, str) else list(text)
        old = known.get(text if isinstance(text, str) else text[0], context or None)
        kept.add(
            english, old.string if old is not None and old.id == _id(text) else None, context=context or None
        )
    return kept


def _id(text: str | list[str] | tuple[str, str]) -> str | tuple[str, str]:
    return text if isinstance(text, str) else tuple(text)


def problems(catalogue: Catalog) -> Iterator[str]:
    """Texts without a translation, and translations with values that the English one does not have."""
    for entry in catalogue:
        if entry.id:
            english = [entry.id] if isinstance(entry.id, str) else list(entry.id)
            translated = [entry.string] if isinstance(entry.string, (str, type(None))) else list(entry.string)
            if not all(translated):
                yield f"not translated: {english[0]!r}" + (f" ({entry.context})" if entry.context else "")
            elif not all(_values(text) <= _values(english[-1]) for text in translated):
                yield f"other values than {english[-1]!r} has: {translated[-1]!r}"


def _values(text: str) -> set[str]:
    """Names of the values of a template."""
    return {name.partition("!")[0] for _, name, *_ in _parts(text) if name}


def _parts(text: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(Formatter().parse(text))
    except ValueError:  # a text without values, which may have braces
        return [(text, None, None, None)]


def compiled(catalogue: Catalog) -> dict[str, bytes]:
    """The files of a language's catalogue by their names."""
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalogue, width=110, omit_header=False)
    write_mo(mo, catalogue)
    page = {str(e.id): str(e.string) for e in catalogue if e.context in (OF_PAGE, "language") and e.string}
    json_text = json.dumps(page, ensure_ascii=False, indent=0) + "\n"
    return {"breastmorph.po": po.getvalue(), "breastmorph.mo": mo.getvalue(), "page.json": json_text.encode()}


def read(path: Path) -> Catalog:
    """A language's catalogue."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3])


def main() -> int:
    """Update or check the catalogues."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--check", action="store_true", help="change nothing; fail where something is missing")
    asked.add_argument("--add", metavar="LANGUAGE", help="begin a catalogue for a language")
    given = asked.parse_args()
    keys, wrong = of_package() | of_page(), 0
    if given.add:
        folder = LOCALE / given.add / "LC_MESSAGES"
        folder.mkdir(parents=True)
        start = Catalog(given.add, creation_date=datetime.now(UTC), revision_date=datetime.now(UTC))
        folder.joinpath("breastmorph.po").write_bytes(compiled(start)["breastmorph.po"])
    for problem in of_sources():
        wrong += 1
        print(problem)
    for path in sorted(LOCALE.glob("*/LC_MESSAGES/breastmorph.po")):
        catalogue = updated(read(path), keys)
        for problem in problems(catalogue):
            wrong += 1
            print(f"{path.parts[-3]}: {problem}")
        for name, content in compiled(catalogue).items():
            file = path.with_name(name)
            if not given.check:
                file.write_bytes(content)
            elif not file.exists() or file.read_bytes() != content:
                wrong += 1
                print(f"{file} is stale: run scripts/catalogue.py")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
