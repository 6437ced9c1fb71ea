"""The head of the terminal report: what ran, where the time went as a whole, how good the recording is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ...profile.profile import Profile
from ...recording.text import printable
from ...report_data.head import (
    Figure,
    circumstances,
    collecting_figure,
    gpu_figures,
    memory_figures,
    pool_figures,
    time_figures,
    time_parts,
)
from ...report_data.headline import ledger, recorder_cost, verdict
from ...report_data.killed import killed_text, last_lines, last_title
from ...report_data.numbers import seconds
from ...report_data.waiting_parents import waiting_sentences
from ...report_data.where_memory import where_sentence
from .style import COLOURS, Style

MAX_LABELS = 12
"""Labels that the head has room for."""
SEPARATORS = (" · ", " - ")
"""Separators between facts; the second where there is only ASCII."""

_RULER = Console(width=80)  # wrap() wants one; nothing is printed on it


def header(profile: Profile, style: Style, width: int, *, notes: bool = False) -> Iterator[Text]:
    """The lines of the head."""
    yield _program(profile, style, width)
    yield from wrapped(_circumstances(profile, style), width)
    if profile.metadata.labels:
        yield from wrapped(_labels(profile, style), width)
    yield Text()
    yield from _killed(profile, style, width)
    yield from wrapped(_line(" ", "", time_figures(profile), style), width)
    yield from _split(profile, style, width)
    for sentence in waiting_sentences(profile):
        yield from wrapped(Text(" waiting  ", COLOURS["wait"]).append(style.plain(sentence)), width)
    for lead, part, figures in (
        (" native threads  ", "native", pool_figures(profile)),
        (" memory  ", "memory", memory_figures(profile)),
        (" GPU     ", "gpu", gpu_figures(profile)),
    ):
        if figures:
            yield from wrapped(_line(lead, COLOURS[part], figures, style), width)
        where = where_sentence(profile) if part == "memory" else None
        if where is not None:
            yield from wrapped(Text(" where   ", COLOURS[part]).append(style.plain(where)), width)
    for line in quality(profile, style, notes=notes):
        yield from wrapped(line, width)


def _program(profile: Profile, style: Style, width: int) -> Text:
    text = Text().append(" tachograph  ", "bold")
    program = profile.metadata.program or profile.metadata.path
    text.append(printable(program, max(20, width - 14)), "bold #e5c07b")
    return text


def _circumstances(profile: Profile, style: Style) -> Text:
    return Text(" " + style.plain(" · ").join(circumstances(profile)), "dim")


def _labels(profile: Profile, style: Style) -> Text:
    labels = [
        f"{key}={value if len(value) <= 24 else value[:23] + '…'}" for key, value in profile.metadata.labels.items()
    ]
    more = [f"and {len(labels) - MAX_LABELS} more ('tachograph info' has all)"] if len(labels) > MAX_LABELS else []
    return Text(style.plain(" " + " · ".join([*labels[:MAX_LABELS], *more])), "dim")


def _line(lead: str, colour: str, figures: Sequence[Figure], style: Style) -> Text:
    """Figures one behind the other, as facts that are kept together."""
    text = Text(lead, colour)
    for number, figure in enumerate(figures):
        text.append(style.plain(" · ") if number else "", "dim").append(style.plain(figure.value), "bold")
        text.append(f" {figure.text}" if figure.value else figure.text, "" if figure.value else "dim")
    return text


def _killed(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The process that was killed, and its last seconds."""
    text = killed_text(profile)
    if text is None:
        return
    yield from indented(Text(style.plain(f" ! {text}"), "red"), width, "")
    shown = last_lines(profile)
    if shown:
        yield Text(style.plain(f"   {last_title(profile)}:"), "dim")
    for line in shown:
        yield Text(style.plain(f"     {line}"))
    yield Text()


def _split(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The bar, and what its parts are. Shares are of the CPU time; waiting is ``first_waiting``."""
    parts = time_parts(profile)
    if not parts:
        return
    bar = style.bar([(part.name, part.seconds) for part in parts], width - 2)
    bar.pad_left(1)
    yield bar
    legend = Text()
    for part in parts:
        entry = Text(" ").append(style.glyph(part.name) + " ", COLOURS[part.name]).append(f"{part.label} ")
        entry.append(style.plain(" ".join(filter(None, (part.share_text, seconds(part.seconds))))), "bold").append("  ")
        if legend.cell_len + entry.cell_len > width:
            yield legend
            legend = Text()
        legend.append_text(entry)
    yield legend
    collected = collecting_figure(profile)
    if collected is not None:
        yield from wrapped(Text(style.plain(f"   {collected.value} {collected.text}"), "dim"), width)


def wrapped(line: Text, width: int) -> Iterator[Text]:
    """A line of facts or prose on as many lines as it needs, the later ones indented; facts are kept together."""
    rows: list[Text] = []
    for fact in _facts(line):
        if rows and rows[-1].cell_len + fact.cell_len <= width - 3:
            rows[-1].append_text(fact)
        else:
            rows.extend(indented(fact, width - 3, ""))
    for number, row in enumerate(rows):
        if number < len(rows) - 1 and row.plain.endswith(SEPARATORS):
            row.right_crop(3)
        yield Text("   ").append_text(row) if number else row


def _facts(line: Text) -> Iterator[Text]:
    """The facts of a line, each with the separator behind it."""
    ends = [separator.end() for separator in re.finditer("|".join(map(re.escape, SEPARATORS)), line.plain)]
    yield from line.divide(ends)


def indented(line: Text, width: int, indent: str) -> Iterator[Text]:
    """A line of prose on as many lines as it needs, all of them indented."""
    for piece in line.wrap(_RULER, width - len(indent)):
        if not piece.plain.endswith(SEPARATORS):
            piece.rstrip()
        yield Text(indent).append_text(piece)


def quality(profile: Profile, style: Style, *, notes: bool) -> Iterator[Text]:
    """The verdict, what was lost, and all notes; without ``notes`` only how many there are."""
    overall, entries = verdict(profile), ledger(profile)
    facts = [f"{entries.count}: analyze --notes" if entries.notes and not notes else None, recorder_cost(profile)]
    line = Text(style.plain(f" {'✓' if overall.good else '!'} {overall.text}"), "green" if overall.good else "yellow")
    yield line.append(style.plain("".join(f" · {fact}" for fact in facts if fact)), "dim")
    for entry in entries.losses:
        line = Text(style.plain(f" ! {entry.text}"), "yellow")
        yield line.append(style.plain(f": {entry.advice}") if entry.advice else "", "")
    for entry in entries.notes if notes else []:
        yield Text(style.plain("   " + ": ".join(filter(None, (entry.text, entry.advice)))), "dim")
