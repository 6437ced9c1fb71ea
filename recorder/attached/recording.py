"""Begins and ends recordings of the process that this runs in.

The native library is loaded into the running interpreter and hooks what is loaded through import tables; a small
process beside it takes the records, copies them into the recording's directory, and makes the tables at the end, also
where the program is killed. Nothing is imported here that the command does not import before its program starts.

Code that no file has (cells of a notebook, lines typed at a prompt) is in Python's own ``linecache``, for tracebacks; a
session puts it there before it runs. The recording gets these texts from there.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys

from tachograph.format.atomic import write_bytes
from tachograph.format.plain_records import record_class
from tachograph.recorder import clock
from tachograph.recorder.attached import beside_process
from tachograph.recorder.attached.closed_streams import ClosedStreams
from tachograph.recorder.attached.keywords import options_from
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.problems import RecordingError, Refused, one_line, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Any, TypeAlias

    from tachograph.format.spool.told_texts import ToldText
    from tachograph.recorder.attached.beside_process import Stream
    from tachograph.recorder.command.options import Options

    Cells: TypeAlias = Callable[[str], tuple[int | None, str | None]]
    """The number and the id of the cell that a ``co_filename`` stands for; None for what it is not or has not."""


@record_class
class Recording:
    """A recording of this process that is on: where it is, and the process beside it, on the other end of ``control``.

    ``pid`` tells the process from its forks. ``texts`` is None where no sources are wanted.
    """

    path: str
    pid: int
    control: Stream
    texts: TextTeller | None


class Recorded:
    """The context manager of ``record``: records from the beginning of the block to its end."""

    def __init__(self, path: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
        self._path, self._options = path, options

    def __enter__(self) -> Path:
        """The path of the recording."""
        from pathlib import Path

        return Path(begin(self._path, self._options))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The recording is complete afterwards; errors of the block go on."""
        native = _loaded()
        current = native.claimed()
        # In a fork of the block the recording is the parent's; and the block may have ended it itself.
        if current is not None and current.pid == os.getpid():
            end()


def begin(
    path: str | os.PathLike[str], given: Mapping[str, Any], cells: Cells | None = None, beside: str | None = None
) -> str:
    """Begin to record this process into ``path``, a directory that is made; returns its absolute path.

    ``cells`` knows which code is a cell of a notebook. ``beside`` is where a process listens that is to be
    the one beside this program; without it one is started.
    Raises RecordingError, with one line, if that is not possible; then all is as it was.
    """
    with ClosedStreams():
        return _begin(path, options_from(given), cells, beside)


def _begin(path: str | os.PathLike[str], options: Options, cells: Cells | None, beside: str | None) -> str:
    native = _native()
    _check_free(native)
    # Without pathlib: the program's path may lead to a module of its own of that name.
    directory = os.fspath(path)
    directory = (directory if directory.startswith("/") else os.path.join(os.getcwd(), directory)).rstrip("/") or "/"
    if not native.claim(Recording(directory, os.getpid(), None, None)):  # type: ignore[arg-type]  # until it is on
        raise RecordingError("another thread begins a recording of this process at this moment")
    try:
        recording = _start(native, directory, options, cells, beside)
    except Refused as refused:
        raise RecordingError(_in_keywords(refused.message)) from None
    finally:
        native.unclaim()
    native.claim(recording)
    atexit.register(_end_at_exit, native)
    return directory


def tell_texts() -> None:
    """Write texts of new code into the recording of this process, if one is on: the process may be killed later."""
    recording = _loaded().claimed()
    if recording is not None and recording.pid == os.getpid():
        _tell(recording)


def end(*, is_held: bool = True) -> str:
    """End the recording of this process, and wait until it is complete; returns its path.

    ``is_held``: the one for whom it is made asks for its end. If not, and the program has closed the connection to the
    process beside it, the program has closed the other one as well, and the recording ends before its time.
    Raises RecordingError, with one line, if none is on, or it could not be completed.
    """
    native = _loaded()
    recording = native.claimed()
    if recording is None or recording.control is None:
        raise RecordingError("this process is not being recorded: start() begins a recording")
    if recording.pid != os.getpid():
        raise RecordingError("the recording is of the process that this one was forked from, which ends it")
    atexit.unregister(_end_at_exit)
    with ClosedStreams():
        again = native.disarm(0 if is_held or recording.control.is_ours() else errno.ENOTCONN)
        native.unclaim()
        _tell(recording)
        problem = beside_process.complete(recording.control)
    if problem is not None:
        raise RecordingError(f"the recording {recording.path} is not complete: {problem}")
    if not again:
        raise RecordingError(
            f"the recording {recording.path} is complete, but this process cannot be recorded again: one of its threads"
            " could not be waited for"
        )
    return recording.path  # type: ignore[no-any-return]


def _in_keywords(message: str) -> str:
    """A refusal of the command's, with what to do as it is said here."""
    return message.replace("--force", "force=True").replace("; say where to put it with -o", "").replace(" with -o", "")


def _native() -> Any:
    from tachograph.recorder.command.support import why_no_recording, why_not_native

    why_not = why_no_recording() or why_not_native(preloaded=False)
    if why_not is not None:
        raise RecordingError(f"cannot record here: {why_not}")
    try:
        from tachograph.recorder import _native
    except ImportError as error:  # of another build than the rest
        raise RecordingError(f"cannot record here: {one_line(str(error))}") from None
    return _native


def _loaded() -> Any:
    """The native module of a recording that is on: its file may be out of reach by now (chroot)."""
    return sys.modules.get("tachograph.recorder._native") or _native()


def _check_free(native: Any) -> None:
    current = native.claimed()
    if current is not None:
        if current.pid != os.getpid():
            raise RecordingError("this process was forked from one that is being recorded; start it anew to record it")
        raise RecordingError(f"this process is being recorded already, into {current.path}: stop() ends that")
    signal_sampler = sys.modules.get("tachograph.recorder.inprocess.signal_sampler")
    if native.active() or (signal_sampler is not None and signal_sampler.running() is not None):
        raise RecordingError("this process is being recorded already, by 'tachograph record'")


def _start(native: Any, directory: str, options: Options, cells: Cells | None, beside: str | None) -> Recording:
    from tachograph.recorder.command.manifests import manifest_parameters, new_manifest
    from tachograph.recorder.command.support import preload_library

    library = preload_library()
    assert library is not None  # why_not_native has looked
    why_not = native.load(library)
    if why_not is not None:
        raise RecordingError(f"this process cannot be recorded from inside: {one_line(why_not)}")
    why_not = native.supported()
    if why_not is not None:
        raise RecordingError(f"cannot record here: {why_not}")
    from tachograph.recorder.collect import output
    from tachograph.recorder.fd_broker.socket_name import overcommits

    start_ns = clock.monotonic_ns()
    manifest = new_manifest(manifest_parameters(options, output.SEGMENT_SIZE))
    folder = output.claim(directory, manifest, force=options.force)
    assert folder.descriptor is not None  # there is one where recording is possible
    facts = {
        "directory": folder.path,
        "pid": os.getpid(),
        "start_ns": start_ns,
        "arguments": list(sys.orig_argv),
        "gpu": options.gpu,
        "labels": dict(options.labels),
        "environment": {key: value for key, value in os.environ.items() if not key.startswith("TACHOGRAPH_")},
        "working_directory": _working_directory(),
    }
    control = None
    try:
        output.probe(folder)
        control = beside_process.start(native, facts) if beside is None else beside_process.meet(native, beside)
        broker = beside_process.begin(control, facts, folder.descriptor)
    except (Refused, RecordingError):
        if control is not None:
            control.close()
        output.discard(folder)
        raise
    spool = output.spool_of(folder)
    with folder:
        try:
            texts = TextTeller(spool, cells) if options.sources else None
            recording = Recording(directory, os.getpid(), control, texts)
            _tell(recording)
            place, at_once = output.place_of_spool(folder), not overcommits()
            _arm(native, spool, place, options, broker, memory_at_once=at_once)
        except (RecordingError, OSError) as error:
            from tachograph.recorder.collect.removal import remove_recording

            beside_process.complete(control)
            remove_recording(folder)
            if isinstance(error, RecordingError):
                raise
            raise RecordingError(f"cannot write the recording {directory}: {reason(error)}") from None
    return recording


def _arm(native: Any, spool: str, place: str, options: Options, broker: str | None, *, memory_at_once: bool) -> None:
    from tachograph.recorder.collect.output import SEGMENT_SIZE
    from tachograph.recorder.command.settings import settings_text
    from tachograph.recorder.inprocess import arm
    from tachograph.recorder.inprocess.configuration import Configuration

    values = {
        **options.as_settings("setting"),
        "waits": True,
        "rotate": False,
        "segment": SEGMENT_SIZE,
        "owner": os.geteuid(),
        "place": place,
        **({"memory_at_once": True} if broker is not None and memory_at_once else {}),
        **({} if broker is None else {"fd_broker": broker}),
    }
    config = settings_text(values)
    if not native.configure(os.fsencode(spool), os.fsencode(config)):
        raise RecordingError(f"the path {one_line(spool)} is too long for a recording")
    try:
        arm.start(Configuration(spool, config), lasting=False)
    except (OSError, RuntimeError) as error:
        native.disarm()
        raise RecordingError(f"cannot record this process: {one_line(str(error))}") from None
    from tachograph.recorder.attached.present_moment import native_id

    # They ran before there was a hook that could have learned their names.
    threading = sys.modules.get("threading")
    for thread in () if threading is None else threading.enumerate():
        tid = native_id(thread)
        if tid is not None:
            native.name_thread(tid, thread.name)


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it has been removed


def _tell(recording: Recording) -> None:
    if recording.texts is not None:
        try:
            recording.texts.tell()
        except OSError:
            return  # the disk is full, or the recording was removed: then these texts are unknown


def _tell_if_possible(recording: Recording) -> None:
    try:
        _tell(recording)
    except ImportError:
        return  # these texts are unknown then, as where the disk is full


def _end_at_exit(native: Any) -> None:
    """The interpreter ends: the recording is completed by the process beside it, which is not waited for.

    Nothing may be there to import from any more: the program has another root directory, or took modules away. And
    where recording has stopped, a seccomp filter may be the reason, which judges the system calls that are made here.
    """
    recording = native.claimed() if native.active() else None
    if recording is not None and recording.control is not None and recording.pid == os.getpid():
        native.disarm()
        native.unclaim()
        _tell_if_possible(recording)
        recording.control.close()


class TextTeller:
    """Writes texts into the spool in ``directory``, each once; ``cells`` knows which of them are cells."""

    def __init__(self, directory: str, cells: Cells | None = None) -> None:
        self._directory = directory
        with HeldFolder.open(directory) as spool:
            self._identity = spool.identity
        self._cells = cells
        self._told: dict[str, ToldText] = {}
        self._files = 0
        self._used = 0

    def tell(self) -> None:
        """Write what was not written before, or has changed; the newest first where there is not room for all.

        Raises OSError if it cannot be written.
        """
        texts = list(texts_without_files())
        if not texts:
            return
        from tachograph.format.spool.told_texts import MAX_TEXT, MAX_TEXTS, encode_texts  # most programs have none

        new: dict[str, ToldText] = {}
        for path, text in reversed(texts):
            entry = self._text(path, text)
            if self._told.get(path) != entry and len(text) <= min(MAX_TEXT, MAX_TEXTS - self._used):
                new[path] = entry
                self._used += len(text)
        data = encode_texts(new)
        if not data or len(data) > MAX_TEXTS:
            return
        name = f"texts.{self._files:06}.jsonl"
        # No descriptor is kept open in the program; that it is the same folder is what counts.
        with HeldFolder.open(self._directory, self._identity) as spool:
            write_bytes(os.path.join(spool.here, name), data)
        self._files += 1
        self._told |= new

    def _text(self, path: str, text: str) -> ToldText:
        from tachograph.format.spool.told_texts import MAX_ID, MOST_CELL, ToldText

        cell, cell_id = (None, None) if self._cells is None else self._cells(path)
        cell = cell if cell is not None and 0 <= cell <= MOST_CELL else None
        return ToldText(text, cell, cell_id if cell_id is not None and len(cell_id) <= MAX_ID else None)


def texts_without_files() -> Iterator[tuple[str, str]]:
    """``co_filename`` and text of the code that no file has, the oldest first."""
    linecache = sys.modules.get("linecache")
    for path, entry in list(linecache.cache.items()) if linecache is not None else ():
        # Size, time of the file, lines, full name; the time is None where there is no file.
        if len(entry) == 4 and entry[1] is None and isinstance(path, str):
            yield path, "".join(entry[2])
