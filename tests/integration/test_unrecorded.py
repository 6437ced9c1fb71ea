"""Programs of a recording that are not recorded themselves: they pay nothing for the hooks, to the instruction."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
THROUGH_A_HOOK = 6
"""Instructions of a call through a hook that passes it on: what is loaded later comes by there."""

LOADS = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).step()
"""
IN_A_NEW_THREAD = """
import ctypes, os, struct, sys, threading
step, libc = ctypes.CDLL(sys.argv[1]).step, ctypes.CDLL(None)
def end_recording():
    allow = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(allow)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, before which recording ends
if sys.argv[2] == "forked" and os.fork() != 0:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
if sys.argv[2] == "ended": end_recording()
thread = threading.Thread(target=step)
thread.start()
thread.join()
"""


def steps(output: str) -> list[float]:
    """Instructions of malloc with free, of memcpy, and those with a lock prefix."""
    return [float(word) for word in output.split()]


def starts(command: list[str]) -> list[str]:
    """A program that runs another one as its child."""
    return ["-c", f"import subprocess; subprocess.run({command!r}, check=True)"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    built = support.compile_program(NATIVE / "stepped.c", tmp_path)
    if built is None:
        pytest.skip("no C compiler")
    return built


def test_a_child_that_is_no_python_calls_malloc_itself(program: Path, tmp_path: Path) -> None:
    command = starts([str(program)])
    bare = steps(support.bare(command, tmp_path).stdout)
    assert bare[0] > 0
    assert steps(support.record(command, tmp_path).stdout) == bare


def test_what_an_excluded_python_loads_later_jumps_through_the_hooks(tmp_path: Path) -> None:
    library = support.compile_library(NATIVE / "stepped.c", tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    command = ["-c", LOADS, str(library)]
    bare = steps(support.bare(command, tmp_path).stdout)
    pair, copy, locked = steps(support.record(["--exclude", "python*", *command], tmp_path).stdout)
    assert pair <= bare[0] + 2 * THROUGH_A_HOOK
    assert copy <= bare[1] + THROUGH_A_HOOK
    assert locked == 0


@pytest.mark.parametrize("how", ["forked", "ended"])
def test_threads_that_are_not_recorded_wait_for_no_other(tmp_path: Path, how: str) -> None:
    """In a forked child that is not recorded, and after recording has ended: hooks stay, and count in no one place."""
    library = support.compile_library(NATIVE / "stepped.c", tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    command = ["-c", IN_A_NEW_THREAD, str(library), how]
    assert steps(support.bare(command, tmp_path).stdout)[2] == 0
    *_, locked = steps(support.record(["--no-children", *command], tmp_path).stdout)
    assert locked == 0
