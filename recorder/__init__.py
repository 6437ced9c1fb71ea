"""The recording side of tachograph.

``from tachograph.recorder import loop, pause, resume, snapshot, span`` work inside a recorded program and do nothing
anywhere else. ``record``, ``start`` and ``stop`` record the program that calls them.
This module is imported in the profiled process and therefore imports next to nothing itself.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from pathlib import Path
    from typing import Any

    from tachograph.recorder.attached.recording import Recorded
    from tachograph.recorder.inprocess.named_spans import Span, span
    from tachograph.recorder.inprocess.watched_loop import loop
    from tachograph.recorder.problems import RecordingError

__all__ = ["RecordingError", "Span", "loop", "pause", "record", "resume", "snapshot", "span", "start", "stop"]


_HOMES = {
    "RecordingError": "problems",
    "Span": "inprocess.named_spans",
    "loop": "inprocess.watched_loop",
    "span": "inprocess.named_spans",
}
"""What is imported when it is used: every recorded process imports this module when it starts."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        home = f"{__name__}.{_HOMES[name]}"
        __import__(home)
        value = globals()[name] = getattr(sys.modules[home], name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def record(path: "str | os.PathLike[str]", **options: "Any") -> "Recorded":
    """Record this process while a ``with`` block runs, into ``path``, a directory that is made.

    ``options`` are those of ``tachograph record`` (docs/how-to/record-from-inside.md): ``memory=False``,
    ``interval=5``, ``force=True``. Where ``with`` begins and ends, RecordingError says in one line what is wrong.
    """
    from tachograph.recorder.attached.recording import Recorded

    return Recorded(path, options)


def start(path: "str | os.PathLike[str]", **options: "Any") -> "Path":
    """Record this process from here to :func:`stop`; options and errors are those of :func:`record`."""
    from pathlib import Path

    from tachograph.recorder.attached.recording import begin

    return Path(begin(path, options))


def stop() -> "Path":
    """End what :func:`start` began; returns the path of the recording, which is complete.

    RecordingError says in one line what is wrong: that nothing is being recorded, for example.
    """
    from pathlib import Path

    from tachograph.recorder.attached.recording import end

    return Path(end())


def loaded(name: str) -> "Any":
    """The module ``name`` if it has been imported, or None: attaching imports modules while the program runs."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def pause() -> None:
    """Stop recording this process until :func:`resume`; outside a recording this does nothing."""
    arm = loaded("tachograph.recorder.inprocess.arm")
    if arm is not None:
        arm.pause()


def resume() -> None:
    """Go on recording this process after :func:`pause`; outside a recording this does nothing."""
    arm = loaded("tachograph.recorder.inprocess.arm")
    if arm is not None:
        arm.resume()


def snapshot() -> bool:
    """Keep what the flight recorder has now: the present window ends, and it and the kept ones are never deleted.

    True if the recording command was asked for it, which takes a second or two and is not waited for. Outside a
    recording, and in one without ``--rotate``, nothing is asked for, and this is False.
    """
    arm = loaded("tachograph.recorder.inprocess.arm")
    return arm is not None and bool(arm.snapshot())
