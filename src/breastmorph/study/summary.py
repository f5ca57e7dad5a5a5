"""A study in a few figures, beside the paper's."""

from __future__ import annotations

from collections import Counter

import numpy as np

from breastmorph.evaluation.experiments.statement import YES
from breastmorph.study.results import StudyResults
from breastmorph.study.running import StudyRun

Line = tuple[str, str, str]  # what, ours, paper's


def key_figures(run: StudyRun) -> list[Line]:
    """The figures that a reader wants first; what the study does not have is left out."""
    results = StudyResults(run)
    return [
        *_registration(results),
        *_masks(results),
        *_others(results),
        *_applications(results),
        *_statements(results),
    ]


def facts(run: StudyRun) -> tuple[tuple[str, str], ...]:
    """The few figures for the top of a page."""
    results = StudyResults(run)
    lines = [
        *_statements(results),
        *_registration(results)[:1],
        *_masks(results),
        *_applications(results)[1:2],
    ]
    return tuple((what, ours) for what, ours, _ in lines)


def _registration(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    found = results.run.result("register-masks")
    if found:
        all_of_them = len(found["subjects"]) + len(found["failed"])
        lines.append(("scans registered", f"{len(found['subjects'])} of {all_of_them}", "110"))
    model = results.run.result("model-masks")
    if model and model["components"] >= 8:
        lines.append(("variance in 8 components", f"{100 * model['share']['8']:.0f} %", "about 85 %"))
    return lines


def _masks(results: StudyResults) -> list[Line]:
    found = results.masks.get("")
    if found is None:
        return []
    both = found.with_masks, found.without_masks
    lines: list[Line] = []
    if both[0].truth is not None and both[1].truth is not None:
        errors = [one.truth.correspondence[:, 0].mean() for one in both if one.truth is not None]
        lines.append(
            (
                "breast points off their true place (masks / none)",
                f"{errors[0]:.1f} / {errors[1]:.1f} mm",
                "not known",
            )
        )
    general = [one.generalization[:, -1].mean() for one in both]
    near = [one.specificity[-1] for one in both]
    return [
        *lines,
        ("generalization (masks / none)", f"{general[0]:.2f} / {general[1]:.2f} mm", "0.17 / 0.65 mm"),
        ("specificity (masks / none)", f"{near[0]:.2f} / {near[1]:.2f} mm", "about 2.8 mm / more"),
    ]


def _others(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    if results.operated is not None and not results.operated.impossible:
        last = int(results.operated.components[-1])
        both = [results.operated.curve(name)[0][last] for name in ("operated", "not_operated")]
        lines.append(
            ("model of operated / other breasts", f"{both[0]:.2f} / {both[1]:.2f} mm", "0.77 / 0.71 mm")
        )
    if results.clinical is not None and not results.clinical.impossible:
        average = float(results.clinical.average[-1])
        if np.isfinite(average):
            lines.append(("clinical distances of reconstructions", f"{average:.2f} mm off", "1.82 mm off"))
    return lines


def _applications(results: StudyResults) -> list[Line]:
    lines: list[Line] = []
    edits = [edit["exact"] for edit in results.run.result("editing").get("edits", ())]
    done = [edit["largest_error"] for edit in edits if "largest_error" in edit]
    if edits:
        largest = f", within {max(done):.2f} mm" if done else ""
        lines.append(
            ("edits that attain what was asked for", f"{len(done)} of {len(edits)}{largest}", "shown")
        )
    found = results.run.result("prediction")
    if found:
        surface = found["errors"]["surface"]["mean"]
        volume = found["errors"]["volume"]["median"]
        lines += [
            (
                "predicted breast off (model / mirror)",
                f"{surface['model']:.1f} / {surface['mirror']:.1f} mm",
                "shown",
            ),
            (
                "its volume off, median (model / mirror)",
                f"{volume['model']:.0f} / {volume['mirror']:.0f} cc",
                "-",
            ),
        ]
    return lines


def _statements(results: StudyResults) -> list[Line]:
    if not results.statements:
        return []
    counts = Counter(one.holds for one in results.statements)
    words = f"{counts[YES]} of {len(results.statements)} hold"
    return [("statements of the paper", words, "all")]
