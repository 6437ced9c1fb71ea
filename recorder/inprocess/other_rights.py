"""Detects processes with more rights than their caller, who may not tell them what to do then."""

import os

_AUXILIARY = "/proc/self/auxv"
_AT_SECURE = 23


def has_other_rights() -> bool:
    """True if this is a set-user-ID or set-group-ID program, or one with file capabilities (AT_SECURE).

    Also where that cannot be asked: to such a process the kernel may refuse what it says of itself.
    """
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return True
    try:
        with open(_AUXILIARY, "rb") as file:
            data = file.read()
    except OSError:
        return True
    pairs = memoryview(data)[: len(data) // 16 * 16].cast("Q").tolist()
    return dict(zip(pairs[::2], pairs[1::2], strict=True)).get(_AT_SECURE, 1) != 0
