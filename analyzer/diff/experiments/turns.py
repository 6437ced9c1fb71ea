"""Runs both sides in turns, each run recorded, until the answer is known or the time is over."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from tachograph.format import FormatError

from ...profile.question import Question
from ...recording.text import printable
from ...report_data.experiment import Answer
from ...samples.summary import ALL
from ..runs import Run, read_run
from .folder import create, save
from .judging import Judge
from .measuring import measured
from .sides import Side

DECIDED, OUT_OF_TIME, INTERRUPTED = "decided", "time", "interrupted"
"""Why an experiment ended."""

_TAIL_BYTES = 4096

EVERYTHING = Question(ALL)
"""All functions, so that each has its own time whichever side calls a library more."""


@dataclass(frozen=True)
class Plan:
    """How an experiment is made. ``effect`` is the smallest relative change that matters; times are in seconds.

    ``warmup`` pairs run first and do not count. ``options`` are those of ``record``.
    """

    sides: tuple[Side, Side]
    folder: Path
    effect: float
    time_s: float
    warmup: int = 1
    options: tuple[str, ...] = ()
    ignore_failure: bool = False


@dataclass(frozen=True)
class Outcome:
    """The end of an experiment: its answer, why it ended, how long it took, and the recordings by side."""

    answer: Answer
    ended: str
    took_s: float
    runs: dict[str, list[str]]


def run_in_turns(plan: Plan, watch: Callable[[Answer, float], None] = lambda answer, took_s: None) -> Outcome:
    """Make the experiment; ``watch`` sees the answer after each pair, and the seconds so far.

    The order within a pair is drawn by chance: what a first run does to the second one has no side then. Ctrl-C ends
    the experiment with what is known.

    Errors:
        FormatError: the folder cannot be made, a run failed, or the two cannot be compared.
    """
    create(plan.folder)
    judge, began, ended = Judge(plan.effect), time.monotonic(), OUT_OF_TIME
    runs: dict[str, list[str]] = {side.name: [] for side in plan.sides}
    answer, longest_s = judge.answer(), 0.0
    # Not for secrets: any order that the machine does not know of will do.
    chance = random.Random()
    try:
        for number in range(-plan.warmup, sys.maxsize):
            pair_began = time.monotonic()
            made = _pair(plan, number, chance)
            if number >= 0:
                judge.add(measured(made[0]), measured(made[1]))
                answer = judge.answer()
                for side, run in zip(plan.sides, made, strict=True):
                    runs[side.name].append(run.path.name)
                save(plan.folder, plan.sides, runs, {"verdict": answer.verdict, "sentence": answer.sentence})
            took_s = time.monotonic() - began
            longest_s = max(longest_s, time.monotonic() - pair_began)
            if number >= 0:
                watch(answer, took_s)
                if judge.settled(answer):
                    ended = DECIDED
                    break
            if took_s + longest_s > plan.time_s:
                break
    except KeyboardInterrupt:
        ended = INTERRUPTED
    return Outcome(answer, ended, time.monotonic() - began, runs)


def _pair(plan: Plan, number: int, chance: random.Random) -> tuple[Run, Run]:
    order = [0, 1]
    chance.shuffle(order)
    made: dict[int, Path] = {place: _record(plan, plan.sides[place], number) for place in order}
    return read_run(made[0], EVERYTHING), read_run(made[1], EVERYTHING)


def _record(plan: Plan, side: Side, number: int) -> Path:
    """Record one run; its output goes nowhere, and its errors are shown if it fails."""
    name = f"{side.name}-{number + 1:03}" if number >= 0 else f"warmup-{side.name}-{number + plan.warmup + 1:03}"
    path = (plan.folder / f"{name}.tacho").absolute()
    # -P: the folder of the program may have modules that are named like ours.
    command = [sys.executable, "-P", "-m", "tachograph", "record", "--quiet", "--label", f"side={side.name}"]
    command += [*plan.options, "--output", str(path), *side.command]
    with tempfile.TemporaryFile() as errors:
        with _interrupts_held() as interrupted:
            process = subprocess.Popen(
                command, cwd=side.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            )
            # Ctrl-C reaches the program by itself, and it finishes its recording.
            status = process.wait()
        if interrupted:
            raise KeyboardInterrupt
        if status and not plan.ignore_failure:
            raise FormatError(_failure(side, status, cast("BinaryIO", errors)))
    return path


@contextmanager
def _interrupts_held() -> Iterator[list[int]]:
    """Until the end of the block Ctrl-C is only noted in what is given: a child that runs must be waited for.

    It may come while the child is being started, when its number is not known yet, and more than once.
    """
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts  # it comes to the main thread alone
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):
        yield interrupts
        return
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def _failure(side: Side, status: int, errors: BinaryIO) -> str:
    how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
    errors.seek(max(errors.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    last = f": {printable(lines[-1], 200)}" if lines else ""
    return f"the {side.name} side, {printable(shlex.join(side.command), 120)!r}, {how}{last}"
