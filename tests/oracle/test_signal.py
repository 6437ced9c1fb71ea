"""The signal sampler (Scalene 2023 §2) against the same programs, where its method can see them.

It cannot see, and is not asked about:

- waiting: a timer of CPU time does not run while nothing does;
- the kernel's share: its timer runs in user mode only, its clock in both, so that kernel time is a delay like another;
- threads without Python state, and which of several threads ran native code: their CPU time is in the process's clock,
  but nothing tells whose it was, so it is shared out among the threads that are executing;
- the line of an operator: the delayed signal is handled where the interpreter next looks, which it does behind a call
  and at the loop's end, but not behind an operator. The function is right, and is what is compared there.

Its bar is the paper's figure 5, a reported share on the diagonal of the true one, held to the oracle's own tolerance.
A virtual-time signal is only handled between bytecodes and the kernel delivers it on a tick, so the quantum is one that
is a multiple of every usual tick (1, 2, 4 and 10 ms): then the elapsed time of Python code is the quantum.
"""

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.test_native import LOOPS, needs_numpy

QUANTUM = 20


def test_python_loops_are_charged_to_their_lines(recorded: Recorder) -> None:
    recorded("python_loops.py", sampler="signal", interval=QUANTUM).check_shares(*LOOPS)


def test_python_loops_are_python(recorded: Recorder) -> None:
    """Without the recursion, whose kernel time is a delay like any other to this method."""
    shapes = ("for", "while", "comprehension", "generator")
    run = recorded("python_loops.py", "4", ",".join(shapes), sampler="signal", interval=QUANTUM)
    found = run.line(*shapes)
    assert found.native_s <= support.tolerance(0.0, found.samples) * found.cpu_s


@pytest.mark.parametrize(
    ("program", "native"),
    [
        ("native_mix.py", ("compress", "digest", "checksum")),
        pytest.param("numpy_mix.py", ("product", "addition", "call"), marks=needs_numpy),
        ("operators.py", ("product", "quotient", "addition")),
    ],
)
def test_functions_of_a_mostly_native_program(recorded: Recorder, program: str, native: tuple[str, ...]) -> None:
    recorded(program, sampler="signal", interval=QUANTUM).check_shares(*native, "python", by="function")


def test_native_lines_that_call(recorded: Recorder) -> None:
    run = recorded("native_mix.py", sampler="signal", interval=QUANTUM)
    run.check_shares("compress", "digest", "checksum", "python")


@pytest.mark.parametrize("share", ["0.2", "0.5", "0.8"])
def test_no_function_bias(recorded: Recorder, share: str) -> None:
    run = recorded("function_bias.py", "2.5", share, sampler="signal", interval=QUANTUM)
    run.check_shares("called", "inlined")


def test_four_threads_with_different_loads(recorded: Recorder) -> None:
    run = recorded("four_threads.py", sampler="signal", interval=QUANTUM)
    run.check_shares("first", "second", "third", "fourth")


@pytest.mark.parametrize("interval", [QUANTUM, 2 * QUANTUM])
def test_totals_do_not_depend_on_the_interval(recorded: Recorder, interval: int) -> None:
    run = recorded("python_loops.py", sampler="signal", interval=interval)
    least = (run.truth["process_ns"] - run.truth["first_ns"]) / 1e9
    assert least * 0.99 - interval / 1000 <= run.totals.cpu_s <= run.truth["process_ns"] / 1e9 * 1.01 + 0.03


def test_what_it_cannot_see_is_not_made_up(recorded: Recorder) -> None:
    """No waiting and no kernel time was measured, so none is reported."""
    totals = recorded("python_loops.py", sampler="signal", interval=QUANTUM).report["totals"]
    assert not totals["wait_s"]
    assert not totals["kernel_s"]
