"""memray: every allocation, with exact stacks."""

import json
import subprocess
from pathlib import Path

from harness.peers import Peer


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
    peak_bytes=peak_bytes,
)
