"""Print what the tests reach of every package, from the file that ``coverage json`` writes; `make coverage` runs it.

Numba compiles its kernels to machine code, which nobody can watch: functions under ``@compiled`` are not counted.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path, PurePath

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def package_of(file: str) -> str:
    """The package, or the module beside the packages, that a file belongs to."""
    inside = PurePath(file).parts
    return inside[len(inside) - inside[::-1].index("breastmorph")].removesuffix(".py")


def share(covered: int, of: int) -> str:
    """Percent, rounded down: 100 means all."""
    return f"{100 * covered // of:3d} %" if of else "  -  "


def table(measured: dict[str, dict[str, dict[str, dict[str, int]]]]) -> str:
    """Lines and branches by package, and of all."""
    packages: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for file, found in measured["files"].items():
        for name in (package_of(file), "all"):
            packages[name] = [
                sum(pair) for pair in zip(packages[name], map(found["summary"].get, COUNTS), strict=True)
            ]
    lines = [f"{'package':<14}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}"]
    for name in [*sorted(packages.keys() - {"all"}), "all"]:
        statements, run, branches, taken = packages[name]
        lines.append(
            f"{name:<14}{statements:8d}{share(run, statements):>9}{branches:10d}{share(taken, branches):>9}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="What `coverage json` wrote.")
    print(table(json.loads(parser.parse_args().file.read_text())))


if __name__ == "__main__":
    main()
