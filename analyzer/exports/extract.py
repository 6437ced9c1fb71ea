"""The data of an export: one metric of a part of a recording, added up or in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.call_tree import CallTree, load_tree
from ..recording.filter import make_filter, with_threadless
from ..recording.opened import Recording
from ..recording.question_options import Metric
from ..recording.text import printable
from ..recording.time_window import Window, make_window
from ..recording.traced_requests import TracedRequests
from ..samples.call_paths import CallPaths
from ..samples.summary import ALL, PROJECT
from .exported_rows import Rows, read_rows
from .frame_tree import FrameTree


class TooManyRowsError(FormatError):
    """There is more than a format that keeps the order of time can take."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options for writing frames; a format ignores those that do not apply to it."""

    lines: bool = False
    """True if the lines of a function are frames of their own (collapsed and speedscope; others always hold lines)."""
    native: bool = False
    """True if the native function that was running is a frame of its own."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, or an entry for data of no thread of a process. ``name`` is printable."""

    name: str
    pid: int
    tid: int | None
    process: int
    process_name: str
    main: bool
    start_ns: int | None
    end_ns: int | None


@dataclass(frozen=True)
class Extract:
    """One metric of a part of a recording, ready to be written in any format."""

    recording: Recording
    metric: Metric
    window: Window
    calls: CallTree
    in_scope: NDArray[np.bool_]
    """True for nodes of ``calls`` in scope."""
    threads: list[Thread]
    """By the number in ``Rows.thread``."""
    included: NDArray[np.bool_]
    """True for those of ``threads`` that are exported."""
    processes: NDArray[np.bool_] | None
    """Mask of the selected processes; None: all."""
    all_threads: bool = True
    """True if no threads were selected among."""
    heap: bool = False
    """True to write allocated bytes beside held ones, in formats with several values for each stack."""
    requests: TracedRequests | None = None
    """Traced requests that sums are told apart by; None: not at all."""

    def tree(self, *, lines: bool, native: bool = False) -> FrameTree:
        """The frames; with the current line of each if ``lines``, with a native function at the end if ``native``."""
        return FrameTree(
            self.calls, self.in_scope, lines=lines, paths=CallPaths(self.recording, self.calls) if native else None
        )

    def rows(self) -> Iterator[Rows]:
        """The rows of the metric, in batches."""
        for rows in read_rows(self.recording, self.metric, self.window, self.processes, self.requests):
            yield self.included_rows(rows)

    def included_rows(self, rows: Rows) -> Rows:
        """Those of the exported threads that weigh something."""
        return rows.only(self.included[rows.thread] & (rows.weight > 0))

    def sums(self, tree: FrameTree) -> pd.DataFrame:
        """One row per thread, node and request: thread, node, request, weight (whole nanoseconds or bytes), samples.

        The request is -1 where there is none, and where ``requests`` is None.
        """
        parts = [
            _added(
                pd.DataFrame(
                    {
                        "thread": rows.thread,
                        "node": tree.nodes(rows),
                        "request": -1 if rows.request is None else rows.request,
                        "weight": rows.weight,
                        "samples": 1,
                    }
                )
            )
            for rows in self.rows()
        ]
        sums = _added(pd.concat(parts, ignore_index=True)) if parts else _EMPTY
        return sums.assign(weight=np.rint(sums["weight"]).astype(np.int64))

    def timeline(self, tree: FrameTree, limit: int) -> pd.DataFrame:
        """Rows in the order of time: time_ns, end_ns, thread, node, weight, samples.

        Samples of one thread that follow one another on the same node are one row, from the first to the last of them.

        Errors:
            TooManyRowsError: there are more than ``limit``.
        """
        parts, total = [], 0
        for rows in self.rows():
            parts.append(_runs(rows, tree.nodes(rows), joined=self.metric is not Metric.WAIT))
            total += len(parts[-1])
            if total > limit:
                raise TooManyRowsError(
                    f"the recording has more than {limit:,} changes of stack, too many to keep in the order of time:"
                    " choose a part with --from and --to or --thread, or a format that adds up (pprof, collapsed)"
                )
        frame = pd.concat(parts, ignore_index=True) if parts else _EMPTY.assign(time_ns=0, end_ns=0)
        frame = frame.sort_values("time_ns", kind="stable").reset_index(drop=True)
        return frame.assign(weight=np.rint(frame["weight"]).astype(np.int64))

    @property
    def program(self) -> str:
        """The program's command line, printable."""
        return printable(" ".join(self.recording.manifest.argv[:100]) or self.recording.path.name, 1000)

    @property
    def doc(self) -> str:
        """Description of the export, in a few words."""
        return f"allocated bytes, and {self.metric.doc}" if self.heap else self.metric.doc

    @property
    def utc_ns(self) -> int | None:
        """Start of the recording, in nanoseconds since 1970, if its clocks are known."""
        return self._utc_ns(self.recording.start_ns)

    @property
    def start_utc_ns(self) -> int | None:
        """Start of the exported part of the recording, in nanoseconds since 1970, if its clocks are known."""
        return self._utc_ns(max(self.recording.start_ns, self.window.start_ns))

    @property
    def duration_ns(self) -> int | None:
        """The length of the exported part of the recording; None if its end is not known."""
        end = self.recording.end_ns
        if end is None:
            return None
        return max(0, min(end, self.window.end_ns) - max(self.recording.start_ns, self.window.start_ns))

    def _utc_ns(self, monotonic_ns: int) -> int | None:
        clock = self.recording.manifest.clock
        return None if clock is None else int(clock["utc_ns"]) + monotonic_ns - int(clock["monotonic_ns"])


_EMPTY = pd.DataFrame(
    {
        **{name: np.zeros(0, np.int64) for name in ("thread", "node", "request")},
        "weight": np.zeros(0),
        "samples": np.zeros(0, int),
    }
)


def prepare(
    recording: Recording,
    metric: Metric,
    *,
    scope: str = ALL,
    thread: str | None = None,
    process: Sequence[str] = (),
    start_s: float | None = None,
    end_s: float | None = None,
    heap: bool = False,
) -> Extract:
    """Select the data to export; ``scope``, ``thread``, ``process`` and the window are as in ``Question``.

    ``heap`` is for LIVE and END: allocated bytes beside held ones, in formats with several values for each stack.

    Errors:
        FormatError: the recording is damaged, or has no such scope, thread or process.
    """
    from ..profile.build import named_scope

    window = make_window(start_s, end_s, recording.start_ns, recording.end_ns)
    selected = make_filter(recording, thread, process)
    calls = load_tree(recording)
    named = named_scope(scope, recording)
    if scope not in (PROJECT, ALL) and not any(map(named.includes, calls.paths)):
        raise FormatError(
            f"no recorded file matches --scope {printable(scope, 80)!r} (a glob of paths or folder names)"
        )
    files = np.array([*map(named.includes, calls.paths), scope == ALL], np.bool_)
    return Extract(
        recording,
        metric,
        window,
        calls,
        np.asarray(files[calls.file]),
        _threads(recording),
        with_threadless(recording, selected),
        selected.processes,
        thread is None,
        heap,
    )


def _threads(recording: Recording) -> list[Thread]:
    facts, processes = recording.all_threads, recording.all_processes
    pids, names = processes.pid.tolist(), processes.name
    columns = (each.tolist() for each in (facts.tid, facts.process, facts.main, facts.start_ns, facts.end_ns))
    threads = [
        Thread(_thread_name(name, tid), pids[process], tid, process, names[process], main, start, end)
        for name, tid, process, main, start, end in zip(facts.name, *columns, strict=True)
    ]
    rest = (
        Thread("<no thread>", pid, None, number, names[number], main=False, start_ns=None, end_ns=None)
        for number, pid in enumerate(pids)
    )
    return [*threads, *rest]


def _thread_name(name: str | None, tid: int | None) -> str:
    if name:
        return printable(name)
    return "thread" if tid is None else f"thread {tid}"


def _added(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby(["thread", "node", "request"], as_index=False, sort=True)[["weight", "samples"]].sum()


def _runs(rows: Rows, node: NDArray[np.int64], *, joined: bool) -> pd.DataFrame:
    """Rows by thread; if ``joined``, those put together that follow one another on the same node."""
    order = np.argsort(rows.thread, kind="stable")
    thread, node = rows.thread[order], node[order]
    new = np.ones(len(order), np.bool_)
    if joined:
        new[1:] = (np.diff(thread) != 0) | (np.diff(node) != 0)
    run = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(order))[: len(first)] - 1
    return pd.DataFrame(
        {
            "time_ns": rows.time_ns[order][first],
            "end_ns": rows.end_ns[order][last],
            "thread": thread[first],
            "node": node[first],
            "weight": np.bincount(run, weights=rows.weight[order], minlength=len(first)),
            "samples": np.bincount(run, minlength=len(first)),
        }
    )
