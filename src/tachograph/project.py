"""A project's defaults: the table ``[tool.tachograph]`` of the nearest ``pyproject.toml``.

Looking for it is part of the start of every recorded program, so it must cost next to nothing: TOML is only read where
the file may have such a table.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from tachograph.recorder.command.options import FLAG, LIST, NUMBER, OPTIONS, SIZE, TEXT, project_values
from tachograph.recorder.problems import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "pyproject.toml"
LARGEST = 1 << 20
"""Bytes of a file that is read."""

# Key -> (parameter of the commands, what its values are, the commands that have it).
KEYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    **{option.key: (name, option.kind, ("record",)) for name, option in OPTIONS.items() if option.key},
    "scope": ("scope", TEXT, ("analyze", "diff", "view")),
    "attribution": ("attribution", TEXT, ("analyze", "diff")),
    "sort": ("sort", TEXT, ("analyze",)),
    "top": ("top", NUMBER, ("analyze", "diff")),
    "leaks": ("leaks", TEXT, ("analyze",)),
    "metric": ("metric", TEXT, ("diff",)),
    "spread": ("spread", NUMBER, ("diff",)),
    "smallest": ("smallest", NUMBER, ("diff",)),
    "fail-if": ("fail_if", LIST, ("diff",)),
}
_TYPES: dict[str, tuple[type, ...]] = {
    NUMBER: (int, float),
    TEXT: (str,),
    SIZE: (int, str),
    FLAG: (bool,),
    LIST: (list,),
}


def candidate() -> tuple[str, bytes] | None:
    """Path and content of the nearest ``pyproject.toml``, if it may have a table of ours; None if there is none."""
    try:
        folder = os.getcwd()
    except OSError:
        return None  # the folder has been removed
    while True:
        path = os.path.join(folder, FILE)
        try:
            is_file = S_ISREG(os.stat(path).st_mode)
        except OSError:
            is_file = False
        if is_file:
            break
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST)
    except OSError:
        return None  # what may not be read says nothing
    return (path, data) if b"tachograph" in data and b"tool" in data else None


def defaults(found: tuple[str, bytes] | None) -> dict[str, dict[str, Any]]:
    """The parameters that the table of a ``candidate`` gives, by command.

    Raises Refused, one line, if there is a table and it does not say anything sensible.
    """
    if found is None:
        return {}
    import tomllib

    path, data = found
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not valid TOML: {error}") from None
    tool = document.get("tool")
    table = tool.get("tachograph", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise Refused(f"{path}: tool.tachograph is not a table")
    by_command: dict[str, dict[str, Any]] = {}
    for key, value in table.items():
        name, commands = checked(path, key, value)
        for command in commands:
            by_command.setdefault(command, {})[name] = value
    return by_command


def record_values() -> dict[str, Any]:
    """The options of ``record`` in the nearest ``pyproject.toml``.

    Raises Refused, one line, if it does not say anything sensible.
    """
    project_file = candidate()
    table = defaults(project_file).get("record")
    if project_file is None or not table:
        return {}
    try:
        return project_values(table)
    except Refused as error:
        raise Refused(f"{project_file[0]}: [tool.tachograph]: {error.message}") from None


def checked(path: str, key: str, value: object) -> tuple[str, tuple[str, ...]]:
    """The parameter that a key stands for, and the commands that have it.

    Raises Refused if there is no such key, or its value is of a wrong kind; what the value says is checked with the
    command line.
    """
    if key not in KEYS:
        raise Refused(f"{path}: [tool.tachograph] has no key {key!r}; there are: {', '.join(KEYS)}")
    name, kind, commands = KEYS[key]
    right = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == FLAG)
    if not right or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise Refused(f"{path}: [tool.tachograph]: {key} must be {kind}, not {value!r}")
    return name, commands
