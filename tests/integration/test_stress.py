"""Stacks under stress: none that cannot be, few that are torn, and never a crash."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

STRESS = support.PROGRAMS / "stress.py"
WHOLE, TORN, LOST, UNSEEN = 0, 2, 4, 5
"""Places in the format's enumeration ``stack_state``."""


def codes_of(source: str, filename: str) -> dict[tuple[str, int], CodeType]:
    """Every code object of a source text by qualified name and first line, as this interpreter compiles it."""
    found: dict[tuple[str, int], CodeType] = {}
    todo = [compile(source, filename, "exec")]
    while todo:
        code = todo.pop()
        found[code.co_qualname, code.co_firstlineno] = code
        todo.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return found


@dataclass(frozen=True)
class StressRun:
    """The stress program's recording beside its call graph."""

    recording: Path
    truth: dict[str, Any]
    samples: int

    @cached_property
    def stacks(self) -> list[dict[str, Any]]:
        return support.rows(self.recording, "stacks")

    @cached_property
    def reached(self) -> list[dict[str, Any]]:
        """The nodes on the stack of some sample or wait: what the recording says was there."""
        found: set[int] = set()
        for table in ("cpu", "waits"):
            for row in support.rows(self.recording, table):
                node = row["stack"]
                while node is not None and node not in found:
                    found.add(node)
                    node = self.stacks[node]["parent"]
        return [self.stacks[node] for node in sorted(found)]

    @cached_property
    def codes(self) -> list[dict[str, Any]]:
        files = {row["file"]: row["path"] for row in support.rows(self.recording, "files")}
        return [{**row, "path": files[row["file"]]} for row in support.rows(self.recording, "codes")]

    def name(self, stack: dict[str, Any]) -> str | None:
        """The function of a node as CALLS has it; None for one of another file."""
        if stack["code"] is None:
            return None
        code = self.codes[stack["code"]]
        if code["path"] == str(STRESS):
            return str(code["qualname"])
        return f"churn:{code['qualname']}" if code["path"].startswith("<churn ") else None

    @cached_property
    def compiled(self) -> dict[tuple[str, int], CodeType]:
        return codes_of(STRESS.read_text(encoding="utf-8"), str(STRESS))

    def line(self, stack: dict[str, Any]) -> str | None:
        """The source line of a node's instruction, decoded by the interpreter itself; None for made-up code.

        Empty for an instruction that is not known, as no caller's can be.
        """
        row = self.codes[stack["code"]]
        if row["path"] != str(STRESS):
            return None
        if stack["instruction"] is None:
            return ""
        code = self.compiled[row["qualname"], row["first_line"]]
        assert 0 <= stack["instruction"] < len(code.co_code), (row["qualname"], stack["instruction"])
        number = list(code.co_positions())[stack["instruction"] // 2][0]
        return STRESS.read_text(encoding="utf-8").splitlines()[number - 1] if number else ""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StressRun:
    folder = tmp_path_factory.mktemp("stress")
    done = support.record([STRESS, folder / "truth.json", "5"], folder, "--interval", "4")
    assert done == support.Outcome(0, "rounds\n", "")
    recording = folder / "run.tacho"
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return StressRun(recording, truth, len(support.rows(recording, "cpu")))


def test_there_is_something_to_check(run: StressRun) -> None:
    assert run.samples > 200  # a tenth of what an idle machine gives
    seen = {run.name(stack) for stack in run.reached}
    wanted = {"leaf", "deep", "numbers", "thrower", "bottomless", "churn:<module>", "churn:generated"}
    assert wanted <= seen
    if run.truth["greenlets"]:
        assert "bounce" in seen


def test_the_call_graph_has_every_function(run: StressRun) -> None:
    """A function that the program's own truth leaves out would be reported as impossible when a sample meets it.

    From CPython 3.14 on there are functions that make annotations on request, and nothing requests them here.
    """
    called = {name for name, _ in run.compiled if not name.endswith("__annotate__")}
    assert called <= set(run.truth["calls"])


def test_no_impossible_caller(run: StressRun) -> None:
    """Each caller and callee of the program's own code is a pair that its call graph has."""
    calls, anywhere = run.truth["calls"], set(run.truth["anywhere"])
    impossible: Counter[str] = Counter()
    for stack in run.reached:
        if stack["parent"] is None:
            continue
        caller, callee = run.name(run.stacks[stack["parent"]]), run.name(stack)
        if caller and callee and callee not in anywhere and callee not in calls[caller]:
            impossible[f"{caller} -> {callee}"] += 1
    assert not impossible


def test_callers_stand_at_their_calls(run: StressRun) -> None:
    """The caller's instruction lies on a line that makes the call: a stale or shifted offset would not."""
    calls, anywhere = run.truth["calls"], set(run.truth["anywhere"])
    wrong: Counter[str] = Counter()
    for stack in run.reached:
        if stack["parent"] is None:
            continue
        parent = run.stacks[stack["parent"]]
        caller, callee = run.name(parent), run.name(stack)
        if not caller or not callee or callee in anywhere or caller.startswith("churn:"):
            continue
        line = run.line(parent)
        assert line is not None
        if not line or not any(text in line for text in calls[caller].get(callee, "").split("|")):
            wrong[f"{caller} -> {callee} at {line.strip()!r}"] += 1
    assert not wrong


def test_stacks_reach_their_roots(run: StressRun) -> None:
    """A stack that is said to be whole begins where the program or one of its threads begins."""
    states = {row["stack"] for table in ("cpu", "waits") for row in whole(run, table)}
    roots: Counter[str] = Counter()
    for leaf in states:
        stack, ours = run.stacks[leaf], False
        while True:
            ours = ours or run.name(stack) is not None
            if stack["parent"] is None:
                break
            stack = run.stacks[stack["parent"]]
        if ours:
            code = run.codes[stack["code"]]
            roots[code["qualname"]] += 1
    assert set(roots) <= set(run.truth["roots"])


def whole(run: StressRun, table: str) -> list[dict[str, Any]]:
    return [row for row in support.rows(run.recording, table) if row["stack_state"] == WHOLE]


@pytest.mark.parametrize("table", ["cpu", "waits"])
def test_under_one_percent_is_torn(run: StressRun, table: str) -> None:
    states = Counter(row["stack_state"] for row in support.rows(run.recording, table))
    assert states.total() > 0
    assert states[TORN] < 0.01 * states.total()
    assert states[LOST] == 0


def test_states_and_stacks_agree(run: StressRun) -> None:
    for table in ("cpu", "waits"):
        for row in support.rows(run.recording, table):
            assert (row["stack"] is None) == (row["stack_state"] in (1, TORN, LOST, UNSEEN)), (table, row)


def test_parents_come_before_their_children(run: StressRun) -> None:
    for index, stack in enumerate(run.stacks):
        assert stack["stack"] == index
        assert stack["parent"] is None or stack["parent"] < index


def test_thousands_of_short_threads(tmp_path: Path) -> None:
    """Every thread is in the recording, with its name, its start and its end, and no timer is left behind."""
    code = (
        "import os, threading, time\n"
        "def run(): sum(range(300))\n"
        "for batch in range(300):\n"
        "    threads = [threading.Thread(target=run, name=f'short-{batch}-{n}') for n in range(10)]\n"
        "    for t in threads: t.start()\n"
        "    for t in threads: t.join()\n"
        "time.sleep(0.3)\n"
        "known = os.path.exists('/proc/self/timers')\n"
        "print(open('/proc/self/timers').read().count('signal:') if known else 1)\n"
    )
    done = support.record(["-c", code], tmp_path)
    assert done.status == 0
    assert done.stderr == ""
    assert int(done.stdout) == 1  # the main thread's
    threads = [row for row in support.rows(tmp_path / "run.tacho", "threads") if (row["name"] or "")[:6] == "short-"]
    assert len(threads) == 3000
    assert len({row["name"] for row in threads}) == 3000
    assert all(row["end_ns"] is not None and row["end_ns"] >= row["start_ns"] for row in threads)
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert not {"threads_missed", "timers_refused", "records_dropped"} & set(support.losses(report))


def test_thread_names(tmp_path: Path) -> None:
    """The name that Python gave the thread when it was started, also one beyond the system's fifteen bytes."""
    code = (
        "import threading, time\n"
        "def spin():\n"
        "    end = time.thread_time() + 0.1\n"
        "    while time.thread_time() < end: pass\n"
        "threads = [threading.Thread(target=spin, name=name) for name in"
        " ('plain', 'a name that is far longer than fifteen bytes', 'Ünïcödé 线程')]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "spin()\n"
    )
    done = support.record(["-c", code], tmp_path, "--interval", "5")
    assert (done.status, done.stderr) == (0, "")
    threads = support.rows(tmp_path / "run.tacho", "threads")
    names = {row["name"] for row in threads if row["python_name"]}
    assert names == {"MainThread", "plain", "a name that is far longer than fifteen bytes", "Ünïcödé 线程"}
    assert [row["main"] for row in threads if row["name"] == "MainThread"] == [True]
