"""Measures, landmarks and sides in words, as pages and documents name them, in English and in other languages."""

from __future__ import annotations

from breastmorph.foundation.language import ENGLISH, N_, Language, in_context

MEASURES = {
    "SN-NL": N_("Sternal notch to left nipple"),
    "SN-NR": N_("Sternal notch to right nipple"),
    "NL-NR": N_("Nipple to nipple"),
    "SN-XI": N_("Sternal notch to xiphoid"),
    "NL-LPL": N_("Left nipple to lower pole"),
    "NR-LPR": N_("Right nipple to lower pole"),
    "NL-IMFL": N_("Left nipple to fold"),
    "NR-IMFR": N_("Right nipple to fold"),
    "NL-M": N_("Left nipple to midline"),
    "NR-M": N_("Right nipple to midline"),
    "base-width-left": N_("Base width, left"),
    "base-width-right": N_("Base width, right"),
    "half-chest-width-left": N_("Half-chest width, left"),
    "half-chest-width-right": N_("Half-chest width, right"),
    "intermammary": N_("Between the breasts"),
    "fold-height-left": N_("Sternal notch down to the left fold"),
    "fold-height-right": N_("Sternal notch down to the right fold"),
    "nipple-above-fold-left": N_("Left nipple above the fold"),
    "nipple-above-fold-right": N_("Right nipple above the fold"),
    "nipple-above-lower-pole-left": N_("Left nipple above the lower pole"),
    "nipple-above-lower-pole-right": N_("Right nipple above the lower pole"),
    "surface-left": N_("Skin of the left breast"),
    "surface-right": N_("Skin of the right breast"),
    "footprint-left": N_("Footprint of the left breast"),
    "footprint-right": N_("Footprint of the right breast"),
    "under-bust-seen": N_("Under-bust girth, seen part"),
    "projection-left": N_("Projection, left"),
    "projection-right": N_("Projection, right"),
    "volume-left": N_("Left breast volume"),
    "volume-right": N_("Right breast volume"),
    "volume-inner-border-left": N_("Left volume, inner border"),
    "volume-inner-border-right": N_("Right volume, inner border"),
    "volume-flat-wall-left": N_("Left volume, flat wall"),
    "volume-flat-wall-right": N_("Right volume, flat wall"),
    "volume": N_("Breast volume"),
    "mirror deviation": N_("Mirror deviation"),
    "difference": N_("Between chest and prediction"),
}
PAIRS_IN_WORDS = {
    "SN-N": N_("Sternal notch to nipple"),
    "N-LP": N_("Nipple to lower pole"),
    "N-IMF": N_("Nipple to fold"),
    "N-M": N_("Nipple to midline"),
    "base-width": N_("Base width"),
    "half-chest-width": N_("Half-chest width"),
    "projection": N_("Projection"),
    "volume": N_("Breast volume"),
    "volume-inner-border": N_("Volume, inner border"),
    "volume-flat-wall": N_("Volume, flat wall"),
    "surface": N_("Skin of the breast"),
    "footprint": N_("Footprint of the breast"),
    "fold-height": N_("Sternal notch down to the fold"),
    "nipple-above-fold": N_("Nipple above the fold"),
    "nipple-above-lower-pole": N_("Nipple above the lower pole"),
}
LANDMARKS = {
    "sternal_notch": N_("sternal notch"),
    "xiphoid": N_("xiphoid"),
    "nipple_left": N_("left nipple"),
    "nipple_right": N_("right nipple"),
    "lower_pole_left": N_("left lower pole"),
    "lower_pole_right": N_("right lower pole"),
    "lateral_pole_left": N_("left lateral pole"),
    "lateral_pole_right": N_("right lateral pole"),
    "navel": N_("navel"),
    "coracoid_left": N_("left coracoid"),
    "coracoid_right": N_("right coracoid"),
    "imf_left": N_("fold under the left breast"),
    "imf_right": N_("fold under the right breast"),
    "medial_border_left": N_("inner border of the left breast"),
    "medial_border_right": N_("inner border of the right breast"),
}
SIDES_IN_WORDS = in_context("side", "left", "right", "both")  # adjectives of a breast
WORDS = in_context(  # words of the program that stand in sentences
    "word", "left", "right", "straight", "tape", "usual", "unusual", "implausible",
    "thorax", "left breast", "right breast",
)  # fmt: skip


def measure_in_words(name: str, language: Language = ENGLISH) -> str:
    """A measure's name, which may say its kind: ``SN-NL tape`` is "Sternal notch to left nipple, tape"."""
    if name in MEASURES:
        return language.text(MEASURES[name])
    if name in WORDS:  # a region that is fixed
        return language.text(name, "word")
    code, _, kind = name.partition(" ")
    words = language.text(MEASURES[code]) if code in MEASURES else code
    return f"{words}, {word_in_words(kind, language)}" if kind else words


def pair_in_words(name: str, language: Language = ENGLISH) -> str:
    """The name of a measure that both sides have: ``SN-N`` is "Sternal notch to nipple"."""
    return language.text(PAIRS_IN_WORDS[name]) if name in PAIRS_IN_WORDS else name


def landmark_in_words(name: str, language: Language = ENGLISH) -> str:
    """``lower_pole_left`` is "left lower pole"."""
    return language.text(LANDMARKS[name]) if name in LANDMARKS else name


def side_in_words(name: str, language: Language = ENGLISH) -> str:
    """A side as the adjective of a breast."""
    return language.text(name, "side") if name in SIDES_IN_WORDS else name


def word_in_words(name: str, language: Language = ENGLISH) -> str:
    """A word of the program that stands in a sentence."""
    return language.text(name, "word") if name in WORDS else name
