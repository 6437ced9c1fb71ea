"""asyncio: time by the coroutine at the root of a task's step, told from callbacks, the loop, and idleness."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Profile, Recording
from tachograph.analyzer.commands.export import export
from tachograph.analyzer.render.terminal.task_lines import show
from unit.analyzer.recordings import Builder, table

COROUTINE, GENERATOR, ASYNC_GENERATOR = 0x80, 0x20, 0x200
LIB = "/usr/lib/python3.13"
Frame = tuple[int, int] | tuple[int, int, str]


class Program:
    """Frames of a program with an event loop, by short names."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._files: dict[str, int] = {}
        self._codes: dict[tuple[str, str], int] = {}

    def frame(self, path: str, name: str, flags: int = 3) -> tuple[int, int]:
        if path not in self._files:
            self._files[path] = self.builder.file(path)
        if (path, name) not in self._codes:
            line = 10 * len(self._codes) + 1
            self._codes[path, name] = self.builder.code(self._files[path], name, line, flags=flags)
        return self._codes[path, name], 0

    @property
    def main(self) -> list[tuple[int, int]]:
        return [self.frame("/srv/app.py", "<module>"), self.frame(f"{LIB}/asyncio/runners.py", "Runner.run")]

    @property
    def once(self) -> list[tuple[int, int]]:
        base = f"{LIB}/asyncio/base_events.py"
        loop = ("BaseEventLoop.run_until_complete", "BaseEventLoop.run_forever", "BaseEventLoop._run_once")
        return [*self.main, *(self.frame(base, name) for name in loop)]

    @property
    def handle(self) -> list[tuple[int, int]]:
        return [*self.once, self.frame(f"{LIB}/asyncio/events.py", "Handle._run")]

    def own(self, name: str, flags: int = COROUTINE) -> tuple[int, int]:
        return self.frame("/srv/app.py", name, flags)

    def asyncio(self, module: str, name: str, flags: int = 3) -> tuple[int, int]:
        return self.frame(f"{LIB}/asyncio/{module}.py", name, flags)

    def task(self, name: str, task: str) -> Frame:
        """The coroutine that a task was made of."""
        return *self.own(name), task

    def cpu(self, ms: float, *frames: Frame) -> None:
        self.builder.cpu(self.builder.stack(*frames), ms)

    def wait(self, start: float, end: float, *frames: Frame) -> None:
        self.builder.wait(self.builder.stack(*frames), start, end)


@pytest.fixture
def program(builder: Builder) -> Program:
    return Program(builder)


Answer = Callable[..., Profile]


def cpu(answer: Profile) -> dict[tuple[str, str], int]:
    """CPU time in ms by kind and name."""
    rows = table(answer.tasks, "kind", "function", "cpu_s")
    return {(kind, name): round(seconds * 1000) for kind, name, seconds in rows}


def test_tasks_callbacks_and_the_loop(program: Program, profile: Answer) -> None:
    fetch, parse = program.own("fetch"), program.own("parse", 3)
    program.cpu(10, *program.handle, fetch)
    program.cpu(20, *program.handle, fetch, program.own("inner"), parse)  # awaited, and called by what is awaited
    program.cpu(40, *program.handle, program.own("serve"), parse)
    program.cpu(80, *program.handle, program.own("on_data", 3), parse)
    program.cpu(160, *program.once)
    program.cpu(320, program.own("<module>", 3))
    program.builder.cpu(None, 640)
    assert cpu(profile()) == {
        ("task", "fetch"): 30,
        ("task", "serve"): 40,
        ("callback", "on_data"): 80,
        ("loop", "<event loop>"): 160,
        ("none", "<no event loop>"): 960,
    }
    assert table(profile().tasks.query("function == 'fetch'"), "file", "line") == [("/srv/app.py", 1)]


def test_working_blocking_and_awaiting_are_told_apart(program: Program, profile: Answer) -> None:
    work = program.own("work")
    select = program.frame(f"{LIB}/selectors.py", "EpollSelector.select")
    program.cpu(10, *program.handle, work)
    program.wait(0, 300, *program.handle, work, program.own("requests_get", 3))  # a call that blocks the loop
    program.wait(300, 2300, *program.once, select)
    program.wait(2300, 2400, *program.handle, program.asyncio("selector_events", "_read_ready"))
    frame = profile().tasks
    assert table(frame, "kind", "function", "blocked_s", "idle_s") == [
        ("task", "work", 0.3, None),
        ("callback", "_read_ready", 0.1, None),
        ("loop", "<event loop>", None, 2.0),
    ]


def test_uvloop_has_no_frames_of_its_own(program: Program, profile: Answer) -> None:
    program.cpu(10, *program.main, program.own("main"))
    program.cpu(20, *program.main, program.own("on_data", 3))
    program.cpu(40, *program.main)
    program.cpu(80, program.own("<module>", 3), program.own("main"))  # loop.run_until_complete(main())
    assert cpu(profile()) == {("task", "main"): 90, ("callback", "on_data"): 20, ("loop", "<event loop>"): 40}


def test_awaiting_through_generators_and_async_generators(program: Program, profile: Answer) -> None:
    main = program.own("main")
    through = [program.own("Awaitable.__await__", GENERATOR), program.own("ticker", ASYNC_GENERATOR)]
    for between in through:
        program.cpu(10, *program.handle, main, between, program.own("read"))
        program.cpu(10, *program.handle, main, between)
    # The loop closes an asynchronous generator by a task made of it.
    program.cpu(5, *program.handle, program.own("ticker", ASYNC_GENERATOR))
    # trio's loop is a generator, which is not awaited.
    unrolled = program.frame("/lib/trio/_run.py", "unrolled_run", GENERATOR)
    program.cpu(7, program.own("run", 3), unrolled, program.own("child"))
    assert cpu(profile(scope="all")) == {("task", "main"): 40, ("task", "ticker"): 5, ("task", "child"): 7}


def test_trio_has_its_loop(program: Program, profile: Answer) -> None:
    run = program.frame("/lib/trio/_core/_run.py", "run", 3)
    steps = run, program.frame("/lib/trio/_core/_run.py", "unrolled_run", GENERATOR)
    poll = program.frame("/lib/trio/_core/_io_epoll.py", "EpollIOManager.get_events", 3)
    sleep = program.frame("/lib/trio/_timeouts.py", "sleep", COROUTINE)
    program.cpu(10, *steps)
    program.cpu(20, *steps, program.frame("/lib/trio/_core/_run.py", "Runner.task_exited", 3))
    capture = program.frame("/lib/outcome.py", "capture", 3)
    program.cpu(40, *steps, program.own("child"), sleep)
    program.cpu(1, *steps, capture, program.frame("/lib/python3.13/contextlib.py", "contextmanager", 3))
    program.wait(0, 300, run, poll)
    frame = profile().tasks
    assert cpu(profile()) == {("task", "child"): 40, ("loop", "<event loop>"): 31}
    assert table(frame, "function", "blocked_s", "idle_s")[1] == ("<event loop>", None, 0.3)


def test_tasks_that_begin_within_a_step(program: Program, profile: Answer) -> None:
    """An eager task runs at once, on the stack of the one that made it; a coroutine that is run by hand does not."""
    outer, create = program.own("outer"), program.asyncio("tasks", "create_task")
    program.cpu(10, *program.handle, outer, create, program.own("eager"), program.own("helper"))
    program.cpu(20, *program.handle, outer, program.own("by_hand", 3), program.own("driven"))
    program.cpu(40, *program.handle, outer, *program.handle, program.own("nested"))
    assert cpu(profile()) == {("task", "eager"): 10, ("task", "outer"): 20, ("task", "nested"): 40}


def test_roots_of_libraries_are_stepped_over(program: Program, profile: Answer) -> None:
    """A server makes all tasks of one coroutine of its own: the project's coroutine tells them apart."""
    server = program.frame("/usr/lib/python3.13/site-packages/server.py", "run_asgi", COROUTINE)
    routing = program.frame("/usr/lib/python3.13/site-packages/routing.py", "app", COROUTINE)
    dear, cheap, helper = program.own("dear"), program.own("cheap"), program.own("helper")
    program.cpu(10, *program.handle, server)
    program.cpu(20, *program.handle, server, routing, dear, helper, program.own("parse", 3))
    program.cpu(40, *program.handle, server, routing, cheap, server, program.own("inner"))
    program.cpu(80, *program.handle, server, program.own("plain", 3))  # no coroutine, so no root
    expected = {("task", "run_asgi"): 90, ("task", "dear"): 20, ("task", "cheap"): 40}
    assert cpu(profile()) == expected
    assert cpu(profile(scope="all")) == {("task", "run_asgi"): 150}


def test_a_task_keeps_its_name_where_its_root_is_stepped_over(program: Program, profile: Answer) -> None:
    wrapper = (*program.frame("/usr/lib/python3.13/site-packages/anyio.py", "TaskHandle._run_coro", COROUTINE), "one")
    program.cpu(10, *program.handle, wrapper, program.own("worker"))
    program.cpu(20, *program.handle, wrapper)
    assert named(profile()) == {("worker", "one"): 10, ("TaskHandle._run_coro", "one"): 20}


def named(answer: Profile) -> dict[tuple[str, str | None], int]:
    """CPU time in ms by coroutine and name."""
    rows = table(answer.tasks.query("kind == 'task'"), "function", "task", "cpu_s")
    return {(name, task): round(seconds * 1000) for name, task, seconds in rows}


def test_a_name_that_repeats_the_coroutines_is_none(program: Program, profile: Answer) -> None:
    """Trio names each task by module and function, and so does anyio, of the function that it was given."""
    handle = program.frame("/usr/lib/python3.13/site-packages/anyio/_core/_tasks.py", "TaskHandle._run_coro", COROUTINE)
    program.cpu(10, *program.handle, program.task("worker", "shop.app.worker"))
    program.cpu(20, *program.handle, (*handle, "shop.app.worker"), program.own("worker"))
    program.cpu(40, *program.handle, (*handle, "shop.app.other"), program.own("worker"))
    program.cpu(80, *program.handle, program.task("worker", "of all: shop.worker"))
    assert named(profile()) == {
        ("worker", None): 30,
        ("worker", "shop.app.other"): 40,
        ("worker", "of all: shop.worker"): 80,
    }


def test_tasks_of_one_coroutine_by_name(program: Program, profile: Answer) -> None:
    parse, inner = program.own("parse", 3), program.own("inner")
    program.cpu(10, *program.handle, program.task("fetch", "first"))
    program.cpu(20, *program.handle, program.task("fetch", "second"), inner, parse)
    program.cpu(40, *program.handle, program.task("fetch", "second"))
    program.cpu(80, *program.handle, program.own("fetch"), parse)
    program.cpu(160, *program.handle, program.task("serve", "second"))
    program.wait(0, 300, *program.handle, program.task("fetch", "second"), parse)
    answer = profile()
    assert named(answer) == {
        ("fetch", "first"): 10,
        ("fetch", "second"): 60,
        ("fetch", None): 80,
        ("serve", "second"): 160,
    }
    assert table(answer.tasks.query("blocked_s > 0"), "function", "task", "blocked_s") == [("fetch", "second", 0.3)]
    assert answer.tasks["cpu_s"].sum() == pytest.approx(answer.totals.cpu_s)


def test_a_recorded_task_begins_a_step_under_any_caller(program: Program, profile: Answer) -> None:
    """No rule about frames knows what another library's loop looks like; the recorder knew which task ran."""
    outer, other = program.task("outer", "one"), program.task("other", "two")
    program.cpu(10, *program.handle, outer, program.frame("/lib/x.py", "eager"), other, program.own("inner"))
    program.cpu(20, *program.handle, outer, program.own("inner"))
    program.cpu(40, program.frame("/lib/x.py", "run"), other)
    assert named(profile()) == {("other", "two"): 50, ("outer", "one"): 20}


def test_nothing_but_tasks_is_divided_by_name(program: Program, profile: Answer, tmp_path: Path) -> None:
    """Lines, functions, flame graphs and exports are those of the same recording without names."""
    from tachograph.analyzer import Question, build_profile
    from tachograph.analyzer.report_data.flame_tree import build_flame

    plain = Program(Builder(tmp_path / "plain.tacho"))
    for each, names in ((program, ("a", "b")), (plain, ("", ""))):
        for ms, name in zip((10, 20), names, strict=True):
            frame = each.task("fetch", name) if name else each.own("fetch")
            each.cpu(ms, *each.handle, frame, each.own("inner"), each.own("parse", 3))
    answer = profile()
    with Recording.open(plain.builder.write()) as recording:
        expected = build_profile(recording, Question())
    for name in ("lines", "functions", "files"):
        pd.testing.assert_frame_equal(getattr(answer, name), getattr(expected, name))
    flames = [build_flame(each.calls.tree, each.calls.nodes[["cpu_s"]].to_numpy().T) for each in (answer, expected)]
    assert flames[0].parent.tolist() == flames[1].parent.tolist()
    assert flames[0].function.tolist() == flames[1].function.tolist()
    texts = []
    for builder in (program.builder, plain.builder):
        result = CliRunner().invoke(export, ["collapsed", str(builder.path), "--output", "-"])
        assert result.exit_code == 0
        texts.append(result.stdout)
    assert texts[0] == texts[1] != ""


def test_the_python_version_of_a_task(program: Program, profile: Answer) -> None:
    steps = [program.asyncio("tasks", name) for name in ("Task.__step", "Task.__step_run_and_handle_result")]
    program.cpu(10, *program.handle, *steps, program.own("main"))
    program.cpu(20, *program.handle, *steps)
    call_soon = program.asyncio("base_events", "BaseEventLoop.call_soon")
    program.cpu(40, *program.handle, call_soon)  # the C version of a task, when its step has ended
    assert cpu(profile()) == {("task", "main"): 10, ("loop", "<event loop>"): 60}


def test_a_program_without_coroutines(program: Program, profile: Answer) -> None:
    program.cpu(10, program.own("<module>", 3))
    assert profile().tasks.empty


@pytest.mark.skipif(not importlib.util.find_spec("trio"), reason="no trio")
def test_the_names_are_those_of_this_trio() -> None:
    from tachograph.analyzer.profile.tasks import _TRIO_ENTRIES

    run = importlib.import_module("trio._core._run")
    for _, name in _TRIO_ENTRIES:
        found: object = run
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)


def test_the_names_are_those_of_this_asyncio() -> None:
    """What the analyzer looks for is there in the asyncio of the Python that runs this test."""
    from tachograph.analyzer.profile.tasks import _ENTRIES, _RESUMING

    for file, name in (*_ENTRIES, _RESUMING):
        found: object = getattr(asyncio, file.removesuffix(".py"))
        for part in name.split("."):
            found = getattr(found, part)
        assert isinstance(found, types.FunctionType)
        assert found.__qualname__ == name
    assert sys.modules[asyncio.tasks.__name__].Task.__qualname__ == "Task"


def shown(answer: Profile, top: int | None = None) -> list[str]:
    """The rows of the report in the terminal."""
    out = io.StringIO()
    show(answer, Console(file=out, width=120), top)
    text = out.getvalue()
    return [" ".join(line.split()) for line in text[text.index(" Tasks ") :].splitlines()[2:] if line.strip()]


def test_names_in_the_terminal(program: Program, profile: Answer) -> None:
    for number in range(12):
        program.cpu(10 + number, *program.handle, program.task("fetch", f"part \x1b{number}"))
    program.cpu(14, *program.handle, program.own("fetch"))
    program.cpu(200, *program.handle, program.own("serve"))
    rows = shown(profile())
    assert rows[:3] == [
        "50.0 ±36 200ms 200ms fetch /srv/app.py:61",
        "5.2 ±28 21ms 21ms part \\x1b11",
        "5.0 ±28 20ms 20ms part \\x1b10",
    ]
    assert rows[11:] == [
        "and 2 more (--json has them all)",
        "3.5 ±27 14ms 14ms (no name)",
        "50.0 ±36 200ms 200ms serve /srv/app.py:71",
    ]
    assert shown(profile(), top=1)[1:3] == ["5.2 ±28 21ms 21ms part \\x1b11", "and 11 more (--json has them all)"]


def test_the_terminal(program: Program, profile: Answer) -> None:
    program.cpu(300, *program.handle, program.own("handle"))
    program.cpu(100, *program.handle, program.own("on_data", 3))
    program.wait(0, 250, *program.handle, program.own("refresh"))
    program.wait(250, 2250, *program.once)
    assert shown(profile()) == [
        "75.0 ±40 300ms 300ms handle /srv/app.py:61",
        "25.0 ±40 100ms 100ms on_data (callback) /srv/app.py:71",
        "250ms refresh /srv/app.py:81",
        "<event loop>",
        "event loops were idle for 2.00 s: all of their tasks were awaiting something",
    ]
