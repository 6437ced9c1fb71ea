"""The recorder in a real interpreter under stress, built with the sanitizers, at an interval of one millisecond."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from native import building
from support import spools as segments
from tachograph.format.spool import layout

# To build it takes as long as ten other tests; integration/test_stress.py has the same program, without sanitizers.
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
STRESS = HERE.parent / "integration" / "programs" / "stress.py"
STORM = HERE.parent / "oracle" / "programs" / "task_storm.py"
SETTINGS = "interval_ns=1000000,segment=1048576,sampler=native,waits=1,paused=0,memory=0,native_depth=64"
NONE = 0xFFFFFFFF
WHOLE, TORN, LOST = 0, 2, 4
"""Places in the format's enumeration ``stack_state``."""
UNDEFINED = building.Variant(
    "undefined", ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"), building.ADDRESS.environment
)


@dataclass(frozen=True)
class Recorder:
    """A build of the recorder for this interpreter."""

    variant: building.Variant
    folder: Path

    def run(self, spool: Path, *command: str | Path, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        """Run a Python program that records itself into ``spool``."""
        spool.mkdir()
        preload = building.preload(self.variant, self.folder / "libtachograph.so")
        env = {**os.environ, **dict(self.variant.environment), "LD_PRELOAD": preload}
        env |= {"TACHOGRAPH_SPOOL": str(spool), "TACHOGRAPH_CONFIG": SETTINGS}
        # -S: not the recorder that is installed.
        arguments = [sys.executable, "-S", HERE / "programs" / "armed.py", self.folder, *command]
        return subprocess.run(
            list(map(str, arguments)), env=env, capture_output=True, text=True, timeout=timeout, check=False
        )


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """The shim and the extension module, with all sanitizers that work here."""
    probe = tmp_path_factory.mktemp("probe")
    variants = [variant for variant in (building.ADDRESS, UNDEFINED) if not building.can_build(variant, probe)]
    if not variants:
        pytest.skip("no compiler with sanitizers")
    try:
        folder = building.recorder(variants[0], tmp_path_factory.mktemp("recorder"))
    except building.MissingError as error:
        pytest.skip(str(error))
    return Recorder(variants[0], folder)


@dataclass(frozen=True)
class Stress:
    """What the stress program left in its spool, beside what it may do."""

    spool: Path
    truth: dict[str, Any]
    output: "subprocess.CompletedProcess[str]"

    @cached_property
    def records(self) -> list[tuple[int, Any]]:
        return segments.records(self.spool)

    def rows(self, *kinds: int) -> list[Any]:
        return [fields for kind, fields in self.records if kind in kinds]

    @cached_property
    def names(self) -> dict[int, str]:
        """Functions of the program, and of the code that it made up, by the id of their code."""
        files = {str(STRESS): ""}
        known = {}
        for code in self.rows(layout.CODE):
            prefix = "churn:" if code.filename.startswith("<churn ") else files.get(code.filename)
            if prefix is not None:
                known[code.code] = prefix + code.qualname
        return known


@pytest.fixture(scope="module")
def stress(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Stress:
    folder = tmp_path_factory.mktemp("stress")
    done = recorder.run(folder / "spool", STRESS, folder / "truth.json", "6")
    assert done.returncode == 0, done.stderr[:6000]
    return Stress(folder / "spool", json.loads((folder / "truth.json").read_text(encoding="utf-8")), done)


def test_the_program_is_as_ever(stress: Stress) -> None:
    assert (stress.output.stdout, stress.output.stderr) == ("rounds\n", "")
    assert segments.control(stress.spool).state == layout.ControlState.ENDED
    assert segments.torn(stress.spool) == 0
    lost = segments.losses(stress.spool)
    assert not {name for name in NOTHING_OF if lost[name]}


NOTHING_OF = ("records_dropped", "stacks_lost", "timers_refused", "threads_missed", "slow_reads")


def test_under_one_percent_is_torn(stress: Stress) -> None:
    samples = stress.rows(layout.CPU)
    assert sum(1 + sample.overruns for sample in samples) > 300, "too few ticks of the clock"
    states = Counter(sample.stack_state for sample in samples)
    assert states[TORN] <= 0.01 * states.total()
    assert states[LOST] == 0
    # A greenlet that begins has no frame yet, and spends its time in mapping memory for the first.
    assert states[WHOLE] > (0.6 if stress.truth["greenlets"] else 0.95) * states.total()


def test_only_calls_that_the_program_can_make(stress: Stress) -> None:
    stacks = {stack.stack: stack for stack in stress.rows(layout.STACK)}
    calls, anywhere = stress.truth["calls"], set(stress.truth["anywhere"])
    impossible: Counter[str] = Counter()
    seen = set()
    for stack in stacks.values():
        if stack.parent == NONE:
            continue
        caller = stress.names.get(stacks[stack.parent].code)
        callee = stress.names.get(stack.code)
        if caller and callee and callee not in anywhere:
            seen.add((caller, callee))
            if callee not in calls[caller]:
                impossible[f"{caller} -> {callee}"] += 1
    assert not impossible
    assert len(seen) > 20


def test_every_id_is_defined_once(stress: Stress) -> None:
    stacks = Counter(stack.stack for stack in stress.rows(layout.STACK))
    codes = Counter(code.code for code in stress.rows(layout.CODE))
    assert set(stacks.values()) == set(codes.values()) == {1}
    rows = stress.rows(layout.CPU, layout.WAIT)
    assert {row.stack for row in rows} - {NONE} <= set(stacks)
    assert {stack.code for stack in stress.rows(layout.STACK)} <= set(codes)
    threads = {start.thread for start in stress.rows(layout.THREAD_START)}
    assert {row.thread for row in rows} <= threads


def test_cpu_time_adds_up(stress: Stress) -> None:
    """A thread's samples are its CPU time, but for what came after the last of them."""
    used = {end.thread: end.cpu_ns for end in stress.rows(layout.THREAD_END)}
    starts = {start.thread for start in stress.rows(layout.THREAD_START)}
    assert set(used) == starts
    sampled: Counter[int] = Counter()
    for sample in stress.rows(layout.CPU):
        assert sample.cpu_ns > 0
        assert -1 <= sample.system_ns <= sample.cpu_ns
        sampled[sample.thread] += sample.cpu_ns
    for thread, cpu_ns in sampled.items():
        assert cpu_ns <= used[thread] + 1_000_000, f"thread {thread}"
        if used[thread] > 200_000_000:
            assert cpu_ns > 0.9 * used[thread], f"thread {thread}"


def test_tasks_that_come_and_go(recorder: Recorder, tmp_path: Path) -> None:
    """Every name of a task stands at the coroutine that the task was made of."""
    done = recorder.run(tmp_path / "spool", STORM, tmp_path / "truth.json", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr[:6000]
    assert segments.torn(tmp_path / "spool") == 0
    records = segments.records(tmp_path / "spool")
    codes = {code.code: code.qualname for kind, code in records if kind == layout.CODE}
    tasks = [(codes[stack.code], stack.task) for kind, stack in records if kind == layout.TASK_STACK]
    assert len({task for _, task in tasks}) > 20
    assert not [(code, task) for code, task in tasks if task.split()[0] != code]


MAKES = """
import time
end = time.process_time() + 0.8
while time.process_time() < end:
    for line in range(3):
        exec(compile("\\n" * line + "def made(): return sum(range(3000))\\nmade()", "<made>", "exec"), {})
"""


def test_a_function_that_is_made_again_and_again_is_one(recorder: Recorder, tmp_path: Path) -> None:
    """And those that differ in a line number alone are several."""
    (tmp_path / "makes.py").write_text(MAKES, encoding="utf-8")
    done = recorder.run(tmp_path / "spool", tmp_path / "makes.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr[:6000]
    records = segments.records(tmp_path / "spool")
    codes = [code for kind, code in records if kind == layout.CODE and code.filename == "<made>"]
    assert Counter(code.first_line for code in codes if code.qualname == "made") == {1: 1, 2: 1, 3: 1}
    assert len([code for code in codes if code.qualname == "<module>"]) == 3
    stacks = {stack.stack: stack.code for kind, stack in records if kind == layout.STACK}
    made = {code.code for code in codes}
    assert sum(stacks.get(sample.stack) in made for kind, sample in records if kind == layout.CPU) > 30


FORKS = """
import os, subprocess, sys, threading, time
def worker():
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run(["true"], check=True)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)
    print("done")
if sys.argv[1:] == ["thread"]:
    # The main thread sees no bytecode until the other is through.
    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
else:
    import warnings
    warnings.simplefilter("error")
    worker()
"""


@pytest.mark.parametrize("where", ["main", "thread"])
def test_the_helper_comes_back_after_forks(recorder: Recorder, tmp_path: Path, where: str) -> None:
    """No warning of a second thread comes (CPython counts them after a fork), and waits are seen again afterwards."""
    program = tmp_path / "forks.py"
    program.write_text(FORKS, encoding="utf-8")
    done = recorder.run(tmp_path / "spool", program, where)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    if where == "main":
        assert done.stderr == ""
    records = segments.records(tmp_path / "spool")
    forks = [fields.time_ns for kind, fields in records if kind == layout.STATE and fields.event == 3]
    last_fork = max(forks)
    after = sum(w.off_cpu_ns for kind, w in records if kind == layout.WAIT and w.start_ns > last_fork)
    assert after > 250_000_000
    assert len(forks) >= 20
    assert len(list((tmp_path / "spool").glob("*.ctl"))) == 21  # each child that goes on with Python has its own


def refused(recorder: Recorder, spool: Path, program: Sequence[str]) -> str:
    """The one line with which arming was refused."""
    done = recorder.run(spool, *program)
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("RuntimeError: "), done.stderr[:4000]
    return line


def test_arming_twice_is_refused(recorder: Recorder, tmp_path: Path) -> None:
    program = tmp_path / "twice.py"
    program.write_text(
        "import _native, sys\nassert _native.active()\n_native.arm()\n",
        encoding="utf-8",
    )
    assert "already" in refused(recorder, tmp_path / "spool", [str(program)])
    assert segments.control(tmp_path / "spool").state == layout.ControlState.ENDED
