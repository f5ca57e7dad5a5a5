"""Every sentence that tells a finding, or whose words depend on who reads it: the one file that a translation replaces.

Whoever types commands knows options, whoever uses the explorer's page knows its controls, and whoever writes Python
knows parameters. Findings and errors carry a name and values; the sentences are here, for all doors or for each.
How values are written in them is told by :func:`breastmorph.foundation.errors.phrased`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Door = Literal["command", "page", "python"]
DOORS: tuple[Door, ...] = ("command", "page", "python")
ByDoor = Mapping[Door, str]
Text = str | ByDoor


class Words(NamedTuple):
    """What is the matter, and what can be done about it; neither ends with a full stop."""

    cause: Text
    remedy: Text = ""


def _doors(command: str, page: str, python: str) -> ByDoor:
    return {"command": command, "page": page, "python": python}


def _page(others: str, page: str) -> ByDoor:
    """For what the page says without the terms of the method."""
    return _doors(others, page, others)


def _option(command: str, others: str) -> ByDoor:
    """For what a command's option mends, and everybody else in another way."""
    return _doors(command, others, others)


# --------------------------------------------------------------------------------------------------------------------
# Names in words
# --------------------------------------------------------------------------------------------------------------------

MEASURES = {
    "SN-NL": "Sternal notch to left nipple",
    "SN-NR": "Sternal notch to right nipple",
    "NL-NR": "Nipple to nipple",
    "SN-XI": "Sternal notch to xiphoid",
    "NL-LPL": "Left nipple to lower pole",
    "NR-LPR": "Right nipple to lower pole",
    "NL-IMFL": "Left nipple to fold",
    "NR-IMFR": "Right nipple to fold",
    "NL-M": "Left nipple to midline",
    "NR-M": "Right nipple to midline",
    "base-width-left": "Base width, left",
    "base-width-right": "Base width, right",
    "projection-left": "Projection, left",
    "projection-right": "Projection, right",
    "volume-left": "Left breast volume",
    "volume-right": "Right breast volume",
    "volume": "Breast volume",
}
LANDMARKS = {
    "sternal_notch": "sternal notch",
    "nipple": "{side} nipple",
    "lower_pole": "{side} lower pole",
    "lateral_pole": "{side} lateral pole",
    "coracoid": "{side} coracoid",
    "imf": "fold under the {side} breast",
}

# --------------------------------------------------------------------------------------------------------------------
# The check of a scan
# --------------------------------------------------------------------------------------------------------------------

_EXPORTED = "the unit in which the file was exported"
_SCALED_BEFORE = "scale it to millimetres by a distance measured on the patient before it is opened here"
_MEASURE_IT = "measure one distance between two landmarks on the patient and give it"
_SCALE_BY = _doors(
    f"{_MEASURE_IT} (--scale-by NL-NR=21cm)", _SCALED_BEFORE, f'{_MEASURE_IT} (scale_by="NL-NR=21cm")'
)
_BELONG = "Check that they belong to this scan and were picked in its coordinates"
_ADD_LANDMARKS = "Add them, or rename the labels as in docs/landmarks.md; after a mastectomy leave out all "

# What is repaired: what is seen, and what was done about it.
_REPAIRS = {
    "non-finite-vertices": ("{n:,} vertices with NaN or infinite coordinates", "removed"),
    "unreferenced-vertices": ("{n:,} vertices without faces", "removed"),
    "duplicate-vertices": ("{n:,} duplicate vertices", "joined"),
    "degenerate-faces": ("{n:,} faces without area", "removed"),
    "duplicate-faces": ("{n:,} duplicate faces", "removed"),
    "non-manifold-edges": ("faces at {n:,} non-manifold edges", "removed"),
    "inconsistent-orientation": ("{n:,} faces", "turned to agree with their neighbours"),
    "pinched-vertices": ("{n:,} vertices", "split where only corners touched"),
}

_CHECK: dict[str, Words] = {
    **{code: Words(f"{seen} {done}") for code, (seen, done) in _REPAIRS.items()},
    **{
        f"{code}/refused": Words(
            f"too damaged to repair: {seen} on {{share:.0%}} of the faces",
            "Repair the mesh (for example in MeshLab) or export the scan again",
        )
        for code, (seen, _) in _REPAIRS.items()
    },
    "non-finite-vertices/points": Words("{n:,} points that are not finite removed"),
    "inverted-orientation": Words("surface was inside out; turned"),
    "frame-from-landmarks": Words(
        "no upright axis found in the file; up is estimated from the landmarks (within {degrees:.0f} degrees)"
    ),
    "absent-side": Words("{side} side absent (no nipple, no poles)"),
    "landmark-order": Words(
        "points without names taken in the order {names:landmark}; make sure that it is so"
    ),
    "landmarks-not-set": Words(
        "not set: {names:landmark}; a registration estimates them for its mask, and they are left out of measures"
        "{but_found}"
    ),
    "but-found": Words("; labels not understood: {labels}"),
    "unit/sternum": Words("unit taken as {unit} from the length of the sternum"),
    "unit/nipples": Words("unit taken as {unit} from the distance from notch to nipples"),
    "unit/size": Words("unit taken as {unit} from the size"),
    "scaled": Words(
        "scaled by {first:landmark} to {second:landmark} = {length:g} mm: one unit of the file is {mm:.4g} mm{near}"
    ),
    "scaled/near": Words(", {off:+.0f} % against {unit}; if the file is in {unit}, check the distance"),
    "no-landmarks": Words(
        "no landmark file found for this scan",
        _doors(
            "Name the folder with --landmarks, and put {id}.json (or .csv, .pp, .mrk.json, .fcsv) into it",
            "Set its points on this page",
            "Give the file or the folder of its landmarks, or put {id}.json (or .csv, .pp, .mrk.json, .fcsv) beside "
            "the scan",
        ),
    ),
    "ambiguous-landmarks": Words("several landmark files fit this scan: {names}", "Keep one"),
    "unusable-landmarks/bare-list": Words(
        "the file is a bare list of coordinates without names",
        _doors(
            "Give the order of the names (--landmark-order), or write lines of name,x,y,z",
            "Write lines of name,x,y,z",
            "Give the order of the names, or write lines of name,x,y,z",
        ),
    ),
    "too-large": Words(
        "too large: {faces:,} faces (at most {most:,})",
        _doors(
            "Decimate it first (300,000 faces are plenty), or raise --max-faces",
            "Decimate it first (300,000 faces are plenty)",
            "Decimate it first (300,000 faces are plenty), or raise max_faces",
        ),
    ),
    "landmark-off-surface": Words("{name:landmark} is {distance:.0f} mm off the surface"),
    "landmark-off-surface/one": Words("{name:landmark} {distance:.1f} mm"),
    "landmark-off-surface/refused": Words(
        "landmarks off the surface by more than {allowed:.0f} mm: {far}", _BELONG
    ),
    "landmark-off-surface/points": Words(
        "most landmarks lie off the points, {name:landmark} by {distance:.0f} mm", _BELONG
    ),
    "lps-ras": Words("landmarks and mesh use different axes (LPS/RAS); landmarks turned"),
    "units-differ": Words("mesh unit differs from the landmarks'; mesh scaled by {scale:g}"),
    "landmarks-on-several-pieces": Words(
        "the scan is in {pieces} pieces and {names:landmark} lies on another piece than the rest",
        "Join the pieces (for example in MeshLab: merge close vertices), or export the scan as one surface",
    ),
    "several-components": Words("{pieces} loose pieces ({share:.1%} of the area) removed"),
    "several-components/refused": Words(
        "the piece with the landmarks is only {share:.0%} of the surface ({pieces} pieces)",
        "Remove what is not the patient (table, background) or join the pieces",
    ),
    "too-coarse": Words(
        "too coarse: mean edge {edge:.1f} mm (at most {most:g})",
        "Export the scan at a higher resolution (3.5 mm or finer is best)",
    ),
    "closed-surface": Words("closed surface (no border); scans are usually open"),
    "holes": Words("{n} holes (largest {largest:.0f} mm around)"),
    "holes/one": Words("1 hole (largest {largest:.0f} mm around)"),
    "rough-surface": Words(
        "the surface is rough: {rough:.1f} mm off smooth skin (scanners: below {usual:g})",
        "Look for a failed capture or unit, or export the scan again",
    ),
    "covered-breasts": Words(
        "the surface at the nipples is drawn out ({stretched:.1f} times the triangles around): pushed outwards, or a "
        "garment",
        "Check that the skin was bare; volumes of a covered breast are too large",
    ),
    "layered-surface": Words(
        "a second surface lies within {within:.0f} mm of {share:.0%} of the front: the same skin twice",
        "Align the views of the scan again, or keep one layer",
    ),
    "landmarks-off-skin": Words(
        "a quarter of the landmarks lie more than {off:.1f} mm off the skin: mesh and landmarks are not of one size",
        "Check that both were exported together; a mesh scaled by a few per cent looks like this",
    ),
    "landmarks-of-another": Words(
        "the skin at the nipples' landmarks has not the shape of a nipple",
        "Check that the landmarks are this scan's, and that the breasts are bare",
    ),
    "missing-landmarks": Words(
        "missing landmarks: {names:landmark}{but_found}",
        f"{_ADD_LANDMARKS}of that side and set xiphoid or navel",
    ),
    "missing-landmarks/complete": Words(
        "missing landmarks: {names:landmark}{but_found}", f"{_ADD_LANDMARKS}three of that side"
    ),
    "missing-landmarks/none-known": Words(
        "no landmark of the file is known{but_found}", "Rename the labels as in docs/landmarks.md"
    ),
    "scale-by": Words(_SCALE_BY),
    "unknown-unit": Words(
        "{what} measures {length:.4g} in the file's unit; an adult's {least:.0f}-{most:.0f} mm fits neither mm, cm "
        "nor m",
        "Check these two landmarks; where the scale of the file is not known or another (inches), {scale_by}",
    ),
    "unknown-unit/distance-unset": Words(
        "the distance from {first:landmark} to {second:landmark} is given, but the landmark {unset:landmark} is not "
        "set",
        "Set both landmarks, or give a distance between two others",
    ),
    "unknown-unit/distance-none": Words(
        "the distance from {first:landmark} to {second:landmark} is given, but both lie at the same place",
        "Set both landmarks, or give a distance between two others",
    ),
    "unknown-unit/extent": Words(
        "the data extend over {extent:.3g} in the file's unit; a torso's {least:.0f}-{most:.0f} mm fit neither mm, cm "
        "nor m",
        _doors(
            "Check that it is a torso, or give the unit with --unit; where the scale of the file is not known, set two "
            "landmarks, {scale_by}",
            f"Check that it is a torso, and {_EXPORTED}; where the scale of the file is not known, {{scale_by}}",
            "Check that it is a torso, or give its unit; where the scale of the file is not known, set two landmarks, "
            "{scale_by}",
        ),
    ),
    "wrong-unit": Words(
        _doors(
            "with --unit {unit} {what} measures {length:.4g} mm (an adult's {least:.0f}-{most:.0f})",
            "read in {unit}, {what} measures {length:.4g} mm (an adult's {least:.0f}-{most:.0f})",
            "with the unit {unit} {what} measures {length:.4g} mm (an adult's {least:.0f}-{most:.0f})",
        ),
        _doors(
            "Leave the unit to --unit auto, or check these two landmarks",
            "Check these two landmarks",
            'Leave the unit to "auto", or check these two landmarks',
        ),
    ),
    "implausible-anatomy": Words(
        "not an adult torso: {problems:|; }",
        _doors(
            "Check the unit (--unit), that each name sits on the right point, and for stray points far off",
            f"Check {_EXPORTED}, that each name sits on the right point, and for stray points far off",
            "Check the unit, that each name sits on the right point, and for stray points far off",
        ),
    ),
    "implausible-anatomy/sternum": Words(
        "sternal notch to xiphoid measures {length:.0f} mm (an adult's {least:.0f}-{most:.0f})",
        "Check these two points and the unit of the file",
    ),
    "sides-swapped/picked": Words(
        "{name:landmark} lies on the patient's other side",
        "Sides are the patient's: her left is on your right when she faces you. Exchange left and right; if the points "
        "are right, the file is mirrored",
    ),
}

# --------------------------------------------------------------------------------------------------------------------
# Registration, alone and of many scans
# --------------------------------------------------------------------------------------------------------------------

_LOOK_AGAIN = _option(
    "Try --retry-failed; if it fails again, look at the scan",
    "Try again; if it fails again, look at the scan",
)

_REGISTRATION: dict[str, Words] = {
    "landmark-moved": Words("landmark {name:landmark} lies {distance:.0f} mm off the surface; moved onto it"),
    "pole-above-nipple": Words(
        "landmark {pole:landmark} lies above {nipple:landmark}, yet it is the lowest point of the breast; are the two "
        "exchanged?"
    ),
    "landmarks-estimated": Words(
        "landmarks not set: {names:landmark}; estimated with the template, for the mask and the start only"
    ),
    "side-mirrored": Words(
        _page(
            "{side} side absent: its mask is mirrored from the other side, its landmark pairs are void",
            "the {side} breast is missing: that side follows the skin of the scan only",
        )
    ),
    "breast-without-landmarks": Words(
        "the {side} side has no landmarks, yet its surface looks like a breast; annotate it if it is there"
    ),
    "unusual-thorax": Words("unusual thorax: {gap:.0f} mm from the template after rigid alignment"),
    "poor-overlap": Words("poor overlap: {share:.0f} % of the template finds the scan"),
    "breasts-off": Words("breasts end {distance:.1f} mm from the scan on average"),
    "nipple-off": Words("landmark {name:landmark} ends {distance:.1f} mm off"),
    "folded": Words("folded triangles: {percent:.2f} %"),
    "distorted": Words(
        "strong distortion: angles change by {degrees:.0f} degrees on average; are these the landmarks of this scan?"
    ),
    "breast-not-seen": Words(
        "only {share:.0f} % of the {side} breast is in the scan; the rest of it is a guess"
    ),
    "unusable-landmarks/off-scan": Words(
        "landmark {name:landmark} lies {distance:.0f} mm off the scan's surface",
        "These look like the landmarks of another scan, or of another unit or frame",
    ),
    "landmarks-moved": Words(
        "measures here run between points of the registered shape, which lie off those annotated on the scan ({far}); "
        "`measure` of the scan itself will differ"
    ),
    "landmarks-moved/one": Words("{name:landmark} {distance:.0f} mm"),
    "no-pictures": Words("its pictures could not be drawn ({why})"),
    "time-limit": Words(
        "{why}",
        _doors(
            "Look at the scan, or raise --time-limit",
            "Look at the scan; it may be too large",
            "Look at the scan, or raise the time limit",
        ),
    ),
    "memory-limit": Words(
        "{why}",
        _doors(
            "Decimate the scan, raise --memory-limit or take fewer --jobs",
            "Decimate the scan",
            "Decimate the scan, raise the memory limit or take fewer processes",
        ),
    ),
    "crashed": Words("{why}", _LOOK_AGAIN),
    "worker-lost": Words("{why}", _LOOK_AGAIN),
    "unexpected": Words("unexpected error ({why})", "Please report it"),
    "busy": Words(
        "another run works in this folder ({who})",
        _doors(
            "Wait for it to end, or choose another --out",
            "Wait for it to end",
            "Wait for it to end, or choose another folder",
        ),
    ),
    "unwritable/folder": Words(
        "the folder cannot be written to ({why})",
        _doors(
            "Check its permissions and free space, or choose another --out",
            "Check its permissions and free space",
            "Check its permissions and free space, or choose another folder",
        ),
    ),
    "unwritable/stopped": Words(
        "{what}",
        _option(
            "{what:remedy}, then run the same command again: what is done is kept",
            "{what:remedy}, then try again: what is done is kept",
        ),
    ),
    "other-template": Words(
        "this folder holds results of another template (of {id})",
        _doors(
            "Choose another --out: one folder, one template",
            "Move the old results away: they were made for another model",
            "Choose another folder: one folder, one template",
        ),
    ),
    "not-registered": Words(
        "this is no folder of registered scans",
        _option(
            "Give the --out folder of `breastmorph register`; for meshes made elsewhere, also their landmarks",
            "Give the folder into which scans were registered; for meshes made elsewhere, also their landmarks",
        ),
    ),
    "unreadable/record": Words(
        "this record cannot be read ({why})",
        _option(
            "Run `breastmorph register` again, or move it away", "Register the scan again, or move it away"
        ),
    ),
    "missing/file": Words("the file is missing", "{again}"),
    "unreadable/other-content": Words("its content is not what the record says", "{again}"),
    "unreadable/no-record": Words("the record cannot be read", "{again}"),
    "unreadable/changed-record": Words("the record was changed", "{again}"),
    "register-again": Words("Register this scan again"),
    "not-among-inputs": Words(
        "its scan is not among the inputs", _option("Check --scans", "Check the folder of scans")
    ),
    "subject-not-made": Words(
        "subject {index} could not be made: {why}",
        _option("Try again with fewer --jobs", "Try again with fewer processes"),
    ),
    "unlike-others": Words(
        _option(
            "unlike all others: {ids}; look at the registration, or leave out with --exclude",
            "unlike all others: {ids}; look at the registration, or leave out",
        )
    ),
    "copies": Words(
        "the same shape in {ids}: leave it in once, or the model counts this person {times} times"
    ),
    "mirrored": Words("mirrored: {ids}; check the sides of the landmarks and register again"),
}

# --------------------------------------------------------------------------------------------------------------------
# Surfaces and models
# --------------------------------------------------------------------------------------------------------------------

_LANDMARK_IDS = _doors("(--landmark-ids)", "(place them on the Model tab)", "(landmark_ids)")
_NAME_THE_SIDES = _doors(
    "If names were exchanged, name the vertices with --landmark-ids; sides are the patient's",
    "If names were exchanged, place them on the Model tab; sides are the patient's",
    "If names were exchanged, name the vertices with landmark_ids; sides are the patient's",
)

_TEMPLATE_NEEDS = "A template needs sternal notch, xiphoid, nipples, lower and lateral poles"
_ANNOTATE = "Annotate sternal notch, xiphoid and nipple, lower pole, lateral pole of at least one side"

_MODEL: dict[str, Words] = {
    "unusable-surface/not-manifold": Words(
        "geodesics need a manifold surface ({why})",
        _option("Run `breastmorph check` to see and repair the mesh", "Check the scan, and repair the mesh"),
    ),
    "unusable-surface/pieces": Words(
        "two points lie on pieces of the surface that are not joined",
        _option(
            "Run `breastmorph check` to see the pieces, and keep the one with the landmarks",
            "Check the scan, and keep the piece with the landmarks",
        ),
    ),
    "unusable-surface/empty": Words(
        "the surface has no faces or is not finite",
        _option("Run `breastmorph check` on it", "Check the scan"),
    ),
    "unlike-model": Words(
        "the scan does not look like the model: {reasons:|; }",
        "Check that it is a torso seen from the front, its unit and its sides{hint}",
    ),
    "unlike-model/explained": Words("only {share:.0%} of the points over the model are explained"),
    "unlike-model/covered": Words("it shows only {share:.0%} of the model"),
    "unlike-model/misfit": Words("the surface stays {misfit:.1f} mm off"),
    "unlike-model/unusual": Words(
        "its shape would be {unusual:.1f} times as unusual as the model's population"
    ),
    "unlike-model/size": Words("its size would be {ratio:.2g} times the model's"),
    "unlike-model/hint": Words(
        _doors(
            "; landmarks (--landmarks) give a surer start",
            "; a few landmarks give a surer start",
            "; landmarks give a surer start",
        )
    ),
    "ambiguous-pose": Words(
        "two different poses explain the scan about equally well",
        _doors(
            "Give landmarks (--landmarks); three are enough",
            "Set landmarks on this page; three are enough",
            "Give landmarks; three are enough",
        ),
    ),
    "inverted-orientation/refused": Words(
        "the surface looks inwards: the file is inside out or mirrored",
        _option(
            "Turn the faces, or export the file again without mirroring; landmarks (--landmarks) tell which it is",
            "Turn the faces, or export the file again without mirroring; landmarks tell which it is",
        ),
    ),
    "inverted-orientation/fitted": Words("the surface was inside out and has been turned"),
    "wrong-unit/size": Words(
        "judged by {by}, the target is {ratio:.3g} times as large as the model",
        _doors(
            "Check its unit (--unit): mm are expected",
            f"Check {_EXPORTED}",
            "Check its unit: mm are expected",
        ),
    ),
    "missing-landmarks/shared": Words(
        "model and target share only {n} landmarks; a pose needs three",
        _doors(
            "The model knows {known:landmark}; --landmark-ids adds more. Or leave the landmarks out",
            "The model knows {known:landmark}; more can be placed on the Model tab. Or leave the landmarks out",
            "The model knows {known:landmark}; landmark_ids adds more. Or leave the landmarks out",
        ),
    ),
    "pose-without-landmarks": Words("pose found without landmarks: a mirrored file would not be noticed"),
    "predicted-by-model": Words(
        "{share:.0%} of the shape is not seen in the scan but predicted by the model"
    ),
    "coefficients-far": Words("{n} of {all} coefficients lie beyond 3 standard deviations ({listed}{more})"),
    "misfit": Words("the model follows this surface only to {misfit:.1f} mm"),
    "not-explained": Words("{share:.0%} of the points over the model are not explained"),
    "model/mean-zero": Words(
        "The model's mean is all zero: the file may hold deformations instead of shapes"
    ),
    "model/no-torso": Words(
        "The model's mean is {extent:.3g} mm large, which is no torso: is it in another unit? {tell_the_unit}"
    ),
    "model/no-variance": Words("The model has no variance: all its shapes are the mean"),
    "model/no-body": Words(
        "The model's vertices vary by {spread:.3g} mm (standard deviation), which no body does: is it in another unit, "
        "or its basis of another kind? {tell_the_unit}"
    ),
    "model/tell-the-unit": Words(
        {door: f"Five landmarks tell the unit {how}" for door, how in _LANDMARK_IDS.items()}
    ),
    "model/no-landmarks": Words(
        {
            door: "The model has no landmarks: nothing tells that it is a torso, upright and in mm. "
            f"Measures, edits and predictions need them {how}"
            for door, how in _LANDMARK_IDS.items()
        }
    ),
    "model/mirrored": Words(
        "The model's landmarks fit the mirror image of a body: sides swapped or model mirrored. Do not rely on sides, "
        "regions and volumes. {name_the_sides}"
    ),
    "model/exchanged": Words(
        "Left and right of the model's landmarks are exchanged ({names:landmark}), or it looks backwards: do not rely "
        "on sides. {name_the_sides}"
    ),
    "model/name-the-sides": Words(_NAME_THE_SIDES),
    "model/another-frame": Words("The model is {how:| and }: it is read in mm, upright and looking outwards"),
    "no-table": Words(
        "there is no table to choose subjects by", _option("Give it with --table cohort.csv", "Give it")
    ),
    "unit-of-model": Words(
        "the model is {ratio:.3g} times as large as the cohort, so its unit is not mm",
        _option(
            "Give it landmarks, which tell its unit: `breastmorph convert MODEL in-mm.h5 --landmark-ids ids.json`",
            "Give it landmarks, which tell its unit",
        ),
    ),
    "unusable-landmarks/model-lacks": Words(
        "the model lacks {names:landmark}",
        {door: f"Give the vertices of these landmarks {how}" for door, how in _LANDMARK_IDS.items()},
    ),
    "unusable-landmarks/mask": Words("the mask needs {names:landmark| and }", _ANNOTATE),
    "unusable-landmarks/mask-none": Words("the mask needs one breast's nipple and poles", _ANNOTATE),
    "unusable-landmarks/template-lacks": Words("the template lacks {name:landmark}", _TEMPLATE_NEEDS),
    "unusable-landmarks/template-lacks-breast": Words(
        "the template lacks a complete breast", _TEMPLATE_NEEDS
    ),
    "unusable-landmarks/template-off": Words(
        "template landmark {name:landmark} lies {distance:.0f} mm from the template",
        "Give the landmarks that belong to this template, in its unit and frame",
    ),
    "unusable-landmarks/coincide": Words(
        "{nipple:landmark} coincides with {name:landmark}", "Check the nipple and the poles of that side"
    ),
    "unusable-landmarks/off-mesh": Words(
        "landmark {name:landmark} lies {distance:.0f} mm off the surface",
        "Give the landmarks of this mesh, in its unit and frame",
    ),
    "unusable-landmarks/of-model": Words(
        "scans cannot be registered with this model ({why})",
        _doors(
            "Complete its landmarks with --landmark-ids, or give a registered mesh (one with its triangles) instead",
            "Place them on the Model tab",
            "Complete its landmarks with landmark_ids, or give a registered mesh (one with its triangles) instead",
        ),
    ),
    "privacy/keeps-scores": Words(
        _option(
            "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do not release "
            "it; build it again without --keep-scores.",
            "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do not release "
            "it; build it again without them.",
        )
    ),
    "privacy/fewer-components": Words(
        _option(
            "With --components {components} it would be {chance:.0f} %.",
            "With {components} components it would be {chance:.0f} %.",
        )
    ),
}

# --------------------------------------------------------------------------------------------------------------------
# Measures, edits and predictions
# --------------------------------------------------------------------------------------------------------------------


def _length(before: str) -> ByDoor:
    """A measure with a length, which the page tells in words and cm."""
    exact = f"{{name}} {before}{{value:.1f}} mm"
    return _page(exact, f"{{name:measure}} {before}{{value:cm}} cm")


_LESS = "Ask for less, or hold less{usual}"
_ANOTHER = "Choose another measure"

_REPLACE = _doors(
    "Give --replace to predict it nevertheless, as if it were missing",
    "Set its landmarks (Patient's scan); it can then be predicted as if it were missing",
    "Give replace=True to predict it nevertheless, as if it were missing",
)

_CLINICAL: dict[str, Words] = {
    "other-side-absent": Words(
        "the {absent} side is the one without a breast, not the {side}",
        _option("Use --missing {absent}", "Predict the {absent} side"),
    ),
    "breast-there": Words("the {side} breast is there", _REPLACE),
    "breast-there/without-landmarks": Words(
        "the {side} breast is there: it has no landmarks, but its skin shows it", _REPLACE
    ),
    "needs-landmarks": Words("needs {names:landmark| and }"),
    "needs-fold": Words("needs {names:landmark| and }"),
    "needs-fold/grade": Words("needs {name:landmark} (the fold)"),
    "no-line": Words("no way over the skin joins its ends"),
    "needs-registration": Words("needs a registration"),
    "no-midline": Words("no skin at the midline at the height of the nipple"),
    "side-absent": Words("{side} side absent"),
    "not-reached": Words("the mesh does not reach {name:landmark}"),
    "not-determinable": Words("{name:measure} cannot be determined on this shape", _ANOTHER),
    "not-determinable/why": Words("{name:measure} cannot be determined: {why}", _ANOTHER),
    "asked": Words("{parts:| with }{stay}"),
    "asked/mm": Words(_length("")),
    "asked/cc": Words("{name:measure} {value:.1f} cc"),
    "asked/column": Words("{name} {shift:+g}"),
    "asked/stays": Words(" while {names:measure} stays"),
    "asked/stay": Words(" while {names:measure} stay"),
    "usual": Words(". Usual at this size: {measures}"),
    "usual/mm": Words(_page("{name} {mean:.0f} ± {sd:.0f} mm", "{name:measure} {mean:cm} ± {sd:cm} cm")),
    "usual/cc": Words("{name:measure} {mean:.0f} ± {sd:.0f} cc"),
    "unattainable/lost": Words("{asked} cannot be attained ({why})", _LESS),
    "unattainable/moved": Words(
        "{asked} cannot be attained; the {region} would have to move by {moved:.1f} mm on average", _LESS
    ),
    "unattainable/nearest": Words("{asked} cannot be attained; the nearest shape found has {best}", _LESS),
    "unattainable/far": Words(
        "{asked} is out of reach: the shape would change by {length:.0f} standard deviations", _LESS
    ),
    "unattainable/folds": Words("{asked} would fold the surface ({percent:.1f} % of the triangles)", _LESS),
    "unattainable/held": Words("{why}", "Release {breasts:| and }, or ask for less"),
    "unattainable/breast": Words("the {side} breast"),
    "unattainable/nothing": Words("nothing can be held", "Hold less"),
    "beyond-model": Words(
        "{asked} cannot be attained: {name:measure} is out of reach, {deviations:.0f} standard deviations from the "
        "mean; the model knows nothing about such shapes",
        _LESS,
    ),
    "beyond-model/held": Words("{why}", "Release {breasts:| and }, or ask for less"),
    "unusual-value/above": Words(
        "{name:measure}: the value asked for lies {deviations:.1f} standard deviations above the model's mean at this "
        "size"
    ),
    "unusual-value/below": Words(
        "{name:measure}: the value asked for lies {deviations:.1f} standard deviations below the model's mean at this "
        "size"
    ),
    "unusual-component": Words(
        "the edited shape is unusual: component {component} at {deviations:.1f} standard deviations{more}"
    ),
    "unusual-component/more": Words(" and {n} more beyond {limit:g}"),
    "unusual-shape": Words(
        "the edited shape lies {distance:.1f} standard deviations from the mean; up to {usual:.1f} are usual for a "
        "model of this many components ({components})"
    ),
    "edit-folded": Words(
        "{percent:.2f} % of the triangles are folded over; look at the shape before using it"
    ),
    "modes-made-local": Words(
        _page(
            "in this model nothing else changes that way without the held regions, so its modes were made local: they "
            "fade out from {inside:.0f} mm before to {outside:.0f} mm beyond the border",
            "to keep the held parts in place, the change fades out around their border; look at the border",
        )
    ),
    "unknown-measure": Words("{name!r} is not known here", "{known}"),
    "known-measures": Words("Measures are {names:measure}{absent}{columns}"),
    "known-measures/none": Words(
        _doors(
            "Measures are none: the model has too few landmarks (complete them with --landmark-ids){absent}{columns}",
            "Measures are none: the model has too few landmarks (place them on the Model tab){absent}{columns}",
            "Measures are none: the model has too few landmarks (complete them with landmark_ids){absent}{columns}",
        )
    ),
    "known-measures/absent": Words(" (the {side} breast is absent)"),
    "known-measures/columns": Words("; columns of the table are {names}"),
    "asked-twice": Words("{name:measure} is asked for twice", "Keep one value"),
    "impossible-value/mm": Words(
        _length("would be "),
        _page("It is {now:.1f} mm now", "It is {now:cm} cm now"),
    ),
    "impossible-value/cc": Words("{name:measure} would be {value:.1f} cc", "It is {now:.1f} cc now"),
    "cannot-be-held": Words("{name!r} cannot be held", "Regions are {regions}. {known}"),
    "changed-and-held": Words("{name:measure} is both to be changed and to be held", "Choose one of the two"),
    "region-not-held": Words("the {region} cannot be held: {why}", "{why:remedy}"),
    "same-in-all": Words("{name:measure} is the same in all shapes of this model", _ANOTHER),
    "linear-hold": Words(
        "the linear version cannot hold the {region}",
        _option("Leave out --linear or that --hold", "Use the exact version, or do not hold it"),
    ),
    "too-few-subjects": Words(
        "{n} subjects are too few to learn {column} from",
        _option(
            "Build the model of more subjects with --keep-scores and --table",
            "Build the model of more subjects, keeping their scores and their table",
        ),
    ),
    "part-of-torso": Words(
        "this model is not one of whole torsos",
        _option("Use a model built without --part and --asymmetry", "Use a model of whole torsos"),
    ),
    "fits-worse/thorax": Words(
        "its thorax fits {ratio:.1f} times worse than the worst of the model's subjects"
    ),
    "fits-worse/known": Words(
        "what is known of it fits {ratio:.1f} times worse than the worst of the model's subjects"
    ),
    "unusable-surface/fits-worse": Words(
        "this scan does not look like the model: {why}",
        "Check its landmarks and its registration, or use a model that knows such torsos",
    ),
}

# --------------------------------------------------------------------------------------------------------------------
# The explorer and the study
# --------------------------------------------------------------------------------------------------------------------

_MAKE_ONE = "Make one with `breastmorph paper --phantom 110 --out {out}`, or with --cohort and your own scans"
_MAKE_ONE_HERE = _option(_MAKE_ONE, "Make one of a synthetic cohort, or of your own scans")

_AROUND: dict[str, Words] = {
    "cannot-listen/taken": Words(
        "cannot listen on {host} port {port} ({why})",
        _option(
            "Choose another --port, or leave it out for a free one",
            "Choose another port, or 0 for a free one",
        ),
    ),
    "cannot-listen/host": Words(
        "cannot listen on {host} port {port} ({why})",
        _option(
            "Give an address of this computer with --host, or leave it out",
            "Give an address of this computer",
        ),
    ),
    "unreadable/large-session": Words(
        "the session file unpacks to more than {most:,.0f} MB",
        _option("Start with a larger --max-upload", "Start the explorer so that it takes larger files"),
    ),
    "session-differs": Words(
        "the shape in the session file is not what its scan and landmarks give (they differ by up to {off:.1f} mm), so "
        "the computed one is shown: the file was changed, or made by another version (saved with {saved}, opened with "
        "{opened})"
    ),
    "study/no-folder": Words("there is no such folder", _MAKE_ONE_HERE),
    "study/none": Words("this folder holds no study", _MAKE_ONE_HERE),
    "study/other-version": Words(
        "this study was made by another version of BreastMorph",
        _option("Run `breastmorph paper` again with a new --out", "Make it again in another folder"),
    ),
    "other-cohort": Words(
        "this folder holds the study of another cohort ({why})",
        _option("Choose another --out; nothing was changed", "Choose another folder; nothing was changed"),
    ),
    "study/no-cohort": Words(
        "there is no such folder",
        _option("Check the path given with --cohort", "Check the path of the cohort"),
    ),
    "study/again": Words(
        _option(
            "Run `breastmorph {command}` again with the same --out: it redoes only this part and what depends on it",
            "Make the study again in the same folder: only this part and what depends on it is redone",
        )
    ),
    "study/own-scans": Words("{n} scans from the folder given with --cohort; their hashes are at the end."),
    # The command that makes a study, as its report prints it.
    "study/demo": Words("breastmorph demo --n {n} --seed {seed} --out {out}"),
    "study/paper": Words("breastmorph paper {cohort} --out {out} --seed {seed} --samples {samples}{more:|}"),
    "study/paper-own": Words("--cohort {folder}"),
    "study/paper-phantom": Words("--phantom {n}"),
    "study/paper-no-printed": Words(" --no-printed-method"),
    "study/paper-unit": Words(" --unit {value}"),
    "study/paper-scale-by": Words(" --scale-by {value}"),
    "study/paper-landmark-order": Words(" --landmark-order {value:|,}"),
    "study/paper-max-faces": Words(" --max-faces {value}"),
}

CATALOGUE: Mapping[str, Words] = _CHECK | _REGISTRATION | _MODEL | _CLINICAL | _AROUND
