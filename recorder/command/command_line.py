"""Reads the command line of ``record``: our options, then the program with its arguments.

As with python itself, everything behind the script, ``-m MODULE`` or ``-c CODE`` belongs to the program, whatever it
looks like. click has no such rule, and importing it takes longer than all else that starting a program needs: so this
is the only reader, and click only shows the options.
"""

from __future__ import annotations

from tachograph.format.plain_records import record_class, replaced
from tachograph.recorder.command.options import DEFAULTS, OPTIONS, Option, Options, parsed
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

HELP = ("-h", "--help")
_ENDS = {"m": Kind.MODULE, "c": Kind.CODE}
_SEE = "; see 'tachograph record --help'"
_FIELDS: Mapping[str, str] = {name: field for field, option in OPTIONS.items() for name in (*option.names, *option.off)}


@record_class
class CommandLine:
    """A parsed command line: names of options with their texts (None for flags), and the program, if there is one."""

    typed: tuple[tuple[str, str | None], ...]
    target: Target | None

    @property
    def help(self) -> bool:
        """True if it asks for help."""
        return any(name in HELP for name, _ in self.typed)

    def options(self, project: Mapping[str, Any]) -> Options:
        """The options; ``project`` has the values of Options that count where nothing was typed.

        Values of ``project`` that have no effect with the typed options are left out. Refuses bad values and conflicts.
        """
        values: dict[str, Any] = {}
        for name, text in self.typed:
            field = _FIELDS[name]
            value = name not in OPTIONS[field].off if text is None else _value(OPTIONS[field], text)
            values[field] = (*values.get(field, ()), value) if OPTIONS[field].repeated else value
        options = Options(**{**project, **values})
        conflicting = [name for name in project if name not in values and OPTIONS[name].conflict(options)]
        options = replaced(options, **{name: DEFAULTS[name] for name in conflicting})
        options.check()
        return options


def read(arguments: Sequence[str]) -> CommandLine:
    """The command line behind ``record``. Refuses unknown options and missing values."""
    typed: list[tuple[str, str | None]] = []
    index = 0
    while index < len(arguments):
        argument, rest = arguments[index], arguments[index + 1 :]
        if argument == "--":
            return CommandLine(tuple(typed), _script(rest))
        if argument.startswith("--"):
            name, sign, text = argument.partition("=")
            option = _one(name, text if sign else None, rest)
            typed.append(option)
            index += 1 if sign or option[1] is None else 2
        elif argument.startswith("-") and argument != "-":
            taken, target = _cluster(argument, rest, typed)
            if target is not None:
                return CommandLine(tuple(typed), target)
            index += taken
        else:
            return CommandLine(tuple(typed), _script(arguments[index:]))
    return CommandLine(tuple(typed), None)


def _script(rest: Sequence[str]) -> Target | None:
    return Target(Kind.SCRIPT, rest[0], tuple(rest[1:])) if rest else None


def _cluster(cluster: str, rest: Sequence[str], typed: list[tuple[str, str | None]]) -> tuple[int, Target | None]:
    """A cluster of short options: how many arguments it takes, and the target if it ends in one."""
    for at in range(1, len(cluster)):
        letter, attached = cluster[at], cluster[at + 1 :]
        if letter in _ENDS:
            if not attached and not rest:
                what = "a module" if letter == "m" else "code"
                raise Refused(f"-{letter} needs {what} to run{_SEE}")
            runs, arguments = (attached, rest) if attached else (rest[0], rest[1:])
            return 0, Target(_ENDS[letter], runs, tuple(arguments))
        option = _one(f"-{letter}", attached or None if _takes_value(f"-{letter}") else None, rest)
        typed.append(option)
        if option[1] is not None:
            return 1 if attached else 2, None
    return 1, None


def _takes_value(name: str) -> bool:
    return name in _FIELDS and OPTIONS[_FIELDS[name]].parse is not None


def _one(name: str, text: str | None, rest: Sequence[str]) -> tuple[str, str | None]:
    """An option with its value: ``text`` if that was attached, else the first of ``rest``; None for a flag."""
    if name not in _FIELDS and name not in HELP:
        raise Refused(_unknown(name))
    if not _takes_value(name):
        if text is not None:
            raise Refused(f"option '{name}' does not take a value{_SEE}")
        return name, None
    if text is None and not rest:
        raise Refused(f"option '{name}' requires an argument{_SEE}")
    return name, rest[0] if text is None else text


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*_FIELDS, *HELP], n=1) if name.startswith("--") else []
    return f"no such option: {name}" + (f" (did you mean {close[0]}?)" if close else "") + _SEE


def _value(option: Option, text: str) -> Any:
    try:
        return parsed(option, text)
    except Refused as error:
        raise Refused(error.message + _SEE) from None
