"""The page's words where it has controls for what others do with options and parameters."""

from __future__ import annotations

import json
from types import MappingProxyType

from breastmorph.foundation import language
from breastmorph.foundation.language import N_, in_context
from breastmorph.foundation.messages import Audience

in_context("page", "an earlier scan", "left", "right")  # words of results, which the page translates itself

_CONTROLS = {
    'Leave the unit of a file to "auto"; give points and surfaces in mm': N_(
        "Check the unit in which the file was exported"
    ),
    "Give the order of the names, or write lines of name,x,y,z": N_("Write lines of name,x,y,z"),
    "Decimate it first (300,000 faces are plenty), or raise max_faces": N_(
        "Decimate it first (300,000 faces are plenty)"
    ),
    'measure one distance between two landmarks on the patient and give it (scale_by="NL-NR=21cm")': N_(
        "scale it to millimetres by a distance measured on the patient before it is opened here"
    ),
    (
        "Check that it is a torso, or give its unit; where the scale of the file is not known, set two "
        "landmarks, {scale_by}"
    ): N_(
        "Check that it is a torso, and the unit in which the file was exported; where the scale of the "
        "file is not known, {scale_by}"
    ),
    'Leave the unit to "auto", or check these two landmarks': N_("Check these two landmarks"),
    "Check the unit, that each name sits on the right point, and for stray points far off": N_(
        "Check the unit in which the file was exported, that each name sits on the right point, and for "
        "stray points far off"
    ),
    "Look at the scan, or raise the time limit": N_("Look at the scan; it may be too large"),
    "Decimate the scan, raise the memory limit or take fewer processes": N_("Decimate the scan"),
    "Wait for it to end, or choose another folder": N_("Wait for it to end"),
    "Check its permissions and free space, or choose another folder": N_(
        "Check its permissions and free space"
    ),
    "Choose another folder: one folder, one template": N_(
        "Move the old results away: they were made for another model"
    ),
    "Check its unit: mm are expected": N_("Check the unit in which the file was exported"),
    "The model knows {known:landmark}; landmark_ids adds more. Or leave the landmarks out": N_(
        "The model knows {known:landmark}; more can be placed on the Model tab. Or leave the landmarks out"
    ),
    "Five landmarks tell the unit (landmark_ids)": N_(
        "Five landmarks tell the unit (place them on the Model tab)"
    ),
    (
        "The model has no landmarks: nothing tells that it is a torso, upright and in mm. Measures, "
        "edits and predictions need them (landmark_ids)"
    ): N_(
        "The model has no landmarks: nothing tells that it is a torso, upright and in mm. Measures, edits "
        "and predictions need them (place them on the Model tab)"
    ),
    "If names were exchanged, name the vertices with landmark_ids; sides are the patient's": N_(
        "If names were exchanged, place them on the Model tab; sides are the patient's"
    ),
    "Give the vertices of these landmarks (landmark_ids)": N_(
        "Give the vertices of these landmarks (place them on the Model tab)"
    ),
    (
        "Complete its landmarks with landmark_ids, or give a registered mesh (one with its triangles) instead"
    ): N_("Place them on the Model tab"),
    "Give replace=True to predict it nevertheless, as if it were missing": N_(
        "Set its landmarks (Patient's scan); it can then be predicted as if it were missing"
    ),
    "{name} {mean:.0f} ± {sd:.0f} mm": N_("{name:measure} {mean:cm} ± {sd:cm} cm"),
    (
        "There are no measures: the model has too few landmarks (complete them with "
        "landmark_ids){absent}{columns}"
    ): N_(
        "There are no measures: the model has too few landmarks (place them on the Model tab){absent}{columns}"
    ),
}

PAGE = Audience(in_words=True, wording=MappingProxyType(_CONTROLS))


def page_texts() -> dict[str, dict[str, str]]:
    """The page's own texts in every language but English, by their English ones."""
    found = language.LOCALE.glob("*/LC_MESSAGES/page.json")
    return {path.parts[-3]: json.loads(path.read_bytes()) for path in found}
