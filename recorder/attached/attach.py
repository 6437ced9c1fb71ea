"""``tachograph attach``: records a program that runs already, for a while."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from tachograph.format import FormatError, Manifest
from tachograph.grouped_help import GroupedCommand, GroupedOption
from tachograph.quantities import parse_seconds
from tachograph.recorder import clock
from tachograph.recorder.attached.beside_attach import start_beside
from tachograph.recorder.attached.connection import Connection
from tachograph.recorder.attached.doors import check_can_be_asked
from tachograph.recorder.attached.injection import entered
from tachograph.recorder.attached.keywords import keywords, options_from, works_inside
from tachograph.recorder.attached.running_processes import Process, look
from tachograph.recorder.collect.output import MANIFEST, SPOOL, default_path
from tachograph.recorder.collect.running import start_time
from tachograph.recorder.command.messages import bytes_text, say
from tachograph.recorder.command.options import OPTIONS, WHAT
from tachograph.recorder.command.record_command import parameters
from tachograph.recorder.command.target import MAX_NAME
from tachograph.recorder.problems import RecordingError, Refused, one_line
from tachograph.recorder.upload.destination import Destination

EXAMPLES = """\b
Examples:
  tachograph attach 4711
  tachograph attach 4711 --duration 30s -o slow.tacho
  tachograph attach 4711 --cpu-only --interval 5
"""

LONGEST_S = 30 * 86400.0
_END = "; it has ended"
_CLOSED = "; it lives, and ended the recording as it closed all its descriptors or became another program (exec)"
COMPLETION_S = 60.0
"""How long the end of a recording is waited for, where the program itself has ended."""


def seconds(text: str) -> float:
    """A duration such as 30s, 2m or 500ms, in seconds. ValueError, one line, if it is none."""
    value = parse_seconds(text, bare=True)
    if value is None or not 0 < value <= LONGEST_S:
        raise ValueError(f"{text!r} is no duration, such as 30s, 2m or 1h, at most 30d")
    return value


def _seconds(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    try:
        return None if text is None else seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _parameters() -> Iterator[click.Parameter]:
    yield click.Argument(["pid"], type=int, metavar="PID")
    yield GroupedOption(
        ["--duration"], group=WHAT, metavar="TIME", callback=_seconds,
        help="How long: 30s, 2m, 1h. [default: until Ctrl-C]",
    )  # fmt: skip
    for option in parameters():
        if option.name == "path":
            option.metavar = "DIR.tacho"
        if option.name in ("path", "quiet") or works_inside(option.name or ""):
            yield option


def attach(pid: int, duration: float | None, **given: Any) -> None:
    """Ask the process, wait, and have the recording completed."""
    typed = {name: value for name, value in given.items() if _was_typed(name)}
    quiet = bool(typed.pop("quiet", False))
    output = typed.pop("path", None)
    options = _keywords(typed)
    process = look(pid)
    started = start_time(pid)
    check_can_be_asked(process)
    path = _place(process, output, force=bool(options.get("force")))
    with entered(process) as connection:
        beside = start_beside(pid, path)
        try:
            name = None if beside is None else beside.name
            connection.ask("start", path=str(path), options=options, beside=name)
        except Refused:
            if beside is not None:
                beside.kill()
            raise
        begun = time.monotonic()
        lives = _wait(connection, duration, quiet=quiet, title=process.title)
        elapsed = time.monotonic() - begun
        if lives:
            # As long as the tables are being written: the answer comes when they are.
            connection.ask("stop", lambda: beside is not None and beside.lives() and not look(pid).stopped)
    if not lives:
        _wait_until_complete(path)
    if beside is not None:
        beside.wait()
    if not quiet:
        end = "" if lives else _END if start_time(pid) != started else _CLOSED
        say(_summary(process, path, elapsed, end))


def _was_typed(name: str) -> bool:
    context = click.get_current_context()
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _keywords(typed: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the command line as keyword arguments. Raises Refused if they are invalid or conflict."""
    by_field = {field: keyword for keyword, field in keywords().items()}
    given = {
        by_field[name]: dict(each.partition("=")[::2] for each in value) if OPTIONS[name].repeated else value
        for name, value in typed.items()
    }
    try:
        options_from(given)
    except RecordingError as error:
        raise Refused(str(error)) from None
    return given


def _place(process: Process, output: str | None, *, force: bool) -> Path:
    if output is None:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", process.title.removesuffix(".py")).strip("._-")[:MAX_NAME]
        return Path(default_path(stem or "program")).absolute()
    option = OPTIONS["path"]
    assert option.parse is not None
    try:
        path = option.parse(output)
    except ValueError as error:
        raise Refused(f"invalid value for '{' / '.join(option.names)}': {error}") from None
    if isinstance(path, Destination):
        raise Refused(
            "the program writes its recording to a disk: name a directory, and send it with 'tachograph upload'"
        )
    if os.path.exists(path) and not force:
        raise Refused(f"{path} exists; use --force to replace it, or name another place with -o")
    return Path(path).absolute()


def _wait(connection: Connection, duration: float | None, *, quiet: bool, title: str) -> bool:
    """Wait for the end of the time, a signal or the end of the program; True if it lives."""
    with _interruptible():
        try:
            if not quiet and duration is None:
                click.echo(f"tachograph: recording {one_line(title)}; Ctrl-C ends the recording", err=True)
            return not select.select([connection], [], [], duration)[0]
        except KeyboardInterrupt:
            return True


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end the recording as Ctrl-C does."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_until_complete(path: Path) -> None:
    """The process beside the program completes the recording when the program has ended."""
    limit = time.monotonic() + COMPLETION_S
    while (path / SPOOL).exists() and time.monotonic() < limit:
        clock.rest(0.05)


def _summary(process: Process, path: Path, elapsed: float, end: str) -> str:
    where = shlex.quote(str(path))
    try:
        state = Manifest.read(path / MANIFEST).state
    except (FormatError, OSError):
        state = "gone"
    title = one_line(process.title)
    if state != "complete":
        return f"{title} was recorded, but the recording in {where} is not complete: tachograph recover {where}"
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    return (
        f"recorded {elapsed:.1f} s of {title} (process {process.pid}), {bytes_text(size)} in {where}{end}; "
        f"next: tachograph analyze {where}"
    )


attach_command = GroupedCommand(
    "attach",
    params=list(_parameters()),
    callback=attach,
    help="""Record a program that runs already: process PID, for a while.

The program is this user's. It stands by (tachograph standby, TACHOGRAPH_STANDBY=1), or may be traced by this command,
which runs under the same CPython; 'tachograph ps' says which. It goes on as if nothing had been there; the recording
ends when the time is over, with Ctrl-C, or when this command is killed.
""",
    epilog=EXAMPLES,
)
