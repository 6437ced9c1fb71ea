"""The list of leaks, and the columns about leaks in the frames of a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..calltree import CallTree
from ..heap import NEVER, Heap
from ..heap.columns import site_rows
from ..intervals import poisson_sums
from ..nodes import NodeSums
from ..recording import Recording
from ..sources import Sources
from ..summary import Placement
from .definitions import LeakDefinition
from .evidence import Histories, Verdicts
from .paths import CallPaths, importing

COLUMNS = ("leak_likelihood", "leak_rate_bytes_per_s", "leak_rate_bytes_per_s_low", "leak_rate_bytes_per_s_high")
LIST_COLUMNS = (
    "file",
    "line",
    "function",
    "source",
    "file_id",
    "likelihood",
    "rate_bytes_per_s",
    "rate_low",
    "rate_high",
    "leaked_bytes",
    "blocks",
    "mallocs",
    "frees",
    "first_s",
    "native",
    "path",
    "path_share",
)
"""Columns of ``Profile.leaks``."""

MIN_BLOCKS = 8
"""Call paths with fewer blocks that were kept are not judged by themselves."""

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Leaks:
    """The verdicts by line, the lines that leak, and the list of them."""

    site_line: _Ids
    """By site, its row in the frame of lines."""
    likelihood: _Floats
    """By row of the frame of lines; NaN where no block says anything."""
    leaking: dict[int, tuple[float, float, float]]
    """By row of the frame of lines: bytes per second, with the ends of the interval."""
    listed: pd.DataFrame


def find_leaks(
    recording: Recording,
    heap: Heap,
    tree: CallTree,
    in_scope: NDArray[np.bool_],
    chosen: NDArray[np.bool_] | None,
    placement: Placement,
    labels: pd.DataFrame,
    sums: NodeSums,
    sources: Sources,
    definition: LeakDefinition,
) -> Leaks:
    """Asks the definition about every line, and about every call path to one.

    ``placement`` and ``labels`` are those of the frame of lines.
    """
    lines = site_rows(placement, sums)
    histories, index = _histories(heap, tree, chosen, lines)
    by_line = definition.judge(histories)
    paths = CallPaths(tree, in_scope)
    blocks_path, path_line = _paths(heap, histories, index, paths)
    by_path = definition.judge(histories.regrouped(blocks_path, len(path_line)))
    listed: list[dict[str, object]] = []
    rates: dict[int, tuple[float, float, float]] = {}
    leaking_lines = set(np.flatnonzero(by_line.leaking).tolist())
    leaking_paths = np.flatnonzero(by_path.leaking)
    for line in sorted(leaking_lines | set(path_line[leaking_paths].tolist())):
        mine = leaking_paths[path_line[leaking_paths] == line]
        whole = line in leaking_lines
        verdicts, group = (by_line, line) if whole else (by_path, int(mine[np.argmax(by_path.leaked[mine])]))
        rate = _rate(verdicts, group)
        if not whole:
            rate = tuple(sum(values) for values in zip(*(_rate(by_path, int(path)) for path in mine), strict=True))
        rates[line] = rate
        every = np.flatnonzero(path_line == line)
        heaviest = int(every[np.argmax(by_path.leaked[every])]) if len(every) else -1
        leaked = float(by_line.leaked[line]) if whole else float(by_path.leaked[mine].sum())
        kept = index[(histories.group == line) & np.isinf(histories.death)]
        place = labels.iloc[line]
        listed.append(
            {
                **{name: place[name] for name in ("file", "line", "function", "file_id")},
                "source": None if pd.isna(place["line"]) else sources.line(int(place["file_id"]), int(place["line"])),
                "likelihood": float(verdicts.likelihood[group]),
                "rate_bytes_per_s": rate[0],
                "rate_low": rate[1],
                "rate_high": rate[2],
                "leaked_bytes": leaked,
                "blocks": int(verdicts.blocks[group] if whole else by_path.blocks[mine].sum()),
                "mallocs": int(verdicts.mallocs[group]),
                "frees": int(verdicts.frees[group]),
                "first_s": float(verdicts.first[group]) + (heap.start_ns - heap.zero_ns) / 1e9,
                "native": _native(heap, kept),
                "path": paths.names(heaviest) if heaviest >= 0 else [],
                "path_share": float(by_path.leaked[heaviest]) / leaked if heaviest >= 0 and leaked > 0 else np.nan,
            }
        )
    frame = pd.DataFrame(listed, columns=list(LIST_COLUMNS)).astype({"line": "Int64"})
    frame = frame.sort_values("rate_bytes_per_s", ascending=False, kind="stable").reset_index(drop=True)
    return Leaks(lines, by_line.likelihood, rates, frame)


@dataclass(frozen=True)
class LeakColumns:
    """Makes the columns about leaks; NaN if memory was not recorded."""

    leaks: Leaks | None
    sums: NodeSums | None
    """The measures of the heap, whose sites the leaks are about."""

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> pd.DataFrame:
        """The columns: the highest likelihood of the lines in a row, and the sum of the rates of those that leak."""
        del own, total
        values = np.full((placement.rows, len(COLUMNS)), np.nan)
        if self.leaks is not None:
            rows = site_rows(placement, self.sums)
            values[:, 1:] = 0.0
            scores = self.leaks.likelihood[self.leaks.site_line]
            known = ~np.isnan(scores)
            best = np.full(placement.rows, -1.0)
            np.maximum.at(best, rows[known], scores[known])
            values[:, 0] = np.where(best >= 0, best, np.nan)
            for line, rate in self.leaks.leaking.items():
                for row in np.unique(rows[self.leaks.site_line == line]).tolist():
                    values[row, 1:] += rate
        return pd.DataFrame(values, columns=list(COLUMNS))


def _histories(heap: Heap, tree: CallTree, chosen: NDArray[np.bool_] | None, lines: _Ids) -> tuple[Histories, _Ids]:
    """The followed blocks that were allocated in the window before the end, and their numbers among all blocks."""
    blocks = heap.blocks
    ends = heap.ends_ns[blocks.process]
    mine = blocks.followed & heap.allocated_in_window() & (blocks.birth_ns <= ends) & heap.of_threads(chosen)
    index = np.flatnonzero(mine)
    end_ns = int(ends[index].max()) if len(index) else heap.end_ns
    death = (blocks.death_ns[index] - heap.start_ns) / 1e9
    still = (blocks.death_ns[index] == NEVER) | (blocks.death_ns[index] > ends[index])
    below = np.append(importing(tree), np.zeros(len(heap.sites) - heap.sites.nodes, np.bool_))
    return (
        Histories(
            group=lines[blocks.site[index]],
            groups=int(lines.max()) + 1 if len(lines) else 0,
            thread=blocks.thread[index].astype(np.int64),
            size=blocks.certain[index],
            birth=(blocks.birth_ns[index] - heap.start_ns) / 1e9,
            death=np.where(still, np.inf, death),
            weight=blocks.bytes[index],
            variance=blocks.variance[index],
            duration=max((end_ns - heap.start_ns) / 1e9, 1e-9),
            growth=_growth(heap, end_ns),
            peak=heap.peak.bytes if not np.isnan(heap.peak.bytes) else 0.0,
            importing=below[blocks.site[index]],
        ),
        index,
    )


def _growth(heap: Heap, end_ns: int) -> float:
    """By what part of its highest the footprint grew: the slope of the regression line over the rows, by trapezoids."""
    books = heap.books
    rows = np.flatnonzero(~np.isnan(books.footprint) & (books.time_ns >= heap.start_ns) & (books.time_ns <= end_ns))
    if len(rows) < 2 or not heap.peak.bytes > 0:
        return 0.0
    time = (books.time_ns[rows] - heap.start_ns) / 1e9
    # Rows come where much happens: each counts for the time that it stands for.
    step = np.diff(time)
    weight = (np.append(step, 0.0) + np.insert(step, 0, 0.0)) / 2
    if weight.sum() <= 0:
        return 0.0
    centre = np.average(time, weights=weight)
    spread = np.average((time - centre) ** 2, weights=weight)
    if spread <= 0:
        return 0.0
    held = books.footprint[rows]
    slope = np.average((time - centre) * (held - np.average(held, weights=weight)), weights=weight) / spread
    return float(slope * (time[-1] - time[0]) / heap.peak.bytes)


def _paths(heap: Heap, histories: Histories, index: _Ids, paths: CallPaths) -> tuple[_Ids, _Ids]:
    """The call path of each block (-1: none, or too few blocks were kept), and the line of each path."""
    site = heap.blocks.site[index]
    path = np.full(len(index), -1, np.int64)
    enough = histories.counted(np.isinf(histories.death)) >= MIN_BLOCKS
    wanted = (site < heap.sites.nodes) & enough[histories.group]
    if wanted.any():
        path[wanted] = paths.numbers(site[wanted])
    line = np.zeros(len(paths), np.int64)
    placed = path >= 0
    line[path[placed]] = histories.group[placed]
    return path, line


def _rate(verdicts: Verdicts, group: int) -> tuple[float, float, float]:
    """Bytes per second that are not given back, with the ends of the 95 % interval."""
    leaked, beyond, variance = (
        values[group : group + 1] for values in (verdicts.leaked, verdicts.beyond, verdicts.variance)
    )
    low, high = poisson_sums(leaked - beyond, beyond, variance)
    elapsed = float(verdicts.elapsed[group])
    return float(leaked[0]) / elapsed, float(low[0]) / elapsed, float(high[0]) / elapsed


def _native(heap: Heap, blocks: _Ids) -> str | None:
    """The native code that allocated most of the blocks, unless that is the interpreter."""
    frames, weight = heap.blocks.native_frame[blocks], heap.blocks.bytes[blocks]
    known = frames >= 0
    if not known.any():
        return None
    return heap.sites.native(int(np.argmax(np.bincount(frames[known], weights=weight[known]))))
