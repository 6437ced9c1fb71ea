"""``tachograph record``.

Until the program runs, this module imports only what starting it takes: that time is added to every recorded run.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tachograph.recorder.arguments import divide
from tachograph.recorder.problems import Refused
from tachograph.recorder.support import check_support, preload_library
from tachograph.recorder.target import Kind, Target, interpreter, interpreter_flags

if TYPE_CHECKING:
    from tachograph.format import Manifest

SHORTEST_MS, LONGEST_MS = 1.0, 1000.0


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
def record(
    target: Target | None,
    path: Path | None,
    interval_ms: float,
    sampler: str,
    *,
    sources: bool,
    start_paused: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Run a Python program and record where it spends its time.

    The program is a SCRIPT, a module (-m MODULE) or code (-c CODE), as with python itself. Whatever follows belongs
    to it. It runs as it would without tachograph, and the exit status is its own.
    """
    if target is None:
        raise Refused("nothing to record: name a script, -m MODULE or -c CODE")
    python = interpreter()
    check_support(sampler)
    target.check()
    # Not before: where recording is not supported, these modules may not even be imported.
    from tachograph.recorder import launch, output
    from tachograph.recorder.manifests import new_manifest

    mask = launch.hold_signals()
    parameters: dict[str, Any] = {
        "sampler": sampler,
        "interval_ns": round(interval_ms * 1e6),
        "waits": sampler == "native",
        "sources": sources,
        "start_paused": start_paused,
        "segment_size": output.SEGMENT_SIZE,
    }
    manifest = new_manifest(parameters)
    if path is None:
        path, spool = output.claim_numbered(target.recording_stem(), manifest)
    else:
        spool = output.claim(path, manifest, force=force)
    preload = preload_library() if sampler == "native" else None
    settings = launch.Settings(spool, sampler, parameters["interval_ns"], start_paused, output.SEGMENT_SIZE, preload)
    try:
        output.probe(spool)
        number = launch.interrupted()
        if number is None:
            arguments = [*interpreter_flags(sys.orig_argv), *target.command()]
            pid = launch.start(python, arguments, settings.environment(os.environ), mask)
    except Refused:
        output.discard(path)
        raise
    if number is not None:
        output.discard(path)
        launch.end_like(-number)
    _accompany(path, pid, target, manifest, quiet=quiet)


def _accompany(path: Path, pid: int, target: Target, manifest: Manifest, *, quiet: bool) -> None:
    """Stay with the program until its end, finish the recording, and end in the same way. Does not return."""
    from tachograph.recorder import launch
    from tachograph.recorder.session import Session
    from tachograph.recorder.summary import say, summary

    code = target.what if target.kind is Kind.CODE else None
    session = Session(path.absolute(), pid, manifest, target.command(), code)
    session.begin()
    status = launch.exit_status(launch.Watch(pid).until_end())
    try:
        outcome = session.end(status)
        if not quiet or outcome.unfinished or outcome.not_recorded:
            say(summary(target.title(), path, outcome))
    finally:
        # Even a mistake of ours (shown in full, for a report) must not change what the program's caller sees.
        if sys.exc_info()[1] is not None:
            import traceback

            traceback.print_exc()
        launch.end_like(status)
