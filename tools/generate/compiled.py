"""tables.toml in a form that is read at once: parsing TOML takes longer than finishing a small recording."""

from __future__ import annotations

import json
import tomllib
from typing import Any

_LEVELS = 4
"""Containers that have a line for each of their items: a column, a loss or a value of an enumeration is one line."""


def document(text: str) -> str:
    """The JSON document of a TOML text, one fact a line."""
    return _written(tomllib.loads(text), _LEVELS) + "\n"


def _written(value: Any, levels: int) -> str:
    if levels and isinstance(value, dict):
        return "{\n" + ",\n".join(f"{_text(key)}: {_written(each, levels - 1)}" for key, each in value.items()) + "\n}"
    if levels and isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(_written(each, 0) for each in value) + "\n]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
