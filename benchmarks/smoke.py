"""Does every benchmark still run, and is nothing ten times off? Two to three minutes; for continuous integration.

    python benchmarks/smoke.py

No time is asserted that a busy machine could spoil: the limits are ten times what is promised. Other profilers are left
out: their environments take long to install.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.arms import BARE, CPU_ONLY, FULL
from harness.store import ENDED

LARGE = "500 threads,900 frames deep,blocks of 100 bytes,64 processes"
FOLDER = Path(__file__).resolve().parent
TIMES_BARE = 2.2
"""Ten times the 12 % that full recording may cost the worst program, and the same for recording of CPU only."""
TIMES_BARE_GROWN = 10.0
"""For programs that are large in one way: 64 processes of two milliseconds each cost most to record."""
SIZE_BYTES = 10 * 68 * 1024
"""Ten times what ten seconds of one process may leave on disk; the runs here are shorter."""


@dataclass(frozen=True)
class Check:
    """A benchmark's command line, where its results are, and what is wrong with them (nothing: an empty list)."""

    command: list[str]
    results: str
    wrong: Callable[[str], list[str]]


def _arms(text: str, most: float = TIMES_BARE) -> list[str]:
    found = json.loads(text)
    wrong = []
    for arm in (CPU_ONLY, FULL):
        # CPU time, since the machine may be busy with something else.
        cost = found["over_programs"][arm]["in_program_cpu"]["worst"]
        if cost > most:
            wrong.append(f"{arm}: {cost:.2f} times bare")
        sizes = [size["recording"] for size in found["sizes"][arm].values()]
        if not all(size and size <= SIZE_BYTES for size in sizes):
            wrong.append(f"{arm}: recordings of {sizes} bytes")
    return wrong


def _grown(text: str) -> list[str]:
    return _arms(text, TIMES_BARE_GROWN)


def _counts(text: str) -> list[str]:
    return [f"{count['program']}: no bytes were counted" for count in json.loads(text) if not count["rate_samples"] > 1]


def _instructions(text: str) -> list[str]:
    totals = [count["instructions"] for count in json.loads(text)]
    return [f"{each}" for each in totals if not each["bare"] < each[FULL] < TIMES_BARE * each["bare"]]


def _answered(text: str) -> list[str]:
    answers: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    return [
        f"{answer['key']}: {answer['outcome']}"
        for answer in answers
        if answer["outcome"] != ENDED or (answer["said"] is None and answer["profiler"] != BARE)
    ]


def _analyzed(text: str) -> list[str]:
    return [f"{result}" for result in json.loads(text) if not 0 < result["seconds"] < 100]


def _switched(text: str) -> list[str]:
    found = [one["ratios"] for works in json.loads(text).values() for one in works.values()]
    return [f"{sorted(ratios)}" for ratios in found if not 0.5 < median(ratios) < 2]


def _served(text: str) -> list[str]:
    found = [one["cpu"] for one in json.loads(text).values()]
    return [f"{sorted(ratios)}" for ratios in found if not 0.5 < median(ratios) < 2]


def _in_turns(text: str) -> list[str]:
    taken: dict[tuple[str, str], list[float]] = {}
    for turn in map(json.loads, text.splitlines()):
        taken.setdefault((turn["program"], turn["arm"]), []).append(turn["cpu_s"])
    found = {key: median(values) / median(taken[key[0], BARE]) for key, values in taken.items()}
    return [f"{program}, {arm}: {cost:.2f} times bare" for (program, arm), cost in found.items() if cost > TIMES_BARE]


def _simulated(text: str) -> list[str]:
    points = [one for one in json.loads(text) if one["phases"] == "long" and one["seconds"] == 64]
    return [f"{one}" for one in points if not 0.5 < one["native_ratio"] < 2]


def _sampled(text: str) -> list[str]:
    return [f"{split['program']}: no samples" for split in json.loads(text) if split["native"] is None]


def _read(text: str) -> list[str]:
    return [f"{one['reader']}: {one['outcome']}" for one in json.loads(text) if one["outcome"] != ENDED]


CHECKS: dict[str, Check] = {
    "overhead": Check(["overhead.py", "--quick", "--results", "{}"], "summary.json", _arms),
    "allocation": Check(["allocation.py", "--quick", "--results", "{}"], "summary.json", _arms),
    "sampling_rate": Check(["sampling_rate.py", "--quick", "--results", "{}/counts.json"], "counts.json", _counts),
    "instructions": Check(
        ["instructions.py", "--loops", "list.insert(0, x)", "--results", "{}/counts.json"], "counts.json", _instructions
    ),
    "cpu_accuracy": Check(
        ["cpu_accuracy.py", "--peers", "", "--seconds", "0.5", "--results", "{}"], "answers.jsonl", _answered
    ),
    "line_accuracy": Check(
        ["line_accuracy.py", "--peers", "", "--seconds", "1", "--results", "{}"], "answers.jsonl", _answered
    ),
    "native_share": Check(
        ["native_share.py", "--peers", "", "--seconds", "0.3", "--results", "{}"], "answers.jsonl", _answered
    ),
    "live_bytes": Check(
        ["live_bytes.py", "--peers", "", "--objects", "100000", "--results", "{}"], "answers.jsonl", _answered
    ),
    "on_and_off": Check(
        ["on_and_off.py", "--seconds", "1", "--results", "{}/on_and_off.json"], "on_and_off.json", _switched
    ),
    "requests_served": Check(
        ["requests_served.py", "--seconds", "1", "--rounds", "1", "--results", "{}/served.json"], "served.json", _served
    ),
    "side_by_side": Check(["side_by_side.py", "--quick", "--results", "{}"], "turns.jsonl", _in_turns),
    "copy_volume": Check(
        ["copy_volume.py", "--peers", "", "--repeats", "20", "--results", "{}"], "answers.jsonl", _answered
    ),
    "leak_detection": Check(
        ["leak_detection.py", "--peers", "", "--seconds", "1", "--results", "{}"], "answers.jsonl", _answered
    ),
    "delay_simulation": Check(["delay_simulation.py", "--results", "{}/delay.json"], "delay.json", _simulated),
    "samplers": Check(["samplers.py", "--quick", "--results", "{}/samplers.json"], "samplers.json", _sampled),
    "scaling": Check(["scaling.py", "--quick", "--programs", LARGE, "--results", "{}"], "summary.json", _grown),
    "reading": Check(
        ["reading.py", "--peers", "", "--seconds", "0.5", "--results", "{}/reading.json"], "reading.json", _read
    ),
    "memory_accuracy": Check(["memory_accuracy.py", "--peers", "", "--results", "{}"], "answers.jsonl", _answered),
    "analyze": Check(
        ["analyze.py", "--samples", "1e5", "--repeat", "1", "--results", "{}/figures.json"], "figures.json", _analyzed
    ),
}


def main() -> None:
    """Runs every benchmark in its shortest form; the exit status is 1 if anything is wrong."""
    failed = False
    for name, check in CHECKS.items():
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            script, *arguments = [word.replace("{}", folder) for word in check.command]
            command = [sys.executable, str(FOLDER / script), *arguments]
            finished = subprocess.run(command, check=False, capture_output=True, text=True)
            if finished.returncode:
                last = finished.stderr.strip().splitlines()[-1:] or ["it said nothing"]
                wrong = [f"status {finished.returncode}: {last[0]}"]
            else:
                wrong = check.wrong((Path(folder) / check.results).read_text(encoding="utf-8"))
        failed |= bool(wrong)
        print(f"{name:<18}{time.monotonic() - started:>6.1f} s  {'; '.join(wrong) or 'good'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
