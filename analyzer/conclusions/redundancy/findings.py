"""Redundant loads and stores of native code below Python lines, from the table ``redundancies`` (PieProf, FSE 2021).

A pair of accesses is *redundant* if both are of the same kind, to the same bytes, with the same value. In ordinary code
most loads are (Witch, ASPLOS 2018), so a share alone says nothing. What counts here is a pair whose two accesses belong
to two native calls of Python code and to the same native function: the second call did again what the first one did.
(A value that one function stores and another one loads, or that lies in recycled memory, is no evidence for a
repetition, nor against it. Nor are the loads of a product of matrices from the buffer into which its operands are
copied.)

Pairs, results, source and time are witnesses of one sum (``score``). A library may repeat much whatever it is called
for: tables of constants, a lookup of types at each call. That shows on lines that have no other reason to repeat
themselves (``usual_share``): the share that loads and stores are held against is raised by what most of the library's
lines repeat beyond doubt.

A watch that was replaced or cut says nothing about its pair, and is left out; watches are replaced at random, so the
rest is a sample of all (reservoir sampling). One that ended because the memory was given back, or because the bytes
were stored over again and again, had no redundant partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...recording.call_tree import NOTHING
from ...recording.filter import Filter
from ...recording.frame import Frame, Row, WholeNumbers
from ...recording.opened import Recording
from ...recording.sources import Sources
from ...recording.time_window import Window
from ...samples.groups import Totals
from ...samples.stream import CpuBatch, Stream, WaitBatch
from ...source_code.names import Names
from ...source_code.source import parse
from ...statistics.grouped_sums import summed
from ...statistics.intervals import poisson_sums, wilson
from ..pools.submitters import NO_LIBRARY
from . import COLUMNS
from .access_places import Places
from .borders import Borders
from .candidates import MISUSE, SLICE, Evidence, Kind
from .categories import Verdict, by_results, categorise
from .kernels import is_dispatch, is_kernel
from .results import are_of_one_size, are_repeated, sizes_vary
from .score import Score, Witness, counted, of_elements, of_time, relevant, said, together
from .usual import beyond, usual_share
from .watched import BLOCKS, Ids, Mask, Watched, read_watched

LEAST_TRAPS = 10
"""Pairs of a line that says what is usual, and of those beside the work of a call."""
LEAST_RESULTS = 5
"""Blocks that say how a line's sizes change."""
LEAST_SHARE = 0.01
"""Of all CPU time in question, at the lower end of a quantity: less is not worth a reader's time."""
LEAST_LINE = 0.05
"""The same of a whole line, where it is repeated as a whole, or few pairs are the evidence."""
MOST_TIME = 0.5
"""Of a line's samples, at the lower end, in what its source names: that is evidence without pairs."""
_KINDS: tuple[Kind, ...] = ("load", "store", "result")
MOST_CALLERS = 8
MOST_LINES = 8
"""Of a finding, that are named."""


@dataclass(frozen=True)
class Lines:
    """The lines that samples are charged to: ``of_node`` is the row of ``labels`` of each node of the call tree."""

    of_node: Ids
    parent: Ids
    """Of each node; NOTHING at roots."""
    labels: Frame
    sources: Sources


class NativeTimeSums:
    """The sink for the time of native code by line, and its variance."""

    times = False

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._squared = Totals(("squared",))

    def cpu(self, batch: CpuBatch) -> None:
        """Takes the squares of weights; the weights themselves are added up by group."""
        self._squared.add(batch.group, len(self._stream.groups), {"squared": batch.squared})

    def waits(self, batch: WaitBatch) -> None:
        """Waiting is no time of native code."""

    def of_lines(self, borders: Borders, lines: Lines) -> _Time:
        """Sums by line."""
        groups, cpu_ns = self._stream.groups.columns, self._stream.sums.totals["cpu_ns"]
        self._squared.grow(len(cpu_ns))
        called = borders.called_library(groups["stack"], groups["native"], groups["native_stack"])
        below = called != NO_LIBRARY
        line, count = lines.of_node[groups["stack"][below]], len(lines.labels)
        squared = summed(line, self._squared["squared"][below], count)
        whole = groups["stack"] != NOTHING
        whole_ns = summed(lines.of_node[groups["stack"][whole]], cpu_ns[whole], count)
        return _Time(summed(line, cpu_ns[below], count), squared, whole_ns, float(cpu_ns.sum()))


def find_redundancies(
    recording: Recording, lines: Lines, window: Window, chosen: Filter, time_sums: NativeTimeSums
) -> Frame:
    """The lines whose native calls repeat loads or stores, the largest quantity first. COLUMNS are its columns."""
    borders = Borders(recording)
    time = time_sums.of_lines(borders, lines)
    judge = _Judge(read_watched(recording, borders, lines.of_node, window, chosen), borders, lines, time)
    rows = judge.all_rows()
    rows.sort(key=lambda row: -row["quantity_s"])
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in COLUMNS}
    numbers = {
        name: np.array(columns[name], np.float64)
        for name in (
            "quantity_s",
            "quantity_s_low",
            "quantity_s_high",
            "line_cpu_s",
            "redundant_share",
            "base_rate",
            "score",
        )
    }
    places = {name: WholeNumbers.of([row[name] for row in rows]) for name in ("line", "partner_line")}
    return Frame({**columns, **numbers, **places, "traps": np.array(columns["traps"], np.int64)})


@dataclass(frozen=True)
class _Repeating:
    """Accesses of one or more lines: ``redundant`` of ``traps`` pairs in two calls, of ``watches`` accesses in all.

    That is one line, or several of a function that repeat themselves for the same reason.
    """

    lines: tuple[int, ...]
    """The one with the most CPU time first, of those with redundant pairs."""
    called: int
    """The library."""
    traps: int
    redundant: int
    watches: int
    share: float
    share_low: float
    shown: Places
    verdict: Verdict
    sizes: tuple[int, int, int] | None = None
    """Of blocks that grow: the smallest, the largest, and how many different ones there were."""
    time_part: float = 0.0
    """Of its samples, at the lower end, in what its source gives as a reason, if that is the evidence."""


_Line = dict[Kind, _Repeating]
"""A line, or several together: their accesses by kind."""


@dataclass(frozen=True)
class _Time:
    """CPU time of native code by line, with the sum of its squares, and all CPU time in question."""

    cpu_ns: NDArray[np.float64]
    squared: NDArray[np.float64]
    whole_ns: NDArray[np.float64]
    """CPU time of each line with that of Python."""
    all_ns: float


class _Judge:
    """Decides which lines are findings, and of which category."""

    def __init__(self, watched: Watched, borders: Borders, lines: Lines, time: _Time) -> None:
        self._watched = watched
        self._borders = borders
        self._lines = lines
        self._time = time
        self._names: dict[int, Names | None] = {}
        self._repeating: dict[Kind, dict[int, _Repeating]] = {}

    def all_rows(self) -> list[Row]:
        """The findings: lines that stand out, and then lines of a function that do so together."""
        alone: list[Row] = []
        rest: dict[tuple[object, ...], list[_Line]] = {}
        for line in sorted({line for kind in _KINDS for line in self._all(kind)}):
            each: _Line = {kind: one for kind in _KINDS if (one := self._all(kind).get(line)) is not None}
            row = self._row(each)
            if row is not None:
                alone.append(row)
            elif (kind := _leading(each)) is not None and each[kind].verdict.category is not None:
                verdict, place = each[kind].verdict, self._lines.labels.row(line)
                if not verdict.by_paths:
                    group = (place["file_id"], place["function"], verdict.category, verdict.spends)
                    rest.setdefault(group, []).append(each)
        pooled = (self._row(_pooled(each, self._time.whole_ns)) for each in rest.values() if len(each) > 1)
        return alone + [row for row in pooled if row is not None]

    def _all(self, kind: Kind) -> dict[int, _Repeating]:
        """Counts of all lines with pairs of a kind."""
        if kind not in self._repeating:
            watched = self._watched
            pairs, answered = watched.pairs(kind), watched.answered(kind)
            order = np.argsort(watched.line, kind="stable")
            within = watched.within() if kind == "load" else pairs
            with_pairs = pairs | within
            if kind == "load":  # time alone may show what the source says of a line
                with_pairs = with_pairs | self._of_much_time(watched.line, watched.rows["native_frame"])
            lines: list[int] = np.unique(watched.line[with_pairs]).tolist()
            ends = np.searchsorted(watched.line[order], [lines, [line + 1 for line in lines]])
            counted = {
                line: self._count(kind, line, mine[answered[mine]] if answered[mine].any() else mine, pairs, within)
                for line, begin, end in zip(lines, *ends.tolist(), strict=True)
                if self._lines.labels.row(line)["line"] is not None and len(mine := order[begin:end])
            }
            met = set(watched.line[pairs].tolist())
            self._repeating[kind] = {line: one for line, one in counted.items() if line in met or one.verdict.within}
        return self._repeating[kind]

    def _of_much_time(self, line: Ids, frame: Ids) -> Mask:
        """True for samples in known native functions, on lines of which all may be told by time."""
        much = self._time.whole_ns >= LEAST_LINE * self._time.all_ns
        return np.asarray((frame != NOTHING) & (line != NOTHING) & much[line], np.bool_)

    def _count(self, kind: Kind, line: int, mine: Ids, pairs: Mask, within: Mask) -> _Repeating:
        """Counts of one line; ``mine`` are its watched accesses whose outcome is known.

        ``within`` has the pairs within one call as well, which count where the source says that it calls back.
        """
        watched = self._watched
        again = mine[pairs[mine]]
        grown = kind == "result" and self._growth(line, again)
        if grown:
            shown, verdict = grown
            equal = again
        else:
            if kind == "result":
                known = watched.rows["block_hash"][again] != NOTHING
                again = again[known & ~watched.concatenated[again]]
            equal = again[self._are_equal(kind, again)] if len(again) else again
            shown = self._places(equal if len(equal) else again if len(again) else mine, line)
            verdict = self._verdict(kind, shown, own=bool(len(again)) and bool(watched.read[again].all()))
            if kind == "load" and verdict.within:
                again = mine[within[mine]]
                equal = again[self._are_equal(kind, again)]
                shown = self._places(equal if len(equal) else again if len(again) else mine, line)
            elif kind == "load" and verdict.category == MISUSE:
                again, equal = self._beside_work(again), self._beside_work(equal)
        traps, redundant = len(again), len(equal)
        share = redundant / traps if traps else 0.0
        sizes = watched.rows["block_bytes"][again]
        return _Repeating(
            lines=(line,),
            called=self._borders.own_library(
                watched.rows["native_frame"][mine], Counter(watched.libraries[mine].tolist()).most_common(1)[0][0]
            ),
            traps=traps,
            redundant=redundant,
            watches=len(mine),
            share=share,
            share_low=beyond(share, traps),
            shown=shown,
            verdict=verdict,
            sizes=(int(sizes.min()), int(sizes.max()), len(np.unique(sizes))) if grown else None,
        )

    def _beside_work(self, pairs: Ids) -> Ids:
        """Pairs but for those of kernels, if enough are left: a call that costs more than its work shows it there."""
        frames = self._watched.rows["native_frame"][pairs].tolist()
        beside = np.array([frame == NOTHING or not is_kernel(self._borders.names[frame]) for frame in frames], np.bool_)
        return pairs[beside] if beside.sum() >= LEAST_TRAPS else pairs

    def _are_equal(self, kind: Kind, again: Ids) -> Mask:
        rows = self._watched.rows
        if kind != "result":
            return np.asarray(rows["equal"][again] == 1, np.bool_)
        return are_repeated(*(rows[name][again] for name in BLOCKS))

    def _growth(self, line: int, again: Ids) -> tuple[Places, Verdict] | None:
        """Places and verdict of a line whose blocks grow, or all have one size, if its source says why; else None."""
        sizes = self._watched.rows["block_bytes"][again]
        grows, moves = sizes_vary(sizes), len(sizes) >= LEAST_RESULTS and are_of_one_size(sizes)
        if not grows and not moves:
            return None
        shown = self._places(again, line)
        verdict = self._verdict("result", shown, grows=grows, moves=moves)
        return (shown, verdict) if verdict.grown else None

    def _verdict(
        self, kind: Kind, shown: Places, *, grows: bool = False, moves: bool = False, own: bool = False
    ) -> Verdict:
        evidence = Evidence(
            kind,
            shown.functions,
            shown.innermost,
            shown.place["line"] or 0,
            shown.partner_line_here if kind != "result" else None,
            [(names, line) for file, line in shown.callers if (names := self._source(file)) is not None],
            grows,
            moves,
            own,
        )
        return categorise(self._source(shown.place["file_id"]), evidence)

    def _row(self, each: _Line) -> Row | None:
        """The finding of a line, or of several together; None if there is none."""
        kind = _leading(each)
        if kind is None:
            return None
        repeating = each[kind]
        verdict, lines = repeating.verdict, np.array(repeating.lines)
        # An object of the interpreter's own has pointers: the same ones are no work of their own.
        if verdict.category is None and repeating.called == self._borders.interpreter:
            return None
        line_ns = float(self._time.whole_ns[lines].sum())
        part = self._time_in(verdict.spends, repeating.lines) if verdict.spends is not None else 0.0
        witnesses = [of_time(line_ns / max(self._time.all_ns, 1.0)), self._source_of(repeating, part)]
        for other in relevant(verdict.category, kind):
            one = each.get(other)
            is_shown = one is not None and one.sizes is None and not one.verdict.excused
            if one is not None and is_shown and not (verdict.within and part > MOST_TIME):
                witness = counted(other, one.redundant, one.traps, self._usual(other, one))
                witnesses.append(of_elements(witness) if _is_of_elements(verdict) else witness)
        score = together(witnesses)
        is_measured = part > MOST_TIME or repeating.sizes is not None or any(one.met for one in witnesses)
        if not is_measured or not score.is_enough:
            return None
        names = self._source(repeating.shown.place["file_id"])
        if verdict.category is None and kind == "result" and score.leads_with("result") and names is not None:
            named = by_results(names, repeating.shown.place["line"])
            repeating = replace(repeating, verdict=named or verdict)
        if part > MOST_TIME:
            reason = f"{verdict.reason} At least {part:.0%} of its native time goes to that."
            repeating = replace(repeating, verdict=replace(verdict, reason=reason), time_part=part)
        # Of a call that works within its own memory few accesses belong to results, and elements leave few pairs.
        is_whole = verdict.category is not None and not verdict.by_paths and line_ns >= LEAST_LINE * self._time.all_ns
        if not is_whole and self._quantity(repeating)["quantity_s_low"] * 1e9 < LEAST_SHARE * self._time.all_ns:
            return None
        return self._finding(kind, repeating, score)

    def _source_of(self, repeating: _Repeating, part: float) -> Witness:
        """The witness that the source is, or native functions; ``part`` of the time is in what the source names."""
        verdict = repeating.verdict
        if repeating.sizes is not None:
            return said("sizes", "sizes of its blocks")
        if part > MOST_TIME:
            return said("time", "time in what its source names")
        if verdict.category is None:
            return said("no reason", "no reason in its source")
        if verdict.by_paths:
            share = repeating.redundant / repeating.watches if repeating.watches else 0.0
            in_dispatch = max(share, self._time_in(lambda path: is_dispatch(path[0]), repeating.lines))
            return said("dispatch" if in_dispatch >= MOST_TIME else "some dispatch", f"dispatch {in_dispatch:.0%}")
        if _is_of_elements(verdict):
            return said("elements", "elements one by one in its source")
        return said("reason" if verdict.by_source else "expression", "a reason in its source")

    def _finding(self, kind: Kind, repeating: _Repeating, score: Score) -> Row:
        usual = self._usual(kind, repeating)
        verdict, quantity = repeating.verdict, self._quantity(repeating)
        shown = repeating.shown
        path, partner_path = shown.usual_paths(verdict.functions)
        library = self._borders.name_of_library(repeating.called)
        figures = _figures(kind, repeating, library, usual)
        if len(repeating.lines) > 1:
            numbers = sorted(self._lines.labels.row(line)["line"] for line in repeating.lines)
            figures = f"Lines {', '.join(map(str, numbers[:MOST_LINES]))} of the function do so together: {figures}"
        return {
            **{name: shown.place[name] for name in ("file", "line", "function")},
            "partner_file": shown.partner["file"],
            "partner_line": shown.partner["line"],
            "kind": kind,
            "category": verdict.category,
            "why": f"{verdict.reason} {figures} {score}",
            "remedy": verdict.remedy,
            **quantity,
            "redundant_share": repeating.share if repeating.traps else np.nan,
            "base_rate": usual,
            "traps": repeating.traps,
            "native_path": path,
            "partner_native_path": partner_path,
            "score": score.total,
            "witnesses": [list(astuple(each)) for each in score.witnesses],
        }

    def _usual(self, kind: Kind, repeating: _Repeating) -> float:
        """The usual share of pairs in two calls of a line's library, estimated from the other lines that call it.

        Lines whose source gives a reason for the repetition do not count, nor do those with few pairs.
        """
        others = (
            other.share_low
            for line, other in self._all(kind).items()
            if line not in repeating.lines
            and other.called == repeating.called
            and other.traps >= LEAST_TRAPS
            and other.verdict.category is None
        )
        return usual_share(kind, others)

    def _quantity(self, repeating: _Repeating) -> Row:
        """Of the lines' native time, the part that does again what an earlier call has done."""
        part = repeating.redundant / repeating.watches
        part_low, part_high = wilson(np.array([part]), repeating.watches)
        part, part_low[0] = max(part, repeating.time_part), max(part_low[0], repeating.time_part)
        lines = np.array(repeating.lines)
        weight, squared = (each[lines].sum(keepdims=True) for each in (self._time.cpu_ns, self._time.squared))
        least, most = poisson_sums(np.zeros(1), weight, squared)
        return {
            "quantity_s": float(weight[0] * part / 1e9),
            "quantity_s_low": float(least[0] * part_low[0] / 1e9),
            "quantity_s_high": max(float(most[0] * part_high[0]), float(self._time.whole_ns[lines].sum())) / 1e9,
            "line_cpu_s": float(self._time.whole_ns[lines].sum()) / 1e9,
        }

    def _time_in(self, is_of: Callable[[Sequence[str]], bool], lines: tuple[int, ...]) -> float:
        """The part of the samples of lines that are in native paths of a kind, at the lower end of its interval."""
        rows = self._watched.rows
        mine = np.isin(self._watched.line, lines)
        counted = Counter(zip(*(rows[name][mine].tolist() for name in ("native_frame", "native_stack")), strict=True))
        met = sum(count for pair, count in counted.items() if pair[0] != NOTHING and is_of(self._borders.path(*pair)))
        return float(wilson(np.array([met / counted.total()]), counted.total())[0][0])

    def _places(self, pairs: Ids, line: int) -> Places:
        """The two call paths of most of the pairs, and the native functions of all."""
        rows = self._watched.rows
        names = ("native_frame", "native_stack", "partner_native_frame", "partner_native_stack", "partner_stack")
        counted = Counter(zip(*(rows[name][pairs].tolist() for name in names), strict=True))
        labels = self._lines.labels
        place = labels.row(line)
        others = Counter(
            NOTHING if stack == NOTHING else int(self._lines.of_node[stack]) for stack in rows["partner_stack"][pairs]
        )
        other = others.most_common(1)[0][0]
        partner: Row = {"file": None, "line": None, "file_id": None} if other == NOTHING else labels.row(other)
        paths = [
            (self._borders.path(pair[0], pair[1]), self._borders.path(pair[2], pair[3]))
            for pair, count in counted.most_common()
            for _ in range(count)
        ]
        return Places(place, partner, paths, self._callers(pairs))

    def _callers(self, pairs: Ids) -> list[tuple[int, int]]:
        """Files and lines from which the line's function was called, in both accesses of most of the pairs.

        The second access may be on another line of the function: code that all ufuncs run comes again in the next one.
        Where it always is in another function, the callers are those of the first one.
        """
        rows, row_of, parent = self._watched.rows, self._lines.of_node, self._lines.parent

        def caller(node: int) -> int:
            """The node above those of a line: functions out of scope are charged to the line that called them."""
            row = row_of[node]
            while node != NOTHING and row_of[node] == row:
                node = int(parent[node])
            return node

        both = Counter(zip(rows["stack"][pairs].tolist(), rows["partner_stack"][pairs].tolist(), strict=True))
        met: Counter[int] = Counter()
        for (stack, partner), count in both.items():
            if partner == NOTHING or caller(stack) == caller(partner):
                met[caller(stack)] += count
        if not met:
            for (stack, _), count in both.items():
                met[caller(stack)] += count
        node = met.most_common(1)[0][0] if met else NOTHING
        callers: list[tuple[int, int]] = []
        while node != NOTHING and len(callers) < MOST_CALLERS:
            place = self._lines.labels.row(int(row_of[node]))
            if place["line"] is None or self._source(place["file_id"]) is None:
                break
            callers.append((place["file_id"], place["line"]))
            node = caller(node)
        return callers

    def _source(self, file: int) -> Names | None:
        if file not in self._names:
            module = parse(self._lines.sources.text(file))
            self._names[file] = None if module is None else Names(module)
        return self._names[file]


def _is_of_elements(verdict: Verdict) -> bool:
    """True for a line whose source says that it takes elements one by one, by much work of a library."""
    return verdict.category in (SLICE, MISUSE) and verdict.by_source


def _leading(each: _Line) -> Kind | None:
    """The kind of access that says best what a line repeats; None if it gets other operands each time."""
    kinds = [kind for kind in _KINDS if kind in each and not each[kind].verdict.excused]

    def strength(kind: Kind) -> tuple[bool, bool, bool, bool, float]:
        one = each[kind]
        verdict = one.verdict
        weight = counted(kind, one.redundant, one.traps).weight
        named = verdict.category is not None and not verdict.by_paths
        return one.sizes is not None, named, bool(one.redundant), bool(one.traps), weight

    return max(kinds, key=strength, default=None)


def _pooled(each: list[_Line], whole_ns: NDArray[np.float64]) -> _Line:
    """Several lines as one; ``whole_ns`` is the CPU time of each line."""
    kinds: dict[Kind, list[_Repeating]] = {}
    for line in each:
        for kind, one in line.items():
            kinds.setdefault(kind, []).append(one)
    lines = {number for line in each for one in line.values() for number in one.lines}
    pooled: _Line = {}
    for kind, of in kinds.items():
        both = _together(of, whole_ns)
        pooled[kind] = replace(both, lines=(*both.lines, *sorted(lines.difference(both.lines))))
    return pooled


def _figures(kind: Kind, repeating: _Repeating, library: str, usual: float) -> str:
    """The measurements of a finding, as a sentence."""
    if repeating.sizes is not None:
        least, most, count = repeating.sizes
        if count == 1:
            return f"{repeating.traps} blocks of memory that {library} filled had {most:,} bytes each."
        return (
            f"{repeating.traps} blocks of memory that {library} filled had {count} different sizes, from {least:,} to "
            f"{most:,} bytes."
        )
    if not repeating.traps:
        return f"No pairs of {kind}s of {library} were met there."
    calls = "a call" if repeating.verdict.within else "two calls"
    if kind == "result":
        return (
            f"{repeating.share:.0%} of {repeating.traps} blocks of memory that {library} filled held the same as "
            f"another one; {usual:.0%} would be usual."
        )
    return (
        f"{repeating.share:.0%} of {repeating.traps} pairs of {kind}s in {calls} of {library} met the same value "
        f"again; {usual:.0%} would be usual."
    )


def _together(each: list[_Repeating], whole_ns: NDArray[np.float64]) -> _Repeating:
    """Several lines as one: places and reason are those of the line with the most CPU time, of those with pairs."""
    each = sorted(each, key=lambda one: (not one.redundant, -whole_ns[one.lines[0]]))
    traps, redundant = sum(one.traps for one in each), sum(one.redundant for one in each)
    share = redundant / traps if traps else 0.0
    return replace(
        each[0],
        lines=tuple(line for one in each for line in one.lines),
        traps=traps,
        redundant=redundant,
        watches=sum(one.watches for one in each),
        share=share,
        share_low=beyond(share, traps),
    )
