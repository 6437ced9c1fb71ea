"""``tachograph record``.

The command line as click sees it: help, mistakes, and whatever `plain_options` leaves to it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from tachograph.recorder.arguments import divide
from tachograph.recorder.record import LONGEST_MS, SHORTEST_MS, Options, run
from tachograph.recorder.target import Target


class RecordCommand(click.Command):
    """Gives click our options only; what follows the target belongs to the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Divide the command line and parse our part of it."""
        takes_value = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        own, target = divide(args, frozenset(takes_value))
        rest = super().parse_args(ctx, own)
        ctx.params["target"] = target
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["[OPTIONS] (SCRIPT | -m MODULE | -c CODE) [ARGS]..."]


def check_interval(_: click.Context, __: click.Parameter, value: float) -> float:
    """Refuse an interval that no timer could keep, or that would see next to nothing."""
    if math.isnan(value) or not SHORTEST_MS <= value <= LONGEST_MS:
        raise click.BadParameter(f"{value:g} ms is not between {SHORTEST_MS:g} and {LONGEST_MS:g} ms")
    return value


@click.command(cls=RecordCommand)
@click.option(
    "-o", "--output", "path", type=click.Path(path_type=Path), metavar="DIR.tacho",
    help="Where to put the recording, a directory. [default: NAME-001.tacho here, after the program; each time the "
    "next number]",
)  # fmt: skip
@click.option(
    "--interval", "interval_ms", type=float, default=10.0, show_default=True, metavar="MS", callback=check_interval,
    help="CPU time between two samples of a thread.",
)  # fmt: skip
@click.option(
    "--sampler", type=click.Choice(["native", "signal"]), default="native", show_default=True,
    help="How to sample; 'signal' is in pure Python and works without native parts, but sees less.",
)  # fmt: skip
@click.option("--no-sources", "sources", flag_value=False, default=True, help="Do not store the text of source files.")
@click.option(
    "--start-paused", is_flag=True, help="Record nothing until the program calls tachograph.recorder.resume()."
)
@click.option("-f", "--force", is_flag=True, help="Replace an existing recording.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print the line at the end.")
def record(target: Target | None, **typed: Any) -> None:
    """Run a Python program and record where it spends its time.

    The program is a SCRIPT, a module (-m MODULE) or code (-c CODE), as with python itself. Whatever follows belongs
    to it. It runs as it would without tachograph, and the exit status is its own.
    """
    run(Options(**typed), target)
