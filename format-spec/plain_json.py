"""Writes JSON without the module ``json``, which compiles patterns: a recorded program waits for its manifest."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from _json import encode_basestring, encode_basestring_ascii  # what json passes on
except ImportError:  # not CPython
    from json.encoder import encode_basestring, encode_basestring_ascii

IN_ASCII = encode_basestring_ascii
"""Quotes a text so that any channel takes it."""

_WORDS = {None: "null", True: "true", False: "false"}
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def to_json(value: object, quoted: Callable[[str], str] = encode_basestring, line: str = "\n") -> str:
    """What ``json.dumps(value, indent=1, ensure_ascii=False)`` gives; with ``IN_ASCII`` all of it is ASCII.

    ``value`` is made of dictionaries with texts as keys, lists, tuples, texts, numbers, truth values and None. ``line``
    is the end of a line and the beginning of the next.

    Errors:
        TypeError: it is made of something else.
    """
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        text = float.__repr__(value)
        return _NOT_FINITE.get(text, text)
    deeper = line + " "
    if isinstance(value, dict):
        pairs = [f"{quoted(key)}: {to_json(each, quoted, deeper)}" for key, each in value.items()]
        return f"{{{deeper}{f',{deeper}'.join(pairs)}{line}}}" if pairs else "{}"
    if isinstance(value, list | tuple):
        items = [to_json(each, quoted, deeper) for each in value]
        return f"[{deeper}{f',{deeper}'.join(items)}{line}]" if items else "[]"
    raise TypeError(f"{type(value).__name__} has no JSON")
