"""A plugin of pytest for tests under qemu's user-mode emulation: skips what the emulator cannot do, with the reason.

Loaded by ``make test-arm`` alone.
"""

import pytest

_SHIM = "native/test_shim.py::test_shim[plain-"

CANNOT: dict[str, tuple[str, ...]] = {
    "/proc/TID/syscall has the numbers of the machine's system calls": (f"{_SHIM}blocked_",),
    "madvise accepts advice that it does not pass on": (f"{_SHIM}fault_behind_a_stack_of_ours]",),
    "neighbours in /proc/self/maps that differ in execution alone are one": (
        f"{_SHIM}modules_without_room_are_counted_once]",
    ),
    "/proc/self/maps is rewritten, and takes many times as long": (
        f"{_SHIM}modules_that_change_all_the_time_take_a_bounded_part]",
    ),
    "each process has a thread of the emulator's own": (
        f"{_SHIM}recording_clone_without_handlers]",
        f"{_SHIM}recording_forks]",
        f"{_SHIM}recording_threads_come_and_go]",
        f"{_SHIM}recording_threads_from_before]",
        f"{_SHIM}recording_threads_gone_without_waits]",
    ),
    "there is no process_vm_readv": (f"{_SHIM}safe_read_by_the_kernel]",),
    "there is no ptrace, with which attach stops a program": ("integration/test_attach", "integration/test_dump"),
    "programs run 7 to 15 times slower, and this one has a minute": (
        "native/test_paces.py::test_windows_are_right_where_threads_run_beside",
    ),
}
"""What qemu does differently, and the tests that need it, by the beginnings of their ids."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what cannot be run."""
    for item in items:
        for reason, tests in CANNOT.items():
            if item.nodeid.startswith(tuple(f"tests/{each}" for each in tests)):
                item.add_marker(pytest.mark.skip(reason=f"qemu: {reason}"))
