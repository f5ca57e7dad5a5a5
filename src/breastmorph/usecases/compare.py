"""Compare scans: what changed between visits of one person, and how well repeated scans of unchanged people agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from breastmorph.clinical.comparer import Comparer
from breastmorph.clinical.comparison import Comparison
from breastmorph.clinical.repeatability import Repeatability, RepeatStudy, repeat_study
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template
from breastmorph.usecases import Progress, no_progress
from breastmorph.usecases.register import register_scan

Visit = Scan | ScanFiles


@dataclass(frozen=True, eq=False)
class CompareRequest:
    """Which visits of one person to compare.

    Attributes
    ----------
    visits : sequence of Scan or ScanFiles
        Two or more, in their order.
    template : Template, optional
        The default one when not given.
    repeatability : Repeatability, optional
        Where the +- come from; that of phantoms when not given.
    check : CheckParameters
        How files are read.
    """

    visits: Sequence[Visit]
    template: Template | None = None
    repeatability: Repeatability | None = None
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class CompareRepeatedRequest:
    """Of which people to compare repeated scans.

    Attributes
    ----------
    people : mapping from name to sequence of Scan or ScanFiles
        The scans of each, two or more.
    source : str
        Who they are, in a few words; "" counts those who were compared.
    folder : str
        The folder they come from, named beside that count.
    template, repeatability, check
        As for :class:`CompareRequest`.
    """

    people: Mapping[str, Sequence[Visit]]
    source: str = ""
    folder: str = ""
    template: Template | None = None
    repeatability: Repeatability | None = None
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class RepeatedScans:
    """How well repeated scans agree, and of whom it is not known.

    Attributes
    ----------
    study : RepeatStudy
    failed : mapping from name to BreastMorphError
    """

    study: RepeatStudy
    failed: Mapping[str, BreastMorphError]


def compare(request: CompareRequest) -> Comparison:
    """Say what changed between scans of one person, and whether it is more than noise.

    Raises
    ------
    BreastMorphError
        A scan was refused, or they are not of one person.
    """
    template = request.template or default_template()
    return _compared(Comparer(template, request.repeatability), request.visits, request.check)


def compare_repeated(request: CompareRepeatedRequest, progress: Progress = no_progress) -> RepeatedScans:
    """Say how well repeated scans of unchanged people agree; people who cannot be compared do not stop the rest.

    Raises
    ------
    BreastMorphError
        None of them can be compared; the error is that of the first.
    """
    comparer = Comparer(request.template or default_template(), request.repeatability)
    found: dict[str, Comparison] = {}
    failed: dict[str, BreastMorphError] = {}
    with progress(len(request.people)) as advance:
        for person, visits in request.people.items():
            try:
                found[person] = _compared(comparer, visits, request.check)
            except BreastMorphError as error:
                failed[person] = error
            advance()
    if failed and not found:
        raise next(iter(failed.values()))
    counted = f"{len(found)} people" + (f" of {request.folder}" if request.folder else "")
    return RepeatedScans(repeat_study(found, request.source or counted), failed)


def _compared(comparer: Comparer, visits: Sequence[Visit], check: CheckParameters) -> Comparison:
    if len(visits) < 2:
        raise BreastMorphError(
            "there is only one scan", "Give two or more scans of one person", code="too-few-visits"
        )
    upright = comparer.template.as_reference
    scans = [
        visit if isinstance(visit, Scan) else check_scan(visit, check, upright).accepted() for visit in visits
    ]
    return comparer.compare(scans, register_scan(scans[0], comparer.template))
