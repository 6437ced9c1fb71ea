"""The signal sampler: Scalene's published algorithm (OSDI 2023, section 2; arXiv 2020, section 3.1) in pure Python.

A timer in virtual time interrupts the main thread. The virtual time since the interruption before is T, the interval
asked for is the quantum q: a delay T - q can only come from native code, because the interpreter takes signals
between instructions. Other threads, which never take a signal, are enumerated, and the instruction at their leaf
tells whether they are in a call. Here only the facts are written down (T, stacks, opcodes); the analyzer applies the
rule.

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
from collections.abc import Iterable
from opcode import opmap
from types import CodeType, FrameType

from tachograph.recorder import blocking_calls
from tachograph.recorder.spool_writer import (
    CODE,
    CPU,
    EXECS,
    FORKS_UNRECORDED,
    META,
    NONE,
    RECORDS_DROPPED,
    SIGNAL_CONFLICTS,
    STACK,
    STACKS_TRUNCATED,
    STATE,
    THREAD_END,
    THREAD_NAME,
    THREAD_START,
    SpoolWriter,
    text_bytes,
)

# Enumerations of tables.toml.
ORIGIN_SIGNAL, ORIGIN_SIGNAL_THREAD = 2, 3
STATE_WHOLE, STATE_NONE, STATE_TRUNCATED, STATE_LOST = 0, 1, 3, 4
GIL_YES, GIL_UNKNOWN = 1, 2
EVENT_PAUSED, EVENT_RESUMED, EVENT_EXEC = 1, 2, 4
NAME_FROM_PYTHON = 1

OWN_FILES = frozenset((__file__, blocking_calls.__file__))

UNKNOWN_CPU = -1
"""CPU time of a thread whose clock is gone with it."""

MAX_DEPTH = 1024
"""Frames kept of one stack; the innermost ones."""

CALL_OPCODES = frozenset(number for name, number in opmap.items() if name.startswith("CALL"))
"""The instructions that may run native code on a thread (section 2.2: "a map of all such bytecodes at startup")."""


def arm(spool: str, interval_ns: int, paused: bool, segment_size: int, facts: dict[str, str]) -> None:
    """Start sampling this process into ``spool``; OSError if the spool cannot be written."""
    sampler = SignalSampler(SpoolWriter(spool, segment_size), interval_ns, facts)
    sampler.start(paused)


def running() -> SignalSampler | None:
    """The sampler that owns the timer's signal at this moment, if there is one.

    The signal's handler is the one place where a process keeps it, so there is no state of our own that could disagree.
    """
    owner = getattr(signal.getsignal(signal.SIGVTALRM), "__self__", None)
    return owner if isinstance(owner, SignalSampler) else None


class StackTable:
    """Gives code objects and calling contexts their ids, and writes their records when they are first seen."""

    def __init__(self, writer: SpoolWriter) -> None:
        self._writer = writer
        self._codes: dict[int, int] = {}
        # Holding the code objects keeps their addresses from being used again.
        self._kept: list[CodeType] = []
        self._nodes: dict[tuple[int, int, int], int] = {}

    def stack(self, frame: FrameType | None) -> tuple[int, int]:
        """The id of the stack whose innermost frame is ``frame``, and its stack_state."""
        frames: list[FrameType] = []
        while frame is not None and len(frames) < MAX_DEPTH:
            frames.append(frame)
            frame = frame.f_back
        if not frames:
            return NONE, STATE_NONE
        node = NONE
        for one in reversed(frames):
            node = self._node(node, self._code(one.f_code), one.f_lasti)
            if node == NONE:
                return NONE, STATE_LOST
        if frame is None:
            return node, STATE_WHOLE
        self._writer.count_loss(STACKS_TRUNCATED)
        return node, STATE_TRUNCATED

    def _node(self, parent: int, code: int, instruction: int) -> int:
        key = (parent, code, instruction)
        node = self._nodes.get(key)
        if node is None:
            node = len(self._nodes)
            if not self._writer.append(STACK, struct.pack("<IIIi", node, parent, code, max(instruction, -1))):
                return NONE
            self._nodes[key] = node
        return node

    def _code(self, code: CodeType) -> int:
        number = self._codes.get(id(code))
        if number is None:
            number = len(self._kept)
            if not self._writer.append(CODE, code_body(number, code)):
                return NONE
            self._codes[id(code)] = number
            self._kept.append(code)
        return number


class SignalSampler:
    """Samples this process at every ``interval_ns`` of its virtual time."""

    def __init__(self, writer: SpoolWriter, interval_ns: int, facts: dict[str, str]) -> None:
        self._writer = writer
        self._interval_s = interval_ns / 1e9
        self._stacks = StackTable(writer)
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
        self._blocking = blocking_calls.BlockingCalls()
        for key, value in facts.items():
            writer.append(META, meta_body(key, value))
        self._thread(self._main)

    def start(self, paused: bool) -> None:
        """Take the signal, patch the blocking calls and, unless ``paused``, start the timer."""
        signal.signal(signal.SIGVTALRM, self.tick)
        signal.siginterrupt(signal.SIGVTALRM, False)  # noqa: FBT003 - the function takes no keywords
        self._blocking.install(before_exec=self._before_exec, exec_failed=self._exec_failed)
        atexit.register(self.stop)
        os.register_at_fork(after_in_parent=self._forked, after_in_child=self._in_child)
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
            self._writer.count_loss(SIGNAL_CONFLICTS)
        self._blocking.remove()
        self._count_main_cpu()
        with self._lock:
            now_ns = time.monotonic_ns()
            self._end_thread(now_ns, self._main, self._main_cpu_ns)
            self._note_ended(now_ns, ())
            self._writer.close()

    def pause(self) -> None:
        """Stop the timer until :meth:`resume`."""
        if os.getpid() != self._pid or self._paused:
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self._count_main_cpu()
        self._paused = True
        self._note(EVENT_PAUSED)
        self._writer.set_paused(True)

    def resume(self) -> None:
        """Start the timer again after :meth:`pause`."""
        if os.getpid() != self._pid or not self._paused:
            return
        self._note(EVENT_RESUMED)
        self._writer.set_paused(False)
        self._run()

    def tick(self, _number: int, frame: FrameType | None) -> None:
        """Handle one signal: one row for the main thread and for each other thread that is executing."""
        # Where the lock is held, the spool is being written to this very moment: the next tick has this one's time as
        # well.
        if self._paused or os.getpid() != self._pid or not self._lock.acquire(blocking=False):
            return
        try:
            cpu_ns = time.process_time_ns()
            elapsed, self._last_ns = cpu_ns - self._last_ns, cpu_ns
            self._sample(time.monotonic_ns(), elapsed, frame)
            self._writer.count_sample(time.process_time_ns() - cpu_ns)
        except (RecursionError, MemoryError):  # the program is at its limits: it must not notice that we are, too
            self._writer.count_loss(RECORDS_DROPPED)
        finally:
            self._lock.release()

    def _sample(self, now_ns: int, elapsed_ns: int, frame: FrameType | None) -> None:
        frames = sys._current_frames()  # noqa: SLF001 - the published way to the other threads' stacks
        threads = threading.enumerate()
        for thread in threads:
            if self._blocking.is_sleeping(thread.ident):
                continue
            if thread is self._main:
                self._row(now_ns, elapsed_ns, thread, frame, ORIGIN_SIGNAL)
            elif thread.ident in frames:
                self._row(now_ns, elapsed_ns, thread, frames[thread.ident], ORIGIN_SIGNAL_THREAD)
        self._note_ended(now_ns, threads)

    def _row(
        self, now_ns: int, elapsed_ns: int, thread: threading.Thread, frame: FrameType | None, origin: int
    ) -> None:
        frame = programs_frame(frame)
        stack, state = self._stacks.stack(frame)
        opcode = 0 if frame is None else call_opcode(frame)
        gil = GIL_YES if thread is self._main else GIL_UNKNOWN
        row = (now_ns, elapsed_ns, -1, 0, self._thread(thread), stack, 0, gil, opcode, origin, state)
        self._writer.append(CPU, struct.pack("<qqqQIIIBBBB", *row))

    def _thread(self, thread: threading.Thread) -> int:
        known = self._threads.get(id(thread))
        number = len(self._names) if known is None else known[1]
        if known is None:
            self._threads[id(thread)] = thread, number
            start = (number, thread.native_id or 0, time.monotonic_ns(), thread is self._main, 0)
            self._writer.append(THREAD_START, struct.pack("<IiqII", *start))
        if self._names.get(number) != thread.name:
            self._names[number] = thread.name
            name = str(thread.name).encode("utf-8", "replace")[:0xFFFF]
            self._writer.append(THREAD_NAME, struct.pack("<IHH", number, NAME_FROM_PYTHON, len(name)) + name)
        return number

    def _note_ended(self, now_ns: int, alive: Iterable[threading.Thread]) -> None:
        for gone in self._threads.keys() - {id(thread) for thread in alive}:
            self._end_thread(now_ns, self._threads[gone][0], UNKNOWN_CPU)

    def _end_thread(self, now_ns: int, thread: threading.Thread, cpu_ns: int) -> None:
        _, number = self._threads.pop(id(thread))
        self._writer.append(THREAD_END, struct.pack("<IIqq", number, 0, now_ns, cpu_ns))

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
            self._note(EVENT_EXEC)
            self._writer.count_loss(EXECS)

    def _exec_failed(self) -> None:
        if os.getpid() == self._pid and self._writer.open:
            self._writer.count_loss(EXECS, -1)
            if not self._paused:
                signal.setitimer(signal.ITIMER_VIRTUAL, self._interval_s, self._interval_s)

    def _note(self, event: int, detail: int = 0) -> None:
        with self._lock:
            self._writer.append(STATE, struct.pack("<qII", time.monotonic_ns(), event, detail))

    def _forked(self) -> None:
        if self._writer.open:
            self._writer.count_loss(FORKS_UNRECORDED)

    def _in_child(self) -> None:
        # The child has no timer, and the maps are its parent's: it must never write to them.
        self._writer.open = False
        self._paused = True
        self._blocking.remove()


def programs_frame(frame: FrameType | None) -> FrameType | None:
    """``frame``, or the innermost one below it that is not the recorder's: what the program itself was doing."""
    while frame is not None and frame.f_code.co_filename in OWN_FILES:
        frame = frame.f_back
    return frame


def call_opcode(frame: FrameType) -> int:
    """The opcode at the frame's instruction if that is a call, else 0."""
    at, instructions = frame.f_lasti, frame.f_code.co_code
    opcode = instructions[at] if 0 <= at < len(instructions) else 0
    return opcode if opcode in CALL_OPCODES else 0


def code_body(number: int, code: CodeType) -> bytes:
    """A CODE record's bytes after its header."""
    (file_width, file), (name_width, name) = text_bytes(code.co_filename), text_bytes(code.co_qualname)
    table = code.co_linetable
    head = (number, code.co_firstlineno, code.co_flags, len(table), len(code.co_filename), file_width, name_width, 0)
    return struct.pack("<IiIIIBBHII", *head, len(code.co_qualname), 0) + file + name + table


def meta_body(key: str, value: str) -> bytes:
    """A META record's bytes after its header."""
    name, text = key.encode(), value.encode("utf-8", "replace")
    return struct.pack("<HHI", len(name), 0, len(text)) + name + text
