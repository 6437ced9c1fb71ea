"""Writes down all that a program can see of how it was started, as JSON on standard output."""

import gc
import json
import os
import signal
import sys
import threading
import warnings


def main_attributes() -> dict[str, str]:
    main = sys.modules["__main__"]
    names = ("__name__", "__file__", "__package__", "__doc__", "__cached__")
    found = {name: repr(getattr(main, name, "absent")) for name in names}
    spec = getattr(main, "__spec__", None)
    found["__spec__"] = repr(spec and (spec.name, spec.origin))
    found["__loader__"] = type(getattr(main, "__loader__", None)).__name__
    found["names"] = repr(sorted(name for name in vars(main) if name.startswith("__")))
    return found


def handlers() -> dict[str, str]:
    """What Python knows of each signal, except the one that the recorder may take where the program has not."""
    return {str(int(number)): repr(signal.getsignal(number)) for number in signal.valid_signals()}


def first_frame() -> str:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_qualname} {os.path.basename(frame.f_code.co_filename)}"  # noqa: PTH119


json.dump(
    {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "flags": repr(sys.flags),
        "warnoptions": sys.warnoptions,
        "xoptions": sys._xoptions,
        "warning filters": [repr(entry) for entry in warnings.filters],
        "executable": sys.executable,
        "prefix": [sys.prefix, sys.exec_prefix, sys.base_prefix],
        "environ": dict(os.environ),
        "main": main_attributes(),
        "first frame": first_frame(),
        "cwd": os.getcwd(),  # noqa: PTH109
        "streams": [
            (s.encoding, s.errors, s.line_buffering, s.isatty(), s.fileno())
            for s in (sys.stdin, sys.stdout, sys.stderr)
        ],
        "stdin": sys.stdin.read(),
        "signals": handlers(),
        "threads": [thread.name for thread in threading.enumerate()],
        "hooks": [repr(getattr(sys, n)) for n in ("excepthook", "displayhook", "unraisablehook")],
        "tracing": [repr(sys.gettrace()), repr(sys.getprofile()), repr(threading.excepthook)],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), list(gc.get_threshold()), gc.isenabled()],
        "umask": os.umask(0o022),
        "session": os.getpgrp() == os.getpid(),
        "next descriptor": os.dup(0),
    },
    sys.stdout,
)
