"""Clinical measures against the phantom's truth: distances, volumes with a Bland-Altman plot, the chest wall.

    python benchmarks/clinical_measures.py [--n 110] [--seed 7] [--out clinical-measures/]
    python benchmarks/clinical_measures.py --phantom PHANTOM --registered OUT    # what `phantom` and `register` wrote
    python benchmarks/clinical_measures.py --true-places DIR SET [SET]
    python benchmarks/clinical_measures.py --true-places PHANTOM [PHANTOM]
    python benchmarks/clinical_measures.py ... --other SET OUT [--other SET OUT]  # SET/truth, and OUT of `register`
    python benchmarks/clinical_measures.py ... --other SET OUT --borders DIR   # what of it lies beyond the true border

Distances are compared twice with those between the true landmarks on the true surface: on the raw scan with the
scan's own landmarks, and on the registered mesh with the template's landmark vertices. Volumes of registered meshes
are compared with the true volumes; beside ours stand two plain ways to close the breast's border: a membrane and a
thin plate that continues the skin at the border. Folds are compared in height, apart where the scan shows them and
where not. ``--true-places DIR SET [SET]`` asks what of an error is definition: every vertex of the template in DIR, of
the built-in one on phantoms, lies at its true place on the true skin, so only border and wall differ from the truth's.
``--borders DIR``, where DIR/template/template_truth.npz has the true border of the ``--other`` sets, splits the volumes
that were found into what lies within that border and what lies above or elsewhere beyond it.
``--torsos DIR`` adds other torsos with known volumes, registered with their own template; ``--other`` such as are
registered already.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import measuring  # noqa: F401  (one core)
from bland_altman import Agreement, agreement, save_bland_altman
from breastmorph.clinical.distance_meter import DistanceMeter
from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.measure_table import asymmetries
from breastmorph.clinical.skin_points import SkinLandmarks
from breastmorph.clinical.volume import DEFINITIONS, BreastVolumes, FlatWall, _volume
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.evaluation.truth import load_tie
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mask import Footprint
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import write_cohort
from breastmorph.phantom.cohort import volume_between
from breastmorph.registration import Registrar
from breastmorph.report.render import View, colormap, render, save_picture_grid
from breastmorph.scan.check import check_scan, find_scans
from breastmorph.scan.scan import SIDES, Landmarks
from breastmorph.template import Template, default_template, load_template

WANTED = [(name, kind) for name in ("SN-NL", "SN-NR", "NL-NR") for kind in ("tape", "straight")]


def lid(mesh: TriangleMesh, region: Bools, order: int) -> tuple[Ints, Ints, object]:
    """A plain lid over a region: free vertices, known vertices and what maps the known to the free."""
    import igl
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    v, f = np.array(mesh.vertices), np.array(mesh.faces)
    laplacian = igl.cotmatrix(v, f).tocsr()
    area = igl.massmatrix(v, f, igl.MASSMATRIX_TYPE_BARYCENTRIC).diagonal()
    energy = laplacian if order == 1 else (laplacian @ diags_array(1.0 / area) @ laplacian).tocsr()
    free, known = np.flatnonzero(region), np.flatnonzero(~region)
    rows = energy[free]
    factor, rest = splu(rows[:, free].tocsc()), rows[:, known]
    return free, known, lambda points: factor.solve(-(rest @ points))


def lid_volume(mesh: TriangleMesh, region: Bools, prepared: tuple, shape: Floats) -> float:
    """Volume in cc under a lid."""
    free, known, close = prepared
    inner = shape.copy()
    inner[free] = close(shape[known])
    faces = mesh.faces[(region[mesh.faces]).any(axis=1)]
    return volume_between(shape, inner, faces)


def distances(phantom: Path, cohort: Cohort) -> dict[str, Floats]:
    """Absolute errors in mm by source, (k, number of WANTED)."""
    template = cohort.template
    with np.load(phantom / "truth" / "topology.npz") as topology:
        faces = topology["faces"].astype(np.int64)
    gauge = DistanceMeter.of_vertices(template.mesh.faces, template.landmark_ids)
    errors: dict[str, list[Floats]] = {"raw scan": [], "registered mesh": []}
    for files in find_scans(phantom / "scans", phantom / "landmarks"):
        if files.id not in cohort.ids:
            continue
        with np.load(phantom / "truth" / f"{files.id}.npz") as truth:
            whole = TriangleMesh(truth["points"].astype(float), faces)
            marks = Landmarks(tuple(truth["landmark_names"].tolist()), truth["landmark_true"].astype(float))
        true = measured(whole, marks)
        scan = check_scan(files, reference=template.as_reference).scan
        if scan is None:
            continue
        errors["raw scan"].append(np.abs(measured(scan.mesh, scan.landmarks) - true))
        shape = cohort.shape(cohort.ids.index(files.id))
        registered = np.array([m.value for m in gauge.measures(shape, WANTED)])
        errors["registered mesh"].append(np.abs(registered - true))
    return {source: np.array(rows) for source, rows in errors.items()}


def measured(mesh: TriangleMesh, landmarks: Landmarks) -> Floats:
    """Values of WANTED."""
    gauge = DistanceMeter(mesh.faces, SkinLandmarks.on(Surface(mesh), landmarks))
    return np.array([m.value for m in gauge.measures(mesh.vertices, WANTED)])


def true_volumes(folder: Path, ids: tuple[str, ...]) -> Floats:
    """By subject and side, (k, 2) cc."""
    rows = []
    for name in ids:
        with np.load(folder / f"{name}.npz") as truth:
            rows.append([float(truth[f"volume_{side}"]) for side in SIDES])
    return np.array(rows)


def volumes(template: Template, shapes: Floats, truth: Floats, out: Path, name: str) -> Floats:
    """Print the agreement of three ways, draw ours; returns ours, (k, 2)."""
    gauge = BreastVolumes(template.mesh, template.landmarks)
    clock = time.process_time()
    found = [[gauge.estimate(shape, side) for side in SIDES] for shape in shapes]
    seconds = (time.process_time() - clock) / len(shapes)
    ours = np.array([[one.cc for one in row] for row in found])
    within = np.abs(ours - truth) / np.array([[one.uncertainty for one in row] for row in found])
    print(f"\nVolumes: {name} (one row a method)")
    _row("ours", save_bland_altman(ours.ravel(), truth.ravel(), out / f"{name}-volumes.png"))
    regions = Footprint.of(template.mesh, template.landmarks).regions()
    for words, order in (("membrane", 1), ("thin plate", 2)):
        prepared = {side: lid(template.mesh, regions[side], order) for side in SIDES}
        plain = [
            [lid_volume(template.mesh, regions[side], prepared[side], shape) for side in SIDES]
            for shape in shapes
        ]
        _row(words, agreement(np.array(plain).ravel(), truth.ravel()))
    print(
        f"  ours: {100 * (within < 1).mean():.0f} % of the errors within the stated uncertainty, "
        f"{100 * (within < 2).mean():.0f} % within twice; {1000 * seconds:.0f} ms a subject"
    )
    return ours


def calibration(name: str, errors: Floats, deviations: Floats) -> None:
    """Print how many errors lie within one and two standard deviations."""
    within = np.abs(errors) / deviations
    print(
        f"  {name:32s} n {errors.size:4d}  median {np.median(np.abs(errors)):5.1f}  bias {np.mean(errors):+6.1f}"
        f"  within 1 sd {100 * (within < 1).mean():3.0f} %, 2 sd {100 * (within < 2).mean():3.0f} %"
    )


def by_truth(truth: Path, registered: Path, scratch: Path, name: str) -> None:
    """Volumes, their difference and folds of a registered cohort against its truth, by the examiner's own numbers."""
    cohort = load_cohort(registered, packed_in=scratch / f"packed-{name}")
    examiner = examiner_of(cohort.template)
    volume, difference, base = [], [], []
    folds: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for index, subject in enumerate(cohort.ids):
        if cohort.absent[index]:
            continue
        shape = cohort.shape(index)
        landmarks = examiner.landmarks(shape)
        found = examiner.measured(shape, landmarks, kinds=("straight",))
        by_name = {one.name: one for one in found}
        with np.load(truth / f"{subject}.npz") as known:
            true = [float(known[f"volume_{side}"]) for side in SIDES]
            places = dict(
                zip(known["fixed_names"].tolist(), known["fixed_points"].astype(float), strict=True)
            )
            seen = dict(zip(known["fixed_names"].tolist(), known["fixed_on_scan"].tolist(), strict=True))
        own = [by_name[f"volume-{side}"] for side in SIDES]
        volume += [(one.value - cc, one.sd, cc) for one, cc in zip(own, true, strict=True)]
        apart = next(one for one in asymmetries(found) if one.name == "volume")
        difference.append((apart.value - (true[0] - true[1]), apart.sd))
        upright = cohort.to_file[index].inverse()
        for side in SIDES:
            at = upright.apply(places[f"imf_{side}"][None])[0]
            error = landmarks.at(shape)[f"imf_{side}"][1] - at[1]
            folds[seen[f"imf_{side}"]].append((error, landmarks.sd[f"imf_{side}"]))
            base.append(by_name[f"base-width-{side}"].value)
    errors, sd, true_cc = np.array(volume).T
    print(f"\n{name}: {len(difference)} subjects")
    print(
        f"  volume: mean relative error {100 * np.mean(np.abs(errors) / true_cc):.1f} %, bias {errors.mean():+.0f} cc "
        f"({100 * errors.sum() / true_cc.sum():+.1f} %), sd {errors.std():.0f} cc"
    )
    calibration("volume, cc", errors, sd)
    calibration("volume, left minus right, cc", *np.array(difference).T)
    for shown, words in ((True, "height of a visible fold, mm"), (False, "height of a hidden fold, mm")):
        if folds[shown]:
            calibration(words, *np.array(folds[shown]).T)
    print(f"  base width, mm: 5th, 50th, 95th percentile {np.percentile(base, [5, 50, 95]).round().tolist()}")


def beyond_border(truth: Path, registered: Path, home: Path, scratch: Path, name: str) -> None:
    """Print what of the volumes found lies within the true border, above it, and elsewhere beyond it."""
    cohort = load_cohort(registered, packed_in=scratch / f"bordered-{name}")
    template = cohort.template
    gauge = BreastVolumes(template.mesh, template.landmarks)
    with np.load(home / "template" / "template_truth.npz") as tie:
        faces = tie["faces"].astype(np.int64)
        borders = {side: tie[f"breast_{side}"].astype(bool) for side in SIDES}
    parts = []
    for index, subject in enumerate(cohort.ids):
        with np.load(truth / f"{subject}.npz") as known:
            points = cohort.to_file[index].inverse().apply(known["points"].astype(float))
            true = {side: float(known[f"volume_{side}"]) for side in SIDES}
        shape, skin = cohort.shape(index), Surface(TriangleMesh(points, faces))
        for side in SIDES:
            wall = gauge.walls[side]
            found = skin.closest(shape[wall.ids])
            corners = faces[found.faces]
            nearest = np.linalg.norm(found.points[:, None] - points[corners], axis=2).argmin(axis=1)
            within = borders[side][corners[np.arange(len(corners)), nearest]].astype(float)
            behind, local = wall.points(shape), np.searchsorted(wall.ids, wall.faces)
            middle = (
                0.5 * (shape[wall.ids] + behind)[local]
            )  # prisms between skin and wall by their middle sections
            across = np.cross(middle[:, 1] - middle[:, 0], middle[:, 2] - middle[:, 0])
            cc = 5e-4 * (across * (shape[wall.ids] - behind)[local].mean(axis=1)).sum(axis=1)
            inside = within[local].mean(axis=1)
            place = shape[wall.faces].mean(axis=1) - shape[template.landmark_ids[f"nipple_{side}"]]
            above = place[:, 1] > np.abs(place[:, 0])
            beyond = cc * (1.0 - inside)
            parts.append(
                [(cc * inside).sum(), beyond[above].sum(), beyond[~above].sum()] / np.array(true[side])
            )
    mean, spread = 100.0 * np.mean(parts, axis=0), 100.0 * np.std(parts, axis=0)
    print(
        f"  of the true volume, mean and sd: within the true border {mean[0]:.0f} % ({spread[0]:.0f}), above it "
        f"{mean[1]:+.1f} % ({spread[1]:.1f}), elsewhere beyond it {mean[2]:+.1f} % ({spread[2]:.1f})"
    )


def true_places(home: Path, sets: list[Path]) -> None:
    """Volumes by every definition, and by plain walls over the true border, where every vertex is where it belongs."""
    template = load_template(
        home / "template" / "template.ply", home / "template" / "template_landmarks.json"
    )
    with np.load(home / "template" / "template_truth.npz") as tie:
        mean = TriangleMesh(tie["points"].astype(float), tie["faces"].astype(np.int64))
        corners, weights = mean.faces[tie["vertex_face"]], tie["vertex_bary"]
        borders = {side: tie[f"breast_{side}"].astype(bool) for side in SIDES}
    gauge = BreastVolumes(template.mesh, template.landmarks)
    lids = {side: lid(mean, borders[side], 1) for side in SIDES}
    flat = {side: FlatWall.of(mean, borders[side]) for side in SIDES}
    for folder in sets:
        rows: dict[str, list[list[float]]] = {}
        names = tuple(path.stem for path in sorted((folder / "truth").glob("*.npz")))
        for name in names:
            with np.load(folder / "truth" / f"{name}.npz") as known:
                points = known["points"].astype(float)
            shape = np.einsum("nk,nkd->nd", weights, points[corners])
            for one in DEFINITIONS:
                found = [gauge.estimate(shape, side, one).cc for side in SIDES]
                rows.setdefault(one, []).append(found)
            membranes = [lid_volume(mean, borders[side], lids[side], points) for side in SIDES]
            rows.setdefault("membrane over the true border", []).append(membranes)
            flats = [volume_between(points, flat[side].shape(points), flat[side].faces) for side in SIDES]
            rows.setdefault("flat wall over the true border", []).append(flats)
        truth = true_volumes(folder / "truth", names)
        print(f"\n{folder.name}: {len(names)} subjects, every vertex at its true place")
        for one, values in rows.items():
            error = np.array(values) - truth
            print(
                f"  {one:32s} mean relative error {100 * np.mean(np.abs(error) / truth):5.1f} %, "
                f"bias {100 * error.sum() / truth.sum():+5.1f} %, left minus right, median error "
                f"{np.median(np.abs(error[:, 0] - error[:, 1])):.0f} cc"
            )


def true_places_of_phantoms(phantom: Path) -> None:
    """The same of phantoms; and what of their true volume, over the true bare chest, lies within the region."""
    template = default_template()
    tie, gauge = load_tie(phantom / "truth", template), BreastVolumes(template.mesh, template.landmarks)
    names = tuple(path.stem for path in sorted((phantom / "truth").glob("*.npz")) if path.stem != "topology")
    truth = true_volumes(phantom / "truth", names)
    found, held, depths = [], [], []
    for name, true in zip(names, truth, strict=True):
        with np.load(phantom / "truth" / f"{name}.npz") as known:
            shape, bare = (tie.at(known[part].astype(float)) for part in ("points", "bare"))
        found.append([gauge.cc(shape, side) for side in SIDES])
        walls = [gauge.walls[side] for side in SIDES]
        held.append([_volume(*wall.body(shape, bare[wall.ids])) for wall in walls] / true)
        normals = vertex_normals(bare, template.mesh.faces)
        for wall in walls:
            depths.append(((wall.points(shape) - bare[wall.ids]) * normals[wall.ids]).sum(axis=1))
    error = np.array(found) - truth
    print(f"\n{phantom.name}: {len(names)} phantoms, every vertex at its true place")
    print(
        f"  volume: mean relative error {100 * np.mean(np.abs(error) / truth):.1f} %, bias "
        f"{100 * error.sum() / truth.sum():+.1f} %, left minus right, median error "
        f"{np.median(np.abs(error[:, 0] - error[:, 1])):.0f} cc"
    )
    print(
        f"  within the region lie {100 * np.mean(held):.1f} % (sd {100 * np.std(held):.1f}) of the true volume; "
        f"the wall is {np.sqrt(np.mean(np.concatenate(depths) ** 2)):.1f} mm (root mean square) off the true chest"
    )


def _row(words: str, found: Agreement) -> None:
    print(
        f"  {words:12s} r {found.correlation:.3f}  mean error {found.error_percent:5.1f} %  bias {found.bias:+6.0f} cc"
        f"  sd {found.deviation:4.0f} cc  slope {found.slope:+.3f} +- {found.slope_error:.3f}"
        f"{'  depends on size' if found.size_dependent else ''}"
    )


def draw_walls(cohort: Cohort, truth: Floats, out: Path) -> None:
    """Skin and chest wall of a small, a large, a hanging and an asymmetric subject."""
    template = cohort.template
    gauge = BreastVolumes(template.mesh, template.landmarks)
    drop = [
        min(shape[template.landmark_ids[f"nipple_{side}"], 1] for side in SIDES)
        - shape[template.landmark_ids["sternal_notch"], 1]
        for shape in cohort.shapes()
    ]
    chosen = {
        "smallest": int(truth.sum(axis=1).argmin()),
        "largest": int(truth.sum(axis=1).argmax()),
        "lowest nipple": int(np.argmin(drop)),
        "most asymmetric": int(np.abs(truth[:, 0] - truth[:, 1]).argmax()),
    }
    cells, captions = [], []
    for words, index in chosen.items():
        shape = cohort.shape(index)
        wall = shape.copy()
        for side in SIDES:
            wall[gauge.walls[side].ids] = gauge.walls[side].points(shape)
        height = np.linalg.norm(shape - wall, axis=1)
        box = shape.min(axis=0), shape.max(axis=0)
        figures = [
            f"skin, measured L {gauge.cc(shape, 'left'):.0f}, R {gauge.cc(shape, 'right'):.0f} cc",
            f"skin, true L {truth[index][0]:.0f}, R {truth[index][1]:.0f} cc",
            f"{words} ({cohort.ids[index]}): wall",
            "skin above it, 0 to 80 mm",
        ]
        for points in (shape, wall):
            for view in (View(), View(yaw=60.0)):
                colors = colormap(height, 0.0, 80.0, "viridis") if points is wall else None
                mesh = template.mesh.with_vertices(points)
                cells.append(render(mesh, view, size=(260, 260), box=box, colors=colors))
        captions += figures
    save_picture_grid(cells, captions, out / "chest-walls.png", columns=4)


def register_all(phantom: Path, template: Template) -> Cohort:
    """Register a phantom cohort in memory."""
    registrar, ids, shapes = Registrar(template), [], []
    for files in find_scans(phantom / "scans", phantom / "landmarks"):
        scan = check_scan(files, reference=template.as_reference).scan
        if scan is not None:
            ids.append(files.id)
            shapes.append(registrar.register(scan).vertices)
    return Cohort.of(np.array(shapes), template, ids)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=110)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--phantom", type=Path)
    parser.add_argument("--registered", type=Path)
    parser.add_argument("--torsos", type=Path)
    parser.add_argument("--other", type=Path, nargs=2, action="append", default=[], metavar=("SET", "OUT"))
    parser.add_argument("--borders", type=Path, metavar="DIR")
    parser.add_argument("--true-places", type=Path, nargs="+", default=[], metavar=("DIR", "SET"))
    parser.add_argument("--figures-only", action="store_true", help="volumes and folds by truth, no plots")
    parser.add_argument("--out", type=Path, default=Path("clinical-measures"))
    arguments = parser.parse_args()
    if arguments.true_places:
        if (arguments.true_places[0] / "truth" / "topology.npz").exists():
            for folder in arguments.true_places:
                true_places_of_phantoms(folder)
        else:
            true_places(arguments.true_places[0], arguments.true_places[1:])
        return
    with tempfile.TemporaryDirectory() as scratch:
        phantom = arguments.phantom
        if phantom is not None and arguments.registered is not None:
            by_truth(phantom / "truth", arguments.registered, Path(scratch), "phantom")
        for folder, registered in arguments.other:
            by_truth(folder / "truth", registered, Path(scratch), folder.name)
            if arguments.borders is not None:
                beyond_border(folder / "truth", registered, arguments.borders, Path(scratch), folder.name)
        if arguments.figures_only:
            return
        if phantom is None:
            phantom = Path(scratch)
            write_cohort(phantom, arguments.n, seed=arguments.seed)
        if arguments.registered is not None:
            cohort = load_cohort(arguments.registered, packed_in=Path(scratch) / "packed")
        else:
            cohort = register_all(phantom, default_template())
        errors = distances(phantom, cohort)
        print(f"Distances, {len(cohort)} phantoms: median (95th percentile) of the absolute error, mm")
        for source, rows in errors.items():
            figures = "  ".join(
                f"{name} {kind} {np.median(column):.2f} ({np.quantile(column, 0.95):.2f})"
                for (name, kind), column in zip(WANTED, rows.T, strict=True)
            )
            print(f"  {source:16s}{figures}")
        truth = true_volumes(phantom / "truth", cohort.ids)
        volumes(cohort.template, cohort.array(), truth, arguments.out, "phantom")
        draw_walls(cohort, truth, arguments.out)
        if arguments.torsos is not None:
            home = arguments.torsos / "template"
            template = load_template(home / "template.ply", home / "template_landmarks.json")
            others = register_all(arguments.torsos, template)
            truth = true_volumes(arguments.torsos / "truth", others.ids)
            volumes(template, others.array(), truth, arguments.out, "torsos")
    print(f"\nFigures are in {arguments.out}")


if __name__ == "__main__":
    main()
