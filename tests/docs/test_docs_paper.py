"""The software paper and the cards say what their sources say."""

from __future__ import annotations

import json
import re

from breastmorph.report.cards import CARDS, as_markdown
from docs_world import ROOT, script

NUMBERS = json.loads((ROOT / "paper" / "numbers.json").read_text(encoding="utf-8"))
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")


def test_every_number_of_the_paper_comes_from_its_file():
    numbers = script(ROOT / "scripts" / "paper_numbers.py")
    runs = json.loads((ROOT / "benchmarks" / "peers.json").read_text(encoding="utf-8"))
    assert NUMBERS["peers"] == numbers.from_peers(runs), "run scripts/paper_numbers.py"
    models = json.loads((ROOT / "benchmarks" / "models.json").read_text(encoding="utf-8"))
    assert NUMBERS["models"] == numbers.from_models(models), "run scripts/paper_numbers.py"
    assert numbers.rendered(NUMBERS) == PAPER, "run scripts/paper_numbers.py"


def test_the_tables_of_the_study_are_those_that_were_computed():
    numbers = script(ROOT / "scripts" / "paper_numbers.py")
    tables = NUMBERS["study"]["tables"]
    assert set(tables) == set(numbers.PAGES)
    for name, page in numbers.PAGES.items():
        begin, end = numbers.marks(name)
        shown = page.read_text(encoding="utf-8").split(begin)[1].split(end)[0]
        assert shown.strip() == numbers.markdown(tables[name]), "run scripts/paper_numbers.py"
    by_title = {row[0].strip("*"): row[1:] for row in tables["masks"]}
    general = next(row for title, row in by_title.items() if title.startswith("generalization"))
    assert [NUMBERS["study"][one] for one in ("masks", "no_masks", "printed")] == general[:3]
    off = by_title["correspondence error, breast / outside, mm"]
    assert NUMBERS["study"]["off_printed"] == off[2].split(" / ")[0]


def test_no_number_is_written_by_hand():
    template = (ROOT / "paper" / "paper.md.j2").read_text(encoding="utf-8")
    body = re.sub(r"{{.*?}}|`[^`]*`|\[@[^]]*\]|@\w+|3D", "", template.split("# Summary")[1])
    assert re.findall(r"\d+", body) == []


def test_every_reference_is_there_and_used():
    known = set(re.findall(r"^@\w+{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.M))
    cited = set(re.findall(r"@(\w+)", PAPER.split("# Summary")[1]))
    assert known == cited


def test_the_page_of_cards_is_the_cards():
    assert (ROOT / "docs" / "cards.md").read_text(encoding="utf-8") == as_markdown()
    for card in CARDS:
        assert card.not_for
        assert card.limits


def test_the_tables_of_models_are_those_that_were_measured():
    found = json.loads((ROOT / "benchmarks" / "models.json").read_text(encoding="utf-8"))
    models = script(ROOT / "benchmarks" / "neural_model.py")
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    shown = page.split(models.BEGIN)[1].split(models.END)[0]
    assert shown.strip() == models.as_markdown(found).strip(), "run benchmarks/neural_model.py page"
    same = {(row["model"], row["coefficients"], row["task"]) for row in found["rows"]}
    assert len(same) == len(found["rows"]) == 2 * 5 * len(models.COEFFICIENTS)


def test_the_tables_of_peers_are_those_that_were_measured():
    runs = json.loads((ROOT / "benchmarks" / "peers.json").read_text(encoding="utf-8"))
    peers = script(ROOT / "benchmarks" / "peers.py")
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    shown = page.split(peers.BEGIN)[1].split(peers.END)[0]
    assert shown.strip() == peers.as_markdown(runs).strip(), "run `make peers`"
    for run in runs:
        assert run["tuned_on"] >= 1  # settings are chosen on subjects that are not scored
        assert set(run["methods"]) - set(peers.OURS) <= set(peers.CANDIDATES)
