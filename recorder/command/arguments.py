"""Parts the command line of ``tachograph record`` into our options and the program with its arguments.

As with python itself, everything behind the script, ``-m MODULE`` or ``-c CODE`` belongs to the program, whatever it
looks like; click has no such rule, so the line is divided before click sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused

_ENDS = {"m": Kind.MODULE, "c": Kind.CODE}


def divide(args: Sequence[str], takes_value: frozenset[str]) -> tuple[list[str], Target | None]:
    """Our options and the target; the target is None if there is none.

    ``takes_value`` has the options that take a value (``--output``, ``-o``). Raises Refused if -m or -c
    lacks its value.
    """
    index = 0
    while index < len(args):
        arg = args[index]
        if arg == "--":
            return list(args[:index]), _script(args[index + 1 :])
        if arg.startswith("--"):
            index += 2 if arg in takes_value else 1
        elif arg.startswith("-") and arg != "-":
            skip, own, target = _short_options(args, index, takes_value)
            if target is not None:
                return [*args[:index], *own], target
            index += skip
        else:
            return list(args[:index]), _script(args[index:])
    return list(args), None


def _script(rest: Sequence[str]) -> Target | None:
    return Target(Kind.SCRIPT, rest[0], tuple(rest[1:])) if rest else None


def _short_options(
    args: Sequence[str], index: int, takes_value: frozenset[str]
) -> tuple[int, list[str], Target | None]:
    """One cluster of short options: how many arguments it takes, what of it is ours, and the target that ends it."""
    cluster = args[index]
    for at in range(1, len(cluster)):
        letter, attached = cluster[at], cluster[at + 1 :]
        if letter in _ENDS:
            rest = args[index + 1 :]
            if not attached and not rest:
                what = "a module" if letter == "m" else "code"
                raise Refused(f"-{letter} needs {what} to run; see 'tachograph record --help'")
            runs, arguments = (attached, rest) if attached else (rest[0], rest[1:])
            return 0, [cluster[:at]] if at > 1 else [], Target(_ENDS[letter], runs, tuple(arguments))
        if f"-{letter}" in takes_value:
            return (1 if attached else 2), [], None
    return 1, [], None
