"""Notes in the process log that a Python process is not recorded, and why. Runs in that process, at its start."""

import os

from tachograph.recorder.inprocess.spool_layout import (
    LOG_BOUND,
    PROCESS_EVENT_REFUSED,
    PROCESS_MAGIC,
    PROCESS_SIZE,
    PROCESS_TEXT_AT,
)

LOG_NAME = "processes.log"
_ROOM = PROCESS_SIZE - PROCESS_TEXT_AT


def note_refusal(spool: str, status: int, reason: str, in_memory: str = "", place: str = "") -> None:
    """Append why this process is not recorded (one line); never fails. The log is made by others, or there is none.

    ``in_memory`` is the setting ``log``: where the log is that waits for no disk, and which file that is; ``place`` is
    which folder the spool is.
    """
    text = reason.encode("utf-8", "replace").replace(b"\0", b" ")[:_ROOM]
    from tachograph.recorder import clock  # few processes are refused

    now_ns = clock.monotonic_ns()
    numbers = ((PROCESS_EVENT_REFUSED, 4), (os.getpid(), 4), (os.getppid(), 4), (status, 4), (now_ns, 8))
    head = PROCESS_MAGIC + b"".join(value.to_bytes(size, "little") for value, size in numbers)
    record = (head + b"\xff" * 24 + bytes(4) + len(text).to_bytes(4, "little") + text).ljust(PROCESS_SIZE, b"\0")
    try:
        if not _append_in_memory(in_memory, record) and is_the_spool(spool, place):
            _append(f"{spool}/{LOG_NAME}", record)
    except OSError:
        pass


def is_the_spool(path: str, place: str) -> bool:
    """True if a path leads to the spool, as the setting ``place`` tells it: another user may have put a link there.

    Raises OSError if it leads nowhere.
    """
    status = os.stat(path, follow_symlinks=False)
    return not place or f"{status.st_dev}:{status.st_ino}" == place


def _append_in_memory(in_memory: str, record: bytes) -> bool:
    """Append to the log in memory, like process_log.cpp; True if it could."""
    place, _, identity = in_memory.partition(":")
    try:
        status = os.stat(place)
        # The descriptor may be another file's by now.
        if f"{status.st_dev}:{status.st_ino}" != identity or status.st_blocks * 512 >= LOG_BOUND:
            return False
        descriptor = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.write(descriptor, record) == PROCESS_SIZE
    finally:
        os.close(descriptor)


def _append(path: str, record: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        full = os.fstat(descriptor).st_size >= LOG_BOUND
        os.write(descriptor, bytes([PROCESS_EVENT_REFUSED]) if full else record)
    finally:
        os.close(descriptor)
