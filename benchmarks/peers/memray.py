"""memray: every allocation, with exact stacks."""

import json
import subprocess
from pathlib import Path

from harness.peers import ByLine, Peer, ask_own, innermost

_READ = """
import json, sys, memray
reader = memray.FileReader(sys.argv[1])
how = getattr(reader, sys.argv[2])
rows = [(record.stack_trace(), record.size) for record in how(merge_threads=True)]
print(json.dumps([[[[frame[1], frame[2]] for frame in stack][::-1], size] for stack, size in rows]))
"""
LEAK_BYTES = 1_000_000
"""It has no verdict: what is still there at the end, by line, is its report of leaks. From here on one would look."""


def live_bytes(recording: Path, folder: Path, program: Path) -> ByLine:
    """What was held when most was held, by the innermost line of the program."""
    return _by_line(recording, folder, program, "get_high_watermark_allocation_records")


def leaks(recording: Path, folder: Path, program: Path) -> list[int]:
    """Lines of which at least `LEAK_BYTES` were still there at the end."""
    left = _by_line(recording, folder, program, "get_leaked_allocation_records")
    return [line for line, size in left.items() if size >= LEAK_BYTES]


def _by_line(recording: Path, folder: Path, program: Path, how: str) -> ByLine:
    stacks = ask_own(folder, _READ, recording, Path(how))
    return innermost((([(file, line) for file, line in frames], size) for frames, size in stacks), program)


def peak_bytes(recording: Path, folder: Path) -> int:
    """The peak that `memray stats` tells."""
    target = recording.with_suffix(".json")
    command = [str(folder / "python"), "-m", "memray", "stats", "--json", "-f", "-o", str(target), str(recording)]
    subprocess.run(command, check=True, capture_output=True)
    return int(json.loads(target.read_text(encoding="utf-8"))["metadata"]["peak_memory"])


PEER = Peer(
    package="memray",
    arms={
        "memray": "{python} -m memray run -q -f -o {recording} {program}",
        "memray, Python's": "{python} -m memray run --trace-python-allocators -q -f -o {recording} {program}",
    },
    native={"memray --native": "{python} -m memray run --native -q -f -o {recording} {program}"},
    readers={
        "memray": {
            "memray table": "{python} -m memray table -f -o {report} {recording}",
            "memray flamegraph": "{python} -m memray flamegraph -f -o {report} {recording}",
        }
    },
    live_bytes=live_bytes,
    leaks=leaks,
    peak_bytes=peak_bytes,
    slow=("memray", "memray, Python's"),
)
