"""Sums up the rows of a comparison of arms as one JSON object, and prints it as text."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from harness.arms import BARE, BARE_AGAIN
from harness.measure import START_UP
from harness.store import NEVER_ENDED, Row
from harness.summary import Figure, Ratio, failures, growth, median_of, ratio, size

Against = Mapping[str, str]
"""Arm -> the bare arm that it is compared with, where that is not `BARE`."""

FEW = 8
"""Arms that fit beside each other."""
DETAILS = "In detail:"
"""The line of a printed report behind which the details are."""

FIGURES: dict[str, Figure] = {
    "in_program": lambda row: row.in_program_s,
    "in_program_cpu": lambda row: row.in_program_cpu_s,
    "whole_process": lambda row: row.whole_s if row.whole else None,  # what was given up took longer than that
}


def summary(rows: list[Row], programs: list[str], arms: list[str], against: Against | None = None) -> dict[str, Any]:
    """Ratios against the first bare run of the same round, failures, and sizes."""
    bare = against or {}
    result: dict[str, Any] = {"ratios": {}, "over_programs": {}, "failures": {}, "sizes": {}, "against": dict(bare)}
    for arm in [BARE_AGAIN, *arms]:
        ratios = {name: _ratios(rows, programs, arm, bare.get(arm, BARE), figure) for name, figure in FIGURES.items()}
        result["ratios"][arm] = {
            name: {program: asdict(value) for program, value in of_figure.items()} for name, of_figure in ratios.items()
        }
        result["over_programs"][arm] = {
            name: {
                "median": median(value.median for value in of_figure.values()),
                "worst": max(value.median for value in of_figure.values()),
                "median_of_medians": median(value.of_medians for value in of_figure.values()),
                "worst_of_medians": max(value.of_medians for value in of_figure.values()),
                "median_of_fastest": median(value.of_fastest for value in of_figure.values()),
                "worst_of_fastest": max(value.of_fastest for value in of_figure.values()),
                "programs": len(of_figure),
            }
            for name, of_figure in ratios.items()
            if of_figure
        }
        found = {program: failures(rows, program, arm) for program in programs}
        result["failures"][arm] = {program: outcome for program, outcome in found.items() if outcome is not None}
    for arm in [BARE, *arms]:
        result["sizes"][arm] = {program: asdict(size(rows, program, arm, bare.get(arm, BARE))) for program in programs}
    return result


def long_run(rows: list[Row], short: str, long: str, arms: list[str], against: Against | None = None) -> dict[str, Any]:
    """Start-up, finalising, and what a long run leaves on disk. Times in seconds, sizes in bytes."""
    result: dict[str, Any] = {"start_up_s": {}, "after_program_s": {}, "long_run": {}}
    for arm in [*dict.fromkeys([BARE, *(against or {}).values()]), *arms]:
        result["start_up_s"][arm] = median_of(rows, START_UP, arm, lambda row: row.start_up_s)
        result["after_program_s"][arm] = median_of(rows, long, arm, lambda row: row.after_program_s)
    for arm in arms:
        result["long_run"][arm] = {
            "in_program_s": median_of(rows, long, arm, lambda row: row.in_program_s),
            "recording_bytes": median_of(rows, long, arm, lambda row: row.recording_bytes),
            "growth_bytes_per_s": growth(rows, short, long, arm),
        }
    return result


def _ratios(rows: list[Row], programs: list[str], arm: str, bare: str, figure: Figure) -> dict[str, Ratio]:
    found = {program: ratio(rows, program, arm, bare, figure) for program in programs}
    return {program: value for program, value in found.items() if value is not None}


def overview(found: dict[str, Any], arms: list[str]) -> str:
    """One line for each arm: medians and worsts over the programs, and how many programs there are none of."""
    head = ["median", "worst", "fastest, median", "fastest, worst", "CPU, median", "CPU, worst", "command, median"]
    head += ["memory added", "left on disk"]
    lines = [f"{'times bare':<22}" + "".join(f"{name:>17}" for name in head)]
    for arm in [BARE_AGAIN, *arms]:
        over, sizes = found["over_programs"][arm], found["sizes"].get(arm, {}).values()
        cells = [
            f"{over[figure][name]:.3f}" if figure in over else "-"
            for figure, name in (
                ("in_program", "median"),
                ("in_program", "worst"),
                ("in_program", "median_of_fastest"),
                ("in_program", "worst_of_fastest"),
                ("in_program_cpu", "median"),
                ("in_program_cpu", "worst"),
                ("whole_process", "median"),
            )
        ]
        for name, unit, form in (("above_bare", 1e6, "{:+.1f} MB"), ("recording", 1024, "{:.0f} KiB")):
            values = [size[name] / unit for size in sizes if size[name] is not None]
            cells.append(form.format(median(values)) if values else "-")
        lines.append((f"{arm:<22}" + "".join(f"{cell:>17}" for cell in cells) + "   " + missing(found, arm)).rstrip())
    return "\n".join(lines)


def missing(found: dict[str, Any], arm: str) -> str:
    """In words: with how many of the programs an arm took too long, failed, or was not tried. Empty if with none."""
    outcomes = list(found["failures"][arm].values())
    unended = outcomes.count(NEVER_ENDED)
    programs = len(found["sizes"][BARE])
    untried = programs - len(found["failures"][arm].keys() | found["ratios"][arm]["in_program"].keys())
    counts = {NEVER_ENDED: unended, "failed": len(outcomes) - unended, "not tried": untried}
    words = ", ".join(f"{name} with {count}" for name, count in counts.items() if count)
    return f"{words} of {programs}" if words else ""


def matrix(found: dict[str, Any], programs: list[str], arms: list[str]) -> str:
    """Times bare, in program, of every program and arm; programs are rows where there are few arms."""

    def cell(program: str, arm: str) -> str:
        value = found["ratios"][arm]["in_program"].get(program)
        failed = found["failures"][arm].get(program, "-")
        return f"{value['median']:.3f}" if value else failed if failed in (NEVER_ENDED, "-") else "failed"

    shown = [BARE_AGAIN, *arms]
    if len(arms) <= FEW:
        rows = [(program, [cell(program, arm) for arm in shown]) for program in programs]
        heads = shown
    else:
        rows = [(arm, [cell(program, arm) for program in programs]) for arm in shown]
        heads = [program.removeprefix("async_tree_") for program in programs]
    lines = [f"{'times bare':<26}" + "".join(f"{head:>18}" for head in heads)]
    return "\n".join(lines + [f"{name:<26}" + "".join(f"{each:>18}" for each in cells) for name, cells in rows])


def whole(found: dict[str, Any], programs: list[str], arms: list[str], more: str = "") -> str:
    """The results for people: the overview, every program and arm, `more`, and then the details."""
    parts = [overview(found, arms), matrix(found, programs, arms), more, DETAILS, table(found, programs, arms)]
    return "\n\n".join(part for part in parts if part)


def table(found: dict[str, Any], programs: list[str], arms: list[str]) -> str:
    """The results for people, arm by arm."""
    lines: list[str] = []
    for arm in arms:
        columns = [(arm, figure) for figure in FIGURES] + [(BARE_AGAIN, "in_program")]
        lines += [
            f"{arm}, times {found['against'].get(arm, BARE)}: "
            "median of per-round ratios (quartiles; ratio of medians; of the fastest runs)",
            _line("", ["in program", "in program, CPU time", "whole command", "noise: bare again, in program"]),
        ]
        for program in programs:
            failed = found["failures"][arm].get(program, "not measured")
            lines.append(
                _line(program, [_cell(found["ratios"][who][figure].get(program), failed) for who, figure in columns])
            )
        for name in ("median", "worst"):
            lines.append(_line(name, [_overall(found, who, figure, name) for who, figure in columns]))
        lines.append(_line("", ["peak memory of the program", "above bare", "left on disk", "that, per second"]))
        for program in programs:
            lines.append(_line(program, _sizes(found["sizes"][arm][program])))
        lines.append("")
    return "\n".join(lines)


def long_run_table(found: dict[str, Any], arms: list[str]) -> str:
    """Start-up and the long run for people."""
    lines: list[str] = []
    for arm in arms:
        lines += [
            arm,
            f"  start-up, until the first line runs: {_over_bare(found['start_up_s'], arm)}",
            f"  from the end of a long run's work to the command's: {_over_bare(found['after_program_s'], arm)}",
            f"  long run: {_long(found['long_run'][arm])}",
        ]
    return "\n".join(lines)


def _line(head: str, cells: list[str]) -> str:
    return (f"  {head:<25}" + "".join(f"{cell:<38}" for cell in cells)).rstrip()


def _cell(value: dict[str, Any] | None, failed: str) -> str:
    if value is None:
        return failed[:30]
    return "{median:.3f} ({low:.3f}..{high:.3f}; {of_medians:.3f}; {of_fastest:.3f})".format(**value)


def _overall(found: dict[str, Any], arm: str, figure: str, name: str) -> str:
    of_figure = found["over_programs"][arm].get(figure)
    if not of_figure:
        return "-"
    return f"{of_figure[name]:.3f} ({of_figure[name + '_of_medians']:.3f}; {of_figure[name + '_of_fastest']:.3f})"


def _sizes(value: dict[str, Any]) -> list[str]:
    forms: dict[str, tuple[float, str]] = {
        "program_peak": (1e6, "{:.1f} MB"),
        "above_bare": (1e6, "{:+.1f} MB"),
        "recording": (1024, "{:.1f} KiB"),
        "recording_per_s": (1024, "{:.2f} KiB/s"),
    }
    return ["-" if value[name] is None else form.format(value[name] / unit) for name, (unit, form) in forms.items()]


def _over_bare(values: dict[str, float | None], arm: str) -> str:
    mine, bare = values[arm], values[BARE]
    if mine is None or bare is None:
        return "not measured"
    return f"{mine * 1e3:.0f} ms, bare {bare * 1e3:.0f} ms: {(mine - bare) * 1e3:+.0f} ms"


def _long(values: dict[str, float | None]) -> str:
    shown: list[str] = []
    formats: dict[str, Callable[[float], str]] = {
        "in_program_s": lambda value: f"{value:.1f} s",
        "recording_bytes": lambda value: f"recording of {value / 1024:.1f} KiB without source texts",
        "growth_bytes_per_s": lambda value: f"growing by {value / 1024:.2f} KiB/s",
    }
    for name, form in formats.items():
        value = values[name]
        shown.append(form(value) if value is not None else f"{name} unknown")
    return ", ".join(shown)
