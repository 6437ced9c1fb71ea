"""The lines that a report shows, and the signs that it explains."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.render.terminal.process_lines import tree_lines
from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.line_selection import MOST_OTHERS, important, mostly_waits
from tachograph.analyzer.report_data.section_rows import loop_holder, native_function_rows, native_subtitle
from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder

Answer = Callable[..., Profile]
SOURCE = "".join(f"line {number}\n" for number in range(1, 30))


def waiting(builder: Builder, waits_ms: dict[int, int]) -> None:
    """A program whose main thread works on line 1, and one other thread for each line that waits there."""
    code = builder.code(builder.file("/srv/a.py", SOURCE), "work")
    for number in range(300):
        builder.cpu(builder.stack((code, 0)), time_ns=START + (number + 1) * 10 * MS)
    for line, ms in waits_ms.items():
        builder.wait(builder.stack((code, line - 1)), 100, 100 + ms, thread=builder.thread(f"t{line}"), syscall=230)


@pytest.mark.parametrize(
    ("waits_ms", "lines"),
    [
        ({7: 6000}, [1, 7]),
        ({7: 900}, [1]),
        ({7: 6000, 9: 900}, [1, 7]),
        ({line: 9000 - line for line in range(2, 20)}, [1, *range(2, 2 + MOST_OTHERS)]),
    ],
)
def test_lines_where_other_threads_wait_for_long(
    builder: Builder, answer: Answer, waits_ms: dict[int, int], lines: list[int]
) -> None:
    waiting(builder, waits_ms)
    profile = answer()
    numbers = profile.frames.lines["line"].tolist()
    assert [numbers[row] for row in important(profile).tolist()] == lines


def test_the_terminal_has_the_wait_of_another_thread(builder: Builder, answer: Answer) -> None:
    waiting(builder, {7: 6000})
    lines = report_lines(answer(), Console(file=StringIO(), width=120))
    (row,) = [line.plain for line in lines if line.plain.endswith("line 7")]
    assert "6.00s" in row


def test_signs_in_the_tree_of_processes_are_explained(builder: Builder, answer: Answer) -> None:
    builder.process(200, 100, None)
    *_, signs, _ = [line.plain for line in tree_lines(answer(), Style.of(Console(file=StringIO(), width=120)), 120)]
    assert signs == " > at least: it ended unobserved; ? not known: the kernel reports it at the end"


def test_remarks_of_native_functions_are_explained(builder: Builder, answer: Answer) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py", SOURCE), "work"), 0))
    made = builder.native_frame(builder.module("[anonymous]"), None)
    builder.parameters["native_depth"] = 128
    for number in range(100):
        path = builder.native_stack(None, made, stack)
        builder.cpu(
            stack, time_ns=START + number * MS, native_frame=made if number % 2 else NATIVE_FRAME,
            native_stack=path if number % 2 else None, native_path=2 if number % 2 else 1,
        )  # fmt: skip
    profile = answer()
    rows = native_function_rows(profile)
    assert "[anonymous]" in [row["name"] for row in rows]
    said = native_subtitle(profile, rows)
    assert "[anonymous]: made at run time, as by a JIT compiler" in said
    assert ("guessed: " in said) == any(row["remark"] for row in rows)


def mostly_waiting(builder: Builder, syscall: int) -> None:
    """A main thread that works on line 1 for 0.5 s and waits on line 7 for 6 of 10 s."""
    code = builder.code(builder.file("/srv/a.py", SOURCE), "work")
    for number in range(50):
        builder.cpu(builder.stack((code, 0)), time_ns=START + (number + 1) * 10 * MS)
    builder.wait(builder.stack((code, 6)), 1000, 7000, syscall=syscall)


SLEEP, EPOLL = 230, 232


def test_lines_of_a_program_that_waits_are_in_the_order_of_wall_time(builder: Builder, answer: Answer) -> None:
    mostly_waiting(builder, SLEEP)
    profile = answer()
    assert mostly_waits(profile)
    numbers = profile.frames.lines["line"].tolist()
    assert [numbers[row] for row in important(profile, by_wall=True).tolist()] == [7, 1]
    console = Console(file=StringIO(), width=80)
    lines = [line.plain for line in report_lines(profile, console, following=True)]
    assert any("by wall time of all threads and tasks, as it mostly waits" in line for line in lines)
    (row,) = [line for line in lines if line.endswith("line 7")]
    assert row.split()[2:] == ["6.00s", "6.00s", "line", "7"]  # behind the number and the bar: all of it is waiting
    usual = [line.plain for line in report_lines(profile, console)]
    assert not any("by wall time" in line for line in usual)


def test_what_tasks_await_counts_as_waiting(builder: Builder, answer: Answer) -> None:
    mostly_waiting(builder, EPOLL)
    fetch = builder.code(0, "fetch", 11)
    for step in range(80):
        builder.awaits(100 * step, 100 * (step + 1), builder.stack((fetch, 1)), 3)
    profile = answer()
    assert mostly_waits(profile)
    numbers = profile.frames.lines["line"].tolist()
    assert numbers[important(profile, by_wall=True)[0]] == 12


def test_a_program_that_calculates_or_is_idle_keeps_its_order(builder: Builder, answer: Answer) -> None:
    mostly_waiting(builder, EPOLL)  # a server that waits for requests
    for number in range(500):
        builder.cpu(builder.stack((0, 0)), time_ns=START + 4000 * MS + number * 10 * MS)
    profile = answer()
    assert not mostly_waits(profile)
    console = Console(file=StringIO(), width=80)
    assert [line.plain for line in report_lines(profile, console, following=True)] == [
        line.plain for line in report_lines(profile, console)
    ]


FETCHING = "async def fetch():\n    await answer()\n"


@pytest.mark.parametrize(("idle", "held"), [(False, True), (True, False)])
def test_tasks_that_await_a_busy_loop_do_not_wait(builder: Builder, answer: Answer, *, idle: bool, held: bool) -> None:
    """The main thread lacks a CPU for most of the time: it does not wait, and no more do the tasks of its loop."""
    run = [(builder.code(builder.file(f"/usr/lib/python3.13/asyncio/{file}"), name), 0) for file, name in (
        ("base_events.py", "BaseEventLoop._run_once"), ("events.py", "Handle._run"),
    )]  # fmt: skip
    file = builder.file("/srv/a.py", FETCHING)
    fetch, digest = builder.code(file, "fetch", 1, flags=0x80), builder.code(file, "digest", 1)
    for number in range(100):
        builder.cpu(builder.stack(*run, (fetch, 0), (digest, 0)), time_ns=START + (number + 1) * 10 * MS)
    for step in range(80):
        builder.awaits(100 * step, 100 * (step + 1), builder.stack((fetch, 1)), 3)
    if idle:
        builder.wait(builder.stack(run[0]), 2000, 9000, syscall=EPOLL)
    else:
        builder.wait(builder.stack(run[0]), 2000, 2001, syscall=EPOLL)
    profile = answer()
    assert mostly_waits(profile) == idle
    holder = loop_holder(profile)
    assert (holder is not None and holder["function"] == "digest") == held
    lines = [line.plain for line in report_lines(profile, Console(file=StringIO(), width=80))]
    assert any("the event loop was never idle: digest held it" in line for line in lines) == held


@pytest.mark.parametrize(("source", "told"), [(None, True), (SOURCE, False)])
def test_lines_whose_source_is_not_recorded(
    builder: Builder, answer: Answer, source: str | None, *, told: bool
) -> None:
    """No rule could look at them, which is not the same as that none applies."""
    stack = builder.stack((builder.code(builder.file("/srv/b.py", source), "work"), 0))
    for number in range(100):
        builder.cpu(stack, time_ns=START + (number + 1) * 10 * MS)
    text = " ".join(line.plain.strip() for line in report_lines(answer(), Console(file=StringIO(), width=80)))
    assert ("the source of b.py is not in the recording: no suggestion's rule could look" in text) == told
