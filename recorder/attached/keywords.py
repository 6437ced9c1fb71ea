"""The options of ``record`` as keyword arguments, from the one table of options."""

from __future__ import annotations

from tachograph.recorder.command.options import OPTIONS, Option, Options
from tachograph.recorder.problems import RecordingError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_UNITS = ("_ms", "_s")


def keywords() -> dict[str, str]:
    """The keywords that are understood, with their fields of Options."""
    return {_keyword(name): name for name in OPTIONS if name != "path"}


def works_inside(name: str) -> bool:
    """True if a field of Options is for recordings that a program begins itself."""
    return OPTIONS[name].inside


def options_from(given: Mapping[str, Any]) -> Options:
    """The options that keyword arguments stand for.

    Raises RecordingError, with one line, if one is not known, is not for recordings from inside, or has no such value.
    """
    fields = keywords()
    values = {}
    for keyword, value in given.items():
        name = fields.get(keyword)
        if name is None:
            inside = ", ".join(each for each, field in fields.items() if works_inside(field))
            raise RecordingError(f"there is no option {keyword!r}; there are {inside}")
        option = OPTIONS[name]
        if not works_inside(name):
            raise RecordingError(
                f"{keyword} does not work from inside a program: it is for 'tachograph record {option.long}'"
            )
        if value is not None:
            values[name] = _value(keyword, option, value)
    options = Options(**values)
    try:
        options.check()
    except Refused as refused:
        raise RecordingError(refused.message) from None
    return options


def _keyword(name: str) -> str:
    return next((name.removesuffix(unit) for unit in _UNITS if name.endswith(unit)), name)


def _value(keyword: str, option: Option, value: Any) -> Any:
    if option.parse is None:
        if not isinstance(value, bool):
            raise RecordingError(f"{keyword} is True or False, not {value!r}")
        return value
    if option.repeated:
        from collections.abc import Mapping  # most recordings have no labels of their own

        if not isinstance(value, Mapping):
            raise RecordingError(f"{keyword} is a dictionary, not {value!r}")
        return tuple(_parsed(keyword, option, f"{key}={text}") for key, text in value.items())
    return _parsed(keyword, option, str(value))


def _parsed(keyword: str, option: Option, text: str) -> Any:
    assert option.parse is not None
    try:
        return option.parse(text)
    except ValueError as error:
        raise RecordingError(f"{keyword}: {error}") from None
