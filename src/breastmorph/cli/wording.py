"""The words of commands where they have options and other commands for what Python has parameters and functions.

By the sentence that stands in the code.
"""

from __future__ import annotations

from types import MappingProxyType

from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Audience

_OPTIONS = {
    'Leave the unit of a file to "auto"; give points and surfaces in mm': N_(
        "Leave the unit to --unit auto, or give the right one"
    ),
    "Give the order of the names, or write lines of name,x,y,z": N_(
        "Give the order of the names (--landmark-order), or write lines of name,x,y,z"
    ),
    "Decimate it first (300,000 faces are plenty), or raise max_faces": N_(
        "Decimate it first (300,000 faces are plenty), or raise --max-faces"
    ),
    'measure one distance between two landmarks on the patient and give it (scale_by="NL-NR=21cm")': N_(
        "measure one distance between two landmarks on the patient and give it (--scale-by NL-NR=21cm)"
    ),
    (
        "Check that it is a torso, or give its unit; where the scale of the file is not known, set two "
        "landmarks, {scale_by}"
    ): N_(
        "Check that it is a torso, or give the unit with --unit; where the scale of the file is not known, "
        "set two landmarks, {scale_by}"
    ),
    'Leave the unit to "auto", or check these two landmarks': N_(
        "Leave the unit to --unit auto, or check these two landmarks"
    ),
    "Check the unit, that each name sits on the right point, and for stray points far off": N_(
        "Check the unit (--unit), that each name sits on the right point, and for stray points far off"
    ),
    "Look at the scan, or raise the time limit": N_("Look at the scan, or raise --time-limit"),
    "Decimate the scan, raise the memory limit or take fewer processes": N_(
        "Decimate the scan, raise --memory-limit or take fewer --jobs"
    ),
    "Try again; if it fails again, look at the scan": N_(
        "Try --retry-failed; if it fails again, look at the scan"
    ),
    "Wait for it to end, or choose another folder": N_("Wait for it to end, or choose another --out"),
    "Check its permissions and free space, or choose another folder": N_(
        "Check its permissions and free space, or choose another --out"
    ),
    "{what:remedy}, then try again: what is done is kept": N_(
        "{what:remedy}, then run the same command again: what is done is kept"
    ),
    "Choose another folder: one folder, one template": N_("Choose another --out: one folder, one template"),
    "Give the folder into which scans were registered; for meshes made elsewhere, also their landmarks": N_(
        "Give the --out folder of `breastmorph register`; for meshes made elsewhere, also their landmarks"
    ),
    "Register the scan again, or move it away": N_("Run `breastmorph register` again, or move it away"),
    "Delete it and register again with learn=True": N_("Learn again with --learn --force"),
    "Check the folder of scans": N_("Check --scans"),
    "Try again with fewer processes": N_("Try again with fewer --jobs"),
    "unlike all others: {ids}; look at the registration, or leave out": N_(
        "unlike all others: {ids}; look at the registration, or leave out with --exclude"
    ),
    "Check the scan, and repair the mesh": N_("Run `breastmorph check` to see and repair the mesh"),
    "Check the scan, and keep the piece with the landmarks": N_(
        "Run `breastmorph check` to see the pieces, and keep the one with the landmarks"
    ),
    "Check the scan": N_("Run `breastmorph check` on it"),
    "; landmarks set by hand give a surer start": N_(
        "; landmarks set by hand (--landmarks) give a surer start"
    ),
    "Check its unit: mm are expected": N_("Check its unit (--unit): mm are expected"),
    "The model knows {known:landmark}; landmark_ids adds more. Or leave the landmarks out": N_(
        "The model knows {known:landmark}; --landmark-ids adds more. Or leave the landmarks out"
    ),
    "Five landmarks tell the unit (landmark_ids)": N_("Five landmarks tell the unit (--landmark-ids)"),
    (
        "The model has no landmarks: nothing tells that it is a torso, upright and in mm. Measures, "
        "edits and predictions need them (landmark_ids)"
    ): N_(
        "The model has no landmarks: nothing tells that it is a torso, upright and in mm. Measures, edits "
        "and predictions need them (--landmark-ids)"
    ),
    "If names were exchanged, name the vertices with landmark_ids; sides are the patient's": N_(
        "If names were exchanged, name the vertices with --landmark-ids; sides are the patient's"
    ),
    "Give it": N_("Give it with --table cohort.csv"),
    "Give it landmarks, which tell its unit": N_(
        "Give it landmarks, which tell its unit: `breastmorph convert MODEL in-mm.h5 --landmark-ids ids.json`"
    ),
    "Give the vertices of these landmarks (landmark_ids)": N_(
        "Give the vertices of these landmarks (--landmark-ids)"
    ),
    (
        "Complete its landmarks with landmark_ids, or give a registered mesh (one with its triangles) instead"
    ): N_(
        "Complete its landmarks with --landmark-ids, or give a registered mesh (one with its triangles) "
        "instead"
    ),
    (
        "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do "
        "not release it; build it again without them."
    ): N_(
        "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do not "
        "release it; build it again without --keep-scores."
    ),
    "With {components} components it would be {chance:.0f} %.": N_(
        "With --components {components} it would be {chance:.0f} %."
    ),
    "Predict the {absent} side": N_("Use --missing {absent}"),
    "Give replace=True to predict it nevertheless, as if it were missing": N_(
        "Give --replace to predict it nevertheless, as if it were missing"
    ),
    (
        "There are no measures: the model has too few landmarks (complete them with "
        "landmark_ids){absent}{columns}"
    ): N_(
        "There are no measures: the model has too few landmarks (complete them with "
        "--landmark-ids){absent}{columns}"
    ),
    "Use the exact version, or do not hold it": N_("Leave out --linear or that --hold"),
    "Build the model of more subjects, keeping their scores and their table": N_(
        "Build the model of more subjects with --keep-scores and --table"
    ),
    "Use a model of whole torsos": N_("Use a model built without --part and --asymmetry"),
    "Make one with compare_repeated and give its repeatability.json": N_(
        "Make one with `breastmorph compare --repeat FOLDER` and give its repeatability.json"
    ),
    "Check the unit of both files, and that they are of the same person": N_(
        "Check the unit of both files (--unit, --scale-by), and that they are of the same person"
    ),
    "Choose another port, or 0 for a free one": N_("Choose another --port, or leave it out for a free one"),
    "Give an address of this computer": N_("Give an address of this computer with --host, or leave it out"),
    "Start the explorer so that it takes larger files": N_("Start with a larger --max-upload"),
    "Make one of a synthetic cohort, or of your own scans": N_(
        "Make one with `breastmorph paper --phantom 110 --out {out}`, or with --cohort and your own scans"
    ),
    "Make it again in another folder": N_("Run `breastmorph paper` again with a new --out"),
    "Choose another folder; nothing was changed": N_("Choose another --out; nothing was changed"),
    "Check the path of the cohort": N_("Check the path given with --cohort"),
    "Make the study again in the same folder: only this part and what depends on it is redone": N_(
        "Run `breastmorph {command}` again with the same --out: it redoes only this part and what depends "
        "on it"
    ),
}

COMMAND = Audience(wording=MappingProxyType(_OPTIONS))
