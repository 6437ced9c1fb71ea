"""Forking, spawning and executing programs behave as ever."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from integration import support

BURN = "def burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
FORK = (
    "import os, sys, time\n" + BURN + "for number in range(8):\n"
    "    burn(0.03)\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        burn(0.03)\n"
    "        print('child', number, flush=True)\n"
    "        os._exit(number)\n"
    "    print('status', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
)
TELL_USER_TIME = """
whole = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
with open("user", "w") as file: file.write(str(whole - begin))
"""
FORK_AND_RETURN = (
    "import os, sys, time\n" + BURN + "burn(0.05)\n"
    "pid = os.fork()\n"
    "burn(0.05)\n"
    "if pid: os.waitpid(pid, 0)\n"
    "print('parent' if pid else 'child', flush=True)\n"
    "sys.exit(3)\n"
)
POOL = (
    "import multiprocessing, time\n" + BURN + "def square(x):\n    burn(0.02)\n    return x * x\n"
    "if __name__ == '__main__':\n"
    "    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
    "        print(pool.map(square, range(10)))\n"
)
SUBPROCESS = (
    "import subprocess, sys, time\n" + BURN + "burn(0.1)\n"
    "for number in range(5):\n"
    "    done = subprocess.run([sys.executable, '-c', f'import sys; print({number}); sys.exit({number})'])\n"
    "    print(done.returncode, flush=True)\n"
    "print(subprocess.check_output('echo from a shell', shell=True))\n"
)
EXEC = "import os, sys, time\n" + BURN + "burn(0.1)\nos.execv(sys.executable, [sys.executable, '-c', 'print(1 + 1)'])\n"
PROGRAMS = {
    "fork": FORK,
    "fork and return": FORK_AND_RETURN,
    "pool, fork": POOL.format(method="fork"),
    "pool, spawn": POOL.format(method="spawn"),
    "pool, forkserver": POOL.format(method="forkserver"),
    "subprocess": SUBPROCESS,
    "exec": EXEC,
    "fork from a thread": (
        "import os, threading, time\n" + BURN + "def run():\n"
        "    pid = os.fork()\n"
        "    burn(0.05)\n"
        "    if pid == 0: os._exit(5)\n"
        "    print(os.waitpid(pid, 0)[1])\n"
        "thread = threading.Thread(target=run)\nthread.start()\nthread.join()\n"
    ),
}


QUICK = {
    "native": ("fork", "fork and return", "pool, fork", "pool, forkserver", "subprocess", "exec", "fork from a thread"),
    "signal": ("fork", "pool, fork", "exec"),
}
"""What ``make test`` runs; a pool that spawns starts its workers as ``subprocess`` starts programs."""


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        pytest.param(sampler, name, marks=[*marks, *([] if name in QUICK[sampler] else [pytest.mark.slow])])
        for sampler, marks in (("native", [pytest.mark.native]), ("signal", []))
        for name in PROGRAMS
    ],
)
def test_same_output(tmp_path: Path, sampler: str, name: str) -> None:
    """Not one line more or less: no warning of CPython 3.12 that a process with threads forks, unless bare has it."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAMS[name], encoding="utf-8")
    environment = support.environment(PYTHONWARNINGS="always")
    plain = support.bare([script], tmp_path, env=environment)
    recorded = support.record([script], tmp_path, "--sampler", sampler, env=environment)
    # pids are in the warnings of a fork from a thread
    assert recorded.status == plain.status
    assert recorded.stdout == plain.stdout
    assert recorded.stderr.count("Warning") == plain.stderr.count("Warning")
    assert len(recorded.stderr.splitlines()) == len(plain.stderr.splitlines()), recorded.stderr


def test_every_process_has_its_own_time(tmp_path: Path, sampler: str) -> None:
    code = "import resource\nbegin = resource.getrusage(resource.RUSAGE_SELF).ru_utime\n" + FORK + TELL_USER_TIME
    assert support.record(["-c", code], tmp_path, "--interval", "5", "--sampler", sampler).status == 0
    recording = tmp_path / "run.tacho"
    assert len(support.rows(recording, "processes")) == 9
    report = support.analyze(recording, cwd=tmp_path)
    assert "forks_unrecorded" not in support.losses(report)
    # 16 times 0.03 s, forks and start. What a process does after its last signal is in no sample; the signal sampler's
    # timer runs in user mode only, so that this may be two intervals, and the kernel's tick.
    user_s = float((tmp_path / "user").read_text(encoding="utf-8"))
    least = user_s - 9 * 0.014 if sampler == "signal" else 0.4
    assert least < report["totals"]["cpu_s"] < 0.9


FAULTS = """
import os, resource
def faults():
    for _ in range(40):
        if (pid := os.fork()) == 0: os._exit(0)
        os.waitpid(pid, 0)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt / 40
print(faults())
"""


def test_a_child_of_a_moment_touches_next_to_nothing(tmp_path: Path) -> None:
    """Recording memory takes tables of megabytes, of which such a child has no use."""
    with_memory, without = (
        float(support.record(["-c", FAULTS], tmp_path, *options, output=f"{len(options)}.tacho").stdout)
        for options in ((), ("--cpu-only",))
    )
    assert with_memory - without < 80  # pages of 4 KB; they were 240


SHORT = """
import hashlib, os
block = b"x" * 200_000
for _ in range(30):
    if (pid := os.fork()) == 0:
        for _ in range(50):
            hashlib.sha1(block).digest()
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.mark.native
def test_what_a_short_child_calls_is_known(tmp_path: Path) -> None:
    """Most end before the recorder's thread would have looked at what is mapped."""
    support.record(["-c", SHORT], tmp_path, "--cpu-only")
    frames = support.rows(tmp_path / "run.tacho", "native_frames")
    assert frames
    assert [row for row in frames if row["module"] is None] == []


FORKS = """
import os
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts the system calls")
def test_a_child_of_a_moment_makes_few_system_calls(tmp_path: Path) -> None:
    """They were 350 when a child asked for each signal twice, and for each page of all tables; then 166.

    One that a busy machine lets live for 20 ms has a helper at work, and makes some more.
    """
    log = tmp_path / "calls.txt"
    command = ["strace", "-f", "-qq", "-o", str(log), *support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", FORKS]
    done = support.run(command, tmp_path, timeout=120)
    if "not permitted" in done.stderr:
        pytest.skip("no process may be traced here")
    assert done.status == 0, done.stderr
    calls: Counter[str] = Counter()
    ended_at_once = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        pid, call = line.split(maxsplit=1)
        calls[pid] += not call.startswith(("<...", "+++", "---"))
        if call.startswith("exit_group(0"):
            ended_at_once.append(pid)
    # The program's own processes make hundreds of calls to start an interpreter; the forked ones do not.
    assert min(calls[pid] for pid in ended_at_once) < 150


@pytest.mark.native
def test_environments_near_the_kernels_limit(tmp_path: Path) -> None:
    """Without our variables, where there is no room for them: the program runs, unrecorded."""
    plain = support.bare([support.PROGRAMS / "long_environment.py"], tmp_path)
    assert plain.stdout.count("executed") == 3
    assert support.record([support.PROGRAMS / "long_environment.py"], tmp_path) == plain
    assert support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))["execs"] > 0
