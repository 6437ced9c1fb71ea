"""Gives up rights that the kernel takes from one thread alone, and tells what each thread of the process has then.

``rights.py WHAT HOW``: HOW is ``function`` for the C library's own, or ``syscall``. In ``threads.json`` it leaves the ids
of the recorder's threads before and after.
"""

import ctypes
import json
import os
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
PRCTL, CAPSET, CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 157, 126, 444, 445, 446
SET_SECUREBITS, SET_NO_NEW_PRIVS, DROP_BOUNDING = 28, 38, 24
NO_SETUID_FIXUP, CAP_SYS_CHROOT = 1 << 2, 18
CAPABILITIES_VERSION_3 = 0x20080522
ALL_OF_FILES, READ_FILES_AND_FOLDERS, BENEATH = (1 << 13) - 1, 1 << 2 | 1 << 3, 1
TOLD = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")


def ours() -> list[str]:
    """The recorder's threads. One that has just begun has no name of its own yet."""
    while True:
        names = {}
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                names[thread] = file.read().strip()
        found = [thread for thread, name in names.items() if name == "tachograph"]
        if len(found) == len(names) - 1:
            return found
        time.sleep(0.01)


def rights(thread: str) -> str:
    """What the kernel tells of a thread's rights."""
    with open(f"/proc/self/task/{thread}/status", encoding="utf-8") as file:
        return " ".join(" ".join(line.split()) for line in file if line.split(":")[0] in TOLD)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(5000))


def prctl(how: str, option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    if how == "function":
        return int(libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero))
    return int(libc.syscall(PRCTL, option, ctypes.c_ulong(value), zero, zero, zero))


def no_capabilities(how: str) -> int:
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITIES_VERSION_3, 0))
    none = ctypes.create_string_buffer(24)
    return int(libc.capset(header, none) if how == "function" else libc.syscall(CAPSET, header, none))


def landlock(*readable: str) -> int:
    """No file may be opened any more but those beneath these folders; only by its number, it has no function."""
    assert prctl("function", SET_NO_NEW_PRIVS, 1) == 0
    handled = ctypes.create_string_buffer(struct.pack("Q", ALL_OF_FILES))
    rules = libc.syscall(CREATE_RULESET, handled, ctypes.c_size_t(8), 0)
    for folder in readable if rules >= 0 else ():
        rule = struct.pack("=Qi", READ_FILES_AND_FOLDERS, os.open(folder, os.O_PATH))
        assert libc.syscall(ADD_RULE, rules, BENEATH, ctypes.create_string_buffer(rule), 0) == 0
    return int(libc.syscall(RESTRICT_SELF, rules, 0))


def give_up(what: str, how: str) -> int:
    if what == "capabilities":
        return no_capabilities(how)
    if what == "landlock":
        return landlock("/proc")
    option, value = {
        "no_new_privs": (SET_NO_NEW_PRIVS, 1),
        "securebits": (SET_SECUREBITS, NO_SETUID_FIXUP),
        "bounding": (DROP_BOUNDING, CAP_SYS_CHROOT),
    }[what]
    return prctl(how, option, value)


what, how = sys.argv[1:]
told = open("threads.json", "w", encoding="utf-8")
before = ours()
burn(0.1)
if what == "nothing-readable":
    print(landlock(), ctypes.get_errno())
    burn(0.5)
else:
    print(give_up(what, how), ctypes.get_errno())
    json.dump([before, ours()], told)
    burn(0.1)
    time.sleep(0.3)
    print(sorted({rights(thread) for thread in os.listdir("/proc/self/task")}))
print("the end")
