"""Two studies side by side: two hospitals, two methods, before and after, with tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.phrases import plural
from breastmorph.paper.blocks import mean_sd, section, write_with_archive
from breastmorph.paper.cohort_table import PAPER
from breastmorph.paper.figure_parts import mask_curves
from breastmorph.paper.figures.curves import save_model_curves, save_series
from breastmorph.paper.report import command_of
from breastmorph.paper.running import StudyRun
from breastmorph.paper.sections import BANDS
from breastmorph.paper.significance import RELEVANT, SIGNED_RANKS, Comparison, paired, unpaired
from breastmorph.paper.summary import StudyResults, key_figures
from breastmorph.report.document import Block, Cell, Column, Figure, Page, Table, Text

_METRICS = {  # of a registration's record: title, unit, digits
    "distance_inside": ("template to scan, breast", "mm", 3),
    "distance_outside": ("template to scan, outside", "mm", 2),
    "angle_distortion": ("angle distortion", "°", 2),
    "flipped_percent": ("flipped triangles", "%", 4),
}
_WELCH = "Welch's t-test"


@dataclass(frozen=True, eq=False)
class Quantity:
    """One figure of every subject, in both studies.

    Attributes
    ----------
    name, unit : str
    ids : (first, second) sequences of str
        Of the subjects; empty where the values are of random samples.
    values : (first, second) arrays of float
    digits : int
        Of its means.
    """

    name: str
    unit: str
    ids: tuple[Sequence[str], Sequence[str]]
    values: tuple[Floats, Floats]
    digits: int = 2

    def compared(self, same: set[str]) -> Comparison:
        """First minus second: in pairs where the subjects are the same ones, otherwise as two sets."""
        places = [{name: k for k, name in enumerate(ids)} for ids in self.ids]
        shared = [name for name in self.ids[0] if name in same and name in places[1]]
        if shared and len(shared) == min(map(len, self.ids)):
            a, b = (self.values[s][[places[s][name] for name in shared]] for s in (0, 1))
            return paired(a, b)
        return unpaired(*self.values)


def compare_studies(first: StudyRun, second: StudyRun, output: Path) -> Path:
    """Write the page of two studies, and beside it an archive of its figure and tables; returns the page.

    Raises
    ------
    BreastMorphError
        One of them has no model yet.
    """
    both = StudyResults(first), StudyResults(second)
    names = _names(first, second)
    for results, name in zip(both, names, strict=True):
        if results.why_not("model-masks"):
            raise BreastMorphError(
                "the study {name} has no model yet",
                "Finish it: `breastmorph paper` into the same folder goes on where it was",
                results.run.study.path,
                name=name,
            )
    with TemporaryDirectory() as folder:
        page = _page(both, names, Path(folder))
        return write_with_archive(output, page, {}, "Figure and tables (ZIP)", with_files=False)


def same_scans(first: StudyRun, second: StudyRun) -> set[str]:
    """Subjects of both studies whose scans are the same files."""
    files = [run.result("scans").get("files", {}) for run in (first, second)]
    return {name for name in files[0] if name in files[1] and files[0][name] == files[1][name]}


def quantities(both: tuple[StudyResults, StudyResults]) -> Iterator[Quantity]:
    """What both studies have of every subject, or of every random sample."""
    found = [one.run.result("register-masks") for one in both]
    ids = tuple(one["subjects"] for one in found)
    for name, (title, unit, digits) in _METRICS.items():
        values = [one["metrics"].get(name) for one in found]
        if all(values):
            yield Quantity(title, unit, (ids[0], ids[1]), (_known(values[0]), _known(values[1])), digits)
    masks = [one.masks.get("") for one in both]
    if masks[0] is not None and masks[1] is not None:
        a, b = masks[0], masks[1]
        who = (a.ids, b.ids)
        last = min(int(one.with_masks.components[-1]) for one in (a, b))
        errors = a.with_masks.generalization[:, last], b.with_masks.generalization[:, last]
        yield Quantity(f"generalization, {plural(last, 'component')}", "mm", who, errors)
        yield Quantity(
            "specificity, random samples", "mm", ((), ()), (a.with_masks.sampled, b.with_masks.sampled)
        )
        if a.with_masks.truth is not None and b.with_masks.truth is not None:
            for c, where in enumerate(("breast", "outside")):
                off = a.with_masks.truth.correspondence[:, c], b.with_masks.truth.correspondence[:, c]
                yield Quantity(f"off the true place, {where}", "mm", who, off)
    clinical = [one.clinical for one in both]
    if all(one is not None and not one.impossible for one in clinical):
        kept = [one for one in clinical if one is not None]
        last = min(int(one.components[-1]) for one in kept)
        by_subject = [
            np.where(np.isfinite(one.straight).all(axis=2), one.straight.mean(axis=2), np.nan) for one in kept
        ]
        who = (kept[0].ids, kept[1].ids)
        yield Quantity(
            f"clinical distances, {plural(last, 'component')}",
            "mm",
            who,
            (by_subject[0][:, last], by_subject[1][:, last]),
        )


def _known(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _names(first: StudyRun, second: StudyRun) -> tuple[str, str]:
    """Names of the folders, distinguished where they are the same."""
    names = [run.study.path.resolve().name for run in (first, second)]
    return (names[0], names[1]) if names[0] != names[1] else (f"{names[0]} (first)", f"{names[1]} (second)")


def _page(both: tuple[StudyResults, StudyResults], names: tuple[str, str], folder: Path) -> Page:
    same = same_scans(both[0].run, both[1].run)
    counts = [len(one.run.result("scans").get("files", {})) for one in both]
    commands = [f"{name}: {command_of(one)}" for name, one in zip(names, both, strict=True)]
    pairing = (
        f"{plural(len(same), 'scan')} are the same files in both studies; where all subjects are, they are compared in "
        "pairs."
        if same
        else "The studies have no scan in common: subjects are compared as two sets."
    )
    return Page(
        "Two studies side by side",
        (
            section("Compared", pairing, _tests(both, names, same), *_table_1(both, names)),
            section("Curves", _curves(both, names, folder)),
            section("Key figures", _key(both, names)),
            section("How to get these studies again", *commands, appendix=True),
        ),
        f"{names[0]}: {plural(counts[0], 'scan')}; {names[1]}: {plural(counts[1], 'scan')}",
    )


def _tests(both: tuple[StudyResults, StudyResults], names: tuple[str, str], same: set[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in quantities(both):
        found = one.compared(same)
        letter = "S" if found.test == SIGNED_RANKS else "R"
        test = f"{found.p_text} ({letter}, {found.n})" if found.n else None
        means = (mean_sd(values, one.digits) for values in one.values)
        size = found.effect_text(one.unit) or None
        rows.append((f"{one.name}, {one.unit}", *means, size, test, found.verdict))
    return Table(
        "Means ± standard deviations over the subjects, and what differs",
        (
            "",
            *(Column(name, number=True) for name in names),
            f"{names[0]} minus {names[1]} (95 % interval)",
            "test",
            "verdict",
        ),
        tuple(rows),
        f"They differ where p < 0.05 and the difference is at least {100 * RELEVANT:.0f} % of the second. "
        "S: Wilcoxon's signed-rank test over the same subjects; R: Mann-Whitney test over two sets. d: in standard "
        "deviations. Smaller errors of models with fewer or more alike subjects are no merit.",
    )


def _table_1(both: tuple[StudyResults, StudyResults], names: tuple[str, str]) -> list[Block]:
    """The cohorts' own figures, tested from means and standard deviations."""
    figures = [one.run.result("table").get("figures", {}) for one in both]
    rows: list[tuple[Cell, ...]] = []
    for name, paper in PAPER.items():
        if not all(name in one for one in figures):
            continue
        a, b = (one[name] for one in figures)
        values = [f"{one['mean']:.1f} ± {one['sd']:.1f} ({one['n']})" for one in (a, b)]
        found = _welch(a, b)
        unit = paper.title.rpartition(", ")[2]
        rows.append(
            (paper.title, *values, found.effect_text(unit) or None, found.p_text or None, found.verdict)
        )
    if not rows:
        return []
    columns: tuple[Column | str, ...] = (
        "",
        *(Column(name, number=True) for name in names),
        "difference (95 % interval)",
        "Welch's test",
        "verdict",
    )
    return [Table("The cohorts: mean ± standard deviation (subjects)", columns, tuple(rows))]


def _welch(a: Mapping[str, float], b: Mapping[str, float]) -> Comparison:
    """Two cohorts of which only means, standard deviations and numbers of subjects are kept."""
    from scipy.stats import ttest_ind_from_stats

    difference, nan = a["mean"] - b["mean"], float("nan")
    spread = float(np.sqrt((a["sd"] ** 2 + b["sd"] ** 2) / 2.0))
    p = nan
    if min(a["n"], b["n"]) > 1 and spread > 0.0:
        each = [(one["mean"], one["sd"], one["n"]) for one in (a, b)]
        p = float(ttest_ind_from_stats(*each[0], *each[1], equal_var=False).pvalue)
    half = 1.96 * float(np.sqrt(sum(one["sd"] ** 2 / one["n"] for one in (a, b))))
    in_deviations = difference / spread if spread else nan
    ends = difference - half, difference + half
    fewest = int(min(a["n"], b["n"]))
    return Comparison(a["mean"], b["mean"], difference, *ends, p, _WELCH, fewest, in_deviations)


def _curves(both: tuple[StudyResults, StudyResults], names: tuple[str, str], folder: Path) -> Block:
    found = {name: one.masks[""].with_masks for name, one in zip(names, both, strict=True) if "" in one.masks}
    if len(found) < 2:
        return Text(("Experiment 1 is not finished in both studies.",))
    curves = {name: mask_curves(name, one) for name, one in found.items()}
    place = folder / "figures" / "curves"
    save_model_curves(place, list(curves.values()))
    kinds = ("compactness", "generalization", "specificity")
    save_series(place, {kind: {name: getattr(one, kind) for name, one in curves.items()} for kind in kinds})
    words = "Compactness (a), generalization (b) and specificity (c) of both studies' models with masks."
    return Figure.load(place, f"{words} {BANDS}")


def _key(both: tuple[StudyResults, StudyResults], names: tuple[str, str]) -> Table:
    figures = [{what: ours for what, ours, _ in key_figures(one)} for one in both]
    rows = tuple(
        (what, *(one.get(what) for one in figures)) for what in dict.fromkeys([*figures[0], *figures[1]])
    )
    return Table("Key figures of both studies", ("", *names), rows)
