"""Where another profiler is better: each figure of the page in which profilers can be compared."""

from dataclasses import dataclass
from statistics import median
from typing import Any

import copy_volume
import cpu_accuracy
import leak_detection
import line_accuracy
import live_bytes
import memory_accuracy
import native_share
from harness.arms import CPU_ONLY, FULL
from harness.ours import OURS
from page.results import Results

MINE = (CPU_ONLY, FULL, *OURS.arms)
MEMORY_PROFILERS = ("scalene", "memray", "memray, Python's", "fil", "memory_profiler")


@dataclass(frozen=True)
class Contest:
    """A figure of which less is better. `values` maps profilers to it; who has none does not take part."""

    name: str
    values: dict[str, float]
    form: str
    resolution: float = 0.0
    """Differences up to here are noise."""
    benchmark: str = ""
    """Where it was measured."""

    @property
    def mine(self) -> float | None:
        """The best of tachograph's."""
        found = [value for name, value in self.values.items() if name in MINE]
        return min(found) if found else None

    def better(self) -> dict[str, float]:
        """The profilers that are better than tachograph, best first."""
        mine = self.mine
        if mine is None:
            return {}
        found = {
            name: value for name, value in self.values.items() if name not in MINE and value < mine - self.resolution
        }
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def others(self) -> int:
        """How many other profilers take part."""
        return sum(name not in MINE for name in self.values)


def contests(results: Results) -> list[Contest]:
    """All of them, as far as they were measured."""
    return [
        contest
        for contest in (*_overhead(results), *_scaling(results), *_accuracy(results), *_reading(results))
        if contest.mine is not None
    ]


def _overhead(results: Results) -> list[Contest]:
    found = results.summary("overhead")
    if found is None:
        return []
    of_median, of_worst = results.spread("overhead")
    memory = {arm for arm in results.arms("overhead") if arm in MEMORY_PROFILERS or arm == FULL}
    contests = []
    for kind, arms in (
        ("CPU", [arm for arm in results.arms("overhead") if arm not in memory]),
        ("memory", [arm for arm in results.arms("overhead") if arm in memory]),
    ):
        over = {
            arm: found["over_programs"][arm]["in_program"]
            for arm in arms
            if "in_program" in found["over_programs"][arm]
        }
        ended = list(over)  # what is left of a profiler that failed everywhere is no result
        whole = {arm: each for arm, each in over.items() if not found["failures"].get(arm)}
        contests += [
            Contest(
                f"{name}, {kind} profilers",
                {arm: each[figure] for arm, each in of.items()},
                "{:.3f}",
                noise,
                "overhead",
            )
            for name, figure, of, noise in (
                ("median slowdown", "median", over, of_median),
                ("median slowdown of the fastest runs", "median_of_fastest", over, of_median),
                ("worst slowdown", "worst", whole, of_worst),
                ("worst slowdown of the fastest runs", "worst_of_fastest", whole, of_worst),
            )
        ]
        contests += [
            Contest(
                f"memory added to the program, {kind} profilers",
                _sizes(found, ended, "above_bare", 1e6),
                "{:.1f} MB",
                0.5,
                "overhead",
            ),
            Contest(
                f"size on disk, {kind} profilers",
                _sizes(found, ended, "recording", 1024),
                "{:.0f} KiB",
                1.0,
                "overhead",
            ),
        ]
    return contests


def _scaling(results: Results) -> list[Contest]:
    found = results.summary("scaling")
    if found is None:
        return []
    _, noise = results.spread("scaling")
    arms = results.arms("scaling")
    contests = []
    for kind, those in (
        ("CPU", [arm for arm in arms if arm not in MEMORY_PROFILERS and arm != FULL]),
        ("memory", [arm for arm in arms if arm in MEMORY_PROFILERS or arm == FULL]),
    ):
        times = {arm: found["ratios"][arm]["in_program"] for arm in those if "in_program" in found["ratios"][arm]}
        for program in dict.fromkeys(program for each in times.values() for program in each):
            values = {arm: each[program]["median"] for arm, each in times.items() if program in each}
            contests.append(Contest(f"slowdown with {program}, {kind} profilers", values, "{:.2f}", noise, "scaling"))
    return contests


def _sizes(found: dict[str, Any], arms: list[str], what: str, unit: float) -> dict[str, float]:
    sizes = {arm: [size[what] for size in found["sizes"][arm].values() if size[what] is not None] for arm in arms}
    return {arm: median(values) / unit for arm, values in sizes.items() if values}


def _accuracy(results: Results) -> list[Contest]:
    found = []
    for benchmark, module, name, form in (
        ("cpu_accuracy", cpu_accuracy, "worst bias between functions", "{:.1f} points"),
        ("native_share", native_share, "worst error of the native share", "{:.1f} points"),
        ("memory_accuracy", memory_accuracy, "worst error of an array's size", "{:.3f} %"),
        ("live_bytes", live_bytes, "worst error of a line's small objects", "{:.1f} %"),
        ("copy_volume", copy_volume, "worst error of a line's copies", "{:.1f} %"),
    ):
        known = results.known(benchmark)
        errors = {name: module.errors(known, name) for name in results.profilers(benchmark)}
        values = {name: max(map(abs, each.values())) for name, each in errors.items() if each}
        found.append(Contest(name, values, form, benchmark=benchmark))
    known = results.known("line_accuracy")
    for name, figure, noise in (
        ("time on the wrong line", line_accuracy.errors, 0.0),
        ("time moved to other lines by being profiled", line_accuracy.moved, line_accuracy.noise(known)),
    ):
        lines = {profiler: figure(known, profiler) for profiler in results.profilers("line_accuracy")}
        values = {k: v for k, v in lines.items() if v is not None}
        found.append(Contest(name, values, "{:.1f} %", noise, "line_accuracy"))
    known = results.known("leak_detection")
    leaks = {name: leak_detection.wrong(known, name) for name in results.profilers("leak_detection")}
    values = {k: v for k, v in leaks.items() if v is not None}
    found.append(Contest("wrong verdicts on leaks", values, "{:.0f} of 10", benchmark="leak_detection"))
    return found


def _reading(results: Results) -> list[Contest]:
    readings = results.figures("reading", "reading.json")
    if not readings:
        return []
    longest = max(one["seconds"] for one in readings)
    of = [one for one in readings if one["seconds"] == longest and one["whole_s"] is not None]
    mine = {FULL: min((one["whole_s"] for one in of if one["reader"].startswith("tachograph")), default=None)}
    values = {one["reader"]: one["whole_s"] for one in of if not one["reader"].startswith("tachograph")}
    return [
        Contest(
            f"time to a report of {longest:.0f} s",
            {k: v for k, v in (mine | values).items() if v is not None},
            "{:.2f} s",
            benchmark="reading",
        )
    ]
