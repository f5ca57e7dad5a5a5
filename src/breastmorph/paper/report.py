"""The report of a study: its parts as sections of one page."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any

from breastmorph import __version__
from breastmorph.foundation.files import plain
from breastmorph.foundation.phrases import plural
from breastmorph.model.files import load_model
from breastmorph.paper.blocks import section, statement_table, write_with_archive
from breastmorph.paper.parameters import making_command
from breastmorph.paper.plan import EXPERIMENTS
from breastmorph.paper.running import StudyRun
from breastmorph.paper.sections import (
    clinical_section,
    cohort_section,
    data_section,
    editing_section,
    masks_section,
    model_section,
    operated_section,
    prediction_section,
)
from breastmorph.paper.significance import RELEVANT
from breastmorph.paper.statements import Statement
from breastmorph.paper.summary import (
    StudyResults,
    facts,
    few_subjects,
    key_figures,
    statements_by_method,
    tally_text,
)
from breastmorph.registration.parameters import preset
from breastmorph.report.cards import PHANTOM
from breastmorph.report.document import Code, Figure, Page, Reproducibility, Section, Table
from breastmorph.report.page.writing import mean_png
from breastmorph.scan.check import CheckParameters

_LIBRARIES = ("numpy", "scipy", "numba", "libigl", "potpourri3d", "qdldl", "h5py", "matplotlib")
_ARCHIVE = "All figures for print with their data, tables and methods (ZIP)"
_METHODS = {"default": "default method", "paper": "printed method"}
_PAPER = (
    "Weiherer et al., Learning the shape of female breasts: an open-access 3D statistical shape model of the female "
    "breast built from 110 breast scans"
)


def write_report(run: StudyRun, output: Path | None = None) -> Path:
    """Write the report of a study, finished or not; returns the file. The same study gives the same bytes.

    Beside it goes an archive with every figure for print, the numbers behind it, the tables, and the methods paragraph.
    """
    path = output or run.study.report
    texts = {"methods.txt": methods(StudyResults(run)) + "\n"}
    beside = path.resolve().parent == run.study.path.resolve()
    return write_with_archive(path, report_page(run), texts, _ARCHIVE, with_files=beside)


def methods(results: StudyResults) -> str:
    """The methods paragraph of a paper about this study: what was done, with the versions used."""
    run, p = results.run, results.parameters
    model, checked = run.result("model-masks"), run.result("check").get("counts", {})
    found, used = sum(checked.values()), len(run.result("register-masks").get("subjects", ()))
    kind = (
        f"synthetic torsos (seed {p.seed}) with known truth"
        if p.phantom is not None
        else "3D surface scans of adult torsos"
    )
    template = preset("default")
    words = [
        f"{found} {kind} were checked for unit, orientation and adult anatomy; {used} were registered to one template "
        f"by BreastMorph {results.description['version']}"
        + (f" ({plural(checked['repaired'], 'scan')} repaired before)" if checked.get("repaired") else "")
        + ": similarity from landmarks, smooth warp that slides along the scan, and minimisation of an energy of "
        "distance, rigidity and landmarks, with and without breast probability masks"
        + (
            ", each also with the settings and steps as Weiherer et al. print them"
            if p.printed_method
            else ""
        )
        + f" (all {len(asdict(template))} parameters are in the study's record)."
    ]
    if model:
        words.append(
            f"Shapes of {plural(model['subjects'], 'subject')} with both breasts were aligned by generalized "
            f"Procrustes analysis and decomposed into {plural(model['components'], 'principal component')} of "
            f"{model['vertices']:,} vertices."
        )
    words.append(
        "Compactness is the cumulative share of the variance; generalization the mean distance of corresponding points "
        "between a left-out subject and its reconstruction by the model of the others; specificity the mean distance "
        f"of {p.samples} random samples to the nearest subject. Intervals are 95 % confidence intervals (bootstrap "
        "over subjects, 2,000 drawings; for compactness 1,000, or 300 of a subset; for specificity over the samples). "
        "Paired figures were compared by Wilcoxon's signed-rank test, samples by the Mann-Whitney test, both two-sided "
        "at 0.05 without correction for several tests; differences below "
        f"{100 * RELEVANT:.0f} % of the figure compared with were not taken for differences."
    )
    versions = {"Python": platform.python_version(), **_versions()}
    listed = ", ".join(f"{name} {number}" for name, number in versions.items())
    words.append(f"Computed with {listed}; the command was: {command_of(results)}")
    return " ".join(words)


def report_page(run: StudyRun) -> Page:
    """The page."""
    results = StudyResults(run)
    phantom = results.parameters.phantom is not None
    scans = len(run.result("scans").get("files", {})) or results.parameters.phantom or 0
    notice = "All torsos of this study are synthetic; nobody's data are in it." if phantom else ""
    missing = [part for part in run.plan if not run.states[part.name].settled]
    if missing:
        unfinished = f"This study is not finished: {len(missing)} of {len(run.plan)} parts are missing."
        notice = f"{unfinished} {notice}".strip()
    notice = f"{few_subjects(run)} {notice}".strip()
    return Page(
        "The paper's experiments on this cohort",
        (
            _statements(results),
            _what_was_done(results),
            cohort_section(results),
            masks_section(results),
            data_section(results),
            operated_section(results),
            clinical_section(results),
            model_section(results),
            editing_section(results),
            prediction_section(results),
            *_cards(results),
            _parameters(results),
        ),
        f"{scans} {'synthetic ' if phantom else ''}adult torso scans, beside: {_PAPER}",
        facts(results),
        notice,
        _first_picture(results),
    )


def _first_picture(results: StudyResults) -> Figure | None:
    """What the study is about: the mean shape, or the template where there is no model yet."""
    if results.why_not("model-masks"):
        return None
    model = load_model(results.run.study.model("masks"))
    return Figure(
        mean_png(model, titled=False),
        f"The mean shape of the {plural(model.info.get('subjects', 0), 'subject')}.",
    )


def _statements(results: StudyResults) -> Section:
    title, found = "The paper beside this study", results.statements
    if not found:
        return section(title, "No experiment is finished yet.")
    tallies = {what: tally_text(some) for what, some in statements_by_method(results).items()}
    against = sum(one.by_truth == "contradicts" for one in found)
    by_method: dict[tuple[int, str], list[Statement]] = {}
    for one in found:
        by_method.setdefault((one.experiment, one.preset), []).append(one)
    tables = [
        statement_table(
            some, EXPERIMENTS[experiment] + (f", {_METHODS.get(method, method)}" if method else "")
        )
        for (experiment, method), some in by_method.items()
    ]
    return section(
        title,
        "The cohort is not the paper's, so the numbers differ. What can be compared are statements: does what the "
        "paper says hold here too, by a test where one is possible? "
        + " ".join(f"{what[0].upper()}{what[1:]}: {tally}." for what, tally in tallies.items()),
        f"In {against} of them the measure prefers the registration that is worse by truth. The "
        "sections below say how, and docs/paper-notes.md analyses why."
        if against
        else None,
        Table("Key figures beside the paper's", ("", "here", "paper"), tuple(key_figures(results))),
        *tables,
    )


def _what_was_done(results: StudyResults) -> Section:
    run, ways = results.run, len(results.parameters.variants)
    other = {part.title: run.states[part.name] for part in run.plan if run.states[part.name].status != "done"}
    rows = tuple((title, state.status, state.why) for title, state in other.items())
    unsettled = not all(state.settled for state in other.values())
    return section(
        "What was done",
        f"The scans were checked and registered {ways} times: with and without breast masks"
        + (", by the default method and by the method as the paper prints it" if ways > 2 else "")
        + ". A shape model was built from each. The four experiments of the paper's section 4 and its two "
        "applications of section 5 follow. Default and printed method differ where the print cannot be taken "
        "literally or can be done better; docs/paper-notes.md lists every departure.",
        section("Methods, for a paper", methods(results)),
        Table("Parts without a result", ("part", "state", "why"), rows) if rows else None,
        "Missing and failed parts are computed by running the same command again:" if unsettled else None,
        Code(command_of(results)) if unsettled else None,
    )


def _cards(results: StudyResults) -> list[Section]:
    """What a synthetic cohort is and is not."""
    if results.parameters.phantom is None:
        return []
    card = Table(PHANTOM.name, ("", ""), tuple(PHANTOM.rows()))
    return [section("What the synthetic cohort is, and is not", card, appendix=True)]


def _parameters(results: StudyResults) -> Section:
    return section(
        "How to get these results again",
        f"With BreastMorph {results.description['version']} and the same inputs, this command gives the "
        "same numbers; the record below has all parameters, seeds, versions and hashes of the inputs.",
        Code(command_of(results)),
        Reproducibility(record_of(results), "study-record.json"),
        appendix=True,
    )


_WITH_OPTION = (
    "unit",
    "scale_by",
    "landmark_order",
    "max_faces",
)  # of the check's parameters: those with an option


def command_of(results: StudyResults) -> str:
    """The command that makes the study; folders by name only, since reports are passed on."""
    p = results.parameters
    own = results.description.get("cohort")
    out = quote(f"{results.run.study.path.resolve().name}/")
    if making_command(p, own) == "demo":
        return f"breastmorph demo --n {p.phantom} --seed {p.seed} --out {out}"
    cohort = "--cohort " + quote(f"{Path(own).name}/") if own else f"--phantom {p.phantom}"
    more = "" if p.printed_method else " --no-printed-method"
    for name, value in asdict(p.check).items():
        if name in _WITH_OPTION and value != getattr(CheckParameters(), name):
            given = ",".join(value) if isinstance(value, (list, tuple)) else value
            more += f" --{name.replace('_', '-')} {given}"
    return f"breastmorph paper {cohort} --out {out} --seed {p.seed} --samples {p.samples}{more}"


def record_of(results: StudyResults) -> dict[str, Any]:
    """All that is needed to get the results again, and what they were."""
    run, description = results.run, results.description
    records = {part.name: run.study.record(part.name) for part in run.plan}
    return {
        "versions": {
            "BreastMorph": description["version"],
            "program": description["program"],
            "report written by": __version__,
            "Python": platform.python_version(),
            **_versions(),
        },
        "parameters": description["parameters"],
        "registration": {
            variant.name: {
                "preset": variant.preset,
                "parameters": plain(asdict(preset(variant.preset, use_masks=variant.masks))),
            }
            for variant in results.parameters.variants
        },
        "inputs": {
            "template": description["inputs"]["template"],
            "scans": run.result("scans").get("files", {}),
            "table": run.result("table").get("file", ""),
            "truth": run.result("truth").get("files", {}),
        },
        "parts": {
            name: {
                "state": run.states[name].status,
                "key": run.states[name].key,
                "digest": record.get("digest", "") if run.states[name].settled else "",
            }
            for name, record in records.items()
        },
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
