"""Numbers as readers expect them."""

from __future__ import annotations

import math
from numbers import Integral


def number_text(value: float, digits: int | None = None) -> str:
    """A number with so many decimals, or with three significant digits; a dash for what is no number."""
    if not math.isfinite(value):
        return "–"
    if digits is None and isinstance(value, Integral):
        digits = 0
    if digits is None:
        if value and not 1e-4 <= abs(value) < 1e6:
            return f"{value:.1e}".replace("-", "−")
        digits = min(max(2 - math.floor(math.log10(abs(value))), 0), 4) if value else 0
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no negative zero
