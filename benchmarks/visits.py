"""Two visits of one person: what is called changed where nothing changed, and what is found where something did.

    python benchmarks/visits.py [--n 110] [--seed 4242] [--rows rows.jsonl] [--calibrate repeatability.json]
    python benchmarks/visits.py --first FOLDER --second FOLDER

Phantoms are scanned twice, in another posture and breath, half of them with a real change of one breast. The second
form takes two folders with `scans/`, `landmarks/` and, in the second, `truth/` with `volume_change_left` and `_right`
(cc); by default the realistic torsos beside the repository, where present. `--rows` keeps one line a pair, and a later
run goes on from there. `--calibrate` fits the spread of unchanged sides by size, hidden skin and posture, and writes
the file that comparisons take: the built-in one was made so, and says of how many people.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import measuring  # noqa: F401  (one core)
from breastmorph.clinical.comparison import Comparer, Comparison
from breastmorph.clinical.repeatability import SURE, Repeatability, VolumeNoise
from breastmorph.phantom import write_cohort
from breastmorph.registration.pipeline import Registrar
from breastmorph.scan.check import find_scans, load_scan
from breastmorph.scan.scan import SIDES, Scan
from breastmorph.template import default_template

BESIDE = Path(__file__).parents[2] / "shared"
UNCHANGED = 10.0  # cc: less is no change worth the name
LARGE = 40.0  # cc
KEPT = ("id", "true", "found", "before", "hidden", "posture", "measures")


def phantoms(n: int, seed: int, folder: Path) -> Iterator[tuple[str, Scan, Scan, Path]]:
    """Pairs of scans with the second one's truth."""
    write_cohort(folder, n, seed, visits=2)
    for truth in sorted((folder / "truth").glob("*_2.npz")):
        name = truth.stem[:-2]
        scans = (_scan(folder, f"{name}_{visit}") for visit in (1, 2))
        yield (name, *scans, truth)


def folders(first: Path, second: Path) -> Iterator[tuple[str, Scan, Scan, Path]]:
    """The same of two folders with scans of the same names."""
    for truth in sorted((second / "truth").glob("*.npz")):
        yield truth.stem, _scan(first, truth.stem), _scan(second, truth.stem), truth


def _scan(folder: Path, name: str) -> Scan:
    return load_scan(find_scans(folder / "scans" / f"{name}.ply", folder / "landmarks")[0])


def row_of(name: str, found: Comparison, truth: Path) -> dict:
    """What is kept of a pair."""
    with np.load(truth) as known:
        true = [float(known[f"volume_change_{side}"]) for side in SIDES]
    last = found.last
    values = (
        name,
        true,
        [last.volumes[side].change for side in SIDES],
        [last.volumes[side].before for side in SIDES],
        [last.hidden[side] for side in SIDES],
        last.stance.posture,
        {f"{one.name} {one.kind}": one.change for one in last.measures},
    )
    return dict(zip(KEPT, values, strict=True))


def sides(rows: list[dict]) -> dict[str, np.ndarray]:
    """All breasts as columns: error, truth, found, volume, hidden share, posture."""
    columns = {
        key: np.array([row[key] for row in rows], float).ravel()
        for key in ("true", "found", "before", "hidden")
    }
    columns["posture"] = np.repeat([row["posture"] for row in rows], 2)
    columns["volume"] = columns["before"] + 0.5 * columns["found"]
    columns["error"] = columns["found"] - columns["true"]
    return columns


def fitted_noise(rows: list[dict]) -> VolumeNoise:
    """The spread of unchanged sides: four squares whose weights are fitted to the squared errors."""
    c = sides(rows)
    same = np.abs(c["true"]) < UNCHANGED
    parts = np.column_stack(
        [
            np.ones(same.sum()),
            c["volume"][same] ** 2,
            (c["hidden"] * c["volume"])[same] ** 2,
            c["posture"][same] ** 2,
        ]
    )
    squares, weights = c["error"][same] ** 2, np.ones(same.sum())
    for _ in range(30):  # the spread of a square is the square of its mean: weigh by that
        found = nnls(parts * weights[:, None], squares * weights)[0]
        found[0] = max(found[0], 9.0)  # at least 3 cc: nobody is surer than that
        weights = 1.0 / np.maximum(parts @ found, 9.0)
    # So that the mean squared standard score is one.
    found *= np.mean(squares / (parts @ found))
    return VolumeNoise(*map(float, np.sqrt(found)))


def calibrated(rows: list[dict], source: str) -> Repeatability:
    """What comparisons take; distances by people without any change."""
    still = [row for row in rows if max(map(abs, row["true"])) < UNCHANGED]
    names = sorted(set.intersection(*(set(row["measures"]) for row in still)))
    within = {}
    for name in names:
        changes = np.array([row["measures"][name] for row in still], float)
        changes = changes[np.isfinite(changes)]
        if len(changes):
            within[name] = float(np.sqrt(np.mean(changes**2) / 2.0))
    return Repeatability(within, fitted_noise(rows), len(still), source)


def report(title: str, rows: list[dict], known: Repeatability) -> None:
    """Print the figures."""
    c = sides(rows)
    sd = np.array(
        [known.volume.sd(*values) for values in zip(c["volume"], c["hidden"], c["posture"], strict=True)]
    )
    same, large = np.abs(c["true"]) < UNCHANGED, np.abs(c["true"]) > LARGE
    called = np.abs(c["found"]) > SURE * sd
    error, share = c["error"][same], 100.0 * (c["error"] / c["volume"])[same]
    print(f"{title}: {len(rows)} pairs")
    print(
        f"  {same.sum()} unchanged sides: sd {error.std():.1f} cc ({share.std():.1f} %), bias {error.mean():+.1f} cc, "
        f"largest {np.abs(error).max():.0f} cc, called changed {called[same].sum()} ({100 * called[same].mean():.0f} %)"
    )
    if (~same).any():
        print(
            f"  {(~same).sum()} changed: median error {np.median(np.abs(c['error'][~same])):.0f} cc, "
            f"above {LARGE:.0f} cc found {called[large].sum()} of {large.sum()}"
        )
    z = c["error"] / sd
    print(f"  within one sd {100 * np.mean(np.abs(z) < 1):.0f} %, two {100 * np.mean(np.abs(z) < 2):.0f} %")
    for name in ("SN-NL straight", "SN-NR straight", "NL-NR straight"):
        still = [row for row in rows if max(map(abs, row["true"])) < UNCHANGED and name in row["measures"]]
        changes = np.array([row["measures"][name] for row in still])
        print(f"  {name}: sd of the change {changes.std():.2f} mm in {len(changes)} unchanged people")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=110)
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--calibrate", type=Path)
    parser.add_argument("--first", type=Path, default=BESIDE / "torsos")
    parser.add_argument("--second", type=Path, default=BESIDE / "torsos-visit2")
    given = parser.parse_args()
    template = default_template()
    comparer, registrar = Comparer(template), Registrar(template)
    rows = (
        [json.loads(line) for line in given.rows.read_text().splitlines()]
        if given.rows and given.rows.exists()
        else []
    )

    def compared(pairs: Iterator[tuple[str, Scan, Scan, Path]], known: list[dict]) -> list[dict]:
        done = {row["id"] for row in known}
        for name, first, second, truth in pairs:
            if name not in done:
                row = row_of(name, comparer.compare([first, second], registrar.register(first)), truth)
                known.append(row)
                if given.rows and known is rows:
                    with given.rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
        return known

    if given.n > len(rows):
        with tempfile.TemporaryDirectory() as folder:
            compared(phantoms(given.n, given.seed, Path(folder)), rows)
    known = comparer.repeatability
    if given.calibrate:
        known = calibrated(rows, f"phantoms scanned twice, seed {given.seed}")
        known.save(given.calibrate)
        print(known.volume)
    if rows:
        report(f"Phantoms, seed {given.seed}", rows, known)
    if (given.second / "truth").is_dir():
        report("Realistic torsos", compared(folders(given.first, given.second), []), known)
    else:
        print("The realistic torsos are not here.")


if __name__ == "__main__":
    main()
