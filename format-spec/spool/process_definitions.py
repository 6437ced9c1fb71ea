"""Collects what the spool says about one process, apart from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .context_records import CodeRecords, NativeRecords, StackRecords
from .directory import ControlFile
from .layout import (
    CODE,
    NATIVE_STACK,
    STACK,
    TASK_STACK,
    Carried,
    Definition,
    Meta,
    Module,
    Span,
    Stack,
    State,
)
from .mentions import Mentions
from .segment import Segment, carried_torn
from .thread_records import FIELDS, ThreadRecords

_UNDECODED = frozenset((STACK, CODE, NATIVE_STACK, *FIELDS))
_CONTEXTS = frozenset((TASK_STACK,))


@dataclass(slots=True)
class ProcessFacts:
    """What is known of a process: its definitions by the spool's ids, and what it mentions.

    ``mentions`` are the ``stack``, ``native_stack`` and ``pc`` values of its rows. ``first_ns`` and
    ``last_ns`` are the times of its first and last row. ``number`` is its row in the table processes. ``carried`` says
    where its window begins, in a recording that is rotated.
    """

    prefix: str
    pid: int
    start_ns: int
    control: ControlFile | None = None
    meta: dict[str, str] = field(default_factory=dict)
    threads: ThreadRecords = field(default_factory=ThreadRecords)
    codes: CodeRecords = field(default_factory=CodeRecords)
    stacks: StackRecords = field(default_factory=StackRecords)
    native_stacks: NativeRecords = field(default_factory=NativeRecords)
    modules: dict[int, Module] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    mentions: dict[str, Mentions] = field(
        default_factory=lambda: {"stack": Mentions("I"), "native_stack": Mentions("I"), "pc": Mentions("Q")}
    )
    first_ns: int | None = None
    last_ns: int | None = None
    records_torn: int = 0
    segments_missing: int = 0
    references_lost: int = 0
    number: int = 0
    carried: Carried | None = None

    def add(self, segment: Segment, *, contexts: bool = True) -> None:
        """Take over the definitions of a segment. The first definition of an id counts, and the last of a thread.

        Without ``contexts`` stacks, code objects and native stacks are left out.
        """
        self.records_torn += segment.torn + carried_torn(segment)
        if contexts:
            self._take_contexts(segment)
        self.mention("pc", self.threads.take(segment))
        for record in segment.definitions(without=_UNDECODED if contexts else _UNDECODED | _CONTEXTS):
            match record:
                case State():
                    self.states.append(record)
                case Span():
                    self._named(record)
                case Carried():
                    self.carried = record
                case _:
                    self._define(record)

    def define(self, segment: Segment) -> None:
        """Take over only what a later segment says about the ids that earlier ones use already."""
        self._take_contexts(segment)
        self.mention("pc", self.threads.take_later(segment))
        for record in segment.definitions(without=_UNDECODED):
            self._define(record)

    def _take_contexts(self, segment: Segment) -> None:
        self.stacks.take(segment)
        self.codes.take(segment)
        self.native_stacks.take(segment)

    def _define(self, record: Definition) -> None:
        match record:
            case Stack():
                self.stacks.add(record)
            case Module():
                self.modules.setdefault(record.module, record)
            case Meta():
                self.meta[record.key] = record.value

    def forget_contexts(self) -> None:
        """Let go of what only ``ContextTree.add`` needs, and what thousands of processes would hold."""
        self.codes.clear()
        self.stacks.clear()
        self.mentions["stack"].clear()

    def forget_addresses(self) -> None:
        """The same of what only ``NativeFrames`` needs."""
        self.modules.clear()
        self.mentions["pc"].clear()

    def mention(self, column: str, values: Iterable[int]) -> None:
        """Note ids or addresses that rows refer to."""
        if column == "thread":
            self.threads.mention(values)
        else:
            self.mentions[column].note(values)

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
