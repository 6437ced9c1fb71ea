"""Starts the program and stays beside it: signals are passed on, stops are shared, its end is waited for.

The program must not notice that it has a parent of a new kind: it keeps the signal mask, the dispositions, the file
descriptors, the process group and the terminal that this command was started with.
"""

from __future__ import annotations

import os
import sys
import time

from tachograph.format.plain_records import record_class
from tachograph.recorder import clock
from tachograph.recorder.command.executables import is_built_with_sanitizer
from tachograph.recorder.command.settings import settings_text
from tachograph.recorder.problems import Refused, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence
else:
    import _signal as signal  # the same without enumerations, which take milliseconds to be made

# Not for the program: signals that cannot be caught, and those that we ignore, as they tell each process of its own
# files. Those of faults are passed on where a process has sent them: batch systems send SIGXCPU, watchdogs SIGABRT.
# A fault of our own ends us although they are blocked: the kernel sees to that, and abort() itself.
_NOT_PASSED_ON = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}
_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_WATCHED = signal.valid_signals() - _NOT_PASSED_ON
# What python itself sets to SIG_IGN at its start; the program's python does so again.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

IMPATIENCE_S = 0.5
"""A signal that comes so soon after the program's end was still meant for the program: a second Ctrl-C, for example."""

_SLACK_NS = 20_000
"""Far less CPU time than any process takes."""

ORPHANS_S = 1.0
"""How often process 1 looks for orphans that have ended, beside when it is told of one."""


_NONE, _STOPPED, _CONTINUED, _ENDED = range(4)
"""What became of the program, as waitid tells."""

_ENDS = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
"""Codes of waitid that are ends: it tells the stops of a child that we trace unasked."""


def ignored_of_glibc() -> int:
    """Which of glibc's own signals our caller has had ignored: 1 is signal 32, 2 is signal 33; 0 if it is unknown.

    A caller that uses posix_spawn has; and ``signal`` knows nothing of them. posix_spawn has them ignored in the
    program as well: the library undoes that for those that were not. Not for a process with threads: there glibc
    handles signal 33.
    """
    try:
        with open("/proc/self/status", "rb") as file:
            ignored = next((line for line in file if line.startswith(b"SigIgn:")), b"SigIgn: 0")
    except OSError:
        return 0
    return int(ignored.split()[1], 16) >> 31 & 3


@record_class
class Settings:
    """The settings of the profiled process; see settings.py.

    ``values`` are numbers, flags, texts and lists of patterns by their key in the configuration; ``preload`` is the
    native sampler's library, ``broker`` the name of the fd broker's socket.
    """

    spool: str
    values: Mapping[str, int | str | Sequence[str]]
    preload: str | None
    broker: str | None = None

    def environment(self, original: Mapping[str, str]) -> dict[str, str]:
        """The environment for the program; the library, or arm.py without it, takes out again what is added here."""
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        values = {**self.values, "home": (home,), **({} if self.broker is None else {"fd_broker": self.broker})}
        environment = dict(original)
        environment["TACHOGRAPH_SPOOL"] = self.spool
        environment["TACHOGRAPH_CONFIG"] = settings_text(values)
        if self.preload is not None:
            theirs = original.get("LD_PRELOAD")
            # A sanitizer's runtime must be there before anything that was built with it.
            last = theirs is not None and is_built_with_sanitizer()
            libraries = (theirs, self.preload) if last else (self.preload, theirs)
            environment["LD_PRELOAD"] = ":".join(library for library in libraries if library is not None)
        return environment


@record_class
class Program:
    """The first process of a recording; ``start_ns`` is a monotonic time just before it was started."""

    pid: int
    start_ns: int
    path: str
    arguments: Sequence[str]


@record_class
class ChildEnd:
    """The exit status and resource usage of a child, from the kernel; negative numbers are unknown.

    ``status`` is as :func:`exit_status` has it. CPU time is without that of children which it waited for.
    """

    pid: int
    status: int
    time_ns: int
    user_ns: int = -1
    system_ns: int = -1
    max_resident_bytes: int = -1


def take_status(pid: int) -> ChildEnd | None:
    """Take the status of a child that has ended; None if it has none any more."""
    told_ns = clock.monotonic_ns()
    user_ns, system_ns = _cpu_time(pid)
    try:
        pid, status, usage = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    import resource

    most = -1
    # The kernel counts the children that it waited for as well, and what we had when it was started.
    alone = user_ns >= 0 and (usage.ru_utime + usage.ru_stime) * 1e9 <= user_ns + system_ns + _SLACK_NS
    if alone and usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        most = usage.ru_maxrss * 1024
    return ChildEnd(pid, exit_status(status), told_ns, user_ns, system_ns, most)


def _cpu_time(pid: int) -> tuple[int, int]:
    """CPU time of a process in user mode and in the kernel, ns, whose status is not taken yet; -1: unknown.

    The two are counted in ticks, and exact together, as in its clocks (clock_getcpuclockid in the kernel's
    posix-timers.h).
    """
    try:
        ticks, user, total = (time.clock_gettime_ns(~pid << 3 | kind) for kind in range(3))
    except OSError:
        return -1, -1
    user = total * user // ticks if ticks > 0 else total
    return user, total - user


def hold_signals() -> set[int]:
    """Block the signals that are to be passed on, so that none is lost; the mask as it was, for the program."""
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)}


def release_signals() -> None:
    """Let signals that ask to end do so again, at once, whatever is being done; those that came until now are over.

    For what is done after the program's end: these signals were the program's until then. What the caller had ignored
    stays ignored.
    """
    for number in _ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_IGN)  # discards what is pending
            signal.signal(number, signal.SIG_DFL)
    import threading  # not before the program runs

    threading.Thread(target=_unblock_endings, name="tachograph signals", daemon=True).start()


def _unblock_endings() -> None:
    clock.rest(IMPATIENCE_S)
    while signal.sigtimedwait(_ENDINGS, 0) is not None:
        pass
    if os.getpid() == 1:
        # The kernel ends process 1 by no signal that it could block or handle.
        os._exit(128 + signal.sigwait(_ENDINGS))
    # A signal for the whole process ends it when one thread does not block it, even if others hold the interpreter.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    while True:
        clock.rest(1 << 20)


def interrupted() -> int | None:
    """A signal that came since :func:`hold_signals` and asks to end, or None."""
    return next((number for number in _ENDINGS if number in signal.sigpending()), None)


def start(program: str, arguments: Sequence[str], environment: Mapping[str, str], mask: set[int]) -> Program:
    """Start the executable file ``program``; ``arguments`` begin with argv[0].

    Raises Refused if the system does not let us.
    """
    start_ns = clock.monotonic_ns()
    try:
        pid = os.posix_spawn(
            program,
            list(arguments),
            environment,
            setsigmask=mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except OSError as error:
        raise Refused(f"cannot start {program}: {reason(error)}") from None
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Our caller ignores the ends of its children; we must not. The program has its own copy by now.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return Program(pid, start_ns, program, arguments)


class Watch:
    """Waits for the end of the program and deals with signals until then.

    The signals of ``own`` are for the recording command alone: each has a function that is called when it comes.
    ``at_end`` is called when the program has ended and the kernel still knows it. As process 1 of a container this
    process inherits the orphans there, and takes their statuses as well, but for children that ``ignores`` names;
    ``orphan_ended`` is called with them. ``ended`` is how the program ended, when it has.
    """

    def __init__(
        self,
        pid: int,
        own: Mapping[int, Callable[[], None]] | None = None,
        *,
        at_end: Callable[[], None] = lambda: None,
        ignores: Callable[[int], bool] = lambda pid: False,
        orphan_ended: Callable[[ChildEnd], None] = lambda end: None,
    ) -> None:
        self.ended: ChildEnd | None = None
        self._orphan_ended = orphan_ended
        self._pid = pid
        self._own = own or {}
        self._at_end = at_end
        self._ignores = ignores
        self._is_init = os.getpid() == 1
        self._stopped = False
        self._stop_with_it = False

    def until_end(self) -> int:
        """Wait for the program's end; its exit status, negative for a signal."""
        # Looking comes before waiting: a change of SIGCHLD's disposition discards one that has come already.
        status = self._look()
        while status is None:
            # Several ends may come as one signal, and a child that is spared hides those behind it for a moment.
            info = signal.sigtimedwait(_WATCHED, ORPHANS_S) if self._is_init else signal.sigwaitinfo(_WATCHED)
            if info is None or info.si_signo == signal.SIGCHLD:
                status = self._look()
            elif (call := self._own.get(info.si_signo)) is not None:
                call()
            else:
                self._pass_on(info.si_signo, had=self._has_had(info))
        return status

    def _look(self) -> int | None:
        if self._is_init:
            self._reap_orphans()
        while True:
            change, status = self._next_change()
            if change == _ENDED:
                return status
            if change == _NONE:
                return None
            if change == _STOPPED and let_go(self._pid, status):
                continue
            self._stopped = change == _STOPPED
            self._share_stop()

    def _reap_orphans(self) -> None:
        try:
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid == self._pid or self._ignores(ended.si_pid) or ended.si_code not in _ENDS:
                    return
                if (end := take_status(ended.si_pid)) is not None:
                    self._orphan_ended(end)
        except ChildProcessError:
            return  # there is none any more

    def _next_change(self) -> tuple[int, int]:
        """The next change of the program's state, and its exit status or the signal that stopped it."""
        try:
            end = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None and end.si_code in _ENDS:
                self._at_end()
                self.ended = take_status(self._pid)
                return _ENDED, 0 if self.ended is None else self.ended.status
            change = os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return _ENDED, 0  # another thread or library has taken its status
        if change is None:
            return _NONE, 0
        # One that has itself traced stops at signals and at other events, which stand above them.
        return _CONTINUED if change.si_code == os.CLD_CONTINUED else _STOPPED, change.si_status & 0xFF

    def _has_had(self, info: signal.struct_siginfo) -> bool:
        """True if the program has had a signal already, as it is in our process group.

        So are those that a terminal sends (Ctrl-C, Ctrl-Z, a new size), but for SIGHUP, which it sends to the first
        process of the session alone; and those that the program sends to the group, or a process below it. What these
        send to process 1 of a container is for the program, which would be that one without us. What the kernel sends
        to us alone, such as SIGXCPU when our own time is used up, is not for the program either.
        """
        if info.si_code > 0:
            return info.si_signo != signal.SIGHUP or os.getsid(0) != os.getpid()
        if info.si_pid <= 0 or self._is_init:
            return False
        from tachograph.recorder.collect.running import ancestors

        return self._pid in ancestors(info.si_pid)

    def _pass_on(self, number: int, *, had: bool) -> None:
        if number == signal.SIGCONT:
            # It came to the whole group, or to us alone: what counts is whether the program is still stopped.
            self._stop_with_it = False
            if self._stopped:
                self._send(signal.SIGCONT)
            return
        if number in _STOPS:
            self._stop_with_it = True
        if not had:
            self._send(number)
        self._share_stop()

    def _send(self, number: int) -> None:
        try:
            os.kill(self._pid, number)
        except PermissionError:
            return  # it has become another user's (sudo), and would take none from our caller either

    def _share_stop(self) -> None:
        # The shell looks at us: we stop when the program does. A program that takes Ctrl-Z for itself goes on. Where no
        # shell waits for us in a terminal, we stop only if we were asked to.
        if not self._stopped:
            return
        asked, self._stop_with_it = self._stop_with_it, False
        if asked:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif in_foreground():
            # It has stopped itself, or another process has stopped it, which may let it go on without a word to us: the
            # shell is to have its terminal back in any case.
            waker = wake_when_it_goes_on(self._pid)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(waker, signal.SIGKILL)
            os.waitpid(waker, 0)


def in_foreground() -> bool:
    """True if this process is of the job that has the terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


_WAKER = """
import os, select, sys
pid, ours = map(int, sys.argv[1:])
def state():
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return b"X"
while state() in b"Tt" and os.getppid() == ours:
    select.poll().poll(20)
if os.getppid() == ours:
    os.kill(ours, 18)  # SIGCONT
"""


def wake_when_it_goes_on(pid: int) -> int:
    """Start a process that lets this one go on (SIGCONT) when process ``pid`` is not stopped any more; its process id.

    It is in a process group of its own: a signal for ours is not for it.
    """
    arguments = [sys.executable, "-I", "-S", "-c", _WAKER, str(pid), str(os.getpid())]
    return os.posix_spawn(sys.executable, arguments, {}, setpgroup=0, setsigmask=())


def let_go(pid: int, number: int) -> bool:
    """Give a child that has made us its tracer (PTRACE_TRACEME) the signal that stopped it; False if it has not.

    It stops at every signal until its tracer lets it go on: without us it would have met none of the recorder's.
    """
    if number in _STOPS or number == signal.SIGSTOP:
        return False
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            status = file.read()
    except OSError:
        return False
    if f"\nTracerPid:\t{os.getpid()}\n" not in status:
        return False
    import ctypes

    ptrace_cont = 7
    ptrace = ctypes.CDLL(None).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return bool(ptrace(ptrace_cont, pid, None, number) == 0)


def exit_status(status: int) -> int:
    """The exit status in a status of waitpid; negative for the signal that ended the program."""
    return os.waitstatus_to_exitcode(status)


def end_like(code: int) -> None:
    """End this process as the program ended: with its exit status, or by the signal that ended it.

    ``code`` is an :func:`exit_status`. Does not return.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where the descriptor is closed
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # its reader has gone
    if code < 0:
        _die_of(-code)
    # Not sys.exit: an orderly shutdown of pyarrow takes longer than all other steps of the end.
    os._exit(code if code >= 0 else 128 - code)


def _die_of(number: int) -> None:
    """Die of signal ``number`` as the program did, but without a second core dump."""
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    pr_set_dumpable = 4  # a core pattern that is a pipe takes no notice of the limit
    ctypes.CDLL(None).prctl(pr_set_dumpable, 0, 0, 0, 0)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
