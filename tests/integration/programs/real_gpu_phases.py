"""Uses a GPU in phases, and says how busy it was in each by the GPU's own events. Torch must be there."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

PHASE_S = 0.6
ROUNDS = 4
SIZE = 8192

kernels: list[tuple[Any, Any]] = []
phases: list[tuple[str, float, float]] = []


def event() -> Any:
    made = torch.cuda.Event(enable_timing=True)
    made.record()
    return made


def launch(count: int) -> None:
    for _ in range(count):
        begun = event()
        torch.mm(left, left)
        kernels.append((begun, event()))


def compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(2000))


def prepare() -> None:
    compute(PHASE_S)


def train() -> None:
    launch(of_a_phase)
    torch.cuda.synchronize()


def rest() -> None:
    time.sleep(PHASE_S)


def overlap() -> None:
    launch(2 * of_a_phase)
    compute(PHASE_S)
    torch.cuda.synchronize()


def half() -> None:
    for _ in range(6):
        launch(of_a_phase // 12)
        torch.cuda.synchronize()
        time.sleep(PHASE_S / 12)


def timed(phase: Callable[[], None]) -> None:
    begun = time.monotonic()
    phase()
    phases.append((phase.__name__, begun, time.monotonic()))


left = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
launch(20)
torch.cuda.synchronize()
begun_s = time.monotonic()
launch(50)
torch.cuda.synchronize()
of_a_phase = int(PHASE_S / ((time.monotonic() - begun_s) / 50))
kernels.clear()

zero = event()
torch.cuda.synchronize()
zero_s = time.monotonic()
for _ in range(ROUNDS):
    for phase in (prepare, train, rest, overlap, prepare, half, rest):
        timed(phase)

busy = [(zero_s + zero.elapsed_time(begin) / 1e3, zero_s + zero.elapsed_time(end) / 1e3) for begin, end in kernels]
sums: dict[str, list[float]] = {}
for name, begin_s, end_s in phases:
    total = sums.setdefault(name, [0.0, 0.0])
    total[0] += end_s - begin_s
    total[1] += sum(max(0.0, min(end_s, end) - max(begin_s, begin)) for begin, end in busy)
shares = {name: gpu_s / length_s for name, (length_s, gpu_s) in sums.items()}
Path(sys.argv[1]).write_text(json.dumps({"shares": shares, "reserved_bytes": torch.cuda.max_memory_reserved()}))
