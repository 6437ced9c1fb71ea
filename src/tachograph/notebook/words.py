"""Reads what stands behind ``%tachograph``: options of recording and a statement, or a word for what is to be done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tachograph.recorder.attached.keywords import keywords, works_inside
from tachograph.recorder.command.options import OPTIONS, Option

VERBS = ("start", "stop", "diff")
"""Words that say what is to be done; alone or before options, numbers and paths they are no statement."""

OUTPUT, QUIET = "path", "quiet"
"""Fields of Options that mean something here, though recording in process has no keywords for them."""

_HERE = {
    OUTPUT: "Where to keep the recording; else it lasts as long as the session.",
    QUIET: "Show no report: for what is compared later, for example.",
}

_WORD = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*')+)""")
_VERB = re.compile(rf"\s*({'|'.join(VERBS)})(?=\s*$|\s+[-\w./\[~\"'])\s*")
_OPERATOR = re.compile(r"\s*(and|or|if|in|is|not)\b")
_ENDS = "; see '%tachograph --help'"


class WrongWordsError(Exception):
    """A line of options cannot be parsed; the message is one line."""


class Words(NamedTuple):
    """A parsed line: keyword arguments of recording, its output path, the statement, and the flags of the magic."""

    given: Mapping[str, Any]
    output: str | None
    rest: str
    quiet: bool = False
    help: bool = False


def verb_of(line: str) -> tuple[str | None, str]:
    """The verb at the beginning of a line, and the rest; None where the line is a statement."""
    match = _VERB.match(line)
    if match is None or _OPERATOR.match(line, match.end()):
        return None, line
    return match[1], line[match.end() :]


def read_words(line: str) -> Words:
    """The options at the beginning of a line, and the rest of it.

    Errors:
        WrongWordsError: an option is not known, does not work here, or lacks its value.
    """
    names = _names()
    values: dict[str, Any] = {}
    at = 0
    while (match := _WORD.match(line, at)) and match[1].startswith("-"):
        word, at = match[1], match.end()
        if word == "--":
            break
        name, sign, text = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in ("-h", "--help"):
            return Words({}, None, "", help=True)
        if name not in names:
            raise WrongWordsError(_unknown(name, names))
        field, on = names[name]
        takes_value = OPTIONS[field].parse is not None
        if takes_value and not sign:
            text, at = _value_behind(name, line, at)
        if sign and not takes_value:
            raise WrongWordsError(f"option {name} takes no value{_ENDS}")
        values[field] = _value(name, field, _unquoted(text), values.get(field)) if takes_value else on
    output = values.pop(OUTPUT, None)
    quiet = bool(values.pop(QUIET, False))
    return Words({_keyword(field): value for field, value in values.items()}, output, line[at:].strip(), quiet)


def help_text() -> str:
    """The text of ``%tachograph --help``."""
    rows = [
        (", ".join((*option.names, *option.off)) + f" {option.metavar}".rstrip(), _HERE.get(field, option.help))
        for field, option in _options().items()
    ]
    return "\n".join([
        "%%tachograph [OPTIONS]              record this cell, and show where its time and memory went",
        "%tachograph [OPTIONS] STATEMENT     the same for one statement",
        "%tachograph start [OPTIONS]         record what is run from here on, each cell under its number",
        "%tachograph stop                    end that, and show it",
        "%tachograph diff [BASE [NEW]]       compare two recordings: cells by number (3), or paths; without any, the",
        "                                    last one with the one before it of the same cell",
        "",
        "Options of recording:",
        *(f"  {names.replace('DIR.tacho|URL', 'DIR.tacho')}\n      {text}" for names, text in rows),
    ])  # fmt: skip


def _value_behind(name: str, line: str, at: int) -> tuple[str, int]:
    """The next word of a line, which is the value of an option, and where it ends."""
    behind = _WORD.match(line, at)
    if behind is None:
        raise WrongWordsError(f"option {name} needs a value{_ENDS}")
    return behind[1], behind.end()


def _value(name: str, field: str, text: str, before: dict[str, str] | None) -> Any:
    """The value of an option as recording in process has it; ``before`` is that of the same option before."""
    if not OPTIONS[field].repeated:
        return text
    key, equals, value = text.partition("=")
    if not equals:
        raise WrongWordsError(f"option {name} needs KEY=VALUE, not {text!r}")
    return {**(before or {}), key: value}


def _names() -> dict[str, tuple[str, bool]]:
    """Names of options that work here: their field of Options, and what they set where they are flags."""
    return {
        name: (field, on)
        for field, option in _options().items()
        for names, on in ((option.names, True), (option.off, False))
        for name in names
    }


def _options() -> dict[str, Option]:
    return {field: option for field, option in OPTIONS.items() if field in _HERE or works_inside(field)}


def _keyword(field: str) -> str:
    return next(keyword for keyword, name in keywords().items() if name == field)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _unknown(name: str, names: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    of_the_command = [option for option in OPTIONS.values() if name in (*option.names, *option.off)]
    if of_the_command:
        return f"{name} does not work in a notebook: it is for 'tachograph record {name}'"
    close = get_close_matches(name, list(names), n=1) if name.startswith("--") else []
    return f"there is no option {name}" + (f" (did you mean {close[0]}?)" if close else "") + _ENDS
