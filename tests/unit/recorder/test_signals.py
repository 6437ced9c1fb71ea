"""Signals reach the program once, and the recording command stops and ends as the program does."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unit.recorder.conftest import Run

COUNT = """
import os, signal, sys, time
seen = []
def note(number, frame): seen.append(int(number))
usual = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMIN + 3)
for number in (*usual, *map(int, sys.argv[3:])): signal.signal(number, note)
print(os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and len(seen) < int(sys.argv[2]): time.sleep(0.01)
time.sleep(0.2)
print(*seen, flush=True)
"""


@contextmanager
def recorded(
    command: list[str], environment: dict[str, str], folder: Path, code: str, *arguments: str, **options: object
) -> "Iterator[tuple[subprocess.Popen[str], int]]":
    line = [*command, "record", "--sampler", "signal", "-qo", "run.tacho", "-c", code, *arguments]
    settings = {"stdout": subprocess.PIPE, "env": environment, "cwd": folder, "text": True, **options}
    with subprocess.Popen(line, **settings) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


OF_FAULTS = [
    signal.SIGTRAP,
    signal.SIGSEGV,
    signal.SIGXCPU,
    *(
        pytest.param(each, marks=pytest.mark.slow)
        for each in (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSYS)
    ),
]
"""Signals of a fault, or of a limit, of the process itself, which others send as well: batch systems, watchdogs."""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGRTMIN + 3,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGHUP, signal.SIGUSR2)),
        *OF_FAULTS,
    ],
)
def test_a_signal_sent_to_us_is_passed_on_once(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path, number: int
) -> None:
    with recorded(tachograph_command, environment, tmp_path, COUNT, "20", "1", str(int(number))) as (process, _):
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        assert (process.returncode, out.split()) == (0, [str(int(number))])


def test_ctrl_c_of_the_terminal_arrives_once(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    controller, terminal = pty.openpty()

    def own_terminal() -> None:
        os.setsid()
        import fcntl
        import termios

        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    options = {"stdin": terminal, "preexec_fn": own_terminal}
    with recorded(tachograph_command, environment, tmp_path, COUNT, "2", "9", **options) as (process, _):
        os.write(controller, b"\x03")
        out, _ = process.communicate(timeout=30)
    os.close(controller)
    os.close(terminal)
    assert (out.split(), process.returncode) == (["2"], 0)


GROUP = """
import os, signal, time
seen = []
def note(number, frame): seen.append(int(number))
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM): signal.signal(number, note)
print(os.getpid(), flush=True)
def until(number):
    while number not in seen: time.sleep(0.01)
os.kill(0, signal.SIGUSR1)
until(signal.SIGUSR1)
child = os.fork()
if child == 0:
    os.kill(0, signal.SIGUSR2)
    until(signal.SIGTERM)
    os._exit(0)
until(signal.SIGUSR2)
print("sent", flush=True)
until(signal.SIGTERM)
os.kill(child, signal.SIGTERM)
os.waitpid(child, 0)
print(*seen, flush=True)
"""


def test_what_the_program_sends_to_its_group_arrives_once(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """We are in the group as well, and do not pass it on: SIGTERM comes after all that would have been."""
    with recorded(tachograph_command, environment, tmp_path, GROUP, start_new_session=True) as (process, _):
        assert process.stdout is not None
        assert process.stdout.readline() == "sent\n"
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.split()) == (0, ["10", "12", "15"])


FAULT = """
import ctypes, os, signal, sys
from tachograph.recorder.command import launch
launch.hold_signals()
match sys.argv[1]:
    case "SIGSEGV": ctypes.string_at(0)
    case "SIGABRT": os.abort()
print("it goes on")
"""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_fault_of_our_own_ends_us(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    """Signals of faults are blocked, as they may be the program's; a real one comes all the same."""
    command = [sys.executable, "-c", FAULT, number.name]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-number, "")


LIMIT = """
import os, resource, signal, time
from tachograph.recorder.command import launch
mask = launch.hold_signals()
program = "import signal, time; signal.signal(signal.SIGXCPU, signal.SIG_DFL); time.sleep(3)"
import sys
pid = launch.start(sys.executable, [sys.executable, "-c", program], os.environ, mask).pid
limit = int(time.process_time()) + 1
resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
while time.process_time() < limit + 0.2: pass
print(signal.SIGXCPU in signal.sigpending())
print(launch.exit_status(launch.Watch(pid).until_end()))
"""


def test_a_limit_of_our_own_is_not_the_program_s(environment: dict[str, str], tmp_path: Path) -> None:
    """The kernel sends SIGXCPU to the process that has used up its time: the program meets the limit for itself."""
    done = subprocess.run(
        [sys.executable, "-c", LIMIT], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["True", "0"], "")


EARLY_END = """
import os, signal, sys, time
from pathlib import Path
from tachograph.recorder.command import launch
signal.signal(signal.SIGCHLD, getattr(signal, sys.argv[1]))
mask = launch.hold_signals()
pid = launch.start(sys.executable, [sys.executable, "-c", "import os; os._exit(7)"], os.environ, mask).pid
while Path(f"/proc/{pid}").exists() and ") Z" not in Path(f"/proc/{pid}/stat").read_text(): time.sleep(0.01)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # discards the signal
print(launch.Watch(pid).until_end())
"""


@pytest.mark.parametrize("disposition", ["SIG_DFL", "SIG_IGN"])
def test_an_end_before_we_watch_is_seen(environment: dict[str, str], tmp_path: Path, disposition: str) -> None:
    command = [sys.executable, "-c", EARLY_END, disposition]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "7\n"


def test_an_unhandled_signal_ends_both(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with recorded(tachograph_command, environment, tmp_path, code) as (process, pid):
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM
        assert not Path(f"/proc/{pid}").exists()
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


def test_stop_and_continue(tachograph_command: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    options = {"preexec_fn": os.setsid}
    # A group without a parent in its session is orphaned and does not stop at SIGTSTP: SIGSTOP is for both.
    with recorded(tachograph_command, environment, tmp_path, COUNT, "20", "1", **options) as (process, pid):
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state(pid) == "T")
        assert state(process.pid) != "T"  # the program was stopped, not the job
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: state(pid) != "T")
        process.terminate()
        assert process.communicate(timeout=30)[0].split() == ["15"]


JOB = r"""
import os, pty, signal, subprocess, sys, time
command = sys.argv[1:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
pid = int(process.stdout.readline())
os.killpg(process.pid, signal.SIGTSTP)
_, status = os.waitpid(process.pid, os.WUNTRACED)
print(os.WIFSTOPPED(status), open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0], flush=True)
os.killpg(process.pid, signal.SIGCONT)
process.send_signal(signal.SIGTERM)
print(process.stdout.read().split(), process.wait())
"""


def test_a_job_stops_as_a_whole(tachograph_command: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    line = [*tachograph_command, "record", "--sampler", "signal", "-qo", "run.tacho", "-c", COUNT, "20", "1"]
    done = subprocess.run(
        [sys.executable, "-c", JOB, *line],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "True T\n['15'] 0\n"


TERMINAL = r"""
import os, pty, signal, subprocess, sys
shell, terminal = pty.fork()
if shell:
    text = b""
    try:
        while piece := os.read(terminal, 4096):
            text += piece
    except OSError:
        pass
    os.waitpid(shell, 0)
    print(text.decode().replace("\r", ""), end="")
    sys.exit()
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
process = subprocess.Popen(sys.argv[2:], process_group=0)
os.tcsetpgrp(0, process.pid)
_, status = os.waitpid(process.pid, os.WUNTRACED)
with open("program") as file: pid = int(file.read())
print("stopped", os.WIFSTOPPED(status), open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0], flush=True)
os.killpg(process.pid, signal.SIGCONT) if sys.argv[1] == "job" else os.kill(pid, signal.SIGCONT)
_, status = os.waitpid(process.pid, os.WUNTRACED)
print("ended", os.WEXITSTATUS(status) if os.WIFEXITED(status) else status, flush=True)
"""


@pytest.mark.parametrize(
    ("stop", "who"),
    [
        ("SIGSTOP", "job"),
        ("SIGTSTP", "program"),
        pytest.param("SIGSTOP", "program", marks=pytest.mark.slow),
        pytest.param("SIGTSTP", "job", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_stops_itself_gives_the_terminal_back(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path, stop: str, who: str
) -> None:
    """The shell waits for the recording command; whichever of the two is let go on, both are."""
    code = (
        "import os, signal\nwith open('program', 'w') as file: file.write(str(os.getpid()))\n"
        f"os.kill(os.getpid(), signal.{stop})\nprint('on', flush=True)\nraise SystemExit(3)"
    )
    line = [*tachograph_command, "record", "--sampler", "signal", "-qo", "run.tacho", "-c", code]
    done = subprocess.run(
        [sys.executable, "-c", TERMINAL, who, *line],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "stopped True T\non\nended 3\n"


def test_a_signal_while_long_words_are_searched_for_secrets(
    tachograph_command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """Where that took minutes, no signal came through: the interpreter's lock was held all the time."""
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    words = [
        piece * (100_000 // len(piece)) for piece in ("a", "A1", "-", "a.", "0.", "eyJ", "a=", "-a ", "a://", "Ab1+")
    ]
    with recorded(tachograph_command, environment, tmp_path, code, *words) as (process, _):
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


# What ends a recording takes for ever here, and holds the interpreter's lock for the most part.
ENDLESS_END = """
import re, sys, time
from tachograph.recorder.command import command_line, launch, record, session
launch.IMPATIENCE_S = float(sys.argv[2])
def endless(*args, **kwargs):
    time.sleep(1)
    print("finishing", flush=True)
    time.sleep(1)
    re.match("(a+)+b", "a" * 100)
session.finish = endless
line = command_line.read(["--sampler", "signal", "-q", "-o", "run.tacho", "-c", sys.argv[1]])
record.run(line.options({}), line.target)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_end_can_be_cut_short(run: Run, environment: dict[str, str], tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-c", ENDLESS_END, "sum(range(10**6))", "0.1"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "finishing\n"
        time.sleep(2 if number == signal.SIGTERM else 0)  # also when the interpreter's lock is held for good
        process.send_signal(number)
        assert process.wait(60) == -number
    assert run("recover", "run.tacho").returncode == 0
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


def test_a_second_signal_for_the_program_does_not_cut_the_end_short(
    environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", ENDLESS_END, "pass", "30"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "finishing\n"
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        process.kill()


def test_what_the_caller_ignores_does_not_cut_the_end_short(environment: dict[str, str], tmp_path: Path) -> None:
    """As under nohup."""
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", ENDLESS_END, "pass", "0.1"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "finishing\n"
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
