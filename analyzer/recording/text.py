"""Makes text from a recording fit to be shown: recordings are untrusted, and terminals obey escape sequences."""

from __future__ import annotations

import re
import unicodedata

MAX_NAME = 300
"""Characters of a name (path, function, thread) that are shown."""

MAX_SOURCE_LINE = 500
"""Characters of a source line that are shown or put into JSON."""

_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|(?:lib|lib64|Lib)/(?:python|pypy)\d+\.\d+t?)/(?=[^/])")

_DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def _shown(character: str) -> str:
    if character == "\t":
        return "    "
    if character.isprintable() and unicodedata.category(character) not in _DANGEROUS:
        return character
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def printable(text: str, limit: int = MAX_NAME) -> str:
    """``text`` with control, format and direction characters as escapes, cut to ``limit`` characters."""
    cut = text[: limit + 1]
    clean = cut if cut.isascii() and cut.isprintable() else "".join(map(_shown, cut))
    return clean if len(clean) <= limit and len(text) <= limit else clean[: limit - 1] + "…"


def source_line(text: str) -> str:
    """One line of source code, made printable, without its line end."""
    return printable(text.rstrip("\r\n"), MAX_SOURCE_LINE)


def within_package(path: str) -> str:
    """A path of an installed package or of the standard library from the package on; any other path as it is."""
    match = _INSTALLED.match(path)
    return path[match.end() :] if match else path


def shorten_left(text: str, width: int) -> str:
    """``text`` in ``width`` characters, with its beginning left out: the end of a path says most."""
    if len(text) <= width:
        return text
    return "…" + text[len(text) - width + 1 :] if width > 1 else text[:width]
