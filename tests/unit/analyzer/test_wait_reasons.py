"""What waits were for, and how much of them was idleness."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tachograph.analyzer import Question, Recording
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.profile.profile import Profile
from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.line_selection import important
from tachograph.analyzer.samples.weights import REASONS, Reasons
from tachograph.format import load_specification
from unit.analyzer.recordings import Builder

TARGETS = [value.name for value in load_specification().enums["target"]]
CALLS = {
    202: "lock or GIL", 230: "sleep", 35: "sleep", 61: "child process", 247: "child process", 45: "socket",
    288: "socket", 7: "events", 232: "events", 281: "events", 74: "file", 0: "unknown", 9999: "unknown", -1: "unknown",
}  # fmt: skip


def named(syscall: int, target: str, machine: str | None = "x86_64") -> str:
    reasons = Reasons(TARGETS, machine)
    return REASONS[int(reasons.of(np.array([syscall]), np.array([TARGETS.index(target)]))[0])]


@pytest.mark.parametrize(("syscall", "reason"), CALLS.items())
def test_calls_tell_what_a_wait_is_for(syscall: int, reason: str) -> None:
    assert named(syscall, "unknown") == reason


def test_descriptors_tell_more_than_calls() -> None:
    assert [named(0, target) for target in ("file", "socket", "pipe", "terminal", "gpu")] == [
        "file", "socket", "pipe", "terminal", "GPU",
    ]  # fmt: skip
    assert [named(202, target) for target in ("gil", "lock")] == ["GIL", "lock"]
    assert named(45, "pipe") == "pipe"
    # A target of a newer format, and another machine whose numbers are others.
    assert REASONS[int(Reasons(TARGETS, None).of(np.array([202]), np.array([99]))[0])] == "lock or GIL"
    assert [named(number, "unknown", "aarch64") for number in (98, 115, 202, 22)] == [
        "lock or GIL", "sleep", "socket", "events",
    ]  # fmt: skip
    assert named(202, "unknown", "riscv64") == "unknown"


@pytest.fixture
def server(tmp_path: Path) -> Profile:
    """Four workers that wait for a connection nearly all the time; 60 ms for a lock, 40 ms for a file, 50 ms of CPU."""
    builder = Builder(tmp_path / "server.tacho")
    code = builder.code(builder.file("/srv/server.py", "\n".join(f"line{number}()" for number in range(1, 9))))
    for _ in range(5):
        builder.cpu(builder.stack((code, 0)))
    for number in range(4):
        worker = builder.thread(f"worker-{number}")
        builder.wait(builder.stack((code, 1)), 100, 9_900, thread=worker, syscall=288)
        builder.wait(builder.stack((code, 4)), 9_900, 9_915, thread=worker, syscall=202)
        builder.wait(builder.stack((code, 4)), 9_915, 9_925, thread=worker, syscall=0, target=TARGETS.index("file"))
    with Recording.open(builder.write()) as recording:
        return build_profile(recording, Question())


def test_lines_say_what_they_waited_for(server: Profile) -> None:
    by_line = server.lines.dropna(subset="line").set_index("line")["wait_for"].to_dict()
    assert by_line[1] is None
    assert dict(by_line[2]) == pytest.approx({"socket": 39.2})
    assert dict(by_line[5]) == pytest.approx({"lock or GIL": 0.06, "file": 0.04})
    assert [reason for reason, _ in by_line[5]] == ["lock or GIL", "file"]


def test_idleness_is_no_yardstick(server: Profile) -> None:
    """100 ms are 0.25 % of all waiting, and most of what the server does beside waiting for connections."""
    assert server.totals.idle_wait_s == pytest.approx(39.2)
    assert server.totals.busy_s == pytest.approx(0.05 + 0.1)
    assert server.lines.loc[important(server, Sort.WAIT), "line"].tolist() == [2, 5]


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_sorts_and_draws_by_waiting(server: Profile, width: int) -> None:
    out = io.StringIO()
    show(server, Console(file=out, width=width, force_terminal=False, color_system=None), Sort.WAIT)
    lines = out.getvalue().splitlines()
    (connection,) = [line for line in lines if "line2()" in line]
    assert "socket" in connection
    assert "39.2s" in connection
    assert (connection.count("░") + connection.count(".........") > 0) == (width == 140)
    (lock,) = [line for line in lines if "line5()" in line]
    assert "lock or GIL 60%" in lock
    assert any(line.endswith("39.3 s waiting") for line in lines)
    threads = lines[next(place for place, line in enumerate(lines) if line.startswith(" Threads")) + 2 :]
    assert "worker-0" in threads[0]
    assert "MainThread" in threads[4]
