"""Value classes and JSON for code that is imported before a recorded program runs: no slow import.

The classes are used like dataclasses. The module ``dataclasses`` imports ``inspect`` and compiles a text for each
class: with it the program would wait longer than for all else that is done before it starts. For the same reason none
of these modules imports ``typing``, ``pathlib``, ``re`` or ``enum`` when it is imported itself
(tests/unit/recorder/test_imports.py).

JSON is written and read without the module ``json``, which compiles patterns while a recorded program waits for its
manifest; and a program may have a module of its own of that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, dataclass_transform

    Record = TypeVar("Record")

else:

    def dataclass_transform(**_):
        """Says something to type checkers only."""
        return lambda decorator: decorator


_MISSING: Any = object()


class Field:
    """Declaration of a field: its default, or what makes one for each object, and more that its class says."""

    __slots__ = ("default", "factory", "metadata")

    def __init__(self, default: Any, factory: Callable[[], Any] | None, metadata: Any) -> None:
        self.default, self.factory, self.metadata = default, factory, metadata


def field(*, default: Any = _MISSING, factory: Callable[[], Any] | None = None, metadata: Any = None) -> Any:
    """The value of a field in the body of a class."""
    return Field(default, factory, metadata)


@dataclass_transform(field_specifiers=(field,))
def record_class(cls: type[Record]) -> type[Record]:
    """Give a class the fields that its annotations name, in this order: ``__init__``, ``==`` and ``repr``."""
    fields = {}
    for name in cls.__annotations__:
        value = cls.__dict__.get(name, _MISSING)
        fields[name] = value if isinstance(value, Field) else Field(value, None, None)
        if isinstance(value, Field):
            delattr(cls, name)
    for name, method in (("_fields", fields), ("__init__", _init), ("__eq__", _equal), ("__repr__", _repr)):
        setattr(cls, name, method)
    return cls


def fields_of(record: object) -> Mapping[str, Field]:
    """The fields of a class of records, or of one of its objects, by name."""
    fields: Mapping[str, Field] = record._fields  # type: ignore[attr-defined]  # record_class has given it
    return fields


def replaced(record: Record, **changes: Any) -> Record:
    """The same record, with other values of these fields."""
    return type(record)(**{name: getattr(record, name) for name in fields_of(record)} | changes)


def _init(self: Any, *values: Any, **named: Any) -> None:
    fields = fields_of(self)
    given = dict(zip(fields, values, strict=False))
    if len(values) > len(fields) or given.keys() & named.keys() or named.keys() - fields.keys():
        raise TypeError(f"{type(self).__name__} has the fields {', '.join(fields)}, each of which has one value")
    given |= named
    for name, each in fields.items():
        if name not in given:
            if each.factory is None and each.default is _MISSING:
                raise TypeError(f"{type(self).__name__} needs a value of {name}")
            given[name] = each.default if each.factory is None else each.factory()
    self.__dict__.update(given)


def _equal(self: object, other: object) -> bool:
    return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented


def _repr(self: object) -> str:
    values = (f"{name}={getattr(self, name)!r}" for name in fields_of(self))
    return f"{type(self).__name__}({', '.join(values)})"


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
    """The text of ``json.dumps(value, indent=1, ensure_ascii=False)``; with ``IN_ASCII`` all of it is ASCII.

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
    """The value of ``json.loads(text)``.

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
