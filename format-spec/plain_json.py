"""Writes and reads JSON without the module ``json``.

That module compiles patterns while a recorded program waits for its manifest; and a program may have one of its own of
that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from _json import encode_basestring, encode_basestring_ascii, make_scanner  # what json passes on
except ImportError:  # not CPython
    from json.encoder import encode_basestring, encode_basestring_ascii

    make_scanner = None  # type: ignore[misc,assignment]

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


class _Reader:
    """The settings that json's scanner takes from ``json.JSONDecoder``, whose ones these are."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def from_json(text: str) -> object:
    """What ``json.loads(text)`` gives.

    Errors:
        ValueError: it is not JSON.
    """
    text = text.strip(" \t\n\r")
    if make_scanner is None:
        import json

        return json.loads(text)
    try:
        value, end = make_scanner(_Reader())(text, 0)  # type: ignore[arg-type]  # anything with these names does
    except (StopIteration, ImportError, AttributeError):  # the last two: the error's class is json's
        raise ValueError("it is not JSON") from None
    if end != len(text):
        raise ValueError("something follows the JSON")
    return value
