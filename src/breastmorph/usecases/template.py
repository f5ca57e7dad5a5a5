"""Make a template: symmetric, evenly meshed, from one scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from breastmorph.foundation.text import name_of
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import Scan
from breastmorph.template.making import MadeTemplate, TemplateParameters, make_template


@dataclass(frozen=True)
class TemplateRequest:
    """Which scan becomes a template.

    Attributes
    ----------
    scan : Path
    landmarks : Path, optional
        Its landmark file; the program finds what that does not have.
    parameters : TemplateParameters
    check : CheckParameters
        How the scan is read.
    """

    scan: Path
    landmarks: Path | None = None
    parameters: TemplateParameters = field(default_factory=TemplateParameters)
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class TemplateOfScan:
    """A template with the scan it was made of."""

    made: MadeTemplate
    scan: Scan


def template_of_scan(request: TemplateRequest) -> TemplateOfScan:
    """Make a template.

    Raises
    ------
    BreastMorphError
        The scan was refused, or no template can be made of it.
    """
    marks = () if request.landmarks is None else (request.landmarks,)
    files = ScanFiles(name_of(request.scan.stem), request.scan, marks)
    scan = check_scan(files, request.check).accepted()
    return TemplateOfScan(make_template(scan, request.parameters), scan)
