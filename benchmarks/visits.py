"""Two visits of one person: what is called changed where nothing changed, and what is found where something did.

    python benchmarks/visits.py [--n 110] [--seed 77] [--rows rows.jsonl]
    python benchmarks/visits.py --seed 4242 31 57 --calibrate repeatability.json
    python benchmarks/visits.py ... --calibrate repeatability.json --add
    python benchmarks/visits.py --phantom PHANTOM [--second-visits FOLDER] [--registered OUT]
    python benchmarks/visits.py --first FOLDER --second FOLDER

Phantoms are scanned twice, in another posture and breath, half of them with a real change of one breast. The second
form takes those that `phantom --visits 2` wrote (the second visits may lie elsewhere), and what `register` made of
the first visits. The third takes two folders with `scans/`, `landmarks/` and, in the second, `truth/` with
`volume_change_left` and `_right` (cc); by default the realistic torsos beside the repository, where present. `--rows`
keeps one line a pair, and a later run goes on from there. `--calibrate` fits the spread of unchanged sides by size,
hidden skin and posture, and writes the file that comparisons take: the built-in one was made so, of ``--n`` phantoms of
each seed, and says of how many people. `--add` keeps what the built-in file knows and adds the measures that it lacks:
fewer people will do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import nnls

import measuring  # noqa: F401  (one core)
from breastmorph.clinical.comparer import Comparer
from breastmorph.clinical.comparison import Comparison
from breastmorph.clinical.distances import DISTANCES
from breastmorph.clinical.measure_table import SURE
from breastmorph.clinical.repeatability import Repeatability, VolumeNoise
from breastmorph.cohort import load_cohort
from breastmorph.phantom import write_cohort
from breastmorph.registration.pipeline import Registrar
from breastmorph.scan.check import check_scan, find_scans
from breastmorph.scan.scan import SIDES, Scan
from breastmorph.template import default_template

BESIDE = Path(__file__).parents[2] / "shared"
UNCHANGED = 10.0  # cc: less is no change worth the name
LARGE = 40.0  # cc
KEPT = ("id", "true", "found", "before", "hidden", "posture", "measures", "true_measures")


@dataclass(frozen=True)
class Pair:
    """Where the two scans of one person are, each by its folder and name."""

    id: str
    first: tuple[Path, str]
    second: tuple[Path, str]

    def scans(self) -> tuple[Scan, Scan]:
        """Both, read."""
        return _scan(*self.first), _scan(*self.second)

    def truths(self) -> tuple[Path, Path]:
        """The files with what is known of them."""
        first, second = (folder / "truth" / f"{name}.npz" for folder, name in (self.first, self.second))
        return first, second


def phantoms(folder: Path, second: Path | None = None, called: str = "") -> list[Pair]:
    """Two visits in one folder (NAME_1 and NAME_2), or first visits (NAME) in one and second ones in another.

    Pairs are ``called`` something before NAME.
    """
    found = []
    for truth in sorted(((second or folder) / "truth").glob("*_2.npz")):
        name = truth.stem[:-2]
        before = f"{name}_1" if second is None else name
        if (folder / "truth" / f"{before}.npz").exists():
            found.append(Pair(called + name, (folder, before), (second or folder, truth.stem)))
    return found


def folders(first: Path, second: Path) -> list[Pair]:
    """Two folders with scans of the same names."""
    names = [truth.stem for truth in sorted((second / "truth").glob("*.npz"))]
    return [Pair(name, (first, name), (second, name)) for name in names]


def _scan(folder: Path, name: str) -> Scan:
    files = find_scans(folder / "scans" / f"{name}.ply", folder / "landmarks")[0]
    return check_scan(files, reference=default_template().as_reference).accepted()


def row_of(name: str, found: Comparison, truths: tuple[Path, Path]) -> dict:
    """What is kept of a pair."""
    places = []
    for truth in truths:
        with np.load(truth) as known:
            places.append(dict(zip(known["landmark_names"].tolist(), known["landmark_true"], strict=True)))
            if truth == truths[1]:
                true = [float(known[f"volume_change_{side}"]) for side in SIDES]
    really = {}
    for measure in ("SN-NL", "SN-NR", "NL-NR"):
        ends = DISTANCES[measure].landmarks
        if all(end in known for end in ends for known in places):
            before, after = (float(np.linalg.norm(known[ends[0]] - known[ends[1]])) for known in places)
            really[f"{measure} straight"] = after - before
    last = found.last
    values = (
        name,
        true,
        [last.volumes[side].change for side in SIDES],
        [last.volumes[side].before for side in SIDES],
        [last.hidden[side] for side in SIDES],
        last.stance.posture,
        {f"{one.name} {one.kind}": one.change for one in last.measures},
        really,
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
    # So that the mean squared standard score is one, and that no more than one unchanged side in twenty is called
    # changed: errors reach further than a normal distribution has them. Of all sides, not of these: as few of these as
    # say so with 95 % confidence.
    spread = parts @ found
    called = 0.05 - 1.645 * np.sqrt(0.05 * 0.95 / same.sum())
    tail = np.quantile(c["found"][same] ** 2 / spread, 1.0 - max(called, 0.0), method="higher") / SURE**2
    found *= max(float(np.mean(squares / spread)), float(tail))
    return VolumeNoise(*map(float, np.sqrt(found)))


def crossed(rows: list[dict]) -> None:
    """Print how many unchanged sides are called changed by a spread that was fitted on the other half of the people."""
    called, large = [], []
    for half in (0, 1):
        noise, c = fitted_noise(rows[half::2]), sides(rows[1 - half :: 2])
        sd = [noise.sd(*values) for values in zip(c["volume"], c["hidden"], c["posture"], strict=True)]
        beyond = np.abs(c["found"]) > SURE * np.array(sd)
        called.append(beyond[np.abs(c["true"]) < UNCHANGED])
        large.append(beyond[np.abs(c["true"]) > LARGE])
    shares = " and ".join(f"{100 * one.mean():.0f} %" for one in called)
    wrong, found = np.concatenate(called), np.concatenate(large)
    print(
        f"  spread fitted on one half, judged on the other: called changed {wrong.sum()} of {wrong.size} ({shares}), "
        f"above {LARGE:.0f} cc found {found.sum()} of {found.size}"
    )


def calibrated(rows: list[dict], source: str) -> Repeatability:
    """What comparisons take; all measures but volumes by people without any change."""
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
        changes, true = (np.array([row[key][name] for row in still]) for key in ("measures", "true_measures"))
        print(
            f"  {name}: sd of the change {changes.std():.2f} mm in {len(changes)} unchanged people, of whom it really "
            f"changed by {true.std():.2f} mm with posture and breath; error {(changes - true).std():.2f} mm"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=110)
    parser.add_argument("--seed", type=int, nargs="+", default=[77])
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--calibrate", type=Path)
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--phantom", type=Path)
    parser.add_argument("--second-visits", type=Path)
    parser.add_argument("--registered", type=Path)
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

    def compared(pairs: list[Pair], known: list[dict], registered: Path | None = None) -> list[dict]:
        done, shapes = {row["id"] for row in known}, {}
        if registered is not None:
            cohort = load_cohort(registered, packed_in=Path(scratch))
            shapes = {name: (cohort.shape(k), cohort.absent[k]) for k, name in enumerate(cohort.ids)}
        for pair in pairs:
            if pair.id in done:
                continue
            scans = pair.scans()
            if pair.first[1] in shapes:
                vertices, absent = shapes[pair.first[1]]
                first = SimpleNamespace(vertices=vertices, absent_side=absent, warnings=())
            else:
                first = registrar.register(scans[0])
            row = row_of(pair.id, comparer.compare(scans, first), pair.truths())
            known.append(row)
            if given.rows and known is rows:
                with given.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        return known

    with tempfile.TemporaryDirectory() as scratch:
        if given.phantom is not None:
            compared(phantoms(given.phantom, given.second_visits), rows, given.registered)
        else:
            for seed in given.seed:
                called = f"{seed}-"
                if sum(row["id"].startswith(called) for row in rows) < given.n:
                    folder = Path(scratch) / str(seed)
                    write_cohort(folder, given.n, seed, visits=2)
                    compared(phantoms(folder, called=called), rows)
    known, seeds = comparer.repeatability, ", ".join(map(str, given.seed))
    if given.calibrate:
        known = calibrated(rows, f"phantoms scanned twice, seeds {seeds}")
        if given.add:
            old = comparer.repeatability
            new = {name: sd for name, sd in known.measures.items() if name not in old.measures}

            source = (
                f"{old.source}; heights, areas, girth, symmetry and further volumes of {known.people} people"
            )
            known = replace(old, measures=dict(sorted((dict(old.measures) | new).items())), source=source)
        known.save(given.calibrate)
        print(known.volume)
    if rows:
        report(f"Phantoms, seeds {seeds}", rows, known)
        crossed(rows)
    if (given.second / "truth").is_dir():
        report("Realistic torsos", compared(folders(given.first, given.second), []), known)
    else:
        print("The realistic torsos are not here.")


if __name__ == "__main__":
    main()
