"""The names people import, and their parameters: a change here is one for every user, and goes into the changelog."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import breastmorph

ROOT = Path(__file__).parents[1]
PROMISED = {
    "BreastMorphError": "cause remedy where code values",
    "BreastMorphWarning": "",
    "FileProblem": "cause remedy where code values",
    "LandmarkProblem": "cause remedy where code values",
    "MeshProblem": "cause remedy where code values",
    "TriangleMesh": "vertices faces colors texture space",
    "Texture": "uv image",
    "Similarity": "rotation translation scale",
    "load_mesh": "path",
    "save_mesh": "mesh path",
    "Landmarks": "names points space notes found",
    "Found": "how sd covariance doubtful",
    "FoundLandmarks": "landmarks left_out absent unit axes warnings",
    "find_landmarks": "scan unit",
    "load_landmarks": "path order",
    "save_landmarks": "landmarks path format space",
    "Scan": "id mesh landmarks to_file warnings rather",
    "Check": "id findings facts outcome",
    "Finding": "name cause advice level",
    "Message": "template values",
    "Audience": "language in_words wording",
    "Plural": "one many",
    "Language": "code catalogue",
    "language": "code",
    "load_scan": "path landmarks unit scale_by landmark_order template",
    "load_scans": "scans landmarks unit scale_by landmark_order template progress",
    "check_scan": "path landmarks unit scale_by landmark_order template",
    "breast_mask": "mesh landmarks side",
    "Template": "mesh landmark_ids coarse coarse_landmark_ids mirror coarse_mirror",
    "default_template": "",
    "load_template": "mesh landmarks coarse",
    "register": "scans template preset use_masks learn jobs progress",
    "register_folder": "scans landmarks out template preset use_masks learn jobs unit progress",
    "Registration": (
        "id mesh transform template_mask scan_mask absent_side stages metrics seconds warnings "
        "parameters template landmarks to_file estimated"
    ),
    "RegistrationParameters": (
        "rigid warp initial coarse fine tightest use_masks dense dense_edge "
        "relaxation absent estimates acceptance mask cohort_prior followed_nodes"
    ),
    "StageMetrics": "name seconds iterations distance_inside distance_outside landmark_residuals trace",
    "Trace": "stiffness energy distance",
    "Cohort": "ids template packed rows to_file absent table landmarks",
    "load_cohort": "folder table on_packed landmarks packed_in",
    "build_model": (
        "subjects components variance rigid symmetric asymmetry part exclude with_absent keep_scores"
    ),
    "ShapeModel": "mean basis variances faces landmark_ids noise_variance mirror training info",
    "Training": "scores scales columns",
    "load_model": "path landmark_ids",
    "fit": "model target landmarks components unit",
    "Fit": (
        "mesh coefficients transform unit unusual mahalanobis plausibility residuals deviations "
        "noise misfit explained over_model covered landmarks steps warnings"
    ),
    "evaluate": "model subjects samples seed surface scans landmarks truth progress",
    "Evaluation": (
        "compactness subjects generalization specificity decoupling raw_scans truth parameters warnings"
    ),
    "EvaluationParameters": "samples seed table surface surface_samples surface_vertices most_counts",
    "Compactness": "variance share total",
    "Curve": "distance region components values",
    "Decoupling": "variance_inside variance_outside",
    "RawScans": "to_scan from_scan registered failures",
    "TruthFigures": "correspondence cohort",
    "CohortTruth": "explained_breast explained_outside sd_ratio_breast sd_ratio_outside",
    "measure": "subject model",
    "Examination": (
        "id source absent distances volumes uncertainties ptosis symmetry mesh symmetry_reason warnings "
        "others landmarks borders"
    ),
    "Measure": "name kind value unit reason sd source predicted held beside",
    "MeasureTable": "title measures remarks",
    "Ptosis": "side above_lower_pole above_fold grade reason",
    "Symmetry": "deviation sides thorax signed mirrored",
    "compare": "scans template repeatability",
    "compare_repeated": "people template source",
    "load_repeatability": "path",
    "Comparison": "visits changes mesh repeatability warnings",
    "VisitChange": "id volumes measures grades skin stance hidden shape",
    "GradeChange": "side before after exceeds",
    "MeasureChange": "name kind value unit reason sd source predicted held beside",
    "SkinChange": "across along",
    "Stance": "depth width posture misfit scale",
    "Repeatability": "measures volume people source",
    "VolumeNoise": "floor share hidden posture",
    "RepeatStudy": "measures repeatability warnings",
    "RepeatedMeasure": (
        "name kind value unit reason sd source predicted held beside people first second within_sd"
    ),
    "edit": "model subject changes hold kind linear",
    "Edit": (
        "shape before faces coefficients coefficients_before length size_change changes movements "
        "method basis warnings plausibility skin"
    ),
    "Plausibility": "share level finding",
    "Change": "name kind value unit reason sd source predicted held beside",
    "predict": "model subject missing replace operated subjects earlier known",
    "Prediction": (
        "shape mirrored faces region modes rest_variance evidence choice source mismatch spread "
        "warnings measures given skin"
    ),
    "plan": "model subject target mirrored",
    "Plan": "target before after faces sides thickness note synthetic",
    "PlannedPart": "solid volume deviation",
    "SidePlan": "side added removed volume deviation base_width base_height thickest",
    "MissingRegion": "side missing breast healthy thorax untouched midline",
    "Choice": "noise mirror_share log_likelihood best_noise",
    "picture": "mesh values low high colours yaw pitch size",
    "demo_model": "",
    "make_phantoms": "folder n seed one_sided jobs colour visits",
}


def test_nothing_promised_is_missing_and_nothing_else_is_public():
    assert set(PROMISED) == set(breastmorph.__all__) - {"__version__"}


@pytest.mark.parametrize("name", sorted(set(PROMISED) - {"BreastMorphWarning"}))
def test_parameters_keep_their_names_and_order(name):
    found = list(inspect.signature(getattr(breastmorph, name)).parameters)
    assert found == PROMISED[name].split()


def test_the_reference_shows_every_public_name():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text()
    shown = {line.rsplit(".", 1)[-1] for line in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    assert shown == set(PROMISED)


def described(value):
    """What of a public name has annotations: the function, or the class and its public methods and properties."""
    if not isinstance(value, type):
        return [value]
    parts = [vars(value)[name] for name in vars(value) if not name.startswith("_")]
    parts = [getattr(part, "fget", None) or getattr(part, "func", None) or part for part in parts]
    parts = [getattr(part, "__func__", part) for part in parts]
    return [value, *filter(inspect.isfunction, parts)]


def types_in(hint):
    found = {hint} if isinstance(hint, type) else set()
    inner = () if typing.get_origin(hint) is typing.Literal else typing.get_args(hint)
    flat = [part for one in inner for part in (one if isinstance(one, list) else [one])]
    return found.union(*map(types_in, flat))


@pytest.mark.parametrize("name", PROMISED)
def test_annotations_name_public_types_only(name):
    public = {one: getattr(breastmorph, one) for one in PROMISED}
    for part in described(public[name]):
        if name == "RegistrationParameters":
            continue  # its stages are the method's own affair: docs/registration.md
        for where, hint in typing.get_type_hints(part, localns=public).items():
            ours = {one for one in types_in(hint) if one.__module__.startswith("breastmorph")}
            assert ours <= set(public.values()), f"{part} {where}"
            assert "pathlib" not in str(hint) or where in ("return", "where"), f"{part} {where}"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Registrar", "register"), ("Examiner", "measure"), ("Editor", "edit"), ("predict_breast", "predict"),
     ("fit_model", "fit"), ("evaluate_model", "evaluate"), ("save_model", "ShapeModel.save")],
)  # fmt: skip
def test_an_old_name_says_the_new_one(old, new):
    assert new.split(".")[0] in PROMISED
    with pytest.raises(AttributeError, match=rf"breastmorph\.{new} now"):
        getattr(breastmorph, old)


def test_examples_import_nothing_below_the_package():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    code = {page: re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S) for page in pages}
    for page in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(page.read_text())["cells"]
        code[page] = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum(map(len, code.values())) > 20
    for page, parts in code.items():
        assert not [part for part in parts if re.search(r"(from|import) breastmorph\.", part)], page
        assert not re.search(
            r"\b(Registrar|Examiner|Editor|predict_breast|fit_model|evaluate_model|save_model)\b",
            "".join(parts),
        ), page


def test_the_package_is_light_to_import():
    """Nothing heavy loads before it is needed."""
    code = "import sys, breastmorph; assert 'click' not in sys.modules; import breastmorph.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "numba", "h5py", "igl", "jinja2", "matplotlib", "starlette"} & set(loaded)


def test_the_package_is_typed():
    assert (Path(breastmorph.__file__).parent / "py.typed").exists()
