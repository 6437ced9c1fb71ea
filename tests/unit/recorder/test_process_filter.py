"""Which Python processes --include and --exclude let through."""

from __future__ import annotations

import fnmatch
import random
import subprocess
import sys

import pytest

from tachograph.recorder.inprocess.process_filter import (
    join_patterns,
    matches,
    passes_filter,
    program_names,
    split_patterns,
)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("/usr/bin/python3.12 app/worker.py x.py", ["python3.12", "worker.py", "worker"]),
        ("python /usr/bin/gunicorn app:app", ["python", "gunicorn"]),
        ("python -m pytest -n 4", ["python", "pytest"]),
        ("python -mpytest", ["python", "pytest"]),
        ("python -IX utf8 -W error -Wd -m http.server", ["python", "http.server"]),
        ("python --check-hash-based-pycs never -OO a.py", ["python", "a.py", "a"]),
        ("python -Xutf8 -c pass a.py", ["python", "-c"]),
        ("python -Bc pass", ["python", "-c"]),
        ("python - a.py", ["python", "-"]),
        ("python", ["python"]),
        ("", []),
        ("python -m", ["python", ""]),
        ("python -X", ["python"]),
    ],
)
def test_names(line: str, names: list[str]) -> None:
    assert program_names(line.split()) == names


def test_names_of_workers() -> None:
    code = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6)"
    assert program_names(["python", "-c", code, "--multiprocessing-fork"]) == ["python", "-c", "multiprocessing.spawn"]
    for code in ("from", "from x", "import x", "x = 'from y import z'"):
        assert program_names(["python", "-c", code]) == ["python", "-c"]


@pytest.mark.parametrize("options", ["-IX utf8 -Wd -OO", "-W error -X dev", "--check-hash-based-pycs never -B"])
def test_the_interpreter_reads_its_options_as_we_do(options: str) -> None:
    """What sys.orig_argv holds, and what python takes as the module."""
    code = "import sys; print(sys.orig_argv)"
    done = subprocess.run([sys.executable, *options.split(), "-c", code], capture_output=True, text=True, check=True)
    argv: list[str] = eval(done.stdout)  # noqa: S307 - our own print
    assert program_names(argv)[1:] == ["-c"]


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        ([], [], True),
        (["worker*"], [], True),
        (["worker"], [], True),
        (["worker.py"], [], True),
        (["orker*"], [], False),
        (["x", "python3.?2"], [], True),
        (["x"], [], False),
        ([], ["worker.py"], False),
        ([], ["x"], True),
        (["*"], ["w*"], False),
    ],
)
def test_choice(include: list[str], exclude: list[str], chosen: bool) -> None:
    command_line = ["/usr/bin/python3.12", "worker.py"]
    assert passes_filter(join_patterns(include), join_patterns(exclude), command_line) == chosen


def test_patterns_survive_the_settings() -> None:
    for patterns in ([], ["a"], ["a:b", "50%,c", "%25%3a", "\n", "=x"]):
        text = join_patterns(patterns)
        assert split_patterns(text) == patterns
        assert "," not in text
        assert "\n" not in text


def test_matching_is_that_of_fnmatch() -> None:
    chance = random.Random(1)
    for _ in range(20_000):
        name = "".join(chance.choice("ab*") for _ in range(chance.randrange(6)))
        pattern = "".join(chance.choice("ab*?") for _ in range(chance.randrange(6)))
        assert matches(name, pattern) == fnmatch.fnmatchcase(name, pattern), (name, pattern)


def test_a_hostile_pattern_is_not_slow() -> None:
    assert not matches("a" * 3000, "*a" * 50 + "b")
