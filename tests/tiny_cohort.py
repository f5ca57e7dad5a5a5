"""A cohort that registers in tenths of a second, and what a whole registered folder looks like."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from breastmorph.batch.product import Recipe
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.scan.check import CheckParameters, ScanFiles, find_scans
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.template import from_npz, template_from
from torso import torso


def write_scans(folder: Path, n: int, edge: float = 10.0, step: float = 0.01) -> list[ScanFiles]:
    """Scans ``s00``, ``s01`` ... with landmarks beside them; each breast projects by ``step`` more than the last."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(n):
        mesh, landmarks = torso(edge, size=0.7 + step * k)
        save_mesh(mesh, folder / f"s{k:02d}.ply")
        save_landmarks(landmarks, folder / f"s{k:02d}.json")
    return find_scans(folder)


def tiny_recipe(pictures: object = None, edge: float = 11.0) -> Recipe:
    """A template of some 1400 vertices, whose coordinates 32 bits cannot hold."""
    mesh, landmarks = torso(edge)
    return Recipe(template_from(mesh, landmarks), check=CheckParameters(mean_edge=20.0), pictures=pictures)


@dataclass(frozen=True)
class Troubles:
    """Pictures of scans; some scans are fatal to the process that draws them."""

    crash: str = ""
    hang: str = ""
    hungry: str = ""
    raises: str = ""
    slow: float = 0.0

    def places(self, scan_id: str) -> tuple[str, ...]:
        return (f"thumbnails/{scan_id}.png",)

    def __call__(self, scan, result) -> dict[str, bytes]:
        import os
        import signal
        import time

        time.sleep(self.slow)
        if scan.id == self.crash:
            os.kill(os.getpid(), signal.SIGSEGV)
        if scan.id == self.hang:
            time.sleep(600)
        if scan.id == self.hungry:
            bytearray(1 << 42)
        if scan.id == self.raises:
            raise ZeroDivisionError("no picture")
        return {f"thumbnails/{scan.id}.png": b"picture of " + scan.id.encode()}


def meshes(out: Path) -> dict[str, str]:
    """Hashes of the registered meshes by name."""
    return {path.name: digest(path) for path in sorted((out / "registered").glob("*.ply"))}


def metrics(out: Path) -> dict[str, object]:
    """Records without what may differ from run to run: timings."""
    records = {}
    for path in sorted((out / "registered").glob("*.json")):
        record = json.loads(path.read_bytes())
        del record["seconds"]
        for stage in record["stages"]:
            del stage["seconds"]
        records[path.name] = record
    return records


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def require_whole(out: Path) -> int:
    """Every file under its final name is complete, and what has a record is what the record says; how many have."""
    for path in out.rglob("*"):
        if path.name.startswith(".") or path.is_dir():
            continue
        if path.suffix == ".ply":
            load_mesh(path)
        elif path.suffix == ".json":
            assert json.loads(path.read_bytes())["id"] == path.stem
        elif path.name == "summary.csv":
            rows = list(csv.DictReader(path.read_text().splitlines()))
            assert all(None not in row.values() for row in rows)
        elif path.name == "template.npz":
            from_npz(path.read_bytes())
        elif path.suffix == ".png":
            assert path.read_bytes() == b"picture of " + path.stem.encode()
        else:
            raise AssertionError(f"what is {path}?")
    records = list((out / "registered").glob("*.json"))
    for path in records:
        for name, expected in json.loads(path.read_bytes())["outputs"].items():
            assert digest(path.parent / name if "/" not in name else out / name) == expected, name
    return len(records)
