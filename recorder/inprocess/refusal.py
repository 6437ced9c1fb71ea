"""Notes in the process log that a Python process is not recorded, and why. Runs in that process, at its start."""

import os
import time

from tachograph.recorder.inprocess.spool_layout import (
    LOG_BOUND,
    PROCESS_EVENT_REFUSED,
    PROCESS_MAGIC,
    PROCESS_SIZE,
    PROCESS_TEXT_AT,
)

LOG_NAME = "processes.log"
_ROOM = PROCESS_SIZE - PROCESS_TEXT_AT


def note_refusal(spool: str, status: int, reason: str) -> None:
    """Append why this process is not recorded (one line); never fails. The log is made by others, or there is none."""
    text = reason.encode("utf-8", "replace").replace(b"\0", b" ")[:_ROOM]
    numbers = ((PROCESS_EVENT_REFUSED, 4), (os.getpid(), 4), (os.getppid(), 4), (status, 4), (time.monotonic_ns(), 8))
    head = PROCESS_MAGIC + b"".join(value.to_bytes(size, "little") for value, size in numbers)
    record = head + b"\xff" * 24 + bytes(4) + len(text).to_bytes(4, "little") + text
    try:
        descriptor = os.open(f"{spool}/{LOG_NAME}", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        full = os.fstat(descriptor).st_size >= LOG_BOUND
        os.write(descriptor, bytes([PROCESS_EVENT_REFUSED]) if full else record.ljust(PROCESS_SIZE, b"\0"))
    except OSError:
        pass
    finally:
        os.close(descriptor)
