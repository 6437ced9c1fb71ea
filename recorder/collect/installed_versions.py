"""Versions of the installed distributions that a program's code came from.

A library that was upgraded explains what no line of the program does. They are read from the metadata beside the code,
on the machine that records, after the program has ended. Where a module's distribution has another name, it is looked
for in what the distributions say they have.
"""

from __future__ import annotations

import csv
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress

from tachograph.format import FormatError
from tachograph.format.atomic import read_regular_file

_INSTALLED = re.compile(r"(.*/(?:site|dist)-packages)/([^/]+)")
_INFO = re.compile(r"([A-Za-z0-9][\w.-]*)-([0-9][\w.!+]*)\.(?:dist-info|egg-info)")
_MOST_FOLDERS = 16
_MOST_DISTRIBUTIONS = 5_000
_MOST_BYTES = 16 << 20
"""Of metadata that is read of one folder, where the names alone do not tell."""


def versions(paths: Iterable[str]) -> dict[str, str]:
    """Version of each distribution by its name, of those that have one of these files (source files or libraries)."""
    modules: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        match = _INSTALLED.match(path.replace("\\", "/"))
        if match is not None:
            modules[match[1]].add(match[2].partition(".")[0])
    installed: dict[str, str] = {}
    for folder in sorted(modules)[:_MOST_FOLDERS]:
        installed |= _of_folder(folder, modules[folder])
    return dict(sorted(installed.items()))


def _of_folder(folder: str, modules: set[str]) -> dict[str, str]:
    with suppress(OSError):
        names = sorted(os.listdir(folder))[: 4 * _MOST_DISTRIBUTIONS]
        infos = {name: match for name in names if (match := _INFO.fullmatch(name)) is not None}
        by_name = {_normal(match[1]): match for match in infos.values()}
        direct = {module: by_name[_normal(module)] for module in modules if _normal(module) in by_name}
        rest = modules - direct.keys()
        others = _owners(folder, infos, rest) if rest else {}
        return {match[1]: match[2] for match in (*direct.values(), *others.values())}
    return {}


def _normal(name: str) -> str:
    """A name as PEP 503 compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _owners(folder: str, infos: Mapping[str, re.Match[str]], modules: set[str]) -> dict[str, re.Match[str]]:
    """The distributions of modules that have another name than they."""
    owners: dict[str, re.Match[str]] = {}
    left = _MOST_BYTES
    for name, match in infos.items():
        for file, tops in (("top_level.txt", str.split), ("RECORD", _recorded)):
            try:
                text = read_regular_file(os.path.join(folder, name, file), left).decode(errors="replace")
            except (OSError, FormatError):
                continue
            left -= len(text)
            owners |= {module: match for module in modules.intersection(tops(text)) if module not in owners}
            break
        if len(owners) == len(modules) or left <= 0:
            break
    return owners


def _recorded(text: str) -> list[str]:
    """The modules that a RECORD (PEP 376) lists."""
    rows = csv.reader(text.splitlines())
    with suppress(csv.Error):
        return [
            row[0].partition("/")[0].partition(".")[0] for row in rows if row and not row[0].startswith(("..", "/"))
        ]
    return []
