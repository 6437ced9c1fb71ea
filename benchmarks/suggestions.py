"""How much faster the second form of each suggestion is: both forms of docs/how-to/suggestions.md, best of five runs.

Usage: ``python benchmarks/suggestions.py [RULE ...]``. CPU time, but for rules about threads and waiting, where the
time by the clock is what changes. Each run is a process of its own; what the setup takes is left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "suggestions.md"
SECTION = re.compile(r"^### (?P<rule>[a-z-]+)$(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^<!-- (setup|before|after) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BY_THE_CLOCK = (
    *("python-threads", "held-lock", "blocked-loop", "commit-in-loop", "waits-in-series", "one-busy-worker"),
    *("too-many-threads", "pickled", "started-again"),
)
RUNS = 5
PROGRAM = """{setup}
import time as _time
_began = _time.{clock}()
{block}
if __name__ == "__main__":
    import sys as _sys
    print(_time.{clock}() - _began, file=_sys.stderr)
    _sys.stderr.flush()
    import os as _os
    _os._exit(0)
"""


def seconds(setup: str, block: str, clock: str, program: Path) -> float:
    """The time of one run of a form."""
    program.write_text(PROGRAM.format(setup=setup, block=block, clock=clock), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    return float(done.stderr.splitlines()[-1])


def main(wanted: list[str]) -> None:
    """Prints a row for each rule."""
    with tempfile.TemporaryDirectory() as folder:
        for match in SECTION.finditer(PAGE.read_text(encoding="utf-8")):
            rule, blocks = match["rule"], dict(BLOCK.findall(match["text"]))
            if (wanted and rule not in wanted) or not blocks:
                continue
            clock = "perf_counter" if rule in BY_THE_CLOCK else "process_time"
            times: dict[str, list[float]] = {"before": [], "after": []}
            for _ in range(RUNS):
                for name, found in times.items():
                    found.append(seconds(blocks.get("setup", ""), blocks[name], clock, Path(folder) / "form.py"))
            before, after = min(times["before"]), min(times["after"])
            print(f"{rule:24} {before * 1e3:9.2f} ms {after * 1e3:9.2f} ms  {before / after:6.1f} times", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
