"""Figures as they are drawn: their texts by the room they take."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text

from breastmorph.report import printing

SMALLEST = 7.0  # points
COLUMNS = (85.0, 175.0)  # mm
AS_PRINTED = printing.figure_bytes


def quickly_drawn(figure: Figure, kind: str, dpi: int = 60) -> bytes:
    """In place of ``printing.figure_bytes``: the drawing as it is, a small picture and no PDF."""
    return b"no PDF in tests" if kind == "pdf" else AS_PRINTED(figure, kind, min(dpi, 60))


def drawn_figures(monkeypatch) -> list[Figure]:
    """The figures that are saved from now on."""
    seen: list[Figure] = []
    save = printing.save_figure

    def kept(figure, *others, **more):
        seen.append(figure)
        return save(figure, *others, **more)

    monkeypatch.setattr(printing, "save_figure", kept)
    return seen


def require_legible(figure: Figure) -> None:
    """No two texts touch, none is small, none is cut off, and the figure fits a column."""
    figure.draw_without_rendering()
    scale = figure.dpi / 72.0
    hidden = {
        label
        for axis in figure.findobj(Axis)
        for tick in {*axis.get_major_ticks(), *axis.get_minor_ticks()} - set(axis._update_ticks())
        for label in (tick.label1, tick.label2)
    }
    for axes in figure.axes:
        if not axes.axison:  # pictures: their pixels are not counted
            hidden |= set(axes.xaxis.findobj(Text)) | set(axes.yaxis.findobj(Text))
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    assert texts
    assert {t.get_text() for t in texts if t.get_fontsize() < SMALLEST} == set()
    boxes = {t: t.get_window_extent() for t in texts if all(a.get_visible() for a in [t.axes] if a)}
    whole = figure.bbox.padded(2.0 * scale)
    for text, box in boxes.items():
        assert min(box.x0 - whole.x0, whole.x1 - box.x1) >= 0.0, text.get_text()
        assert min(box.y0 - whole.y0, whole.y1 - box.y1) >= 0.0, text.get_text()
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across <= 0.5 * scale or up <= 1.5 * scale, (one.get_text(), other.get_text())
    assert figure.get_size_inches()[0] * 25.4 <= COLUMNS[1] + 0.1
