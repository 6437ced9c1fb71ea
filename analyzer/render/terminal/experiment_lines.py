"""``tachograph compare`` in the terminal: the answer in one line, both sides in figures, the functions that changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ...recording.text import printable
from ...report_data.difference import NOT_JUDGED
from ...report_data.experiment import BETTER, WORSE, Answer, Effect, FunctionEffect
from ...report_data.numbers import amount, change, changes, counted, percent, seconds

MOST_FUNCTIONS = 5


def show(answer: Answer, labels: Sequence[str], took_s: float, folder: str, console: Console) -> None:
    """Prints the answer. ``labels`` are those of the sides."""
    console.print(Text(answer.sentence, _color(answer.verdict)))
    console.print()
    for name, label in zip(("base", "new"), labels, strict=True):
        console.print(Text(f"{name:<5}{printable(label, 200)}"), overflow="ellipsis", no_wrap=True)
    console.print()
    if answer.effects:
        console.print(effects_table(answer.effects))
    if functions := list(_shown(answer.functions)):
        console.print()
        console.print(functions_table(functions))
    console.print()
    console.print(f"{counted(answer.pairs, 'pairs of runs')} in {seconds(took_s)}{_visible(answer)}", style="dim")
    console.print(f"kept in {printable(folder, 200)}; next: tachograph diff {printable(folder, 200)}", style="dim")


def _visible(answer: Answer) -> str:
    """The change of times that could have been seen, where the answer does not say it already."""
    times = [each for each in answer.effects if each.metric.unit == "s" and each.visible is not None]
    if answer.verdict == NOT_JUDGED or answer.unjudged_time is not None or not times:
        return ""
    return f"; a change of {percent(times[0].visible)} % of {times[0].metric.label} time could have been seen"


def progress_line(answer: Answer, took_s: float, time_s: float) -> Group:
    """What is known so far, in a line."""
    line = Text(f" {counted(answer.pairs, 'pairs')} ", "bold reverse cyan")
    line.append(f"  {_so_far(answer)}", "not reverse")
    line.append(f"  {seconds(took_s)} of {seconds(time_s)} at most; Ctrl-C ends with what is known", "not reverse dim")
    return Group(line)


def waiting_line() -> Text:
    """What is shown before the first pair is complete."""
    return Text(" warming up ", "bold reverse cyan")


def _so_far(answer: Answer) -> str:
    effect = answer.effect
    if effect is None:
        return "the first pair is not complete"
    interval = changes(effect.low, effect.high) if math.isfinite(effect.low) and math.isfinite(effect.high) else "?"
    return f"{effect.metric.label} {change(effect.change)} ({interval})"


def effects_table(effects: Sequence[Effect]) -> Table:
    """The quantities of the whole program: a row each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("whole program", no_wrap=True)
    for name in ("base", "new", "change", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for each in effects:
        unit = each.metric.unit
        known = math.isfinite(each.low) and math.isfinite(each.high)
        table.add_row(
            each.metric.label,
            *(amount(each.base, unit), amount(each.new, unit), change(each.change)),
            changes(each.low, each.high) if known else "?",
            Text(each.verdict.replace("_", " "), _color(each.verdict)),
        )
    return table


def functions_table(functions: Sequence[FunctionEffect]) -> Table:
    """Functions by how much their own CPU time changed: by itself, and against the rest of the program."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("function, own CPU time", overflow="ellipsis", no_wrap=True)
    for name in ("base", "new", "change", "against rest"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for each in functions:
        where = f"{each.file.rpartition('/')[2]}:{each.line} {each.function}"
        text = change(each.change) if math.isfinite(each.change) else "new"
        told = "" if not each.certain else "slower" if each.difference_s > 0 else "faster"
        rest = "" if each.against_rest is None else change(each.against_rest.change)
        table.add_row(where, seconds(each.base_s), seconds(each.new_s), text, rest, Text(told, _color(told)))
    return table


def _shown(functions: Sequence[FunctionEffect]) -> Iterator[FunctionEffect]:
    certain = [each for each in functions if each.certain]
    yield from (certain or functions)[:MOST_FUNCTIONS]


def _color(verdict: str) -> str:
    return "bold red" if verdict in WORSE else "bold green" if verdict in BETTER else "bold"
