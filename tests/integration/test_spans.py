"""Spans of a recorded program are in its recording, with either sampler."""

import json
from pathlib import Path
from typing import Any

import pytest

from integration import support
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.profile.question import Question
from tachograph.analyzer.recording.opened import Recording

PROGRAM = """
import threading, time
from tachograph.recorder import pause, resume, span

@span("work", of="thread")
def work():
    time.sleep(0.01)

with span("epoch", n=3, name="a \\"quoted\\" naïve 😀"):
    with span("batch"):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    try:
        with span("failing"):
            raise KeyError("through")
    except KeyError:
        print("passed through")
pause()
with span("unseen"):
    pass
resume()
with span("after"):
    pass
"""

TURNS = """
import asyncio, time
from tachograph.recorder import span

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

async def task(name, step):
    with span(name):
        for _ in range(30):
            burn(step)
            await asyncio.sleep(0)

async def main():
    await asyncio.gather(task("heavy", 0.02), task("light", 0.0005))

asyncio.run(main())
"""

TRACED = """
import asyncio, time
from opentelemetry.sdk.trace import TracerProvider
from tachograph.recorder.opentelemetry import SpanProcessor

provider = TracerProvider()
provider.add_span_processor(SpanProcessor())
tracer = provider.get_tracer("service")

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

async def request(name, step):
    with tracer.start_as_current_span("GET") as request:
        for _ in range(30):
            with tracer.start_as_current_span("step"):
                burn(step)
            await asyncio.sleep(0)
        request.update_name(name)
    return f"{request.get_span_context().trace_id:032x}"

async def main():
    print(*await asyncio.gather(request("GET /heavy", 0.02), request("GET /light", 0.0005)))

asyncio.run(main())
"""

FORKS = """
import os
from tachograph.recorder import span
with span("both"):
    child = os.fork()
if child:
    print(os.waitpid(child, 0)[1])
else:
    with span("child"):
        pass
"""


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table, with the names of threads."""
    recording = folder / "run.tacho"
    names = [row["name"] for row in support.rows(recording, "threads")]
    return [{**row, "thread": names[row["thread"]]} for row in support.rows(recording, "spans")]


def test_a_recorded_program(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = support.record(["program.py"], tmp_path, "--sampler", sampler)
    assert done == support.Outcome(0, "passed through\n", "")
    rows = recorded(tmp_path)
    main = rows[0]["thread"]
    assert [(row["name"], row["parent"], row["thread"]) for row in rows] == [
        ("epoch", None, main),
        ("batch", 0, main),
        ("work", None, "worker"),
        ("failing", 0, main),
        ("after", None, main),
    ]
    assert [json.loads(row["fields"]) for row in rows if row["fields"] is not None] == [
        {"n": 3, "name": 'a "quoted" naïve 😀'},
        {"of": "thread"},
    ]
    epoch, batch, work, *_ = ((row["start_ns"], row["end_ns"]) for row in rows)
    assert epoch[0] <= batch[0] <= work[0] <= work[1] <= batch[1] <= epoch[1]
    assert work[1] - work[0] >= 10_000_000
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["tables"]["spans"]["rows"] == 5


def test_in_a_child_process_they_are_its_own(tmp_path: Path, sampler: str) -> None:
    """A span that was open at the fork ends in both."""
    done = support.record(["-c", FORKS], tmp_path, "--sampler", sampler)
    assert (done.status, done.stdout) == (0, "0\n")
    found = sorted((row["process"], row["name"]) for row in recorded(tmp_path))
    assert found == [(0, "both"), (1, "both"), (1, "child")]


@pytest.mark.native
def test_tasks_that_take_turns_have_each_its_own(tmp_path: Path) -> None:
    """By time, all that ran while both were open would be the one's that began last."""
    done = support.record(["-c", TURNS], tmp_path)
    assert done == support.Outcome(0, "", "")
    with Recording(tmp_path / "run.tacho") as recording:
        profile = build_profile(recording, Question())
        alone = build_profile(recording, Question(span="light"))
    assert profile.spans is not None
    found = profile.spans.set_index("name")
    assert found.cpu_s["heavy"] > 0.5
    assert found.cpu_s["light"] < 0.25 * found.cpu_s["heavy"]
    assert alone.totals.cpu_s == pytest.approx(found.total_cpu_s["light"], abs=1e-9)
    # Each awaits while the other works.
    assert found.await_s["light"] > found.await_s["heavy"]
    assert profile.quality.notes == []


@pytest.mark.native
def test_requests_that_opentelemetry_traces_are_spans_with_the_id_of_their_trace(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    (tmp_path / "program.py").write_text(TRACED, encoding="utf-8")
    done = support.record(["program.py"], tmp_path)
    assert (done.status, done.stderr) == (0, "")
    heavy, light = done.stdout.split()
    named = {row["name"]: json.loads(row["fields"])["trace_id"] for row in recorded(tmp_path)}
    assert named == {"GET /heavy": heavy, "GET /light": light}
    found = support.analyze(Path("run.tacho"), "--trace", heavy, cwd=tmp_path)
    assert found["totals"]["cpu_s"] == pytest.approx(0.6, abs=0.1)
