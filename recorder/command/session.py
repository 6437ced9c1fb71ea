"""One recording from its start to its end, seen from the recording command. Imported when the program runs already."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format import FormatError, SpoolDirectory
from tachograph.format.atomic import read_regular_file
from tachograph.format.spool.masking import mask_arguments
from tachograph.recorder import clock
from tachograph.recorder.collect.collector import Collector
from tachograph.recorder.collect.descendants import (
    append,
    closed_connection,
    note_end,
    note_start,
    reaped,
    recorded_processes,
    still_records,
    stop_recording,
    why_stopped_early,
)
from tachograph.recorder.collect.finish import Finished, UnfinishedError, finish, places_for, rehearse
from tachograph.recorder.collect.memory_files import MemoryFiles, MemoryLog
from tachograph.recorder.collect.output import MANIFEST, SPOOL
from tachograph.recorder.collect.running import began_at, note_recorder, was_running_at
from tachograph.recorder.collect.source_texts import SourceRights
from tachograph.recorder.collect.unrecorded_pythons import why_unrecorded, words_for
from tachograph.recorder.command.executables import why_left_alone
from tachograph.recorder.command.manifests import oom_kills
from tachograph.recorder.gpu.sampler import GpuSampler, Told
from tachograph.recorder.inprocess.arm import ERROR_FILE
from tachograph.recorder.problems import one_line
from tachograph.recorder.rotation.rotation_settings import DEFAULT_KEEP

if TYPE_CHECKING:
    import _socket

    from tachograph.format import Manifest, SpoolProcess
    from tachograph.recorder.collect.held_folder import HeldFolder
    from tachograph.recorder.collect.source_texts import SourceScout, SourceStore
    from tachograph.recorder.command.launch import ChildEnd, Program
    from tachograph.recorder.fd_broker.broker import FdBroker
    from tachograph.recorder.labels.labels import Labels
    from tachograph.recorder.rotation.rotate import Rotation
    from tachograph.recorder.rotation.rotation_settings import Rotate
    from tachograph.recorder.upload.sender import Uploads

MAX_REASON = 500
"""Characters read of a reason that the profiled process left."""

MOST_BYTES_OF_REASON = 1 << 20
"""Bytes of the largest file with such a reason."""

MOST_FILES = 1 << 16
"""Descriptors that the recording command needs at most."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a recording: its contents, or why it is unfinished or the program was not recorded.

    ``windows`` is how many were closed before the one that it holds, ``kept`` are the newest of them, and ``saved`` is
    how many more snapshots have kept.
    """

    finished: Finished | None
    unfinished: str | None
    not_recorded: str | None
    stopped_early: str | None
    seconds: float
    windows: int = 0
    kept: tuple[Path, ...] = ()
    saved: int = 0


@dataclass(frozen=True)
class RecordingPlan:
    """What is recorded, into which folder and how, and what was made for that before the program was started.

    ``command`` is the command line as it was typed, ``code`` what ``python -c`` runs. ``listener`` is the fd broker's
    socket, ``log`` the process log in memory. ``runs_already``: the program is not starting up, and may end the
    recording soon.
    """

    folder: HeldFolder
    manifest: Manifest
    program: Program
    command: Sequence[str]
    code: str | None = None
    labels: Labels | None = None
    listener: _socket.socket | None = None
    log: int | None = None
    gpu: bool = True
    rotate: Rotate | None = None
    keep: int = DEFAULT_KEEP
    uploads: Uploads | None = None
    runs_already: bool = False


SPARED = 500
"""By how much the kernel's badness of this process is lowered, in parts of 1000 of the memory that there is."""


class Session:
    """Everything that the recording command does beside waiting for the program."""

    def __init__(self, plan: RecordingPlan) -> None:
        self._plan = plan
        self._folder, self._manifest = plan.folder, plan.manifest
        self._directory = Path(plan.folder.here)
        self._spool = self._directory / SPOOL
        self._started_ns = clock.monotonic_ns()
        self._working_directory = Path.cwd()
        self._rights = SourceRights()
        self._places = places_for(plan.manifest)
        self._sources: SourceStore | None = None
        self._gpu = GpuSampler(self._spool) if plan.gpu else None
        self._rotation: Rotation | None = None
        log = None if plan.log is None else MemoryLog(self._spool, plan.log)
        # The files of a window are taken apart one by one.
        self._memory = MemoryFiles(self._spool, log, archives=plan.rotate is None)
        self._collector = Collector(
            self._spool,
            self._prepare,
            import_for_the_end,
            None if plan.rotate is None else self._begin_rotation,
            self._memory,
            None if plan.rotate is not None else lambda spool, done: rehearse(spool, self._places, done),
            at_once=plan.runs_already,
        )
        self._broker: FdBroker | None = None
        self._oom_kills = oom_kills()

    def begin(self) -> None:
        """Start to work beside the program."""
        _spare_from_oom_killer()
        self._begin_to_provide()
        self._collector.start()
        if self._gpu is not None:
            self._gpu.start()

    def snapshot(self) -> None:
        """Close the present window of a rotated recording soon, and keep it and those before it; returns at once."""
        self._collector.ask_for_snapshot()

    def program_records(self) -> bool:
        """True if the program itself lives and still records."""
        self._memory.copy()
        return still_records(self._spool, self._plan.program.pid)

    def program_left(self) -> bool:
        """True if the program itself lives, and recording ended because it had closed the connection of ``attach``."""
        self._memory.copy()
        pid = self._plan.program.pid
        return closed_connection(self._spool, pid) and was_running_at(pid, self._started_ns)

    def note_end(self) -> None:
        """The program has ended, and its status was not taken yet: note what it was until now."""
        self._rights.look_at_last(self._plan.program.pid)

    def note_orphan(self, end: ChildEnd) -> None:
        """A process of the recording whose parent had ended before it has ended, and we have adopted it."""
        with suppress(OSError):  # no room: the rest will say so
            if not self._memory.log(_record_of(end)):
                append(self._spool, _record_of(end))

    def is_helper(self, pid: int) -> bool:
        """True if a child is a helper of the recording, whose status another part of it waits for."""
        makes_tables = self._rotation is not None and self._rotation.is_helper(pid)
        return makes_tables or (self._plan.uploads is not None and self._plan.uploads.is_helper(pid))

    def end(self, exit_status: int | None, end: ChildEnd | None = None, *, lives: bool = False) -> Outcome:
        """Finish the recording after the program has ended with ``exit_status`` (negative: of that signal).

        None: that is unknown. ``end``: what the kernel told of it. ``lives``: the program goes on, and has ended the
        recording itself.
        """
        ended_ns = clock.monotonic_ns()
        gpu = None if self._gpu is None else self._gpu.stop()
        self._memory.stop()
        if self._broker is not None:
            self._broker.catch_up()
        self._memory.settle_over()
        self._collector.stop()
        # Not before: until then the collector may be writing the manifest.
        self._note_gpu(gpu)
        stuck = None if self._rotation is None else self._rotation.end()
        assert self._sources is not None
        pid = self._plan.program.pid
        with suppress(OSError, FormatError):  # the spool has been taken away, or its disk is full: the end will say so
            if end is not None:
                append(self._spool, _record_of(end))
            if not lives:
                note_end(self._spool, pid, exit_status, ended_ns)
            stop_recording(SpoolDirectory(self._spool), self._memory)
        lost = self._end_memory()
        controls = recorded_processes(self._spool)
        outcome = Outcome(
            finished=None,
            unfinished=None,
            not_recorded=None if controls else self._why_not_recorded(),
            stopped_early=why_stopped_early(controls),
            seconds=(ended_ns - self._started_ns) / 1e9,
            windows=0 if self._rotation is None else self._rotation.closed,
            kept=() if self._rotation is None else tuple(each.path for each in self._rotation.kept),
            saved=0 if self._rotation is None else self._rotation.saved,
        )
        self._manifest.notes += [note for note in (outcome.not_recorded, outcome.stopped_early) if note]
        if not self._folder.has_its_name():
            self._manifest.notes.append("its directory was renamed while it was recorded")
        self._manifest.ended_ns = ended_ns
        if stuck is not None:
            return replace(outcome, unfinished=stuck)
        try:
            statuses = {} if exit_status is None else {pid: exit_status}
            self._note_oom_kills()
            finished = finish(
                self._directory, self._manifest, self._sources, exit_statuses=statuses, places=self._places
            )
        except UnfinishedError as error:
            return replace(outcome, unfinished=str(error) + ("" if lost is None else f"; {lost}"))
        if finished.began_ns is None or self._rotation is not None:
            return replace(outcome, finished=finished)
        # As analyze has it: the program began before this command was done with its own beginning.
        return replace(outcome, finished=finished, seconds=(ended_ns - finished.began_ns) / 1e9)

    def _begin_to_provide(self) -> None:
        if self._plan.listener is None:
            return
        from tachograph.recorder.fd_broker.broker import FdBroker

        parameters = self._manifest.parameters
        self._broker = FdBroker(
            self._spool,
            self._plan.program.pid,
            self._plan.listener,
            int(parameters["segment_size"]),
            memory=bool(parameters["memory"]),
            held=self._memory,
        )
        # Several descriptors for each process: no child of ours is started with the greater number.
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(least, min(most, MOST_FILES)), most))
        self._broker.start()
        self._memory.start()

    def _end_memory(self) -> str | None:
        """Make the last copies; what of them found no room, if so."""
        refused, taken = 0, True
        left = self._memory.settle_all()
        if self._broker is not None:
            refused = self._broker.refused
            taken = self._broker.catch_up()  # what found no descriptor before, has one now
            self._broker.stop()
            left = self._memory.settle_all()
        while left and self._collector.compress(left):
            left = self._memory.settle_all()
        notes = self._manifest.notes
        if refused:
            notes.append(f"the records of a process were refused {refused} times: its memory could not be shared")
        if not taken:
            notes.append("the records of processes that began last are lost: there were too many processes")
        lost = None
        if left:
            lost = f"the last records of {len(left)} process{'es' if len(left) > 1 else ''} are lost"
            notes.append(f"there was no room on the disk: {lost}")
        if self._manifest.parameters["sampler"] == "native":
            with suppress(FormatError):
                notes += stored_on_disk(SpoolDirectory(self._spool).processes())
        return lost

    def _note_gpu(self, told: Told | None) -> None:
        """Until now nothing was said about GPUs: only who has asked the driver knows whether there is one."""
        self._manifest.parameters["gpu"] = told is not None and told.recorded
        self._manifest.notes += told.notes if told is not None else []

    def _note_oom_kills(self) -> None:
        before, now = self._oom_kills, oom_kills()
        if before is not None and now is not None and now > before:
            self._manifest.parameters["memory_oom_kills"] = now - before

    def _prepare(self) -> SourceScout:
        """Note what is being recorded."""
        from tachograph.recorder.collect.source_texts import SourceScout, SourceStore
        from tachograph.recorder.command.packed_program import entry_package

        self._manifest.argv = mask_arguments(self._plan.command)
        self._sources = SourceStore(
            self._working_directory, self._plan.code, rights=self._rights, began_ns=began_at(self._plan.program.pid)
        )
        package = entry_package(self._plan.command, self._working_directory)
        if package is not None:
            self._manifest.parameters["entry_package"] = package
        # A disk that has become full since the start: the end will say so, and recover does without either.
        with suppress(OSError):
            note_recorder(self._spool, self._plan.program.pid)
            note_start(
                self._spool,
                self._plan.program.pid,
                self._plan.program.start_ns,
                self._plan.program.path,
                self._plan.program.arguments,
            )
            self._add_labels()
            self._manifest.write(self._directory / MANIFEST)
        return SourceScout(self._sources)

    def _add_labels(self) -> None:
        if self._plan.labels is not None:
            self._manifest.labels = {**self._plan.labels.of_repository(), **self._plan.labels.masked()}
            self._manifest.notes += self._plan.labels.notes

    def _begin_rotation(self) -> Rotation:
        from tachograph.recorder.rotation.rotate import Rotation

        assert self._plan.rotate is not None
        self._rotation = Rotation(
            self._folder,
            self._manifest,
            self._plan.rotate,
            self._plan.keep,
            self._turn_gpu,
            self._memory,
            None if self._plan.uploads is None else self._plan.uploads.add,
        )
        return self._rotation

    def _turn_gpu(self) -> tuple[int, bool]:
        return (0, False) if self._gpu is None else (self._gpu.turn(), self._gpu.recorded)

    def _why_not_recorded(self) -> str:
        try:
            left = read_regular_file(self._spool / ERROR_FILE, MOST_BYTES_OF_REASON)
        except (OSError, FormatError):
            left = b""
        text = left.decode("utf-8", "replace")[:MAX_REASON]
        parameters = self._manifest.parameters
        if text:
            return one_line(text) + ("; --sampler signal may do" if parameters["sampler"] == "native" else "")
        alone = why_left_alone(self._plan.program.path, os.environ)
        if alone is not None:
            return alone
        elsewhere = words_for(why_unrecorded(self._plan.program.path))
        if elsewhere is not None:
            return elsewhere
        if self._plan.program.path == sys.executable:
            return "it ended before Python had started, or its Python does not have tachograph installed"
        if not parameters.get("children", True):
            return "its first process is no Python, and with --no-children no other is recorded"
        let_through = " that --include and --exclude let through" if {"include", "exclude"} & parameters.keys() else ""
        return f"it started no Python{let_through} that can be recorded"


def _spare_from_oom_killer() -> None:
    """Ask the kernel to take others first where memory runs out: we have the records of the program that it ends.

    The program has begun by now, with the value of our caller. Only root may lower it.
    """
    path = Path("/proc/self/oom_score_adj")
    with suppress(OSError, ValueError):
        path.write_text(str(max(int(path.read_text(encoding="ascii")) - SPARED, -999)), encoding="ascii")


def _record_of(end: ChildEnd) -> bytes:
    return reaped(end.pid, end.status, end.time_ns, (end.user_ns, end.system_ns, end.max_resident_bytes))


def stored_on_disk(processes: Sequence[SpoolProcess]) -> list[str]:
    """The note in the manifest about processes that had no memory files."""
    recorded = [process.control for process in processes if process.control is not None]
    count = sum(control.on_disk for control in recorded)
    if not count:
        return []
    return [
        f"{count} of {len(recorded)} processes stored their records in files of the disk, as no memory could be shared"
        " with the recording command: a slow disk may have delayed them"
    ]


UNNEEDED = ("numpy", "cloudpickle", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs")
"""Modules that pyarrow loads if they are there, and goes without if not; the last four are stores in networks."""


def leave_unneeded_out(*, unless: bool = False) -> None:
    """Let Arrow find none of ``UNNEEDED`` in this process: it would load them, and nothing here needs them.

    Loading numpy takes longer than finishing a short recording, and cloudpickle as long as Arrow itself.
    """
    if not unless:
        for module in UNNEEDED:
            # So it is with what is not to be imported.
            sys.modules.setdefault(module, None)  # type: ignore[arg-type]


def import_for_the_end() -> None:
    """Import now what the end needs, so that it need not wait; what cannot be imported, the end will name."""
    with suppress(ImportError):
        import_module("tachograph.recorder._native")
    with suppress(ImportError):
        from tachograph.format import assemble, load_specification, write_recording  # noqa: F401
        from tachograph.format.parquet import load_writer
        from tachograph.format.spool.arrow_columns import load_functions

        load_specification()
        load_writer()
        load_functions()
