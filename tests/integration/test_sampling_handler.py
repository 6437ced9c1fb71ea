"""What the sampling handler does to the thread that it interrupts: nothing that the program could notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
BUSY = """
import time
end = time.process_time() + 0.6
while time.process_time() < end: sum(range(1000))
"""


@pytest.fixture(scope="module")
def signals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = support.compile_library(NATIVE / "signals.c", tmp_path_factory.mktemp("native"))
    if library is None:
        pytest.skip("no C compiler")
    return library


@pytest.mark.skipif(
    # Debian's Python has a shared library, but its python3 is not linked with it.
    sys.version_info < (3, 12) or "/libpython3" not in Path("/proc/self/maps").read_text(encoding="utf-8"),
    reason="this interpreter keeps no thread state in a shared library's thread-local variables",
)
def test_no_thread_local_variable_is_looked_up(tmp_path: Path) -> None:
    """The loader's function for them allocates and locks: it is not called in the handler, and the stacks are there."""
    library = support.compile_library(NATIVE / "tls_calls.c", tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    environment = support.environment(LD_PRELOAD=str(library))
    done = subprocess.run([sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "called 0\n"
    recorded = support.record(["-c", BUSY], tmp_path, "--interval", "1", env=environment)
    assert recorded.status == 0
    assert "called 0\n" in recorded.stderr
    assert all(line in {"called 0", "never called 0"} for line in recorded.stderr.splitlines()), recorded.stderr
    samples = support.rows(tmp_path / "run.tacho", "cpu")
    assert len(samples) > 100
    assert sum(row["stack"] is not None for row in samples) > 0.9 * len(samples)
    assert sum(row["gil"] is True for row in samples) > 0.9 * len(samples)


SMALL_STACK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.use_small_stack(ctypes.c_long(int(sys.argv[2])), int(sys.argv[3])))
"""


@pytest.mark.parametrize("memory", [pytest.param("none", marks=pytest.mark.slow), "auto"])
@pytest.mark.parametrize(("size", "handler"), [(8192, 1), (2048, 0), pytest.param(65536, 1, marks=pytest.mark.slow)])
def test_a_small_alternate_stack(tmp_path: Path, signals: Path, size: int, handler: int, memory: str) -> None:
    """A frame of the kernel's is 3.5 KB: there is no second one for our signal, and none where none fits."""
    target: list[str | Path] = ["-c", SMALL_STACK, signals, str(size), str(handler)]
    bare = support.bare(target, tmp_path)
    assert bare == support.Outcome(0, "0\n", "")
    options = ["--cpu-only"] if memory == "none" else []
    assert support.record(target, tmp_path, "--interval", "1", *options) == bare
    seconds = sum(row["cpu_ns"] for row in support.rows(tmp_path / "run.tacho", "cpu")) / 1e9
    assert seconds > 0.25  # outside the handler there is 0.3


def test_a_vfork_child_that_changes_signals(tmp_path: Path, signals: Path) -> None:
    """Its signals are its own: the parent is sampled as before, with the same signal."""
    target: list[str | Path] = [
        "-c",
        "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).vfork_child_changes_signals())",
        signals,
    ]
    bare = support.bare(target, tmp_path)
    assert bare == support.Outcome(0, "0\n", "")
    assert support.record(target, tmp_path, "--interval", "1") == bare
    assert "signal_conflicts" not in support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
    rows = support.rows(tmp_path / "run.tacho", "cpu")
    assert sum(row["cpu_ns"] for row in rows) / 1e9 > 0.25


def test_where_the_kernel_copies_no_memory(tmp_path: Path) -> None:
    """process_vm_readv is forbidden in many containers: stacks are read without it."""
    forbidden = [sys.executable, str(support.PROGRAMS / "forbid.py"), "310"]
    done = support.run(
        [*forbidden, *support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", BUSY], tmp_path, timeout=90
    )
    assert done == support.Outcome(0, "", "")
    samples = support.rows(tmp_path / "run.tacho", "cpu")
    assert sum(row["stack"] is not None for row in samples) > 0.9 * len(samples) > 10
