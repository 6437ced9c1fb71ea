"""The signal sampler (Scalene 2023 §2) against the same programs, where its method can see them.

It cannot see, and is not asked about:

- waiting: a timer of CPU time does not run while nothing does;
- kernel time: its timer runs in user mode only, its clock in both, so that kernel time is a delay like another, and
  code that is mostly in the kernel is met less often than it should be;
- threads without Python state, and which of several threads ran native code: their CPU time is in the process's clock,
  but nothing tells whose it was, so it is shared out among the threads that are executing;
- the line of an operator: the delayed signal is handled where the interpreter next looks, which it does behind a call
  and at the loop's end, but not behind an operator. The function is right, and is what is compared there.

Its bar is the paper's figure 5, a reported share on the diagonal of the true one, held to the oracle's own tolerance.
The kernel sends virtual-time signals on its ticks only, so where Python is told from native code by the delay, the
quantum is a multiple of every usual tick (1, 2, 4 and 10 ms): then the elapsed time of Python code is the quantum.
"""

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.test_native import needs_numpy

pytestmark = pytest.mark.quiet

FINE, QUANTUM = 4, 20
"""Milliseconds: for many samples in a short run, and for telling native from Python."""
SHAPES = ("for", "while", "comprehension", "generator")
"""The loops of python_loops.py without the recursion, half of whose time is the kernel's."""


def loops(recorded: Recorder, interval: int) -> support.Run:
    return recorded("python_loops.py", "4", ",".join(SHAPES), sampler="signal", interval=interval)


def test_python_loops_are_charged_to_their_lines(recorded: Recorder) -> None:
    loops(recorded, FINE).check_shares(*SHAPES)


def test_python_loops_are_python(recorded: Recorder) -> None:
    found = loops(recorded, QUANTUM).line(*SHAPES)
    assert found.native_s <= support.tolerance(0.0, found.samples) * found.cpu_s


@pytest.mark.parametrize(
    ("program", "native"),
    [
        ("native_mix.py", ("compress", "digest", "checksum")),
        pytest.param("numpy_mix.py", ("product", "addition", "call"), marks=[needs_numpy, pytest.mark.slow]),
        pytest.param("operators.py", ("product", "quotient", "addition"), marks=pytest.mark.slow),
    ],
)
def test_functions_of_a_mostly_native_program(recorded: Recorder, program: str, native: tuple[str, ...]) -> None:
    recorded(program, sampler="signal", interval=FINE).check_shares(*native, "python", by="function")


@pytest.mark.slow
def test_native_lines_that_call(recorded: Recorder) -> None:
    run = recorded("native_mix.py", sampler="signal", interval=FINE)
    run.check_shares("compress", "digest", "checksum", "python")


@pytest.mark.parametrize("share", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("0.2", "0.8")), "0.5"])
def test_no_function_bias(recorded: Recorder, share: str) -> None:
    run = recorded("function_bias.py", "2.5", share, sampler="signal", interval=FINE)
    run.check_shares("called", "inlined")


@pytest.mark.slow
def test_four_threads_with_different_loads(recorded: Recorder) -> None:
    run = recorded("four_threads.py", sampler="signal", interval=FINE)
    run.check_shares("first", "second", "third", "fourth")


@pytest.mark.parametrize("interval", [FINE, pytest.param(QUANTUM, marks=pytest.mark.slow)])
def test_totals_do_not_depend_on_the_interval(recorded: Recorder, interval: int) -> None:
    run = loops(recorded, interval)
    least = (run.truth["process_ns"] - run.truth["first_ns"]) / 1e9
    assert least * 0.99 - interval / 1000 <= run.totals.cpu_s <= run.truth["process_ns"] / 1e9 * 1.01 + 0.03


def test_what_it_cannot_see_is_not_made_up(recorded: Recorder) -> None:
    """No waiting and no kernel time was measured, so none is reported."""
    totals = loops(recorded, QUANTUM).report["totals"]
    assert not totals["wait_s"]
    assert not totals["kernel_s"]
