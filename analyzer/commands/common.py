"""Shared parts of the commands: options, finding the recording, one-line errors, and the progress bar.

The bar shows the progress of a long command, on a terminal only, and is gone when the command is done.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from tachograph.format import FormatError
from tachograph.grouped_help import GroupedOption

from ..recording.question_options import DEFAULT_TOKENS, LEAST_TOKENS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.progress import Progress

    from ..recording.opened import Watcher


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=Callable[..., Any])

RECORDING_HELP = "RECORDING is a .tacho directory or a zip archive of one; without it, the newest in this folder."

EXTRA = ("pandas", "rich", "numpy", "pyarrow", "jinja2", "markupsafe", "matplotlib")
"""Modules that an installation without ``[analyze]`` lacks."""


class Failure(click.ClickException):
    """Bad input: one line on standard error, exit status 2."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Prints the line."""
        click.echo(f"tachograph: {self.format_message()}", err=True)


def one_line_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn errors of a recording, and a missing extra, into one line and exit status 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except FormatError as error:
            raise Failure(str(error)) from None
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in EXTRA:
                raise
            raise Failure(f"this needs {error.name}, which is missing: pip install 'tachograph[analyze]'") from None
        except BrokenPipeError:
            # The reader (head, less) has closed the pipe.
            raise SystemExit(0) from None

    return wrapped


def find_recording(given: str | None) -> Path:
    """The recording that was named, or the newest in the current folder.

    Errors:
        FormatError: none was named, and there is none.
    """
    if given is not None:
        named = Path(given)
        beside = (named.with_name(f"{named.name}{end}") for end in (".tacho", ".tacho.zip") if named.name)
        return named if named.exists() else next((path for path in beside if path.exists()), named)
    recordings = recordings_here()
    if not recordings:
        raise FormatError("there is no recording in this folder: name one, or make one with 'tachograph record'")
    return recordings[-1]


def recordings_here(folder: Path = Path()) -> list[Path]:
    """The recordings of a folder, by default the current one, oldest first."""
    # record --output NAME takes any name.
    recordings = [path.parent for path in folder.glob("*/manifest.json") if _is_recording(path.parent)]
    recordings += [path for path in folder.glob("*.tacho.zip") if path.is_file()]
    return sorted(recordings, key=lambda path: (path.stat().st_mtime_ns, path.name))


def _is_recording(folder: Path) -> bool:
    """True if a folder with a manifest is a recording of ours, and not something else that has one."""
    return folder.suffix == ".tacho" or (folder / "processes.parquet").is_file() or (folder / "spool").is_dir()


def complete_process(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names and ids of the processes of the recording that was typed; nothing if it cannot be read."""
    from click.shell_completion import CompletionItem

    try:
        from ..recording.opened import Recording

        with Recording.open(find_recording(ctx.params.get("recording"))) as recording:
            names = recording.all_processes.name
            pids = [str(pid) for pid in recording.all_processes.pid.tolist()]
    except (FormatError, ModuleNotFoundError):
        return []
    hints = dict.fromkeys(names, "") | dict(zip(pids, names, strict=True))
    return [CompletionItem(text, help=hint) for text, hint in hints.items() if text.startswith(incomplete)]


SHOW, FILTERS, OUTPUT = "What to show", "Filters", "Output"
"""Groups of options in ``--help``."""


def option(*names: str, group: str, **rest: Any) -> Callable[[C], C]:
    """An option in a group of the help."""
    return click.option(*names, cls=GroupedOption, group=group, **rest)


process_option = option(
    "--process",
    group=FILTERS,
    metavar="ID|PID|NAME",
    multiple=True,
    shell_complete=complete_process,
    help="Only this process; may be repeated.",
)
"""The option of all commands that can look at some processes only."""


def markdown_options(command: C) -> C:
    """Adds the options of a summary, ``--markdown`` and ``--tokens``."""
    target = option(
        "--markdown", group=OUTPUT, metavar="FILE|-", type=click.Path(), help="Write a short summary in Markdown."
    )
    bound = option(
        "--tokens",
        group=OUTPUT,
        type=click.IntRange(LEAST_TOKENS),
        metavar="N",
        help=f"Length of --markdown. [default: {DEFAULT_TOKENS}]",
    )
    return target(bound(command))


def check_markdown(markdown: str | None, tokens: int | None, json: str | None) -> None:
    """Refuses options of a summary that do not go together.

    Errors:
        Failure: they do not.
    """
    if tokens is not None and markdown is None:
        raise Failure("--tokens is the length of --markdown: name a file, or - for standard output")
    if markdown == json == "-":
        raise Failure("--markdown and --json cannot both be standard output")


THREAD_HELP = "Only this thread: a name (a glob), id or 'main'"

thread_option = option("--thread", group=FILTERS, metavar="NAME|TID", help=f"{THREAD_HELP}.")


def window_options(command: C) -> C:
    """Adds the options of a time window, ``--from`` and ``--to``."""
    first = option(
        "--from", "start", group=FILTERS, type=float, metavar="S", help="Only from this second on; -5: the last 5."
    )
    last = option("--to", "end", group=FILTERS, type=float, metavar="S", help="Only up to this second.")
    return first(last(command))


AFTER_S = 1.0
"""Shorter commands show no bar."""


@contextmanager
def progress() -> Iterator[Watcher | None]:
    """A watcher that draws a bar on standard error; None unless that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.close()


class _Bar:
    """Nothing is drawn, nor even imported, before ``AFTER_S`` have passed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._what, self._done, self._of = "reading", 0, 0
        self._drawn: Progress | None = None
        self._timer = threading.Timer(AFTER_S, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def step(self, what: str) -> None:
        """Show the current step."""
        with self._lock:
            self._what, self._done, self._of = what, 0, 0
            self._update()

    def read(self, table: str, done: int, of: int) -> None:
        """Says how far a table has been read."""
        with self._lock:
            self._what, self._done, self._of = f"reading {table}", done, of
            self._update()

    def close(self) -> None:
        """Removes the bar."""
        self._timer.cancel()
        self._timer.join()
        if self._drawn is not None:
            self._drawn.stop()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        # What is printed meanwhile is left alone: standard output may be a file.
        drawn = Progress(
            *columns,
            console=console,
            transient=True,
            refresh_per_second=5,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        drawn.add_task(self._what, total=None)
        with self._lock:
            self._drawn = drawn
            self._update()
        drawn.start()

    def _update(self) -> None:
        if self._drawn is not None:
            (task,) = self._drawn.tasks
            task.description, task.completed, task.total = self._what, self._done, self._of or None
