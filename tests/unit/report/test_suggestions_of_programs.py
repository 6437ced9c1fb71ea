"""Suggestions about memory, threads and processes, on recordings whose every number is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from unit.analyzer.recordings import MS, NATIVE_FRAME, PYTHON_FRAME, SPEC, START, Builder
from unit.analyzer.test_pools import Program
from unit.report.suggested import SITE, Answer, found, hot, library, rules

pytestmark = pytest.mark.broad

KEEPING = """import functools, queue
from collections import deque
KEPT, LIST, WAITING = {}, [], None
CACHE = {}
ITEMS = []
JOBS = queue.Queue()
class Store:
    def __init__(self):
        self.items = []
    def keep(self, value):
        self.items.append(bytes(value))
@functools.lru_cache(maxsize=None)
def cached(key):
    return bytes(key)
def keep(key, value):
    CACHE[key] = bytes(value)
    ITEMS.append(bytes(value))
    JOBS.put(bytes(value))
    other[key] = bytes(value)
"""


@pytest.mark.parametrize(
    ("line", "removing", "said"),
    [
        (11, "", "“self.items” is a list"),
        (14, "", "cached is cached without a limit"),
        (16, "", "“CACHE” is a dict"),
        (16, "def drop(key):\n    del CACHE[key]\n", "keeps what it allocates"),
        (16, "def drop(key):\n    CACHE.pop(key)\n", "keeps what it allocates"),
        (17, "", "“ITEMS” is a list"),
        (18, "", "“JOBS” has no limit"),
        (19, "", "keeps what it allocates"),
    ],
)
def test_what_keeps_the_blocks_of_a_leak(builder: Builder, answer: Answer, line: int, removing: str, said: str) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py", KEEPING + removing), "keep"), line - 1))
    footprint = 0
    for number in range(100):
        builder.block(stack, 1_000_000, number * 100)
        footprint += 1_000_000
        builder.memory("tick", number * 100, footprint, obj_allocated_bytes=1_000_000, stack=stack)
    builder.memory("end", 10_000, footprint)
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.line) == ("leak", line)
    assert said in suggestion.text
    assert "/s not given back" in suggestion.figure


@pytest.mark.parametrize(("seconds", "expected"), [(10, []), (100, [("leak", 4)])])
def test_what_a_library_builds_may_be_in_use(
    builder: Builder, answer: Answer, seconds: int, expected: list[Any]
) -> None:
    """A document that is read and written within seconds looks the same as one that is never given back."""
    program = builder.code(builder.file("/srv/a.py", "import docs\n\n\ndocs.publish(text)\n"), "main")
    library = builder.code(builder.file("/usr/lib/python3.11/site-packages/docs.py", "\n" * 9), "publish")
    stack = builder.stack((program, 3), (library, 5))
    builder.end_ns = START + seconds * 1000 * MS
    builder.rows["processes"][0]["end_ns"] = builder.end_ns
    footprint = 0
    for number in range(100):
        builder.block(stack, 1_000_000, number * seconds * 10)
        footprint += 1_000_000
        builder.memory("tick", number * seconds * 10, footprint, obj_allocated_bytes=1_000_000, stack=stack)
    builder.memory("end", seconds * 1000, footprint)
    assert rules(answer) == expected
    assert [each.rule for each in found(answer, scope="all")] == [rule for rule, _ in expected]


def test_the_collector(builder: Builder, answer: Answer) -> None:
    frame = builder.native_frame(0, "visit_reachable")
    hot(builder, "x = []\n", 1, samples=200)
    hot(builder, "x = []\n", 1, samples=100, native_frame=frame)
    assert rules(answer) == [("garbage-collector", None)]


@pytest.mark.parametrize(("collecting", "last"), [(100, True), (300, False)])
def test_the_collector_below_a_function_that_has_most_of_the_time(
    builder: Builder, answer: Answer, collecting: int, *, last: bool
) -> None:
    """What one function makes is why it collects: whether that has to run so often comes first."""
    frame = builder.native_frame(0, "visit_reachable")
    file = builder.file("/srv/a.py", "seen = []\ndef main(x):\n    make()\n    return x in seen\n")
    main, make = builder.code(file, "main", 2), builder.code(file, "make", 5)
    at, search = builder.stack((main, 1), (make, 0)), builder.stack((main, 2))
    path = builder.native_stack(None, PYTHON_FRAME, search)
    for number in range(200):
        builder.cpu(at, time_ns=START + number * MS)
    for number in range(collecting):
        builder.cpu(at, time_ns=START + (200 + number) * MS, native_frame=frame)
    for number in range(60):
        looking = {"native_frame": builder.native_frame(0, "list_contains"), "native_stack": path, "native_path": 1}
        builder.cpu(search, time_ns=START + (500 + number) * MS, **looking)
    expected = ["in-list", "garbage-collector"]
    assert [rule for rule, _ in rules(answer)] == (expected if last else expected[::-1])
    of_collector = next(each for each in found(answer) if each.rule == "garbage-collector")
    assert ("mostly below “make”, which has 83" in of_collector.text) == last
    assert ("whether “make” has to run so often" in of_collector.instead) == last


def test_the_collector_while_modules_are_imported(builder: Builder, answer: Answer) -> None:
    """What an import allocates is looked through as well, once: nothing is to be done about it."""
    frame = builder.native_frame(0, "visit_reachable")
    hot(builder, "import pandas\n", 1, samples=200)
    importing = library(builder, "<frozen importlib._bootstrap>", "_find_and_load")
    hot(builder, "import pandas\n", 1, importing, samples=100, native_frame=frame)
    assert rules(answer) == []


TARGETS = {"GIL": 8, "lock": 9, "socket": 2, "cpu": 7}


def test_target_numbers() -> None:
    names = [value.name for value in SPEC.enums["target"]]
    assert {name: names.index(name.lower()) for name in TARGETS} == TARGETS


@pytest.mark.parametrize(
    ("cpu_ms", "gil_ms", "same_process", "expected"),
    [
        (3000, 2500, True, [("python-threads", 1)]),
        (3000, 500, True, []),  # hardly waited
        (3000, 2500, False, []),  # two interpreters
        (600, 600, True, []),  # the program mostly rests
    ],
)
def test_threads_that_take_turns(
    builder: Builder, answer: Answer, cpu_ms: int, gil_ms: int, same_process: bool, expected: list[Any]
) -> None:
    process = 0 if same_process else builder.process(200, 0, 10_000)[0]
    threads = [0, builder.thread("worker", process=process)]
    at = builder.stack((builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for thread in threads:
        for number in range(cpu_ms // 10):
            builder.cpu(at, time_ns=START + number * MS, thread=thread)
        builder.wait(at, 100, 100 + gil_ms, thread=thread, target=TARGETS["GIL"])
    assert rules(answer) == expected


@pytest.mark.parametrize(("lacked_ms", "expected"), [(2500, [("python-threads", None)]), (4000, [])])
def test_threads_without_a_processor_do_not_wait_for_each_other(
    builder: Builder, answer: Answer, lacked_ms: int, expected: list[Any]
) -> None:
    """Two seconds of Python; the thread that holds the GIL gets no processor for much longer."""
    at = builder.stack((builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for thread in (0, builder.thread("worker")):
        for number in range(100):
            builder.cpu(at, time_ns=START + number * MS, thread=thread)
        builder.wait(at, 100, 2600, thread=thread, target=TARGETS["GIL"])
        builder.wait(at, 3000, 3000 + lacked_ms, thread=thread, target=TARGETS["cpu"])
    assert [rule for rule, _ in rules(answer)] == [rule for rule, _ in expected]


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        (f"{SITE}/anyio/_backends/_asyncio.py", "WorkerThread.run", "uvicorn --workers N"),
        (f"{SITE}/own/_asyncio.py", "WorkerThread.run", "ProcessPoolExecutor"),
    ],
)
def test_a_web_server_has_processes_of_its_own(
    builder: Builder, answer: Answer, path: str, name: str, said: str
) -> None:
    serving = library(builder, path, name)
    at = builder.stack((serving, 0), (builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for thread in (0, builder.thread("AnyIO worker thread")):
        for number in range(300):
            builder.cpu(at, time_ns=START + number * MS, thread=thread)
        builder.wait(at, 100, 2600, thread=thread, target=TARGETS["GIL"])
    (suggestion,) = found(answer)
    assert suggestion.rule == "python-threads"
    assert said in suggestion.instead


POOL = """from concurrent.futures import ThreadPoolExecutor
def work(item):
    return item
def main(items):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))
"""


@pytest.mark.parametrize(
    ("source", "native", "expected"),
    [
        (POOL, False, [("python-threads", 5)]),
        (POOL.replace("Thread", "Process"), False, []),
        (POOL, True, []),  # native code runs beside another thread
    ],
)
def test_a_pool_of_threads_takes_turns_on_a_busy_machine_too(
    builder: Builder, answer: Answer, source: str, native: bool, expected: list[Any]
) -> None:
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 2))
    code = builder.native_frame(builder.module("/usr/lib/_hash.so"), "hash_all")
    for thread in (builder.thread("worker"), builder.thread("other")):
        for number in range(100):
            frame = {"native_frame": code} if native and number % 2 else {}
            builder.cpu(at, time_ns=START + number * MS, thread=thread, **frame)
        builder.wait(at, 100, 2600, thread=thread, target=TARGETS["GIL"])
        builder.wait(at, 3000, 7000, thread=thread, target=TARGETS["cpu"])
    assert rules(answer) == expected


HISTORY = """import numpy as np
class History:
    def record(self, town):
        self.states.append((
            town.place.copy(),
            town.count))
def simulate(history, town):
    for step in range(100):
        history.record(town)
"""


@pytest.mark.parametrize(
    ("old", "new", "size", "expected"),
    [
        ("", "", 200_000_000, True),
        ("", "", 60_000_000, False),  # little memory
        (".copy()", "", 200_000_000, False),
        ("    for step in range(100):\n    ", "", 200_000_000, False),
        ("def simulate", "    def next(self):\n        return self.states.pop()\ndef simulate", 200_000_000, False),
    ],
)
def test_copies_of_each_round_that_are_kept(
    builder: Builder, answer: Answer, old: str, new: str, size: int, expected: bool
) -> None:
    source = HISTORY.replace(old, new) if old else HISTORY
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "record"), 4))
    builder.block(at, size, 100, 9_000)
    builder.block(None, 30_000_000, 100, 9_000)
    builder.memory("threshold", 200, size + 30_000_000)
    builder.memory("end", 9_999, 0)
    assert rules(answer) == [("kept-copies", 5)] * expected


WITH = """import threading
LOCK = threading.{kind}()
def work():
    with LOCK:
        step()
"""


@pytest.mark.parametrize(
    ("kind", "waited_ms", "held_ms", "expected"),
    [
        ("Lock", 6000, 9000, [("held-lock", 4)]),
        ("RLock", 6000, 9000, [("held-lock", 4)]),
        ("Condition", 6000, 9000, []),  # to wait for one is what it is for
        ("Lock", 1000, 9000, []),
        ("Lock", 6000, 1000, []),  # not held by this line's body
    ],
)
def test_a_lock_that_is_held(
    builder: Builder, answer: Answer, kind: str, waited_ms: int, held_ms: int, expected: list[Any]
) -> None:
    f = builder.code(builder.file("/srv/a.py", WITH.format(kind=kind)), "work")
    other = builder.thread("other")
    builder.wait(builder.stack((f, 3)), 0, waited_ms, target=TARGETS["lock"])
    builder.wait(builder.stack((f, 4)), 0, held_ms, thread=other, target=TARGETS["socket"])
    assert rules(answer) == expected


REQUESTS = """from urllib.request import urlopen
import time
def work(base, pages):
    found = []
    for page in pages:
        found.append(urlopen(base + page))
    return found
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", True),
        ("base + page", "f'{base}/{page}'", True),
        ("base + page", "base", False),  # the same again: it waits for a change
        ("found.append(urlopen(base + page))", "base = urlopen(base + page)", False),  # leads to the next
        ("return found", "    time.sleep(1)", False),  # it was asked to
        ("return found", "    if found: break", False),  # until it is found
        ("for page in pages", "while pages", False),
        ("from urllib.request", "from tools", False),
    ],
)
def test_requests_in_series(builder: Builder, answer: Answer, old: str, new: str, expected: bool) -> None:
    f = builder.code(builder.file("/srv/a.py", REQUESTS.replace(old, new) if old else REQUESTS), "work")
    builder.wait(builder.stack((f, 5)), 0, 6000, target=TARGETS["socket"])
    assert rules(answer) == ([("waits-in-series", 6)] if expected else [])


@pytest.mark.parametrize(
    ("pool", "spent", "expected"),
    [
        (("concurrent/futures/process.py", "_process_worker"), (1000, 50, 50, 50), True),
        (("multiprocessing/pool.py", "worker"), (1000, 50, 50, 50), True),
        (("multiprocessing/pool.py", "worker"), (400, 300, 300, 300), False),
        (("multiprocessing/pool.py", "worker"), (1000, 50), False),
        (("socketserver.py", "serve_forever"), (1000, 50, 50, 50), False),  # one client, for all that is known
    ],
)
def test_one_busy_worker(
    builder: Builder, answer: Answer, pool: tuple[str, str], spent: tuple[int, ...], expected: bool
) -> None:
    worker = library(builder, f"/usr/lib/python3.13/{pool[0]}", pool[1])
    at = builder.stack((worker, 0), (builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for number, milliseconds in enumerate(spent):
        main = builder.process(200 + number, 0, 5000)[1]
        for _ in range(milliseconds // 10):
            builder.cpu(at, thread=main)
    assert rules(answer) == ([("one-busy-worker", None)] if expected else [])


def test_where_all_programs_lack_processors_threads_are_not_too_many(builder: Builder, answer: Answer) -> None:
    builder.cpu_count = 4
    for _ in range(10):
        builder.cpu(None)
    builder.wait(None, 0, 900, target=7)  # the main thread, too
    for _ in range(8):
        thread = builder.thread(None)
        for _sample in range(100):
            builder.cpu(None, thread=thread, native_frame=NATIVE_FRAME)
        builder.wait(None, 0, 900, thread=thread, target=7)
    assert rules(answer) == []


@pytest.mark.parametrize(("threads", "waited_ms", "expected"), [(8, 900, True), (8, 100, False), (4, 900, False)])
def test_more_threads_than_processors(
    builder: Builder, answer: Answer, threads: int, waited_ms: int, expected: bool
) -> None:
    builder.cpu_count = 4
    for _ in range(threads):
        thread = builder.thread(None)
        for _sample in range(100):
            builder.cpu(None, thread=thread, native_frame=NATIVE_FRAME)
        builder.wait(None, 0, waited_ms, thread=thread, target=7)
    found_rules = rules(answer)
    assert found_rules == ([("too-many-threads", None)] if expected else [])


@pytest.mark.parametrize(
    ("symbol", "samples", "expected"),
    [
        ("gomp_team_barrier_wait_end", 200, True),
        ("gomp_team_barrier_wait_end", 30, False),
        (None, 200, False),  # the library works
    ],
)
def test_threads_of_a_pool_that_wait_for_work_without_sleeping(
    builder: Builder, answer: Answer, symbol: str | None, samples: int, expected: bool
) -> None:
    """Of 300 samples of the program, as many are of a worker in a function."""
    program = Program(builder)
    waits = builder.native_frame(builder.module("/lib/libgomp.so.1"), symbol)
    frame = program.kernel if symbol is None else waits
    for _ in range(300 - samples):
        program.called(program.first, ms=10)
    for _ in range(samples):
        program.worked((0, program.first, 0, False), native_frame=frame)
    assert [each.rule for each in found(answer)] == (["spinning-threads"] if expected else [])


def test_threads_one_after_the_other_are_not_too_many(builder: Builder, answer: Answer) -> None:
    """A server with a thread for each request: 60 of them, and two at a time."""
    builder.cpu_count = 2
    for number in range(60):
        start = START + number * 50 * MS
        thread = builder.thread(None, start_ns=start, end_ns=start + 100 * MS)
        for sample in range(10):
            builder.cpu(None, thread=thread, native_frame=NATIVE_FRAME, time_ns=start + sample * MS)
        builder.wait(None, number * 50, number * 50 + 90, thread=thread, target=7)
    assert rules(answer) == []


@pytest.mark.parametrize(
    ("state", "megabytes", "expected"),
    [
        ("recovered", lambda second: 100 + 2 * second, True),
        ("complete", lambda second: 100 + 2 * second, False),  # it ended, and may have meant to
        ("recovered", lambda second: 100 + min(2 * second, 60), False),
        ("recovered", lambda second: 100 + 20 * (second % 20), False),
        ("recovered", lambda second: 1000 + second / 10, False),
    ],
)
def test_a_program_that_goes_on_and_grows(
    builder: Builder, answer: Answer, state: str, megabytes: Callable[[int], float], expected: bool
) -> None:
    builder.state = state
    builder.end_ns = START + 120_000 * MS
    builder.rows["processes"][0]["end_ns"] = builder.end_ns
    before = 0.0
    for second in range(120):
        now = megabytes(second) * 1e6
        flow = {f"obj_{'allocated' if now >= before else 'freed'}_bytes": abs(round(now) - round(before))}
        builder.memory("tick" if second else "start", 1000 * second, round(now), **flow)
        before = now
    builder.memory("end", 120_000, round(before))
    assert rules(answer) == ([("growing-process", None)] if expected else [])


FIXTURE = """import pytest
import tables
{decorator}
def book(tmp_path):
    return tables.load(tmp_path)
def test_sum(book):
    assert book
"""


def phases(builder: Builder, tests: int, setup_ms: float, call_ms: float) -> None:
    """The spans of pytest's phases."""
    for number in range(tests):
        begin = 100.0 * number
        for name, length in (("setup", setup_ms), ("call", call_ms), ("teardown", 1.0)):
            builder.span(name, begin, begin + length)
            begin += length


def in_fixture(builder: Builder, decorator: str) -> None:
    """Most of the CPU time is below a fixture of the project."""
    file = builder.file("/srv/conftest.py", FIXTURE.format(decorator=decorator))
    load = library(builder, "/usr/lib/python3/site-packages/tables.py", "load")
    stack = builder.stack((builder.code(file, "book", 3), 4), (load, 0))
    for _ in range(100):
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)


@pytest.mark.parametrize("decorator", ["@pytest.fixture", "@pytest.fixture()", "@pytest.fixture(autouse=True)"])
def test_a_fixture_that_takes_longer_than_the_tests(builder: Builder, answer: Answer, decorator: str) -> None:
    phases(builder, 9, 40, 2)
    in_fixture(builder, decorator)
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.file, suggestion.line) == ("fixture-each-test", "/srv/conftest.py", 4)
    assert suggestion.figure.endswith("9 tests took 0.36 s to set up and 18 ms to run")
    assert suggestion.instead.endswith("with tmp_path_factory in place of tmp_path")


@pytest.mark.parametrize(("tests", "expected"), [(6, True), (4, False)])
def test_a_fixture_of_tests_whose_phases_were_not_recorded(
    builder: Builder, answer: Answer, tests: int, expected: bool
) -> None:
    source = "import pytest\nimport tables\n\n@pytest.fixture\ndef book():\n    return tables.load()\n"
    source += "".join(f"def test_{number}(book):\n    assert book\n" for number in range(tests))
    file, load = builder.file("/srv/test_a.py", source), library(builder, "/usr/lib/python3/site-packages/t.py", "load")
    stack = builder.stack((builder.code(file, "book", 4), 2), (load, 0))
    for _ in range(100):
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    assert [each.rule for each in found(answer)] == ["fixture-each-test"] * expected


@pytest.mark.parametrize(
    ("decorator", "tests", "setup_ms", "call_ms"),
    [
        ('@pytest.fixture(scope="session")', 9, 40, 2),
        ("@pytest.fixture(**options)", 9, 40, 2),
        ("@tables.fixture", 9, 40, 2),
        ("@pytest.fixture", 4, 40, 2),
        ("@pytest.fixture", 9, 20, 40),
        ("@pytest.fixture", 0, 0, 0),
    ],
)
def test_fixtures_that_are_as_they_should_be(
    builder: Builder, answer: Answer, decorator: str, tests: int, setup_ms: float, call_ms: float
) -> None:
    phases(builder, tests, setup_ms, call_ms)
    in_fixture(builder, decorator)
    assert found(answer) == []
