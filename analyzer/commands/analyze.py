"""``tachograph analyze``: where a recorded program spent its time."""

from __future__ import annotations

from dataclasses import dataclass

import click

from .common import RECORDING_HELP, find_recording, one_line_errors

RULES = ("auto", "native", "delay", "opcode", "pc-only")
SORTS = ("cpu", "python", "native", "kernel", "wait", "total")


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed."""

    recording: str | None
    scope: str | None
    attribution: str
    thread: str | None
    start: float | None
    end: float | None
    sort: str
    top: int | None
    json: str | None


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph analyze                              the newest recording here\n"
    "  tachograph analyze run.tacho --scope all        libraries' own lines too\n"
    "  tachograph analyze run.tacho --scope numpy      only numpy's lines are charged\n"
    "  tachograph analyze run.tacho --from 10 --to -5  without the first 10 s and the last 5 s\n"
    "  tachograph analyze run.tacho --thread main --sort wait\n"
    "  tachograph analyze run.tacho.zip --json - | jq '.lines[0]'",
    help="Show where a recorded program spent its CPU time and its waiting, line by line.\n\n" + RECORDING_HELP,
)
@click.argument("recording", required=False)
@click.option(
    "--scope",
    metavar="project|all|GLOB",
    help="Whose lines are charged: the time of other code goes to the nearest caller in scope. 'project' leaves out the"
    " standard library and installed packages; a GLOB matches paths, ends of paths and folder names."
    "  [default: project, or all if little time is the project's]",
)
@click.option(
    "--attribution",
    type=click.Choice(RULES),
    default="auto",
    show_default=True,
    help="How Python is told from native: 'native' by program counter and opcode, 'delay' by the delay of signals (for"
    " recordings with --sampler signal), 'opcode' by opcode alone, 'pc-only' by program counter alone.",
)
@click.option("--thread", metavar="NAME|TID", help="Only this thread: its name (a glob), its id, or 'main'.")
@click.option(
    "--from", "start", type=float, metavar="S", help="Only from this second on; negative counts from the end."
)
@click.option("--to", "end", type=float, metavar="S", help="Only up to this second; negative counts from the end.")
@click.option("--sort", type=click.Choice(SORTS), default="cpu", show_default=True, help="What comes first.")
@click.option(
    "--top", type=click.IntRange(1), metavar="N", help="Show the best N lines instead of those of at least 1 %."
)
@click.option("--json", metavar="FILE|-", help="Write everything as JSON to a file, or to standard output.")
@one_line_errors
def analyze(**typed: object) -> None:
    """Shows a profile."""
    run(Options(**typed))  # type: ignore[arg-type]


def run(options: Options) -> None:
    """Does what the options say."""
    from ..attribution import Attribution
    from ..build import build_profile
    from ..profile import Question
    from ..recording import Recording

    question = Question(
        options.scope, options.thread, options.start, options.end, attribution=Attribution(options.attribution)
    )
    with Recording.open(find_recording(options.recording)) as recording:
        profile = build_profile(recording, question)
    if options.json is not None:
        from ..render.json_document import write

        write(profile, options.json, top=options.top, sort=options.sort)
        return
    from rich.console import Console

    from ..render.selection import Sort
    from ..render.terminal import show

    show(profile, Console(highlight=False, markup=False, emoji=False), Sort(options.sort), options.top)
