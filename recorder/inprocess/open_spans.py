"""Spans of a recorded program. Imported in the profiled process when its first span is made."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from itertools import count

from tachograph.recorder.inprocess.named_spans import Span, refuse_async_generators
from tachograph.recorder.inprocess.spool_layout import NONE

try:
    from tachograph.recorder._native import follow_spans, monotonic_ns
except ImportError:
    from time import monotonic_ns

    _follow = None
else:
    _follow = follow_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping
    from types import TracebackType
    from typing import Any, Self, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])
    Write = Callable[[str, str, int, int, int, int], None]
    """Writes a span: name, fields (JSON or empty), start_ns, end_ns, its number, the number of its parent or NONE."""

LONGEST_NAME = 500
"""Bytes of a name; the rest is left out."""
LONGEST_VALUE = 200
"""Characters of a value that is a text; the rest is left out."""
LONGEST_FIELDS = 4000
"""Characters of all fields; those that would make it longer are left out."""
_COROUTINE, _GENERATOR = 0x80, 0x20

# Of a process, like the threads' own contexts: a context, and so a task of asyncio, knows the span that it is in. The
# native recorder reads it from there.
_INNERMOST: ContextVar[RecordedSpan | None] = ContextVar("tachograph span", default=None)
_NUMBERS = count(1)


class RecordedSpan(Span):
    """A span that is written when it ends. It can be entered once; as a decorator it makes another for each call."""

    __slots__ = ("_fields", "_name", "_parent", "_start_ns", "_write", "ended", "number", "outer")

    def __init__(self, write: Write, name: str, fields: Mapping[str, object] | str) -> None:
        self._write = write
        self._name = name if type(name) is str and name.isascii() and len(name) <= LONGEST_NAME else name_text(name)
        # Written down at once: what was given may be something else by the end.
        self._fields = fields if isinstance(fields, str) else fields_text(fields)

    def tell(self, **fields: object) -> None:
        """Say more about the span, which is known only now: fields beside those that it was made with."""
        more = fields_text(fields)
        if more and self._fields and len(self._fields) + len(more) <= LONGEST_FIELDS:
            self._fields = f"{self._fields[:-1]}, {more[1:]}"
        elif not self._fields:
            self._fields = more

    def rename(self, name: str) -> None:
        """Give the span another name, which is known only now."""
        self._name = name_text(name)

    def __enter__(self) -> Self:
        self.outer = outer = _INNERMOST.get()
        self._parent: int = NONE if outer is None else outer.number
        self.number: int = next(_NUMBERS) % NONE
        self.ended = False
        _INNERMOST.set(self)
        self._start_ns = monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._write(self._name, self._fields, self._start_ns, monotonic_ns(), self.number, self._parent)
        self.ended = True
        # Past what has ended out of order; and what outlives this one holds no chain of spans.
        while (outer := self.outer) is not None and outer.ended:
            self.outer = outer.outer
        if _INNERMOST.get() is self:
            _INNERMOST.set(outer)

    def __call__(self, function: Function) -> Function:
        """Every call of ``function`` is a span of its own; of a coroutine or a generator, every run to its end."""
        from functools import wraps

        refuse_async_generators(function)
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        wrapper: Callable[..., Any]
        if flags & _COROUTINE:
            wrapper = self._around_coroutines(function)
        elif flags & _GENERATOR:
            wrapper = self._around_generators(function)
        else:
            wrapper = self._around_calls(function)
        return wraps(function)(wrapper)  # type: ignore[return-value]  # it is called as the function is

    def _another(self) -> RecordedSpan:
        return RecordedSpan(self._write, self._name, self._fields)

    def _around_calls(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: object, **kwargs: object) -> object:
            with self._another():
                return function(*args, **kwargs)

        return wrapper

    def _around_coroutines(self, function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def wrapper(*args: object, **kwargs: object) -> object:
            with self._another():
                return await function(*args, **kwargs)

        return wrapper

    def _around_generators(self, function: Callable[..., Any]) -> Callable[..., Generator[Any, Any, Any]]:
        def wrapper(*args: object, **kwargs: object) -> Generator[Any, Any, Any]:
            with self._another():
                return (yield from function(*args, **kwargs))

        return wrapper


if _follow is not None:
    _follow(_INNERMOST, RecordedSpan, RecordedSpan.__dict__["number"])


def name_text(name: object) -> str:
    """A name that every writer can write: UTF-8, not too long, without NUL."""
    text = name if isinstance(name, str) else type(name).__name__
    data = str.encode(text, "utf-8", "backslashreplace")[:LONGEST_NAME]
    return data.decode("utf-8", "ignore").replace("\0", "\\0")


def fields_text(fields: Mapping[str, object]) -> str:
    """The fields as JSON in ASCII; nothing if there are none. It runs no code of the program."""
    if not fields:
        return ""
    # json itself would import half a dozen modules into a program that may have no use for them.
    from _json import encode_basestring_ascii as quoted

    parts: list[str] = []
    length = 2
    for key, value in fields.items():
        shown = plain(value)
        part = f"{quoted(key)}: {quoted(shown[:LONGEST_VALUE]) if isinstance(shown, str) else number_text(shown)}"
        length += len(part) + 2
        if length <= LONGEST_FIELDS:
            parts.append(part)
    return "{" + ", ".join(parts) + "}"


def plain(value: object) -> str | float | bool | None:
    """The value where JSON has such values, a plain number for those of other kinds, else the name of its type."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        # Digits take time that grows with their square, and Python refuses very many.
        return value if -(1 << 63) <= value < 1 << 64 else type(value).__name__
    if isinstance(value, float):
        return value if value - value == 0 else float.__repr__(value)
    numbers = sys.modules.get("numbers")  # numpy, whose scalars these mostly are, has it imported
    if numbers is not None and isinstance(value, numbers.Real):
        try:
            return plain(int(value) if isinstance(value, numbers.Integral) else float(value))
        except (TypeError, ValueError, OverflowError):
            pass  # a number that has no plain value is shown like any other object
    return type(value).__name__


def number_text(value: float | bool | None) -> str:
    """The JSON of what is not text."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
