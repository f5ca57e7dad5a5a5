"""Write requirements.lock: the versions of requirements.txt with the SHA-256 of every wheel in a folder.

With it, pip installs nothing but these very files (``--require-hashes``), wherever they lie. Fill the folder first,
once per platform and Python version (without --platform: for the machine at hand):

    pip download --no-deps --only-binary :all: -d wheels -r requirements.txt
    python scripts/lock.py wheels --out requirements.lock
    pip install --require-hashes --only-binary :all: -r requirements.lock
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import defaultdict
from pathlib import Path

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)")
_HEAD = """\
# Versions of requirements.txt with the SHA-256 of their wheels; written by scripts/lock.py, not by hand.
# Install with: pip install --require-hashes --only-binary :all: -r requirements.lock
"""


def plain(name: str) -> str:
    """A package's name as all spellings of it agree."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(requirements: Path, wheels: Path) -> str:
    """The text of the lock file."""
    hashes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        hashes[plain(name), version].append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    lines = []
    for line in requirements.read_text().splitlines():
        pin = _PIN.match(line)
        if not pin:
            continue
        found = sorted(set(hashes.get((plain(pin.group(1)), pin.group(2)), ())))
        if not found:
            sys.exit(f"{wheels} has no wheel of {pin.group(0)}: run pip download first (see --help)")
        lines.append(" \\\n".join([pin.group(0), *(f"    --hash=sha256:{digest}" for digest in found)]))
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Write the lock file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheels", type=Path, help="Folder of downloaded wheels.")
    parser.add_argument("--requirements", type=Path, default=Path("requirements.txt"))
    parser.add_argument("--out", type=Path, default=Path("requirements.lock"))
    arguments = parser.parse_args()
    text = locked(arguments.requirements, arguments.wheels)
    arguments.out.write_text(text)
    print(f"{text.count('==')} packages, {text.count('--hash')} wheels written to {arguments.out}")


if __name__ == "__main__":
    main()
