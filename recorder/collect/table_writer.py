"""Makes the tables of closed windows in processes of their own: what they take of memory goes back whole.

In a process that goes on for days the allocators would keep a part of what the tables of each window took.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ParamSpec

from tachograph.format import FormatError
from tachograph.recorder.collect.finish import UnfinishedError

if TYPE_CHECKING:
    from tachograph.recorder.collect.held_folder import HeldFolder

_PR_SET_PDEATHSIG = 1

# The path is the command's own, which has found this package there; nothing is to come from the working folder.
_CODE = """
import sys
sys.path[:] = sys.argv[2:]
from tachograph.recorder.collect.table_writer import serve
serve(int(sys.argv[1]))
"""

Arguments = ParamSpec("Arguments")


class TableProcess:
    """Calls functions of modules in another process, which is started for the first call after an ``end``.

    Like every process of the thread that uses it, it steps back for others; signals are blocked in it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, folders: Iterable[HeldFolder]) -> None:
        """Start the process, unless there is one. The paths that these folders have here lead to them there as well.

        Raises OSError if there can be no process.
        """
        if self._process is None:
            self._process = _started([each.descriptor for each in folders if each.descriptor is not None])

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one."""
        return None if self._process is None else self._process.pid

    def call(self, function: Callable[Arguments, object], *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Call ``function`` there and wait until it is through.

        Raises what the function raises; OSError if there can be no process; UnfinishedError if writing failed.
        """
        self.start(())
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((function, args, kwargs), process.stdin)
            process.stdin.flush()
            raised = pickle.load(process.stdout)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise UnfinishedError(f"the process that makes the tables ended with status {self.end()}") from None
        if raised is not None:
            raise raised

    def end(self) -> int:
        """Let the process end, if there is one; its exit status."""
        process = self._process
        if process is None:
            return 0
        process.communicate()
        self._process = None  # not before: until then it is known by its id
        return process.returncode


def _started(descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _CODE, str(os.getpid()), *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
    )


def serve(parent: int) -> None:
    """The other process: calls the functions that standard input names, and writes what they raise, or None."""
    # Only the command writes into a spool: what it began must not go on after it was killed.
    gc.disable()  # it would look again and again at millions of nodes that stay; the process ends soon
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    while os.getppid() == parent:
        try:
            function, args, kwargs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        raised = None
        try:
            function(*args, **kwargs)
        except (OSError, FormatError, UnfinishedError) as error:
            raised = error
        pickle.dump(raised, sys.stdout.buffer)
        sys.stdout.buffer.flush()
