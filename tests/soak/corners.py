"""Programs in corners where next to nothing is left or allowed: bare, recorded and attached to, they do the same.

No descriptor is left, no folder for temporary files, standard streams are closed, a sandbox is entered while they run,
or other users knock at every door of ours.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from integration import restrictions, support

NAMES = ("no-descriptors", "no-temporary-folder", "closed-streams", "sandbox", "other-users")
WAYS = ("bare", "recorded", "attached", "on standby")
NOBODY = 65534
TESTS = Path(__file__).resolve().parents[1]
CORNERED = support.PROGRAMS / "cornered.py"
FILTERS = TESTS / "integration" / "native" / "filters.c"
_DOORS = re.compile(r" @(tachograph-\S+)$", re.MULTILINE)
REFUSES = {"no-descriptors", "no-temporary-folder"}
"""Where a process cannot be attached to: one line, and exit status 2."""


@dataclass(frozen=True)
class Outcome:
    """What a program wrote and how it ended, what ``attach`` did, and how much was recorded (None: nothing was to be).

    ``attached`` is the exit status of ``attach`` and its standard error.
    """

    status: int
    out: str
    said: str
    attached: tuple[int, str] | None = None
    samples: int | None = None


def run(folder: Path, names: Sequence[str] = NAMES) -> tuple[int, list[str], list[str]]:
    """How many ways came out as bare; what differed; which corners this machine does not have."""
    same, different, impossible = 0, [], []
    for name in names:
        try:
            bare = outcome(folder / name / "bare", name, "bare")
            for way in WAYS[1:]:
                try:
                    judge(name, way, bare, outcome(folder / name / way, name, way))
                    same += 1
                except AssertionError as error:
                    different.append(f"{name}, {way}: {str(error)[:600]}")
        except restrictions.ImpossibleError as error:
            impossible.append(f"{name}: {error}")
        finally:
            support.discard(folder / name)
    return same, different, impossible


def judge(name: str, way: str, bare: Outcome, other: Outcome) -> None:
    """AssertionError where the program came out otherwise, or we did what we must not."""
    program, expected = ((each.status, each.out, each.said) for each in (other, bare))
    assert program == expected, f"bare {expected}, {program}"
    if other.attached is not None:
        status, said = other.attached
        allowed = (0, 2) if name in REFUSES else (0,)
        assert status in allowed, f"attach ended with {status}: {said}"
        assert said.count("\n") <= 1, said
        assert "Traceback" not in said, said
    if way == "recorded":
        assert other.samples, "nothing was recorded"


def outcome(folder: Path, name: str, way: str) -> Outcome:
    """Of one run, in a process of its own.

    Raises ImpossibleError where this machine does not allow it.
    """
    folder.mkdir(parents=True)
    if name == "sandbox" and support.compile_library(FILTERS, folder) is None:
        raise restrictions.ImpossibleError("no C compiler")
    if name == "other-users" and os.geteuid() != 0:
        raise restrictions.ImpossibleError("only root can become another user")
    inside = [sys.executable, str(restrictions.RESTRICTED), "read-only-root"] if name == "no-temporary-folder" else []
    command = [*inside, sys.executable, "-m", "soak.corners", name, way, str(folder)]
    environment = {**support.environment(), "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}
    done = support.run(command, folder, timeout=400, env=environment)
    if done.status == restrictions.IMPOSSIBLE:
        raise restrictions.ImpossibleError(done.stderr.strip())
    assert done.status == 0, done.stderr
    values = json.loads(done.stdout)
    attached = values.pop("attached")
    return Outcome(**values, attached=None if attached is None else (attached[0], attached[1]))


def main(name: str, way: str, folder: Path) -> None:
    """One run, in a corner that was prepared."""
    os.chdir(folder)
    environment = {key: value for key, value in os.environ.items() if key not in ("TMPDIR", "PYTHONPATH")}
    start = [*support.COMMAND, "record", "-qo", str(folder / "run.tacho")] if way == "recorded" else [sys.executable]
    if way == "on standby":
        environment["TACHOGRAPH_STANDBY"] = "1"
    program = subprocess.Popen(
        [*start, str(CORNERED), name], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    attached = samples = None
    with knocking() if name == "other-users" else nullcontext():
        support.wait_for((folder / "ready").exists, "the program", timeout=120)
        if way in ("attached", "on standby"):
            attached = attach(program.pid, folder, environment)
        (folder / "go").touch()
        _, said = program.communicate(timeout=240)
    if attached is not None:
        _, words = attached.communicate(timeout=240)
    if way == "recorded":
        samples = len(support.rows(folder / "run.tacho", "cpu"))
    out = (folder / "out").read_text(encoding="utf-8")
    result = Outcome(program.returncode, out, said, None if attached is None else (attached.returncode, words), samples)
    print(json.dumps(asdict(result)))


def attach(pid: int, folder: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
    """An ``attach`` that records, or has given up; it lasts longer than the program does."""
    command = [*support.COMMAND, "attach", str(pid), "-qo", str(folder / "run.tacho"), "--duration", "60s"]
    attached = subprocess.Popen(command, cwd="/", env=environment, stderr=subprocess.PIPE, text=True)

    def has_begun() -> bool:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        return "/memfd:tachograph" in maps or attached.poll() is not None

    support.wait_for(has_begun, "the recording", timeout=120)
    return attached


@contextmanager
def knocking() -> Iterator[None]:
    """Meanwhile another user connects to all sockets of ours, and says what makes no sense."""

    def knock(_: int) -> None:
        while True:
            for name in _DOORS.findall(Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")):
                with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(0.1)
                    client.connect(f"\0{name}")
                    client.sendall(b'{"do": "start", "tachograph": "0", "path": "/tmp/knocked"}\n' + b"\0" * 100)
                    client.recv(10)

    knocker, reader = support.fork_as(NOBODY, knock)
    try:
        yield
    finally:
        os.close(reader)
        support.kill_quietly(knocker)
        os.waitpid(knocker, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
