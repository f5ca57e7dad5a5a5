"""The markup of what is needed to make the results again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from numbers import Integral, Real
from typing import Any

from breastmorph.plain import plain
from breastmorph.report.page.content import Reproducibility
from breastmorph.report.page.document import json_element


def record_html(what: Reproducibility) -> str:
    """Markup of the record: single values in a table, groups to be unfolded, and all of it as JSON."""
    record = plain(_unfrozen(what.record))
    groups = {name: value for name, value in record.items() if isinstance(value, dict)}
    single = {name: value for name, value in record.items() if name not in groups}
    parts = [_record_table(single)] if single else []
    for name, value in groups.items():
        count = sum(1 for _ in _flat(value))
        parts.append(
            f'<details><summary>{escape(name.replace("_", " "))} <span class="unit">{count} '
            f"{'entry' if count == 1 else 'entries'}</span></summary>{_record_table(value)}</details>"
        )
    return f"""<div class="record-box" data-name="{escape(what.name)}">
<div class="row" hidden><button type="button" data-do="copy">Copy as JSON</button>
<button type="button" data-do="save-record">Save as file</button>
<button type="button" data-do="unfold">Open all</button>
<span role="status"></span></div>
{"".join(parts)}
{json_element("record", record)}
</div>"""


def _record_table(record: dict[str, Any]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in _flat(record)
    )
    return f'<table class="record"><tbody>\n{rows}\n</tbody></table>'


def _unfrozen(value: Any) -> Any:
    """With plain dictionaries, also where a mapping is read-only, and with texts for what JSON does not know."""
    if isinstance(value, Mapping):
        return {str(key): _unfrozen(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unfrozen(part) for part in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (str, Real, type(None))) or hasattr(value, "tolist") else str(value)


def _flat(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, part in value.items():
        name = f"{before}{key}"
        if isinstance(part, dict) and part:
            yield from _flat(part, f"{name} › ")
        else:
            yield name, _one_line(part)


def _one_line(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
