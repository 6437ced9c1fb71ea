"""Puts the figures of one benchmark that was measured again into the head of docs/benchmarks.md."""

import re
from collections.abc import Sequence

from page.contests import Contest
from page.write import contest_row, lost_one, standing

_LOST = re.compile(r"\*\*Where others are better\*\* \(\d+ of \d+ figures\): (?P<each>.*)\.")
_NONE_LOST = re.compile(r"tachograph is the best, or within the noise of it, in all \d+ figures that are compared\.")
_LAST_DAY = re.compile(r"(?P<before>Measured (?:from [\d-]+ to|on) )(?P<day>[\d-]+)")
_ALONE = "| 0 |"
"""The end of a row with which no other profiler is compared."""


def with_contests(page: str, measured: Sequence[Contest], day: str) -> str:
    """The page with these figures in place of the earlier ones of the same names.

    Rows of the first table are replaced, its first sentence is made again, and the last day in it is `day`
    (2026-11-23). A figure that the page does not have is left out: its place in the table is not known.
    """
    lines = page.split("\n")
    places = {_name(line): place for place, line in enumerate(lines) if line.startswith("| ")}
    fresh = {contest.name: contest for contest in measured if contest.name in places}
    if not fresh:
        return page
    for name, contest in fresh.items():
        lines[places[name]] = contest_row(contest)
    rows = [lines[place] for name, place in places.items() if not name.startswith("figure ")]
    first = next(place for place, line in enumerate(lines) if _LOST.fullmatch(line) or _NONE_LOST.fullmatch(line))
    before = _LOST.fullmatch(lines[first])
    earlier = {each.partition(": ")[0]: each for each in before["each"].split("; ")} if before else {}
    lost = {name: text for name, text in earlier.items() if name not in fresh}
    lost |= {name: lost_one(each, better) for name, each in fresh.items() if (better := each.better())}
    in_order = sorted(lost, key=lambda name: places.get(name, len(lines)))
    lines[first] = standing(sum(not row.endswith(_ALONE) for row in rows), [lost[name] for name in in_order])
    return _LAST_DAY.sub(lambda last: last["before"] + max(last["day"], day), "\n".join(lines), count=1)


def _name(row: str) -> str:
    return row.removeprefix("| ").partition(" | ")[0]
