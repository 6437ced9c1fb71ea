"""The recording side of tachograph.

``from tachograph.recorder import pause, resume, span`` work inside a recorded program and do nothing anywhere else.
This module is imported in the profiled process and therefore imports next to nothing itself.
"""

import sys

from tachograph.recorder.spans import Span, span

__all__ = ["Span", "pause", "resume", "span"]


def pause() -> None:
    """Stop recording this process until :func:`resume`; outside a recording this does nothing."""
    arm = sys.modules.get("tachograph.recorder.arm")
    if arm is not None:
        arm.pause()


def resume() -> None:
    """Go on recording this process after :func:`pause`; outside a recording this does nothing."""
    arm = sys.modules.get("tachograph.recorder.arm")
    if arm is not None:
        arm.resume()
