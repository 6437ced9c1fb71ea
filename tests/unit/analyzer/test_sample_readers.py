"""The tables of samples have one reader: what adds up ``cpu`` or ``waits`` is a sink of the stream."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import tachograph.analyzer

ROOT = Path(tachograph.analyzer.__path__[0])

SAMPLES = {"cpu", "waits"}

LONG = {"batches", "read_group", "row_groups"}
"""Methods of recordings and of their tables that read a long table, which they are given the name of."""

READERS = LONG | {"read", "table", "frame"}
"""Those that read a whole table, too. They have the names of other things: only a name that stands there counts."""

LOOK_AT_TIMES = {"recording/process_lifetimes.py", "conclusions/memory/fork_copies.py"}
"""When interpreters start and end, and the last sign of life of processes, which the stream needs; and the time between
two samples, by which page faults are divided: no CPU time is summed there.
"""

ANY_TABLE = {
    "recording/opened.py",
    "recording/tables.py",
    "api.py",
    "exports/scrub/masks.py",
    "commands/assistant/mcp_server.py",
}
"""They hand on the rows of whichever table is asked for, as they are."""


def readers(source: str) -> set[str]:
    """The names of tables that a module reads; ``*`` for a long one that is named by a variable."""
    tree = ast.parse(source)
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        values = [node.func, *node.args]
        # A method may be given on, with the name behind it: partial(tables.read_group, "cpu").
        for value, name in pairwise(values):
            if isinstance(value, ast.Attribute) and value.attr in READERS:
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value)
                elif value.attr in LONG:
                    found.add("*")
        if isinstance(node.func, ast.Name) and node.func.id == "weighted_batches":
            found.add("cpu")
    return found


def names_in(source: str) -> set[str]:
    """The names of tables of samples that stand in a module as texts."""
    return SAMPLES & {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}


def test_only_the_stream_reads_samples() -> None:
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        read = readers(source)
        if read & SAMPLES or ("*" in read and names_in(source)):
            found.add(name)
    found -= ANY_TABLE
    assert {name for name in found if not name.startswith("samples/")} == LOOK_AT_TIMES
    assert {"samples/stream.py", "samples/weights.py"} <= found


def test_readers_are_recognised() -> None:
    assert readers('recording.batches("cpu", ["stack"])') == {"cpu"}
    assert readers('partial(recording.tables.read_group, "waits", columns=())') == {"waits"}
    assert readers("weighted_batches(recording, columns)") == {"cpu"}
    assert readers('recording.rows("cpu")') == set()
    loop = 'for each in ("cpu", "waits"):\n    recording.batches(each, [])'
    assert readers(loop) == {"*"}
    assert names_in(loop) == SAMPLES
