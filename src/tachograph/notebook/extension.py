"""The magics ``%%tachograph`` and ``%tachograph``, on recording in process and on the analyzer's reports.

The code of a cell stays what it would be without them: it is compiled and run by IPython itself, under the numbers of
its own lines, with ``await``, its own tracebacks and its own result. Only the line of the magic is replaced: by a call
that begins the recording, which the end of the cell ends, or by a ``with`` around the statement.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tokenize
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import IPython
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import TokenTransformBase, assemble_continued_line, find_end_of_continued_line
from IPython.display import display

from tachograph.notebook import cell_runs as kept
from tachograph.notebook.cells import Cells
from tachograph.notebook.reading import UnreadError, bundle, read
from tachograph.notebook.words import Words, WrongWordsError, help_text, read_words, verb_of
from tachograph.recorder import Span, span
from tachograph.recorder.attached import recording
from tachograph.recorder.problems import RecordingError, one_line

if TYPE_CHECKING:
    from types import TracebackType

    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell


ATTRIBUTE = "tachograph"
"""Name of the attribute of the shell that the lines call."""

OLDEST = (8, 12)
"""The version of IPython from which on its events and names of cells are those that are used here."""

NEEDED = ("pandas", "numpy", "jinja2", "rich")
"""What reports are made with, in another process."""


def load(shell: InteractiveShell) -> None:
    """``%load_ext tachograph``."""
    missing = next((module for module in NEEDED if find_spec(module) is None), None)
    if missing is not None:
        raise UsageError(
            f"tachograph needs {missing}, which is not installed here; type: pip install 'tachograph[notebook]'"
        )
    if IPython.version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise UsageError(f"tachograph needs IPython {oldest} or later, and this is {IPython.__version__}")
    if getattr(shell, ATTRIBUTE, None) is None:
        Extension(shell).attach()


def unload(shell: InteractiveShell) -> None:
    """``%unload_ext tachograph``: ends what is being recorded, and gives back all that there is."""
    extension = getattr(shell, ATTRIBUTE, None)
    if isinstance(extension, Extension):
        extension.detach()


class Extension:
    """The magics of one shell. At most one recording is on, begun by a cell, a line or ``%tachograph start``."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._cells = Cells(shell)
        self._runs = kept.Runs()
        self._run: kept.Run | None = None
        self._owner: ExecutionInfo | None = None
        self._until_stopped = False
        self._quiet = False
        self._span: Span | None = None

    def attach(self) -> None:
        """Take up work in the shell."""
        kept.delete_left_over()
        import_module("tachograph.recorder.inprocess.open_spans")  # so no recording meets this import
        shell = self._shell
        setattr(shell, ATTRIBUTE, self)
        shell.register_magic_function(self.magic, "line_cell", "tachograph")
        shell.input_transformers_cleanup.append(transform_cell)
        shell.input_transformer_manager.token_transformers.append(StatementTransform)
        shell.events.register("pre_run_cell", self._cell_begins)
        shell.events.register("post_run_cell", self._cell_ends)
        atexit.register(self._at_exit)

    def detach(self) -> None:
        """Leave the shell as it was."""
        shell = self._shell
        self._at_exit()
        atexit.unregister(self._at_exit)
        for event, callback in (("pre_run_cell", self._cell_begins), ("post_run_cell", self._cell_ends)):
            with suppress(ValueError):
                shell.events.unregister(event, callback)
        for listed, ours in (
            (shell.input_transformers_cleanup, transform_cell),
            (shell.input_transformer_manager.token_transformers, StatementTransform),
        ):
            with suppress(ValueError):
                listed.remove(ours)
        for magics in shell.magics_manager.magics.values():
            magics.pop("tachograph", None)
        delattr(shell, ATTRIBUTE)

    # The lines that ``transform_cell`` and ``StatementTransform`` make call these.

    def cell(self, line: str) -> None:
        """The first line of a cell: record to the cell's end."""
        words = self._words(line)
        if words is None:
            return
        if words.rest:
            _refuse(f"%%tachograph takes options only, not {words.rest!r}: '%tachograph STATEMENT' records one line")
        self._begin(words)
        self._owner = self._cells.innermost

    def line(self, line: str) -> _Line:
        """The context manager around a statement: records while it runs."""
        return _Line(self, line)

    def magic(self, line: str, cell: str | None = None) -> None:
        """Record a cell (%%tachograph) or a statement (%tachograph), and show where its time and memory went.

        %tachograph --help lists all that there is. [tachograph]
        """
        if cell is not None:  # of a program, or below another magic: run as a cell of its own
            self._shell.run_cell(f"%%tachograph {line}\n{cell}", store_history=False)
            return
        verb, rest = verb_of(line)
        if verb == "stop":
            self._stop(rest)
        elif verb == "diff":
            self._diff(rest)
        else:
            words = self._words(rest)
            if words is None:
                return
            if verb == "start":
                if words.rest:
                    _refuse(f"%tachograph start takes options only, not {words.rest!r}")
                self._begin(words)
                self._until_stopped = True
            elif words.rest:
                self._shell.run_cell(f"%tachograph {line}", store_history=False)
            else:
                _refuse("there is nothing to record: %tachograph STATEMENT, or %%tachograph in a cell's first line")

    def end_line(self) -> None:
        """The statement has ended."""
        self._end_and_show()

    def begin_line(self, line: str) -> None:
        """The statement is about to run."""
        words = self._words(line)
        assert words is not None  # a line that asks for help has no statement
        self._begin(words)

    # The shell's events. IPython would show a traceback of ours for an error of a callback.

    def _cell_begins(self, info: ExecutionInfo) -> None:
        self._cells.begins(info)
        if info.store_history:
            self._open_span()

    def _cell_ends(self, result: ExecutionResult | None) -> None:
        self._cells.ends(result)
        if self._cells.innermost is None:
            self._close_span()
        owner = self._owner
        if owner is not None and not self._cells.is_running(owner):
            self._owner = None
            try:
                self._end_and_show()
            except UsageError as error:
                _say(str(error))
        elif self._until_stopped and self._run is not None:
            recording.tell_texts()

    # Recording

    def _words(self, line: str) -> Words | None:
        """The options of a line; None if it asked for help, which is shown."""
        try:
            words = read_words(line)
        except WrongWordsError as error:
            _refuse(str(error))
        if words.help:
            print(help_text())
            return None
        return words

    def _begin(self, words: Words) -> None:
        number = self._cells.number
        if self._run is not None and not self._is_on():
            self._run, self._until_stopped = None, False  # the program itself has ended it
        if self._run is not None:
            how = ": '%tachograph stop' ends that" if self._until_stopped else ", and a recording holds no other"
            _refuse(f"{self._run.name} is being recorded already{how}")
        try:
            path = Path(words.output).expanduser() if words.output else self._runs.new_path(number)
            place = Path(recording.begin(path, words.given, self._cells.of_code))
        except RecordingError as error:
            _refuse(_in_options(str(error)))
        except OSError as error:
            _refuse(f"there is no place for the recording: {error.strerror}")
        self._run = kept.Run(number, self._cells.id_of(number), place)
        self._quiet = words.quiet
        self._open_span()

    def _open_span(self) -> None:
        self._close_span()
        self._span = span(f"In [{self._cells.number}]")
        self._span.__enter__()

    def _close_span(self) -> None:
        if self._span is not None:
            self._span.__exit__(None, None, None)
            self._span = None

    def _is_on(self) -> bool:
        native = sys.modules.get("tachograph.recorder._native")
        claimed = None if native is None else native.claimed()
        return claimed is not None and claimed.pid == os.getpid() and self._run is not None \
            and claimed.path == os.fspath(self._run.path)  # fmt: skip

    def _end(self) -> kept.Run:
        """End the recording, and keep it.

        Errors:
            UsageError: it is not on any more, or could not be completed.
        """
        self._close_span()
        run, on = self._run, self._is_on()
        self._run, self._until_stopped = None, False
        if run is None:
            _refuse("nothing is being recorded: '%tachograph start' begins a recording")
        if on:
            try:
                recording.end()
            except RecordingError as error:
                _refuse(_in_options(str(error)))
            except KeyboardInterrupt:
                _refuse(f"interrupted; the recording is completed in the background: {run.path}")
        self._runs.add(run)
        return run

    def _stop(self, rest: str) -> None:
        if rest.strip():
            _refuse(f"%tachograph stop takes nothing, not {rest.strip()!r}")
        self._owner = None
        self._end_and_show()

    def _end_and_show(self) -> None:
        run = self._end()
        if not self._quiet:
            self._show([run], run.name)

    def _show(self, shown: list[kept.Run], title: str, **options: bool) -> None:
        try:
            report = read([run.path for run in shown], title, **options)
        except UnreadError as error:
            _refuse(one_line(str(error)))
        except OSError as error:
            _refuse(f"the report cannot be made: {error.strerror}")
        except KeyboardInterrupt:
            _refuse(f"interrupted; the recording is there: tachograph analyze {shown[-1].path}")
        display(bundle(report, title), raw=True)

    def _diff(self, rest: str) -> None:
        options = {word.removeprefix("--"): True for word in rest.split() if word in ("--anyway", "--shares")}
        names = [word for word in rest.split() if word.removeprefix("--") not in options]
        if any(name.startswith("-") for name in names) or len(names) > 2:
            _refuse("%tachograph diff [BASE [NEW]] takes numbers of cells or paths, --anyway and --shares")
        newest = self._runs.newest
        new = self._named(names[1]) if len(names) == 2 else newest
        if new is None:
            _refuse("there is no recording to compare: %%tachograph in the first line of a cell makes one")
        base = self._named(names[0]) if names else self._runs.before(new)
        if base is None:
            _refuse(f"{new.name} was recorded only once: run it again, or name another cell: {self._runs.names}")
        self._show([base, new], f"{base.name} to {new.name}", **options)

    def _named(self, name: str) -> kept.Run:
        """The recording that a number (``3``, ``In[3]``) or a path stands for."""
        digits = name.removeprefix("In").strip("[]")
        if digits.isdecimal() and len(digits) < 10:
            run = self._runs.of_cell(int(digits))
            if run is None:
                recorded = self._runs.names or "none"
                _refuse(f"there is no recording of In [{digits}]; there is of: {recorded}")
            return run
        path = Path(name.strip("\"'")).expanduser()
        if not path.exists():
            _refuse(f"there is no recording {path}")
        return kept.Run(0, None, path)

    def _at_exit(self) -> None:
        """The session ends, or the extension is unloaded."""
        if self._run is not None and self._is_on():
            with suppress(RecordingError):  # what could not be completed is left to `tachograph recover`
                recording.end()
        self._run, self._until_stopped, self._owner = None, False, None
        self._runs.close()


class _Line:
    """The block around a statement. The statement's own errors go on."""

    def __init__(self, extension: Extension, line: str) -> None:
        self._extension, self._line = extension, line

    def __enter__(self) -> None:
        self._extension.begin_line(self._line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._extension.end_line()
        except UsageError as problem:
            if error is None:
                raise
            _say(str(problem))  # the statement's own error is the one to be seen


def _refuse(text: str) -> NoReturn:
    """End the cell with one line."""
    raise UsageError(text) from None


def _say(text: str) -> None:
    print(f"tachograph: {text}", file=sys.stderr)


def _in_options(message: str) -> str:
    """A refusal of recording in process, as it is said of options."""
    return message.replace("force=True", "--force").replace(": stop() ends that", "")


_CELL = re.compile(r"%%tachograph(?:[ \t]+(.*))?$")

_LINE = re.compile(r"%tachograph[ \t]+(.*)$", re.DOTALL)


def transform_cell(lines: list[str]) -> list[str]:
    """The lines of a cell; the first that is not empty, if it is ``%%tachograph``, begins the recording."""
    for number, line in enumerate(lines):
        if line.strip():
            match = _CELL.match(line.rstrip())
            # Asked for help in the way of IPython: `%%tachograph?`
            if match is None:
                return lines
            return [*lines[:number], f"get_ipython().{ATTRIBUTE}.cell({match[1] or ''!r})\n", *lines[number + 1 :]]
    return lines


class StatementTransform(TokenTransformBase):  # type: ignore[misc]  # IPython's types are not read
    """``%tachograph STATEMENT`` at the beginning of a logical line; IPython finds it by its tokens."""

    priority = 5  # before the transformation of magics in general

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> StatementTransform | None:
        """The first such line of a cell."""
        for line in tokens_by_line:
            at = 0
            while at < len(line) and line[at].type in (tokenize.INDENT, tokenize.DEDENT):
                at += 1
            if [token.string for token in line[at : at + 2]] == ["%", "tachograph"] and _statement(line[at].line):
                return cls(line[at].start)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """The lines of the cell with this one as a ``with`` statement."""
        end = find_end_of_continued_line(lines, self.start_line)
        line = assemble_continued_line(lines, (self.start_line, self.start_col), end)
        match = _LINE.match(line)
        words = None if match is None else read_words(match[1])
        if match is None or words is None or not words.rest:
            raise SyntaxError  # then it is the magic of that name
        options = match[1].strip().removesuffix(words.rest).strip()
        indent = lines[self.start_line][: self.start_col]
        text = f"{indent}with get_ipython().{ATTRIBUTE}.line({options!r}): {words.rest}\n"
        # As many lines as there were: those behind it keep their numbers.
        return [*lines[: self.start_line], text, *["\n"] * (end - self.start_line), *lines[end + 1 :]]


def _statement(line: str) -> bool:
    """True if a statement follows the magic; else the magic itself runs, or reports the error."""
    match = _LINE.match(line.strip())
    if match is None or verb_of(match[1])[0] is not None:
        return False
    try:
        return bool(read_words(match[1]).rest)
    except WrongWordsError:
        return False
