"""Answers the requests to a process that stands by; runs in that process, in the standby's thread.

A request and its answer are one line of JSON each. A request has ``tachograph``, the version of the package that asks,
``do``, and what that takes; an answer has ``problem``, one line, if it could not be done.
"""

from __future__ import annotations

from tachograph import __version__
from tachograph.format.plain_records import IN_ASCII, from_json, to_json
from tachograph.recorder.attached.closed_streams import ClosedStreams
from tachograph.recorder.problems import RecordingError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def answer(request: bytes | None, held: str | None) -> tuple[bytes, str | None]:
    """The answer, and the recording that the client is held for: it ends when the client has gone (``request`` None).

    Never raises what a client could cause.
    """
    if request is None:
        if held is not None:
            _stop(held, is_held=False)
        return b"", None
    try:
        document: Any = from_json(request.decode())
        with ClosedStreams():
            result, held = _done(document, held)
    except RecordingError as error:
        result = {"problem": str(error)}
    except (ValueError, KeyError, TypeError, AttributeError, OSError, ImportError, RuntimeError) as error:
        result = {"problem": one_line(f"it could not do what was asked: {type(error).__name__}: {error}")}
    return to_json(result, IN_ASCII, " ").encode() + b"\n", held


def _done(asked: dict[str, Any], held: str | None) -> tuple[dict[str, Any], str | None]:
    if asked["tachograph"] != __version__:
        raise RecordingError(f"it has tachograph {__version__}, and this is {asked['tachograph']}: use its own")
    match asked["do"]:
        case "start":
            from tachograph.recorder.attached.recording import begin

            path = begin(asked["path"], asked["options"], beside=asked.get("beside"))
            return {"path": path}, path
        case "stop":
            if held is None:
                raise RecordingError("this client began no recording")
            problem = _stop(held)
            return ({} if problem is None else {"problem": problem}), None
        case "dump":
            from tachograph.recorder.attached.present_moment import present_moment

            return present_moment(), held
        case other:
            raise RecordingError(f"it cannot {other!r}")


def _stop(path: str, *, is_held: bool = True) -> str | None:
    """End the recording at ``path``, unless the program has done so itself; what went wrong."""
    from tachograph.recorder import _native
    from tachograph.recorder.attached.recording import end

    current = _native.claimed()
    if getattr(current, "path", None) != path:
        return None
    try:
        end(is_held=is_held)
    except RecordingError as error:
        return str(error)
    return None
