"""The TOML files as JSON.

``tables.json`` is read at once: parsing TOML takes longer than finishing a small recording. ``records.json`` has what
records.toml leaves to be worked out: offsets, lengths, and the columns that fields feed.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

from .layouts import Field, Layout, Layouts

_LEVELS = 4
"""Containers that have a line for each of their items: a column, a loss or a value of an enumeration is one line."""


def document(text: str) -> str:
    """The JSON document of a TOML text, one fact a line."""
    return _written(tomllib.loads(text), _LEVELS) + "\n"


def layouts(found: Layouts) -> str:
    """The JSON document of the spool's layouts, a field in one line."""
    return (
        _written(
            {
                "constants": {name: value for name, (value, _) in found.constants.items()},
                "enums": {each.name: dict(each.values) for each in found.enums},
                "files": {name: _layout(layout) for name, layout in found.files.items()},
                "records": {name: _layout(layout) for name, layout in found.records.items()},
            },
            _LEVELS,
        )
        + "\n"
    )


def _layout(layout: Layout) -> dict[str, Any]:
    about: dict[str, Any] = {"magic": layout.magic} if layout.magic else {"kind": layout.kind, "table": layout.table}
    about |= {"doc": layout.doc, "size": layout.size, "least": layout.least or layout.size, "rows": layout.rows}
    texts = [
        {"name": text.name, "length": text.length, "as": text.encoding, "column": text.column, "doc": text.doc}
        | ({"empty": text.empty} if text.empty else {})
        for text in layout.texts
    ]
    return {**about, "fields": [_field(field) for field in layout.named], "texts": texts}


def _field(field: Field) -> dict[str, Any]:
    more = {
        "count": field.count if field.count > 1 else None,
        "unknown": field.unknown,
        "refers": field.refers,
        "column": field.column,
    }
    more |= {"since": field.since or None, "yes": field.yes, "no": field.no, "bit": field.bit}
    more |= {"doc": field.doc or None}
    place = {"name": field.name, "type": field.type, "offset": field.offset}
    return place | {key: value for key, value in more.items() if value is not None}


def _written(value: Any, levels: int) -> str:
    if levels and isinstance(value, dict):
        return "{\n" + ",\n".join(f"{_text(key)}: {_written(each, levels - 1)}" for key, each in value.items()) + "\n}"
    if levels and isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(_written(each, 0) for each in value) + "\n]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
