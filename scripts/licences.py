"""Licences of everything that is installed to run BreastMorph; fails where one would bind users of the package.

Stated licences are read from package metadata. What is really imported is found by importing every module of
BreastMorph in this process: a copyleft module that is installed but never loaded does no harm.

Example:
    python scripts/licences.py --requirements requirements.txt
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from installed import licence_of, required

COPYLEFT = re.compile(r"\b[AL]?GPL|GNU (Affero|Lesser|Library|General)", re.IGNORECASE)
# Parts of a package that are under the GPL while the package is not; they must never be loaded.
FORBIDDEN_MODULES = (
    "igl.copyleft",
    "igl.copyleft_cgal",
    "igl.triangle",
    "igl.tetgen",
    "pymeshlab",
    "cholespy",
)


def import_everything() -> list[str]:
    """Import all of BreastMorph; the modules that could not be imported, with the reason."""
    import breastmorph

    problems = []
    for module in pkgutil.walk_packages(breastmorph.__path__, "breastmorph."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            problems.append(f"{module.name}: {error}")
    for name in (
        "igl", "potpourri3d", "qdldl", "numba", "h5py", "matplotlib", "PIL", "jinja2", "uvicorn", "starlette",
    ):  # fmt: skip
        importlib.import_module(name)  # those that functions import when they are used
    return problems


def main() -> None:
    """Print the report; exit code 1 where a copyleft licence is installed by default or imported."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requirements", type=Path, default=Path("requirements.txt"))
    arguments = parser.parse_args()
    wrong = []
    for name in required(arguments.requirements):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed: run pip install -r {arguments.requirements} first")
        licence = licence_of(found)
        print(f"{found.metadata['Name']:20} {found.version:14} {licence}")
        if COPYLEFT.search(licence) or licence == "not stated":
            wrong.append(f"{name} is required: {licence}")
    for problem in import_everything():
        print(f"not imported: {problem}")
    owners = packages_distributions()
    loaded = {module.partition(".")[0] for module in sys.modules}
    for owner in sorted({owner for module in loaded for owner in owners.get(module, ())}):
        licence = licence_of(distribution(owner))
        if COPYLEFT.search(licence):
            wrong.append(f"{owner} is imported: {licence}")
    wrong += [f"{module} is imported" for module in FORBIDDEN_MODULES if module in sys.modules]
    print("\n".join(wrong) if wrong else "Nothing under GPL, LGPL or AGPL is required or imported.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
