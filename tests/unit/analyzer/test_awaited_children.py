"""Waits of an event loop for child processes: lines that are for them, and lines where a task stands meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tachograph.analyzer import Profile
from unit.analyzer.recordings import MS, START, Builder

LOCK, PIPE, SOCKET = 9, 3, 2
POLL, FUTEX, NANOSLEEP, EPOLL = 7, 202, 230, 232
Answer = Callable[..., Profile]

SOURCE = """await loop.run_in_executor(pool, transform)
await cursor.answer
text = await child.stdout.readline()
data = await reader.read(100)
await child.wait()
results = poll(jobs)
"""
FUTURE, OTHER, OUTPUT, SOCKET_LINE, CHILD, POLLED = range(1, 7)


class Loop:
    """A parent whose main thread waits for events for 10 s, while a child works from 1 s to 5 s."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        file = builder.file("/srv/app.py", SOURCE)
        self.main = builder.code(file, "main", 1)
        self.transform = builder.code(builder.file("/srv/work.py", "transform()\n"), "transform", 1)
        self.streams = self.library("/usr/lib/python3.13/asyncio/streams.py", "StreamReader.readline")
        self.subprocess = self.library("/usr/lib/python3.13/asyncio/subprocess.py", "Process.wait")
        self.sleep = self.library("/usr/lib/python3.13/asyncio/tasks.py", "sleep")
        self.locks = self.library("/usr/lib/python3.13/asyncio/locks.py", "Lock.acquire")
        builder.wait(self.at(1), 0, 10_000, syscall=EPOLL)
        self.child = builder.process(200, 0, 10_000)[1]
        self.works(1000, 5000)

    def library(self, path: str, name: str) -> int:
        return self.builder.code(self.builder.file(path, ""), name, 1)

    def at(self, line: int, *below: int) -> int:
        """A node at a line, with what it calls."""
        return self.builder.stack((self.main, line - 1), *((code, 0) for code in below))

    def works(self, start_ms: int, end_ms: int) -> None:
        stack = self.builder.stack((self.transform, 0))
        for time in range(start_ms + 10, end_ms + 1, 10):
            self.builder.cpu(stack, 10, thread=self.child, time_ns=START + time * MS - 1)

    def awaited(self, *places: tuple[int, int, int]) -> None:
        """Censuses every 20 ms: nodes at which a task stands from one time until another, in ms."""
        for time in range(20, 10_000, 20):
            standing = [node for node, start, end in places if start <= time < end]
            for node in standing:
                self.builder.awaits(time - 20, time, node, 1)
            if not standing:
                self.builder.awaits(time - 20, time, None, 0)

    def manager(self) -> None:
        """The thread of a pool of processes, which waits for them at a pipe."""
        self.builder.wait(None, 0, 10_000, thread=self.builder.thread("manager"), target=PIPE, syscall=POLL)


@pytest.fixture
def loop(builder: Builder) -> Loop:
    return Loop(builder)


def lines(answer: Profile) -> dict[int | None, float]:
    """The lines that wait for children, with the seconds."""
    return {row.line: row.wait_s for row in answer.parent_waits or [] if row.share is not None}


def test_a_future_of_a_pool(loop: Loop, profile: Answer) -> None:
    loop.manager()
    loop.awaited((loop.at(FUTURE), 1000, 5000), (loop.at(OTHER, loop.sleep), 0, 10_000))
    answer = profile()
    assert lines(answer) == {FUTURE: pytest.approx(4.0, abs=0.03)}
    (row,) = answer.parent_waits or []
    assert (row.child_function, row.children, row.source) == ("transform", 1, SOURCE.splitlines()[FUTURE - 1])
    assert row.share == pytest.approx(1.0, abs=0.02)


def test_a_future_without_a_thread_that_waits_for_a_child(loop: Loop, profile: Answer) -> None:
    loop.awaited((loop.at(FUTURE), 1000, 5000))
    assert profile().parent_waits == []


@pytest.mark.parametrize("other", ["runs", "waits for a socket"])
def test_a_future_that_another_thread_may_end(loop: Loop, profile: Answer, other: str) -> None:
    loop.manager()
    thread = loop.builder.thread("worker")
    if other == "runs":
        for time in range(1010, 5000, 20):
            loop.builder.cpu(loop.at(OTHER), 10, thread=thread, time_ns=START + time * MS)
    else:
        loop.builder.wait(None, 0, 10_000, thread=thread, target=SOCKET, syscall=45)
    loop.awaited((loop.at(FUTURE), 1000, 5000))
    assert profile().parent_waits == []


def test_of_two_futures_the_one_that_is_alone_while_the_child_works(loop: Loop, profile: Answer) -> None:
    loop.manager()
    loop.awaited((loop.at(FUTURE), 1000, 5000), (loop.at(OTHER), 3000, 9000))
    assert lines(profile()) == {FUTURE: pytest.approx(4.0, abs=0.03)}


def test_of_two_futures_that_are_never_alone_none(loop: Loop, profile: Answer) -> None:
    loop.manager()
    loop.awaited((loop.at(FUTURE), 1000, 5000), (loop.at(OTHER), 1000, 5000))
    assert profile().parent_waits == []


def test_a_child_that_works_all_the_same_without_the_future(loop: Loop, profile: Answer) -> None:
    loop.manager()
    loop.works(5000, 10_000)
    loop.awaited((loop.at(FUTURE), 1000, 5000))
    assert profile().parent_waits == []


def test_the_output_of_a_child_and_its_end(loop: Loop, profile: Answer) -> None:
    loop.awaited((loop.at(OUTPUT, loop.streams), 1000, 3000), (loop.at(CHILD, loop.subprocess), 3000, 5000))
    assert lines(profile()) == {OUTPUT: pytest.approx(2.0, abs=0.03), CHILD: pytest.approx(2.0, abs=0.03)}


def test_sockets_sleep_and_locks_are_no_children(loop: Loop, profile: Answer) -> None:
    loop.manager()
    loop.awaited(
        (loop.at(SOCKET_LINE, loop.streams), 1000, 5000),
        (loop.at(OTHER, loop.sleep), 1000, 5000),
        (loop.at(OTHER, loop.locks), 1000, 5000),
    )
    assert profile().parent_waits == []


def test_two_stacks_at_one_line_count_once(loop: Loop, profile: Answer) -> None:
    deeper = loop.builder.stack((loop.main, OTHER - 1), (loop.main, CHILD - 1), (loop.subprocess, 0))
    loop.awaited((loop.at(CHILD, loop.subprocess), 1000, 5000), (deeper, 1000, 5000))
    assert lines(profile()) == {CHILD: pytest.approx(4.0, abs=0.03)}


@pytest.mark.parametrize("whose", ["library", "program"])
def test_sleep_between_two_looks_of_a_library(builder: Builder, loop: Loop, profile: Answer, whose: str) -> None:
    """A library's loop that sleeps until its children are done; what the program sleeps itself is for no child."""
    builder.rows["waits"].clear()
    loop.manager()
    library = loop.library("/usr/lib/python3.13/site-packages/jobs/parallel.py", "wait")
    builder.wait(loop.at(POLLED, *([library] if whose == "library" else [])), 1000, 5000, syscall=NANOSLEEP)
    assert lines(profile()) == ({POLLED: 4.0} if whose == "library" else {})
