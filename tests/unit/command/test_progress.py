"""Progress of long commands, watched through a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unit.analyzer.exports import program

pytestmark = pytest.mark.broad

WIDE, SHOWN, HIDDEN = "\x1b[2K", "\x1b[?25h", "\x1b[?25l"
COMMAND = """
import sys
from tachograph.analyzer.commands import common
common.AFTER_S = float(sys.argv[1])
sys.argv[:2] = ["tachograph"]
from tachograph.cli import main
main()
"""
COMMANDS = {
    "analyze": ["analyze", "run.tacho"],
    "html": ["analyze", "run.tacho", "--html", "made", "--json", "made.json"],
    "diff": ["diff", "run.tacho", "run.tacho", "--html", "made"],
    "export": ["export", "collapsed", "run.tacho", "--output", "made"],
    "scrub": ["scrub", "run.tacho", "--output", "made"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("progress")
    program.write(path / "run.tacho")
    return path


def run(folder: Path, arguments: list[str], after_s: float, **environment: str) -> tuple[str, str]:
    """Standard output, which is a pipe, and what a terminal got as standard error."""
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(after_s), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(stderr)
    told = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        told += piece
    os.close(terminal)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, told
    return output.decode(), told.decode()


def left_on_screen(told: str) -> str:
    """What remains of a bar of one line when everything was drawn."""
    assert HIDDEN in told
    after = told.rpartition(SHOWN)[2]
    assert "\x1b[1A\x1b[2K" in after, "the line of the bar was erased"
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", after.partition("\x1b[2K")[2])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_is_told_and_nothing_is_left_of_it(folder: Path, name: str) -> None:
    made = folder / "made"
    _, told = run(folder, COMMANDS[name], 0)
    # Whether the bar was drawn while a table was read depends on the machine; that it was drawn does not.
    assert "\u2501" in told
    left = left_on_screen(told)
    assert "\u2501" not in left
    assert ("made" in left) == made.exists()
    subprocess.run(["rm", "-rf", str(made)], check=True)


def test_the_report_is_not_mixed_with_the_bar(folder: Path) -> None:
    """What takes no time shows no bar at all."""
    quick, told = run(folder, ["analyze", "run.tacho"], 1000)
    assert told == ""
    slow, _ = run(folder, ["analyze", "run.tacho"], 0)
    assert slow == quick


def test_a_dumb_terminal_gets_none(folder: Path) -> None:
    assert run(folder, ["analyze", "run.tacho"], 0, TERM="dumb")[1] == ""


def test_no_colour(folder: Path) -> None:
    _, told = run(folder, ["analyze", "run.tacho"], 0, NO_COLOR="1")
    assert "\u2501" in told
    assert not re.search(r"\x1b\[3[0-9]", told)


PIPED = ("analyze", "export")
"""The others find out in the same way what they write to."""


@pytest.mark.parametrize(
    "name", [name if name in PIPED else pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS]
)
def test_a_pipe_gets_no_bar(folder: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "0", *COMMANDS[name]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u2501" not in done.stderr
    subprocess.run(["rm", "-rf", str(folder / "made")], check=True)


def test_an_error_takes_the_bar_away_first(folder: Path) -> None:
    spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    command = [sys.executable, "-c", COMMAND, "0", "analyze", "run.tacho", "--scope", "nowhere"]
    done = subprocess.run(
        [sys.executable, "-c", spawn, *command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "TERM": "xterm-256color"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout.rstrip().endswith("(a glob of paths or folder names)")
