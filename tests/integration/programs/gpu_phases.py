"""Says what "the GPU" does (see native/nvml_stand_in.c) while the main thread is on known lines."""

import json
import mmap
import os
import struct
import sys
import time

HEAD, USER = struct.Struct("<II"), struct.Struct("<iIQ")
GIB = 1 << 30
FOREIGN = 1  # a process that is none of ours, and lives as long as the machine

with open(os.environ["STAND_IN_GPU"], "r+b") as file:
    gpu = mmap.mmap(file.fileno(), 0)


SPOOL: str | None = None


def user(place: int, pid: int, busy: int, memory: int) -> None:
    USER.pack_into(gpu, HEAD.size + place * USER.size, pid, busy, memory)


def use(busy: int, memory: int) -> None:
    user(0, os.getpid(), busy, memory)


class Phase:
    """Lasts so many seconds, and until the GPU was read a few times: a busy machine reads it later."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.latest = self.end + (15 if SPOOL else 0)
        self.written = written()

    def goes_on(self) -> bool:
        now = time.monotonic()
        return now < self.end or (now < self.latest and written() - self.written < 1000)


def written() -> int:
    return (
        sum(os.path.getsize(os.path.join(SPOOL, name)) for name in os.listdir(SPOOL) if name[:4] == "gpu.")
        if SPOOL
        else 0
    )


def synchronize(seconds: float) -> None:
    phase = Phase(seconds)
    while phase.goes_on():
        time.sleep(0.1)  # LINE: waits


def loop(seconds: float) -> None:
    phase = Phase(seconds)
    while phase.goes_on():
        for _ in range(1000):
            sum(range(2000))  # LINE: computes


def train(seconds: float) -> None:
    use(100, 3 * GIB)
    synchronize(seconds)  # LINE: train
    use(0, 1 * GIB)


def prepare(seconds: float) -> None:
    loop(seconds)  # LINE: prepare


def infer(seconds: float) -> None:
    use(50, 2 * GIB)
    loop(seconds)  # LINE: infer
    use(0, 1 * GIB)


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    if "--shared" in sys.argv:
        user(1, FOREIGN, 40, 8 * GIB)
    if "--started" in sys.argv:
        # The driver is asked a moment after the start; wait until the first answer is in the spool.
        SPOOL = sys.argv[sys.argv.index("--started") + 1]
        end = time.monotonic() + 20
        while not written() and time.monotonic() < end:
            time.sleep(0.02)
    if "--unsteady" in sys.argv:
        SPOOL = None
    if "--forever" in sys.argv:
        use(70, 2 * GIB)
        print("running", flush=True)
        time.sleep(1000)
    prepare(seconds)
    train(seconds)
    infer(seconds)
    prepare(seconds)
    print(json.dumps({"pid": os.getpid()}))
