"""``breastmorph doctor``: is this installation sound? Every part of the way of a scan is tried once."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import json_option
from breastmorph.cli.printing import print_json, print_table, progress
from breastmorph.report.cards import CARDS


class _Unwell(Exception):
    """What is wrong, and what to do about it."""


@dataclass(frozen=True)
class _Examination:
    name: str
    look: Callable[[], str]  # what was found; raises when it is not well


def _python() -> str:
    from breastmorph import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    return f"BreastMorph {__version__}, Python {version}, {sys.platform}"


def _libraries() -> str:
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    wrong, count = [], 0
    for line in requires("breastmorph") or []:
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        count += 1
        try:
            found = version(needed.name)
        except PackageNotFoundError:
            wrong.append(f"{needed} is missing")
            continue
        if not needed.specifier.contains(found, prereleases=True):
            wrong.append(f"{needed} is needed, {found} is installed")
    if wrong:
        raise _Unwell("; ".join(wrong) + ". Install BreastMorph again with pip")
    return f"{count} of {count} there"


def _machine() -> str:
    from breastmorph.foundation.machine import cores, memory

    size = memory()
    return f"{cores()} cores, " + ("memory unknown" if size is None else f"{size / 2**30:.0f} GiB of memory")


def _folders() -> str:
    with tempfile.TemporaryDirectory(prefix="breastmorph-") as folder:
        (Path(folder) / "probe").write_bytes(b"x" * 2**20)
    return f"temporary files in {tempfile.gettempdir()}"


def _kernels() -> str:
    from breastmorph.foundation.kernels import compiled

    kernel: Any = compiled()(_doubled)
    if kernel(21.0) != 42.0:
        raise _Unwell("compiled code computes wrongly. Install numba again")
    if kernel.stats.cache_path is None:
        return "compiled anew by every process: there is no folder for it that may be written"
    ours = Path(__file__).parent in Path(kernel.stats.cache_path).parents
    return "compiled once, kept for later runs" + ("" if ours else f" in {kernel.stats.cache_path}")


def _doubled(value: float) -> float:
    return 2.0 * value


def _solver() -> str:
    import numpy as np

    from breastmorph.registration.fronts import EdgeSystem

    edges = np.column_stack([np.arange(99), np.arange(1, 100)])
    system = EdgeSystem(edges, 100)
    wanted = np.random.default_rng(0).normal(size=(100, 3))
    right = 0.5 * wanted
    for a, b in ((0, 1), (1, 0)):
        np.add.at(right, edges[:, a], 3.0 * (wanted[edges[:, a]] - wanted[edges[:, b]]))
    solved = system.solve(np.full(99, 3.0), np.full(100, 0.5), right)
    error = float(np.abs(solved - wanted).max())
    if not error < 1e-9:
        raise _Unwell(f"qdldl solves with an error of {error:.1e}. Install qdldl again")
    return f"error {error:.0e}"


def _pictures() -> str:
    from breastmorph.report.render import render
    from breastmorph.template import default_template

    picture = render(default_template().coarse, size=(80, 90))
    if picture.min() == picture.max():
        raise _Unwell("pictures come out empty. Install libigl and numpy again")
    return "drawn without graphics hardware"


def _model_files() -> str:
    import numpy as np

    from breastmorph.mesh.triangle_mesh import TriangleMesh
    from breastmorph.model.files import load_model, save_model
    from breastmorph.model.shape_model import ShapeModel

    mesh = TriangleMesh(np.eye(3), np.array([[0, 1, 2]]))
    basis = np.zeros((9, 1), np.float32)
    basis[0] = 1.0
    model = ShapeModel(mesh.vertices, basis, np.array([4.0]), mesh.faces, {})
    with tempfile.TemporaryDirectory(prefix="breastmorph-") as folder:
        save_model(model, Path(folder) / "model.h5")
        same = load_model(Path(folder) / "model.h5")
    if not np.allclose(same.instance(np.array([1.0])), model.instance(np.array([1.0]))):
        raise _Unwell("a model changes when it is written and read. Install h5py again")
    return "written and read"


def _registration() -> str:
    import numpy as np

    from breastmorph.mesh.files import save_mesh
    from breastmorph.phantom.cohort import draw_cohort, torso
    from breastmorph.phantom.scanner import scan_subject
    from breastmorph.registration.pipeline import Registrar
    from breastmorph.scan.check import load_scan
    from breastmorph.scan.landmark_files import save_landmarks
    from breastmorph.template import default_template

    scanned = scan_subject(torso(draw_cohort(1, 1)[0]), np.random.default_rng(1))
    template = default_template()
    with tempfile.TemporaryDirectory(prefix="breastmorph-") as folder:
        mesh, landmarks = Path(folder) / "scan.ply", Path(folder) / "scan.json"
        save_mesh(scanned.mesh, mesh)
        save_landmarks(scanned.landmarks, landmarks)
        scan = load_scan(mesh, landmarks, reference=template.as_reference)
    registrar = Registrar(template)
    start = time.perf_counter()
    metrics = registrar.register(scan).metrics
    seconds = time.perf_counter() - start
    if not metrics["distance_inside"] < 0.5:
        raise _Unwell(
            f"a synthetic scan is met only to {metrics['distance_inside']:.2f} mm. Please report it"
        )
    return f"a synthetic scan met to {metrics['distance_inside']:.2f} mm in {seconds:.1f} s"


_EXAMINATIONS = (
    _Examination("program", _python),
    _Examination("libraries", _libraries),
    _Examination("machine", _machine),
    _Examination("folders", _folders),
    _Examination("compiled kernels", _kernels),
    _Examination("linear solver", _solver),
    _Examination("pictures", _pictures),
    _Examination("model files", _model_files),
    _Examination("registration", _registration),
)


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Check this installation: libraries, threads, solver, pictures, files, and one registration.

    Takes a few seconds, on the first run up to a minute. Nothing is sent anywhere.

    \b
    Example:
      breastmorph doctor
    """
    found = [(examination.name, *_looked(examination)) for examination in progress(_EXAMINATIONS, "Checking")]
    well = all(is_well for _, is_well, _ in found)
    if as_json:
        print_json([{"name": name, "well": is_well, "found": text} for name, is_well, text in found])
    else:
        words = {True: "[green]well[/green]", False: "[red]problem[/red]"}
        rows = [[name, words[is_well], escape(text)] for name, is_well, text in found]
        print_table("This installation", ["part", "state", "found"], rows)
        known = [[card.name.partition(": ")[2], card.short, f"Not for: {card.not_for}"] for card in CARDS]
        print_table("What comes with it", ["", "what it is", "what it is not"], known)
    sys.exit(0 if well else 1)


def _looked(examination: _Examination) -> tuple[bool, str]:
    try:
        return True, examination.look()
    except _Unwell as problem:
        return False, str(problem)
    except Exception as error:  # a broken library may raise anything, and the other parts matter too
        return False, f"{type(error).__name__}: {error}. Install BreastMorph again with pip"
