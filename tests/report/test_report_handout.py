"""The page to take home: text is text, and it fits on one page."""

import re
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations

import pytest

from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.planning import plan_of
from breastmorph.clinical.predicted_measures import predicted_side
from breastmorph.foundation.language import ENGLISH, language
from breastmorph.report.document import Identity
from breastmorph.report.handout import (
    Handout,
    handout_page,
    layout_of,
    planned_handout,
    save_handout,
    spread,
)
from breastmorph.report.printing import house_style
from breastmorph.report.sheet import printed_figure
from predicted_people import flattened, model, predictor

GERMAN = language("de")


def drawn(handout, language=ENGLISH, paper="A4"):
    """Everything that is written on the page, with the box around each text in shares of the page."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    with house_style():
        figure = printed_figure(handout_page(handout, language), layout_of(language, paper))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = {}
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible():
            box = text.get_window_extent(canvas.get_renderer()).transformed(figure.transFigure.inverted())
            boxes[text.get_text()] = box
    return boxes


@pytest.fixture(scope="module")
def pages(strangers):
    """The measures of somebody without a right breast, and her prediction as a plan."""
    now = predictor("surface").view.frame.to_frame.apply(flattened(strangers[5], "right"))
    found = predictor("surface").predict(now)
    examiner = examiner_of(model())
    own = examiner.shape("P-0042", now, "right")
    there = examiner.shape("P-0042", found.shape, predicted=predicted_side(found))
    plan = plan_of(model(), now, found)
    identity = Identity(own.id, "2026-11-18", model="clinic.h5")
    return Handout(own, identity), planned_handout(model(), plan, own, there, identity)


def test_numbers_are_written_as_the_language_writes_them():
    assert spread(123.4, 5.6, "mm") == "12.3 ± 0.6 cm"
    assert spread(123.4, 5.6, "mm", GERMAN) == "12,3 ± 0,6 cm"
    assert spread(-30.2, float("nan"), "cc", GERMAN, "+") == "\N{MINUS SIGN}30 ml"
    assert spread(float("nan"), 1.0, "mm") == ""


def with_both_sides(handout):
    """The same plan for both sides."""
    side = handout.plan.sides[0]
    plan = replace(handout.plan, sides=(replace(side, side="left"), side))
    cuts = [replace(cut, side=name) for name in ("left", "right") for cut in handout.cuts]
    return replace(handout, plan=plan, cuts=cuts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planned", "sides", "language", "paper"),
    [(False, 1, ENGLISH, "A4"), (True, 1, GERMAN, "Letter"), (True, 2, GERMAN, "A4")],
)
def test_the_page_is_whole_and_its_texts_do_not_touch(pages, planned, sides, language, paper):
    handout = replace(pages[planned], synthetic=planned)
    if sides == 2:
        handout = with_both_sides(handout)
    boxes = drawn(handout, language, paper)
    words = " ".join(boxes).replace("\n", " ")
    for text in ("P-0042", "2026-11-18", "clinic.h5", "\N{PLUS-MINUS SIGN}"):
        assert text in words
    for text in ("From the front", "From her left", "Volume of the breast", "Sternal notch to nipple"):
        assert language.text(text) in words
    if planned:
        side = handout.plan.sides[0]
        assert spread(side.volume, side.deviation, "cc", language, "+") in words  # the number of the plan
        assert language.text("Synthetic model: not for planning") in words
        assert "5 cm" in words
    codes = r"SN-N|NL-NR|volume-|_left|_right|vertex|vertices|registered|landmark|parameter|predicted_|sd\b"
    assert not re.search(codes, words.replace("clinic.h5", ""))
    for text, box in boxes.items():
        assert -0.001 <= box.x0 < box.x1 <= 1.001, text
        assert 0.0 <= box.y0 < box.y1 <= 1.0, text
    for (text, one), (other_text, other) in combinations(boxes.items(), 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert wide < 0.002 or high < 0.004, (text, other_text)


@pytest.mark.slow
def test_the_file_is_one_page_of_vector_text(pages, tmp_path):
    save_handout(pages[1], tmp_path / "a.pdf", "de", "Letter")
    data = (tmp_path / "a.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", data)) == 1
    assert b"/MediaBox [ 0 0 612 792 ]" in data
    assert b"/FontFile2" in data  # real fonts, not drawings of letters
    assert data.count(b"/Subtype /Image") >= 4
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", tmp_path / "a.pdf", "-"], capture_output=True, check=True
        ).stdout.decode()
        assert "Volumen der Brust" in text
        assert "nicht das Ergebnis einer Operation" in text
