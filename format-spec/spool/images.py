"""What the process log says of each image: of one program in one process, from its beginning to its end.

A process that replaces its program (exec) has several images, one after the other; each is a row of ``processes``.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from dataclasses import dataclass

from .layout import Refusal
from .masking import mask_arguments
from .process_log import BEGINNINGS, Event, LogRecord, ProcessLog

MAX_COMMAND = 400
"""Characters kept of a command line."""

SLACK_NS = 1_000_000_000
"""How long after its END record a process may still be seen as a parent: END is written before the end."""


@dataclass(eq=False, slots=True)
class Image:
    """One image; None stands for "unknown". ``replaced`` is the image that it took the place of.

    ``ancestor`` names the nearest process that is in the log by its pid and the time of its beginning. ``refused`` is
    why it was not armed (``Refusal``), ``exec_ns`` when it last began to replace its program. ``reaped`` says that its
    parent was told how it ended.
    """

    pid: int
    parent_pid: int | None
    start_ns: int
    origin: str | None
    executable: str | None
    command: str | None
    ancestor: tuple[int, int] | None = None
    replaced: Image | None = None
    exec_ns: int | None = None
    end_ns: int | None = None
    exit_status: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    max_resident_bytes: int | None = None
    refused: int | None = None
    reaped: bool = False

    def apply(self, record: LogRecord) -> None:
        """Take over what a later record of the same process says; of several ends the first counts."""
        match record.event:
            case Event.END if self.end_ns is None:
                self.end_ns, self.exit_status = record.time_ns, record.status
                self.user_ns, self.system_ns = _known(record.first), _known(record.second)
                self.max_resident_bytes = _known(record.third)
            case Event.END if self.exit_status is None:
                self.exit_status = record.status
            case Event.REAPED if not self.reaped:
                self._apply_reaped(record)
            case Event.EXEC:
                self.exec_ns = record.time_ns
            case Event.REFUSED:
                self.refused = record.status or Refusal.FAILED

    def _apply_reaped(self, record: LogRecord) -> None:
        """What the kernel told the parent stands above what the process said of itself, before it was quite over."""
        self.reaped = True
        if self.end_ns is None:
            self.end_ns = record.time_ns
        if record.status is not None:
            self.exit_status = record.status
        if record.first >= 0 and record.second >= 0:
            self.user_ns, self.system_ns = record.first, record.second
        if self.max_resident_bytes is None and self.replaced is None:  # else it may be that of the earlier program
            self.max_resident_bytes = _known(record.third)

    def gives_way_to(self, record: LogRecord) -> bool:
        """Whether the beginning in ``record`` is that of the program that took this one's place; ends it if so."""
        if record.event is not Event.START or self.exec_ns is None or self.end_ns is not None:
            return False
        self.end_ns = self.exec_ns
        return True


class Images:
    """The images of a log, in the order of their beginning."""

    def __init__(self) -> None:
        self.found: list[Image] = []
        self._by_pid: dict[int, list[Image]] = {}

    def add(self, image: Image) -> None:
        """Append an image; it began no earlier than the others."""
        self.found.append(image)
        self._by_pid.setdefault(image.pid, []).append(image)

    def latest(self, pid: int, time_ns: int) -> Image | None:
        """The last image of process ``pid`` that had begun at ``time_ns``."""
        images = self._by_pid.get(pid, [])
        at = bisect_right(images, time_ns, key=lambda image: image.start_ns)
        return images[at - 1] if at else None

    def alive(self, pid: int, time_ns: int, slack_ns: int = 0) -> Image | None:
        """The same if, as far as is known, it had not ended by then, or not longer ago than ``slack_ns``."""
        image = self.latest(pid, time_ns)
        ended = image is not None and image.end_ns is not None and image.end_ns < time_ns - slack_ns
        return None if ended else image

    def may_reap(self, pid: int, image: Image, time_ns: int) -> bool:
        """Whether process ``pid`` can have been told of the end of an image: it is its parent, or adopted an orphan.

        In a namespace of process ids another process may have the number.
        """
        if image.parent_pid is None or image.parent_pid == pid:
            return image.parent_pid is not None
        parent = self.latest(image.parent_pid, time_ns)
        return parent is not None and parent.end_ns is not None

    def parent(self, image: Image) -> Image | None:
        """The nearest image in the log that created this one, or that it took the place of."""
        if image.replaced is not None:
            return image.replaced
        if image.ancestor is not None:
            return self.latest(*image.ancestor)
        return None if image.parent_pid is None else self.alive(image.parent_pid, image.start_ns, SLACK_NS)


def images_of(log: ProcessLog) -> Images:
    """Put the records of a log together."""
    images = Images()
    first = next((record for record in log.records if record.event is Event.FIRST), None)
    for record in sorted(log.records, key=lambda record: record.time_ns):
        latest = images.latest(record.pid, record.time_ns)
        if record.event is Event.FIRST:
            # The recording command speaks, in case that the program cannot.
            if record is first and not any(_is_first(other, record) for other in log.records):
                images.add(_image(record, None, images))
        elif record.event in BEGINNINGS:
            images.add(_image(record, latest, images))
        elif latest is None or (
            record.event is Event.REAPED and not images.may_reap(record.parent_pid, latest, record.time_ns)
        ):
            continue
        else:
            latest.apply(record)
    if first is not None:
        for image in images.found:
            if image.pid == first.pid and image.start_ns >= first.time_ns:
                image.origin = "first"
                break
    return images


def _is_first(record: LogRecord, first: LogRecord) -> bool:
    return record.event is Event.START and record.pid == first.pid and record.time_ns >= first.time_ns


def _image(record: LogRecord, latest: Image | None, images: Images) -> Image:
    replaced = latest if latest is not None and latest.gives_way_to(record) else None
    image = Image(
        pid=record.pid,
        parent_pid=record.parent_pid,
        start_ns=record.time_ns,
        origin={Event.START: "exec", Event.FORK: "fork"}.get(record.event),
        executable=record.executable or None,
        command=_command(record),
        replaced=replaced,
    )
    if record.event in BEGINNINGS and record.first >= 0 and record.second >= 0:
        image.ancestor = record.first, record.second
    if record.event is Event.FORK and not record.arguments:
        parent = images.parent(image)
        if parent is not None:
            image.executable, image.command = parent.executable, parent.command
    return image


def _command(record: LogRecord) -> str | None:
    """The command line as a shell would take it, without secrets."""
    if not record.arguments:
        return None
    text = shlex.join(mask_arguments(record.arguments))
    return text[: MAX_COMMAND - 1] + "…" if record.cut or len(text) > MAX_COMMAND else text


def _known(value: int) -> int | None:
    return value if value >= 0 else None
