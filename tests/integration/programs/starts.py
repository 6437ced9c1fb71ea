"""Every way in which a Python process starts another program."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from work import work  # type: ignore[import-not-found]  # beside this file

WORK = str(Path(__file__).with_name("work.py"))
PYTHON = [sys.executable]
HERE = dict(os.environ)


def run(name: str, *flags: str, **options: Any) -> None:
    subprocess.run([*PYTHON, *flags, WORK, name], check=True, **options)


def spawned(name: str, spawn: Callable[..., int] = os.posix_spawn) -> None:
    pid = spawn(sys.executable, [*PYTHON, WORK, name], HERE)
    assert os.waitpid(pid, 0)[1] == 0


def quick(_: int) -> None:
    work("in_executor")


def in_place(name: str, execute: Callable[[list[str]], object]) -> None:
    """Replaces a forked child that has worked, too."""
    pid = os.fork()
    if pid == 0:
        work(f"before_{name}", 0.02)
        execute([*PYTHON, WORK, name])
    assert os.waitpid(pid, 0)[1] == 0


def c_popen(command: str) -> None:
    """What popen(3) gives to programs in C, and pclose(3) afterwards."""
    libc: Any = ctypes.CDLL(None)
    libc.popen.restype = libc.fgets.restype = ctypes.c_void_p
    libc.fgets.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    libc.pclose.argtypes = [ctypes.c_void_p]
    stream = libc.popen(command.encode(), b"r")
    room = ctypes.create_string_buffer(1 << 16)
    while libc.fgets(room, len(room), stream):
        os.write(1, room.value)
    assert libc.pclose(stream) == 5 << 8


def shells() -> None:
    command = f"{sys.executable} {WORK}"
    subprocess.run(f"{command} in_shell; true", shell=True, check=True)
    assert os.system(f"{command} in_system; true") == 0
    os.write(1, os.popen(f"{command} in_popen; true").read().encode())
    assert ctypes.CDLL(None).system(f"({command} in_c_system); exit 3".encode()) == 3 << 8
    c_popen(f'echo "it\'s $0" >&2; ({command} in_c_popen); exit 5')
    subprocess.run(["env", "-i", "sh", "-c", f"{command} in_empty_environment"], check=True)
    subprocess.run(["sh", "-c", f"exec {command} in_exec_of_shell"], check=True)
    subprocess.run(["setsid", "-w", *PYTHON, WORK, "in_session"], check=True)


def settings() -> None:
    folder = Path(WORK).parent
    run("with_isolated", "-I")
    run("with_no_environment", "-E")
    run("with_another_path", env={**HERE, "PYTHONPATH": "/nowhere"})
    run("with_no_variables", env={})
    run("with_a_preload", env={**HERE, "LD_PRELOAD": "libm.so.6"})
    run("with_an_empty_preload", env={**HERE, "LD_PRELOAD": ""})
    run("with_preexec", preexec_fn=os.getpid, start_new_session=True)
    run("with_an_executable", executable=sys.executable)
    sites = folder / "sites"
    run("with_sitecustomize", env={**HERE, "PYTHONPATH": str(sites)})


def main() -> None:
    spawned("in_posix_spawn")
    spawned("in_posix_spawnp", os.posix_spawnp)
    run("in_run")
    shells()
    settings()
    in_place("by_execv", lambda a: os.execv(a[0], a))
    in_place("by_execve", lambda a: os.execve(a[0], a, {"KEPT": "yes"}))
    in_place("by_execvp", lambda a: os.execvp(a[0], a))
    in_place("by_execvpe", lambda a: os.execvpe(a[0], a, HERE))
    in_place("by_fexecve", lambda a: os.execve(os.open(a[0], os.O_RDONLY), a, HERE))
    for method in ("spawn", "forkserver"):
        context: Any = multiprocessing.get_context(method)
        process = context.Process(target=work, args=(f"in_{method}",))
        process.start()
        process.join()
        assert process.exitcode == 0
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        list(executor.map(quick, range(2)))
    work("in_main")
    sys.stdout.flush()
    os.execv(sys.executable, [*PYTHON, WORK, "in_place_of_main"])


if __name__ == "__main__":
    main()
