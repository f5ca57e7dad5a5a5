"""What the tests of the paper share."""

from __future__ import annotations

import pytest

from breastmorph.report import printing
from drawn_figures import AS_PRINTED


@pytest.fixture
def without_pdf(request, monkeypatch):
    """No PDF is drawn, which takes half of the time, except in tests that name it."""
    if "pdf" not in request.node.name:
        monkeypatch.setattr(
            printing,
            "figure_bytes",
            lambda figure, kind, *dpi: b"" if kind == "pdf" else AS_PRINTED(figure, kind, *dpi),
        )
