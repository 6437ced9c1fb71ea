"""``tachograph scrub``: a recording without what is private."""

from __future__ import annotations

from pathlib import Path

import click

from ..recording.question_options import DROPPABLE, WITHOUT
from .common import RECORDING_HELP, THREAD_HELP, find_recording, one_line_errors, process_option, window_options
from .progress import progress


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
