"""Named spans: parts of a program's time to which it gives names.

``with span("epoch", n=3):`` does nothing, and next to nothing long, where the program is not recorded. This module is
imported in the profiled process and therefore imports next to nothing itself, not even typing.
"""

from __future__ import annotations

from tachograph.recorder import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_ASYNC_GENERATOR = 0x200
"""Flag of the code of functions with both ``async`` and ``yield`` (inspect.CO_ASYNC_GENERATOR)."""


class Span:
    """A named span: a context manager and a decorator. This one is not recorded."""

    __slots__ = ()

    def tell(self, **fields: object) -> None:
        """Say more about the span, which is known only now: fields beside those that it was made with."""

    def rename(self, name: str) -> None:
        """Give the span another name, which is known only now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The span ends, and an exception goes on."""

    def __call__(self, function: Function) -> Function:
        """Every call of ``function`` is a span of its own.

        Errors:
            TypeError: it is an async generator, whose time is its caller's in between.
        """
        refuse_async_generators(function)
        return function


_NOT_RECORDED = Span()


def span(name: str, /, **fields: object) -> Span:
    """Give a part of the program's time a name.

    ``with span("epoch", n=3):`` names a part of this thread's time, ``@span("load")`` every call of a function.

    ``fields`` say more about it: strings, numbers, booleans and None (of anything else the name of its type is kept).
    Spans may lie within others. Outside a recording this costs less than a microsecond and does nothing.
    """
    arm = loaded("tachograph.recorder.inprocess.arm")
    if arm is None:
        return _NOT_RECORDED
    write = arm.span_writer()
    if write is None:
        return _NOT_RECORDED
    from tachograph.recorder.inprocess.open_spans import RecordedSpan

    return RecordedSpan(write, name, fields)


def is_recorded(made: Span) -> bool:
    """True if this span is written when it ends."""
    return made is not _NOT_RECORDED


def refuse_async_generators(function: object) -> None:
    """TypeError if ``function`` makes async generators."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & _ASYNC_GENERATOR:
        raise TypeError("a span cannot decorate an async generator: use 'with span(...)' inside of it")


def route_of_path(path: object) -> str:
    """A path whose parts that hold digits are ``{}``: most of these are ids, and each would be a name of its own."""
    if not isinstance(path, str):
        return ""
    parts = path.split("/")
    return "/".join("{}" if any("0" <= letter <= "9" for letter in part) else part for part in parts)
