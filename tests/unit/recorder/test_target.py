import os
import zipfile
from pathlib import Path

import pytest

from tachograph.recorder.command.target import Kind, Target, check_script, interpreter_flags
from tachograph.recorder.problems import Refused


def test_command() -> None:
    assert Target(Kind.SCRIPT, "a.py", ("1",)).command() == ["a.py", "1"]
    assert Target(Kind.MODULE, "pip", ("list",)).command() == ["-m", "pip", "list"]
    assert Target(Kind.CODE, "pass").command() == ["-c", "pass"]


@pytest.mark.parametrize(
    ("target", "stem"),
    [
        (Target(Kind.SCRIPT, "/tmp/fib.py"), "fib"),
        (Target(Kind.SCRIPT, "tools/run me.py"), "run_me"),
        (Target(Kind.SCRIPT, "manage"), "manage"),
        (Target(Kind.SCRIPT, ".hidden.py"), "hidden"),
        (Target(Kind.SCRIPT, "ü.py"), "program"),
        (Target(Kind.SCRIPT, "-"), "stdin"),
        (Target(Kind.MODULE, "http.server"), "http.server"),
        (Target(Kind.CODE, "print(1)"), "python-c"),
        (Target(Kind.SCRIPT, "x" * 200 + ".py"), "x" * 60),
    ],
)
def test_recording_stem(target: Target, stem: str) -> None:
    assert target.recording_stem() == stem


@pytest.mark.parametrize(
    "content",
    [
        b"print(1)\n",
        b"",
        b"#!/usr/bin/env python3\n",
        b"#!/bin/sh\n''''exec python3 $0 # '''\nprint(1)\n",
        b"#!/usr/bin/env -S uv run --script\nprint(1)\n",
        b"def broken(:\n",
        b"\xef\xbb\xbfprint(1)\n",
    ],
)
def test_what_python_would_run_is_accepted(tmp_path: Path, content: bytes) -> None:
    script = tmp_path / "script"
    script.write_bytes(content)
    check_script(str(script))


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\0\0\0", b"#!/bin/sh\necho $HOME; exit 1\n", b"#!python\n\0"])
def test_what_is_not_python_is_refused(tmp_path: Path, content: bytes) -> None:
    script = tmp_path / "script"
    script.write_bytes(content)
    with pytest.raises(Refused, match="is neither a Python script nor an executable file"):
        check_script(str(script))


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"there is no script .*missing\.py; options"):
        check_script(str(tmp_path / "missing.py"))


def test_a_directory_needs_a_main(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"directory without a __main__\.py"):
        check_script(str(tmp_path))
    (tmp_path / "__main__.py").touch()
    check_script(str(tmp_path))


@pytest.mark.parametrize("before", [b"", b"#!/usr/bin/env python3\n", b"#!/opt/venv/bin/python3.13 -I\n"])
def test_an_archive_is_accepted(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "app.pyz").write_bytes(before)
    with zipfile.ZipFile(tmp_path / "app.pyz", "a") as archive:
        archive.writestr("__main__.py", "print(1)")
        archive.comment = b"made by a test" * 1000
    check_script(str(tmp_path / "app.pyz"))


@pytest.mark.parametrize("before", [b"\x7fELF\x02\x01\x01\0\0\0", b"#!/bin/sh\nunzip $0\n"])
def test_an_archive_behind_another_program_is_that_program(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "install").write_bytes(before)
    with zipfile.ZipFile(tmp_path / "install", "a") as archive:
        archive.writestr("__main__.py", "print(1)")
    with pytest.raises(Refused, match="is neither a Python script nor an executable file"):
        check_script(str(tmp_path / "install"))


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_script(str(tmp_path / "pipe"))  # reading would block for ever


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_an_impossible_name_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="cannot read the script"):
        check_script(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_script_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.touch(0)
    with pytest.raises(Refused, match="permission denied"):
        check_script(str(script))


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("python -m tachograph record a.py", ""),
        ("python -O -X utf8 -W error -m tachograph record -m x", "-O -X utf8 -W error"),
        ("python -O bin/tachograph record -m tachograph", ""),
        ("bin/tachograph record a.py -m tachograph", ""),
    ],
)
def test_the_interpreters_own_options_reach_the_program(line: str, flags: str) -> None:
    assert interpreter_flags(line.split()) == flags.split()
