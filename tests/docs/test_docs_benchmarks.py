"""Results of benchmarks say first where a peer is better."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from docs_world import ROOT, script


def test_results_show_first_where_a_peer_is_better():
    code = """
import json, sys
sys.path.insert(0, "benchmarks")
from all import comparisons
print("\\n".join(comparisons(json.loads(sys.stdin.read()))))
"""
    rows = [
        {"what": "reading", "unit": "s", "ours": 3.0, "peer": "quick", "theirs": 1.5},
        {"what": "finding", "unit": "s", "ours": 1.0, "peer": "slow", "theirs": 8.0},
    ]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    worse, better = done.stdout.split("## Where BreastMorph is better")
    assert "| reading | quick | 3 s | 1.5 s | 2 |" in worse
    assert "finding" not in worse
    assert "| finding | slow | 1 s | 8 s | 8 |" in better
    assert "reading" not in better


def test_comparisons_are_noted_only_where_asked(tmp_path):
    notes = tmp_path / "notes.jsonl"
    code = "import sys; sys.path.insert(0, 'benchmarks'); import measuring; measuring.compare('a', 'mm', 1, 'b', 2)"
    for named in (False, True):
        environment = {**os.environ, **({"BREASTMORPH_COMPARISONS": str(notes)} if named else {})}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, env=environment)
        assert notes.exists() is named
    assert json.loads(notes.read_text())["theirs"] == 2.0


def test_agreement_of_known_numbers(tmp_path):
    plots = script(ROOT / "benchmarks" / "bland_altman.py")
    truth = np.linspace(100.0, 900.0, 41)
    noise = np.where(np.arange(41) % 2, 20.0, -20.0)
    fair, unfair = plots.agreement(truth + noise + 5.0, truth), plots.agreement(0.8 * truth + noise, truth)
    assert fair.bias == pytest.approx(5.0, abs=1.0)
    assert not fair.size_dependent
    assert unfair.size_dependent
    assert unfair.slope < -0.15
    assert plots.save_bland_altman(truth + noise + 5.0, truth, tmp_path / "a.png") == fair
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
