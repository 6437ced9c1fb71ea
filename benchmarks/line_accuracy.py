"""Which profiler puts how much CPU time on which line? Python, built-ins, operators, methods, a thread, a blocked read.

    python line_accuracy.py                          # tachograph and all peers that tell lines
    python line_accuracy.py --peers scalene,py-spy

One program does work of several kinds, each on lines of its own (programs/sections.py), and measures the CPU time of
each by the clock of the thread that does it. The truth is what it measured in the very run that was profiled; all get
the same number of passes. *Misplaced* is the share of the time that stands on the wrong line: half the sum of the
absolute errors. *Moved* is the same between what was measured in that run and in the bare one: what the profiler itself
changed, and noise, of which a second bare run tells how much there is. The line that waits for a pipe takes next to no
CPU time: what a profiler shows there is waiting that it counts as work. Where a profiler tells native time from
Python's, its native share of the native lines and of the Python loop is shown as well.
"""

import json
from pathlib import Path
from typing import Any

import click

from harness import tags
from harness.arms import BARE
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, compared_with, complaints, key, options

PROGRAM = FOLDER / "sections.py"
SECTIONS = ("python", "call", "operator", "method", "library", "thread", "read")
NATIVE = ("call", "operator", "method", "library", "thread")
TRIAL = dict.fromkeys(SECTIONS, 50) | {"read": 5}
"""Passes of the run that tells how long one takes."""
NAPS = 50
"""Blocked reads, of 20 ms each: a second of waiting."""
QUESTION = "sections"
AGAIN = "again"
"""The question that is asked of the bare program alone."""


@click.command()
@options("those that tell the time of lines", "line_accuracy")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=6.0, show_default=True, help="Time of a bare run.")
def main(peers: str, timeout: float, results: Path, seconds: float, *, fresh: bool) -> None:
    """CPU time by line, against the truth."""
    with complaints("line_accuracy"):
        survey = Survey(peers, Peer.tells_lines, timeout, results, fresh=fresh)
        passes = _passes(survey, seconds)
        program = [str(PROGRAM), json.dumps(passes)]
        survey.ask_all([Question(QUESTION, program, {"passes": passes})], _read)
        survey.ask_all([Question(AGAIN, program, {"passes": passes})], _read, profilers=False)
    print(table(survey.known(), survey.profilers))


def _passes(survey: Survey, seconds: float) -> dict[str, int]:
    for answer in survey.known().values():
        return answer["passes"]  # type: ignore[no-any-return]
    once = survey.try_bare([str(PROGRAM), json.dumps(TRIAL)])
    each = seconds / (len(SECTIONS) - 1)
    found = {name: max(5, round(each / once[name] * TRIAL[name])) for name in SECTIONS if name != "read"}
    return found | {"read": NAPS if seconds > 1 else 5}


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    if peer.lines is None:
        return None
    found = peer.lines(recording, folder, PROGRAM)
    said: dict[str, Any] = {"total": tags.sums({line: time.total for line, time in found.items()}, PROGRAM)}
    if peer.tells_native:
        said["native"] = tags.sums({line: time.native or 0.0 for line, time in found.items()}, PROGRAM)
    return said


def shares(seconds: dict[str, float]) -> dict[str, float] | None:
    """Percent of the sections' time for each; None if there is none."""
    whole = sum(seconds[name] for name in SECTIONS)
    return {name: 100.0 * seconds[name] / whole for name in SECTIONS} if whole else None


def misplaced(told: dict[str, float], true: dict[str, float]) -> float:
    """Percent of the time that stands on the wrong line."""
    return sum(abs(told[name] - true[name]) for name in SECTIONS) / 2


def native_share(said: dict[str, Any], names: tuple[str, ...]) -> float | None:
    """Percent of the time on these lines that is said to be native; None if that is not told, or there is no time."""
    total = sum(said["total"][name] for name in names)
    return 100.0 * sum(said["native"][name] for name in names) / total if "native" in said and total else None


def errors(known: dict[str, dict[str, Any]], profiler: str) -> float | None:
    """Percent of the time that the profiler puts on the wrong line; None if it did not answer."""
    answer = known.get(key(QUESTION, profiler), {})
    told, true = _told(answer), _truth(answer)
    return misplaced(told, true) if told and true else None


def moved(known: dict[str, dict[str, Any]], profiler: str, question: str = QUESTION) -> float | None:
    """Percent of the time that was measured on other lines than in the bare run; None if one is not known."""
    own = _truth(known.get(key(question, profiler), {}))
    bare = _truth(known.get(key(QUESTION, compared_with(known, profiler)), {}))
    return misplaced(own, bare) if own and bare else None


def noise(known: dict[str, dict[str, Any]]) -> float:
    """Percent of the time that was measured on other lines in a second bare run; 0 if there was none."""
    return moved(known, BARE, AGAIN) or 0.0


def _told(answer: dict[str, Any]) -> dict[str, float] | None:
    """Percent of the time for each section, as the profiler says; None if it does not."""
    return shares(answer["said"]["total"]) if answer.get("said") else None


def _truth(answer: dict[str, Any]) -> dict[str, float] | None:
    """Percent of the time for each section, by the clocks of the program in that very run; None if it told nothing."""
    return shares(answer["report"]) if answer.get("report") else None


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Percent of the time by line: what each run measured, and what its profiler says."""
    head = [*SECTIONS, "misplaced", "moved", "native of native", "native of Python"]
    lines = [f"{'':<22}" + "".join(f"{name:>18}" if len(name) > 10 else f"{name:>10}" for name in head)]
    if (true := _truth(known.get(key(QUESTION, BARE), {}))) is None:
        return "the bare program was not measured"
    lines.append(f"{BARE:<22}" + _cells(true, None, None))
    if (again := _truth(known.get(key(AGAIN, BARE), {}))) is not None:
        lines.append(f"{'bare again':<22}" + _cells(again, None, noise(known)))
    for profiler in profilers:
        answer = known.get(key(QUESTION, profiler), {})
        told, true = _told(answer), _truth(answer)
        if told is None or true is None:
            lines.append(f"{profiler:<22}  {answer.get('outcome', '-')}")
            continue
        natives = [native_share(answer["said"], names) for names in (NATIVE, ("python",))]
        said = _cells(told, misplaced(told, true), moved(known, profiler))
        lines.append(f"{profiler:<22}" + said + "".join("" if each is None else f"{each:>18.1f}" for each in natives))
        lines.append(f"{'  (measured)':<22}" + _cells(true, None, None))
    return "\n".join(line.rstrip() for line in lines)


def _cells(percent: dict[str, float], *more: float | None) -> str:
    cells = [*(percent[name] for name in SECTIONS), *more]
    return "".join(f"{'' if each is None else format(each, '.1f'):>10}" for each in cells)


if __name__ == "__main__":
    main()
