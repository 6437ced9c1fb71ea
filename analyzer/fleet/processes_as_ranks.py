"""The processes of one recording as the ranks of a job: a program that starts them itself, with multiprocessing.

Each process is summed up as a recording of its own, into an index that is removed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.opened import Recording
from ..recording.process_lifetimes import read_process_lifetimes
from .index import Index, merged
from .questions.selection import Selection, with_labels
from .store import Store, StoredRecording

MOST_RANKS = 1_024

LONG = 0.5
"""Ranks live for this part of the life of the longest of their siblings."""


@contextmanager
def ranks_of_processes(path: Path, question: Question) -> Iterator[Selection]:
    """The ranks of a recording: its largest group of recorded siblings that lived together, in the order they began.

    Errors:
        FormatError: the recording cannot be read, or no two of its processes are siblings.
    """
    from .recording_sums import sums_of

    ranks = _siblings(path)
    if len(ranks) < 2:
        raise FormatError("no recording has the label rank (RANK in the environment gives it), nor several workers")
    stored, tables = [], []
    for rank, (process, pid) in enumerate(ranks[:MOST_RANKS]):
        each = StoredRecording(f"process {pid}", 0, str(process))
        sums = sums_of(path, each, replace(question, processes=(str(process),)))
        stored.append(each)
        tables.append({**sums, "recordings": _as_rank(sums["recordings"], rank)})
    with TemporaryDirectory(prefix="tachograph-ranks-") as folder:
        home = Store(folder)
        index = Index(home, question, home)
        index.add(merged(tables), len(tables))
        yield Selection(with_labels(index.recordings(stored)), index)


def _siblings(path: Path) -> list[tuple[int, int]]:
    """Ids and system ids of the processes that may be ranks."""
    with Recording.open(path) as recording:
        processes, lives = recording.all_processes, read_process_lifetimes(recording)
        length = (lives.end_ns - lives.start_ns).tolist()
        groups: dict[int | None, list[int]] = {}
        for number, (parent, how) in enumerate(zip(processes.parent.tolist(), processes.recorded, strict=True)):
            if how != "listed" and parent is not None:
                groups.setdefault(parent, []).append(number)
        most = max(groups.values(), key=len, default=[])
        longest = max((length[number] for number in most), default=0)
        alive = [number for number in most if length[number] >= LONG * longest]
        alive.sort(key=lambda number: (int(lives.start_ns[number]), number))
        return [(number, int(processes.pid[number])) for number in alive]


def _as_rank(recordings: pa.Table, rank: int) -> pa.Table:
    """The row of a process, with the label rank, and a uuid of its own."""
    row = recordings.to_pylist()[0]
    labels = json.loads(row["labels"] or "{}") | {"rank": str(rank)}
    row |= {"labels": json.dumps(labels, ensure_ascii=False), "uuid": f"{row['uuid']}-{rank}"}
    return pa.Table.from_pylist([row], schema=recordings.schema)
