"""What the data and models that come with BreastMorph are, and what they are not: one card each.

``docs/cards.md`` is :func:`as_markdown`; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from breastmorph.foundation.language import N_


@dataclass(frozen=True)
class Card:
    """One card, in plain sentences.

    Attributes
    ----------
    name : str
    short : str
        One sentence, for a page that has no place for more.
    what : str
        It is.
    made : str
        How, and how to make it again.
    meant_for, not_for : str
    people : str
        Whose data are in it.
    limits : tuple of str
        What is known not to be right.
    """

    name: str
    short: str
    what: str
    made: str
    meant_for: str
    not_for: str
    people: str
    limits: tuple[str, ...]

    def rows(self) -> list[tuple[str, str]]:
        """Titles and texts, for tables."""
        titles = {"what": "what it is", "made": "how it was made", "meant_for": "meant for", "not_for": "not for",
                  "people": "whose data", "limits": "known limits"}  # fmt: skip
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in titles:
                found.append((titles[field.name], " ".join(value) if isinstance(value, tuple) else value))
        return found


PHANTOM = Card(
    name="Dataset card: the phantom cohort",
    short="All torsos are synthetic: they say whether a method is right, not how it does in a clinic.",
    what="Synthetic adult female torsos with known truth: scans of three views with holes and noise, landmarks with "
    "the error of a careful annotator, a table of age, body mass index, volumes, ptosis and operations, and where "
    "every point of the skin belongs.",
    made="Drawn from a parametric body with ranges like those of table 1 of Weiherer et al. and scanned by a simulated "
    "scanner: `breastmorph phantom`, 110 subjects of seed 1. The same seed gives the same bytes.",
    meant_for="Testing registrations and models against truth, teaching, and trying the program without data of "
    "patients.",
    not_for="Conclusions about women, norms of breast size or shape, training of anything that meets patients, and "
    "claims about accuracy in a clinic.",
    people="Nobody's. No scan of a person was used.",
    limits=(
        "Shapes follow a few parameters, so they are smoother and more alike than people's.",
        "Skin has no pores or veins, soft tissue no weight of its own, and arms are stumps.",
        "Statistics beyond the paper's table 1 are ours; body types outside it and ethnic origin are not represented.",
        "Operations are simulated by shape alone.",
    ),
)

DEMO_MODEL = Card(
    name="Model card: the demo model",
    short=N_("This model is made of synthetic torsos, for trying things out only: not for planning."),
    what="A statistical shape model of 48 registered phantom scans on the default template, with the scores of its "
    "subjects; it opens where no model is given.",
    made="Registered and built like any other scans: `python scripts/make_demo_model.py` (phantoms of seed 2024).",
    meant_for="Learning the commands and the explorer, and tests.",
    not_for="Planning, diagnosis, patient information, or as a reference of what is normal.",
    people="Nobody's. Its subjects are synthetic.",
    limits=(
        "It varies as the phantom does, and so explains real scans only roughly.",
        "48 subjects are few: measures it calls unusual may be usual among people.",
        "It carries the small errors of its registrations, on purpose.",
    ),
)

CARDS = (PHANTOM, DEMO_MODEL)


def as_markdown() -> str:
    """The page of the documentation."""
    lines = ["# Dataset and model cards", "", "What comes with BreastMorph, and what it is not.", ""]
    for card in CARDS:
        lines += [f"## {card.name}", "", f"{card.short}", ""]
        lines += [f"- **{title[0].upper()}{title[1:]}.** {text}" for title, text in card.rows()]
        lines.append("")
    return "\n".join(lines)
