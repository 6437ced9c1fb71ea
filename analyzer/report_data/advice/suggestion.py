"""What a rule finds, and what a report says of it."""

from __future__ import annotations

from dataclasses import dataclass

PAGE = "docs/how-to/suggestions.md"
"""The page that shows every rule before and after, with a heading for each id."""

SHARE = 0.05
"""A line has to have this part of the CPU time, at the low end of its interval: less is not worth an edit."""

MOSTLY = 0.5
"""What a rule is about has to be this part of the line's own time: else something else on the line has it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found. ``weight`` is the part of the run that it is about: the largest is shown first."""

    weight: float
    figure: str
    """What was measured, as people read it."""
    text: str
    """What happens there."""
    instead: str
    """What to write instead."""
    file_id: int = -1
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion as documents show it; text is printable, ``file`` and ``line`` are None for the whole program."""

    rule: str
    file: str | None
    line: int | None
    function: str | None
    figure: str
    text: str
    instead: str
    link: str
