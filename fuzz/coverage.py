"""Coverage-guided fuzzing of one reader with atheris, which is not among our dependencies (``pip install atheris``).

    python -m fuzz.coverage "PLY binary" --seconds 300 --keep found/

Seeds and mutations are those of ``python -m fuzz``; atheris chooses among them by the lines of our code they reach.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["breastmorph"]):
    # Readers of models are loaded when they are first used, which would be too late to be instrumented.
    from fuzz.child import outcome_of
    from fuzz.inputs import mutated
    from fuzz.targets import TARGETS


def main() -> None:
    """Run until the time is over or an input does harm, which is then kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reader", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--keep", type=Path, default=Path(), help="folder for an input that did harm")
    chosen = parser.parse_args()
    target = TARGETS[chosen.reader]
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, seeds = target.prepared(folder)
        corpus = folder / "corpus"
        corpus.mkdir()
        for number, data in enumerate(seeds):
            (corpus / str(number)).write_bytes(data)

        def one(data: bytes) -> None:
            path.write_bytes(data)
            kind, detail = outcome_of(target.read, path)
            if kind not in ("value", "own"):
                raise RuntimeError(f"{kind}: {detail}")

        def mutate(data: bytes, largest: int, seed: int) -> bytes:
            rng = Random(seed)  # noqa: S311
            if rng.randrange(3) == 0:
                return atheris.Mutate(data, largest)
            return mutated([data, data, *seeds], target.layout, rng)[:largest]

        limits = ["-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=512", "-max_len=100000"]
        said = [
            f"-max_total_time={chosen.seconds}",
            f"-artifact_prefix={chosen.keep.resolve()}/",
            "-print_final_stats=1",
        ]
        atheris.Setup([sys.argv[0], *limits, *said, str(corpus)], one, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
