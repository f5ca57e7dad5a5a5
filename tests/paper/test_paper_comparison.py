"""Two studies side by side: who is compared with whom, and what counts as different."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli.report import command
from breastmorph.paper.comparison import Quantity, _welch
from breastmorph.paper.significance import drawn_shares, mean_band, paired, resamples
from breastmorph.paper.statements import NO, SMALL, YES, verdict_of
from breastmorph.report.render import AMOUNT, SIGNED, colormap
from breastmorph.viewer import asset

IDS = tuple(f"{k:03d}" for k in range(20))


def test_the_same_subjects_are_compared_in_pairs_whatever_their_order():
    rng = np.random.default_rng(0)
    own = rng.normal(10.0, 3.0, 20)
    turned = rng.permutation(20)
    one = Quantity("error", "mm", (IDS, tuple(IDS[k] for k in turned)), (own, own[turned] + 0.6))
    found = one.compared(set(IDS))
    assert found.difference == pytest.approx(-0.6)
    assert found.matters()  # 6 % of 10 mm, in everybody
    assert not one.compared(set()).matters()  # lost among people who differ by 3 mm


def test_a_clear_difference_that_is_small_is_no_win():
    rng = np.random.default_rng(1)
    error = rng.normal(8.51, 0.5, 110)
    near, far = (paired(error - step + rng.normal(0.0, 0.01, 110), error) for step in (0.05, 0.6))
    assert near.clear()
    assert verdict_of(near, -1) == SMALL
    assert verdict_of(far, -1) == YES
    assert verdict_of(far, 1) == NO
    assert "%" in far.effect_text("mm")


def test_bands_of_means_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(2)
    ends = [mean_band(rng.gamma(4.0, 1.0, (60, 1)), seed) for seed in range(120)]
    held = np.mean([low[0] <= 4.0 <= high[0] for low, high in ends])
    assert 0.88 <= held <= 0.99


def test_unknown_values_are_left_out_of_a_band():
    values = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 5.0]])
    low, high = mean_band(values)
    assert low[0] < 2.0 < high[0]
    assert np.isnan(low[1])


def test_the_band_of_compactness_holds_the_share_and_narrows_with_subjects():
    rng = np.random.default_rng(3)
    widths = []
    for k in (12, 80):
        shapes = rng.normal(size=(k, 40)) * np.linspace(5.0, 0.1, 40)
        shapes -= shapes.mean(axis=0)
        values = np.sort(np.linalg.eigvalsh(shapes @ shapes.T))[::-1]
        share = np.cumsum(values)[: k - 1] / values.sum()
        _, low, high = drawn_shares(shapes @ shapes.T, resamples(k, 200, 0))
        assert (low - 1e-9 <= share).all()
        assert (share <= high + 1e-9).all()
        widths.append((high - low)[2])
    assert widths[1] < 0.7 * widths[0]


def test_cohorts_are_compared_by_their_means_as_by_their_subjects():
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(4)
    both = rng.normal(480.0, 240.0, 110), rng.normal(700.0, 250.0, 40)
    kept = [{"mean": one.mean(), "sd": one.std(ddof=1), "n": len(one)} for one in both]
    found = _welch(*kept)
    assert found.p == pytest.approx(ttest_ind(*both, equal_var=False).pvalue)
    assert found.low < both[0].mean() - both[1].mean() < found.high < 0.0
    assert found.verdict == "differ"
    assert "cc" in found.effect_text("cc")
    assert _welch(kept[0], kept[0]).verdict == "no difference shown"
    alone = _welch({"mean": 40.0, "sd": 0.0, "n": 1}, kept[0])
    assert np.isnan(alone.p)


def test_a_comparison_needs_two_studies(tmp_path):
    for arguments in (["--compare", str(tmp_path)], [str(tmp_path), str(tmp_path)]):
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 2
        assert "two studies with --compare" in done.output


@pytest.mark.parametrize(("name", "ours"), [("light", AMOUNT), ("diverging", SIGNED)])
def test_pages_and_pictures_share_their_colours(name, ours):
    text = asset("colours.js")
    start = text.index(f'{name}: "') + len(name) + 3
    digits = text[start : text.index('"', start)]
    table = np.array([int(digits[k : k + 2], 16) for k in range(0, len(digits), 2)]).reshape(-1, 3)
    wanted = 255.0 * colormap(np.linspace(0.0, 1.0, len(table)), 0.0, 1.0, ours)
    np.testing.assert_allclose(table, wanted, atol=2.0)
