"""Allocators other than the usual ones, and what else looks at memory: the program runs as ever, and its memory is in
the recording, or the recording says that it is not."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from integration import support
from integration.test_memory_conditions import counters

pytestmark = pytest.mark.native

KEPT = 30_000_000
ALLOCATE = """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
def small(count): return [float(i) for i in range(count)]
def work():
    for _ in range(5): small(50_000), [{i: str(i)} for i in range(5000)], bytes(3_000_000), " ".join(["words"] * 9999)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
kept = [bytes(1000) for _ in range(30_000)]
blocks = []
for number in range(2000):
    block = libc.malloc(ctypes.c_size_t(number * 10))
    blocks.append(libc.realloc(ctypes.c_void_p(block), ctypes.c_size_t(15_000)))
print(len(kept), len(blocks), sum(map(len, kept)))
for block in blocks: libc.free(ctypes.c_void_p(block))
"""
"""Keeps 30 MB of Python's to the end, and 30 MB of the C allocator's nearly so."""

PRELOADS = {
    "jemalloc": ("libjemalloc.so.2",),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so.3"),
    "tcmalloc": ("libtcmalloc_minimal.so.4",),
}
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


def run(tmp_path: Path, code: str, **changes: str) -> tuple[dict[str, Any], Path]:
    """Bare and recorded, which must not differ; the analysis and the recording."""
    script, environment = tmp_path / "program.py", support.environment(**changes)
    script.write_text(code, encoding="utf-8")
    plain = support.bare([script], tmp_path, env=environment)
    recorded = support.record([script], tmp_path, env=environment)
    assert plain.status == 0, plain.stderr
    assert recorded == plain
    recording = tmp_path / "run.tacho"
    counters(recording)
    return support.analyze(recording, cwd=tmp_path), recording


def check_seen_or_said(
    report: dict[str, Any], recording: Path, domains: Iterable[str], size: int, *losses: str
) -> None:
    """Either the rows of the domains count ``size`` bytes, or the quality ledger names one of ``losses``."""
    rows = support.rows(recording, "memory")[1:]
    seen = sum(row[f"{domain}_allocated_bytes"] for row in rows for domain in domains)
    said = support.losses(report)
    assert seen >= size or set(losses) & set(said), f"{seen} of {size} bytes of {domains}, and only {said} is said"


def check_both(report: dict[str, Any], recording: Path) -> None:
    check_seen_or_said(report, recording, ("raw", "mem", "obj"), KEPT, "allocator_unseen", "allocator_replaced")
    check_seen_or_said(report, recording, ("native",), KEPT, "native_unseen")


SAME = ("pymalloc", "debug")
"""Python's default, and another name for ``pymalloc_debug``, or for that of mimalloc."""
NAMES = ["malloc", "malloc_debug", "pymalloc_debug", "mimalloc"]
NAMES_TRIED = [*NAMES, *(pytest.param(each, marks=pytest.mark.slow) for each in SAME)]


@pytest.mark.parametrize("name", NAMES_TRIED)
def test_allocators_of_python(tmp_path: Path, name: str) -> None:
    if name == "mimalloc" and sys.version_info < (3, 13):
        pytest.skip("mimalloc came with CPython 3.13")
    if name == "mimalloc" and support.bare(["-c", ""], tmp_path, env=support.environment(PYTHONMALLOC=name)).status:
        pytest.skip("this CPython was built without mimalloc")
    report, recording = run(tmp_path, ALLOCATE, PYTHONMALLOC=name)
    check_both(report, recording)
    if name != "mimalloc":  # all of these sizes can be known
        rows = support.rows(recording, "memory")[1:]
        assert sum(row["obj_allocated_bytes"] for row in rows) >= KEPT, support.losses(report)
        # What the interpreter's start holds differs by version, by installation, and with the debug allocators.
        before = sum(line["live_at_end_bytes"] for line in report["lines"] if line["function"] == "<before recording>")
        assert report["totals"]["live_at_end_bytes"] - before == pytest.approx(KEPT, rel=0.25)


def test_development_mode(tmp_path: Path) -> None:
    check_both(*run(tmp_path, ALLOCATE, PYTHONDEVMODE="1"))


@pytest.mark.parametrize("name", PRELOADS)
def test_allocators_of_the_programs_own(tmp_path: Path, name: str) -> None:
    """Preloaded as well: the program gets the allocator that it asked for."""
    found = [path for folder in FOLDERS for file in PRELOADS[name] if (path := Path(folder) / file).exists()]
    if not found:
        pytest.skip(f"{name} is not installed")
    code = ALLOCATE + f"print({found[0].name.split('.')[0]!r} in open('/proc/self/maps').read())\n"
    report, recording = run(tmp_path, code, LD_PRELOAD=str(found[0]))
    check_both(report, recording)


OPERATOR_NEW = """
import ctypes
cpp = ctypes.CDLL("libstdc++.so.6", ctypes.RTLD_GLOBAL)
new, delete = ctypes.CDLL(None)._Znwm, ctypes.CDLL(None)._ZdlPv
new.restype = ctypes.c_void_p
blocks = [new(ctypes.c_size_t(15_000)) for _ in range(2000)]
for block in blocks: delete(ctypes.c_void_p(block))
"""
"""What C++ allocates: 30 MB with `operator new`."""


@pytest.mark.parametrize("name", ["", *PRELOADS])
def test_operator_new_is_seen_or_said(tmp_path: Path, name: str) -> None:
    found = [path for folder in FOLDERS for file in PRELOADS.get(name, ()) if (path := Path(folder) / file).exists()]
    if name and not found:
        pytest.skip(f"{name} is not installed")
    report, recording = run(tmp_path, OPERATOR_NEW, **({"LD_PRELOAD": str(found[0])} if found else {}))
    check_seen_or_said(report, recording, ("native",), KEPT, "operator_new_unseen")
    assert ("operator_new_unseen" in support.losses(report)) == bool(name)


TUNING = """
import ctypes, gc
libc = ctypes.CDLL(None)
print(libc.mallopt(-3, 1 << 20), libc.mallopt(-1, 1 << 16), libc.mallopt(-8, 1), libc.mallopt(1, 64))
for _ in range(20):
    kept = [bytes(2000) for _ in range(5000)]
    del kept
    gc.collect()
    assert libc.malloc_trim(0) in (0, 1)
print(libc.mallopt(-3, 128 * 1024), libc.malloc_trim(0) in (0, 1))
"""


def test_malloc_trim_and_mallopt(tmp_path: Path) -> None:
    """Other thresholds, and pages given back: what is held by blocks is what it was."""
    _, recording = run(tmp_path, TUNING)
    rows = support.rows(recording, "memory")
    assert sum(row["obj_allocated_bytes"] for row in rows[1:]) >= 20 * 5000 * 2000
    assert rows[-1]["footprint_bytes"] < rows[0]["footprint_bytes"] + (8 << 20)


TRACED = """
import sys, tracemalloc
def count(): return tracemalloc.get_traced_memory()[0]
def measure():
    before = count()
    kept = [bytes(1000) for _ in range(1000)]
    with_it = count() - before
    by_line = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)]).statistics("lineno")
    # The interpreter's free lists give and take some bytes, differently from one bare run to the next.
    print(round(with_it, -3), [(s.traceback[0].lineno, round(s.count, -1), round(s.size, -3)) for s in by_line[:1]])
def once():
    if not tracemalloc.is_tracing(): tracemalloc.start()
    measure()
    tracemalloc.stop()
for _ in range(3): once()
first = [bytes(1000) for _ in range(15_000)]
tracemalloc.start(5); measure(); tracemalloc.stop()
second = [bytes(1000) for _ in range(15_000)]
print(tracemalloc.is_tracing(), tracemalloc.get_traced_memory())
"""


@pytest.mark.parametrize(
    "before",
    ["", pytest.param("1", marks=pytest.mark.slow), pytest.param("10", marks=pytest.mark.slow)],
    ids=["started by the program", "started before", "deep"],
)
def test_tracemalloc(tmp_path: Path, before: str) -> None:
    """Its figures are its own; what the program allocates after it has stopped is seen, or that it is not is said."""
    report, recording = run(tmp_path, TRACED, **({"PYTHONTRACEMALLOC": before} if before else {}))
    check_seen_or_said(report, recording, ("raw", "mem", "obj"), KEPT, "allocator_unseen", "allocator_replaced")


UNCLOSED = """
def func():
    f = open(__file__, "rb")
    f = None
func()
"""


def test_tracemalloc_that_needs_much_for_itself(tmp_path: Path) -> None:
    """Where warnings tell the place of an allocation, tracemalloc allocates a dozen blocks behind the one asked for."""
    program = tmp_path / "unclosed.py"
    program.write_text(UNCLOSED)
    command = [sys.executable, "-Wd", "-X", "tracemalloc=2", str(program)]
    recorded = support.record(command, tmp_path)
    assert recorded == support.run(command, tmp_path)
    assert "Object allocated at" in recorded.stderr


def test_tracemalloc_to_the_end(tmp_path: Path) -> None:
    report, recording = run(tmp_path, "import tracemalloc\ntracemalloc.start()\n" + ALLOCATE)
    check_both(report, recording)


FAULTHANDLER = """
import faulthandler, sys, threading, time
faulthandler.enable()
faulthandler.dump_traceback_later(0.05, repeat=True, file=open("traces.txt", "w"))
done = []
def churn():
    while not done: [bytes(i) for i in range(0, 60_000, 100)]
threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads: thread.start()
time.sleep(0.5)
done.append(1)
for thread in threads: thread.join()
faulthandler.cancel_dump_traceback_later()
print(open("traces.txt").read().count("churn") > 2)
"""


def test_faulthandler(tmp_path: Path) -> None:
    """Tracebacks of all threads, by a thread of C, while they allocate."""
    assert support.bare(["-c", FAULTHANDLER], tmp_path).stdout == "True\n"
    run(tmp_path, FAULTHANDLER)
