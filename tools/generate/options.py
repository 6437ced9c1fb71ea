"""The table of ``record``'s options in docs/reference/cli.md, from the table in recorder/command/options.py."""

from __future__ import annotations

import textwrap

from tachograph.recorder.attached.keywords import keywords, works_inside
from tachograph.recorder.command.options import OPTIONS, Option


def table() -> str:
    """A row per option: its names, then what ``--help`` says of it and what the reference adds."""
    rows = [f"| {_names(option)} | {_meaning(option)} |" for option in OPTIONS.values()]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows, ""])


def from_inside() -> str:
    """The options that work in a program that records itself."""
    names = ", ".join(f"`{keyword}`" for keyword, name in keywords().items() if works_inside(name))
    return textwrap.fill(names, 120) + "\n"


def _names(option: Option) -> str:
    *first, last = [*option.names, *option.off]
    value = "|".join(option.choices) or option.metavar
    return ", ".join(f"`{name}`" for name in (*first, f"{last} {value}".strip())).replace("|", "\\|")


def _meaning(option: Option) -> str:
    default = f"By default {option.shown}." if option.shown else ""
    return " ".join(filter(None, (option.help, default, option.more))).replace("|", "\\|").replace("*", "\\*")
