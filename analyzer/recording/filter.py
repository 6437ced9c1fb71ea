"""Filters of the processes and threads of a question: ``--process`` and ``--thread``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from .definitions import Threads
from .opened import Recording
from .text import printable

Mask = NDArray[np.bool_]

_SHOWN = 20
"""Names in a message at most."""


@dataclass(frozen=True)
class Filter:
    """Masks of the processes and threads in a question; None selects all of them."""

    processes: Mask | None = None
    named: Mask | None = None
    """Mask of the threads that match ``--thread``, in any process."""
    threads: Mask | None = None
    """Mask of the threads that match ``--thread`` in the selected processes."""

    @property
    def everything(self) -> bool:
        """True if nothing is left out."""
        return self.threads is None


def make_filter(recording: Recording, thread: str | None, processes: Sequence[str]) -> Filter:
    """Resolve ``thread`` (a name, a glob, an operating system's id, ``main``) and ``processes`` to masks.

    Errors:
        FormatError: there is no such thread or process, or one of ``processes`` may mean several things.
    """
    threads = recording.all_threads
    of_processes = filter_processes(recording, processes)
    inside = None if of_processes is None else of_processes[threads.process]
    named = _named_threads(threads, thread, inside)
    if inside is None or named is None:
        return Filter(of_processes, named, named if inside is None else inside)
    return Filter(of_processes, named, named & inside)


def with_threadless(recording: Recording, selected: Filter) -> Mask:
    """Mask of the selected threads, followed by that of the selected processes.

    The part by process is for what belongs to none of a process's threads.
    """
    rows, processes = len(recording.all_threads), len(recording.all_processes)
    threads = np.ones(rows, np.bool_) if selected.threads is None else selected.threads
    threadless = np.ones(processes, np.bool_) if selected.processes is None else selected.processes
    return np.concatenate((threads, threadless if selected.named is None else np.zeros(processes, np.bool_)))


def filter_processes(recording: Recording, patterns: Sequence[str]) -> Mask | None:
    """Mask of the processes that match one of ``patterns``: ``ID``, ``PID``, a name or a glob; None: all.

    A number is the operating system's id of a process or, if none has it, the id in the recording; ``pid=N`` and
    ``id=N`` say which.

    Errors:
        FormatError: there is no such process, or the number may mean two.
    """
    if not patterns:
        return None
    pids, names = recording.all_processes.pid, recording.all_processes.name
    mask = np.zeros(len(pids), np.bool_)
    for text in patterns:
        mask |= _meant(text, pids, names)
    return mask


def _meant(text: str, pids: NDArray[np.int64], names: Sequence[str]) -> Mask:
    kind, equals, value = text.partition("=")
    number = _number(value if equals and kind in ("id", "pid") else text)
    by_id = np.arange(len(pids)) == (-1 if number is None else number)
    by_pid = pids == (-1 if number is None else number)
    if equals and kind in ("id", "pid"):
        matching: Mask = by_id if kind == "id" else by_pid
    else:
        matching = by_pid if by_pid.any() else by_id
        if by_pid.any() and by_id.any() and not np.array_equal(by_pid, by_id):
            mine, theirs = names[int(np.argmax(by_id))], names[int(np.argmax(by_pid))]
            raise FormatError(
                f"--process {text} is the id of {mine} in the recording and the system's id of {theirs}:"
                f" write id={text} or pid={text}"
            )
        if not matching.any():
            matching = np.asarray([fnmatchcase(name, text) for name in names], np.bool_)
    if not matching.any():
        shown = ", ".join(f"{name} ({pid})" for name, pid in list(zip(names, pids.tolist(), strict=True))[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more, see --processes" if len(names) > _SHOWN else ""
        raise FormatError(
            f"no process has the id or the name {printable(text, 80)!r}; there are: {shown or 'none'}{more}"
        )
    return matching


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 11 else None


def _named_threads(threads: Threads, pattern: str | None, inside: Mask | None) -> Mask | None:
    """Mask of the threads that match ``pattern``; one of them must be ``inside``."""
    if pattern is None:
        return None
    names = [name or "" for name in threads.name]
    mains, tids = threads.main.tolist(), threads.tid.tolist()
    named: Mask = np.array(
        [
            str(tids[number]) == pattern or fnmatchcase(name, pattern) or (pattern == "main" and mains[number])
            for number, name in enumerate(names)
        ],
        np.bool_,
    )
    if not (named if inside is None else named & inside).any():
        candidates = [name for number, name in enumerate(names) if name and (inside is None or inside[number])]
        listed = ", ".join(printable(name, 40) for name in list(dict.fromkeys(candidates))[:_SHOWN])
        raise FormatError(
            f"no thread is named {printable(pattern, 80)!r} or has that id; there are: {listed or 'none'}"
        )
    return named
