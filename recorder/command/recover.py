"""``tachograph recover``: finishes the recording that a crash left."""

from __future__ import annotations

import os
import shlex
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tachograph.format import FormatError, SpoolDirectory
from tachograph.format.spool.directory import PARTS_NAME
from tachograph.format.spool.ended_files import ENDED_NAME
from tachograph.recorder.collect.descendants import recorded_processes, why_stopped_early
from tachograph.recorder.collect.finish import UnfinishedError, finish
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.collect.output import MANIFEST, SPOOL
from tachograph.recorder.collect.removal import remove_spool
from tachograph.recorder.collect.running import (
    living_processes,
    program_began_at,
    was_made_here,
    was_made_here_by_us,
    working_directory,
)
from tachograph.recorder.collect.source_texts import SourceRights, SourceStore
from tachograph.recorder.command.messages import bytes_text, lost, processes, recorded, waiting
from tachograph.recorder.problems import Refused, one_line, reason
from tachograph.recorder.rotation.journal import go_on, present_window

if TYPE_CHECKING:
    from tachograph.format import Manifest


ELSEWHERE = (
    "source files and names of native functions are missing: only the user who made a recording can add them, on the"
    " machine and in the directory where it was made"
)


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


def recover_recording(directory: Path) -> str:
    """Finish the recording in ``directory``; a line about what was done.

    Raises Refused if there is no recording, if it is still being recorded, or if the tables cannot be written.
    """
    check_directory(directory)
    try:
        # Through a link that the user has typed, but through none that is put in its place afterwards.
        with HeldFolder.open(os.path.realpath(directory)) as folder:
            return _recover(directory, folder)
    except OSError as error:
        raise Refused(f"cannot recover {directory}: {reason(error)}; nothing is lost") from None


def _recover(directory: Path, folder: HeldFolder) -> str:
    here = Path(folder.here)
    manifest = read_manifest(directory, here)
    where, spool = shlex.quote(str(directory)), here / SPOOL
    for each in (spool, spool / PARTS_NAME):
        if each.is_symlink():
            raise Refused(
                f"cannot recover {directory}: {each.relative_to(here)} is a symbolic link, and what it leads to may be"
                " another recording's; nothing was changed"
            )
    if manifest.state != "recording":
        remove_spool(spool)  # one that is left lost only the last step of its own finish
        return f"{where} is finished already ({manifest.state}); next: tachograph analyze {where}"
    living = living_processes(spool)
    if living:
        which = ", ".join(map(str, living))
        raise Refused(f"{directory} is still being recorded (process {which}): wait for its end")
    if not spool.is_dir():
        raise Refused(f"{directory} is unfinished and has no spool, so there is nothing to recover it from")
    try:
        stop_descendants(spool)
        go_on(folder)
        manifest.window = present_window(SpoolDirectory(spool), manifest.window)
    except (OSError, FormatError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot recover {directory}: {why}; nothing is lost") from None
    sources = sources_of(spool)
    manifest.notes.append(
        "recovered after the recording command had not finished it:"
        " processes that began in its last second may be missing"
    )
    if sources is None:
        manifest.notes.append(ELSEWHERE)
    if (stopped := why_stopped_early(recorded_processes(spool))) is not None:
        manifest.notes.append(stopped)
    try:
        finished = finish(here, manifest, sources, state="recovered")
    except UnfinishedError as error:
        raise Refused(f"cannot recover {directory}: {error}; nothing was changed") from None
    size = bytes_text(finished.size)
    what = f"{processes(finished)}: {recorded(finished)}"
    return f"recovered {where}{what}, {size}; {lost(finished)}; next: tachograph analyze {where}"


def sources_of(spool: Path) -> SourceStore | None:
    """The sources of a recording that this user made here; None for any other, which may name any file."""
    if not was_made_here_by_us(spool):
        return None
    return SourceStore(
        working_directory(spool),
        not_after_ns=last_write_ns(spool),
        rights=SourceRights(),
        began_ns=program_began_at(spool),
    )


def stop_descendants(spool: Path) -> None:
    """Ask descendants of the program that still record to stop, on the machine where they run."""
    from tachograph.recorder.collect.descendants import stop_recording

    if was_made_here(spool):
        stop_recording(SpoolDirectory(spool))


def check_directory(directory: Path) -> None:
    """Refuse what is not a directory that could be a recording."""
    if directory.is_file():
        unpack = "; unpack it first" if directory.suffix == ".zip" else ""
        raise Refused(f"{directory} is a file; recover works on the directory of a recording{unpack}")
    if not directory.is_dir():
        raise Refused(f"there is no recording {directory}")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise Refused(f"{directory} cannot be written by this user; copy it, and recover the copy")
    # Some directories that are none of ours have a "spool", too: /var for one.
    if not (directory / MANIFEST).exists() and not _written(directory / SPOOL):
        raise Refused(f"{directory} is not a recording: it has neither a {MANIFEST} nor a spool with segments")


def read_manifest(directory: Path, here: Path) -> Manifest:
    """The manifest of the recording that is ``here``, or a new one where the crash came before it was written."""
    from tachograph.format import Manifest

    if not (here / MANIFEST).exists():
        return Manifest(uuid=str(uuid.uuid4()))
    try:
        return Manifest.read(here / MANIFEST, os.path.join(directory, MANIFEST))
    except FormatError as error:
        raise Refused(str(error)) from None


def last_write_ns(spool: Path) -> int:
    """Time of the last write into the spool, ns since the epoch: sources that changed later are not what ran."""
    return max([spool.stat().st_mtime_ns, *(entry.lstat().st_mtime_ns for entry in _written(spool))])


def _written(spool: Path) -> list[Path]:
    """The files that hold what processes have recorded."""
    return [*spool.glob("*.seg"), *spool.glob(ENDED_NAME)]
