"""Suggestions in the terminal: a few, each with its place, its figure and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from ...recording.text import shorten_left
from ...report_data.advice.suggestion import Suggestion
from .header import indented
from .style import Style

MOST = 5
"""Suggestions that are shown; --json has all."""


def suggestion_lines(
    suggestions: Sequence[Suggestion], style: Style, width: int, title: Callable[[str, str], Text]
) -> Iterator[Text]:
    """The section, or nothing where no rule is certain."""
    if not suggestions:
        return
    more = f"; {len(suggestions) - MOST} more with --json" if len(suggestions) > MOST else ""
    yield title("Suggestions", f"only where a rule is certain{more}")
    for each in suggestions[:MOST]:
        text = Text(style.plain(" → "))
        if each.file is not None:
            text.append(style.plain(shorten_left(f"{each.file}:{each.line}", max(20, width // 3))), "bold").append("  ")
        yield text.append(style.plain(each.figure), "bold")
        told = Text(style.plain(f"{each.text} Instead: {each.instead}.")).append(f" {each.link}", "dim")
        yield from indented(told, width, "   ")
    yield Text()
