"""Notes in the process log that a Python process is not recorded, and why. Runs in that process, at its start."""

import os
import time

LOG_NAME = "processes.log"
FAILED, EXCLUDED, UNSUPPORTED = 1, 2, 3
REFUSED = 6
RECORD_SIZE = 512
ROOM = RECORD_SIZE - 64
BOUND = 100_000 * RECORD_SIZE
"""Size of the log from which on one byte stands for a record (SPEC.md, "Process log")."""


def note_refusal(spool: str, status: int, reason: str) -> None:
    """Append why this process is not recorded (one line); never fails. The log is made by others, or there is none."""
    text = reason.encode("utf-8", "replace").replace(b"\0", b" ")[:ROOM]
    numbers = ((REFUSED, 4), (os.getpid(), 4), (os.getppid(), 4), (status, 4), (time.monotonic_ns(), 8))
    head = b"TACHPRC1" + b"".join(value.to_bytes(size, "little") for value, size in numbers)
    record = head + b"\xff" * 24 + bytes(4) + len(text).to_bytes(4, "little") + text
    try:
        descriptor = os.open(f"{spool}/{LOG_NAME}", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        full = os.fstat(descriptor).st_size >= BOUND
        os.write(descriptor, bytes([REFUSED]) if full else record.ljust(RECORD_SIZE, b"\0"))
    except OSError:
        pass
    finally:
        os.close(descriptor)
