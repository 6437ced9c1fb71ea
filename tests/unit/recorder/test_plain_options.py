"""A plain command line means the same with click and without it."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from tachograph.recorder.command import record_command
from tachograph.recorder.command.record import Options, plain_options
from tachograph.recorder.command.target import Target

PLAIN = [
    ["a.py"],
    ["a.py", "-o", "x"],
    ["-q", "-f", "a.py", "--interval", "3"],
    ["-o", "x.tacho", "--interval", "2.5", "--sampler", "signal", "-m", "mod", "-q"],
    ["--output", "x y", "--force", "--quiet", "--no-sources", "--start-paused", "-c", "pass", "arg"],
    ["-q", "--", "-odd.py", "--help"],
    ["--cpu-only", "a.py", "--cpu-only"],
    ["--cpu-only", "--with-memory", "--no-sources", "--sources", "a.py"],
    ["--memory-threshold", "1M", "a.py"],
    ["--no-gpu", "a.py", "--gpu"],
    ["--no-gpu", "--gpu", "a.py"],
    ["--cpu-only", "--memory-threshold", "10485767", "a.py"],
    ["--rotate", "10m", "--keep", "3", "--snapshot-signal", "sigusr2", "a.py"],
    ["--no-children", "gunicorn", "--include", "x"],
    ["--no-children", "--children", "--include", "a*", "--exclude", "b", "--include", "c,d:%", "sh", "-c", "true"],
]
LEFT_TO_CLICK = [
    [],
    ["--help"],
    ["-h", "a.py"],
    ["-qf", "a.py"],
    ["--output=x", "a.py"],
    ["--out", "x", "a.py"],
    ["-o"],
    ["-m"],
    ["--interval", "soon", "a.py"],
    ["--interval", "0", "a.py"],
    ["--interval", "nan", "a.py"],
    ["--sampler", "other", "a.py"],
    ["--memory-threshold", "1K", "a.py"],
    ["--memory-threshold", "much", "a.py"],
    ["--memory-threshold"],
    ["--rotate", "soon", "a.py"],
    ["--rotate", "1h", "--snapshot-signal", "INT", "a.py"],
    ["--include"],
    ["--include=x", "a.py"],
    ["--unknown", "a.py"],
]


def by_click(arguments: list[str]) -> tuple[Options, Target | None]:
    """What click makes of the command line."""
    seen: list[tuple[Options, Target | None]] = []
    with patch.object(record_command, "run", lambda options, target: seen.append((options, target))):
        record_command.record.main(arguments, standalone_mode=False)
    return seen[0]


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_click_says_the_same(arguments: list[str]) -> None:
    assert plain_options(arguments) == by_click(arguments)


@pytest.mark.parametrize("arguments", LEFT_TO_CLICK, ids=" ".join)
def test_what_is_unusual_is_left_to_click(arguments: list[str]) -> None:
    assert plain_options(arguments) is None


def test_values() -> None:
    found = plain_options(["-o", "x.tacho", "--interval", "2.5", "-q", "a.py", "-q"])
    assert found is not None
    options, target = found
    assert (options.cpu_only, options.memory_threshold) == (False, None)
    assert options == Options(path=Path("x.tacho"), interval_ms=2.5, quiet=True)
    assert target.command() == ["a.py", "-q"]
