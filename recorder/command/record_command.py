"""``tachograph record`` as click shows it: its help, and the completion of its options.

The command line itself is read by command_line.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from tachograph.grouped_help import GroupedCommand, GroupedOption
from tachograph.recorder.command.command_line import read
from tachograph.recorder.command.options import DEFAULTS, OPTIONS, RESEARCH
from tachograph.recorder.command.record import run
from tachograph.recorder.problems import Refused

ABOUT = """Run a program and record its time, memory and copies.

The program is a SCRIPT, a module (-m MODULE), code (-c CODE) or any COMMAND; the arguments after it are its own, and so
is the exit status. All options: tachograph help cli
"""

EXAMPLES = """\b
Examples:
  tachograph record work.py --its own --options
  tachograph record -o night.tacho -m package.module
  tachograph record gunicorn --workers 4 shop.wsgi
  tachograph record --rotate 10m --keep 6 -o web.tacho gunicorn shop.wsgi
"""


class RecordCommand(GroupedCommand):
    """Shows the table of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the line with our own reader; help and half a line that is to be completed are click's."""
        try:
            line = read(args)
        except Refused:
            if ctx.resilient_parsing:
                return super().parse_args(ctx, [])
            raise
        if ctx.resilient_parsing:
            words = [word for typed in line.typed for word in typed if word is not None]
            return super().parse_args(ctx, words)
        if line.help:
            return super().parse_args(ctx, ["--help"])
        project = (ctx.default_map or {}) if ctx.parent is not None else {}
        ctx.params = {"options": line.options(project), "target": line.target}
        return []

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options where one begins, else files: the program, and what it is given."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["[OPTIONS] (SCRIPT | COMMAND | -m MODULE | -c CODE) [ARGS]..."]


def parameters() -> Iterator[GroupedOption]:
    """The options as click has them, from the table."""
    for name, option in OPTIONS.items():
        names = ["/".join((*option.names, *option.off))] if option.off else option.names
        yield GroupedOption(
            [*names, name],
            group=option.group,
            hidden=option.group == RESEARCH,
            shown=", ".join(option.off) if DEFAULTS[name] is True else None,
            is_flag=option.parse is None,
            multiple=option.repeated,
            metavar=option.metavar or None,
            type=click.Choice(option.choices) if option.choices else None,
            help=option.help + (f" [default: {option.shown}]" if option.shown else ""),
        )


record = RecordCommand(
    "record",
    params=list(parameters()),
    callback=run,
    help=ABOUT,
    epilog=EXAMPLES,
)
