"""Inside gdb: at each sample of ``walks.py watch:...`` compares the unwinder's path with gdb's own.

``gdb -batch -x gdb_walks.py --args python walks.py JUDGE SUBJECTS watch:NAME:SAMPLES``. The last line of the output is
a JSON object: ``agree``, ``wrong`` (said to be whole, and another path), ``others`` by state, ``leaves`` (different
program counters) and ``examples`` of wrong ones. ``misled`` are samples of which gdb cannot judge: at the end of a
function that realigns its stack GCC's rows are wrong (``misleads`` of judge.cpp), and gdb leaves out callers.
"""

import collections
import json
import struct

import gdb  # type: ignore[import-untyped]

MOST = 120
PATHS = ("unrecorded", "whole", "guessed", "truncated", "torn")
EXAMPLES = 5


def settings() -> None:
    for setting in (
        "pagination off",
        "confirm off",
        "breakpoint pending on",
        "backtrace past-main on",
        "backtrace past-entry on",
        "backtrace limit 400",
        "debuginfod enabled off",
        "print thread-events off",
    ):
        gdb.execute(f"set {setting}")
    for signal in ("SIGPROF", "SIGSEGV", "SIGBUS"):
        gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)


def of_gdb() -> list[int]:
    """The program counters above the handler's frames, those of calls being within the call."""
    frame = gdb.newest_frame()
    while frame is not None and frame.type() != gdb.SIGTRAMP_FRAME:
        frame = frame.older()
    found: list[int] = []
    called = False
    frame = None if frame is None else frame.older()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            found.append(frame.pc() - called)
            called = frame.type() != gdb.SIGTRAMP_FRAME
        frame = frame.older()
    return found


def of_unwinder() -> tuple[str, bool, list[int]]:
    """The state of the sample that was just taken, whether rows are wrong there, and its path."""
    address = int(gdb.parse_and_eval("(unsigned long) $rdi"))
    memory = bytes(gdb.selected_inferior().read_memory(address, 24 + 8 * MOST))
    path, _, misleads, _, count = struct.unpack_from("<5I", memory)
    return PATHS[path], bool(misleads), list(struct.unpack_from(f"<{min(count, MOST)}Q", memory, 24))


def main() -> None:
    settings()
    gdb.execute("break judge_looked", to_string=True)
    gdb.execute("run", to_string=True)
    agree = wrong = beyond = 0
    others: collections.Counter[str] = collections.Counter()
    leaves: set[int] = set()
    examples: list[dict[str, list[str]]] = []
    while gdb.selected_inferior().threads():
        frame = gdb.newest_frame()
        if frame.name() != "judge_looked":
            break
        state, misled, ours = of_unwinder()
        theirs = of_gdb()
        leaves.add(ours[0] if ours else 0)
        if state != "whole":
            others[state] += 1
        elif ours == theirs:
            agree += 1
        elif misled:
            beyond += 1
        else:
            wrong += 1
            if len(examples) < EXAMPLES:
                examples.append({"ours": list(map(hex, ours)), "theirs": list(map(hex, theirs))})
        gdb.execute("continue", to_string=True)
    print()
    counts = {"agree": agree, "wrong": wrong, "misled": beyond, "others": others, "leaves": len(leaves)}
    print(json.dumps({**counts, "examples": examples}))


main()
