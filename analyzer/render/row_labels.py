"""What the rows that are no line mean."""

from __future__ import annotations

from collections.abc import Mapping

MEANING: Mapping[str, str] = {
    "<no Python stack>": "threads that native code started, such as those of a numerical library",
    "<out of scope>": "code that no line in scope called, such as a library's own threads",
    "<not seen>": "nobody looked at the thread in that time, or its Python is one whose stacks are not recorded",
    "<torn stack>": "the stack changed while it was read",
    "<lost stack>": "there was no room for the stack",
    "<interpreter start>": "before the first line ran",
    "<interpreter shutdown>": "after the last line ran: Python takes everything apart",
    "<before recording>": "held already when recording began",
}
"""By their names in the profile. docs/reference/json.md has them too."""
