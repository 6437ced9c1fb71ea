"""Colours, glyphs and trees of the terminal report: with colours, without, and without Unicode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.text import Text

COLOURS = {
    "python": "#4c9be8",
    "native": "#e8924c",
    "kernel": "#c678dd",
    "unknown": "#888888",
    "wait": "#5c6370",
    "memory": "#56b6a2",
    "gpu": "#d3c14a",
}


Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class Branches:
    """The signs in front of the nodes of a tree: of a child, of the last one, and below each of these."""

    child: str
    last: str
    below_child: str
    below_last: str

    def rows(
        self, roots: Sequence[Node], children: Callable[[Node], Sequence[Node]], *, straight: bool = False
    ) -> Iterator[tuple[str, Node]]:
        """The nodes from top to bottom, each behind the signs in front of it; a loop, because trees may be deep.

        ``straight``: an only child stands right below its parent.
        """
        waiting = [("", "", root) for root in reversed(roots)]
        while waiting:
            front, below, node = waiting.pop()
            yield front, node
            theirs = children(node)
            if straight and len(theirs) == 1:
                waiting.append((below, below, theirs[0]))
                continue
            for place, child in enumerate(reversed(theirs)):
                signs = (self.last, self.below_last) if place == 0 else (self.child, self.below_child)
                waiting.append((below + signs[0], below + signs[1], child))


WIDE = Branches("├─ ", "└─ ", "│  ", "   ")
NARROW = Branches("├ ", "└ ", "│ ", "  ")
INDENTED = Branches("  ", "  ", "  ", "  ")


@dataclass(frozen=True, slots=True)
class Style:
    """Capabilities of one console: colours and Unicode."""

    colour: bool
    unicode: bool

    @classmethod
    def of(cls, console: Console) -> Style:
        """The style that fits a console."""
        encoding = (console.encoding or "ascii").lower()
        return cls(console.color_system is not None and not console.no_color, encoding.startswith("utf"))

    def glyph(self, part: str) -> str:
        """The block that stands for a part of the time; without colours each part has its own."""
        if not self.unicode:
            return {"python": "#", "native": "=", "kernel": "-", "unknown": "?", "wait": "."}[part]
        if self.colour:
            return "━"
        return {"python": "█", "native": "▓", "kernel": "▒", "unknown": "?", "wait": "░"}[part]

    def plain(self, text: str) -> str:
        """``text`` with this program's own signs (not the recording's) in ASCII where the console has nothing else."""
        if self.unicode:
            return text
        for sign, instead in (
            ("±", "+-"),
            ("…", "~"),
            ("·", "-"),
            ("✓", "ok:"),
            ("⋮", ":"),
            ("├", "|"),
            ("│", "|"),
            ("└", "`"),
            ("→", "->"),
            ("“", '"'),
            ("”", '"'),
            ("─", "-"),
            ("µ", "u"),
        ):
            text = text.replace(sign, instead)
        return text.encode("ascii", "replace").decode("ascii")

    def print(self, console: Console, line: Text) -> None:
        """Prints a line as it is, or without colours and in ASCII where the console has nothing else."""
        text = line.plain if self.unicode else self.plain(line.plain)
        if not console.is_terminal and not console.record and text.isprintable() and line.cell_len <= console.width:
            console.file.write(f"{text}\n")  # a file or a pipe gets no colours, and what fits need not be laid out
        else:
            # rich joins what it prints into a text of its own, which has neither.
            cut = line.overflow if self.unicode or line.overflow != "ellipsis" else "crop"
            shown = line if self.unicode else Text(text)
            console.print(shown, highlight=False, soft_wrap=False, no_wrap=line.no_wrap, overflow=cut)

    def print_lines(self, console: Console, lines: Iterable[Text]) -> None:
        """Prints lines, each cut at the console's width."""
        for line in lines:
            line.rstrip()
            line.truncate(console.width, overflow="ellipsis")
            self.print(console, line)

    def curve(self, points: Sequence[tuple[float, float]], width: int) -> str:
        """A curve through points (seconds, amount) in ``width`` characters, each the highest of its part of time."""
        levels = "▁▂▃▄▅▆▇█" if self.unicode else ".:-=+*%#"
        times, amounts = np.array([time for time, _ in points]), np.array([amount for _, amount in points])
        bounds = np.linspace(times[0], times[-1], width + 1)
        top = float(amounts.max())
        if top <= 0:
            return " " * width
        text = ""
        for start, end in pairwise(bounds.tolist()):
            inside = amounts[(times > start) & (times < end)]
            ends = np.interp([start + (end - start) / 1e6, end - (end - start) / 1e6], times, amounts)
            highest = max(float(ends.max()), float(inside.max(initial=0.0)))
            text += " " if highest < top / 1000 else levels[min(len(levels) - 1, int(highest / top * len(levels)))]
        return text

    def bar(self, parts: Sequence[tuple[str, float]], width: int, whole: float | None = None) -> Text:
        """A bar of ``width`` cells, divided as ``parts`` (part, amount) of ``whole`` (their sum if None) are."""
        total = sum(amount for _, amount in parts) if whole is None else whole
        bar = Text()
        if total <= 0:
            return bar
        drawn, reached = 0, 0.0
        for part, amount in parts:
            reached += amount
            end = min(width, round(reached / total * width))
            bar.append(self.glyph(part) * (end - drawn), COLOURS[part])
            drawn = max(drawn, end)
        return bar
