"""Judgements about memory: growth that is never given back, pages that allocators keep or blocks pin, and copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from ...recording.frame import Frame, Row
from ...recording.sources import Sources
from ...source_code.source import Module, dotted, parse
from .where import MALLOC, PYMALLOC, Verdict, Where

LEAST_BYTES, LEAST_SHARE = 5e6, 0.05
"""Less than this, or than this part of what is resident, is not worth a judgement."""

SPARSE = 0.5
"""The memory that an allocator keeps is fragmented if this part of it lies in pools or pages that few blocks pin."""

_CACHES = frozenset({"cache", "lru_cache", "cached", "cachedmethod", "alru_cache", "cached_property"})
"""Last names of decorators that keep what a function returns."""


class Leaking(Protocol):
    """The verdicts on lines that the judgements need: those that leak, and those that stay level."""

    @property
    def listed(self) -> Frame:
        """The lines that leak."""
        ...

    @property
    def bounded(self) -> frozenset[tuple[int, int]]:
        """File and line of those that are as level as a cache."""
        ...

    @property
    def small(self) -> Row | None:
        """The line with most bytes in small blocks of Python's that live at the end."""
        ...

    @property
    def small_of_malloc(self) -> Row | None:
        """The line with most bytes in small blocks of malloc's that live at the end."""
        ...


def find_verdicts(where: Where, leaks: Leaking | None, lines: Frame, sources: Sources) -> Iterator[Verdict]:
    """The judgements, those about lines first."""
    whole = where.whole
    least = max(LEAST_BYTES, LEAST_SHARE * whole.resident_bytes)
    leaking = [] if leaks is None else list(leaks.listed.rows())
    level: frozenset[tuple[int, int]] = frozenset() if leaks is None else leaks.bounded
    decorated = _Decorated(sources)
    for leak in leaking:
        name = "cache" if decorated.is_cached(leak) else "leak"
        yield _of_line(name, float(leak["leaked_bytes"]), leak)
    leaking_lines = {(leak["file_id"], leak["line"]) for leak in leaking}
    for line in lines.take(lines["live_at_end_bytes"] >= least).rows() if "live_at_end_bytes" in lines else ():
        place = line["file_id"], line["line"]
        if place not in leaking_lines and (place in level or decorated.is_cached(line)):
            yield _of_line("cache", float(line["live_at_end_bytes"]), line)
    for kept in whole.kept_by:
        if kept.bytes is not None and kept.bytes >= least:
            yield Verdict("kept", kept.bytes, kept.allocator)
    yield from _fragmented(where, leaks, least)
    copied = whole.copied_after_fork_bytes
    if copied is not None and copied >= least:
        yield Verdict("copied-after-fork", copied)


def _fragmented(where: Where, leaks: Leaking | None, least: float) -> Iterator[Verdict]:
    """Pages that few blocks pin, of each allocator whose blocks are looked at."""
    whole = where.whole
    small, of_malloc = (None, None) if leaks is None else (leaks.small, leaks.small_of_malloc)
    sparse = (
        (PYMALLOC, whole.sparse_bytes, whole.sparse_live_bytes, small),
        (MALLOC, whole.malloc_sparse_bytes, whole.malloc_sparse_live_bytes, of_malloc),
    )
    for allocator, pages, live, holder in sparse:
        if pages is None or live is None:
            continue
        kept_there = sum(each.bytes or 0.0 for each in whole.kept_by if each.allocator == allocator)
        if pages - live >= max(least, SPARSE * kept_there):
            fragmented = Verdict("fragmented", pages - live, allocator, live)
            if holder is not None:
                fragmented = replace(fragmented, file=holder["file"], line=holder["line"], function=holder["function"])
            yield fragmented


def _of_line(verdict: str, size: float, row: Row) -> Verdict:
    return Verdict(verdict, size, file=row["file"], line=row["line"], function=row["function"])


class _Decorated:
    """Functions of the sources that have decorators; each file is parsed once."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._modules: dict[int, Module | None] = {}

    def is_cached(self, row: Row) -> bool:
        """True if the line is in a function whose results a decorator keeps."""
        file, line = row["file_id"], row["line"]
        if line is None or file < 0:
            return False
        if file not in self._modules:
            self._modules[file] = parse(self._sources.text(file) or "")
        module = self._modules[file]
        if module is None:
            return False
        inside = [
            node
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        decorators = [each for node in inside for each in node.decorator_list]
        names = (dotted(each.func if isinstance(each, ast.Call) else each) or "" for each in decorators)
        return any(name.rpartition(".")[2] in _CACHES for name in names)
