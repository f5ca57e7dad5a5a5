"""What package metadata say of installed packages: which are required, and under which licence."""

from __future__ import annotations

import re
from importlib.metadata import Distribution
from pathlib import Path

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==")
_LONG = 60  # letters: a licence's whole text in the field for its name


def required(requirements: Path) -> list[str]:
    """Names pinned in a requirements file, without those of files it includes."""
    pins = (_PIN.match(line.strip()) for line in requirements.read_text().splitlines())
    return [pin.group(1) for pin in pins if pin]


def licence_of(found: Distribution) -> str:
    """The licence as the package states it: SPDX expression, short name or trove classifier."""
    said = found.metadata.get("License-Expression")
    if said:
        return str(said)
    named = (found.metadata.get("License") or "").strip()
    if 0 < len(named) <= _LONG and "\n" not in named and named.lower() not in ("unknown", "dual license"):
        return str(named)
    trove = [c for c in found.metadata.get_all("Classifier") or () if c.startswith("License ::")]
    return (
        " AND ".join(c.rsplit(" :: ", 1)[-1] for c in trove) or named.split("\n")[0][:_LONG] or "not stated"
    )
