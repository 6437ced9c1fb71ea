"""Where the ``tachograph`` command begins and ends."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> NoReturn:
    """Run the command and leave: without pyarrow's orderly shutdown, which is slow and can abort."""
    _look_into_the_standard_library_first()
    try:
        _run(sys.argv[1:])
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:  # while the command is still being imported
        status = 130
    if isinstance(status, str):
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            status = status or 141  # its reader has gone
    os._exit(status or 0)


def _look_into_the_standard_library_first() -> None:
    """Move the standard library to the front of sys.path.

    PYTHONPATH and the current folder are the recorded program's, whose modules may have names of the standard library.
    """
    standard = os.path.dirname(os.__file__)
    first = [standard, os.path.join(standard, "lib-dynload")]
    if standard in sys.path:
        sys.path[:] = [*(place for place in first if place in sys.path), *(p for p in sys.path if p not in first)]


def _run(arguments: list[str]) -> NoReturn:
    if arguments[:1] == ["record"]:
        # The recorded program is not kept waiting for click, which only shows the help.
        from tachograph import project
        from tachograph.recorder.command import command_line, record
        from tachograph.recorder.problems import Refused, one_line

        try:
            line = command_line.read(arguments[1:])
            if not line.help:
                record.run(line.options(project.record_values()), line.target)
        except Refused as error:
            print(f"tachograph: {one_line(error.message)}", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(130)
    # What reads a recording makes many objects and keeps most of them: to look for garbage more often finds little.
    gc.set_threshold(100_000, 20, 50)
    from tachograph.cli import main

    main(prog_name="tachograph")
    raise AssertionError("a click group ends with an exit status")
