"""Classes of values for what is imported before a recorded program runs. They are used like dataclasses.

The module ``dataclasses`` imports ``inspect`` and compiles a text for each class: with it the program would wait longer
than for all else that is done before it starts. For the same reason none of these modules imports ``typing``,
``pathlib``, ``re`` or ``enum`` when it is imported itself (tests/unit/recorder/test_imports.py).
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
    """What is known of a field: its default, or what makes one for each object, and whatever else its class says."""

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
