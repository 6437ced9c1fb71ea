"""``tachograph ps``: the Python processes here, and whether they can be attached to."""

from __future__ import annotations

import os

import click

from tachograph.recorder.attached.connection import standing_by
from tachograph.recorder.attached.processes import Process, python_processes, user_name
from tachograph.recorder.problems import one_line

EXAMPLES = """\b
Examples:
  tachograph ps
"""
LONGEST_COMMAND = 200


@click.command("ps", epilog=EXAMPLES)
def ps_command() -> None:
    """List the Python processes of this machine or container, and which can be attached to."""
    waiting = standing_by()
    rows = [("PID", "USER", "PYTHON", "ATTACH", "COMMAND")]
    for process in python_processes():
        version = "?" if process.version is None else "{}.{}".format(*process.version)
        command = one_line(" ".join(process.command))[:LONGEST_COMMAND]
        rows.append((str(process.pid), user_name(process.user), version, state(process, waiting), command))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        click.echo("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip())
    if len(rows) == 1:
        click.echo("no Python process is running that this user can see", err=True)


def state(process: Process, waiting: dict[int, set[str]]) -> str:
    """Whether a process can be attached to, in a word or two."""
    if process.user != os.geteuid():
        return "another user's"
    if process.elsewhere:
        return "in a container"
    if process.recorded:
        return "is recorded"
    return "yes" if process.pid in waiting else "no standby"
