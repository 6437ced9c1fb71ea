"""Collects what the spool says about one process, apart from its rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from .directory import ControlFile
from .layout import (
    Carried,
    Code,
    Definition,
    Meta,
    Module,
    NameSource,
    NativeStack,
    Span,
    Stack,
    State,
    ThreadCarried,
    ThreadEnd,
    ThreadName,
    ThreadOrigin,
    ThreadStart,
)
from .segment import Segment, carried_torn


@dataclass
class ThreadFacts:
    """What is known of a thread; None where its record was lost. ``earlier_ns`` is CPU time in earlier windows."""

    start: ThreadStart | None = None
    name: ThreadName | None = None
    end: ThreadEnd | None = None
    origin: ThreadOrigin | None = None
    earlier_ns: int = 0


@dataclass
class ProcessFacts:
    """What is known of a process: its definitions by the spool's ids, and what it mentions.

    ``mentions`` are the distinct ``thread``, ``stack``, ``native_stack`` and ``pc`` values of its rows. ``first_ns``
    and ``last_ns`` are the times of its first and last row. ``number`` is its row in the table processes. ``carried``
    says where its window begins, in a recording that is rotated; ``later_threads`` are known only from behind its end.
    """

    prefix: str
    pid: int
    start_ns: int
    control: ControlFile | None = None
    meta: dict[str, str] = field(default_factory=dict)
    threads: dict[int, ThreadFacts] = field(default_factory=dict)
    codes: dict[int, Code] = field(default_factory=dict)
    stacks: dict[int, Stack] = field(default_factory=dict)
    native_stacks: dict[int, NativeStack] = field(default_factory=dict)
    modules: dict[int, Module] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    mentions: dict[str, set[int]] = field(
        default_factory=lambda: {"thread": set(), "stack": set(), "native_stack": set(), "pc": set()}
    )
    first_ns: int | None = None
    last_ns: int | None = None
    records_torn: int = 0
    segments_missing: int = 0
    references_lost: int = 0
    number: int = 0
    carried: Carried | None = None
    later_threads: set[int] = field(default_factory=set)

    def add(self, segment: Segment) -> None:
        """Take over the definitions of a segment. The first definition of an id counts, the last name of a thread."""
        self.records_torn += segment.torn + carried_torn(segment)
        for record in segment.definitions():
            match record:
                case State():
                    self.states.append(record)
                case Span():
                    self._named(record)
                case ThreadEnd():
                    self.threads.setdefault(record.thread, ThreadFacts()).end = record
                case ThreadCarried():
                    self.threads.setdefault(record.thread, ThreadFacts()).earlier_ns = record.cpu_ns
                case Carried():
                    self.carried = record
                case _:
                    self._define(record)

    def define(self, segment: Segment) -> None:
        """Take over only what a later segment says about the ids that earlier ones use already."""
        for record in segment.definitions():
            if isinstance(record, ThreadStart | ThreadName) and record.thread not in self.threads:
                self.later_threads.add(record.thread)
            self._define(record)

    def _define(self, record: Definition) -> None:
        match record:
            case Stack():
                self.stacks.setdefault(record.stack, record)
            case NativeStack():
                self.native_stacks.setdefault(record.native_stack, record)
            case Code():
                self.codes.setdefault(record.code, record)
            case Module():
                self.modules.setdefault(record.module, record)
            case ThreadStart():
                self.threads.setdefault(record.thread, ThreadFacts()).start = record
            case ThreadOrigin():
                self.threads.setdefault(record.thread, ThreadFacts()).origin = record
                self.mention("pc", {record.start})
            case ThreadName():
                self._call(record)
            case Meta():
                self.meta[record.key] = record.value

    def forget_contexts(self) -> None:
        """Let go of what only ``ContextTree.add`` needs, and what thousands of processes would hold."""
        self.codes.clear()
        self.stacks.clear()
        self.mentions["stack"].clear()

    def mention(self, column: str, values: set[int]) -> None:
        """Note ids or addresses that rows refer to."""
        self.mentions[column] |= values

    def span(self, first_ns: int, last_ns: int) -> None:
        """Note the times of the first and the last of some rows."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def _named(self, record: Span) -> None:
        if record.end_ns < record.start_ns:
            self.records_torn += 1  # damaged: it would end before it begins
            return
        self.spans.setdefault(record.span, record)
        self.mention("thread", {record.thread})
        self.span(record.start_ns, record.end_ns)

    def _call(self, record: ThreadName) -> None:
        facts = self.threads.setdefault(record.thread, ThreadFacts())
        if facts.name is None or facts.name.source != NameSource.PYTHON or record.source == NameSource.PYTHON:
            facts.name = record
