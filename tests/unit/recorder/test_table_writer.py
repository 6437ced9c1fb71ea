"""The process in which tables of closed windows are made: what it raises, its death, and that of who started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tachograph.format import FormatError
from tachograph.format.atomic import read_regular_file, write_bytes
from tachograph.recorder.collect.finish import UnfinishedError
from tachograph.recorder.collect.table_writer import TableProcess

KILLED = """
import os, sys, threading, time
from tachograph.recorder.collect.table_writer import TableProcess
tables = TableProcess()
threading.Thread(target=tables.call, args=(time.sleep, 60), daemon=True).start()
while tables._process is None: time.sleep(0.01)
print(tables._process.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def tables() -> Iterator[TableProcess]:
    process = TableProcess()
    yield process
    process.end()


def test_it_is_another_process_and_one_for_several_calls(tables: TableProcess, tmp_path: Path) -> None:
    tables.call(os.chdir, tmp_path)
    tables.call(write_bytes, Path("where.it.is"), b"written")
    assert (tmp_path / "where.it.is").read_bytes() == b"written"
    assert Path.cwd() != tmp_path
    assert tables.end() == 0
    assert tables.end() == 0


@pytest.mark.parametrize(
    ("function", "arguments", "raised"),
    [
        (os.rmdir, ["/no such folder"], FileNotFoundError),
        (read_regular_file, [Path("/dev/null"), 1], FormatError),
        (len, [5], UnfinishedError),  # a fault of ours
    ],
)
def test_what_is_raised_there_is_raised_here(
    tables: TableProcess, function: Callable[..., object], arguments: Sequence[object], raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        tables.call(function, *arguments)
    tables.call(os.getpid)


def test_one_that_was_killed_is_told_and_replaced(tables: TableProcess) -> None:
    with pytest.raises(UnfinishedError, match="the process that makes the tables ended with status -9"):
        tables.call(signal.raise_signal, signal.SIGKILL)
    tables.call(os.getpid)


@pytest.mark.recording
def test_it_dies_with_the_command() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        pid = int(command.stdout.readline())
        time.sleep(0.5)
        assert Path(f"/proc/{pid}").exists()
        command.kill()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()
