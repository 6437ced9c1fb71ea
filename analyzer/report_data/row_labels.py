"""Words for rows that are not a line, and for scopes."""

from __future__ import annotations

from collections.abc import Mapping

from ..samples.scope import ALL, PROJECT
from ..samples.summary import OUT_OF_SCOPE, UNKNOWN_CODE

__all__ = ["MEANING", "OUT_OF_SCOPE", "UNKNOWN_CODE", "off_line_title", "scope_text"]

MEANING: Mapping[str, str] = {
    "<no Python stack>": "threads that native code started, such as those of a numerical library",
    "<other code>": "libraries that no line of the project called, such as their own threads",
    "<not sampled>": "not sampled during this interval, or its Python is one whose stacks are not recorded",
    "<torn stack>": "the stack changed while it was read",
    "<lost stack>": "there was no room for the stack",
    "<interpreter start>": "before the first line ran",
    "<interpreter shutdown>": "after the last line ran: Python takes everything apart",
    "<before recording>": "held already when recording began",
}
"""By their names in the profile. docs/reference/json.md has them too."""


def off_line_title(scope: str) -> str:
    """The title of the rows that are not a line."""
    return "not on a line" if scope == ALL else "not on a line in scope"


def scope_text(scope: str) -> str:
    """What is charged with what under a scope."""
    known = {PROJECT: "libraries are charged to the project's lines", ALL: "all code"}
    return known.get(scope, f"scope {scope}")
