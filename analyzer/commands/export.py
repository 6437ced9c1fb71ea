"""``tachograph export`` and ``tachograph scrub``: a recording in another tool's format, or without private parts."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from tachograph.format import FormatError
from tachograph.grouped_help import GroupedCommand

from ..recording.question_options import DROPPABLE, HEAP, HEAP_MOMENTS, WITHOUT, ExportFormat, Metric
from .common import (
    FILTERS,
    OUTPUT,
    RECORDING_HELP,
    SHOW,
    THREAD_HELP,
    find_recording,
    one_line_errors,
    option,
    process_option,
    progress,
    thread_option,
    window_options,
)

if TYPE_CHECKING:
    from ..exports import Extract


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    format: str
    recording: str | None
    output: str | None
    push: str | None
    metric: str
    at: str | None
    scope: str
    thread: str | None
    process: tuple[str, ...]
    start: float | None
    end: float | None
    lines: bool
    native: bool


def _formats() -> str:
    """The formats and their readers, in words."""
    *most, last = (f"{each} ({each.doc})" for each in ExportFormat)
    return f"{', '.join(most)} or {last}"


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph export speedscope                    the newest recording here\n"
    "  tachograph export pprof run.tacho -o run.pb.gz  go tool pprof run.pb.gz\n"
    "  tachograph export collapsed run.tacho -o - | flamegraph.pl > run.svg\n"
    "  tachograph export firefox run.tacho --metric wait --thread 'worker*'\n"
    "  tachograph export csv run.tacho --scope project --from 10 --to -5\n"
    "  tachograph export pprof run.tacho --push http://localhost:4040/ingest",
    help="Write a recording in the format of another tool, one metric at a time.\n\n"
    f"FORMAT is {_formats()}.\n\n" + RECORDING_HELP + " All options: tachograph help cli",
)
@click.argument("format", type=click.Choice([*map(str, ExportFormat)]), metavar="FORMAT")
@click.argument("recording", required=False, type=click.Path())
@option("-o", "--output", group=OUTPUT, metavar="FILE|-", help="Where to write. [default: named after RECORDING]")
@option("--push", group=OUTPUT, metavar="URL", help="Send it to Pyroscope, Parca or a collector.")
@option(
    "--metric",
    group=SHOW,
    type=click.Choice([*map(str, Metric), HEAP]),
    metavar="NAME",
    default="cpu",
    help="cpu, wait, allocated, live, copied, heap, ...",
)
@option(
    "--at",
    group=SHOW,
    type=click.Choice([*HEAP_MOMENTS]),
    help="Moment of what a heap has in use. [default: peak]",
)
@option("--lines", group=SHOW, is_flag=True, help="Distinguish the lines of a function.")
@option("--native", group=SHOW, is_flag=True, help="Show native functions too.")
@option(
    "--scope",
    group=FILTERS,
    default="all",
    metavar="project|all|GLOB",
    help="Code whose frames are shown. [default: all]",
)
@thread_option
@process_option
@window_options
@one_line_errors
def export(**typed: object) -> None:
    """Writes a recording in another format."""
    run(Options(**typed))  # type: ignore[arg-type]


def run(options: Options) -> None:
    """Does what the options say."""
    from .. import exports
    from ..recording.opened import Recording

    _check(options)
    path = find_recording(options.recording)
    heap = options.metric == HEAP
    with progress() as watcher, Recording.open(path) as recording:
        recording.watcher = watcher
        extract = exports.prepare(
            recording,
            HEAP_MOMENTS[options.at or "peak"] if heap else Metric(options.metric),
            scope=options.scope,
            thread=options.thread,
            process=options.process,
            start_s=options.start,
            end_s=options.end,
            heap=heap,
        )
        remarks, places = (_write if options.push is None else _send)(options, extract, path)
    for remark in remarks:
        click.echo(f"tachograph: {remark}", err=True)
    for place in places:
        click.echo(f"tachograph: {extract.doc} of {path.name} {place}", err=True)


def _write(options: Options, extract: Extract, recording: Path) -> tuple[list[str], list[str]]:
    """Write a file; returns remarks, and its path."""
    from .. import exports

    written = exports.FORMATS[options.format]
    with _target(options.output, recording, written.suffix) as (out, name):
        remarks = written.write(extract, exports.Options(lines=options.lines, native=options.native), out)
    return remarks, [] if name is None else [f"in {name}"]


def _send(options: Options, extract: Extract, recording: Path) -> tuple[list[str], list[str]]:
    """Send it to a server, and write a file if one is named; returns remarks, and the destination."""
    from .. import exports
    from ..exports.push import push

    data, places = io.BytesIO(), []
    written = exports.FORMATS[options.format]
    remarks = written.write(extract, exports.Options(lines=options.lines, native=options.native), data)
    if options.output is not None:
        with _target(options.output, recording, written.suffix) as (out, name):
            out.write(data.getvalue())
        places += [] if name is None else [f"in {name}"]
    server, warnings = push(options.format, extract, data.getvalue(), options.push or "", os.environ)
    return [*remarks, *warnings], [*places, f"pushed to {server}"]


def _check(options: Options) -> None:
    """Refuses options that do not go together.

    Errors:
        FormatError: they do not.
    """
    from .. import exports
    from ..exports.push import PUSHABLE

    if options.metric == HEAP and not exports.FORMATS[options.format].several:
        raise FormatError(
            f"{options.format} has one value for each stack, a heap four: choose"
            f" {' or '.join(name for name, each in exports.FORMATS.items() if each.several)},"
            " or --metric allocated, live or end"
        )
    if options.at is not None and options.metric != HEAP:
        raise FormatError("--at is for --metric heap; what was held at a moment are the metrics live, resident and end")
    if options.push is not None and options.format not in PUSHABLE:
        raise FormatError(f"--push sends {' or '.join(PUSHABLE)}; {options.format} is written to a file")


@contextmanager
def _target(output: str | None, recording: Path, suffix: str) -> Iterator[tuple[BinaryIO, str | None]]:
    """The stream to write to, and the file's name; the file appears when it is whole, a device or a pipe stays one.

    Errors:
        FormatError: it cannot be written, or it was not named and is there already.
    """
    from ..recording.output_file import private_file, writing

    if output == "-":
        yield sys.stdout.buffer, None
        sys.stdout.buffer.flush()
        return
    path = Path(output) if output is not None else Path(recording.name.partition(".")[0] + suffix)
    if output is None and path.exists():
        raise FormatError(f"{path} exists already: say where to write with --output")
    with writing(path), private_file(path) as file:
        yield file, str(path)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph scrub run.tacho                              drop all of them\n"
    "  tachograph scrub run.tacho --drop sources --drop argv   only these\n"
    "  tachograph scrub run.tacho --drop none --from 10 --to 20 -o part.tacho\n"
    "  tachograph scrub run.tacho --thread 'worker*' --without waits",
    help="Write a copy of a recording that can be handed on: without source texts, paths, command lines, the host,"
    " names and labels, or only a part of it. It can be analyzed like any other, and its manifest says what was"
    " removed.\n\n" + RECORDING_HELP,
)
@click.argument("recording", required=False, type=click.Path())
@click.option("-o", "--output", metavar="DIRECTORY", help="Where to write.  [default: NAME.scrubbed.tacho]")
@click.option(
    "--drop",
    type=click.Choice([*DROPPABLE, "none"]),
    multiple=True,
    help="Only these, may be repeated: source texts; paths of files (replaced, still in or out of the project);"
    " the command line; the host's name; names of functions and threads (replaced);"
    " labels.  [default: all of them]",
)
@click.option(
    "--without",
    type=click.Choice([*WITHOUT]),
    multiple=True,
    help="Leave out waiting, memory with its blocks and copies, or GPUs; may be repeated.",
)
@click.option("--thread", metavar="NAME|TID", help=f"{THREAD_HELP}; without memory.")
@process_option
@window_options
@one_line_errors
def scrub(
    recording: str | None,
    output: str | None,
    drop: tuple[str, ...],
    without: tuple[str, ...],
    thread: str | None,
    process: tuple[str, ...],
    start: float | None,
    end: float | None,
) -> None:
    """Writes a scrubbed copy."""
    from ..exports.scrub import make_request
    from ..exports.scrub import scrub as write
    from ..recording.opened import Recording

    path = find_recording(recording)
    target = Path(output) if output is not None else Path(f"{path.name.partition('.')[0]}.scrubbed.tacho")
    with progress() as watcher, Recording.open(path) as opened:
        opened.watcher = watcher
        request = make_request(
            opened,
            drop=[each for each in drop or DROPPABLE if each != "none"],
            without=without,
            thread=thread,
            process=process,
            start_s=start,
            end_s=end,
        )
        write(opened, request, target)
    click.echo(f"tachograph: {path.name} scrubbed, in {target}; what was removed is in its manifest", err=True)
