"""Scripts that make what the repository keeps, on small input."""

from __future__ import annotations

import json
import subprocess
import sys

from docs_world import ROOT


def test_coverage_by_package(tmp_path):
    def of(*counts):
        names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
        return {"summary": dict(zip(names, counts, strict=True))}

    files = {
        "src/breastmorph/mesh/a.py": of(10, 10, 4, 1),
        "src/breastmorph/mesh/files/b.py": of(10, 9, 0, 0),
        "src/breastmorph/mask.py": of(200, 199, 0, 0),
    }
    (tmp_path / "coverage.json").write_text(json.dumps({"files": files}))
    command = [sys.executable, ROOT / "scripts" / "coverage_table.py", tmp_path / "coverage.json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    assert [line.replace(" %", "").split() for line in said] == [
        ["mask", "200", "99", "0", "-"],  # not 100: a line is missed
        ["mesh", "20", "95", "4", "25"],
        ["all", "220", "99", "4", "25"],
    ]
