"""One SELECT over the tables of a recording, in a process of its own that reads no file.

DuckDB asks for an interruption, and for its limit of memory, between values: a single value may take minutes and
gigabytes. So the query runs in a process that gets the tables through a pipe, has a limit of address space (on Linux),
and is killed when its time is over.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tachograph.format import FormatError

from ...recording.text import printable

if TYPE_CHECKING:
    from ...recording.opened import Recording

MOST_ROWS = 1_000
"""Rows of an answer."""

MOST_TABLE_ROWS = 20_000_000
MOST_SQL = 10_000
MOST_SECONDS = 30.0
MOST_VALUE = 200
"""Characters of a value."""

MOST_CHARACTERS = 500_000
"""Characters of an answer: several times what the longest answer of an assistant may have."""

MOST_MEMORY = 1 << 30
"""Bytes of address space that a query may take beyond its tables; DuckDB keeps to half of it where it can."""

MOST_LINE = 16_000_000
"""Bytes of a row as the process writes it."""

LOADING_SECONDS = 120.0
"""The process that runs the query has begun, and has its tables, by then."""

_PROCESS = Path(__file__).with_name("database_process.py")


def select(recording: Recording, sql: str, rows: int, seconds: float = MOST_SECONDS) -> list[str]:
    """The rows of an answer as text, one line each, the names of columns first.

    Errors:
        FormatError: it is not one SELECT, it is wrong, it needs a table that was not recorded, or it takes too long
            or too much memory.
    """
    if len(sql) > MOST_SQL:
        raise FormatError(f"the query is longer than {MOST_SQL:,} characters")
    with subprocess.Popen(
        [sys.executable, "-I", _PROCESS, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        late = threading.Event()
        try:
            with _killed_after(LOADING_SECONDS, process, late):
                _send(recording, sql, min(rows, MOST_ROWS) + 1, cast("IO[bytes]", process.stdin))
                _line(process)
            with _killed_after(seconds, process, late):
                return _answer(process, min(rows, MOST_ROWS))
        except EOFError:
            why = f"took longer than {seconds:g} s" if late.is_set() else f"needs more than {MOST_MEMORY >> 20:,} MB"
            raise FormatError(f"the query {why}") from None
        finally:
            process.kill()


def _answer(process: subprocess.Popen[bytes], most: int) -> list[str]:
    """The lines of the answer. Raises EOFError where it has no end."""
    lines: list[str] = []
    left = MOST_CHARACTERS
    while (row := _line(process)) != "end":
        if isinstance(row, dict):
            raise FormatError(printable(row["problem"], 400))
        line = " | ".join(printable(value, MOST_VALUE) for value in row)
        left -= len(line)
        if len(lines) > most or left < 0:
            return [*lines, "(there are more rows)"]
        lines.append(line)
    return lines


def _line(process: subprocess.Popen[bytes]) -> Any:
    """The next line of the process. Raises EOFError at its end."""
    line = cast("IO[bytes]", process.stdout).readline(MOST_LINE)
    if not line.endswith(b"\n"):
        raise EOFError
    return json.loads(line)


@contextmanager
def _killed_after(seconds: float, process: subprocess.Popen[bytes], late: threading.Event) -> Iterator[None]:
    """Kill a process if the body takes longer; ``late`` is set then."""

    def kill() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _send(recording: Recording, sql: str, rows: int, sink: IO[bytes]) -> None:
    """Send the query, and the tables that it may name."""
    import pyarrow as pa

    words = {word.lower() for word in re.findall(r"[A-Za-z_]+", sql)}
    specification = recording.specification.tables
    names = [name for name in specification if name in words and recording.recorded(name)]
    for name in names:
        if recording.rows(name) > MOST_TABLE_ROWS:
            raise FormatError(f"{name} has {recording.rows(name):,} rows, more than {MOST_TABLE_ROWS:,}")
    order = {"sql": sql, "rows": rows, "cut": MOST_VALUE + 1, "memory": MOST_MEMORY, "tables": names}
    with suppress(BrokenPipeError), sink:  # the end of its answer says that it has ended
        sink.write(json.dumps(order).encode() + b"\n")
        for name in names:
            schema = specification[name].schema
            with pa.ipc.new_stream(sink, schema) as stream:
                for batch in recording.batches(name, schema.names):
                    stream.write_batch(batch)
