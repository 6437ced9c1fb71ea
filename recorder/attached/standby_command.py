"""``tachograph standby``: runs a program that can be attached to."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tachograph.recorder.attached.standby import VARIABLE
from tachograph.recorder.command.command_line import read
from tachograph.recorder.command.support import why_no_recording, why_not_native
from tachograph.recorder.problems import Refused, reason

ABOUT = """Run a program so that it can be attached to, without any right to trace it.

The program is a SCRIPT, a module (-m MODULE), code (-c CODE) or any COMMAND, as with 'tachograph record'. It takes the
place of this command: same process, nothing beside it. Until 'tachograph attach' asks, it has one socket of its own
user's and a thread that sleeps. The Python processes that it starts stand by as well. TACHOGRAPH_STANDBY=1 in the
environment does the same.
"""

EXAMPLES = """\b
Examples:
  tachograph standby app.py --its --own --options
  tachograph standby gunicorn --workers 4 shop.wsgi
  tachograph standby -m shop
"""


class StandbyCommand(click.Command):
    """Reads its line as ``record`` does: what follows the program belongs to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The program and its arguments, untouched."""
        if ctx.resilient_parsing or not args or args[0] in ("-h", "--help"):
            return super().parse_args(ctx, args)
        ctx.params = {"arguments": tuple(args)}
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line."""
        return ["(SCRIPT | COMMAND | -m MODULE | -c CODE) [ARGS]..."]


def stand_by(arguments: Sequence[str] = ()) -> None:
    """Become the program. Returns only by raising Refused."""
    why_not = why_no_recording() or why_not_native(preloaded=False)
    if why_not is not None:
        raise Refused(f"cannot stand by here: {why_not}")
    line = read(arguments)
    if line.typed:
        raise Refused(f"{line.typed[0][0]} is an option of 'tachograph attach': standby has none")
    if line.target is None:
        raise Refused("nothing to run: name a script, a command, -m MODULE or -c CODE")
    program, argv = line.target.resolved().invocation(sys.orig_argv)
    try:
        os.execve(program, argv, {**os.environ, VARIABLE: "1"})
    except OSError as error:
        raise Refused(f"cannot start {program}: {reason(error)}") from None


standby_command = StandbyCommand("standby", callback=stand_by, help=ABOUT, epilog=EXAMPLES)
