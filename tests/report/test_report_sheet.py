"""Printed sheets: what a page describes is on the paper, inside it, and the same bytes twice."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text as Words

from breastmorph.report.document import TO_FILL_IN, Chart, Identity, Page, Panels, Table, Text
from breastmorph.report.page.writing import block_html, page_html
from breastmorph.report.printing import house_style
from breastmorph.report.render import (
    SIGNED,
    SKIN,
    Camera,
    ColourScale,
    View,
    cameras_around,
    colormap,
    with_sides_and_scale,
)
from breastmorph.report.sheet import PAPERS, Layout, print_page, printed_figure

GREY = np.full((30, 40, 3), 128, np.uint8)


def sheet_of(*blocks, **values) -> Page:
    return Page("$x$ of $y$", blocks, identity=Identity("P-7", model="m.h5"), **values)


def texts(page: Page, layout: Layout | None = None) -> list[str]:
    """Every text of a printed page, with its place inside the paper checked."""
    with house_style():
        figure = printed_figure(page, layout or Layout())
        figure.draw_without_rendering()
    found = [text for text in figure.findobj(Words) if text.get_visible() and text.get_text().strip()]
    for text in found:
        box = text.get_window_extent().transformed(figure.transFigure.inverted())
        if text.axes is None:
            assert -0.001 < box.x0 < box.x1 < 1.001, text.get_text()
            assert 0.0 < box.y0 < box.y1 < 1.0, text.get_text()
    return [text.get_text() for text in found]


def test_a_sheet_says_whose_it_is_what_it_was_made_with_and_its_warning():
    words = "\n".join(texts(sheet_of(Text(("note",)), notice="not for planning")))
    for text in ("$x$ of $y$", "P-7", "m.h5", "not for planning", "note", TO_FILL_IN):
        assert text in words


def test_labels_and_numbers_are_those_of_the_layouts_language():
    layout = Layout(number=lambda text: f"<{text}>", translated=lambda label: f"_{label}_")
    row = Panels("", (GREY,), scale=ColourScale.signed(2.0, "mm"))
    words = texts(sheet_of(row), layout)
    assert {"<-2>", "<+2>"} <= set(words)
    assert any("_Identifier_: P-7" in text for text in words)


def test_the_identity_of_a_page_on_the_screen_is_the_same():
    page = page_html(sheet_of())
    assert all(line in page for line in Identity("P-7", model="m.h5").lines())


def test_more_rows_than_the_paper_has_place_for_are_counted():
    rows = tuple((f"row {k}", f"{k} cm") for k in range(40))
    words = texts(sheet_of(Panels("pictures", (GREY,)), Table("", ("name", "value"), rows)))
    assert "row 30" in words
    assert "row 31" not in words
    assert any(text.startswith("9 more") for text in words)


@pytest.mark.parametrize("paper", PAPERS.values())
def test_pictures_share_the_height_and_keep_their_shape(paper):
    rows = [Panels(f"row {k}", (GREY, GREY, GREY)) for k in range(3)]
    with house_style():
        figure = printed_figure(sheet_of(*rows), Layout(paper))
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 9
    sizes = np.array([[box.width * paper[0], box.height * paper[1]] for box in boxes])
    np.testing.assert_allclose(sizes, np.broadcast_to(sizes[0], sizes.shape))
    assert sizes[0, 0] / sizes[0, 1] == pytest.approx(40 / 30)
    assert min(box.y0 for box in boxes) > 0.0
    assert min(box.x0 for box in boxes) > 0.0
    assert max(box.x1 for box in boxes) < 1.0


def test_a_colour_bar_stands_behind_the_last_picture_and_before_charts():
    drawn = []
    row = Panels("", (GREY, Chart(drawn.append)), ("picture", "chart"), ColourScale(0.0, 4.0, SIGNED, "mm"))
    with house_style():
        figure = printed_figure(sheet_of(row))
    picture, bar, chart = (axes.get_position() for axes in figure.axes)
    assert drawn == [figure.axes[2]]
    assert picture.x1 <= bar.x0 < bar.x1 <= chart.x0


def test_the_same_page_gives_the_same_files(tmp_path):
    page = sheet_of(Panels("row", (GREY,)), Table("", ("name", "value"), (("a", "1"),)))
    layout = Layout((4.0, 4.0), dpi=50)
    for folder in ("one", "two"):
        files = print_page(page, tmp_path / folder / "sheet", ("pdf", "png", "svg"), layout)
        assert [file.name for file in files] == ["sheet.pdf", "sheet.png", "sheet.svg"]
    for file in files:
        assert file.read_bytes() == (tmp_path / "one" / file.name).read_bytes()


def test_a_row_of_panels_is_a_figure_on_a_page():
    assert "data:image/png;base64," in block_html(Panels("A row", (GREY,)), "1")


def test_colours_mean_values_and_skin_means_none():
    scale = ColourScale.signed(3.0, "mm")
    colors = scale.of(np.array([-3.0, 0.0, np.nan, 3.0]), np.array([True, True, True, False]))
    np.testing.assert_allclose(colors[:2], colormap(np.array([-3.0, 0.0]), -3.0, 3.0, SIGNED))
    np.testing.assert_allclose(colors[2:], [SKIN, SKIN])


def test_views_of_one_body_share_their_scale_and_hold_it():
    points = np.random.default_rng(0).normal(size=(200, 3)) * [80.0, 150.0, 60.0]
    cameras = cameras_around(points, [View(), View(yaw=45.0), View(yaw=90.0)], (60, 50))
    assert len({camera.pixel for camera in cameras}) == 1
    for camera in cameras:
        at = camera.project(points)[:, :2]
        assert (at >= 0.0).all()
        assert (at <= [60.0, 50.0]).all()


@pytest.mark.parametrize(("yaw", "letters"), [(0.0, 2), (45.0, 2), (90.0, 0)])
def test_sides_are_marked_but_from_the_side(yaw, letters):
    white = np.full((100, 120, 3), 255, np.uint8)
    camera = Camera.around(np.array([[-50.0] * 3, [50.0] * 3]), View(yaw=yaw), (120, 100))
    dark = with_sides_and_scale(white, camera)[:30].min(axis=2) < 128
    halves = [dark[:, :60].any(), dark[:, 60:].any()]
    assert sum(halves) == letters
