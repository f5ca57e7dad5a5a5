"""Commands, Python functions and the page fill in the same requests; each difference stands here with its reason."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import get_type_hints

import pytest

import breastmorph
from breastmorph.cli import main
from breastmorph.evaluation.model_evaluation import EvaluationParameters
from breastmorph.explorer.app import FIELDS
from breastmorph.model.building import BuildParameters
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.scan.check import CheckParameters
from breastmorph.template.making import TemplateParameters
from breastmorph.usecases.build import Subjects


@dataclass(frozen=True)
class UseCase:
    """The request of a use case, and the interfaces that fill it in."""

    request: str  # module.Class of breastmorph.usecases
    command: str = ""
    functions: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()


USE_CASES = {
    "check": UseCase(
        "check.CheckRequest",
        "check",
        ("check_scan", "load_scan", "load_scans"),
        ("folder_routes.check_queue",),
    ),
    "landmarks": UseCase("landmarks.LandmarksRequest", "landmarks", ("find_landmarks",)),
    "register": UseCase("register.RegisterRequest", "", ("register",), ("scan_routes.register",)),
    "register folder": UseCase(
        "register.RegisterFolderRequest", "register", ("register_folder",), ("folder_routes.register_queue",)
    ),
    "measure": UseCase("measure.MeasureRequest", "", ("measure",), ("shape_routes.measures",)),
    "measure files": UseCase("measure.MeasureFilesRequest", "measure"),
    "compare": UseCase("compare.CompareRequest", "compare", ("compare",), ("downloads.comparison",)),
    "compare repeated": UseCase("compare.CompareRepeatedRequest", "compare", ("compare_repeated",)),
    "build": UseCase("build.BuildRequest", "build", ("build_model",), ("folder_routes.build",)),
    "evaluate": UseCase("evaluate.EvaluateRequest", "evaluate", ("evaluate",)),
    "sample": UseCase("sample.SampleRequest", "sample"),
    "template": UseCase("template.TemplateRequest", "template"),
    "convert": UseCase("convert.ConvertRequest", "convert"),
    "verify": UseCase("verify.VerifyRequest", "verify"),
    "edit": UseCase("edit.EditRequest", "edit", ("edit",), ("shape_routes.edit",)),
    "plan": UseCase("plan.PlanRequest", "plan", ("plan",), ("shape_routes.plan", "shape_routes.thickness")),
    "fit": UseCase("fit.FitRequest", "fit", ("fit",), ("scan_routes.fit",)),
    "predict": UseCase("predict.PredictRequest", "predict", ("predict",), ("shape_routes.predict",)),
}
# Parameters whose fields are fields of the request; others count as one field.
OPENED = (BuildParameters, Subjects)
# Parameters of a method: only those of their fields are meant that some interface offers.
OF_A_METHOD = (CheckParameters, ProcrustesParameters, EvaluationParameters, TemplateParameters)
# What an interface calls a field of the request: "" for every use case. Several names may make up one field.
SPELLED = {
    ("", "model_file"): "model",
    ("", "template_file"): "template",
    ("", "template_landmarks"): "template",
    ("", "template_coarse"): "template",
    ("", "preset_name"): "parameters",
    ("", "preset"): "parameters",
    ("", "no_mask"): "parameters",
    ("", "use_masks"): "parameters",
    ("", "no_surface"): "surface",
    ("", "rigid"): "with_scale",
    ("check", "path"): "scans",
    ("landmarks", "scan"): "scans",
    ("register folder", "jobs"): "executor",
    ("register folder", "scheduler"): "executor",
    ("register folder", "time_limit"): "executor",
    ("register folder", "memory_limit"): "executor",
    ("measure", "shape"): "subject",
    ("measure files", "target"): "path",
    ("compare", "scans"): "visits",
    ("compare", "repeatability_file"): "repeatability",
    ("compare repeated", "repeatability_file"): "repeatability",
    ("compare repeated", "repeat"): "people",
    ("build", "folder"): "of",
    ("build", "subjects"): "of",
    ("evaluate", "folder"): "of",
    ("evaluate", "subjects"): "of",
    ("template", "coarse"): "coarse_vertices",
    ("convert", "source"): "model",
    ("edit", "of_mean"): "subject",
    ("edit", "scan"): "subject",
    ("edit", "registered"): "subject",
    ("edit", "base"): "subject",
    ("edit", "wishes"): "changes",
    ("plan", "scan"): "subject",
    ("fit", "scan"): "target",
    ("predict", "scan"): "subject",
    ("predict", "before"): "earlier",
    ("predict", "stated"): "known",
    ("predict", "replaced"): "replace",
    ("predict", "region"): "missing",
    ("predict", "side"): "missing",
    ("predict", "vertices"): "missing",
    ("predict", "subjects"): "cohort",
}
# (use case, kind of interface, name): why only the request, or only the interface, has it; "" for all of them.
_SHOWN = "how the result is shown or written, not what it is"
_SESSION = "the session knows it"
_AUTOMATIC = "the page reads files by itself and asks where it is not sure"
_SUBJECT = "part of the subject's file"
_FILE = "the Python function takes what a function that reads files made: load_scan, load_scans, load_cohort"
DIFFERENCES = {
    ("", "", "reasons"): "how the interface words why a subject is left out",
    ("", "command", "as_json"): _SHOWN,
    ("", "command", "csv_file"): _SHOWN,
    ("", "command", "figures"): _SHOWN,
    ("", "command", "handout"): _SHOWN,
    ("", "command", "language"): _SHOWN,
    ("", "command", "paper"): _SHOWN,
    ("", "command", "date"): _SHOWN,
    ("", "command", "kind"): _SHOWN,
    ("", "command", "no_sheet"): _SHOWN,
    ("", "command", "no_sheets"): _SHOWN,
    ("", "command", "quality_sheet"): _SHOWN,
    ("", "command", "dictionary"): "prints what measures are, and stops",
    (
        "",
        "command",
        "landmark_ids",
    ): "adds landmarks to the model while it is read; in Python load_model does",
    ("", "python", "progress"): _SHOWN,
    ("", "python", "max_faces"): "a limit for whole folders of unknown files",
    ("", "page", "template"): "that of the session's model",
    ("", "page", "parameters"): "the page registers with the default preset",
    ("", "page", "learn"): "the page registers scans one by one, as they are ready",
    ("", "page", "model"): _SESSION,
    ("", "page", "scans"): _SESSION,
    ("", "page", "landmarks"): _SESSION,
    ("", "page", "unit"): _AUTOMATIC,
    ("", "page", "scale_by"): _AUTOMATIC,
    ("", "page", "landmark_order"): _AUTOMATIC,
    ("", "page", "max_faces"): _AUTOMATIC,
    ("check", "command", "template"): "checking is before the choice of a template",
    ("landmarks", "command", "out"): _SHOWN,
    ("landmarks", "python", "jobs"): "one scan",
    ("landmarks", "python", "landmark_order"): "landmark files are not read",
    ("landmarks", "python", "scale_by"): "needs landmarks",
    ("register", "page", "jobs"): "one scan",
    ("register folder", "page", "executor"): "processes of this machine, that end with the session",
    ("register folder", "page", "out"): "beside the folder's scans",
    ("register folder", "", "force"): "on the page and in Python a folder that is there goes on",
    ("register folder", "", "retry_failed"): "on the page and in Python a folder that is there goes on",
    ("register folder", "python", "landmark_order"): "landmark files of a folder have names",
    ("register folder", "python", "scale_by"): "scans of one folder have no common measured distance",
    (
        "measure",
        "",
        "distances_only",
    ): "of files alone: of a value its distances can be read from the result",
    ("measure", "page", "tape"): _SHOWN,
    ("compare", "", "template"): "the command and the page compare with the built-in one, or the session's",
    ("compare", "command", "landmarks"): "part of the visits' files",
    ("compare", "command", "out"): _SHOWN,
    ("compare", "command", "repeat"): "another use case of the same command",
    ("compare", "page", "repeatability"): "that of phantoms",
    ("compare", "python", "unit"): _FILE,
    ("compare", "python", "scale_by"): _FILE,
    ("compare", "python", "landmark_order"): _FILE,
    ("compare repeated", "", "folder"): "the name of the folder that the command was given",
    ("compare repeated", "command", "landmarks"): "part of the people's files",
    ("compare repeated", "command", "out"): _SHOWN,
    ("compare repeated", "command", "scans"): "another use case of the same command",
    ("compare repeated", "command", "source"): "made of the folder's name",
    ("compare repeated", "command", "template"): "the built-in one",
    ("compare repeated", "python", "repeatability"): "a study is made to replace it",
    ("compare repeated", "python", "unit"): _FILE,
    ("compare repeated", "python", "scale_by"): _FILE,
    ("compare repeated", "python", "landmark_order"): _FILE,
    ("build", "command", "out"): _SHOWN,
    ("build", "python", "table"): _FILE,
    ("build", "python", "where"): "a cohort in Python is chosen by Cohort.chosen",
    ("build", "page", "of"): _SESSION,
    ("build", "page", "table"): _SESSION,
    ("build", "page", "where"): "the page builds the model of all registered scans of the folder",
    ("build", "page", "exclude"): "the page builds the model of all registered scans of the folder",
    ("build", "page", "components"): "the page builds the default kind of model",
    ("build", "page", "variance"): "the page builds the default kind of model",
    ("build", "page", "with_scale"): "the page builds the default kind of model",
    ("build", "page", "symmetric"): "the page builds the default kind of model",
    ("build", "page", "asymmetry"): "the page builds the default kind of model",
    ("build", "page", "part"): "the page builds the default kind of model",
    ("build", "page", "keep_scores"): "the page builds the default kind of model",
    ("build", "page", "with_absent"): "the page builds the default kind of model",
    ("evaluate", "command", "out"): _SHOWN,
    ("evaluate", "python", "table"): _FILE,
    ("evaluate", "python", "where"): "a cohort in Python is chosen by Cohort.chosen",
    ("evaluate", "python", "exclude"): "a cohort in Python is chosen by Cohort.chosen",
    ("evaluate", "python", "privacy"): "only the command measures it so far",
    ("evaluate", "python", "unit"): "raw scans are read by the length of the sternum",
    ("evaluate", "python", "scale_by"): "raw scans are read by the length of the sternum",
    ("evaluate", "python", "landmark_order"): "landmark files of a folder have names",
    ("sample", "command", "out"): _SHOWN,
    ("template", "command", "out"): _SHOWN,
    ("edit", "command", "out"): _SHOWN,
    ("edit", "command", "grid"): "another use case of the same command",
    ("edit", "command", "landmarks"): _SUBJECT,
    ("edit", "command", "unit"): _SUBJECT,
    ("edit", "command", "scale_by"): _SUBJECT,
    ("edit", "command", "landmark_order"): _SUBJECT,
    ("edit", "command", "max_faces"): _SUBJECT,
    (
        "edit",
        "",
        "compare_linear",
    ): "the command prints both versions beside each other; nothing else shows both",
    ("edit", "page", "kind"): "the page names each measure with its kind",
    ("edit", "page", "linear"): "the page edits exactly",
    ("edit", "page", "hold_other"): "the other breast is held as long as the user has not said what is",
    ("plan", "", "mirrored"): "the command and the page say it by the target's name",
    ("plan", "command", "out"): _SHOWN,
    ("plan", "command", "side"): "the command predicts the target itself",
    ("plan", "command", "stated"): "the command predicts the target itself",
    ("plan", "command", "landmarks"): _SUBJECT,
    ("plan", "command", "unit"): _SUBJECT,
    ("plan", "command", "scale_by"): _SUBJECT,
    ("plan", "command", "landmark_order"): _SUBJECT,
    ("plan", "command", "max_faces"): _SUBJECT,
    ("plan", "page", "subject"): _SESSION,
    ("fit", "command", "out"): _SHOWN,
    ("fit", "python", "landmark_order"): "of a list without names load_landmarks asks it",
    ("fit", "python", "scale_by"): "a target in no known unit is scaled before",
    ("fit", "page", "target"): _SESSION,
    ("fit", "page", "components"): "the page fits all components",
    ("predict", "command", "out"): _SHOWN,
    ("predict", "command", "samples"): "shapes that are drawn of the result",
    ("predict", "command", "seed"): "shapes that are drawn of the result",
    ("predict", "command", "landmarks"): _SUBJECT,
    ("predict", "command", "before_landmarks"): "part of the earlier subject's file",
    ("predict", "command", "template"): _SUBJECT,
    ("predict", "command", "unit"): _SUBJECT,
    ("predict", "command", "scale_by"): _SUBJECT,
    ("predict", "command", "landmark_order"): _SUBJECT,
    ("predict", "command", "max_faces"): _SUBJECT,
    ("predict", "page", "subject"): _SESSION,
    ("predict", "page", "cohort"): "the subjects that the model itself carries",
    ("predict", "page", "replace"): "the page asks for a breast that is there by its side or by painting it",
}


def fields_of(request: type, offered: set[str]) -> set[str]:
    """Names of a request's fields, those of opened parameters in their place."""
    hints = get_type_hints(request)
    found: set[str] = set()
    for field in fields(request):
        kinds = {hints[field.name], *getattr(hints[field.name], "__args__", ())}
        opened = next((kind for kind in (*OPENED, *OF_A_METHOD) if kind in kinds), None)
        inner = fields_of(opened, offered) if opened else {field.name}
        found |= inner & offered if opened in OF_A_METHOD else inner
    return found


def spelled(case: str, names: list[str]) -> set[str]:
    """The fields of the request that an interface's names stand for."""
    return {SPELLED.get((case, name), SPELLED.get(("", name), name)) for name in names}


def interfaces() -> list[tuple[str, str, str, list[str]]]:
    """Use case, kind of interface, name of the interface, names that it takes."""
    found = []
    for name, case in USE_CASES.items():
        if case.command:
            command = main.get_command(None, case.command)
            found.append((name, "command", case.command, [option.name for option in command.params]))
        for function in case.functions:
            found.append(
                (name, "python", function, list(inspect.signature(getattr(breastmorph, function)).parameters))
            )
        for handler in case.handlers:
            found.append((name, "page", handler, list(FIELDS[handler])))
    return found


def differences(case: str, kind: str, names: list[str]) -> set[tuple[str, str, str]]:
    """Names that the request or the interface alone has, as keys of ``DIFFERENCES``: the widest that is there."""
    module, _, request = USE_CASES[case].request.partition(".")
    offered = set().union(*(spelled(name, taken) for name, _, _, taken in interfaces()))
    wanted = fields_of(getattr(import_module(f"breastmorph.usecases.{module}"), request), offered)
    found = set()
    for name in wanted ^ spelled(case, names):
        keys = [(a, b, name) for a in ("", case) for b in ("", kind)]
        found.add(next((key for key in keys if key in DIFFERENCES), (case, kind, name)))
    return found


@pytest.mark.parametrize(("case", "kind", "interface", "names"), interfaces())
def test_an_interface_takes_what_the_request_has(case, kind, interface, names):
    assert differences(case, kind, names) - set(DIFFERENCES) == set(), interface


def test_no_difference_is_listed_that_is_none():
    found = set().union(*(differences(case, kind, names) for case, kind, _, names in interfaces()))
    assert set(DIFFERENCES) - found == set()
    assert all(DIFFERENCES.values())


def test_requests_are_frozen_and_have_a_use_case():
    for case in USE_CASES.values():
        module, _, name = case.request.partition(".")
        request = getattr(import_module(f"breastmorph.usecases.{module}"), name)
        assert is_dataclass(request)
        assert request.__dataclass_params__.frozen
