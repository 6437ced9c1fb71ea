"""The native recorder against programs that measure themselves."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder

pytestmark = [pytest.mark.native, pytest.mark.quiet]

LOOPS = ("for", "while", "comprehension", "generator", "recursion")
FINE = 2
"""Milliseconds: a sample at each tick of a kernel that has 250 or 500 a second, so that a short run has many."""
needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")


def check_total(run: support.Run, threads: int = 1) -> None:
    """CPU in the report = CPU of the process: from where recording began (before the program's first line) to its end.

    The process had used ``first_ns`` when the program's clocks began and goes on for a little after they end, so the
    truth is known to lie between two bounds. What each thread used after its last sample is in no sample. The process's
    time has the recorder's own in it, which grows with the time that the program takes on a busy machine.
    """
    least = (run.truth["process_ns"] - run.truth["first_ns"]) / 1e9 - run.recorders_own_s
    most = run.truth["process_ns"] / 1e9 + 0.03
    assert least * 0.99 - threads * run.gap_s <= run.totals.cpu_s <= most * 1.01


def check_python(found: support.Times) -> None:
    """A short stretch of nothing but Python: native in no more than the tolerance of nought allows."""
    assert found.samples > 0
    assert found.native_s <= support.tolerance(0.0, found.samples) * found.cpu_s


def check_native(found: support.Times) -> None:
    """A line of nothing but native code: Python in no more than the tolerance of nought allows."""
    assert found.samples > 0
    assert found.python_s <= support.tolerance(0.0, found.samples) * found.cpu_s


def check_time(run: support.Run, reported_s: float, true_ns: int) -> None:
    """An absolute time within 1 %, and what the ends of a stretch of work have that lie between samples."""
    assert abs(reported_s - true_ns / 1e9) <= 0.01 * true_ns / 1e9 + run.gap_s


# ------------------------------------------------------------------ pure Python


def test_python_loops_are_charged_to_their_lines(recorded: Recorder) -> None:
    recorded("python_loops.py", interval=FINE).check_shares(*LOOPS)


@pytest.mark.parametrize("loop", LOOPS)
def test_python_loops_are_under_two_percent_native(recorded: Recorder, loop: str) -> None:
    found = recorded("python_loops.py", interval=FINE).line(loop)
    assert found.samples > 50
    assert found.native_s < 0.02 * found.cpu_s
    assert found.unknown_s == 0


def test_deep_stacks_are_whole(recorded: Recorder) -> None:
    run = recorded("python_loops.py", interval=FINE)
    assert run.loss("stacks_truncated") == 0
    assert run.loss("stacks_lost") == 0
    assert run.loss("stacks_torn") <= 0.01 * run.totals.samples


def test_cpu_total_is_the_process_time(recorded: Recorder) -> None:
    check_total(recorded("python_loops.py", interval=FINE))


@pytest.mark.parametrize("interval", [FINE, 20, pytest.param(10, marks=pytest.mark.slow)])
def test_totals_do_not_depend_on_the_interval(recorded: Recorder, interval: int) -> None:
    run = recorded("python_loops.py", *([] if interval == FINE else ["2"]), interval=interval)
    check_total(run)
    run.check_shares(*LOOPS)


def test_shares_carry_intervals_that_hold_the_truth(recorded: Recorder) -> None:
    """95 % intervals of single lines: the reported share lies in its own, and the width follows the samples."""
    run = recorded("python_loops.py", interval=FINE)
    rows: list[dict[str, Any]] = [row for row in run.report["lines"] if row["samples"] >= 30]
    assert rows
    for row in rows:
        assert 0 <= row["cpu_share_low"] <= row["cpu_share"] <= row["cpu_share_high"] <= 1
        width = row["cpu_share_high"] - row["cpu_share_low"]
        share, samples = row["cpu_share"], run.report["totals"]["effective_samples"]
        assert 0.8 * run.totals.samples < samples <= run.totals.samples
        assert width == pytest.approx(2 * 1.96 * (share * (1 - share) / samples) ** 0.5, rel=0.25)


# ------------------------------------------------------------------ native code in calls and operators


@pytest.mark.parametrize(
    ("program", "native"),
    [
        ("native_mix.py", ("compress", "digest", "checksum")),
        pytest.param("numpy_mix.py", ("product", "addition", "call"), marks=[needs_numpy, pytest.mark.slow]),
        ("operators.py", ("product", "quotient", "addition")),
    ],
)
def test_mostly_native_program_reports_it(recorded: Recorder, program: str, native: tuple[str, ...]) -> None:
    """The whole program's split agrees with the clocks, and so does every line's."""
    run = recorded(program, interval=FINE)
    run.check_shares(*native, "python")
    whole, python = run.line(*native, "python"), run.line("python")
    true = run.true_share(native, (*native, "python"))
    assert true > 0.9
    reported = (whole.cpu_s - whole.python_s) / whole.cpu_s
    assert abs(reported - true) <= support.tolerance(true, whole.samples)
    check_python(python)
    for name in native:
        check_native(run.line(name))


@pytest.mark.parametrize(
    ("program", "operators"),
    [
        ("operators.py", ("product", "quotient", "addition")),
        pytest.param("numpy_mix.py", ("product", "addition", "call"), marks=[needs_numpy, pytest.mark.slow]),
    ],
)
def test_an_operator_is_not_charged_to_the_next_line(
    recorded: Recorder, program: str, operators: tuple[str, ...]
) -> None:
    """``a @ b`` and ``a + b`` are no calls; the line behind each does next to nothing and must show next to nothing."""
    run = recorded(program, interval=FINE)
    for name in operators:
        own, after = run.line(name), run.line(f"after-{name}")
        both = own.samples + after.samples
        assert after.cpu_s / (own.cpu_s + after.cpu_s) <= support.tolerance(0.0, both), name


def test_bodies_of_while_loops_are_charged_to_their_lines(recorded: Recorder) -> None:
    run = recorded("while_bodies.py", interval=FINE)
    run.check_shares("digest-large", "digest-small", "list-large", "list-small", "head")
    check_python(run.line("list-large", "list-small"))
    check_native(run.line("digest-large", "digest-small"))


@pytest.mark.parametrize("share", ["0.8", *(pytest.param(each, marks=pytest.mark.slow) for each in ("0.2", "0.5"))])
def test_no_function_bias(recorded: Recorder, share: str) -> None:
    """The paper's experiment (2023 §6.2, figure 5): the points lie on the diagonal."""
    recorded("function_bias.py", "2", share, interval=FINE).check_shares("called", "inlined")


# ------------------------------------------------------------------ threads


def thread_times(run: support.Run, name: str) -> support.Times:
    rows = [row for row in run.report["threads"] if row["name"] == name]
    assert len(rows) == 1, f"{name}: {[row['name'] for row in run.report['threads']]}"
    return support.times(rows[0])


def test_four_threads_with_different_loads(recorded: Recorder) -> None:
    run = recorded("four_threads.py", interval=FINE)
    truth = {name: ns / 1e9 for name, ns in run.spent.items()}
    found = {name: thread_times(run, f"oracle-{name}") for name in truth}
    whole, samples = sum(truth.values()), run.line(*truth).samples
    run.check_shares(*truth)
    for name, used in truth.items():
        check_time(run, found[name].cpu_s, run.spent[name])  # read from its clock, not estimated from a count
        share = found[name].cpu_s / sum(times.cpu_s for times in found.values())
        assert abs(share - used / whole) <= support.tolerance(used / whole, samples), name
        check_python(found[name])
    assert {row["tid"] for row in run.report["threads"] if row["name"].startswith("oracle-")} == set(
        run.truth["facts"]["tids"].values()
    )


def test_cpu_total_with_threads_is_the_process_time(recorded: Recorder) -> None:
    check_total(recorded("four_threads.py", interval=FINE), threads=5)


def test_threads_shorter_than_the_interval_are_counted_in_full(recorded: Recorder) -> None:
    """No sample is sure to fall into such a thread, but the sum over many is right, wherever in them the time was."""
    run = recorded("short_threads.py", interval=5)
    run.check_shares("early", "late")
    found = run.line("early", "late")
    true = (run.spent["early"] + run.spent["late"]) / 1e9
    assert found.samples > 100
    assert abs(found.cpu_s - true) <= 4 * true / math.sqrt(true / 0.005)  # each stands for an interval


def test_threads_wait_for_the_gil_and_do_not_use_it_twice(recorded: Recorder) -> None:
    """Four threads that want the GIL share one CPU: a thread that does not run waits."""
    run = recorded("four_threads.py", interval=FINE)
    assert thread_times(run, "oracle-fourth").wait_s > 0.5 * run.spent["first"] / 1e9


@pytest.fixture(scope="module")
def native_threads(recorded: Recorder, library: Path) -> support.Run:
    return recorded("native_threads.py", "4", str(library))


def test_native_code_that_releases_the_gil(native_threads: support.Run) -> None:
    found = native_threads.line("released")
    check_time(native_threads, found.cpu_s, native_threads.spent["released"])
    check_native(found)


def test_native_code_that_holds_the_gil(native_threads: support.Run) -> None:
    held, python = native_threads.line("held"), native_threads.line("python")
    check_time(native_threads, held.cpu_s, native_threads.spent["held"])
    check_native(held)
    check_time(native_threads, python.cpu_s, native_threads.spent["python"])
    check_python(python)


def test_native_thread_without_python_state(native_threads: support.Run) -> None:
    found = thread_times(native_threads, "oracle-native")
    check_time(native_threads, found.cpu_s, native_threads.spent["stateless"])
    assert found.native_s >= 0.98 * found.user_s


def test_native_threads_are_in_the_total(native_threads: support.Run) -> None:
    check_total(native_threads, threads=3)


# ------------------------------------------------------------------ waiting and the kernel


@pytest.fixture(scope="module")
def blocking(recorded: Recorder, library: Path) -> support.Run:
    return recorded("blocking.py", "1", str(library), interval=10)


@pytest.mark.parametrize("name", ["c-read", "os-read", "lock", "sleep"])
def test_a_blocked_main_thread_waits_on_its_line(blocking: support.Run, name: str) -> None:
    found = blocking.line(name)
    assert found.wait_s == pytest.approx(blocking.spent[name] / 1e9, rel=0.05)


def test_nothing_is_missing_of_the_last_wait(blocking: support.Run) -> None:
    """The program ends between two looks, which are up to 60 ms apart while nothing changes.

    On a busy machine the thread is woken and has no processor yet: that is in its clock too.
    """
    totals, names = blocking.report["totals"], ("c-read", "os-read", "lock", "sleep")
    off_cpu_s = totals["main_wait_s"] + totals["main_cpu_wait_s"]
    assert off_cpu_s > 0.999 * sum(blocking.spent[name] for name in names) / 1e9


def test_waiting_is_not_cpu(blocking: support.Run) -> None:
    names = ("c-read", "os-read", "lock", "sleep")
    assert blocking.line(*names).cpu_s <= blocking.truth["process_ns"] / 1e9
    assert blocking.totals.cpu_s < 0.1 * blocking.totals.wait_s


def test_waiting_for_a_processor_is_no_waiting_for_the_world(recorded: Recorder) -> None:
    """Also where it was not seen what the thread waited for: the kernel counts how long it was ready to run."""
    run = recorded("one_processor.py")
    facts, totals = run.truth["facts"], run.report["totals"]
    wall, ready = facts["wall_ns"] / 1e9, facts["ready_ns"] / 1e9
    world = wall - ready - facts["cpu_ns"] / 1e9
    assert ready > 0.25 * wall
    assert totals["main_cpu_wait_s"] == pytest.approx(ready, abs=0.05 * wall)
    assert totals["main_wait_s"] == pytest.approx(world, abs=0.05 * wall)


def test_kernel_time_is_the_kernels(recorded: Recorder) -> None:
    """Reads of /dev/zero are the kernel's copying; the Python loop beside them has none."""
    run = recorded("kernel.py", interval=FINE)
    run.check_shares("reading", "python")
    reading, python = run.line("reading"), run.line("python")
    whole = reading.cpu_s + python.cpu_s
    true = run.true_share(("reading",), ("reading", "python"))
    reported = (reading.kernel_s + python.kernel_s) / whole
    assert abs(reported - true) <= support.tolerance(true, reading.samples + python.samples)


def test_a_long_system_call_is_on_its_line(recorded: Recorder) -> None:
    """The signal comes when the call returns: till then the thread must not be taken for one that blocks it."""
    run = recorded("long_reads.py", interval=1)
    assert "samples_remote" not in {each["loss"] for each in run.report["quality"]["losses"]}
    reading = run.line("reading")
    assert reading.cpu_s == pytest.approx(run.spent["reading"] / 1e9, rel=0.05)
    assert reading.kernel_s > 0.9 * reading.cpu_s


def test_kernel_total_is_the_process_system_time(recorded: Recorder) -> None:
    run = recorded("kernel.py", interval=FINE)
    true = run.truth["kernel_ns"] / run.truth["process_ns"]
    reported = run.totals.kernel_s / run.totals.cpu_s
    assert abs(reported - true) <= support.tolerance(true, run.totals.samples)


# ------------------------------------------------------------------ enough samples for one percentage point


@pytest.mark.slow
def test_shares_agree_within_one_point_once_there_are_enough_samples(recorded: Recorder) -> None:
    """A run so long that chance allows less than the percentage point that the design does."""
    run = recorded("python_loops.py", "120", interval=4)
    assert run.line(*LOOPS).samples > 15_000
    run.check_shares(*LOOPS)
    for loop in LOOPS:
        true = run.true_share((loop,), LOOPS)
        assert abs(run.reported_share((loop,), LOOPS).part - true) <= 0.01, loop
