"""How sentences are kept that people are told, and those on scans and their registration.

Findings and errors carry a name and values; every sentence that tells a finding, or whose words depend on who reads
it, stands here or in :mod:`breastmorph.foundation.words_of_models`: the two files that a translation replaces.
Whoever types commands knows options, whoever uses the explorer's page knows its controls, and whoever writes Python
knows parameters, so a sentence is one for all doors, or one for each. How values are written in them is told by
:mod:`breastmorph.foundation.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Audience = Literal["command", "page", "python"]
AUDIENCES: tuple[Audience, ...] = ("command", "page", "python")
ByAudience = Mapping[Audience, str]
Text = str | ByAudience


class Words(NamedTuple):
    """What is the matter, and what can be done about it; neither ends with a full stop."""

    cause: Text
    remedy: Text = ""


def doors(command: str, page: str, python: str) -> ByAudience:
    """For what everybody is told in other words."""
    return {"command": command, "page": page, "python": python}


def page_apart(others: str, page: str) -> ByAudience:
    """For what the page says without the terms of the method."""
    return doors(others, page, others)


def command_apart(command: str, others: str) -> ByAudience:
    """For what a command's option mends, and everybody else in another way."""
    return doors(command, others, others)


# --------------------------------------------------------------------------------------------------------------------
# The check of a scan
# --------------------------------------------------------------------------------------------------------------------

EXPORTED = "the unit in which the file was exported"
_SCALED_BEFORE = "scale it to millimetres by a distance measured on the patient before it is opened here"
_MEASURE_IT = "measure one distance between two landmarks on the patient and give it"
_SCALE_BY = doors(
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

CHECK: dict[str, Words] = {
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
    "landmarks-found": Words("found by the program: {names:landmark}{but_found}"),
    "landmarks-doubtful": Words(
        "found, but doubtful: {names:landmark}",
        "Look at them on the scan, and set them by hand where they are wrong",
    ),
    "landmark-cut-off": Words(
        "{name:landmark} not found: the scan ends where it should lie",
        "Set it by hand if it can be seen",
    ),
    "landmark-improbable": Words(
        "{name:landmark} lies {distance:.0f} mm from where the program finds it ({place})",
        "Look at it on the scan and set it again; as it is, registration trusts it less",
    ),
    "landmarks-exchanged": Words(
        "{first:landmark} and {second:landmark} seem to be exchanged",
        "Exchange their names, or set both again",
    ),
    "landmarks-no-surface": Words(
        "no landmarks can be found: the points are too few, or too far apart, to show the skin",
        "Give some thousand points of the torso, or a surface (triangles)",
    ),
    "landmarks-unknown-unit": Words(
        "no landmarks can be found: the scan measures {extent:.4g} in the file's unit, which is no adult torso in mm, "
        "cm or m",
        "Say the unit, or cut the scan to the torso; where the scale of the file is not known, {scale_by}",
    ),
    "landmarks-wrong-unit": Words(
        "no landmarks can be found: read in {unit} the scan measures {extent:.4g} mm, which is no adult torso",
        doors(
            "Leave the unit to --unit auto, or give the right one",
            f"Check {EXPORTED}",
            'Leave the unit of a file to "auto"; give points and surfaces in mm',
        ),
    ),
    "not-a-torso": Words(
        "no landmarks can be found: this does not look like the front of an adult torso",
        "Check that it is the right file and shows the bare front from neck to waist; or set the landmarks by hand",
    ),
    "torso-cut-off": Words(
        "no landmarks can be found: the scan ends before {names:landmark}",
        "Scan the bare front from neck to waist, both sides; or set by hand what can be seen",
    ),
    "several-bodies": Words(
        "no landmarks can be found: {share:.0%} of the surface belongs to something else than the torso",
        "Keep one person alone in the scan",
    ),
    "no-breast": Words(
        "no landmarks can be found: neither side shows a breast", "Set the landmarks by hand if that is wrong"
    ),
    "ambiguous-landmarks": Words("several landmark files fit this scan: {names}", "Keep one"),
    "unusable-landmarks/bare-list": Words(
        "the file is a bare list of coordinates without names",
        doors(
            "Give the order of the names (--landmark-order), or write lines of name,x,y,z",
            "Write lines of name,x,y,z",
            "Give the order of the names, or write lines of name,x,y,z",
        ),
    ),
    "unusable-landmarks/found": Words(
        "what the file says of found landmarks cannot be used ({key})",
        "Write the file again, or remove that entry",
    ),
    "too-large": Words(
        "too large: {faces:,} faces (at most {most:,})",
        doors(
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
        doors(
            "Check that it is a torso, or give the unit with --unit; where the scale of the file is not known, set two "
            "landmarks, {scale_by}",
            f"Check that it is a torso, and {EXPORTED}; where the scale of the file is not known, {{scale_by}}",
            "Check that it is a torso, or give its unit; where the scale of the file is not known, set two landmarks, "
            "{scale_by}",
        ),
    ),
    "wrong-unit": Words(
        "read in {unit}, {what} measures {length:.4g} mm (an adult's {least:.0f}-{most:.0f})",
        doors(
            "Leave the unit to --unit auto, or check these two landmarks",
            "Check these two landmarks",
            'Leave the unit to "auto", or check these two landmarks',
        ),
    ),
    "implausible-anatomy": Words(
        "not an adult torso: {problems:|; }",
        doors(
            "Check the unit (--unit), that each name sits on the right point, and for stray points far off",
            f"Check {EXPORTED}, that each name sits on the right point, and for stray points far off",
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

_LOOK_AGAIN = command_apart(
    "Try --retry-failed; if it fails again, look at the scan",
    "Try again; if it fails again, look at the scan",
)

REGISTRATION: dict[str, Words] = {
    "landmark-moved": Words("landmark {name:landmark} lies {distance:.0f} mm off the surface; moved onto it"),
    "pole-above-nipple": Words(
        "landmark {pole:landmark} lies above {nipple:landmark}, yet it is the lowest point of the breast; are the two "
        "exchanged?"
    ),
    "landmarks-estimated": Words(
        "landmarks not set: {names:landmark}; estimated with the template, for the mask and the start only"
    ),
    "side-mirrored": Words("the {side} breast is absent: that side follows the skin of the scan only"),
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
        doors(
            "Look at the scan, or raise --time-limit",
            "Look at the scan; it may be too large",
            "Look at the scan, or raise the time limit",
        ),
    ),
    "memory-limit": Words(
        "{why}",
        doors(
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
        doors(
            "Wait for it to end, or choose another --out",
            "Wait for it to end",
            "Wait for it to end, or choose another folder",
        ),
    ),
    "unwritable/folder": Words(
        "the folder cannot be written to ({why})",
        doors(
            "Check its permissions and free space, or choose another --out",
            "Check its permissions and free space",
            "Check its permissions and free space, or choose another folder",
        ),
    ),
    "unwritable/stopped": Words(
        "{what}",
        command_apart(
            "{what:remedy}, then run the same command again: what is done is kept",
            "{what:remedy}, then try again: what is done is kept",
        ),
    ),
    "other-template": Words(
        "this folder holds results of another template (of {id})",
        doors(
            "Choose another --out: one folder, one template",
            "Move the old results away: they were made for another model",
            "Choose another folder: one folder, one template",
        ),
    ),
    "not-registered": Words(
        "this is no folder of registered scans",
        command_apart(
            "Give the --out folder of `breastmorph register`; for meshes made elsewhere, also their landmarks",
            "Give the folder into which scans were registered; for meshes made elsewhere, also their landmarks",
        ),
    ),
    "unreadable/record": Words(
        "this record cannot be read ({why})",
        command_apart(
            "Run `breastmorph register` again, or move it away", "Register the scan again, or move it away"
        ),
    ),
    "missing/file": Words("the file is missing", "{again}"),
    "unreadable/other-content": Words("its content is not what the record says", "{again}"),
    "unreadable/other-learnt": Words("it was told something else than learnt.npz holds", "{again}"),
    "unreadable/learnt": Words(
        "what the cohort's first pass taught is damaged, so nobody can be told the same again",
        command_apart("Learn again with --learn --force", "Delete it and register again with learn=True"),
    ),
    "unreadable/no-record": Words("the record cannot be read", "{again}"),
    "unreadable/changed-record": Words("the record was changed", "{again}"),
    "register-again": Words("Register this scan again"),
    "not-among-inputs": Words(
        "its scan is not among the inputs", command_apart("Check --scans", "Check the folder of scans")
    ),
    "subject-not-made": Words(
        "subject {index} could not be made: {why}",
        command_apart("Try again with fewer --jobs", "Try again with fewer processes"),
    ),
    "unlike-others": Words(
        command_apart(
            "unlike all others: {ids}; look at the registration, or leave out with --exclude",
            "unlike all others: {ids}; look at the registration, or leave out",
        )
    ),
    "copies": Words(
        "the same shape in {ids}: leave it in once, or the model counts this person {times} times"
    ),
    "mirrored": Words("mirrored: {ids}; check the sides of the landmarks and register again"),
}
