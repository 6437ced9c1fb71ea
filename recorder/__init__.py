"""The recording side of tachograph.

``from tachograph.recorder import loop, pause, resume, snapshot, span`` work inside a recorded program and do nothing
anywhere else.
This module is imported in the profiled process and therefore imports next to nothing itself.
"""

import sys

from tachograph.recorder.inprocess.named_spans import Span, span
from tachograph.recorder.inprocess.watched_loop import loop

__all__ = ["Span", "loop", "pause", "resume", "snapshot", "span"]


def pause() -> None:
    """Stop recording this process until :func:`resume`; outside a recording this does nothing."""
    arm = sys.modules.get("tachograph.recorder.inprocess.arm")
    if arm is not None:
        arm.pause()


def resume() -> None:
    """Go on recording this process after :func:`pause`; outside a recording this does nothing."""
    arm = sys.modules.get("tachograph.recorder.inprocess.arm")
    if arm is not None:
        arm.resume()


def snapshot() -> bool:
    """Keep what the flight recorder has now: the present window ends, and it and the kept ones are never deleted.

    True if the recording command was asked for it, which takes a second or two and is not waited for. Outside a
    recording, and in one without ``--rotate``, nothing is asked for, and this is False.
    """
    arm = sys.modules.get("tachograph.recorder.inprocess.arm")
    return arm is not None and bool(arm.snapshot())
