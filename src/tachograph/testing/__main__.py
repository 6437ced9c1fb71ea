"""``python -m tachograph.testing SETTINGS TARGET...``: records pytest and shows what its tests cost.

The plugin starts it (rerun.py); it ends as pytest ends, or with 1 if tests passed that are over their limits.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from tachograph import project
from tachograph.recorder.command import command_line, record
from tachograph.recorder.problems import Refused, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.recorder.command.session import Outcome


def main(arguments: list[str]) -> NoReturn:
    """Record the pytest that the arguments start. Refusals are one line, and the status that pytest has for them."""
    settings = json.loads(arguments[0])
    try:
        line = command_line.read(options_of(settings) + arguments[1:])
        record.run(line.options(project.record_values()), line.target, after=lambda *how: show(settings, *how))
    except Refused as error:
        print(f"tachograph: {one_line(error.message)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    raise AssertionError("the recording command ends as the program does")


def options_of(settings: dict[str, Any]) -> list[str]:
    """The options for the recording, as they are typed for ``tachograph record``."""
    try:
        typed = shlex.split(settings["options"])
    except ValueError as error:
        raise Refused(f"--tachograph-options: {error}") from None
    line = command_line.read(typed)
    if line.target is not None or line.help or typed[-1:] == ["--"]:
        raise Refused("--tachograph-options takes options of 'tachograph record', and nothing else")
    return [*typed, *(["--output", settings["path"]] if settings["path"] else [])]


def show(settings: dict[str, Any], path: Path, outcome: Outcome, status: int) -> int:
    """Show what the tests cost; the exit status."""
    if outcome.finished is None or outcome.not_recorded is not None:
        return status or 1  # nothing can be judged; the recording command has said why
    from tachograph.testing.costs_report import report

    return report(settings, path, status)


if __name__ == "__main__":
    main(sys.argv[1:])
