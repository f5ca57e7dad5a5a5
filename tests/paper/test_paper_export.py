"""A study's figures and tables as files for a paper: LaTeX, Word, CSV, and an archive that is the same twice."""

from __future__ import annotations

import io
import re
import zipfile
from xml.etree import ElementTree

from breastmorph.paper.export import table_latex, tables_docx, write_archive
from breastmorph.report.document import Column, Figure, Page, Section, Table, Verdict

DRAWING = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="30pt"></svg>'
HARD = r"50 % & $x_1$ #{~^}\ ±2 − 3 mm² <p>"


def test_long_texts_of_a_latex_table_are_broken_within_the_page():
    words = "a statement that goes on and on, farther than a line of any journal's page could hold, and then some more"
    table = Table(
        "Two", ("what", "paper", Column("error", "mm", 2)), ((words, words[:40], 0.5), ("short", "b", 1.0))
    )
    (kinds,) = re.findall(r"begin{tabular}{(.*)}$", table_latex(table, 1), re.M)
    shares = [float(share) for share in re.findall(r"p{([\d.]+).textwidth}", kinds)]
    assert len(shares) == 2
    assert shares[0] > shares[1]
    assert sum(shares) <= 0.85
    assert kinds.endswith("}r")


def test_tables_go_into_latex_without_a_command_slipping_in():
    table = Table(HARD, ("row", Column("value", "mm", 2)), ((HARD, 1.234), ("b", Verdict.SMALL)), "note")
    text = table_latex(table, 7)
    body = text.replace(r"\%", "").replace(r"\&", "").replace(r"\$", "").replace(r"\#", "").replace(r"\_", "")
    assert "%" not in body
    assert body.count("&") == 3  # a column's end in each of three rows
    assert r"\label{tab:breastmorph-7}" in text
    assert r"1.23 \\" in text
    assert "too small to matter" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_tables_go_into_word(tmp_path):
    table = Table(
        "caption <&>\x07", ("row", Column("value", "mm", 1)), (("a & b", 1.25), ("c", None)), "note"
    )
    with zipfile.ZipFile(io.BytesIO(tables_docx([table, table]))) as archive:
        assert archive.testzip() is None
        root = ElementTree.fromstring(archive.read("word/document.xml"))
        ElementTree.fromstring(archive.read("[Content_Types].xml"))
    word = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    assert len(list(root.iter(f"{word}tbl"))) == 2
    found = ["".join(cell.itertext()) for cell in root.iter(f"{word}tc")][:6]
    assert found == ["row", "value (mm)", "a & b", "1.2", "c", ""]


def test_the_archive_holds_all_and_is_the_same_twice(tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    for ending in (".svg", ".png", ".csv"):
        (folder / f"curves{ending}").write_bytes(DRAWING)
    table = Table("values", ("a", "a"), (("=1+1", 1.0),))
    page = Page("Title", (Section("Section", (Figure.load(folder / "curves", "What is seen."), table)),))
    for name in ("one.zip", "two.zip"):
        write_archive(tmp_path / name, page, {"methods.txt": "Done so.\n"})
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        names = set(archive.namelist())
        assert archive.read("figures/captions.txt") == b"Figure 1. What is seen.\n"
        assert archive.read("tables/table-01.csv").decode().splitlines()[:2] == ["a,a", "'=1+1,1.00"]
    wanted = {f"figures/figure-01-curves{ending}" for ending in (".svg", ".png", ".csv")}
    assert wanted | {"methods.txt", "tables/table-01.tex", "tables/tables.docx"} <= names
