"""Sentences on models, measures, edits and predictions, the explorer and the study; and the catalogue of all."""

from __future__ import annotations

from collections.abc import Mapping

from breastmorph.foundation.words import (
    CHECK,
    EXPORTED,
    REGISTRATION,
    Words,
    command_apart,
    doors,
    page_apart,
)

# --------------------------------------------------------------------------------------------------------------------
# Surfaces and models
# --------------------------------------------------------------------------------------------------------------------

_LANDMARK_IDS = doors("(--landmark-ids)", "(place them on the Model tab)", "(landmark_ids)")
_NAME_THE_SIDES = doors(
    "If names were exchanged, name the vertices with --landmark-ids; sides are the patient's",
    "If names were exchanged, place them on the Model tab; sides are the patient's",
    "If names were exchanged, name the vertices with landmark_ids; sides are the patient's",
)

_TEMPLATE_NEEDS = "A template needs sternal notch, xiphoid, nipples, lower and lateral poles"
_ANNOTATE = "Annotate sternal notch, xiphoid and nipple, lower pole, lateral pole of at least one side"

_MODEL: dict[str, Words] = {
    "unusable-surface/not-manifold": Words(
        "geodesics need a manifold surface ({why})",
        command_apart(
            "Run `breastmorph check` to see and repair the mesh", "Check the scan, and repair the mesh"
        ),
    ),
    "unusable-surface/pieces": Words(
        "two points lie on pieces of the surface that are not joined",
        command_apart(
            "Run `breastmorph check` to see the pieces, and keep the one with the landmarks",
            "Check the scan, and keep the piece with the landmarks",
        ),
    ),
    "unusable-surface/empty": Words(
        "the surface has no faces or is not finite",
        command_apart("Run `breastmorph check` on it", "Check the scan"),
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
        doors(
            "; landmarks set by hand (--landmarks) give a surer start",
            "; landmarks set by hand give a surer start",
            "; landmarks set by hand give a surer start",
        )
    ),
    "inverted-orientation/found": Words(
        "the surface looked inwards and has been turned: the file is inside out, or mirrored",
        "Set the landmarks by hand: they tell which it is",
    ),
    "inverted-orientation/fitted": Words("the surface was inside out and has been turned"),
    "wrong-unit/size": Words(
        "judged by {by}, the target is {ratio:.3g} times as large as the model",
        doors(
            "Check its unit (--unit): mm are expected",
            f"Check {EXPORTED}",
            "Check its unit: mm are expected",
        ),
    ),
    "missing-landmarks/shared": Words(
        "model and target share only {n} landmarks; a pose needs three",
        doors(
            "The model knows {known:landmark}; --landmark-ids adds more. Or leave the landmarks out",
            "The model knows {known:landmark}; more can be placed on the Model tab. Or leave the landmarks out",
            "The model knows {known:landmark}; landmark_ids adds more. Or leave the landmarks out",
        ),
    ),
    "pose-without-landmarks": Words(
        "begun from landmarks that the program found: a mirrored file would not be noticed"
    ),
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
        {audience: f"Five landmarks tell the unit {how}" for audience, how in _LANDMARK_IDS.items()}
    ),
    "model/no-landmarks": Words(
        {
            audience: "The model has no landmarks: nothing tells that it is a torso, upright and in mm. "
            f"Measures, edits and predictions need them {how}"
            for audience, how in _LANDMARK_IDS.items()
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
        "there is no table to choose subjects by", command_apart("Give it with --table cohort.csv", "Give it")
    ),
    "unit-of-model": Words(
        "the model is {ratio:.3g} times as large as the cohort, so its unit is not mm",
        command_apart(
            "Give it landmarks, which tell its unit: `breastmorph convert MODEL in-mm.h5 --landmark-ids ids.json`",
            "Give it landmarks, which tell its unit",
        ),
    ),
    "unusable-landmarks/model-lacks": Words(
        "the model lacks {names:landmark}",
        {audience: f"Give the vertices of these landmarks {how}" for audience, how in _LANDMARK_IDS.items()},
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
        doors(
            "Complete its landmarks with --landmark-ids, or give a registered mesh (one with its triangles) instead",
            "Place them on the Model tab",
            "Complete its landmarks with landmark_ids, or give a registered mesh (one with its triangles) instead",
        ),
    ),
    "standing": Words("{whole} of {of}"),
    "standing/because": Words("{first}; all in all {whole} of them"),
    "standing/part": Words("more unusual than {percent} %"),
    "standing/all": Words("more unusual than all"),
    "standing/subjects": Words("the model's {n} subjects"),
    "standing/population": Words("the model's population"),
    "standing/mode/more": Words("mode {which} is larger than in {percent} % of {of}"),
    "standing/mode/less": Words("mode {which} is smaller than in {percent} % of {of}"),
    "standing/size/more": Words("the {which} breast is larger than in {percent} % of {of}"),
    "standing/size/less": Words("the {which} breast is smaller than in {percent} % of {of}"),
    "standing/sizes/more": Words("the left breast exceeds the right one by more than in {percent} % of {of}"),
    "standing/sizes/less": Words("the right breast exceeds the left one by more than in {percent} % of {of}"),
    "standing/heights/more": Words(
        "the left nipple is higher against the right one than in {percent} % of {of}"
    ),
    "standing/heights/less": Words(
        "the right nipple is higher against the left one than in {percent} % of {of}"
    ),
    "standing/notch/more": Words(
        "the left nipple is farther from the notch than the right one by more than in {percent} % of {of}"
    ),
    "standing/notch/less": Words(
        "the right nipple is farther from the notch than the left one by more than in {percent} % of {of}"
    ),
    "standing/rest/more": Words("what the leading modes do not explain is more than in {percent} % of {of}"),
    "standing/measure/more": Words("{which:measure} is larger than in {percent} % of {of}"),
    "standing/measure/less": Words("{which:measure} is smaller than in {percent} % of {of}"),
    "privacy/keeps-scores": Words(
        command_apart(
            "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do not release "
            "it; build it again without --keep-scores.",
            "The model keeps the scores of its subjects: every one of their shapes can be read from it. Do not release "
            "it; build it again without them.",
        )
    ),
    "privacy/fewer-components": Words(
        command_apart(
            "With --components {components} it would be {chance:.0f} %.",
            "With {components} components it would be {chance:.0f} %.",
        )
    ),
}

# --------------------------------------------------------------------------------------------------------------------
# Measures, edits and predictions
# --------------------------------------------------------------------------------------------------------------------

_LESS = "Ask for less, or hold less{usual}"
_ANOTHER = "Choose another measure"

_REPLACE = doors(
    "Give --replace to predict it nevertheless, as if it were missing",
    "Set its landmarks (Patient's scan); it can then be predicted as if it were missing",
    "Give replace=True to predict it nevertheless, as if it were missing",
)

_CLINICAL: dict[str, Words] = {
    "other-side-absent": Words(
        "the {absent} side is the one without a breast, not the {side}",
        command_apart("Use --missing {absent}", "Predict the {absent} side"),
    ),
    "breast-there": Words("the {side} breast is there", _REPLACE),
    "breast-there/without-landmarks": Words(
        "the {side} breast is there: it has no landmarks, but its skin shows it", _REPLACE
    ),
    "not-of-missing": Words(
        "{name} tells nothing of the {what}", "State measures of the side that is predicted"
    ),
    "no-mirror-image": Words(
        "both breasts are missing, so there is no mirror image", "Plan with the predicted breasts"
    ),
    "nothing-planned/added": Words("nothing is added on the {side} side", "Take what is removed there"),
    "nothing-planned/removed": Words("nothing is removed on the {side} side", "Take what is added there"),
    "not-planned": Words("nothing was planned for the {side} side", "Ask for {sides}"),
    "planned/predicted": Words(
        "The difference between the skin as it is and what is usual among the model's subjects; not the outcome of an "
        "operation"
    ),
    "planned/mirrored": Words(
        "The difference between the skin as it is and the mirror image of the other breast; not the outcome of an "
        "operation"
    ),
    "planned/edited": Words(
        "The difference between the skin as it is and the likeliest shape with the wished measures; not the outcome "
        "of an operation"
    ),
    "planned/synthetic": Words(
        "Made with a synthetic model, which knows no people: a difference of two shapes, no advice and not for planning"
    ),
    "stated-far": Words("the stated {name} is {deviations:.1f} standard deviations from what was predicted"),
    "earlier-without-breast": Words(
        "the earlier scan has no {side} breast either", "Give a scan from before the operation"
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
    "asked/mm": Words("{name:measure} {value:length}"),
    "asked/cc": Words("{name:measure} {value:.1f} cc"),
    "asked/column": Words("{name} {shift:+g}"),
    "asked/stays": Words(" while {names:measure} stays"),
    "asked/stay": Words(" while {names:measure} stay"),
    "usual": Words(". Usual at this size: {measures}"),
    "usual/mm": Words(page_apart("{name} {mean:.0f} ± {sd:.0f} mm", "{name:measure} {mean:cm} ± {sd:cm} cm")),
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
    "unattainable/bent": Words(
        "{asked} cannot be attained: along the border of what is held the skin would be bent {bend:.1f} times as much "
        "as any two of the model's people differ there",
        _LESS,
    ),
    "unattainable/on-held": Words(
        "{asked} cannot be attained: {name:measure} lies wholly on held skin", _LESS
    ),
    "unattainable/all-held": Words("{asked} cannot be attained: all of the skin is held", _LESS),
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
    "unusual-shape": Words("the edited shape is {level}: {standing}"),
    "edit-folded": Words(
        "{percent:.2f} % of the triangles are folded over; look at the shape before using it"
    ),
    "edit-bent": Words(
        "along the border of what is held ({regions:measure}) the skin is bent {bend:.1f} times as much as any two of "
        "the model's people differ there; look at the border"
    ),
    "unknown-measure": Words("{name!r} is not known here", "{known}"),
    "known-measures": Words("Measures are {names:measure}{absent}{columns}"),
    "known-measures/none": Words(
        doors(
            "Measures are none: the model has too few landmarks (complete them with --landmark-ids){absent}{columns}",
            "Measures are none: the model has too few landmarks (place them on the Model tab){absent}{columns}",
            "Measures are none: the model has too few landmarks (complete them with landmark_ids){absent}{columns}",
        )
    ),
    "known-measures/absent": Words(" (the {side} breast is absent)"),
    "known-measures/columns": Words("; columns of the table are {names}"),
    "asked-twice": Words("{name:measure} is asked for twice", "Keep one value"),
    "impossible-value/mm": Words(
        "{name:measure} would be {value:length}",
        "It is {now:length} now",
    ),
    "impossible-value/cc": Words("{name:measure} would be {value:.1f} cc", "It is {now:.1f} cc now"),
    "cannot-be-held": Words("{name!r} cannot be held", "Regions are {regions}. {known}"),
    "changed-and-held": Words("{name:measure} is both to be changed and to be held", "Choose one of the two"),
    "region-not-held": Words("the {region} cannot be held: {why}", "{why:remedy}"),
    "same-in-all": Words("{name:measure} is the same in all shapes of this model", _ANOTHER),
    "linear-hold": Words(
        "the linear version cannot hold the {region}",
        command_apart("Leave out --linear or that --hold", "Use the exact version, or do not hold it"),
    ),
    "too-few-subjects": Words(
        "{n} subjects are too few to learn {column} from",
        command_apart(
            "Build the model of more subjects with --keep-scores and --table",
            "Build the model of more subjects, keeping their scores and their table",
        ),
    ),
    "part-of-torso": Words(
        "this model is not one of whole torsos",
        command_apart("Use a model built without --part and --asymmetry", "Use a model of whole torsos"),
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
_MAKE_ONE_HERE = command_apart(_MAKE_ONE, "Make one of a synthetic cohort, or of your own scans")

_AROUND: dict[str, Words] = {
    "cannot-listen/taken": Words(
        "cannot listen on {host} port {port} ({why})",
        command_apart(
            "Choose another --port, or leave it out for a free one",
            "Choose another port, or 0 for a free one",
        ),
    ),
    "cannot-listen/host": Words(
        "cannot listen on {host} port {port} ({why})",
        command_apart(
            "Give an address of this computer with --host, or leave it out",
            "Give an address of this computer",
        ),
    ),
    "unreadable/large-session": Words(
        "the session file unpacks to more than {most:,.0f} MB",
        command_apart("Start with a larger --max-upload", "Start the explorer so that it takes larger files"),
    ),
    "session-differs": Words(
        "the shape in the session file is not what its scan and landmarks give (they differ by up to {off:.1f} mm), so "
        "the computed one is shown: the file was changed, or made by another version (saved with {saved}, opened with "
        "{opened})"
    ),
    "patient-not-computed": Words("the patient could not be computed again: {why}. {why:remedy}"),
    "predicted-by-earlier": Words(
        "the breast was predicted by an earlier scan, which a session file does not hold: predict it again"
    ),
    "study/no-folder": Words("there is no such folder", _MAKE_ONE_HERE),
    "study/none": Words("this folder holds no study", _MAKE_ONE_HERE),
    "study/other-version": Words(
        "this study was made by another version of BreastMorph",
        command_apart("Run `breastmorph paper` again with a new --out", "Make it again in another folder"),
    ),
    "other-cohort": Words(
        "this folder holds the study of another cohort ({why})",
        command_apart(
            "Choose another --out; nothing was changed", "Choose another folder; nothing was changed"
        ),
    ),
    "study/no-cohort": Words(
        "there is no such folder",
        command_apart("Check the path given with --cohort", "Check the path of the cohort"),
    ),
    "study/again": Words(
        command_apart(
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

# --------------------------------------------------------------------------------------------------------------------
# Comparing visits
# --------------------------------------------------------------------------------------------------------------------

_ONE_PERSON = "Check that both scans are of the same person"
_COMPARISON: dict[str, Words] = {
    "too-few-visits": Words("there is only one scan", "Give two or more scans of one person"),
    "nothing-repeated": Words(
        "nobody was scanned twice",
        "Put the scans of a person into a folder of her own, or call them NAME_1, NAME_2 and so on",
    ),
    "few-repeated": Words(
        "only {n} people were scanned again; their spread is known poorly", "Scan ten people or more"
    ),
    "no-repeatability": Words(
        "this is not the result of a repeatability study",
        command_apart(
            "Make one with `breastmorph compare --repeat FOLDER` and give its repeatability.json",
            "Make one with compare_repeated and give its repeatability.json",
        ),
    ),
    "other-size": Words(
        "the chest is {percent:+.0f} % larger than at the first visit: another unit, or another person",
        command_apart(
            "Check the unit of both files (--unit, --scale-by), and that they are of the same person",
            "Check the unit of both files, and that they are of the same person",
        ),
    ),
    "odd-size": Words(
        "the chest of {visit} is {percent:+.1f} % larger than at the first visit: perhaps another scale or person",
        _ONE_PERSON,
    ),
    "odd-person": Words(
        "the chest of {visit} lies {misfit:.1f} mm off that of the first visit: perhaps another person",
        _ONE_PERSON,
    ),
    "odd-sides": Words(
        "{visit} looks like the mirror image of the first visit: sides exchanged, or a mirrored file",
        "Check left and right of both scans",
    ),
    "side-not-compared": Words(
        "the {side} breast is absent at one visit at least; its volume and the symmetry are not compared"
    ),
}

CATALOGUE: Mapping[str, Words] = CHECK | REGISTRATION | _MODEL | _CLINICAL | _COMPARISON | _AROUND
