"""Writes the supported versions of CPython where people and tools read them.

``recorder/collect/unrecorded_pythons.py`` has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tachograph.recorder.collect.unrecorded_pythons import NEWEST, OLDEST

_MINORS = range(OLDEST[1], NEWEST[1] + 1)
_IN_PROSE = {r"CPython 3\.\d+ to 3\.\d+": f"CPython 3.{OLDEST[1]} to 3.{NEWEST[1]}"}
_CLASSIFIER = '    "Programming Language :: Python :: 3.{}",\n'
_CLASSIFIERS = "".join(map(_CLASSIFIER.format, _MINORS))
_WHEELS = " ".join(f"cp3{minor}-*" for minor in _MINORS)

PLACES: Mapping[str, Mapping[str, str]] = {
    "README.md": _IN_PROSE,
    "docs/tutorial.md": _IN_PROSE,
    "docs/explanation/how-it-works.md": _IN_PROSE,
    "docs/releasing.md": {r"`cp3\d+` to `cp3\d+`": f"`cp3{OLDEST[1]}` to `cp3{NEWEST[1]}`"},
    "pyproject.toml": {
        "(" + _CLASSIFIER.format("[0-9]+") + ")+": _CLASSIFIERS,
        r'build = "cp3[^"]*"': f'build = "{_WHEELS}"',
    },
    ".github/workflows/release.yml": {r'"python:3\.\d+-slim"': f'"python:3.{NEWEST[1]}-slim"'},
}
"""By file, what is written, as a regular expression, and what it is to be."""


def written(text: str, place: str) -> str:
    """The text of a place, with the versions that are supported.

    Errors:
        ValueError: it does not say which those are.
    """
    for pattern, versions in PLACES[place].items():
        text, found = re.subn(pattern, versions, text)
        if not found:
            raise ValueError(f"{place} has nothing like {pattern}")
    return text
