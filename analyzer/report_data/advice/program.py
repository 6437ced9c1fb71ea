"""Input and output of suggestion rules: a profile with its parsed sources, findings, suggestions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from ...profile.profile import Profile
from ...source_code.names import Names
from ...source_code.source import LoopNode, Module, parse
from ..numbers import percent, seconds, size
from .facts import Below, Facts, Line

PAGE = "docs/how-to/suggestions.md"
"""The page that shows every rule before and after, with a heading for each id."""
HELP = "tachograph help suggestions"
"""The command that shows that page; documents in JSON have its place in the repository."""

SHARE = 0.05
"""A line has to have this part of the CPU time, at the low end of its interval: less is not worth an edit."""

MOSTLY = 0.5
"""A rule's subject has to be this part of the line's own time: else something else on the line has it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a rule. ``weight`` is the part of the run that it is about: the largest is shown first."""

    weight: float
    figure: str
    """The measurement, as people read it."""
    text: str
    """The problem."""
    instead: str
    """The code to write instead."""
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
    certainty: str = "certain"
    """``likely`` where a rule knows the kind of work, and not the functions themselves."""

    @property
    def remedy(self) -> str:
        """The code to write instead, as a sentence."""
        return f"{'Perhaps' if self.certainty == 'likely' else 'Instead'}: {self.instead}."


MAX_LINES = 60
"""Lines that are looked at: more than 20 cannot have 5 % of the CPU time each, the others have copies."""

MAX_CELLS = 200
"""Cells of a notebook whose imports are looked at."""

MAX_FILES = 20
"""Files that are looked through whole."""

COPY_RATE = 250e6
"""Bytes per second of CPU time that a line has to copy, at the low end of its interval: a copy of 5 GB/s has 5 %."""

COPY_SHARE = 0.10
"""And that part of all that was copied."""


class Parsed:
    """Source texts, each parsed once, however many answers are looked at."""

    def __init__(self) -> None:
        self.names = lru_cache(maxsize=MAX_LINES)(_names)
        """The parsed text; None if it cannot be parsed."""


def _names(text: str) -> Names | None:
    module = parse(text)
    return None if module is None else Names(module)


@dataclass(frozen=True)
class Spot:
    """A line that matters, with its source."""

    program: Program
    line: Line
    names: Names

    @property
    def module(self) -> Module:
        """The parsed file."""
        return self.names.module

    @cached_property
    def below(self) -> Below:
        """The functions that the line called."""
        return self.program.facts.below(self.line)

    @property
    def busy(self) -> bool:
        """True if the line has enough of the CPU time."""
        return self.line.low >= SHARE

    @property
    def copies(self) -> bool:
        """True if the line certainly copies much."""
        return self.program.copies(self.line)

    def expressions(self) -> Iterator[ast.expr]:
        """The expressions on the line."""
        return self.module.expressions(self.line.line)

    def loop(self, node: ast.AST) -> LoopNode | None:
        """The innermost loop that runs a node."""
        loops = self.module.loops(node)
        return loops[0] if loops else None

    def part(self, cpu_s: float) -> float:
        """``cpu_s`` as a part of the line's CPU time."""
        return cpu_s / self.line.cpu_s if self.line.cpu_s > 0 else 0.0

    def time_figure(self) -> str:
        """The line's CPU time, as people read it."""
        return time_figure(self.line.share, self.line.cpu_s)

    def copy_figure(self) -> str:
        """The bytes that the line copied, as people read them."""
        copied, totals = self.line.copied_bytes, self.program.profile.totals
        rate = copied / totals.cpu_s if totals.cpu_s > 0 else 0.0
        return f"{size(round(copied))} copied ({size(round(rate))} per second of CPU time)"

    def finding(self, text: str, instead: str, figure: str | None = None, weight: float | None = None) -> Finding:
        """A finding about this line."""
        return Finding(
            self.line.share if weight is None else weight,
            figure or self.time_figure(),
            text,
            instead,
            self.line.file_id,
            self.line.line,
            self.program.facts.function(self.line.file_id, self.line.line),
        )


class Program:
    """A profile, as rules look at it."""

    def __init__(self, profile: Profile, parsed: Parsed) -> None:
        self.profile = profile
        self.facts = Facts(profile)
        self._parsed = parsed
        self._by_file: dict[int, Names | None] = {}
        self.told: dict[tuple[int, int | None], str] = {}
        """The rules that have spoken, by file and line."""

    @cached_property
    def ran_s(self) -> float | None:
        """Seconds of the only main thread with a processor or waiting: what a busy machine adds is left out.

        None where that is not known, or there are several processes.
        """
        threads = self.profile.frames.threads
        main, wall = threads.take(threads["main"]), self.profile.totals.wall_s
        if not wall or len(main) != 1:
            return None
        lacked = float(main["cpu_wait_s"][0])
        return wall - lacked if 0.0 <= lacked < wall else None

    @cached_property
    def spots(self) -> list[Spot]:
        """The lines that matter and whose source can be parsed, most CPU time first."""
        candidates = (spot for line in self.facts.lines if (spot := self._spot(line)) is not None)
        return list(islice(candidates, MAX_LINES))

    def _spot(self, line: Line) -> Spot | None:
        if line.low < SHARE and not self.copies(line):
            return None
        names = self.names(line.file_id)
        return None if names is None else Spot(self, line, names)

    def copies(self, line: Line) -> bool:
        """True if a line certainly copies much."""
        totals = self.profile.totals
        least = max(COPY_RATE * totals.cpu_s, COPY_SHARE * (totals.copied_bytes or 0.0))
        return least > 0 and line.copied_low >= least

    def coroutine(self, file: int, line: int) -> str | None:
        """The name of the coroutine (``async def``) that a line is in; None if it is in none, or not known."""
        names = self.names(file)
        statements = [] if names is None else names.module.statements.get(line, [])
        if names is None or not statements:
            return None
        scope = names.module.scope(statements[0])
        # A lambda or a generator expression on the line is a function of its own: nothing is certain.
        inner = any(isinstance(each, ast.Lambda | ast.GeneratorExp) for each in names.module.expressions(line))
        return scope.name if isinstance(scope, ast.AsyncFunctionDef) and not inner else None

    def files(self) -> Iterator[tuple[int, Names]]:
        """The parsed files of the user's own that have CPU time, the most first."""
        spent: dict[int, float] = {}
        for line in self.facts.lines:
            spent[line.file_id] = spent.get(line.file_id, 0.0) + line.cpu_s
        for file in sorted(spent, key=lambda each: -spent[each])[:MAX_FILES]:
            names = self.names(file)
            if names is not None:
                yield file, names

    def names(self, file: int) -> Names | None:
        """The parsed source of a file; None if it is not in the recording or cannot be parsed."""
        if file not in self._by_file:
            text = self.profile.sources.text(file)
            names = self._parsed.names(text) if text else None
            if names is not None and file in self.cells:
                names = Names(names.module, self._imported_in_cells)
            self._by_file[file] = names
        return self._by_file[file]

    @cached_property
    def cells(self) -> list[int]:
        """The files that are cells of a notebook."""
        paths = enumerate(self.profile.calls.tree.paths)
        return [file for file, path in paths if path.startswith("In [")][:MAX_CELLS]

    @cached_property
    def _imported_in_cells(self) -> dict[str, str]:
        """The imports at the top of all cells together."""
        imported: dict[str, str] = {}
        for file in self.cells:
            text = self.profile.sources.text(file)
            names = self._parsed.names(text) if text else None
            imported |= {} if names is None else names.modules
        return imported


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its id (also the heading on ``suggestion.PAGE``), and what finds its cases.

    ``needs`` says in words which facts it is silent without, ``threshold`` from where on it speaks, and why.
    """

    id: str
    needs: str
    threshold: str
    find: Callable[[Program], Iterator[Finding]]
    likely: bool = False
    """True if it knows the kind of work only: its remedy is one that may help."""


def time_figure(share: float, cpu_s: float) -> str:
    """CPU time, as people read it."""
    return f"{percent(share)} % of the CPU time ({seconds(cpu_s)})"
