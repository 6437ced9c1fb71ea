"""Messages of the recording commands: the line at the end of a recording, and the progress of what takes long."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.recorder import clock
from tachograph.recorder.problems import one_line

if TYPE_CHECKING:
    from tachograph.recorder.collect.finish import Finished
    from tachograph.recorder.command.session import Outcome
    from tachograph.recorder.upload.sender import Delivery


# Table, and what one of its rows and what several of them are called.
COUNTED = (
    ("cpu", "CPU sample", "CPU samples"),
    ("waits", "wait", "waits"),
    ("memory", "footprint", "footprints"),
    ("allocations", "block", "blocks"),
    ("copies", "copy", "copies"),
    ("spans", "span", "spans"),
    ("gpu", "GPU reading", "GPU readings"),
)


def summary(title: str, path: Path, outcome: Outcome, status: int, delivery: Delivery | None = None) -> str:
    """One line about the recording at ``path`` of the program ``title``.

    ``status`` is the program's exit status (negative: of that signal), ``delivery`` of a recording that was to be sent.
    """
    where = shlex.quote(str(path))
    left = "" if delivery is None else undelivered(delivery)
    if outcome.unfinished is not None:
        return (
            f"{title} has run, but its recording could not be finished ({outcome.unfinished}); "
            f"all that was recorded is in {where}; when that is fixed: tachograph recover {where}{left}"
        )
    assert outcome.finished is not None
    if delivery is not None and delivery.url is not None:
        where = shlex.quote(delivery.url)
    if outcome.not_recorded is not None:
        return f"{title} was not recorded: {outcome.not_recorded}; {where} holds no samples{left}"
    what = f"{processes(outcome.finished)}: {recorded(outcome.finished)}"
    early = "" if outcome.stopped_early is None else f"; {outcome.stopped_early}"
    which = f" ({windows(outcome, delivery)})" if outcome.windows else ""
    following = f"tachograph analyze {where}"
    if delivery is not None and delivery.url is not None:
        following = f"tachograph fleet top {shlex.quote(delivery.folder)}"
    size = bytes_text(outcome.finished.size)
    return (
        f"recorded {outcome.seconds:.1f} s of {title}{ending(status)}{what}, {size} in {where}{which}{early}; "
        f"{lost(outcome.finished)}{left}; next: {following}"
    )


def ending(status: int) -> str:
    """How the program ended, in brackets; empty if it succeeded."""
    if status >= 0:
        return f" (exit status {status})" if status else ""
    try:
        return f" (ended by {signal.Signals(-status).name})"
    except ValueError:
        return f" (ended by signal {-status})"


def undelivered(delivery: Delivery) -> str:
    """Recordings that the store did not take, why, and how to send them later; empty if it has all."""
    dropped = (
        f"; {delivery.dropped:,} windows were deleted, as too many waited for the store" if delivery.dropped else ""
    )
    if not delivery.left:
        return dropped
    paths = " ".join(shlex.quote(str(path)) for path in delivery.left[:3])
    more = " ..." if len(delivery.left) > 3 else ""
    count = "1 recording" if len(delivery.left) == 1 else f"{len(delivery.left):,} recordings"
    return (
        f"; the store did not take {count} ({delivery.problem}), kept here: to try again,"
        f" tachograph upload {paths}{more} {shlex.quote(delivery.destination)}{dropped}"
    )


def windows(outcome: Outcome, delivery: Delivery | None = None) -> str:
    """The windows before the last one, and which of them are still there."""
    if delivery is not None:
        return f"the last window; {outcome.windows:,} before it, {delivery.sent:,} sent"
    there = [f"{outcome.saved:,} in snapshots"] if outcome.saved else []
    if outcome.kept:
        first, last = (shlex.quote(outcome.kept[at].name) for at in (0, -1))
        there.append(first if first == last else f"{first} to {last}")
    kept = f"kept: {' and '.join(there)}" if there else "none of them kept"
    return f"the last window; {outcome.windows:,} before it, {kept}"


def processes(finished: Finished) -> str:
    """The numbers of recorded and of other processes; empty for a single process."""
    count = finished.processes
    listed = count.get("listed", 0)
    python = sum(count.values()) - listed
    if python == 1 and not listed and not count.get("native"):
        return ""
    bare = f" ({count['native']:,} without Python stacks)" if count.get("native") else ""
    others = f" and {listed:,} other{'s' if listed > 1 else ''}" if listed else ""
    return f", {python:,} Python process{'' if python == 1 else 'es'}{bare}{others}"


def recorded(finished: Finished) -> str:
    """The number of rows of each table that has some; of CPU samples even if there are none."""
    counts = [(finished.rows.get(table, 0), one, many) for table, one, many in COUNTED]
    return ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n or one == "CPU sample")


def lost(finished: Finished) -> str:
    """The losses by cause."""
    if not finished.lost:
        return "nothing lost" if finished.rows.get("cpu") else "no CPU time was sampled"
    return "lost: " + "; ".join(f"{what} ({count:,})" for what, count in finished.lost.items())


def bytes_text(size: int) -> str:
    """A size for people: ``31 KB``."""
    if size < 1_000_000:
        return f"{size / 1000:.0f} KB"
    return f"{size / 1e6:.1f} MB"


def say(line: str) -> None:
    """Write a line on the standard error, if there still is one; the standard output is the program's."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"tachograph: {one_line(line)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # its reader has gone; the recording is there all the same


AFTER_S = 1.0
"""What takes less says nothing."""

_CLEAR = "\r\x1b[K"


@contextmanager
def waiting(text: str, after_s: float = AFTER_S) -> Iterator[None]:
    """Shows ``text`` and the seconds so far on standard error, if that is a terminal, and removes it at the end."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = clock.Flag()
    thread = threading.Thread(target=_show, args=(text, after_s, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(text: str, after_s: float, done: clock.Flag) -> None:
    began = time.monotonic()
    if done.wait(after_s):
        return
    while not done.is_set():
        seconds = f" {time.monotonic() - began:.0f} s"
        room = max(shutil.get_terminal_size().columns - len(seconds) - 1, 0)
        sys.stderr.write(_CLEAR + text[:room] + seconds)
        sys.stderr.flush()
        done.wait(1.0)
    sys.stderr.write(_CLEAR)
    sys.stderr.flush()
