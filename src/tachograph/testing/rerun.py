"""Starts pytest again under ``tachograph record``: what is recorded from its beginning includes all imports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest

OPTION = "--tachograph"
STARTED = "TACHOGRAPH_TESTS"
"""Is set in the environment of a run that was started again, and so in all that it starts: no recording in it."""

SUFFIX = ".tacho"
_NO_TESTS = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "collectonly", "cacheshow")
"""Options with which pytest runs no tests."""


class Command(NamedTuple):
    """The command line of this pytest: options of the interpreter, ``-m MODULE`` or a script, and arguments."""

    flags: tuple[str, ...]
    target: tuple[str, ...]


def record_again(config: pytest.Config) -> None:
    """Replace this process with the recording command, which starts this pytest once more.

    Returns where that is done already, or the process is recorded anyhow, or there are no tests to be recorded.

    Errors:
        pytest.UsageError: it cannot be done.
    """
    import pytest

    options = config.known_args_namespace
    if any(getattr(options, name, False) for name in _NO_TESTS):
        return
    arguments, path = arguments_and_path(config.invocation_params.args, options.tachograph)
    if STARTED in os.environ:
        return
    if is_recorded():
        if list(arguments) != list(config.invocation_params.args):
            raise pytest.UsageError(f"{OPTION} took the next argument for its path: write {OPTION}= before it")
        os.environ[STARTED] = "1"
        return
    if find_spec("pandas") is None:
        raise pytest.UsageError(
            f"{OPTION} needs pandas, which is not installed here: pip install 'tachograph[analyze]'"
        )
    command = started_as(sys.orig_argv, list(config.invocation_params.args), arguments)
    if command is None:
        raise pytest.UsageError(
            f"{OPTION} starts pytest again, and cannot do so with one that a program has started:"
            " record that program ('tachograph record PROGRAM'); the tests are marked in its recording"
        )
    settings = {
        "path": path,
        "options": options.tachograph_options,
        "top": options.tachograph_top,
        "markdown": options.tachograph_markdown,
        "compare": recordings_of(options.tachograph_compare),
        "anyway": options.tachograph_anyway,
        "junit": getattr(options, "xmlpath", None) or "",
    }
    line = [sys.executable, *command.flags, "-m", "tachograph.testing", json.dumps(settings), *command.target]
    os.environ[STARTED] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, line)


def recordings_of(bases: Sequence[str]) -> list[str]:
    """The recordings that ``--tachograph-compare`` names: a folder stands for those in it.

    Errors:
        pytest.UsageError: one of them is not there.
    """
    import pytest

    recordings: list[str] = []
    for base in bases:
        if os.path.isdir(base) and not os.path.exists(os.path.join(base, "manifest.json")):
            inside = sorted(name for name in os.listdir(base) if name.endswith((SUFFIX, f"{SUFFIX}.zip")))
            if not inside:
                raise pytest.UsageError(f"--tachograph-compare: there is no recording in {base}")
            recordings += [os.path.abspath(os.path.join(base, name)) for name in inside]
        elif not os.path.exists(base):
            raise pytest.UsageError(f"--tachograph-compare: there is no recording {base}")
        else:
            recordings.append(os.path.abspath(base))
    return recordings


def is_recorded() -> bool:
    """True if this process is being recorded."""
    from tachograph.recorder import loaded

    arm = loaded("tachograph.recorder.inprocess.arm")
    return arm is not None and arm.span_writer() is not None


def arguments_and_path(arguments: Sequence[str], value: str) -> tuple[tuple[str, ...], str]:
    """The arguments for the second start, and the path; an argument that is none of a recording is pytest's own.

    In ``pytest --tachograph tests`` the parser takes ``tests`` for the path.
    """
    if not value or value.endswith(SUFFIX) or value not in arguments:
        return tuple(arguments), value
    # A second option of the name ends the first, in a file of settings perhaps, which then takes nothing.
    given = (f"{OPTION}=" if argument == OPTION else argument for argument in arguments)
    return (f"{OPTION}=", *given), ""


def started_as(orig_argv: Sequence[str], given: Sequence[str], arguments: Sequence[str]) -> Command | None:
    """The command line of the same pytest with other ``arguments``; None if it was not started by one.

    ``orig_argv`` is :data:`sys.orig_argv`, which must end with the arguments that pytest was ``given``.
    """
    head = list(orig_argv[1 : len(orig_argv) - len(given)])
    if list(orig_argv[len(orig_argv) - len(given) :]) != list(given):
        return None
    place = 0
    while place < len(head) and head[place].startswith("-") and head[place] != "-":
        flag = head[place]
        if flag in ("-X", "-W", "--check-hash-based-pycs"):
            place += 2
            continue
        letters = "" if flag.startswith(("--", "-X", "-W")) else flag[1:]
        if "c" in letters:
            return None
        if "m" in letters:
            before, _, module = letters.partition("m")
            rest = [module, *head[place + 1 :]] if module else head[place + 1 :]
            flags = (*head[:place], *([f"-{before}"] if before else []))
            return Command(flags, ("-m", *rest, *arguments)) if rest else None
        place += 1
    if place >= len(head) or head[place] == "-":
        return None
    return Command(tuple(head[:place]), ("--", *head[place:], *arguments))
