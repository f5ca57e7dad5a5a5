"""Figures made of lines and boxes."""

from __future__ import annotations

import csv
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.paper.figures.curves import (
    ModelCurves,
    Series,
    save_clinical,
    save_data_amount,
    save_model_curves,
    save_operated,
    save_registration_boxes,
    save_series,
    side_by_side,
)
from drawn_figures import drawn_figures, require_legible

pytestmark = pytest.mark.usefixtures("without_pdf")

SVG = "{http://www.w3.org/2000/svg}"


def texts(path):
    root = ElementTree.fromstring(path.with_suffix(".svg").read_text())
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def coloured(path):
    """Pixels that are neither black, grey nor white."""
    rgb = np.asarray(Image.open(path.with_suffix(".png")).convert("RGB")).astype(int)
    return np.ptp(rgb, axis=2) > 60


def curves(label, q=9, error=1.0, spread=True):
    counts = np.arange(1, q + 1)
    values = error / counts
    ends = (0.9, 1.1) if spread else ()
    share = Series(label, counts, 1.0 - 0.5**counts, *(end * (1.0 - 0.5**counts) for end in ends))
    errors = [values, values + 2.0]
    return ModelCurves(share, *(Series(label, counts, one, *(end * one for end in ends)) for one in errors))


def test_three_metrics_of_two_models(tmp_path):
    save_model_curves(tmp_path / "new" / "curves", [curves("with masks"), curves("without masks", error=2.0)])
    found = texts(tmp_path / "new" / "curves")
    for word in ("with masks", "without masks", "generalization error (mm)", "specificity error (mm)"):
        assert word in found
    assert found.count("number of components") == 3
    assert "share of the variance (%)" in found
    assert "95 % confidence interval" in found
    assert coloured(tmp_path / "new" / "curves").mean() > 0.001
    save_model_curves(tmp_path / "plain", [curves("model", spread=False)])
    assert not any("confidence" in text for text in texts(tmp_path / "plain"))


def test_a_column_of_a_pdf_and_png_is_85_mm_at_300_dots_per_inch(tmp_path):
    save_operated(tmp_path / "operated", [curves("model").generalization])
    with Image.open(tmp_path / "operated.png") as picture:
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert picture.width / 300 * 25.4 == pytest.approx(85.0, abs=0.2)
    assert (tmp_path / "operated.pdf").read_bytes().startswith(b"%PDF")


def test_numbers_at_the_ends_of_lines_never_touch(tmp_path, monkeypatch):
    seen = drawn_figures(monkeypatch)
    alike = [curves(f"model {k}", 9, error=1.0 + 0.001 * k) for k in range(4)]
    save_model_curves(tmp_path / "alike", alike)
    save_data_amount(tmp_path / "amount", [curves(f"{q} scans", q, error=0.02) for q in (5, 6, 9, 11)])
    save_operated(tmp_path / "low", [replace(one.generalization, values=0.001 * np.ones(9)) for one in alike])
    straight = {name: curves(name).generalization for name in ("SN-NL", "SN-NR", "NL-NR", "average")}
    save_clinical(tmp_path / "clinical", straight, {"SN-NL": straight["SN-NL"]})
    assert len(seen) == 4
    for figure in seen:
        require_legible(figure)


def test_no_line_goes_through_a_number(tmp_path, monkeypatch):
    seen = drawn_figures(monkeypatch)

    def level(label, q, value):
        counts = np.arange(1, q + 1)
        return ModelCurves(*(Series(label, counts, np.full(q, scale * value)) for scale in (0.1, 1.0, 1.0)))

    save_data_amount(
        tmp_path / "amount", [level("5", 5, 8.6), level("9", 9, 8.5), level("20", 20, 8.64), level("8", 8, 9)]
    )
    (figure,) = seen
    figure.draw_without_rendering()
    met = 0
    for panel in figure.axes[1:]:
        assert len(panel.texts) == 4
        for text in panel.texts:
            box = text.get_window_extent()
            for line in (one for one in panel.lines if len(one.get_xydata()) > 1):
                across, up = line.get_transform().transform(line.get_xydata()).T
                beside = np.interp(np.linspace(box.x0, box.x1, 50), across, up, np.nan, np.nan)
                met += int(((beside > box.y0) & (beside < box.y1)).sum())
    assert met == 0


@pytest.mark.slow
def test_the_numbers_behind_lines_can_be_read_back(tmp_path):
    one = curves("model")
    save_series(
        tmp_path / "data", {"compactness": {"model": one.compactness}, "error": {"model": one.specificity}}
    )
    rows = list(csv.DictReader((tmp_path / "data.csv").open()))
    assert len(rows) == 18
    read = [float(row["value"]) for row in rows if row["figure"] == "error"]
    np.testing.assert_allclose(read, one.specificity.values)
    assert all(float(row["low_95"]) < float(row["value"]) < float(row["high_95"]) for row in rows)
    assert {row["unit"] for row in rows} == {"share", "mm"}


@pytest.mark.slow
def test_a_users_settings_do_not_matter(tmp_path):
    save_operated(tmp_path / "plain", [curves("model").generalization])
    with matplotlib.rc_context({"font.size": 20.0, "axes.facecolor": "pink", "lines.marker": "x"}):
        save_operated(tmp_path / "odd", [curves("model").generalization])
    for kind in ("svg", "png"):
        assert (tmp_path / f"plain.{kind}").read_bytes() == (tmp_path / f"odd.{kind}").read_bytes()


@pytest.mark.slow
def test_the_same_values_give_the_same_files(tmp_path):
    for folder in ("first", "second"):
        save_data_amount(tmp_path / folder / "amount", [curves("30", 5), curves("60")])
        save_registration_boxes(tmp_path / folder / "boxes", {"a": np.arange(9.0)}, {"a": np.ones(9)})
    for file in ("amount.svg", "amount.png", "boxes.svg", "boxes.png"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


@pytest.mark.slow
def test_a_gap_in_a_curve_is_a_gap(tmp_path):
    counts = np.arange(1, 101)
    values = np.full(100, 5.0)
    save_operated(tmp_path / "whole", [Series("model", counts, values)])
    values[30:70] = np.nan
    save_operated(tmp_path / "gap", [Series("model", counts, values)])
    assert coloured(tmp_path / "gap").sum() < 0.75 * coloured(tmp_path / "whole").sum()


@pytest.mark.slow
def test_a_value_between_gaps_is_a_dot(tmp_path):
    counts, values = np.arange(5), np.array([np.nan, np.nan, 3.0, np.nan, np.nan])
    save_operated(tmp_path / "dot", [Series("model", counts, values)])
    save_operated(tmp_path / "none", [Series("model", counts, np.full(5, np.nan))])
    assert coloured(tmp_path / "dot").sum() > coloured(tmp_path / "none").sum() + 20
    assert "model (no values)" in texts(tmp_path / "none")


@pytest.mark.slow
@pytest.mark.parametrize("q", [1, 3])
def test_few_components_have_whole_numbers(tmp_path, q):
    save_model_curves(tmp_path / "curves", [curves("model", q)])
    root = ElementTree.fromstring((tmp_path / "curves.svg").read_text())
    ticks = [
        "".join(group.itertext()).strip()
        for group in root.iter(f"{SVG}g")
        if group.get("id", "").startswith("xtick_")
    ]
    assert ticks
    assert all(tick.isdigit() for tick in ticks)
    assert coloured(tmp_path / "curves").any()


@pytest.mark.slow
def test_many_points_stay_a_small_file(tmp_path):
    save_model_curves(tmp_path / "curves", [curves(f"model {k}", 3000) for k in range(4)])
    assert (tmp_path / "curves.svg").stat().st_size < 2_000_000


def test_a_series_of_unequal_lengths_is_refused():
    with pytest.raises(BreastMorphError, match="differ in length"):
        Series("model", np.arange(3), np.zeros(4))


def test_no_models_are_refused(tmp_path):
    with pytest.raises(BreastMorphError, match="nothing to draw"):
        save_model_curves(tmp_path / "curves", [])


def test_clinical_distances_with_their_average(tmp_path):
    counts = np.arange(6)
    levels = {"SN-NL": 2.0, "NL-NR": 4.0, "average": 3.0}
    straight = {name: Series(name, counts, np.full(6, level)) for name, level in levels.items()}
    tape = {name: Series(name, counts[::2], one.values[::2]) for name, one in straight.items()}
    save_clinical(tmp_path / "clinical", straight, tape)
    found = texts(tmp_path / "clinical")
    for word in ("SN-NL", "NL-NR", "average", "SN-NL, along the skin", "absolute difference (mm)"):
        assert word in found


@pytest.mark.slow
def test_boxes_say_how_many_subjects(tmp_path):
    rng = np.random.default_rng(0)
    with_masks = np.append(rng.gamma(5.0, size=40), np.nan)
    groups = {"with masks": with_masks, "without masks": rng.gamma(2.0, size=40)}
    save_registration_boxes(tmp_path / "boxes", groups, {name: one + 8.0 for name, one in groups.items()})
    found = texts(tmp_path / "boxes")
    assert found.count("n = 40") == 4
    assert "mean squared distance (mm²)" in found
    assert "angle distortion (degrees)" in found
    assert coloured(tmp_path / "boxes").mean() > 0.005


def test_groups_that_are_far_apart_have_powers_in_plain_numbers(tmp_path, monkeypatch):
    seen = drawn_figures(monkeypatch)
    near = np.linspace(0.02, 2.0, 30)
    save_registration_boxes(tmp_path / "boxes", {"a": near, "b": 30.0 * near}, {"a": near, "b": 3.0 * near})
    (figure,) = seen
    assert [panel.get_yscale() for panel in figure.axes] == ["log", "linear"]
    assert {"0.1", "1", "10"} <= set(texts(tmp_path / "boxes"))


def test_boxes_without_values_are_refused(tmp_path):
    with pytest.raises(BreastMorphError, match="no subject"):
        save_registration_boxes(tmp_path / "boxes", {"a": np.array([np.nan])}, {"a": np.ones(3)})


def test_points_of_a_box_do_not_hide_each_other():
    values = np.repeat([1.0, 2.0, 7.5], [9, 1, 4])
    places = side_by_side(values, 0.5, 0.2)
    for value in (1.0, 2.0, 7.5):
        own = places[values == value]
        assert len(np.unique(own)) == len(own)
    assert np.abs(places).max() <= 0.2 + 1e-9
