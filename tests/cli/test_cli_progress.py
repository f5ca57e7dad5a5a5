"""Live progress: what a log says and how often, what a terminal shows, and that standard output stays clean."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from breastmorph.batch.registered_folder import Outcome
from breastmorph.cli.live_progress import LiveProgress


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def outcome(k: int, failed: bool = False, **metrics: float | None) -> Outcome:
    if failed:
        return Outcome(f"s{k}", "failed", {}, f"scans/s{k}.ply: empty file")
    return Outcome(f"s{k}", "registered", {"metrics": metrics})


def log_of(n: int, seconds: float, failed: set[int] = frozenset(), unchanged: int = 0) -> list[str]:
    """Lines of a run of ``n`` scans, each taking so long."""
    clock, text = Clock(), io.StringIO()
    with LiveProgress("Registering", Console(file=text, width=200), clock) as progress:
        progress.start(n, unchanged)
        for k in range(n):
            clock.now += seconds
            progress.done(outcome(k, k in failed, distance_inside=0.01 * (k + 1)))
    return text.getvalue().splitlines()


def test_a_short_run_has_a_first_and_a_last_line():
    assert log_of(10, 1.0, unchanged=3) == [
        "Registering 10 scans (3 already done)",
        "Registering: 10 of 10 scans, 0 failed, in 10 s; worst s9: 0.1 mm from the breast",
    ]


_MANY = pytest.param(100000, 2.0, marks=pytest.mark.slow)


@pytest.mark.parametrize(("n", "seconds"), [(100, 1.0), (100, 60.0), (20000, 0.5), _MANY])
def test_a_log_is_neither_flooded_nor_silent(n, seconds):
    lines = log_of(n, seconds)
    assert 3 <= len(lines) <= 2 + max(20, n * seconds / 300)
    assert len(lines) - 2 <= n * seconds / 15
    assert all(f"/{n}, " in line for line in lines[1:-1])


def test_speed_and_time_left_are_right():
    lines = log_of(100, 3.0)
    assert lines[1].startswith("5/100, 20/min, ")
    assert "20/min" in lines[-2]
    done = int(lines[-2].split("/")[0])
    assert f"{3 * (100 - done)} s left" in lines[-2]


def test_failures_are_named_but_do_not_flood():
    lines = log_of(50, 0.1, failed=set(range(40)))
    named = [line for line in lines if line.startswith("failed ")]
    assert named[0] == "failed s0: scans/s0.ply: empty file"
    assert len(named) == 10
    assert "further failures are in summary.csv" in lines
    assert "50 of 50 scans, 40 failed" in lines[-1]


def test_nothing_to_do_is_said_and_nothing_else():
    assert log_of(0, 1.0, unchanged=7) == ["Registering: nothing to do (7 already done)"]


def test_the_worst_scan_is_the_one_that_most_deserves_a_warning():
    text = io.StringIO()
    with LiveProgress("Registering", Console(file=text, width=200), Clock()) as progress:
        progress.start(4, 0)
        progress.done(outcome(0, distance_inside=0.02, angle_distortion=9.0))
        progress.done(outcome(1, distance_inside=0.9, angle_distortion=5.0))
        progress.done(outcome(2, distance_inside=None, angle_distortion=6.0))
        progress.done(outcome(3, failed=True))
    assert text.getvalue().splitlines()[-1].endswith("worst s1: 0.9 mm from the breast")


def test_names_that_look_like_markup_are_shown_as_they_are():
    text = io.StringIO()
    with LiveProgress("Registering", Console(file=text, width=200), Clock()) as progress:
        progress.start(1, 0)
        progress.done(Outcome("[red]x[/]", "failed", {}, "[bold]no"))
    assert "failed [red]x[/]: [bold]no" in text.getvalue()


def test_a_terminal_shows_one_moving_line_and_gets_its_cursor_back():
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, width=100, force_terminal=True, color_system=None)

    def stopped() -> None:
        with LiveProgress("Registering", console, clock) as progress:
            progress.start(8, 2)
            for k in range(5):
                clock.now += 1.0
                progress.done(outcome(k, failed=k == 2, distance_inside=0.03))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    shown = text.getvalue()
    assert "5/8" in shown
    assert "1 failed, 60/min, 3 s left; worst s0" in shown
    assert "failed s2: scans/s2.ply: empty file\n" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is hidden, and shown again
    assert shown.rstrip().endswith("5 of 8 scans, 1 failed, in 5 s; worst s0: 0.03 mm from the breast")


def test_a_narrow_terminal_keeps_one_line():
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, width=40, force_terminal=True, color_system=None)
    with LiveProgress("Registering", console, clock) as progress:
        progress.start(3, 0)
        clock.now += 1.0
        progress.done(outcome(0, distance_inside=0.5))
        before_end = text.getvalue()
    assert "\x1b[1A" not in before_end  # a second line would have to be gone back over


def test_standard_output_stays_clean(capsys):
    with LiveProgress("Registering") as progress:
        progress.start(2, 0)
        progress.done(outcome(0, failed=True))
        progress.done(outcome(1, distance_inside=0.1))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2 of 2 scans, 1 failed" in captured.err
