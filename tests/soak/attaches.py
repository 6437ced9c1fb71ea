"""tachograph attach, killed at random moments: the program lives, is as before, and each recording can be read."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from integration import support

SERVICE = """
import sys, threading
def work(): return sum(range(2000))
def works():
    while True: work()
for number in range(2): threading.Thread(target=works, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(work(), flush=True)
"""
"""Two threads that burn CPU time for ever; the main thread answers."""

MOST_MEMORY = 32 << 20
"""Bytes that the program may hold more at its end than after the first few: buffers of the allocators."""

SETTLED = 10


class Service:
    """A program that can be attached to; ``stands_by``, or is entered each time."""

    def __init__(self, folder: Path, *, stands_by: bool) -> None:
        """It has begun, and answers."""
        environment = {**support.environment(), **({"TACHOGRAPH_STANDBY": "1"} if stands_by else {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVICE], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._line() == "ready\n"
        self.pid = self.process.pid
        self.before = self.state()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def answers(self) -> bool:
        """Whether its main thread does what it did before."""
        assert self.process.stdin is not None
        self.process.stdin.write("work\n")
        self.process.stdin.flush()
        return self._line() == f"{sum(range(2000))}\n"

    def state(self) -> tuple[int, list[str], int]:
        """Threads, descriptors, and mappings of records."""
        maps = Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8")
        threads, descriptors = (os.listdir(f"/proc/{self.pid}/{what}") for what in ("task", "fd"))
        return len(threads), sorted(descriptors), maps.count("/memfd:tachograph")

    def resident(self) -> int:
        """Bytes in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> str:
        """What it wrote to its standard error; it ends with status 0."""
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, (self.process.returncode, said)
        return said


def run(folder: Path, times: int, chance: random.Random, *, stands_by: bool) -> tuple[int, int]:
    """So many attaches; how many recordings were begun, and by how many bytes the program has grown."""
    service = Service(folder, stands_by=stands_by)
    begun, settled = 0, 0
    for number in range(times):
        recording = folder / f"{number}.tacho"
        begun += attach_once(service, recording, chance)
        support.wait_for(lambda: service.state() == service.before, f"the end of attach {number}", timeout=60)
        assert service.answers(), f"the program does not answer after attach {number}"
        support.discard(recording)
        if number == min(SETTLED, times - 1):
            settled = service.resident()
    grown = service.resident() - settled
    assert grown < MOST_MEMORY, f"the program has grown by {grown / 1e6:.1f} MB"
    said = service.end()
    assert said == "", said
    return begun, grown


def attach_once(service: Service, recording: Path, chance: random.Random) -> bool:
    """One attach that is killed, or told to end; whether it had begun a recording, which is complete then."""
    number = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    command = [*support.COMMAND, "attach", "-q", str(service.pid), "-o", str(recording)]
    with subprocess.Popen(command, cwd=recording.parent, env=support.environment(), stderr=subprocess.DEVNULL) as each:
        time.sleep(chance.uniform(0, 2) * chance.random())
        each.send_signal(number)
        each.wait(timeout=120)
    # A request may be on its way: the program answers it, and sees then that none waits for the answer.
    support.wait_for(lambda: service.state() == service.before, f"the end of {recording.name}", timeout=60)
    if not recording.exists():
        return False
    support.wait_for(lambda: is_complete(recording), f"the completion of {recording.name}", timeout=60)
    done = support.tachograph("analyze", "--json", "-", recording, cwd=recording.parent)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    return True


def is_complete(recording: Path) -> bool:
    """It may not have begun yet, or have been taken away."""
    try:
        state = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["state"]
    except FileNotFoundError:
        return not recording.exists()
    return bool(state == "complete")
