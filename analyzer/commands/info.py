"""``tachograph info``: the contents of a recording."""

from __future__ import annotations

import click

from .common import RECORDING_HELP, find_recording, one_line_errors


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  tachograph info\n  tachograph info run.tacho\n  tachograph info run.tacho.zip --json -\n"
    "  tachograph info --verify run.tacho.zip",
    help="Show what is in a recording: size and rows of its tables, parameters, what was lost.\n\n" + RECORDING_HELP,
)
@click.argument("recording", required=False, type=click.Path())
@click.option("--json", "target", metavar="FILE|-", help="Write it as JSON to a file, or to standard output.")
@click.option("--verify", is_flag=True, help="Read every table whole, and compare checksums, first.")
@one_line_errors
def info(recording: str | None, target: str | None, verify: bool) -> None:
    """Show the contents of a recording."""
    from rich.console import Console

    from ..recording.opened import Recording
    from ..recording.output_file import write_text
    from ..render.json_document import pieces
    from ..render.terminal.process_lines import facts, text
    from ..render.terminal.style import Style

    with Recording.open(find_recording(recording)) as opened:
        if verify:
            tables, checked = opened.verify()
            click.echo(
                f"{tables} tables are as the specification says, {checked} have a checksum that agrees", err=True
            )
        document = facts(opened)
    if target is not None:
        write_text(pieces(document), target)
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        for line in text(document):
            Style.of(console).print(console, line)
