"""What child processes did while their parent waited: which waits are for them, and how the time is divided."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.render.html.page_head import head
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.waiting_parents import waiting_sentences
from unit.analyzer.recordings import MS, START, Builder

LOCK, PIPE, SOCKET, CPU = 9, 3, 2, 7
UNSEEN = 5
POLL, READ, FUTEX, WAITID = 7, 0, 202, 247
Answer = Callable[..., Profile]


class Parent:
    """A parent with the frames `main` and its own threads, and children that run `serve` and `transform`."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        file = builder.file("/srv/train.py", "\n".join(f"line{number}()" for number in range(1, 40)))
        self.main, self.serve, self.transform, self.decode = (
            builder.code(file, name, line)
            for name, line in (("main", 1), ("serve", 10), ("transform", 20), ("decode", 30))
        )
        self.at = builder.stack((self.main, 0))
        # As in a forked process: below the parent's own line.
        self.served = builder.stack((self.main, 0), (self.serve, 1))
        self.working = builder.stack((self.main, 0), (self.serve, 1), (self.transform, 2))
        self.deeper = builder.stack((self.main, 0), (self.serve, 1), (self.transform, 2), (self.decode, 0))

    def child(self, start_ms: float = 0, end_ms: float = 10_000) -> int:
        """The main thread of another child."""
        return self.builder.process(200 + len(self.builder.rows["processes"]), start_ms, end_ms)[1]

    def works(self, thread: int, start_ms: int, end_ms: int, stack: int) -> None:
        for at in range(start_ms + 10, end_ms + 1, 10):
            self.builder.cpu(stack, 10, thread=thread, time_ns=START + at * MS - 1)


@pytest.fixture
def parent(builder: Builder) -> Parent:
    return Parent(builder)


def test_the_share_is_that_of_the_busy_children(builder: Builder, parent: Parent, profile: Answer) -> None:
    """Of two children one works for all of the 4 s, and the other for a quarter; the third, a helper, is idle."""
    builder.wait(parent.at, 1000, 5000, target=PIPE, syscall=READ)
    first, second, idle = parent.child(), parent.child(), parent.child()
    parent.works(first, 0, 3000, parent.working)
    builder.wait(parent.working, 3000, 6000, thread=first, target=CPU)  # ready to run
    parent.works(second, 1000, 2000, parent.deeper)
    builder.wait(parent.served, 2000, 5000, thread=second, target=PIPE, syscall=READ)
    builder.wait(parent.served, 0, 9000, thread=idle, target=PIPE, syscall=READ)
    rows = profile().parent_waits
    assert rows is not None
    (row,) = rows
    assert (row.file, row.line, row.wait_s, row.children) == ("/srv/train.py", 1, 4.0, 2)
    assert (row.child_function, row.child_line) == ("transform", 20)
    assert row.share == pytest.approx(5 / 8)
    assert row.share_low is not None
    assert row.share_high is not None
    assert 0.55 < row.share_low < 5 / 8 < row.share_high < 0.7


def test_time_without_a_processor_that_no_look_saw_is_spread(builder: Builder, parent: Parent, profile: Answer) -> None:
    """On a busy machine children are ready to run for a third of their time, for less than a look at a time."""
    builder.wait(parent.at, 0, 3000, target=PIPE, syscall=READ)
    child = parent.child(0, 4000)
    parent.works(child, 0, 1900, parent.working)
    parent.works(child, 1900, 2000, parent.served)
    builder.wait(None, 2000, 3000, thread=child, target=CPU, stack_state=UNSEEN)
    (row,) = profile().parent_waits or []
    assert (row.child_function, row.children) == ("transform", 1)
    assert row.share == pytest.approx(0.95)


def test_the_innermost_function_with_nearly_all_of_it_is_named(
    builder: Builder, parent: Parent, profile: Answer
) -> None:
    builder.wait(parent.at, 0, 4000, syscall=WAITID)
    child = parent.child()
    parent.works(child, 0, 200, parent.working)
    parent.works(child, 200, 4000, parent.deeper)
    (row,) = profile().parent_waits or []
    assert row.child_function == "decode"
    assert row.share == pytest.approx(0.95)


@pytest.mark.parametrize(("works_ms", "children", "share"), [(500, 1, 3 / 4), (2500, 2, 3 / 8)])
def test_a_helper_that_imports_and_waits_is_none_of_them(
    builder: Builder, parent: Parent, profile: Answer, works_ms: int, children: int, share: float
) -> None:
    """A child that works at something else for half of the time is one."""
    builder.wait(parent.at, 0, 4000, target=PIPE, syscall=READ)
    worker, helper = parent.child(), parent.child()
    parent.works(worker, 0, 3000, parent.working)
    parent.works(helper, 0, works_ms, builder.stack((parent.main, 0), (parent.decode, 0)))
    (row,) = profile().parent_waits or []
    assert (row.child_function, row.children) == ("transform", children)
    assert row.share == pytest.approx(share)


def test_a_child_that_begins_another_program_counts_once(builder: Builder, parent: Parent, profile: Answer) -> None:
    builder.wait(parent.at, 0, 4000, target=PIPE, syscall=READ)
    forked = builder.process(4242, 0, 1000)[1]
    begun = builder.process(4242, 1000, 4000, parent=1, origin="exec")[1]
    parent.works(forked, 0, 1000, parent.working)
    parent.works(begun, 1000, 4000, parent.working)
    (row,) = profile().parent_waits or []
    assert (row.child_function, row.children) == ("transform", 1)
    assert row.share == pytest.approx(1.0)


def lock(builder: Builder, parent: Parent) -> None:
    """The main thread waits at a lock and a helper at a pipe, while a child works."""
    builder.wait(parent.at, 0, 4000, target=LOCK, syscall=FUTEX)
    builder.wait(None, 0, 4000, thread=builder.thread("helper"), target=PIPE, syscall=POLL)
    parent.works(parent.child(), 0, 4000, parent.working)


def test_a_lock_is_for_the_children_if_no_other_thread_can_release_it(
    builder: Builder, parent: Parent, profile: Answer
) -> None:
    lock(builder, parent)
    builder.wait(None, 0, 4000, thread=builder.thread("feeder"), target=LOCK, syscall=FUTEX)
    (row,) = profile().parent_waits or []
    assert row.child_function == "transform"
    assert row.share == pytest.approx(1.0)


@pytest.mark.parametrize("other", ["runs", "waits for a socket", "none"])
def test_other_locks_are_unclear(builder: Builder, parent: Parent, profile: Answer, other: str) -> None:
    if other == "none":
        builder.wait(parent.at, 0, 4000, target=LOCK, syscall=FUTEX)
        parent.works(parent.child(), 0, 4000, parent.working)
    else:
        lock(builder, parent)
        thread = builder.thread("other")
        if other == "runs":
            parent.works(thread, 0, 1000, parent.served)
        else:
            builder.wait(None, 0, 4000, thread=thread, target=SOCKET, syscall=45)
    answer = profile()
    (row,) = answer.parent_waits or []
    assert (row.wait_s, row.children, row.child_function, row.share, row.share_low) == (4.0, None, None, None, None)
    assert waiting_sentences(answer) == []


def test_idle_children_explain_nothing(builder: Builder, parent: Parent, profile: Answer) -> None:
    builder.wait(parent.at, 0, 4000, target=PIPE, syscall=READ)
    parent.works(parent.child(), 0, 1000, parent.working)
    (row,) = profile().parent_waits or []
    assert row.share is None


@pytest.mark.parametrize(("syscall", "target"), [(45, SOCKET), (230, 0), (232, 0)])
def test_sockets_sleep_and_events_are_no_such_waits(
    builder: Builder, parent: Parent, profile: Answer, syscall: int, target: int
) -> None:
    builder.wait(parent.at, 0, 4000, target=target, syscall=syscall)
    parent.works(parent.child(), 0, 4000, parent.working)
    assert profile().parent_waits == []


def test_only_the_window_counts(builder: Builder, parent: Parent, profile: Answer) -> None:
    builder.wait(parent.at, 0, 4000, target=PIPE, syscall=READ)
    child = parent.child()
    parent.works(child, 0, 1000, parent.served)
    parent.works(child, 1000, 4000, parent.working)
    (row,) = profile(start_s=2.0).parent_waits or []
    assert (row.wait_s, row.child_function) == (2.0, "transform")
    assert row.share == pytest.approx(1.0)


def test_it_is_unknown_of_parts_of_a_program(builder: Builder, parent: Parent, profile: Answer) -> None:
    lock(builder, parent)
    assert profile(thread="main").parent_waits is None
    assert profile(processes=("id=0",)).parent_waits is None


def test_all_reports_say_it(builder: Builder, parent: Parent, profile: Answer) -> None:
    lock(builder, parent)
    answer = profile()
    (sentence,) = waiting_sentences(answer)
    assert sentence.startswith("main waits 4.00 s at train.py:1 (line1()), while 1 child process spends 100 % (")
    assert sentence.endswith(") of that time in transform (train.py:20)")
    text = StringIO()
    show(answer, Console(file=text, width=200))
    assert sentence in text.getvalue()
    assert sentence in summary(answer)
    assert head(answer, [])["waiting"] == [sentence]
    (told,) = json.loads("".join(pieces(document(answer))))["parent_waits"]
    assert (told["child_function"], told["share"]) == ("transform", pytest.approx(1.0))
