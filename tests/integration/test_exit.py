"""The command ends as its program ends, and the program ends as it would have ended alone."""

import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from integration import support

slow = pytest.mark.slow
BUSY = "import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end: sum(range(5000))\n"


@pytest.mark.native
@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("import sys; sys.exit(0)", marks=slow),
        "import sys; sys.exit(3)",
        pytest.param("import sys; sys.exit(255)", marks=slow),
        "import sys; sys.exit('a message')",
        pytest.param("import sys; sys.exit(None)", marks=slow),
        pytest.param("raise SystemExit(7)", marks=slow),
        "raise KeyboardInterrupt",
        "1 / 0",
        "import os; os._exit(9)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", marks=slow),
        "import ctypes; ctypes.string_at(0)",
        "import threading; threading.Thread(target=lambda: print(1 / 0)).start()",
        "import atexit, os; atexit.register(os._exit, 11)",
    ],
)
def test_exit_status_and_streams(tmp_path: Path, ending: str) -> None:
    """And whatever the end was, the recording opens and has the samples from before it."""
    code = BUSY + ending
    plain = support.bare(["-c", code], tmp_path)
    recorded = support.record(["-c", code], tmp_path, "--interval", "5")
    assert recorded == plain
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 0


PURGE = """
import sys
for name in [name for name in sys.modules if name.split(".")[0] == "tachograph"]:
    del sys.modules[name]
sys.path[:] = [place for place in sys.path if "site-packages" not in place and not place.endswith("src")]
sys.meta_path[:] = [finder for finder in sys.meta_path if "ditable" not in type(finder).__name__]
"""


@pytest.mark.parametrize("options", [(), ("--calls",)], ids=["memory", "calls"])
def test_a_program_that_takes_modules_and_paths_away(tmp_path: Path, options: tuple[str, ...]) -> None:
    """As every PEX file does: nothing is to be imported at its end."""
    program = [sys.executable, "-c", f"{PURGE}print(sum(range(3_000_000)))"]
    bare = support.run(program, tmp_path)
    assert bare.stderr == ""
    assert support.record(program[1:], tmp_path, *options) == bare
    assert support.rows(tmp_path / "run.tacho", "processes")[0]["exiting_ns"] is not None


@pytest.mark.parametrize("ending", ["import sys; sys.exit(3)", "1 / 0", "import os; os._exit(9)"])
def test_exit_status_with_the_signal_sampler(tmp_path: Path, ending: str) -> None:
    plain = support.bare(["-c", BUSY + ending], tmp_path)
    recorded = support.record(["-c", BUSY + ending], tmp_path, "--sampler", "signal")
    assert recorded == plain
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 0


HANDLES = """
import signal, sys, time
def handle(number, frame):
    print("handled", signal.Signals(number).name, flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, handle)
signal.signal(signal.SIGHUP, handle)
signal.signal(signal.SIGINT, handle)
signal.signal(signal.SIGUSR1, lambda *a: print("again", flush=True))
print("ready", flush=True)
while True: time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        *(pytest.param("native", name, marks=pytest.mark.native) for name in ("SIGTERM", "SIGHUP", "SIGINT")),
        ("signal", "SIGINT"),
        *(pytest.param("signal", name, marks=slow) for name in ("SIGTERM", "SIGHUP")),
    ],
)
def test_signals_are_passed_on(tmp_path: Path, sampler: str, name: str) -> None:
    with support.start(["-c", HANDLES], tmp_path, "--sampler", sampler) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
        rest, errors = process.communicate(timeout=30)
    assert rest == f"handled {name}\n"
    assert errors == ""
    assert process.returncode == 5
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"] is not None


def test_unhandled_sigterm_ends_both(tmp_path: Path, sampler: str) -> None:
    code = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
    with support.start(["-c", code], tmp_path, "--sampler", sampler) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        process.communicate(timeout=30)
    assert support.shell_status(process.returncode) == 128 + signal.SIGTERM
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


def test_ctrl_c_reaches_the_program_once(tmp_path: Path, sampler: str) -> None:
    """A terminal sends SIGINT to the whole group: the program gets it from there and not once more from the command."""
    code = (
        "import time\nprint('ready', flush=True)\ncount = 0\nend = time.monotonic() + 0.6\n"
        "while time.monotonic() < end:\n"
        "    try:\n        time.sleep(0.01)\n"
        "    except KeyboardInterrupt:\n        count += 1\n"
        "print('interrupts', count)\nraise SystemExit(6)"
    )
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        [*support.COMMAND, "record", "-q", "-o", "run.tacho", "--sampler", sampler, "-c", code],
        cwd=tmp_path,
        env=support.environment(),
        preexec_fn=lambda: os.login_tty(slave),  # a session of its own, with this terminal
    )
    os.close(slave)
    try:
        with open(master, "rb", buffering=0, closefd=False) as terminal:
            assert terminal.readline() == b"ready\r\n"
            time.sleep(0.1)
            os.write(master, b"\x03")
            assert terminal.readline() == b"interrupts 1\r\n"
        assert process.wait(timeout=30) == 6
    finally:
        support.kill_quietly(process.pid)
        process.wait(timeout=10)
        os.close(master)
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


def test_the_command_says_one_line_unless_quiet(tmp_path: Path, sampler: str) -> None:
    arguments = ["record", "--sampler", sampler, "-o", "run.tacho", "-c", BUSY + "print('out')"]
    done = support.tachograph(*arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == "out\n"
    assert len(done.stderr.strip().splitlines()) == 1
    assert "run.tacho" in done.stderr
    assert "tachograph analyze" in done.stderr


WAITS_FOR_THE_INTERPRETER = """
import threading, time
from tachograph.recorder import _native
def work():
    while True: _native.resolve(_native.__file__, "", [0x1000])  # lets other threads have the interpreter meanwhile
for _ in range(2): threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("done")
"""


@pytest.mark.native
def test_an_end_while_a_thread_of_ours_waits_for_the_interpreter(tmp_path: Path) -> None:
    """CPython before 3.14 unwinds the stack of such a thread: C++ code would end the program by SIGABRT."""
    for _ in range(3):
        outcome = support.bare(["-c", WAITS_FOR_THE_INTERPRETER], tmp_path)
        assert outcome == support.Outcome(0, "done\n", "")
