"""``tachograph ps``: the Python processes here, and how they can be attached to."""

from __future__ import annotations

import json
from typing import Any

import click

from tachograph.recorder.attached.connection import standing_by
from tachograph.recorder.attached.doors import Closed, door_of
from tachograph.recorder.attached.running_processes import Process, python_processes, user_name
from tachograph.recorder.problems import one_line

EXAMPLES = """\b
Examples:
  tachograph ps
  tachograph ps --json
"""
LONGEST_COMMAND = 200


@click.command("ps", epilog=EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def ps_command(as_json: bool) -> None:
    """List the Python processes of this machine or container, and how each can be attached to.

    ATTACH is `standby`, `remote_exec` (CPython 3.14 and later) or `pending_call` (up to 3.13), or why it cannot be.
    """
    waiting = standing_by()
    processes = [(process, door_of(process, stands_by=process.pid in waiting)) for process in python_processes()]
    if as_json:
        click.echo(json.dumps([as_object(process, door) for process, door in processes], indent=2))
        return
    rows = [("PID", "USER", "PYTHON", "ATTACH", "COMMAND")]
    for process, door in processes:
        command = one_line(" ".join(process.command))[:LONGEST_COMMAND]
        state = door.state if isinstance(door, Closed) else door
        rows.append((str(process.pid), user_name(process.user), version(process) or "?", state, command))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        click.echo("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip())
    if not processes:
        click.echo("no Python process is running that this user can see", err=True)


def as_object(process: Process, door: str | Closed) -> dict[str, Any]:
    """A process for programs: null is what is not known, or is not there."""
    closed = door if isinstance(door, Closed) else None
    return {
        "pid": process.pid,
        "user": user_name(process.user),
        "program": process.title,
        "command": list(process.command),
        "python_version": version(process),
        "door": None if closed else door,
        "why_not": None if closed is None else closed.message,
    }


def version(process: Process) -> str | None:
    """Such as 3.11; None where it is not known."""
    return None if process.version is None else "{}.{}".format(*process.version)
