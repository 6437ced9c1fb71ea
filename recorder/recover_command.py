"""``tachograph recover``."""

from __future__ import annotations

from pathlib import Path

import click

from tachograph.recorder.problems import one_line
from tachograph.recorder.recover import recover_recording
from tachograph.recorder.waiting import waiting


@click.command(epilog="\b\nExamples:\n  tachograph recover run.tacho\n  tachograph recover --quiet run.tacho")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR.tacho")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if all is well.")
def recover(directory: Path, *, quiet: bool) -> None:
    """Finish a recording that a crash, a kill or a full disk left unfinished.

    Nothing that is whole is lost. 'tachograph analyze' reads an unfinished recording as well, without changing it; on
    the machine where it was recorded, this command adds the names of native functions and the sources.
    """
    with waiting(f"recovering {one_line(str(directory))}"):
        line = recover_recording(directory)
    if not quiet:
        click.echo(f"tachograph: {line}", err=True)
