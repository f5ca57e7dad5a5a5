"""Languages: translations by gettext, one catalogue ``locale/<code>/LC_MESSAGES/breastmorph.po`` for each.

English stands in the code. ``scripts/catalogue.py`` collects what is marked there, updates the catalogues and
compiles them; another language is another such file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from gettext import NullTranslations, translation
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

DOMAIN = "breastmorph"
LOCALE = Path(__file__).parents[1] / "locale"
_CODE = re.compile(r"[a-z]{2,3}(_[A-Z]{2})?")


def N_(text: str) -> str:
    """Mark a text for the catalogues that is translated where it is shown."""
    return text


def in_context(context: str, *texts: str) -> frozenset[str]:
    """Mark words for the catalogues that are translated differently in a context."""
    return frozenset(texts)


class Plural(NamedTuple):
    """A sentence for one thing and for several: the value named ``n`` decides."""

    one: str
    many: str


@dataclass(frozen=True)
class Language:
    """A language by its code and its catalogue.

    Attributes
    ----------
    code : str
        As in "de" or "pt_BR".
    catalogue : gettext.NullTranslations
    """

    code: str = "en"
    catalogue: NullTranslations = field(default_factory=NullTranslations, compare=False, repr=False)

    def text(self, english: str, context: str = "") -> str:
        """A text in this language; English where the catalogue does not have it."""
        if not english:  # in a catalogue its heading
            return ""
        return self.catalogue.pgettext(context, english) if context else self.catalogue.gettext(english)

    def template(self, english: str | Plural, n: object = 1) -> str:
        """A template in this language, that for ``n`` things where it has several."""
        if isinstance(english, Plural):
            return self.catalogue.ngettext(
                english.one, english.many, int(n) if isinstance(n, Integral) else 2
            )
        return self.text(english)

    def number(self, written: str) -> str:
        """Numbers within a text written in English, with this language's signs for thousands and decimals."""
        signs = self.text("1,234.5", "number")
        thousands, decimal = signs[1], signs[5]
        return written.translate({ord(","): thousands, ord("."): decimal})


ENGLISH = Language()


def language(code: str) -> Language:
    """A language by its code; English where there is no catalogue for it.

    Parameters
    ----------
    code : str
        As ``en`` or ``de``.

    Returns
    -------
    Language

    Examples
    --------
    >>> bm.language("de").code
    'de'
    """
    if code == ENGLISH.code or not _CODE.fullmatch(code):
        return ENGLISH
    found = translation(DOMAIN, LOCALE, [code], fallback=True)
    return Language(code, found) if type(found) is not NullTranslations else ENGLISH


def languages() -> list[str]:
    """Codes of the languages that there are, English first."""
    found = (path.parts[-3] for path in LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))
    return [ENGLISH.code, *sorted(found)]


in_context("number", "1,234.5")  # how numbers are written: the signs between the digits
in_context("language", "English")  # what a language calls itself
