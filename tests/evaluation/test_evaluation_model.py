"""The whole evaluation: the training set as the builder saw it, compactness, decoupling, surfaces, collapse."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut, leave_one_out, surface_generalization
from breastmorph.evaluation.model_evaluation import (
    EvaluationParameters,
    evaluate_model,
    raw_scan_generalization,
)
from breastmorph.evaluation.training_set import compactness, decoupling, training_set
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.scan.check import find_scans
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.template import template_from
from refusals import refused
from small_cohort import moved, random_shapes, small_cohort
from torso import torso

QUICK = EvaluationParameters(samples=8, surface=False)


@pytest.mark.parametrize(
    "parameters",
    [
        BuildParameters(),
        BuildParameters(procrustes=ProcrustesParameters(with_scale=False)),
        BuildParameters(symmetric=True),
        BuildParameters(asymmetry=True),
        BuildParameters(part="left"),
        BuildParameters(components=3),
    ],
    ids=["similarity", "rigid", "symmetric", "asymmetry", "part", "truncated"],
)
def test_the_training_set_is_what_the_model_was_built_from(parameters):
    cohort = small_cohort(8)
    model = build_model(cohort, parameters)
    training = training_set(model, cohort)
    assert training.warnings == ()
    centred = (training.shapes - training.shapes.mean(axis=0)).reshape(len(training.shapes), -1)
    values = np.linalg.svd(centred, compute_uv=False)[: model.n_components] ** 2 / (len(centred) - 1)
    assert values == pytest.approx(model.variances, rel=1e-3)
    assert training.shapes.mean(axis=0) == pytest.approx(model.mean, abs=1e-3)


def test_transforms_take_a_subject_into_the_models_frame(small_template):
    cohort = Cohort.of(moved(random_shapes(6)), small_template)
    training = training_set(build_model(cohort), cohort)
    for i in range(6):
        assert training.transforms[i].apply(cohort.shape(i)) == pytest.approx(training.shapes[i], abs=1e-6)


def test_a_foreign_model_that_lies_elsewhere_is_met_in_its_own_frame():
    cohort = small_cohort(7)
    ours = build_model(cohort)
    away = Similarity(np.eye(3)[[1, 2, 0]], np.array([100.0, 0.0, -40.0]))
    foreign = replace(ours.transform(away), info={})
    here, there = (evaluate_model(model, cohort, QUICK) for model in (ours, foreign))
    assert there.warnings == ()
    assert there.generalization[0].mean == pytest.approx(here.generalization[0].mean, abs=1e-4)
    assert there.specificity[1].mean == pytest.approx(here.specificity[1].mean, abs=1e-3)


def test_a_model_in_another_unit_is_refused_because_all_figures_are_in_its_unit():
    cohort = small_cohort()
    metres = replace(build_model(cohort).transform(Similarity(scale=0.001)), info={})
    with refused("unit-of-model"):
        training_set(metres, cohort)


def test_a_model_of_other_subjects_is_said_so():
    cohort = small_cohort(9)
    model = build_model(cohort.chosen(range(5)))
    warnings = evaluate_model(model, cohort, QUICK).warnings
    assert any("5 subjects" in warning for warning in warnings)
    assert any("variance" in warning for warning in warnings)


def test_a_model_of_another_topology_is_a_named_error():
    cohort = small_cohort(4)
    model = build_model(cohort)
    with pytest.raises(BreastMorphError, match="triangles"):
        training_set(model.marginal(np.arange(300)), cohort)
    joined_otherwise = replace(model, faces=model.faces[:, [1, 2, 0]])
    with pytest.raises(BreastMorphError, match="joined otherwise"):
        training_set(joined_otherwise, cohort)


def test_too_few_subjects_with_both_sides_is_a_named_error():
    cohort = small_cohort(4)
    model = build_model(cohort)
    with refused(n_used=1, n_cohort=4):
        training_set(model, replace(cohort, absent=("left", "left", "right", "")))


def test_a_symmetric_model_leaves_out_the_mirror_image_too():
    cohort = small_cohort(6)
    model = build_model(cohort, BuildParameters(symmetric=True))
    evaluation = evaluate_model(model, cohort, QUICK)
    whole = evaluation.generalization[0]
    assert whole.values.shape == (6, 2 * 6 - 2)
    assert whole.components[-1] == 2 * 6 - 3
    assert whole.mean[-1] > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_shapes_of_a_large_cohort_are_in_memory_once(symmetric, small_template):
    cohort = Cohort.of(np.concatenate([random_shapes(6, seed) for seed in range(60)]), small_template)
    model = build_model(cohort, BuildParameters(components=2, symmetric=symmetric))
    training_set(model, small_cohort(3))  # what is prepared once does not count
    tracemalloc.start()
    shapes = training_set(model, cohort).shapes
    decoupling(shapes, np.arange(shapes.shape[1]) < 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert shapes.nbytes < peak < 2.0 * shapes.nbytes


def test_compactness_rises_to_the_whole_variance():
    model = build_model(small_cohort(10))
    whole = compactness(model)
    assert (np.diff(whole.variance) > 0).all()
    assert whole.share[-1] == pytest.approx(1.0)
    assert whole.variance[0] == pytest.approx(model.variances[0])
    cut = compactness(model.truncate(3))
    assert cut.share == pytest.approx(whole.share[:3], rel=1e-6)
    assert cut.needed(0.9999) is None
    count = whole.needed(0.9)
    assert count is not None
    assert whole.share[count - 1] >= 0.9 > whole.share[count - 2]


def test_decoupling_tells_inside_from_outside():
    rng = np.random.default_rng(0)
    breast = np.arange(400) < 100
    shapes = rng.normal(size=(300, 400, 3)) * np.where(breast, 4.0, 1.0)[:, None]
    figures = decoupling(shapes, breast).as_dict()
    assert figures["variance_inside"] == pytest.approx(48.0, rel=0.05)
    assert figures["sd_ratio"] == pytest.approx(0.25, rel=0.05)
    assert decoupling(shapes, np.ones(400, bool)).as_dict()["sd_outside"] is None


def test_surface_distance_is_blind_to_sliding_and_never_larger():
    x, y = np.meshgrid(np.arange(20.0), np.arange(15.0))
    flat = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    a = (np.arange(14)[:, None] * 20 + np.arange(19)).ravel()
    faces = np.concatenate([np.column_stack([a, a + 1, a + 21]), np.column_stack([a, a + 21, a + 20])])
    slid = np.stack([flat + [shift, 0.0, 0.0] * np.sin(flat[:, :1]) for shift in (-0.4, -0.1, 0.2, 0.3)])
    inner = (flat[:, 0] > 1) & (flat[:, 0] < 18)
    folds = LeaveOneOut(slid)
    counts = np.array([0, 1])
    by_surface = surface_generalization(folds, faces, {"breast": inner}, counts)["breast"]
    by_point = leave_one_out(slid, {"breast": inner}, counts)["breast"]
    assert by_surface.values.max() < 1e-9
    assert by_point.values[:, 0].min() > 0.05


def test_surface_generalization_measures_reconstructions_against_the_left_out_surface(small_template):
    shapes = random_shapes(6, seed=1)
    faces = small_template.mesh.faces
    folds = LeaveOneOut(shapes)
    counts = np.array([1, 4])
    regions = {"whole": np.ones(shapes.shape[1], bool), "breast": shapes[0][:, 2] > 0}
    found = surface_generalization(folds, faces, regions, counts)
    by_point = folds.point_distances(regions, counts)
    for subject in range(6):
        surface = Surface(TriangleMesh(shapes[subject], faces))
        for c, given_back in enumerate(folds.reconstructions(subject, counts)):
            distances = surface.closest(given_back).distances
            assert found["whole"].values[subject, c] == pytest.approx(distances.mean())
            assert found["breast"].values[subject, c] == pytest.approx(distances[regions["breast"]].mean())
    assert (found["whole"].values <= by_point[:, :, 0] + 1e-4).all()


@pytest.fixture(scope="module")
def scanned(tmp_path_factory):
    """Torsos of six sizes: scans in files, and the same shapes on a coarser template as a cohort."""
    folder = tmp_path_factory.mktemp("scans")
    sizes = np.linspace(0.6, 1.2, 6)
    for k, size in enumerate(sizes):
        mesh, landmarks = torso(edge=6, size=float(size))
        save_mesh(mesh, folder / f"{k:03d}.ply")
        save_landmarks(landmarks, folder / f"{k:03d}.json")
    template = template_from(*torso(edge=10))
    shapes = np.stack([torso(edge=10, size=float(size))[0].vertices for size in sizes])
    return folder, Cohort.of(shapes, template)


def to_raw_scans(cohort, folder, counts=(0, 1)):
    training = training_set(build_model(cohort), cohort)
    folds = LeaveOneOut(training.shapes)
    faces = cohort.template.mesh.faces
    return raw_scan_generalization(training, folds, faces, find_scans(folder), np.array(counts))


@pytest.mark.slow
def test_collapse_is_rewarded_by_the_curves_and_punished_by_the_raw_scans(scanned):
    folder, cohort = scanned
    shapes = cohort.array()
    mean = shapes.mean(axis=0)
    collapsed = Cohort.of(mean + 0.2 * (shapes - mean), cohort.template)
    right, wrong = (evaluate_model(build_model(c), c, QUICK) for c in (cohort, collapsed))
    for metric in ("generalization", "specificity"):
        a, b = getattr(right, metric)[0], getattr(wrong, metric)[0]
        assert b.mean[0] < 0.5 * a.mean[0]
    raw_right, raw_wrong = to_raw_scans(cohort, folder), to_raw_scans(collapsed, folder)
    assert raw_wrong.to_scan.mean[-1] > 3.0 * raw_right.to_scan.mean[-1]
    assert raw_wrong.from_scan.mean[-1] > 3.0 * raw_right.from_scan.mean[-1]
    assert raw_wrong.registered[0] > 3.0 * raw_right.registered[0]


@pytest.mark.slow
def test_raw_scans_are_met_in_their_own_place_and_size(scanned):
    folder, cohort = scanned
    straight = to_raw_scans(cohort, folder, (1,))
    away = Similarity(np.eye(3)[[2, 0, 1]], np.array([30.0, -20.0, 10.0]))
    poses = tuple(away for _ in cohort.ids)
    shapes = np.stack([away.inverse().apply(shape) for shape in cohort.array()])
    turned = replace(cohort, packed=shapes.astype(np.float32), to_file=poses)
    assert to_raw_scans(turned, folder, (1,)).to_scan.mean == pytest.approx(straight.to_scan.mean, abs=1e-3)
    assert straight.registered[0] < 0.6


@pytest.mark.slow
def test_missing_and_broken_scans_are_named_and_do_not_stop_the_rest(scanned, tmp_path):
    folder, cohort = scanned
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("001"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "002.ply").write_bytes(b"ply\n")
    raw = to_raw_scans(cohort, tmp_path, (1,))
    assert [name for name, _ in raw.failures] == ["001", "002"]
    assert len(raw.to_scan.values) == 4
    strangers = replace(cohort, ids=tuple(f"x{name}" for name in cohort.ids))
    with refused(n_failures=6):
        to_raw_scans(strangers, tmp_path, (1,))


def test_large_cohorts_are_measured_at_some_counts_only():
    cohort = small_cohort(14)
    model = build_model(cohort)
    some = evaluate_model(model, cohort, replace(QUICK, most_counts=5))
    every = evaluate_model(model, cohort, QUICK)
    counts = some.generalization[0].components
    assert counts[0] == 0
    assert counts[-1] == 12
    assert len(counts) < 11
    assert some.generalization[0].mean == pytest.approx(every.generalization[0].mean[counts], abs=1e-5)
    assert some.specificity[0].components[-1] == model.n_components


def test_scans_without_a_cohort_are_a_named_error():
    with pytest.raises(BreastMorphError, match="no cohort"):
        evaluate_model(build_model(small_cohort(4)), truth=Path("truth"))
