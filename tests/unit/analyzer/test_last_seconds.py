"""A process that was killed: which one, its last two seconds, the limit of its memory; and nothing where none was."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.render.html.page_head import head
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.killed import killed_text, last_lines, last_title
from unit.analyzer.recordings import MS, START, Builder

MB = 1_000_000
Answer = Callable[..., Profile]


def grows(builder: Builder, process: int = 0, thread: int = 0, exit_status: int | None = -9) -> None:
    """Line 1 runs from second 0 to 8, line 2 in the last second, and line 3 allocates from then on."""
    code = builder.code(builder.file("/srv/a.py"))
    early, late, holds = (builder.stack((code, line)) for line in range(3))
    builder.rows["processes"][process] |= {"exit_status": exit_status, "end_ns": START + 10_000 * MS}
    builder.memory("start", 0, 0, process=process)
    for second in range(8):
        builder.cpu(early, 10, time_ns=START + (second * 1000 + 10) * MS, thread=thread)
    for step in range(10):
        builder.cpu(late, 20, time_ns=START + (9000 + step * 100) * MS, thread=thread)
        builder.block(holds, 10 * MB, 9000 + step * 100, thread=thread, process=process)
    builder.block(early, 50 * MB, 100, thread=thread, process=process)
    flows = {"obj_allocated_bytes": 150 * MB}
    builder.memory("tick", 9950, 150 * MB, resident_bytes=160 * MB, process=process, **flows)


def test_the_report_opens_with_the_last_two_seconds(builder: Builder, profile: Answer) -> None:
    grows(builder)
    builder.parameters["memory_limit_bytes"] = 200 * MB
    answer = profile()
    last = answer.last_seconds
    assert last is not None
    killed = last.killed
    assert (killed.process, killed.pid, killed.signal, killed.others) == (0, 100, "SIGKILL", 0)
    assert (killed.start_s, killed.end_s, killed.memory_limit_bytes) == (8.0, 10.0, 200 * MB)
    assert last.resident_bytes == 160 * MB
    rows = {row["line"]: row for row in last.lines}
    assert set(rows) == {2, 3}
    assert (round(rows[2]["cpu_s"], 6), rows[3]["allocated_bytes"]) == (0.2, 100 * MB)
    assert killed_text(answer) == (
        "program.py (100) ended by SIGKILL at 10.0 s, with 160 MB resident; the control group's memory limit was 200 MB"
    )
    assert last_title(answer) == "in its last 2.00 s"
    assert last_lines(answer) == ["a.py:2  0.20 s CPU", "a.py:3  100 MB allocated, 100 MB held"]


def test_all_renderers_say_so(builder: Builder, profile: Answer) -> None:
    grows(builder)
    answer = profile()
    text = StringIO()
    show(answer, Console(file=text, width=100))
    printed = text.getvalue()
    assert printed.index("ended by SIGKILL") < printed.index("wall")
    assert "a.py:3  100 MB allocated" in printed
    assert "ended by SIGKILL" in summary(answer)
    told = json.loads("".join(pieces(document(answer))))["last_seconds"]
    assert told["killed"]["signal"] == "SIGKILL"
    page = head(answer, [])
    assert "ended by SIGKILL" in page["killed"]
    assert page["last"] == {"title": "in its last 2.00 s", "lines": last_lines(answer)}
    assert [row["line"] for row in told["lines"]] == [2, 3]


def test_the_kernel_is_named_where_it_killed_for_want_of_memory(builder: Builder, profile: Answer) -> None:
    grows(builder)
    builder.parameters["memory_oom_kills"] = 1
    told = killed_text(profile())
    assert told is not None
    assert told.endswith("with 160 MB resident; the kernel killed for want of memory once")


def test_of_several_it_is_the_last_one(builder: Builder, profile: Answer) -> None:
    first, _ = builder.process(101, 100, 5000, exit_status=-9)
    second, thread = builder.process(102, 100, 9000)
    grows(builder, second, thread)
    builder.rows["processes"][0] |= {"exit_status": 1}
    last = profile().last_seconds
    assert last is not None
    assert (last.killed.process, last.killed.others) == (second, 1)
    assert first != second


def test_nothing_is_said_of_others(builder: Builder, profile: Answer) -> None:
    grows(builder, exit_status=-15)
    assert profile().last_seconds is None


def test_a_part_of_a_recording_says_nothing_of_its_end(builder: Builder, profile: Answer) -> None:
    grows(builder)
    assert profile(end_s=5.0).last_seconds is None
    assert profile(thread="main").last_seconds is None
