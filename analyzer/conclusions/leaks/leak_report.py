"""The list of leaks, and the columns about leaks in the frames of a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct
from tachograph.format.enumerations import DOMAINS

from ...recording.call_tree import CallTree
from ...recording.frame import Frame, Row, WholeNumbers
from ...recording.opened import Recording
from ...recording.sources import Sources
from ...samples.sites import NodeSums
from ...samples.summary import Columns, Placement
from ..memory import Heap
from ..memory.counters import PYTHON
from ..memory.memory_columns import site_rows
from .cases import Case, Rate, SitePaths, judge
from .held_up import HeldUp
from .leak_definitions import LeakDefinition

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
    "processes",
)
"""Columns of ``Profile.leaks``."""
LARGEST_SMALL = 512
"""Bytes: larger blocks are none of pymalloc's."""
LARGEST_SPARSE = 1024
"""Bytes: a larger block takes more than a quarter of its page."""
NEIGHBOURS = 8
"""Blocks allocated before a block, and after it, that count as its neighbours."""
MOSTLY = 0.5
"""A block whose neighbours were released to this part at least may be what pins its page."""
FEWEST = 3
"""Fewer blocks of a line are there by chance, where others were not drawn."""

_COUNTS = ("file_id", "blocks", "mallocs", "frees", "processes")
_NUMBERS = ("likelihood", "rate_bytes_per_s", "rate_low", "rate_high", "leaked_bytes", "first_s", "path_share")

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Leaks:
    """The verdicts by line, the lines that leak, and the list of them."""

    site_line: _Ids
    """By site, its row in the frame of lines."""
    likelihood: _Floats
    """By row of the frame of lines, the highest of all processes; NaN without evidence from any block."""
    leaking: dict[int, Rate]
    """By row of the frame of lines, the rate of all processes together."""
    bounded: frozenset[tuple[int, int]]
    """File and line of those that leak in no process, and are as level as a cache in one."""
    listed: Frame
    small: Row | None
    """The line with most bytes in small blocks of Python's that live at the end, among others that were released."""
    small_of_malloc: Row | None
    """Likewise of malloc's."""


def find_leaks(
    recording: Recording,
    heap: Heap,
    tree: CallTree,
    in_scope: NDArray[np.bool_],
    selected: NDArray[np.bool_] | None,
    placement: Placement,
    labels: Frame,
    sums: NodeSums,
    sources: Sources,
    definition: LeakDefinition,
) -> Leaks:
    """Judge every line, and every call path to one, in each process by itself.

    ``placement`` and ``labels`` are those of the frame of lines.
    """
    lines = site_rows(placement, sums)
    paths = SitePaths(tree, in_scope)
    threads = recording.all_threads.per_process
    best = np.full(placement.rows, np.nan)
    cases: dict[int, list[Case]] = {}
    bounded: set[int] = set()
    for judged in judge(heap, tree, selected, lines, paths, threads, HeldUp(recording), definition):
        best[judged.lines] = np.fmax(best[judged.lines], judged.likelihood)
        bounded.update(judged.lines[judged.bounded].tolist())
        for case in judged.cases:
            cases.setdefault(case.line, []).append(case)
    rates = {line: _together(judged_paths) for line, judged_paths in cases.items()}
    listed = [
        _listed(heap, judged_paths, rates[line], labels.row(line), sources, paths)
        for line, judged_paths in cases.items()
    ]
    listed.sort(key=lambda row: -row["rate_bytes_per_s"])
    level = [labels.row(line) for line in sorted(bounded - set(cases))]
    places = frozenset((row["file_id"], row["line"]) for row in level if row["file_id"] >= 0)
    return Leaks(lines, best, rates, places, _frame(listed), *_hold_small(heap, lines, labels))


def _hold_small(heap: Heap, lines: _Ids, labels: Frame) -> tuple[Row | None, Row | None]:
    """The lines with most small blocks of Python's, and of malloc's, that may be what pins their pages.

    Those are the blocks most of whose neighbours were released: what was allocated next to each other in time lies next
    to each other, mostly.
    """
    blocks, alive = heap.blocks, heap.alive_at_end()
    # Domains that this version does not know count as native.
    of_python = PYTHON[np.where(blocks.domain < len(PYTHON), blocks.domain, 0)]
    of_python &= blocks.domain != DOMAINS.index("raw")
    pooled = (blocks.certain <= LARGEST_SMALL) & of_python
    of_malloc = (blocks.certain <= LARGEST_SPARSE) & ~pooled & (blocks.domain != DOMAINS.index("mapped"))

    def pinning(small: NDArray[np.bool_]) -> Row | None:
        chosen = np.flatnonzero(small)
        chosen = chosen[np.argsort(blocks.process[chosen], kind="stable")]
        alone = chosen[alive[chosen] & (_released_near(blocks.process[chosen], ~alive[chosen]) >= MOSTLY)]
        held = np.bincount(lines[blocks.site[alone]], weights=blocks.bytes[alone], minlength=1)
        most = int(np.argmax(held))
        return labels.row(most) if int((lines[blocks.site[alone]] == most).sum()) >= FEWEST else None

    return pinning(pooled), pinning(of_malloc)


def _released_near(process: NDArray[np.integer], released: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The part of each block's neighbours that was released; blocks are in the order of process and birth."""
    place = np.arange(len(process))
    first = np.maximum(place - NEIGHBOURS, np.searchsorted(process, process, "left"))
    end = np.minimum(place + NEIGHBOURS + 1, np.searchsorted(process, process, "right"))
    sums = np.concatenate(([0], np.cumsum(released)))
    others = np.maximum(end - first - 1, 1)
    return np.asarray((sums[end] - sums[first] - released) / others, np.float64)


def _frame(listed: list[Row]) -> Frame:
    """The rows of the list as a frame."""
    columns = {name: [row[name] for row in listed] for name in LIST_COLUMNS}
    numbers = {name: np.array(columns[name], np.float64) for name in _NUMBERS}
    counts = {name: np.array(columns[name], np.int64) for name in _COUNTS}
    return Frame({**columns, "line": WholeNumbers.of(columns["line"]), **numbers, **counts})


def _together(cases: list[Case]) -> Rate:
    """The rate of all processes together: the sum where they leaked at the same time, else the average."""
    if len(cases) == 1:
        return cases[0].rate
    covered, until = 0.0, -np.inf
    for case in sorted(cases, key=lambda each: each.first_ns):
        end = case.first_ns + case.elapsed_ns
        covered += max(0.0, end - max(case.first_ns, until))
        until = max(until, end)
    rate, low, high = (sum(case.rate[end] * case.elapsed_ns for case in cases) / covered for end in range(3))
    return rate, low, high


def _listed(heap: Heap, cases: list[Case], rate: Rate, place: Row, sources: Sources, paths: SitePaths) -> Row:
    """A row of the list: a line that leaks, in as many processes as there are cases."""
    leaked = sum(case.leaked for case in cases)
    by_path: dict[int, float] = {}
    for case in cases:
        for path, amount in case.by_path.items():
            by_path[path] = by_path.get(path, 0.0) + amount
    heaviest = max(by_path, key=lambda path: by_path[path], default=-1)
    worst = max(cases, key=lambda case: case.likelihood)
    return {
        **{name: place[name] for name in ("file", "line", "function", "file_id")},
        "source": None if place["line"] is None else sources.line(place["file_id"], place["line"]),
        "likelihood": worst.likelihood,
        "rate_bytes_per_s": rate[0],
        "rate_low": rate[1],
        "rate_high": rate[2],
        "leaked_bytes": leaked,
        "blocks": sum(case.blocks for case in cases),
        "mallocs": sum(case.mallocs for case in cases),
        "frees": sum(case.frees for case in cases),
        "first_s": (min(case.first_ns for case in cases) - heap.zero_ns) / 1e9,
        "native": _native(heap, np.concatenate([case.kept for case in cases])),
        "path": paths.names(heaviest) if heaviest >= 0 else [],
        "path_share": by_path[heaviest] / leaked if heaviest >= 0 and leaked > 0 else np.nan,
        "processes": len(cases),
    }


@dataclass(frozen=True)
class LeakColumns:
    """Makes the columns about leaks; NaN if memory was not recorded."""

    leaks: Leaks | None
    sums: NodeSums | None
    """The measures of the heap, whose sites the leaks are about."""

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """The columns: the highest likelihood of the lines in a row, and the sum of the rates of those that leak."""
        del own, total
        values = np.full((placement.rows, len(COLUMNS)), np.nan)
        if self.leaks is not None:
            rows = site_rows(placement, self.sums)
            values[:, 1:] = 0.0
            scores = self.leaks.likelihood[self.leaks.site_line]
            scored = ~np.isnan(scores)
            best = np.full(placement.rows, -1.0)
            np.maximum.at(best, rows[scored], scores[scored])
            values[:, 0] = np.where(best >= 0, best, np.nan)
            for line, rate in self.leaks.leaking.items():
                for row in distinct(rows[self.leaks.site_line == line]).tolist():
                    values[row, 1:] += rate
        return dict(zip(COLUMNS, values.T, strict=True))


def _native(heap: Heap, blocks: _Ids) -> str | None:
    """The native code that allocated most of the blocks, unless that is the interpreter."""
    frames, weight = heap.blocks.native_frame[blocks], heap.blocks.bytes[blocks]
    has_frame = frames >= 0
    if not has_frame.any():
        return None
    return heap.sites.native(int(np.argmax(np.bincount(frames[has_frame], weights=weight[has_frame]))))
