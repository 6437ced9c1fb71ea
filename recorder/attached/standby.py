"""Lets a process stand by: nothing but a socket of its own user's, until something is asked of it (requests.py).

``tachograph.pth`` calls :func:`at_start` at interpreter start where TACHOGRAPH_STANDBY=1 is in the environment, and
``attach`` has :func:`begin` called in processes that it may enter. Nothing is imported that is not needed to wait.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "TACHOGRAPH_STANDBY"


def at_start() -> None:
    """Stand by for the life of this process, and of those that it forks; the program runs on if that cannot be.

    Not where this process has other rights than its caller's, who has set the variable.
    """
    try:
        from tachograph.recorder.inprocess.other_rights import has_other_rights

        if not has_other_rights():
            begin()
    except (ImportError, OSError, RuntimeError):
        return  # `tachograph standby` has looked whether it can be, and `ps` shows whether it is


def begin(*, once: bool = False) -> None:
    """Stand by; with ``once`` until the first client is done, or for ten seconds.

    Raises ImportError or OSError if that is not possible.
    """
    if sys.implementation.name != "cpython" or not sys.platform.startswith("linux"):
        raise ImportError("standing by needs CPython on Linux")
    from tachograph.recorder import _native

    if _native.active():
        return  # it is recorded from its beginning to its end
    problem = _native.stand_by(answer, once)
    if problem is not None:
        raise OSError(problem)


def answer(request: "bytes | None", held: "Any") -> "tuple[bytes, Any]":
    """Answers a request; the native thread calls it (native/extension/standby.h). Never raises an import's errors."""
    try:
        from tachograph.recorder.attached.requests import answer
    # The program may have modules of its own of any name, be a bundle without some, or have none left to import with.
    except Exception as error:  # noqa: BLE001
        text = f"it cannot import what it needs to answer: {type(error).__name__}: {error}"
        return b'{"problem": "' + "".join(map(_plain, text)).encode() + b'"}\n', held
    return answer(request, held)


def _plain(character: str) -> str:
    """The character, or one in its place that needs no quoting in JSON."""
    return character if " " <= character <= "~" and character not in '"\\' else "'" if character == '"' else "?"
