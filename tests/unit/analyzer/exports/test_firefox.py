"""The Firefox Profiler's files: their tables fit together, and the profiler's own command reads them, where it is."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export

PROFILER = shutil.which("profiler-cli")
"""npm install --global @firefox-devtools/profiler-cli: the Firefox Profiler as a command."""


def read(data: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(data))
    return document


def stacks(thread: dict[str, Any]) -> list[tuple[list[str], float]]:
    """Names from root to leaf and weight, for each sample of a thread."""
    table, frames, funcs = thread["stackTable"], thread["frameTable"], thread["funcTable"]
    found = []
    for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
        names: list[str] = []
        while stack is not None:
            names.append(thread["stringArray"][funcs["name"][frames["func"][table["frame"][stack]]]])
            stack = table["prefix"][stack]
        found.append((names[::-1], weight))
    return found


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_samples_are_what_was_recorded(export: Export, metric: str, truth: program.Truth) -> None:
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for thread in read(export("firefox", metric))["threads"]:
        for names, weight in stacks(thread):
            unit = {"tracing-ms": program.MS, "bytes": 1}[thread["samples"]["weightType"]]
            own[names[-1]] += round(weight * unit)
            for name in set(names):
                total[name] += round(weight * unit)
    assert (own, total) == (truth.own, truth.total)


def test_tables_have_columns_of_one_length(export: Export) -> None:
    for thread in read(export("firefox", native=True))["threads"]:
        for name in ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "samples", "markers"):
            table = thread[name]
            lengths = {column: len(values) for column, values in table.items() if isinstance(values, list)}
            assert set(lengths.values()) == {table["length"]}, (name, lengths)


def test_threads_and_times(export: Export) -> None:
    document = read(export("firefox"))
    threads = [(each["name"], each["isMainThread"], each["pid"], each["tid"]) for each in document["threads"]]
    assert threads == [("MainThread", True, "100", 100), ("pool-1", False, "100", 101)]
    assert document["threads"][0]["samples"]["time"] == [0, 20, 30, 40, 70]
    assert document["meta"]["startTime"] == 1_700_000_000_000


@pytest.mark.skipif(PROFILER is None, reason="the Firefox Profiler's command is not installed")
def test_the_firefox_profiler_reads_it(export: Export, tmp_path: Path) -> None:
    assert PROFILER is not None
    file = tmp_path / "run.json.gz"
    file.write_bytes(export("firefox"))
    environment = os.environ | {"HOME": str(tmp_path), "NO_COLOR": "1"}

    def ask(*arguments: str) -> str:
        done = subprocess.run([PROFILER, *arguments], capture_output=True, text=True, timeout=60, env=environment)
        said = done.stdout + done.stderr
        # It gives its own server half a second to start, which a busy machine does not keep to.
        late = re.search(r'did not become ready.*run "kill (\d+)"', said, re.DOTALL)
        if late is not None:
            os.kill(int(late[1]), signal.SIGTERM)
            raise TimeoutError(said)
        assert done.returncode == 0, said
        return done.stdout

    for _ in range(20):
        with suppress(TimeoutError):
            ask("load", str(file))
            break
    else:
        pytest.skip("the machine is too busy for the Firefox Profiler's command")
    try:
        threads, functions = ask("thread", "list"), ask("thread", "functions", "--include-idle")
    finally:
        ask("stop", "--all")
    assert "MainThread" in threads
    assert "pool-1" in threads
    found = {match[1]: float(match[2]) for match in re.finditer(r"f-\d+\. (\S+) - self: ([\d.]+)ms", functions)}
    assert found["fib"] == 60
    assert found["work"] == 35
