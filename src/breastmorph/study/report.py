"""The report of a study: its parts as sections of one page."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any

from breastmorph import __version__
from breastmorph.foundation.errors import Finding
from breastmorph.foundation.files import plain
from breastmorph.registration.parameters import preset
from breastmorph.report.page import Block, Code, Page, Reproducibility, Section, Table, Text, write_page
from breastmorph.scan.check import CheckParameters
from breastmorph.study.experiment_sections import (
    clinical_section,
    data_section,
    masks_section,
    operated_section,
)
from breastmorph.study.part import making_command
from breastmorph.study.plan import EXPERIMENTS
from breastmorph.study.running import StudyRun
from breastmorph.study.sections import (
    cohort_section,
    editing_section,
    model_section,
    prediction_section,
    statement_table,
)
from breastmorph.study.summary import (
    StudyResults,
    facts,
    few_subjects,
    key_figures,
    statements_by_method,
    tally_text,
)

_LIBRARIES = ("numpy", "scipy", "numba", "libigl", "potpourri3d", "qdldl", "h5py", "matplotlib")
_METHODS = {"default": "default method", "paper": "printed method"}
_PAPER = (
    "Weiherer et al., Learning the shape of female breasts: an open-access 3D statistical shape model of the female "
    "breast built from 110 breast scans"
)


def write_report(run: StudyRun, output: Path | None = None) -> Path:
    """Write the report of a study, finished or not; returns the file. The same study gives the same bytes."""
    path = output or run.study.report
    write_page(path, report_page(run))
    return path


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
            _reproduction(results),
        ),
        f"{scans} {'synthetic ' if phantom else ''}adult torso scans, beside: {_PAPER}",
        facts(results),
        notice,
    )


def _statements(results: StudyResults) -> Section:
    found = results.statements
    if not found:
        return Section("The paper beside this study", (Text(("No experiment is finished yet.",)),))
    against = sum(one.by_truth == "contradicts" for one in found)
    texts = [
        "The cohort is not the paper's, so the numbers differ. What can be compared are statements: does what the "
        "paper says hold here too, by a test where one is possible? "
        + " ".join(
            f"{what[0].upper()}{what[1:]}: {tally_text(some)}."
            for what, some in statements_by_method(results).items()
        ),
    ]
    if against:
        texts.append(
            f"In {against} of them the truth contradicts the measure: it prefers the registration that is wrong. The "
            "sections below say how, and docs/paper-notes.md analyses why."
        )
    groups = dict.fromkeys((one.experiment, one.preset) for one in found)
    tables = [
        statement_table(
            [one for one in found if (one.experiment, one.preset) == (experiment, method)],
            EXPERIMENTS[experiment] + (f", {_METHODS.get(method, method)}" if method else ""),
        )
        for experiment, method in groups
    ]
    numbers = Table(
        "Key figures beside the paper's",
        ("", "here", "paper"),
        tuple(key_figures(results)),
    )
    return Section("The paper beside this study", (Text(tuple(texts)), numbers, *tables))


def _what_was_done(results: StudyResults) -> Section:
    run = results.run
    ways = len(results.parameters.variants)
    blocks: list[Block] = [
        Text(
            (
                f"The scans were checked and registered {ways} times: with and without breast masks"
                + (", by the default method and by the method as the paper prints it" if ways > 2 else "")
                + ". A shape model was built from each. The four experiments of the paper's section 4 and its two "
                "applications of section 5 follow. Default and printed method differ where the print cannot be taken "
                "literally or can be done better; docs/paper-notes.md lists every departure.",
            )
        )
    ]
    other = [part for part in run.plan if run.states[part.name].status != "done"]
    if other:
        rows = tuple((part.title, run.states[part.name].status, run.states[part.name].why) for part in other)
        blocks.append(Table("Parts without a result", ("part", "state", "why"), rows))
        if any(not run.states[part.name].settled for part in other):
            blocks.append(Text(("Missing and failed parts are computed by running the same command again:",)))
            blocks.append(Code(command_of(results)))
    return Section("What was done", tuple(blocks))


def _reproduction(results: StudyResults) -> Section:
    return Section(
        "How to get these results again",
        (
            Text(
                (
                    f"With BreastMorph {results.description['version']} and the same inputs, this command gives the "
                    "same numbers; the record below has all parameters, seeds, versions and hashes of the inputs.",
                )
            ),
            Code(command_of(results)),
            Reproducibility(record_of(results), "study-record.json"),
        ),
    )


_TOLD = ("unit", "scale_by", "landmark_order", "max_faces")  # of the check's parameters: those with an option


def command_of(results: StudyResults) -> str:
    """The command that makes the study; folders by name only, since reports are passed on."""
    p = results.parameters
    own = results.description.get("cohort")
    out = quote(f"{results.run.study.path.resolve().name}/")
    if making_command(p, own) == "demo":
        return _command("demo", n=p.phantom, seed=p.seed, out=out)
    cohort = quote(f"{Path(own).name}/") if own else ""
    more = [] if p.printed_method else [Finding("study/paper-no-printed")]
    more += [
        Finding(f"study/paper-{name.replace('_', '-')}", {"value": value})
        for name, value in asdict(p.check).items()
        if name in _TOLD and value != getattr(CheckParameters(), name)
    ]
    of = Finding("study/paper-own", {"folder": cohort})
    of = of if own else Finding("study/paper-phantom", {"n": p.phantom})
    return _command("paper", cohort=of, out=out, seed=p.seed, samples=p.samples, more=more)


def _command(which: str, **values: object) -> str:
    return Finding(f"study/{which}", values).said("command").cause


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
