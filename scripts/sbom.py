"""Write a software bill of materials (CycloneDX 1.5, JSON) of what is installed, from package metadata only.

Example:
    python scripts/sbom.py --requirements requirements.txt --out sbom.json
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from installed import licence_of, required

SPDX = re.compile(r"^[A-Za-z0-9.\-+]+( (AND|OR|WITH) [A-Za-z0-9.\-+]+)*$")


def component(found: Distribution) -> dict[str, Any]:
    """One package as CycloneDX describes it."""
    name, licence = found.metadata["Name"], licence_of(found)
    said = {"expression": licence} if SPDX.match(licence) else {"license": {"name": licence}}
    reference = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{found.version}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": found.version,
        "purl": reference,
        "licenses": [said],
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in recorded(found)],
    }


def recorded(found: Distribution) -> Iterator[str]:
    """A hash over the installed files as the package's RECORD lists them: it tells two builds of a version apart."""
    import hashlib

    listed = sorted(f"{file} {file.hash.value}" for file in found.files or () if file.hash)
    if listed:
        yield hashlib.sha256("\n".join(listed).encode()).hexdigest()


def bill(requirements: Path) -> dict[str, Any]:
    """The bill of everything that a requirements file names."""
    packages = []
    for name in required(requirements):
        try:
            packages.append(component(distribution(name)))
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed: run pip install -r {requirements} first")
    own = distribution("breastmorph")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "breastmorph",
                "name": "breastmorph",
                "version": own.version,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": packages,
        "dependencies": [{"ref": "breastmorph", "dependsOn": [one["bom-ref"] for one in packages]}],
    }


def main() -> None:
    """Write the bill."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requirements", type=Path, default=Path("requirements.txt"))
    parser.add_argument("--out", type=Path, default=Path("sbom.json"))
    arguments = parser.parse_args()
    found = bill(arguments.requirements)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found['components'])} packages written to {arguments.out}")


if __name__ == "__main__":
    main()
