"""A study of one's own cohort from start to end: what is computed, kept, done again, and said."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.locks import locked_folder
from breastmorph.paper.comparison import compare_studies
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters
from breastmorph.paper.report import report_page, write_report
from breastmorph.paper.running import open_study
from breastmorph.paper.summary import (
    StudyResults,
    few_subjects,
    key_figures,
    refusals,
    remarks,
    statements_by_method,
)
from breastmorph.report.document import Figure
from docs_world import ROOT, script
from small_cohort import random_shapes
from study_cohort import SMALL, contents, small_study, write_scan, write_study_cohort

pytestmark = pytest.mark.slow

WITHOUT_FIGURES = ("experiment-1", "experiment-2", "experiment-3", "experiment-4")


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A cohort and its whole study."""
    folder = tmp_path_factory.mktemp("studied")
    cohort = write_study_cohort(folder / "cohort")
    run = small_study(folder / "study", cohort)
    write_report(run)
    return cohort, run


def _copied(studied, folder):
    cohort, run = studied
    shutil.copytree(cohort, folder / "cohort")
    shutil.copytree(run.study.path, folder / "study")
    return folder / "cohort", folder / "study"


def test_a_whole_study_has_every_part(studied):
    _, run = studied
    assert run.failed == {}
    assert {name for name, state in run.states.items() if state.status != "done"} == set()
    assert run.result("experiment-1")["experiment"]["perfect"] is not None  # the truth was used
    assert (run.study.model("masks")).stat().st_size > 10_000
    for name in ("mask-contours", "variation", "samples", "modes", "editing", "prediction", "experiment-2"):
        for ending in (".svg", ".png"):
            assert run.study.figure(name + ending).is_file(), name
    names = [what for what, _, _ in key_figures(StudyResults(run))]
    assert "statements of the paper" in names


def test_a_second_run_touches_nothing(studied):
    cohort, run = studied
    before = {
        path: path.stat().st_mtime_ns
        for path in run.study.path.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    again = small_study(run.study.path, cohort)
    assert again.ran == ()
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_the_report_is_whole_and_asks_for_nothing(studied):
    _, run = studied
    page = run.study.report.read_text()
    for title in ("Experiment 1", "Experiment 4", "Application 2", "How to get these results again"):
        assert title in page
    for outside in ('src="http', 'href="http', "url(http", "@import", str(run.study.path.parent)):
        assert outside not in page, outside
    first = run.study.report.read_bytes()
    write_report(open_study(run.study.path))
    assert run.study.report.read_bytes() == first


def test_a_report_has_all_for_a_paper(studied):
    _, run = studied
    with zipfile.ZipFile(run.study.path / "report-figures.zip") as archive:
        names = archive.namelist()
        methods = archive.read("methods.txt").decode()
    for word in ("BreastMorph", "numpy", "Wilcoxon", "bootstrap", "9 subjects"):
        assert word in methods
    kinds = {name.rpartition(".")[2] for name in names if name.startswith("figures/figure-01")}
    assert kinds == {"pdf", "svg", "png", "csv"}
    page = report_page(run)
    assert len([name for name in names if name.endswith(".pdf")]) == len(page.of(Figure))
    assert page.sections[-1].appendix
    assert page.picture is not None
    (curves,) = [
        one for one in page.of(Figure) if one.caption.startswith("Compactness (a), generalization (b)")
    ][:1]
    assert "true shapes" in curves.files()[-1].read_text()


def test_two_studies_are_put_side_by_side(studied, tmp_path):
    _, run = studied
    path = compare_studies(run, open_study(run.study.path), tmp_path / "both.html")
    text = path.read_text()
    assert "study (first)" in text
    assert "no difference shown" in text
    assert "differ</td>" not in text  # from itself
    assert str(tmp_path) not in text
    assert (tmp_path / "both-figures.zip").is_file()


def test_a_changed_and_a_removed_scan_redo_what_depends_on_them(studied, tmp_path):
    cohort, out = _copied(studied, tmp_path)
    registered = out / "registered" / "masks" / "registered"
    before = {path.name: path.stat().st_mtime_ns for path in registered.glob("*.ply")}
    write_scan(cohort, "004", random_shapes(2, seed=5, size=4.0)[1])
    (cohort / "scans" / "008.ply").unlink()
    run = small_study(out, cohort, only=["model-masks", "figure-mask-contours", "table"])
    assert set(run.ran) == {"scans", "check", "register-masks", "model-masks", "table"}
    assert run.result("model-masks")["subjects"] == 8
    assert "008" not in run.result("register-masks")["subjects"]
    del before["008.ply"]
    changed = {name for name, time in before.items() if (registered / name).stat().st_mtime_ns != time}
    assert changed == {"004.ply"}


def test_a_changed_parameter_redoes_what_depends_on_it(studied, tmp_path):
    cohort, out = _copied(studied, tmp_path)
    run = small_study(out, cohort, replace(SMALL, draws=1), only=WITHOUT_FIGURES)
    assert set(run.ran) == {"experiment-2", "experiment-3"}
    assert len(run.result("experiment-2")["experiment"]["amounts"][0]["draws"]) == 1


def test_a_damaged_or_lost_file_is_made_again(studied, tmp_path):
    cohort, out = _copied(studied, tmp_path)
    expected = contents(out)
    (out / "figures" / "mask-contours.svg").write_text("damaged")
    (out / "figures" / "experiment-3.png").unlink()
    (out / "parts" / "experiment-3.json").write_text('{"cut off')
    run = small_study(out, cohort)
    assert set(run.ran) == {"figure-mask-contours", "experiment-3", "figure-experiment-3"}
    assert contents(out) == expected


def test_a_study_folder_belongs_to_one_cohort(studied, tmp_path):
    cohort, out = _copied(studied, tmp_path)
    other = tmp_path / "other"
    write_study_cohort(other, 5, table=False, truth=False)
    for folder in ("scans", "landmarks"):
        for path in (other / folder).iterdir():
            path.rename(path.with_name(f"x{path.name}"))
    before = contents(out)
    for parameters, scans in ((SMALL, other), (replace(SMALL, phantom=9), None)):
        with pytest.raises(BreastMorphError, match=r"another cohort.*another folder"):
            small_study(out, scans, parameters, only=["check"])
    # The same names, but other people in another folder.
    strangers = write_study_cohort(tmp_path / "strangers", 5, truth=False)
    for k, shape in enumerate(random_shapes(5, seed=9, size=4.0)):
        write_scan(strangers, f"{k:03d}", shape)
    with pytest.raises(BreastMorphError, match="another cohort"):
        small_study(out, strangers, only=["check"])
    assert contents(out) == before
    # All scans exported anew where they were: the same study.
    small_study(out, cohort, only=["scans"])
    for k, shape in enumerate(random_shapes(9, seed=9, size=4.0)):
        write_scan(cohort, f"{k:03d}", shape)
    assert "scans" in small_study(out, cohort, only=["scans"]).ran


def test_a_phantom_study_belongs_to_its_size_and_seed(tmp_path):
    study = StudyFolder(tmp_path)
    phantom = StudyParameters(phantom=8, seed=1)
    study.describe({"program": "", "cohort": None, "parameters": phantom.as_dict(), "inputs": {}})
    study.require_same_cohort(None, replace(phantom, samples=50), {})
    for other in (replace(phantom, phantom=9), replace(phantom, seed=2)):
        with pytest.raises(BreastMorphError, match="8 synthetic torsos with seed 1"):
            study.require_same_cohort(None, other, {})


def test_a_table_that_knows_only_some_scans_is_said_to(tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 6, table=False, truth=False)
    (cohort / "cohort.csv").write_text("id,age\n000,40\n001,50\n")
    run = small_study(tmp_path / "study", cohort, only=["table"])
    assert run.result("table")["without_row"] == ["002", "003", "004", "005"]
    (remark,) = remarks(run)
    assert "no row for 4 of 6 scans (002, 003, 004, 005)" in remark
    assert remark in repr(report_page(run).sections)


def test_the_software_papers_numbers_are_what_the_parts_hold(studied):
    _, run = studied
    results = StudyResults(run)
    results.masks["-paper"] = results.masks[""]  # this study is without the printed method
    found = script(ROOT / "scripts" / "paper_numbers.py").from_study(results)
    kept = json.loads((run.study.path / "parts" / "experiment-1.json").read_text())["result"]["experiment"]

    def general(name):
        return f"{np.mean([row[-1] for row in kept[name]['generalization']]):.2f}"

    assert [found["masks"], found["no_masks"], found["true"]] == [
        general(name) for name in ("with_masks", "without_masks", "perfect")
    ]
    assert len(set(found["tables"]["masks"][1][1:3])) == 2  # with and without masks are told apart
    off = np.mean([row[0] for row in kept["without_masks"]["truth"]["correspondence"]])
    assert found["off_no_masks"] == f"{off:.1f}"
    amounts = json.loads((run.study.path / "parts" / "experiment-2.json").read_text())["result"]["experiment"]
    assert f"{amounts['common']} components" in found["tables"]["others"][1][1]


def test_few_subjects_are_warned_of_and_statements_counted_by_method(studied):
    _, run = studied
    assert "Only 9 subjects: too few for conclusions" in few_subjects(run)
    assert "0.004" in few_subjects(run)
    assert few_subjects(run) in report_page(run).notice
    words = {what: ours for what, ours, _ in key_figures(StudyResults(run))}
    held = StudyResults(run).statements
    testable = [one for one in held if one.holds != "not testable"]
    assert len(testable) < len(held)
    counts = Counter(one.holds for one in held)
    said = words["statements of the paper"]
    assert said.startswith(f"{counts['yes']} of {len(testable)} hold (")
    assert f"{counts['not testable']} not testable" in said
    assert ("too small to matter" in said) == bool(counts["too small"])
    eight = [one for one in held if "Eight components" in one.text or "beyond 30" in one.text]
    assert {one.holds for one in eight} == {"not testable"}
    volume = [what for what in words if "volume off" in what]
    assert len(volume) == 2  # mean and median


def test_statements_of_the_printed_method_are_not_counted_twice(studied):
    _, run = studied
    own = StudyResults(run)
    first = [one for one in own.statements if one.experiment == 1]
    own.__dict__["statements"] = [*own.statements, *(replace(one, preset="paper") for one in first)]
    counted = statements_by_method(own)
    assert [len(found) for found in counted.values()] == [len(own.statements) - len(first), len(first)]


def test_true_shapes_are_computed_once_and_shown_for_both_methods(studied):
    _, run = studied
    default = run.result("experiment-1")["experiment"]
    printed = default | {"preset": "paper", "perfect": None}
    for ids, shown in ((default["ids"], True), (default["ids"][::-1], False)):
        records = {"experiment-1": default, "experiment-1-paper": printed | {"ids": ids}}
        results = StudyResults(
            SimpleNamespace(result=lambda part, records=records: {"experiment": records[part]})
        )
        results.__dict__["parameters"] = replace(SMALL, printed_method=True)
        assert (results.masks["-paper"].perfect is not None) == shown
        assert results.masks[""].perfect is not None


def test_a_refused_edit_is_explained(studied, tmp_path):
    _, out = _copied(studied, tmp_path)
    record = out / "parts" / "editing.json"
    said = json.loads(record.read_bytes())
    said["result"]["edits"][0]["exact"] = {"refused": "the measures contradict each other"}
    record.write_text(json.dumps(said))
    run = open_study(out)
    words = {what: ours for what, ours, _ in key_figures(StudyResults(run))}[
        "edits that attain what was asked for"
    ]
    assert words.endswith("1 refused, see below")
    (why,) = refusals(run)
    assert "the measures contradict each other" in why
    assert any(why in remark for remark in remarks(run))
    assert why in repr(report_page(run).sections)


def test_two_runs_in_one_folder_are_refused(studied):
    cohort, run = studied
    with (
        locked_folder(run.study.path),
        pytest.raises(BreastMorphError, match="another run works in this folder"),
    ):
        small_study(run.study.path, cohort)


def test_without_table_truth_and_one_scan_the_rest_is_done_and_the_report_says_why(tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 7, table=False, truth=False)
    (cohort / "scans" / "006.ply").write_bytes(b"ply\nnonsense")
    run = small_study(tmp_path / "study", cohort, only=("experiment-1", "experiment-3", "experiment-4"))
    assert run.result("check")["scans"]["006"]["verdict"] == "refused"
    assert list(run.failed_scans) == ["006"]
    assert str(tmp_path) not in json.dumps(run.failed_scans)
    assert run.failed == {}
    assert run.states["table"].status == run.states["truth"].status == "not possible"
    assert run.states["experiment-3"].status == "not possible"
    assert run.result("experiment-1")["experiment"]["perfect"] is None
    write_report(run)
    page = run.study.report.read_text()
    assert "there is no cohort.csv" in page
    assert run.states["experiment-3"].why.startswith("there is no cohort.csv")
    assert "truth behind the scans is not known" in page
    assert "This study is not finished" in page  # the parts that were not asked for
    # A table that comes later is used, and nothing else is done again.
    (cohort / "cohort.csv").write_text("id,operated\n" + "".join(f"{i:03d},yes\n" for i in range(6)))
    later = small_study(tmp_path / "study", cohort, only=["experiment-1", "experiment-3"])
    assert set(later.ran) == {"table", "experiment-3"}
    assert "operated" in later.states["experiment-3"].why


def test_the_report_of_an_unfinished_study(studied, tmp_path):
    _, out = _copied(studied, tmp_path)
    for name in ("experiment-1", "prediction", "figure-modes"):
        (out / "parts" / f"{name}.json").unlink()
    page = report_page(open_study(out))
    assert "not finished" in page.notice
    titles = [section.title for section in page.sections]
    assert len(titles) == len(set(titles)) == 11
    text = repr(page.sections)
    assert "Not done yet" in text
    assert "breastmorph paper --cohort cohort/ --out study/" in text


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 4)
    (tmp_path / "study").mkdir(mode=0o500)
    with pytest.raises(BreastMorphError, match="cannot be"):
        small_study(tmp_path / "study", cohort)


def test_a_folder_with_other_files_is_left_alone(studied, tmp_path):
    cohort, _ = studied
    (tmp_path / "cohort").mkdir()
    (tmp_path / "cohort" / "mine.ply").write_text("mine")
    with pytest.raises(BreastMorphError, match="holds other files"):
        small_study(tmp_path, cohort)
    assert [path.name for path in tmp_path.rglob("*")] == ["cohort", "mine.ply"]


def test_wrong_wishes_are_refused(studied, tmp_path):
    cohort, _ = studied
    with pytest.raises(BreastMorphError, match="no part 'experiment-9'"):
        small_study(tmp_path / "study", cohort, only=["experiment-9"])
    with pytest.raises(BreastMorphError, match="no such folder"):
        small_study(tmp_path / "other", tmp_path / "nowhere")
    with pytest.raises(BreastMorphError, match="holds no study") as caught:
        open_study(tmp_path)
    assert "breastmorph paper" in caught.value.text(COMMAND)


def test_one_seed_one_result(studied):
    _, run = studied
    drawn = run.result("experiment-2")["experiment"]["amounts"][0]["draws"]
    assert not np.array_equal(drawn[0]["subjects"], drawn[1]["subjects"])
    assert {part.settings.get("seed", SMALL.seed) for part in run.plan} == {SMALL.seed}
