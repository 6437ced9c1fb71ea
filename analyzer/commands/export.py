"""``tachograph export``: a recording in the format of another tool."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click

from tachograph.format import FormatError

from ..recording.question_options import ExportFormat, Metric
from .common import RECORDING_HELP, find_recording, one_line_errors, process_option, thread_option, window_options
from .progress import progress


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed."""

    format: str
    recording: str | None
    output: str | None
    metric: str
    scope: str
    thread: str | None
    process: tuple[str, ...]
    start: float | None
    end: float | None
    lines: bool
    native: bool


def _formats() -> str:
    """The formats and what reads them, in words."""
    *most, last = (f"{each} ({each.doc})" for each in ExportFormat)
    return f"{', '.join(most)} or {last}"


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph export speedscope                      the newest recording here\n"
    "  tachograph export pprof run.tacho -o run.pb.gz    go tool pprof -http=: run.pb.gz\n"
    "  tachograph export collapsed run.tacho -o - | flamegraph.pl > run.svg\n"
    "  tachograph export firefox run.tacho --metric wait --thread 'worker*'\n"
    "  tachograph export csv run.tacho --scope project --from 10 --to -5",
    help="Write a recording in the format of another tool, one metric at a time.\n\n"
    f"FORMAT is {_formats()}.\n\n" + RECORDING_HELP,
)
@click.argument("format", type=click.Choice([*map(str, ExportFormat)]), metavar="FORMAT")
@click.argument("recording", required=False, type=click.Path())
@click.option(
    "-o", "--output", metavar="FILE|-", help="Where to write; '-' is standard output.  [default: named after RECORDING]"
)
@click.option(
    "--metric",
    type=click.Choice([*map(str, Metric)]),
    default="cpu",
    show_default=True,
    help="What is exported: CPU time, waiting, bytes that were allocated, held when the footprint was highest (live),"
    " when most was resident (resident) or at the end (end), or copied.",
)
@click.option(
    "--scope",
    default="all",
    show_default=True,
    metavar="project|all|GLOB",
    help="Whose frames are shown: what others do is on the nearest caller in scope, as in 'analyze'.",
)
@thread_option
@process_option
@window_options
@click.option("--lines", is_flag=True, help="Tell the lines of a function apart where FORMAT does not always do so.")
@click.option("--native", is_flag=True, help="Show native functions too, as frames at their places in the call paths.")
@one_line_errors
def export(**typed: object) -> None:
    """Writes a recording in another format."""
    run(Options(**typed))  # type: ignore[arg-type]


def run(options: Options) -> None:
    """Does what the options say."""
    from .. import exports
    from ..recording.opened import Recording

    path = find_recording(options.recording)
    written = exports.FORMATS[options.format]
    with progress() as watcher, Recording.open(path) as recording:
        recording.watcher = watcher
        extract = exports.prepare(
            recording,
            Metric(options.metric),
            scope=options.scope,
            thread=options.thread,
            process=options.process,
            start_s=options.start,
            end_s=options.end,
        )
        with _target(options.output, path, written.suffix) as (out, name):
            remarks = written.write(extract, exports.Options(lines=options.lines, native=options.native), out)
    for remark in remarks:
        click.echo(f"tachograph: {remark}", err=True)
    if name is not None:
        click.echo(f"tachograph: {extract.metric.doc} of {path.name} in {name}", err=True)


@contextmanager
def _target(output: str | None, recording: Path, suffix: str) -> Iterator[tuple[BinaryIO, str | None]]:
    """The stream to write to, and the file's name; the file appears when it is whole.

    Errors:
        FormatError: it cannot be written, or it was not named and is there already.
    """
    from tachograph.format.atomic import ReplacingFile

    from ..recording.output_file import writing

    if output == "-":
        yield sys.stdout.buffer, None
        sys.stdout.buffer.flush()
        return
    path = Path(output) if output is not None else Path(recording.name.partition(".")[0] + suffix)
    if output is None and path.exists():
        raise FormatError(f"{path} exists already: say where to write with --output")
    with writing(path), ReplacingFile(path) as file:
        yield file.stream, str(path)  # type: ignore[misc]  # a raw stream is binary
