"""``tachograph record``.

The command line as click sees it: help, mistakes, and whatever `plain_options` leaves to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tachograph.recorder.command.arguments import divide
from tachograph.recorder.command.memory_settings import DEFAULT_THRESHOLD, parse_threshold
from tachograph.recorder.command.record import LONGEST_MS, SHORTEST_MS, Options, run
from tachograph.recorder.command.rotation_settings import DEFAULT_KEEP, parse_keep, parse_rotate, parse_signal
from tachograph.recorder.command.target import Target

Value = TypeVar("Value")


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options where one begins, else files: the program, and what it is given."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["[OPTIONS] (SCRIPT | COMMAND | -m MODULE | -c CODE) [ARGS]..."]


def check_interval(_: click.Context, __: click.Parameter, value: float) -> float:
    """Refuse an interval that no timer could keep, or that would see next to nothing."""
    if math.isnan(value) or not SHORTEST_MS <= value <= LONGEST_MS:
        raise click.BadParameter(f"{value:g} ms is not between {SHORTEST_MS:g} and {LONGEST_MS:g} ms")
    return value


def parsed(
    parse: Callable[[str], Value],
) -> Callable[[click.Context, click.Parameter, str | None], Value | None]:
    """A callback that gives what was typed to ``parse``, and refuses what that refuses."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> Value | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return check


EXAMPLES = """\b
Examples:
  tachograph record work.py --its own --options
  tachograph record -o night.tacho -m package.module
  tachograph record --cpu-only -c 'import work; work.run()'
  tachograph record --memory-threshold 1M work.py
  tachograph record gunicorn --workers 4 shop.wsgi
  tachograph record --rotate 10m --keep 6 -o web.tacho gunicorn shop.wsgi
  tachograph record --include 'worker*' ./start-all.sh
"""


@click.command(cls=RecordCommand, epilog=EXAMPLES)
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
@click.option(
    "--cpu-only/--with-memory", help="Record CPU time and waiting only, or memory and copies as well (the default)."
)
@click.option(
    "--memory-threshold", metavar="BYTES", callback=parsed(parse_threshold),
    help="Write a row whenever the memory held has changed by so much: a number, or 64K, 1M, 2G; at least 64K. "
    f"[default: {DEFAULT_THRESHOLD}]",
)  # fmt: skip
@click.option(
    "--gpu/--no-gpu", default=True,
    help="Read NVIDIA GPUs where there is a driver (the default): use, memory, power. Or leave them alone.",
)  # fmt: skip
@click.option("--sources/--no-sources", default=True, help="Store the text of source files (the default), or do not.")
@click.option(
    "--start-paused", is_flag=True, help="Record nothing until the program calls tachograph.recorder.resume()."
)
@click.option(
    "--children/--no-children", default=True,
    help="Record the processes that the program starts as well (the default), or its first process only.",
)  # fmt: skip
@click.option(
    "--include", multiple=True, metavar="NAME",
    help="Record only Python processes of this name: of the script, module or interpreter; * and ? stand for anything. "
    "Can be repeated.",
)  # fmt: skip
@click.option(
    "--exclude", multiple=True, metavar="NAME",
    help="Do not record Python processes of this name. Can be repeated.",
)  # fmt: skip
@click.option(
    "--rotate", metavar="TIME|SIZE", callback=parsed(parse_rotate),
    help="For programs that run for days: begin a new window after so much time (30s, 10m, 1h, 1d) or after so much "
    "was written (500KB, 200MB, 1GB). DIR.tacho is the present window; closed ones are beside it as DIR.0001.tacho, "
    "DIR.0002.tacho and so on, each a whole recording.",
)  # fmt: skip
@click.option(
    "--keep", metavar="N", callback=parsed(parse_keep),
    help="With --rotate: how many closed windows are kept; older ones of this run are deleted. "
    f"[default: {DEFAULT_KEEP}]",
)  # fmt: skip
@click.option(
    "--snapshot-signal", metavar="NAME", callback=parsed(parse_signal),
    help="With --rotate: when this signal (USR1, USR2, RTMIN+3) comes to this command, the present window is closed, "
    "and it and the kept ones are never deleted. The signal is not passed on to the program any more. "
    "tachograph.recorder.snapshot() does the same from inside the program.",
)  # fmt: skip
@click.option("-f", "--force", is_flag=True, help="Replace an existing recording.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print the line at the end.")
def record(target: Target | None, **typed: Any) -> None:
    """Run a program and record where its Python's time goes, who holds memory, and what is copied.

    The program is a SCRIPT, a module (-m MODULE) or code (-c CODE), as with python itself, or any COMMAND. Whatever
    follows belongs to it. It runs as it would without tachograph, and the exit status is its own. The Python processes
    that it starts are recorded as well.
    """
    source = click.get_current_context().get_parameter_source("memory_threshold")
    if source is ParameterSource.DEFAULT_MAP and (typed["cpu_only"] or typed["sampler"] != "native"):
        typed["memory_threshold"] = None  # the project's, for when memory is recorded
    run(Options(**typed), target)
