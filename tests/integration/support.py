"""Running a program bare and recorded, and reading a recording with nothing but pyarrow."""

import hashlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from oracle.support import (
    analyze,
    compile_library,
    compile_program,
    environment,
    losses,
    native_recorder,
    tachograph,
    tolerance,
)
from support.warm_command import COMMAND

__all__ = [
    "COMMAND",
    "PROGRAMS",
    "Outcome",
    "analyze",
    "as_user",
    "bare",
    "compile_library",
    "compile_program",
    "digests",
    "discard",
    "environment",
    "interpreter_files",
    "interpreter_has_names",
    "is_running",
    "kill_quietly",
    "losses",
    "native_recorder",
    "one_line",
    "record",
    "rows",
    "run",
    "shell_status",
    "start",
    "stripped_interpreter",
    "tachograph",
    "tolerance",
    "wait_for",
]

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Outcome:
    """What is seen of a program that was started."""

    status: int
    stdout: str
    stderr: str


def shell_status(returncode: int) -> int:
    """The exit status as a shell shows it: 128 + N for a program killed by signal N."""
    return 128 - returncode if returncode < 0 else returncode


def bare(
    target: Sequence[str | Path], cwd: Path, *, env: dict[str, str] | None = None, stdin: str = "", timeout: float = 60
) -> Outcome:
    """Run ``python TARGET...`` without any recorder."""
    return run([sys.executable, *map(str, target)], cwd, env=env, stdin=stdin, timeout=timeout)


def record(
    target: Sequence[str | Path],
    cwd: Path,
    *options: str | Path,
    env: dict[str, str] | None = None,
    stdin: str = "",
    timeout: float = 90,
    output: str = "run.tacho",
) -> Outcome:
    """Run ``tachograph record -q -o OUTPUT OPTIONS... TARGET...`` in ``cwd``; the recording is ``cwd/OUTPUT``."""
    line = ["record", "-q", "-o", output, *options, *target]
    done = tachograph(*line, cwd=cwd, timeout=timeout, env=env, stdin=stdin)
    return Outcome(shell_status(done.returncode), done.stdout, done.stderr)


def run(
    command: Sequence[str], cwd: Path, *, env: dict[str, str] | None = None, stdin: str = "", timeout: float = 60
) -> Outcome:
    """Run a command as it stands."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment() if env is None else env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Outcome(shell_status(done.returncode), done.stdout, done.stderr)


@contextmanager
def start(
    target: Sequence[str | Path],
    cwd: Path,
    *options: str | Path,
    output: str = "run.tacho",
    env: dict[str, str] | None = None,
) -> Iterator["subprocess.Popen[str]"]:
    """The recording command in a session of its own, still running; whatever is left of it is killed at the end."""
    process = subprocess.Popen(
        [*COMMAND, "record", "-q", "-o", output, *map(str, options), *map(str, target)],
        cwd=cwd,
        env=environment() if env is None else env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_quietly(process.pid, group=True)
        process.communicate(timeout=30)


def interpreter_files() -> list[Path]:
    """The program of this interpreter and, where there is one, its shared library: the last has the evaluation loop."""
    found = [Path(sys.executable).resolve()]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        library = Path(str(sysconfig.get_config_var("LIBDIR"))) / str(sysconfig.get_config_var("INSTSONAME"))
        found.append(library.resolve())
    return found


def interpreter_has_names() -> bool:
    """Whether this interpreter's file names the functions that it does not export: ELF's section of type 2.

    The name of that section is not enough: CPython 3.15 writes such files, and has it among its texts.
    """
    data = interpreter_files()[-1].read_bytes()
    (first,), (size, count) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HH", data, 0x3A)
    return any(struct.unpack_from("<I", data, first + size * number + 4) == (2,) for number in range(count))


def stripped_interpreter(folder: Path) -> dict[str, str]:
    """Puts a copy of this interpreter without symbols into ``folder/bin``; the environment that it runs in."""
    if shutil.which("strip") is None:
        pytest.skip("no strip")
    program, *libraries = interpreter_files()
    for name in ("bin", "lib"):
        (folder / name).mkdir()
    copies = [Path(shutil.copy(program, folder / "bin" / "python3"))]
    copies += [Path(shutil.copy(library, folder / "lib" / library.name)) for library in libraries]
    for each in copies:
        each.chmod(0o755)
        subprocess.run(["strip", "--strip-all", str(each)], check=True)
    modules = os.pathsep.join(path for path in sys.path if path)
    return {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": modules, "LD_LIBRARY_PATH": str(folder / "lib")}


def kill_quietly(pid: int, *, group: bool = False) -> None:
    """SIGKILL for a process, or its group, that may be gone already."""
    try:
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def fork_as(user: int, function: Callable[[int], object]) -> tuple[int, int]:
    """Run ``function`` in a forked process of this user, which only root can; its end of a pipe to us is passed to it.

    Returned are its process id and our end. No other interpreter: the user may not enter root's folders to start one.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            function(writer)
            status = 0
        except BaseException:  # noqa: BLE001 - the parent sees the status alone
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(status)
    os.close(writer)
    return pid, reader


def as_user(user: int, function: Callable[[], object]) -> str:
    """The repr of what ``function`` returns in a forked process of this user; only root can."""
    pid, reader = fork_as(user, lambda writer: os.write(writer, repr(function()).encode()))
    with open(reader, "rb") as file:
        text = file.read().decode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return text


def discard(folder: Path) -> None:
    """Remove a folder and all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children(pid: int) -> tuple[list[int], list[int]]:
    """Child processes of the first thread of a process, and those of its other threads."""
    found: tuple[list[int], list[int]] = ([], [])
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            text = (thread / "children").read_text(encoding="ascii")
            found[thread.name != str(pid)].extend(map(int, text.split()))
    return found


def wait_for(condition: Callable[[], bool], what: str, timeout: float = 30) -> None:
    """Return when ``condition`` holds; fail after ``timeout`` seconds."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout:g} s for {what}"
        time.sleep(0.02)


def rows(recording: Path, table: str) -> list[dict[str, Any]]:
    """A table of a recording as a list of dicts, by pyarrow alone."""
    found: list[dict[str, Any]] = pq.read_table(recording / f"{table}.parquet").to_pylist()
    return found


def digests(folder: Path) -> dict[str, tuple[str, int]]:
    """Digest and modification time of every file under ``folder``: what must not change under a reader."""
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def one_line(outcome: Outcome, *words: str) -> str:
    """Assert that a command refused with status 2 and exactly one line that has ``words`` in it; the line."""
    assert outcome.status == 2, outcome
    lines = [line for line in outcome.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, outcome.stderr
    assert "Traceback" not in lines[0]
    for word in words:
        assert word.lower() in lines[0].lower(), f"{word!r} is not in {lines[0]!r}"
    return lines[0]
