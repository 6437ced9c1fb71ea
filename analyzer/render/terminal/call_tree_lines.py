"""The terminal's call trees: of the program (``--tree``), and of one line (``--line``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from ...profile.call_branches import Branch, LineCalls
from ...profile.profile import Profile
from ...recording.native_names import native_label, short_name
from ...recording.text import shorten_left, within_package
from ...report_data.numbers import counted, percent, seconds, short_seconds, short_size, size
from .header import wrapped
from .style import COLOURS, NARROW, Style

MIN_SHARE = 0.01
"""Branches with less of the whole are left out, and said to be."""

MAX_ROWS, MAX_STEM = 60, 40
JOINED = 0.98
"""A branch that has this part of its caller's time is written behind it, if the library is the same."""

GUESSED = 0.05
IMPORTING = "<frozen importlib._bootstrap"
"""Files of the functions between an import and the module that is run for it."""


def show_tree(profile: Profile, branches: list[Branch], console: Console, top: int | None = None) -> None:
    """Prints the call tree; ``top`` is the number of rows at most."""
    style, whole = Style.of(console), profile.totals.cpu_s
    console.print(Text(" Call tree ", "bold reverse" if style.colour else "bold"), end="")
    console.print(Text(style.plain("  CPU time, callers first; libraries folded"), "dim"))
    _print(branches, whole, console, style, top)


def show_line(profile: Profile, calls: LineCalls, console: Console, top: int | None = None) -> None:
    """Prints what a line spent its time in."""
    style, whole = Style.of(console), calls.whole
    source = (calls.source or "").strip()
    console.print(
        Text(style.plain(f" {shorten_left(calls.file, max(20, console.width // 2))}:{calls.line}  "), "bold"), end=""
    )
    console.print(Text(source[: max(10, console.width // 2 - 12)], "dim"))
    share = percent(whole.cpu_s / profile.totals.cpu_s) if profile.totals.cpu_s > 0 else "?"
    head = Text(style.plain(f" {seconds(whole.cpu_s)} of CPU time, {share or '0'} % of all"))
    for part, value in (("python", whole.python_s), ("native", whole.native_s), ("kernel", whole.kernel_s)):
        if value > 0:
            head.append(style.plain(" · ")).append(f"{part} {percent(value / whole.cpu_s)} %", COLOURS[part])
    if whole.wait_s:
        head.append(style.plain(f" · waiting {seconds(whole.wait_s)}"), COLOURS["wait"])
    second = _memory_and_callers(calls)
    for line in (head, *([Text(style.plain(f" {second}"))] if second else [])):
        for row in wrapped(line, console.width):
            style.print(console, row)
    if not profile.paths.recorded:
        console.print(Text(" native call paths were not recorded: only the function that was running is known", "dim"))
    console.print()
    own = Branch("(the line itself)", None, cpu_s=whole.own_cpu_s, own_cpu_s=whole.own_cpu_s, **cast("Any", calls.own))
    rows = [own, *whole.children]
    if whole.cpu_s > 0:
        _print(rows, whole.cpu_s, console, style, top)
    held = "live_at_peak_bytes" if (whole.live_at_peak_bytes or 0) > 0 else "allocated_bytes"
    for measure in ("wait_s", held, "copied_bytes"):
        amount = getattr(whole, measure) or 0.0
        if amount > 0:
            _print_amounts(rows, measure, amount, console, style, top)


MOST_CALLERS = 2
"""Callers of a line that are named."""


def _memory_and_callers(calls: LineCalls) -> str:
    """A sentence on the memory that a line held and allocated, and on where its function was called."""
    whole, parts = calls.whole, []
    for amount, what in (
        (whole.live_at_peak_bytes, "held at the peak"),
        (whole.allocated_bytes, "allocated"),
        (whole.copied_bytes, "copied"),
    ):
        if amount is not None and short_size(amount):
            parts.append(f"{size(round(amount))} {what}")
    named = [
        f"{PurePosixPath(each.file).name}:{each.line} in {each.function} ({percent(each.share) or '<0.1'} %)"
        for each in calls.callers[:MOST_CALLERS]
    ]
    if named:
        more = (
            f" and {counted(len(calls.callers) - MOST_CALLERS, 'more lines')}"
            if len(calls.callers) > MOST_CALLERS
            else ""
        )
        parts.append(f"called at {' and '.join(named) if not more else ', '.join(named)}{more}")
    return " · ".join(parts)


_AMOUNTS = {
    "wait_s": ("Waiting", ("wait_s",)),
    "live_at_peak_bytes": ("Memory, held at the peak", ("live_at_peak_bytes", "live_at_end_bytes", "allocated_bytes")),
    "allocated_bytes": ("Memory, allocated", ("allocated_bytes",)),
    "copied_bytes": ("Copies", ("copied_bytes",)),
}
"""The title and the columns of the table of each measure."""

_HEADS = {
    "wait_s": "waiting",
    "live_at_peak_bytes": "at peak",
    "live_at_end_bytes": "at end",
    "allocated_bytes": "allocated",
    "copied_bytes": "copied",
}


def _print_amounts(
    branches: list[Branch], measure: str, whole: float, console: Console, style: Style, top: int | None
) -> None:
    """Prints who waited, allocated or copied for a line, the most of ``measure`` first."""
    title, columns = _AMOUNTS[measure]
    show = short_seconds if measure == "wait_s" else short_size
    console.print(Text(f" {title} ", "bold reverse" if style.colour else "bold"))
    console.print(Text("".join(f"{_HEADS[name]:>11}" for name in columns) + "  function", "dim"))

    def weight(branch: Branch) -> float:
        return float(getattr(branch, measure) or 0.0)

    def cells(chain: list[Branch]) -> Text:
        return Text("".join(f"{show(getattr(chain[0], name)):>11}" for name in columns) + "  ")

    joins = _of_python if measure == "wait_s" else _together
    _print_rows(branches, weight, cells, whole, console, style, top, joins)


def _print(branches: list[Branch], whole: float, console: Console, style: Style, top: int | None) -> None:
    console.print(Text(f"{'total %':>8}{'self %':>8}  function", "dim"))

    def cells(chain: list[Branch]) -> Text:
        own = sum(each.own_cpu_s for each in chain)
        text = Text(f"{percent(chain[0].cpu_s / whole) if whole > 0 else '?':>8}", "bold")
        return text.append(f"{percent(own / whole) if whole > 0 and own > 0 else '':>8}  ")

    _print_rows(branches, lambda branch: branch.cpu_s, cells, whole, console, style, top)


def _print_rows(
    branches: list[Branch],
    weight: Callable[[Branch], float],
    cells: Callable[[list[Branch]], Text],
    whole: float,
    console: Console,
    style: Style,
    top: int | None,
    joins: Callable[[Branch, Branch], bool] | None = None,
) -> None:
    """Prints the branches with enough of ``weight``, of which there is ``whole``, with ``cells`` in front."""
    limit = MAX_ROWS if top is None else top
    least = 0.0 if top is not None else MIN_SHARE * whole
    joins = joins or _together
    available = sum(1 for _ in _rows(branches, least, weight, joins))
    largest = sorted((weight(each) for root in branches for _, each in root.walk()), reverse=True)[:limit]
    least = max(least, largest[-1] if len(largest) == limit else 0.0)
    written = 0
    for stem, chain in _rows(branches, least, weight, joins):
        if written >= limit or len(stem) > MAX_STEM:
            continue
        written += 1
        text = cells(chain).append(style.plain(stem), "dim")
        text.append_text(_names(chain, style, max(20, console.width - text.cell_len - 1)))
        text.truncate(console.width, overflow="ellipsis")
        style.print(console, text)
    if available > written:
        console.print(
            Text(f"{'':>18}and {counted(available - written, 'more rows')} (--top shows more, --json all)", "dim")
        )
    console.print()


def _rows(
    branches: list[Branch],
    least: float,
    weight: Callable[[Branch], float],
    joins: Callable[[Branch, Branch], bool],
) -> Iterator[tuple[str, list[Branch]]]:
    """Branches with at least this weight, callers first, and the lines in front of each: those of a library as one row.

    A branch whose caller has no other one stands below it.
    """

    def chains(some: list[Branch]) -> list[list[Branch]]:
        kept = (each for each in some if weight(each) > 0 and weight(each) >= least)
        return [chain(each) for each in sorted(kept, key=lambda each: -weight(each))]

    def chain(branch: Branch) -> list[Branch]:
        joined = [branch]
        while branch.children:
            below = max(branch.children, key=weight)
            if weight(below) < JOINED * weight(branch) or not joins(branch, below):
                break
            branch = below
            joined.append(branch)
        return joined

    return NARROW.rows(chains(branches), lambda joined: chains(joined[-1].children), straight=True)


def _of_python(branch: Branch, below: Branch) -> bool:
    """True if both are Python functions: of those that wait for one another, the first and the last matter."""
    return branch.language == below.language == "python"


def _together(branch: Branch, below: Branch) -> bool:
    """True if two functions may share a row: those of one native library, and those that import a module."""
    if branch.language == "native":
        return below.module == branch.module
    return (branch.file or "").startswith(IMPORTING) and (below.file or "").startswith(IMPORTING)


def _names(chain: list[Branch], style: Style, room: int) -> Text:
    first, last = chain[0], chain[-1]
    if first.language != "native":
        where = "" if first.file is None else f"{within_package(first.file)}:{first.line}"
        text = Text(first.name, "" if first.language else "italic")
        if len(chain) > 1:
            text.append(style.plain(" → … → ") if len(chain) > 2 else style.plain(" → ")).append(last.name)
        return text.append("  ").append(shorten_left(where, max(8, room - text.cell_len - 2)), "dim") if where else text
    # A library without names stands for all of its functions.
    names = [short_name(native_label(each.name, each.module or "")) for each in chain]
    module = "" if names[-1].startswith("[") else f"  {first.module}"
    if last.file is not None:
        module += f"  {PurePosixPath(last.file).name}:{last.line}"
    remark = f"  ({last.guessed_s / last.cpu_s:.0%} guessed)" if last.guessed_s >= GUESSED * last.cpu_s > 0 else ""
    space = max(12, room - len(module) - len(remark))
    arrow = style.plain(" → ")
    # The outermost function is what was called, the innermost ones are where the time went.
    while len(names) > 2 and len(arrow.join(names)) > space:
        del names[1 if names[1] != "…" else 2]
        if names[1] != "…":
            names.insert(1, "…")
        if len(names) <= 3:
            break
    if len(arrow.join(names)) > space:
        names[0] = names[0].rpartition("::")[2]
    if len(names) > 1 and len(arrow.join(names)) > space:
        names = ["…", names[-1]]
    joined = style.plain(arrow.join(names))
    text = Text(joined if len(joined) <= space else joined[: space - 1] + style.plain("…"), COLOURS["native"])
    return text.append(module, "dim").append(remark, "dim")
