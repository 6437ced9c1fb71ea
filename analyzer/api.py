"""The analyzer for programs and notebooks: recordings as pandas frames, and profiles in one call.

>>> import tachograph.analyzer as tachograph
>>> with tachograph.open("run.tacho") as recording:
...     recording.lines(scope="project", window=(10, -5)).head()
...     recording.frame("waits", names=True).groupby("function")["off_cpu_ns"].sum()

Times are integer nanoseconds in ``*_ns`` (one monotonic clock) and seconds from the start of the recording in ``*_s``.
What is unknown is null, never 0. Columns that come from the tables are described in format-spec/SPEC.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import ColumnSpec, FormatError

from .profile.build import build_profile
from .profile.path_frame import path_frame
from .profile.profile import Profile
from .profile.question import Question
from .profile.tests import read_tests
from .recording.call_tree import NOTHING, load_tree
from .recording.opened import DEFINITIONS
from .recording.opened import Recording as Reader
from .recording.question_options import Attribution, PoolRule
from .recording.text import printable
from .recording.time_window import make_window
from .report_data.advice.program import Suggestion
from .report_data.advice.table import suggestions

Window = tuple[float | None, float | None]
"""Seconds from the start of the recording, the second one not included; negative: from its end; None: no limit."""

Which = str | int | Sequence[str | int]
"""Processes: ids in the recording, the operating system's ids, or names (globs)."""

_NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}


class Recording(Reader):
    """A recording, opened for reading: its tables, the same as pandas frames, and answers to questions about it.

    Nothing is read before it is asked for. Use it as a context manager, or call ``close``.

    Errors (everywhere): tachograph.format.FormatError, one line that says what is wrong.
    """

    def table(self, name: str) -> pa.Table:
        """A table of the recording, whole, as pyarrow has it; one that was recorded and has no rows is empty.

        Errors:
            FormatError: there is no such table, it was not recorded, or it is damaged.
        """
        if name not in self.specification.tables:
            raise FormatError(f"there is no table {name!r}; there are: {', '.join(self.specification.tables)}")
        if name in DEFINITIONS:
            return super().table(name)
        if not self.recorded(name):
            raise FormatError(f"{self.path}: {name} was not recorded, so nothing is known of it")
        schema = self.specification.tables[name].schema
        return pa.Table.from_batches(self.batches(name, schema.names), schema=schema)

    def frame(self, name: str, *, names: bool = False, window: Window | None = None) -> pd.DataFrame:
        """A table as a tidy frame: enumerations as categories, nullable integers where null can be.

        Columns: those of the table, and ``time_s`` (of ``time_ns``, or of ``start_ns`` where a row is a span). With
        ``names`` also ``thread_name``, ``function``, ``file`` and ``line`` (of the innermost Python frame; null where
        there is no stack) and ``native`` (the function at the program counter), as far as the table has such ids.
        ``window`` leaves out rows that begin outside of it.
        """
        table = self.table(name)
        time = next((column for column in ("time_ns", "start_ns") if column in table.column_names), None)
        if window is not None and time is not None:
            limits = make_window(*window, self.start_ns, self.end_ns)
            table = table.filter(pa.array(limits.contains(table.column(time).to_numpy())))
        columns = self.specification.tables[name].by_name
        frame = pd.DataFrame({each: self._series(table.column(each), columns[each]) for each in table.column_names})
        if time is not None:
            frame["time_s"] = (frame[time] - self.start_ns) / 1e9
        return self._named(frame) if names else frame

    @property
    def cpu(self) -> pd.DataFrame:
        """``frame("cpu")``: one row per CPU sample; its weight is ``cpu_ns``."""
        return self.frame("cpu")

    @property
    def waits(self) -> pd.DataFrame:
        """``frame("waits")``: one row per span of waiting; its weight is ``off_cpu_ns``."""
        return self.frame("waits")

    @property
    def memory(self) -> pd.DataFrame:
        """``frame("memory")``: one row per reading of a memory counters of a process, exact to the byte."""
        return self.frame("memory")

    @property
    def allocations(self) -> pd.DataFrame:
        """``frame("allocations")`` one row per sampled block; its weight is ``weight_bytes``.

        Sums of weights are estimates that have no bias; ``lines`` and ``profile`` also make them agree with
        ``memory``, which makes them better.
        """
        return self.frame("allocations")

    @property
    def copies(self) -> pd.DataFrame:
        """``frame("copies")``: one row per sampled copy; its weight is ``bytes``."""
        return self.frame("copies")

    def profile(
        self,
        *,
        scope: str | None = None,
        window: Window | None = None,
        thread: str | None = None,
        attribution: str = "auto",
        pool_attribution: str = "positions",
        span: str | None = None,
        process: Which | None = None,
    ) -> Profile:
        """The answer to a question, as ``tachograph analyze`` gives it.

        Args:
            scope: whose lines are charged: ``project``, ``all`` or a glob of paths or folder names.
            window: a part of the time.
            thread: a thread's name (or a glob of it), its operating system id, or ``main``.
            attribution: how Python is told from native: auto, native, delay, opcode or pc-only.
            pool_attribution: how CPU time of native threads is charged to lines: positions or none.
            span: only while spans lasted, in their threads: ``NAME`` (a glob) or ``NAME[KEY=VALUE,...]``.
            process: one process, or several: an id (the recording's or the system's) or a name (a glob).
        """
        start_s, end_s = window or (None, None)
        one = isinstance(process, (str, int))
        processes = () if process is None else tuple(map(str, [process] if one else process))  # type: ignore[arg-type]
        question = Question(
            scope,
            thread,
            start_s,
            end_s,
            attribution=Attribution(attribution),
            pools=PoolRule(pool_attribution),
            span=span,
            processes=processes,
        )
        return build_profile(self, question)

    def lines(
        self,
        *,
        scope: str | None = None,
        window: Window | None = None,
        thread: str | None = None,
        process: Which | None = None,
    ) -> pd.DataFrame:
        """``profile(...).lines``: by line of code, the most CPU time first."""
        return self.profile(scope=scope, window=window, thread=thread, process=process).lines

    def functions(
        self,
        *,
        scope: str | None = None,
        window: Window | None = None,
        thread: str | None = None,
        process: Which | None = None,
    ) -> pd.DataFrame:
        """``profile(...).functions``: by function, the most CPU time first."""
        return self.profile(scope=scope, window=window, thread=thread, process=process).functions

    def callpaths(
        self,
        *,
        window: Window | None = None,
        thread: str | None = None,
        process: Which | None = None,
    ) -> pd.DataFrame:
        """Call paths through Python and native code as they called each other, the most CPU time first.

        Columns: function, language, library (of the innermost function), python_function, file, line (of the innermost
        Python frame), depth, samples, cpu_s, python_s, native_s, kernel_s, unknown_s, wait_s, guessed_s, path (names of
        all functions, the outermost first). ``cpu_s`` adds up to the CPU time in question. Where no native paths were
        recorded, a path is the Python functions and the native one that was running.
        """
        profile = self.profile(scope="all", window=window, thread=thread, process=process)
        return path_frame(profile.paths, waits_known=profile.totals.wait_s is not None)

    def suggestions(
        self,
        *,
        window: Window | None = None,
        thread: str | None = None,
        process: Which | None = None,
    ) -> pd.DataFrame:
        """Suggestions by rule, what most of the run is about first: the columns of ``Suggestion``.

        rule, file, line, function (null for the whole program), figure, text, instead, link.
        """
        suggested = suggestions(self.profile(window=window, thread=thread, process=process))
        frame = pd.DataFrame([asdict(each) for each in suggested], columns=[each.name for each in fields(Suggestion)])
        return frame.astype({"line": "Int64"})

    def files(
        self,
        *,
        scope: str | None = None,
        window: Window | None = None,
        thread: str | None = None,
        process: Which | None = None,
    ) -> pd.DataFrame:
        """``profile(...).files``: by file, the most CPU time first."""
        return self.profile(scope=scope, window=window, thread=thread, process=process).files

    def threads(self, *, window: Window | None = None, process: Which | None = None) -> pd.DataFrame:
        """``profile(...).threads``: by thread, the most CPU time first."""
        return self.profile(window=window, process=process).threads

    def processes(self, *, window: Window | None = None) -> pd.DataFrame:
        """``profile(...).processes``: by process, each behind its parent; recorded or not."""
        return self.profile(window=window).processes

    def tests(self) -> pd.DataFrame:
        """Tests by phase (setup, call, teardown) of ``pytest --tachograph``: ``profile.tests.COLUMNS``.

        test, phase, count, duration_s, cpu_s, wait_s, peak_bytes, copied_bytes, kept_bytes (these three with ``_low``),
        and what the test's marks allow: limit_cpu_s, limit_memory_bytes, limit_copies_bytes, no_leaks_bytes.
        """
        return read_tests(self).frame.pandas()

    def _series(self, column: pa.ChunkedArray, spec: ColumnSpec) -> pd.Series:
        if spec.enum is not None:
            values = [value.name for value in self.specification.enums[spec.enum]]
            codes = column.cast("int64").fill_null(-1).to_numpy()
            # A value that this version does not know is null.
            return pd.Series(pd.Categorical.from_codes(np.where(codes < len(values), codes, -1), values))
        if spec.nullable and column.type in _NULLABLE:
            return column.to_pandas(types_mapper=_NULLABLE.get)
        return column.to_pandas()

    def _named(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with names in place of ids, beside them."""
        added = {}
        if "thread" in frame:
            added["thread_name"] = _looked_up(frame["thread"], self.all_threads.name)
        if "stack" in frame:
            tree = load_tree(self)
            functions = tree.function_names
            added["function"] = _looked_up(
                frame["stack"], [functions[each] if each != NOTHING else None for each in tree.function.tolist()]
            )
            added["file"] = _looked_up(
                frame["stack"], [tree.paths[each] if each != NOTHING else None for each in tree.file.tolist()]
            )
            lines = pd.array([line if line != NOTHING else None for line in tree.line.tolist()], "Int64")
            added["line"] = pd.Series(lines.take(_ids(frame["stack"]), allow_fill=True), frame.index)
        if "native_frame" in frame:
            natives = super().table("native_frames")
            added["native"] = _looked_up(frame["native_frame"], natives.column("symbol").to_pylist())
            added["native_source"] = _looked_up(frame["native_frame"], natives.column("source").to_pylist())
            native_lines = pd.array(natives.column("line").to_pylist(), "Int64")
            added["native_line"] = pd.Series(
                native_lines.take(_ids(frame["native_frame"]), allow_fill=True), frame.index
            )
        return frame.assign(**added)


def open(path: Path | str) -> Recording:  # noqa: A001  # tachograph.analyzer.open reads as it should
    """Opens a recording: a ``.tacho`` directory or a zip archive of one.

    Errors:
        FormatError: there is none, or it cannot be read.
    """
    return Recording(path)


def _ids(column: pd.Series) -> NDArray[np.int64]:
    """Ids as an index; null is -1."""
    return np.asarray(column.astype("Int64").fillna(NOTHING), np.int64)


def _looked_up(column: pd.Series, names: list[str | None]) -> pd.Series:
    """The names of ids, printable, as a category."""
    codes, labels = pd.factorize(np.array([*names, None], object))
    # Two names may look the same when they are printed, and a category may not.
    shown, merged = pd.factorize(np.array([printable(label, 4096) for label in labels], object))
    of_name = np.append(shown, NOTHING)[codes]
    return pd.Series(pd.Categorical.from_codes(of_name[_ids(column)], merged), column.index)
