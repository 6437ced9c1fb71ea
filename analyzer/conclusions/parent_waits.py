"""Work of child processes while the main thread of a parent waited for them, by the parent's line.

A wait may be for a child where the thread waits for the end of a process, at a pipe, or in a connection of
``multiprocessing``. At a lock it is where nothing in the process can release it sooner: another thread waits for a
child, and none of the others runs or waits for anything but locks. Other locks are unclear, and sockets, sleep and
events are no such waits, but for two. Sleep between two looks, in code out of scope, is judged like a lock. An event
loop waits for what its tasks await: `awaited_children` has the lines. A future there is judged like a lock, too, and is
for a child only if the children are busy while it alone is awaited, and far less while nothing of the kind is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING, CallTree
from ..recording.frame import take_rows
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes
from ..recording.sources import Sources
from ..recording.text import printable
from ..recording.time_window import TimeRanges
from ..samples.stream import CPU, CpuBatch, Stream, WaitBatch
from ..samples.weights import EITHER, LOCK, REASONS
from ..statistics.intervals import wilson
from .awaited_children import CHILD, FUTURE, STREAM, loop_waits
from .awaits import Awaits

MAX_PARENTS = 8
"""Processes that are looked at: those whose main threads wait longest."""
MAX_ROWS = 10
LEAST_SHARE, LEAST_S = 0.05, 0.1
"""A line's waits are mentioned from this part of its process's life on, and from so many seconds on."""

MOST, HARDLY = 0.5, 0.1
"""At a lock: the part in which another thread waits for a child (in the rest it may be ready to run, and without a
processor), and that in which others run, or wait for anything but locks."""
CLEAR = 0.8
"""Part of a line's waits that must be for children."""
BUSY = 0.5
"""The children together must be busy for at least this part of the parent's waits."""
IDLE = 0.05
"""A child that is busy for a lesser part of them is idle, such as multiprocessing's own helpers."""
INNER = 0.9
"""The function that is named is the innermost one with at least this part of the most that one has."""

ALONE = 0.2
"""The part of a future's waits in which no other one may be awaited at another line."""
WITHOUT = 0.5
"""The children may be busy for at most this part as much while none of these futures is awaited."""
ENOUGH = 0.1
"""That is known from this part of a future's time alone on."""

_PIPE_OF_CHILD = re.compile(r"\.std(out|err)\b")
"""In the line that awaits a stream."""

_CONNECTION = "multiprocessing/connection.py"

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]


def _numbers(*names: str) -> _Ids:
    return np.array([REASONS.index(name) for name in names], np.int64)


_FOR_CHILD = _numbers("pipe", "child process")
_IN_CONNECTION = _numbers("socket", "events")
_LOCKS = _numbers(LOCK, EITHER)
_GIL, _EVENTS, _SLEEP = (REASONS.index(name) for name in ("GIL", "events", "sleep"))
_NEVER = np.iinfo(np.int64).max
_READY_SOMEWHERE = NOTHING - 1
"""In place of a node: a thread was ready to run, and no look saw where it was."""
_AT_WORK = _numbers("sleep", "file", "socket", "GPU", "GIL")
"""A child that waits so is not waiting for its parent."""

DIRECT, LOCKED, UNCLEAR, POLLED, LOOP, ELSEWHERE, READY = range(7)
"""Kinds of waits: for a child, at a lock and so for a child, at a lock that does not tell, sleep that may be between
two looks at a child, of an event loop, for something else, and within the process (a processor or the GIL)."""
AWAITED, PIPED, ONLY, TOGETHER, OTHER, NONE = range(READY + 1, READY + 7)
"""Kinds of an event loop's waits by what is awaited at a line: a child, a stream, a future that may be a child's (at
this line only, or at others as well), a future that is none, and at no such line at all."""


@dataclass(frozen=True)
class ParentWait:
    """Waits of a main thread at one line. Shares (0..1) are of the children's time in them; None is not clear."""

    process: int
    pid: int
    name: str
    file: str | None
    line: int | None
    source: str | None
    wait_s: float
    children: int | None
    """Child processes that were busy in that time."""
    child_function: str | None
    """The function that they spent it in; None if no function in scope has most of it."""
    child_file: str | None
    child_line: int | None
    """The first line of the function."""
    share: float | None
    """The part of the children's time in the function; without one, in which they were busy."""
    share_low: float | None
    share_high: float | None


@dataclass(frozen=True, eq=False)
class _Waits:
    """Waits of main threads that may be for children; all arrays have one length, by track and time."""

    track: _Ids
    """Waits of one track do not overlap: a parent has one for those of its thread, and one for each awaiting line."""
    start_ns: _Ids
    end_ns: _Ids
    off_ns: _Floats
    site: _Ids
    """Numbers of sites: process, stack, kind and track."""

    @cached_property
    def ranges(self) -> TimeRanges:
        """The tracks take the places of threads, the sites of groups."""
        return TimeRanges(self.track, self.start_ns, self.end_ns, self.site)


@dataclass(frozen=True, eq=False)
class _Totals:
    """By site: nanoseconds off a processor and in all, and True where the process itself hardly worked meanwhile."""

    off: _Floats
    length: _Floats
    alone: _Mask


@dataclass(frozen=True, slots=True)
class _Work:
    children: int | None
    function: int | None
    share: float | None
    low: float | None
    high: float | None


_NOT_CLEAR = _Work(None, None, None, None, None)


class ParentWaits:
    """A sink: the work of each waiting parent's children meanwhile."""

    times = True

    def __init__(
        self,
        recording: Recording,
        stream: Stream,
        tree: CallTree,
        lifetimes: ProcessLifetimes,
        families: dict[int, _Mask],
        waits: _Waits,
        sites: _Ids,
    ) -> None:
        """``families`` are masks of each parent's descendants; ``sites`` are process, stack, kind and track by site."""
        threads = recording.all_threads
        self._recording = recording
        self._tree = tree
        self._lifetimes = lifetimes
        self._families = families
        self._waits = waits
        self._sites = sites
        self._owner = threads.process
        self._nodes = stream.nodes
        self._interval_ns = float(recording.interval_ns or 0)
        self._connections = connection_nodes(tree)
        # For each parent: the threads that are children's main threads, and its own others.
        main = np.asarray(threads.main, np.bool_)
        self._children = {parent: family[self._owner] & main for parent, family in families.items()}
        self._others = {parent: (self._owner == parent) & ~main for parent in families}
        self._tracks = {parent: sorted(set(sites[3, sites[0] == parent].tolist())) for parent in families}
        self._inside = np.zeros(sites.shape[1])
        """CPU time of the parent's other threads, by site."""
        self._rows: list[tuple[_Ids, _Ids, _Ids, _Floats, _Floats]] = []

    @property
    def found(self) -> bool:
        """True if there are such waits: otherwise nothing needs to be read."""
        return len(self._waits.site) > 0

    def cpu(self, batch: CpuBatch) -> None:
        """Takes CPU samples of the children, and of the parents' other threads."""
        for parent, children in self._children.items():
            for mask, own in ((children, False), (self._others[parent], True)):
                rows = np.flatnonzero(mask[batch.thread])
                if not len(rows):
                    continue
                for track in self._tracks[parent]:
                    site = self._waits.ranges.group_at(np.full(len(rows), track), batch.time_ns[rows])
                    row, site = rows[site >= 0], site[site >= 0]
                    weight = batch.weight_ns[row]
                    if own:
                        np.add.at(self._inside, site, weight)
                    else:
                        self._add(site, batch.thread[row], batch.place[row], weight, batch.squared[row])

    def waits(self, batch: WaitBatch) -> None:
        """Takes the children's waits that are part of their work: for a processor, files, sleep and others."""
        connected = self._connections[batch.stack]
        working = (batch.kind == CPU) | (np.isin(batch.reason, _AT_WORK) & ~connected)
        for parent, children in self._children.items():
            rows = np.flatnonzero(children[batch.thread] & working)
            if not len(rows):
                continue
            start, end = batch.start_ns[rows], batch.end_ns[rows]
            for track in self._tracks[parent]:
                row, site, part = self._waits.ranges.overlaps(np.full(len(rows), track), start, end)
                weight = batch.whole_ns[rows][row] * part
                ready, place = (batch.kind[rows] == CPU)[row], batch.place[rows][row]
                place = np.where(ready & (place >= self._nodes), _READY_SOMEWHERE, place)
                self._add(site, batch.thread[rows][row], place, weight, weight * self._interval_ns)

    def _add(self, site: _Ids, thread: NDArray[np.integer], place: _Ids, weight: _Floats, squared: _Floats) -> None:
        # Labels of what has no stack are not told apart: they are in no function.
        node = np.where(place < self._nodes, place, NOTHING).astype(np.int64)
        self._rows.append(_summed(site, self._owner[thread].astype(np.int64), node, weight, squared))
        if len(self._rows) >= 64:
            self._rows = [_summed(*(np.concatenate(column) for column in zip(*self._rows, strict=True)))]

    def conclude(self, in_scope: _Mask, sources: Sources) -> list[ParentWait]:
        """The lines at which main threads waited longest for what may be children, the longest first."""
        if not self.found:
            return []
        tree, (process, stack, kind, _) = self._tree, self._sites
        nearest = np.append(tree.nearest(in_scope), NOTHING)[stack]
        file, line = np.append(tree.file, NOTHING)[nearest], np.append(tree.line, NOTHING)[nearest]
        totals = self._totals()
        off = totals.off
        shown = (kind != NONE) & ~((kind == POLLED) & np.append(in_scope, True)[stack])
        keys, group = np.unique(np.stack((process, file, line)), axis=1, return_inverse=True)
        rows = []
        for number, (parent, at_file, at_line) in enumerate(keys.T.tolist()):
            mine = np.flatnonzero((group.reshape(-1) == number) & shown)
            source = sources.line(at_file, at_line) if at_file >= 0 and at_line >= 0 else None
            mine, clear = self._for_children(mine, source, totals, in_scope)
            wait_s = float(off[mine].sum()) / 1e9
            life_s = float(self._lifetimes.end_ns[parent] - self._lifetimes.start_ns[parent]) / 1e9
            if wait_s < max(LEAST_S, LEAST_SHARE * life_s):
                continue
            work = self._work(clear, in_scope) if off[clear].sum() >= CLEAR * off[mine].sum() else _NOT_CLEAR
            rows.append(self._row(parent, at_file, at_line, wait_s, work, source))
        return sorted(rows, key=lambda row: -row.wait_s)[:MAX_ROWS]

    def _totals(self) -> _Totals:
        waits, count = self._waits, self._sites.shape[1]
        off, length = (
            np.asarray(np.bincount(waits.site, ns, count), np.float64)
            for ns in (waits.off_ns, waits.end_ns - waits.start_ns)
        )
        return _Totals(off, length, self._inside <= HARDLY * length)

    def _for_children(self, mine: _Ids, source: str | None, totals: _Totals, in_scope: _Mask) -> tuple[_Ids, _Ids]:
        """The sites of one line that count, and those of them that are for children.

        What is awaited counts only if it is for children, and at one track: two at a line may be at the same time.
        """
        _, _, kind, track = self._sites
        off, alone = totals.off, totals.alone
        own = mine[kind[mine] < AWAITED]
        clear = own[(kind[own] == DIRECT) | (np.isin(kind[own], (LOCKED, POLLED)) & alone[own])]
        best = own[:0]
        for each in sorted(set(track[mine[kind[mine] >= AWAITED]].tolist())):
            sites = mine[(track[mine] == each) & (kind[mine] >= AWAITED)]
            found = sites[self._awaited_children(sites, source, totals, in_scope)]
            if off[found].sum() > max(off[best].sum(), CLEAR * off[sites].sum() - 1):
                best = found
        return np.append(own, best), np.append(clear, best)

    def _awaited_children(self, sites: _Ids, source: str | None, totals: _Totals, in_scope: _Mask) -> _Mask:
        """True for the sites of an awaiting line that are for children."""
        off, length, alone = totals.off, totals.length, totals.alone
        process, _, kind, _ = self._sites
        nothing = np.zeros(len(sites), np.bool_)
        if (kind[sites] == AWAITED).all():
            return ~nothing
        if (kind[sites] == PIPED).all():
            return nothing if source is None or not _PIPE_OF_CHILD.search(source) else ~nothing
        only = sites[(kind[sites] == ONLY) & alone[sites]]
        if off[only].sum() < ALONE * off[sites].sum() or self._work(only, in_scope).share is None:
            return nothing
        without = np.flatnonzero((process == process[sites[0]]) & (kind == NONE))
        if length[without].sum() >= ENOUGH * length[only].sum():
            rate, other = (self._busy(each) / length[each].sum() for each in (only, without))
            if other > WITHOUT * rate:
                return nothing
        return np.asarray((kind[sites] != OTHER) & alone[sites], np.bool_)

    def _busy(self, sites: _Ids) -> float:
        """Nanoseconds in which children were busy during the waits at some sites, added up over children."""
        site, _, _, weight, _ = self._summed_rows()
        return float(weight[np.isin(site, sites)].sum())

    def _row(self, process: int, file: int, line: int, wait_s: float, work: _Work, source: str | None) -> ParentWait:
        tree, processes = self._tree, self._recording.all_processes
        function = work.function
        of_file = int(tree.function_files[function]) if function is not None else NOTHING
        return ParentWait(
            process=process,
            pid=int(processes.pid[process]),
            name=printable(processes.name[process], 200),
            file=tree.paths[file] if file >= 0 else None,
            line=line if line >= 0 else None,
            source=source,
            wait_s=wait_s,
            children=work.children,
            child_function=printable(tree.function_names[function], 200) if function is not None else None,
            child_file=tree.paths[of_file] if of_file >= 0 else None,
            child_line=int(tree.function_lines[function]) if function is not None else None,
            share=work.share,
            share_low=work.low,
            share_high=work.high,
        )

    def _work(self, sites: _Ids, in_scope: _Mask) -> _Work:
        """The children's work during the waits at some sites of one line."""
        if not self._rows:
            return _NOT_CLEAR
        site, process, node, weight, squared = self._summed_rows()
        rows = np.isin(site, sites)
        process, node, weight, squared = process[rows], node[rows], weight[rows], squared[rows]
        weight = _spread(process, node, weight)
        waits = np.isin(self._waits.site, sites)
        start, end = self._waits.start_ns[waits], self._waits.end_ns[waits]
        count = len(self._owner) and int(self._owner.max()) + 1
        busy = np.bincount(process, weight, count)
        alive = np.zeros(count)
        for child in np.flatnonzero(busy).tolist():
            since, until = self._lifetimes.start_ns[child], self._lifetimes.end_ns[child]
            alive[child] = np.maximum(np.minimum(end, until) - np.maximum(start, since), 0).sum()
        counted = (busy > 0) & (busy >= IDLE * alive)
        taken = counted[process]
        total = float(weight[taken].sum())
        if float(alive[counted].sum()) <= 0 or total < BUSY * float((end - start).sum()):
            return _NOT_CLEAR
        function = self._function(node[taken], weight[taken], self._sites[1][sites], in_scope)
        inside = np.zeros(len(node), np.bool_) if function is None else self._in_function(node, function)
        if function is not None:  # of those that are in it, and others that work: a helper imports, and waits
            counted &= (np.bincount(process[inside], weight[inside], count) > 0) | (busy >= BUSY * alive)
            taken = counted[process]
            total = float(weight[taken].sum())
        whole, spent = float(alive[counted].sum()), float(weight[taken & inside].sum())
        if spent < BUSY * total:
            function, spent = None, total
        share = min(1.0, spent / whole)
        squares = float(squared[taken].sum())
        # A process that is forked and begins another program is two of them, with one pid.
        children = len(set(np.asarray(self._recording.all_processes.pid)[np.flatnonzero(counted)].tolist()))
        if squares <= 0:
            return _Work(children, function, share, None, None)
        low, high = wilson(np.array([share]), whole * total / squares)
        return _Work(children, function, share, float(low[0]), float(high[0]))

    def _summed_rows(self) -> tuple[_Ids, _Ids, _Ids, _Floats, _Floats]:
        if len(self._rows) > 1:
            self._rows = [_summed(*(np.concatenate(column) for column in zip(*self._rows, strict=True)))]
        return self._rows[0]

    def _function(self, node: _Ids, weight: _Floats, parent: _Ids, in_scope: _Mask) -> int | None:
        """The function in scope in which most time went, with all that it calls; none that the parent is in, too."""
        tree = self._tree
        shared = {int(tree.function[each]) for stack in parent.tolist() for each in self._path(stack)}
        spent: dict[int, float] = {}
        depths: dict[int, float] = {}
        distinct, inverse = np.unique(node, return_inverse=True)
        for stack, amount in zip(distinct.tolist(), np.bincount(inverse.reshape(-1), weight).tolist(), strict=True):
            path = list(self._path(stack))
            innermost: dict[int, int] = {}
            for depth, each in enumerate(reversed(path)):
                function = int(tree.function[each])
                if in_scope[each] and function >= 0 and function not in shared:
                    innermost[function] = depth
            for function, depth in innermost.items():
                spent[function] = spent.get(function, 0.0) + amount
                depths[function] = depths.get(function, 0.0) + amount * depth
        most = max(spent.values(), default=0.0)
        if most <= 0:
            return None
        among = [each for each in spent if spent[each] >= INNER * most]
        return max(among, key=lambda each: depths[each] / spent[each])

    def _in_function(self, node: _Ids, function: int) -> _Mask:
        """True for the nodes that are in a function, or in what it calls."""
        distinct, inverse = np.unique(node, return_inverse=True)
        inside = [
            any(self._tree.function[each] == function for each in self._path(stack)) for stack in distinct.tolist()
        ]
        return np.array(inside, np.bool_)[inverse.reshape(-1)]

    def _path(self, stack: int) -> Iterator[int]:
        """A node and its callers; nothing where there is no stack."""
        node = stack
        while node >= 0:
            yield node
            node = int(self._tree.parent[node])


def read_parent_waits(
    recording: Recording, stream: Stream, tree: CallTree, lifetimes: ProcessLifetimes, awaits: Awaits | None
) -> ParentWaits | None:
    """The waits of parents' main threads; the sink is fed with the rest. None where waiting was not recorded."""
    if not stream.waits_known:
        return None
    families = _families(recording.all_processes.parent.tolist())
    owner, main = recording.all_threads.process.astype(np.int64), np.asarray(recording.all_threads.main, np.bool_)
    selected = np.isin(owner, np.array(list(families), np.int64))
    looping = main & np.isin(owner, () if awaits is None else awaits.process)
    rows = _rows(stream, selected, main, looping, connection_nodes(tree)) if families else _NO_ROWS
    mine = rows.only(main[rows.thread] & (rows.kind <= LOOP))
    waited = np.bincount(owner[mine.thread], mine.off_ns, max(families, default=0) + 1)
    chosen = sorted(sorted(families, key=lambda parent: -waited[parent])[:MAX_PARENTS])
    tracks: list[tuple[int, _Rows]] = []
    for parent in chosen:
        of_parent = rows.only(owner[rows.thread] == parent)
        tracks.append((parent, _of_main(of_parent, main)))
        if awaits is not None:
            tracks.extend((parent, track) for track in _of_loop(of_parent, main, awaits, parent, tree))
    joined = _Rows.joined([each for _, each in tracks])
    track = np.repeat(np.arange(len(tracks)), [len(each.start_ns) for _, each in tracks])
    process = np.array([parent for parent, _ in tracks], np.int64)[track]
    keys = np.stack((process, joined.stack, joined.kind, track))
    sites, site = np.unique(keys, axis=1, return_inverse=True)
    waits = _Waits(track, joined.start_ns, joined.end_ns, joined.off_ns, site.reshape(-1).astype(np.int64))
    return ParentWaits(recording, stream, tree, lifetimes, {each: families[each] for each in chosen}, waits, sites)


def _families(parents: list[int | None]) -> dict[int, _Mask]:
    """Masks of the descendants of each process that has some."""
    families: dict[int, _Mask] = {}
    for process in range(len(parents)):
        above = parents[process]
        while above is not None:
            families.setdefault(above, np.zeros(len(parents), np.bool_))[process] = True
            further = parents[above]
            above = further if further is not None and further < above else None
    return families


@dataclass(frozen=True, eq=False)
class _Rows:
    """Waits of the threads of parents; all arrays have one length."""

    thread: _Ids
    start_ns: _Ids
    end_ns: _Ids
    off_ns: _Floats
    stack: _Ids
    kind: _Ids

    @classmethod
    def joined(cls, parts: list[_Rows]) -> _Rows:
        """All rows of all parts."""
        parts = [_NO_ROWS, *parts]
        names = ("thread", "start_ns", "end_ns", "off_ns", "stack", "kind")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def only(self, mask: _Mask) -> _Rows:
        """The rows of a mask."""
        return take_rows(self, mask)


_NO_IDS = np.zeros(0, np.int64)
_NO_ROWS = _Rows(_NO_IDS, _NO_IDS, _NO_IDS, np.zeros(0), _NO_IDS, _NO_IDS)


def _rows(stream: Stream, selected: _Mask, main: _Mask, looping: _Mask, connections: _Mask) -> _Rows:
    """The waits of the selected threads, cut to the window; ``looping`` are main threads with tasks."""
    parts = []
    for batch in stream.waits():
        mine = batch.only(selected[batch.thread])
        connected = connections[mine.stack]
        direct = np.isin(mine.reason, _FOR_CHILD) | (connected & np.isin(mine.reason, _IN_CONNECTION))
        conditions = [mine.kind == CPU, direct, np.isin(mine.reason, _LOCKS), mine.reason == _GIL]
        conditions += [(mine.reason == _EVENTS) & looping[mine.thread], (mine.reason == _SLEEP) & main[mine.thread]]
        kind = np.select(conditions, [READY, DIRECT, UNCLEAR, READY, LOOP, POLLED], ELSEWHERE)
        start = np.maximum(mine.start_ns, stream.window.start_ns)
        end = np.minimum(mine.end_ns, stream.window.end_ns)
        stack = np.where(mine.stack < stream.nodes, mine.stack, NOTHING)
        parts.append(_Rows(mine.thread, start, end, mine.weight_ns, stack, kind))
    return _Rows.joined(parts)


def _of_main(rows: _Rows, main: _Mask) -> _Rows:
    """The waits of a process's main thread that may be for children, in the order of time and without overlaps."""
    own, others = rows.only(main[rows.thread]), rows.only(~main[rows.thread])
    own = own.only((own.kind == DIRECT) | (own.kind == UNCLEAR) | (own.kind == POLLED))
    own = take_rows(own, np.argsort(own.start_ns, kind="stable"))
    locked = _only_children_end(others, own.start_ns, own.end_ns)
    own = replace(own, kind=np.where(locked & (own.kind == UNCLEAR), LOCKED, own.kind))
    return _without_overlaps(own).only(locked | (own.kind != POLLED))


def _of_loop(rows: _Rows, main: _Mask, awaits: Awaits, process: int, tree: CallTree) -> Iterator[_Rows]:
    """The waits of a process's event loop by the line that may await a child, and those without such a line."""
    own, others = rows.only(main[rows.thread] & (rows.kind == LOOP)), rows.only(~main[rows.thread])
    own = _without_overlaps(take_rows(own, np.argsort(own.start_ns, kind="stable")))
    for each in loop_waits(awaits, process, tree, own.start_ns, own.end_ns):
        length = np.maximum(own.end_ns - own.start_ns, 1)[each.wait]
        off = own.off_ns[each.wait] * (each.end_ns - each.start_ns) / length
        kind = np.full(len(off), {CHILD: AWAITED, STREAM: PIPED}.get(each.kind, NONE), np.int64)
        if each.kind == FUTURE:
            ends = _only_children_end(others, each.start_ns, each.end_ns)
            kind = np.select([ends & each.alone, ends], [ONLY, TOGETHER], OTHER)
        stack = np.full(len(off), each.node, np.int64)
        yield _Rows(own.thread[each.wait], each.start_ns, each.end_ns, off, stack, kind)


def _only_children_end(others: _Rows, start_ns: _Ids, end_ns: _Ids) -> _Mask:
    """Waits that, by the waits of the process's other threads, nothing in it ends sooner than a child."""
    length = np.maximum(end_ns - start_ns, 1)
    for_child, elsewhere = (
        _covered(others.only(others.kind == kind), start_ns, end_ns) / length for kind in (DIRECT, ELSEWHERE)
    )
    return np.asarray((for_child >= MOST) & (elsewhere <= HARDLY), np.bool_)


def _without_overlaps(rows: _Rows) -> _Rows:
    """Rows in the order of time, each with its end at the beginning of the next one at the latest."""
    end_ns = np.minimum(rows.end_ns, np.append(rows.start_ns[1:], _NEVER))
    return replace(rows, end_ns=np.maximum(end_ns, rows.start_ns))


def _covered(rows: _Rows, start_ns: _Ids, end_ns: _Ids) -> _Floats:
    """Nanoseconds of each interval in which at least one of the rows lasted."""
    if not len(rows.start_ns):
        return np.zeros(len(start_ns))
    order = np.argsort(rows.start_ns, kind="stable")
    start, latest = rows.start_ns[order], np.maximum.accumulate(rows.end_ns[order])
    first = np.flatnonzero(np.append(True, start[1:] > latest[:-1]))
    begin, end = start[first], latest[np.append(first[1:], len(start)) - 1]
    zero = int(begin[0])  # floating point has no room for a monotonic clock in nanoseconds
    edges = np.column_stack((begin, end)).ravel() - zero
    before = np.cumsum(end - begin)
    amount = np.column_stack((before - (end - begin), before)).ravel()
    until, since = (np.interp(times - zero, edges, amount) for times in (end_ns, start_ns))
    return np.asarray(until - since, np.float64)


def _spread(process: _Ids, node: _Ids, weight: _Floats) -> _Floats:
    """Weights with the time ready to run, but not seen, of each process spread over all that it did.

    A thread loses its processor wherever it runs.
    """
    unseen = node == _READY_SOMEWHERE
    count = int(process.max(initial=-1)) + 1
    sampled = np.bincount(process, np.where(unseen, 0.0, weight), count)
    more = np.bincount(process, np.where(unseen, weight, 0.0), count)
    factor = 1.0 + np.divide(more, sampled, out=np.zeros(count), where=sampled > 0)
    return np.where(unseen & (sampled[process] > 0), 0.0, weight * factor[process])


def connection_nodes(tree: CallTree) -> _Mask:
    """Nodes in which ``multiprocessing`` reads from a connection; one more at the end for none."""
    files = np.array([path.replace("\\", "/").endswith(_CONNECTION) for path in tree.paths] + [False], np.bool_)
    return np.append(files[tree.file], False)


def _summed(
    site: _Ids, process: _Ids, node: _Ids, weight: _Floats, squared: _Floats
) -> tuple[_Ids, _Ids, _Ids, _Floats, _Floats]:
    """Sums of weights by site, process and node."""
    order = np.lexsort((node, process, site))
    keys = np.stack((site, process, node))[:, order]
    first = np.flatnonzero(np.append(True, (np.diff(keys, axis=1) != 0).any(axis=0))[: len(order)])
    if not len(first):
        return site, process, node, weight, squared
    kept = keys[:, first]
    return (*kept, np.add.reduceat(weight[order], first), np.add.reduceat(squared[order], first))
