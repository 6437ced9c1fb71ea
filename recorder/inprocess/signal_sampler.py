"""The signal sampler: Scalene's published algorithm (OSDI 2023, section 2; arXiv 2020, section 3.1) in pure Python.

A timer in virtual time interrupts the main thread. The virtual time since the interruption before is T, the interval
asked for is the quantum q: a delay T - q can only come from native code, because the interpreter takes signals
between instructions. Other threads, which never take a signal, are enumerated, and the instruction at their leaf
tells whether they are in a call. Here only the facts are written down (T, stacks, opcodes); the analyzer applies the
rule.

The algorithm replaces blocking calls by ones that mark their thread as sleeping, and gives joins of the main thread
timeouts, so that it comes back to the interpreter and takes its signals (section 2.2). That is the least that makes the
method work: joins, condition variables (events, queues, semaphores and barriers wait on them) and ``time.sleep``.
``os.execv`` and ``os.execve`` are there for another reason: see SignalSampler. The native sampler patches nothing.

Runs in the profiled process, where the native recorder cannot; standard library only.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from tachograph.recorder import clock
from tachograph.recorder.inprocess import spool_writer
from tachograph.recorder.inprocess.configuration import Configuration
from tachograph.recorder.inprocess.spool_layout import (
    CPU,
    CPU_BODY,
    CPU_UNKNOWN,
    GIL_UNKNOWN,
    GIL_YES,
    LOSS_EXECS,
    LOSS_FORKS_UNRECORDED,
    LOSS_RECORDS_DROPPED,
    LOSS_SIGNAL_CONFLICTS,
    META,
    NAME_SOURCE_PYTHON,
    ORIGIN_SIGNAL,
    ORIGIN_SIGNAL_THREAD,
    SPAN,
    STATE,
    STATE_BODY,
    STATE_EVENT_EXEC,
    STATE_EVENT_PAUSED,
    STATE_EVENT_RESUMED,
    THREAD_END,
    THREAD_END_BODY,
    THREAD_NAME,
    THREAD_NAME_BODY,
    THREAD_START,
    THREAD_START_BODY,
)
from tachograph.recorder.inprocess.spool_writer import (
    ContextTable,
    SpoolWriter,
    Stack,
    call_opcode,
    copy_stack,
    meta_body,
    span_body,
)
from tachograph.recorder.inprocess.unforked_ranges import holes_of_child

OWN_FILES = frozenset((__file__, spool_writer.__file__))

UNKNOWN_CPU = -1
"""CPU time of a thread whose clock is gone with it."""

LONGEST_WAIT_S = 0.1
"""How long a span waits for the spool at most."""


def arm(config: Configuration, facts: dict[str, str]) -> None:
    """Start sampling this process as ``config`` says; OSError if the spool cannot be written."""
    paused = config.paused  # before there is a spool: it may be missing
    SignalSampler(config, facts).start(paused)


def running() -> SignalSampler | None:
    """The sampler that owns the timer's signal at this moment, if there is one.

    The signal's handler is the one place where a process keeps it, so there is no state of our own that could disagree.
    """
    owner = getattr(signal.getsignal(signal.SIGVTALRM), "__self__", None)
    return owner if isinstance(owner, SignalSampler) else None


class SignalSampler:
    """Samples this process at every interval of its virtual time."""

    def __init__(self, config: Configuration, facts: dict[str, str]) -> None:
        self._config = config
        self._interval_s = config.interval_ns / 1e9
        self._facts = facts
        self._begin(SpoolWriter(config.spool, config.segment_size))

    def _begin(self, writer: SpoolWriter) -> None:
        """Everything that belongs to one process."""
        self._writer = writer
        self._contexts = ContextTable(writer)
        # By id(): a program's subclass of Thread need not be hashable. Holding the thread keeps its id() from being
        # used again.
        self._threads: dict[int, tuple[threading.Thread, int]] = {}
        self._names: dict[int, str] = {}
        self._pid = os.getpid()
        self._main = threading.main_thread()
        self._main_clock = time.pthread_getcpuclockid(self._main.ident or 0)
        self._main_cpu_ns = 0
        self._resumed_at_cpu_ns = 0
        # Taken without waiting in the handler: it may have interrupted the very thread that holds it.
        self._lock = threading.Lock()
        self._last_ns = 0
        self._paused = True
        self._blocking = BlockingCalls()
        for key, value in self._facts.items():
            writer.append(META, meta_body(key, value))
        self._thread(self._main)

    def start(self, paused: bool) -> None:
        """Take the signal, patch the blocking calls and, unless ``paused``, start the timer."""
        signal.signal(signal.SIGVTALRM, self.tick)
        signal.siginterrupt(signal.SIGVTALRM, False)  # noqa: FBT003 - the function takes no keywords
        atexit.register(self.stop)
        os.register_at_fork(after_in_parent=self._forked, after_in_child=self._in_child)
        self._go(paused)

    def _go(self, paused: bool) -> None:
        self._blocking.install(before_exec=self._before_exec, exec_failed=self._exec_failed)
        if paused:
            self._writer.set_paused(True)
        else:
            self._run()

    def stop(self) -> None:
        """Stop sampling and leave the process as it was found."""
        if os.getpid() != self._pid or not self._writer.open:
            return
        if signal.getsignal(signal.SIGVTALRM) == self.tick:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if threading.current_thread() is self._main:
                signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        else:
            # The program took the signal for itself: from then on there were no samples.
            self._writer.count_loss(LOSS_SIGNAL_CONFLICTS)
        self._blocking.remove()
        self._count_main_cpu()
        with self._lock:
            now_ns = clock.monotonic_ns()
            self._end_thread(now_ns, self._main, self._main_cpu_ns)
            self._note_ended(now_ns, ())
            self._writer.close()
            self._writer.keep()

    def pause(self) -> None:
        """Stop the timer until :meth:`resume`."""
        if os.getpid() != self._pid or self._paused:
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self._count_main_cpu()
        self._paused = True
        self._note(STATE_EVENT_PAUSED)
        self._writer.set_paused(True)

    def resume(self) -> None:
        """Start the timer again after :meth:`pause`."""
        if os.getpid() != self._pid or not self._paused:
            return
        self._note(STATE_EVENT_RESUMED)
        self._writer.set_paused(False)
        self._run()

    def snapshot(self) -> bool:
        """Request a snapshot; True if one is taken."""
        if not self._config.rotates or os.getpid() != self._pid or not self._writer.open:
            return False
        self._writer.ask_for_snapshot()
        return True

    def span(self, name: str, fields: str, start_ns: int, end_ns: int, number: int, parent: int) -> None:
        """Write a span of the calling thread that has ended; what ends while recording is paused is not written."""
        # Not threading.current_thread(): it would make a thread that Python does not know known to the program.
        thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001
        if self._paused or thread is None or os.getpid() != self._pid or not self._writer.open:
            return
        # A span may end in a signal handler or a finaliser that has interrupted this very lock's owner.
        if not self._lock.acquire(timeout=LONGEST_WAIT_S):
            self._writer.count_loss(LOSS_RECORDS_DROPPED)
            return
        try:
            self._writer.append(SPAN, span_body(name, fields, start_ns, end_ns, self._thread(thread), number, parent))
        finally:
            self._lock.release()

    def tick(self, _number: int, frame: FrameType | None) -> None:
        """Handle one signal: one row for the main thread and for each other thread that is executing."""
        # Where the lock is held, the spool is being written to this very moment: the next tick has this one's time as
        # well.
        if self._paused or os.getpid() != self._pid or not self._lock.acquire(blocking=False):
            return
        try:
            cpu_ns = time.process_time_ns()
            elapsed, self._last_ns = cpu_ns - self._last_ns, cpu_ns
            self._sample(clock.monotonic_ns(), elapsed, frame)
            self._writer.count_sample(time.process_time_ns() - cpu_ns)
        except (RecursionError, MemoryError):  # the program is at its limits: it must not notice that we are, too
            self._writer.count_loss(LOSS_RECORDS_DROPPED)
        finally:
            self._lock.release()

    def _sample(self, now_ns: int, elapsed_ns: int, frame: FrameType | None) -> None:
        threads = threading.enumerate()
        stacks = self._other_stacks()
        stacks[self._main.ident or 0] = copy_stack(frame, OWN_FILES)
        for thread in threads:
            if thread.ident in stacks and not self._blocking.is_sleeping(thread.ident):
                self._row(now_ns, elapsed_ns, thread, stacks[thread.ident])
        self._note_ended(now_ns, threads)

    def _other_stacks(self) -> dict[int, Stack]:
        """The stacks of all threads but the main one. Before anything is written, so that no frame is held for long."""
        frames = sys._current_frames()  # noqa: SLF001 - the published way to the other threads' stacks
        frames.pop(self._main.ident or 0, None)
        return {ident: copy_stack(frames.pop(ident), OWN_FILES) for ident in list(frames)}

    def _row(self, now_ns: int, elapsed_ns: int, thread: threading.Thread, stack: Stack) -> None:
        number, state = self._contexts.number(stack)
        in_main = thread is self._main
        origin, gil = (ORIGIN_SIGNAL, GIL_YES) if in_main else (ORIGIN_SIGNAL_THREAD, GIL_UNKNOWN)
        fields = {
            "time_ns": now_ns,
            "cpu_ns": elapsed_ns,
            "thread": self._thread(thread),
            "stack": number,
            "gil": gil,
            "opcode": call_opcode(stack),
            "origin": origin,
            "stack_state": state,
        }
        self._writer.append(CPU, struct.pack(CPU_BODY, *(CPU_UNKNOWN | fields).values()))

    def _thread(self, thread: threading.Thread) -> int:
        numbered = self._threads.get(id(thread))
        number = len(self._names) if numbered is None else numbered[1]
        if numbered is None:
            self._threads[id(thread)] = thread, number
            start = (number, thread.native_id or 0, clock.monotonic_ns(), thread is self._main)
            self._writer.append(THREAD_START, struct.pack(THREAD_START_BODY, *start))
        if self._names.get(number) != thread.name:
            self._names[number] = thread.name
            name = str(thread.name).encode("utf-8", "replace")[:0xFFFF]
            self._writer.append(
                THREAD_NAME, struct.pack(THREAD_NAME_BODY, number, NAME_SOURCE_PYTHON, len(name)) + name
            )
        return number

    def _note_ended(self, now_ns: int, alive: Iterable[threading.Thread]) -> None:
        for gone in self._threads.keys() - {id(thread) for thread in alive}:
            self._end_thread(now_ns, self._threads[gone][0], UNKNOWN_CPU)

    def _end_thread(self, now_ns: int, thread: threading.Thread, cpu_ns: int) -> None:
        _, number = self._threads.pop(id(thread))
        self._writer.append(THREAD_END, struct.pack(THREAD_END_BODY, number, now_ns, cpu_ns))

    def _run(self) -> None:
        self._paused = False
        self._resumed_at_cpu_ns = time.clock_gettime_ns(self._main_clock)
        self._last_ns = time.process_time_ns()
        signal.setitimer(signal.ITIMER_VIRTUAL, self._interval_s, self._interval_s)

    def _count_main_cpu(self) -> None:
        if not self._paused:
            self._main_cpu_ns += time.clock_gettime_ns(self._main_clock) - self._resumed_at_cpu_ns

    def _before_exec(self) -> None:
        # The timer would outlive this program, the handler would not: its signal would kill the next one.
        if os.getpid() == self._pid and self._writer.open:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._note(STATE_EVENT_EXEC)
            self._writer.count_loss(LOSS_EXECS)

    def _exec_failed(self) -> None:
        if os.getpid() == self._pid and self._writer.open:
            self._writer.count_loss(LOSS_EXECS, -1)
            if not self._paused:
                signal.setitimer(signal.ITIMER_VIRTUAL, self._interval_s, self._interval_s)

    def _note(self, event: int, detail: int = 0) -> None:
        with self._lock:
            self._writer.append(STATE, struct.pack(STATE_BODY, clock.monotonic_ns(), event, detail))

    def _forked(self) -> None:
        if self._writer.open and not self._config.children:
            self._writer.count_loss(LOSS_FORKS_UNRECORDED)

    def _in_child(self) -> None:
        # The child has no timer, and the maps are its parent's: but for what is lost it must never write to them.
        recorded, parents, paused = self._writer.open and self._config.children, self._writer, self._paused
        parents.open = False
        self._paused = True
        self._blocking.remove()
        if not recorded or signal.getsignal(signal.SIGVTALRM) != self.tick:
            parents.keep()
            return
        try:
            holes = holes_of_child(self._pid)
            self._begin(SpoolWriter(self._config.spool, self._config.segment_size, parents.place, holes))
        except OSError:
            parents.count_loss(LOSS_FORKS_UNRECORDED)
            parents.keep()
            return
        parents.release()
        self._go(paused)


P = ParamSpec("P")
R = TypeVar("R")


class BlockingCalls:
    """Replaces the calls, knows which threads are inside one, and puts the originals back."""

    def __init__(self) -> None:
        self._sleeping: set[int] = set()
        self._originals: list[tuple[Any, str, Any, Any]] = []

    def install(self, *, before_exec: Callable[[], None], exec_failed: Callable[[], None]) -> None:
        """Replace the calls; ``before_exec`` is called before the process becomes another program, or fails to."""
        join = threading.Thread.join
        self._replace(threading.Thread, "join", self._join_with_timeouts(join))
        self._replace(threading.Condition, "wait", self._marked(threading.Condition.wait))
        self._replace(time, "sleep", self._marked(time.sleep))
        for name in ("execv", "execve"):
            self._replace(os, name, _announced(getattr(os, name), before_exec, exec_failed))

    def remove(self) -> None:
        """Put the originals back, except where the program has replaced ours by its own."""
        for owner, name, original, replacement in self._originals:
            if getattr(owner, name) is replacement:
                setattr(owner, name, original)
        self._originals.clear()

    def is_sleeping(self, ident: int | None) -> bool:
        """True if that thread is inside one of the calls."""
        return ident in self._sleeping

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name), replacement))
        setattr(owner, name, replacement)

    def _marked(self, original: Callable[P, R]) -> Callable[P, R]:
        sleeping = self._sleeping

        @wraps(original)
        def wait(*args: P.args, **kwargs: P.kwargs) -> R:
            ident = threading.get_ident()
            sleeping.add(ident)
            try:
                return original(*args, **kwargs)
            finally:
                sleeping.discard(ident)

        return wait

    def _join_with_timeouts(self, original: Callable[..., None]) -> Callable[..., None]:
        marked = self._marked(original)

        @wraps(original)
        def join(self: threading.Thread, timeout: float | None = None) -> None:
            if threading.current_thread() is not threading.main_thread():
                return marked(self, timeout)
            deadline = None if timeout is None else time.monotonic() + timeout
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                step = sys.getswitchinterval()
                marked(self, step if left is None else min(step, left))
                if not self.is_alive() or (left is not None and left <= step):
                    return None

        return join


def _announced(original: Callable[P, R], before: Callable[[], None], failed: Callable[[], None]) -> Callable[P, R]:
    @wraps(original)
    def execute(*args: P.args, **kwargs: P.kwargs) -> R:
        before()
        try:
            return original(*args, **kwargs)
        finally:
            failed()  # exec returns only if it failed

    return execute
