"""Programs that are packed, embedded or patched by others, or bring allocators of their own.

Each runs bare, recorded and attached to, and does the same in all three. It has a virtual environment of its own, to
which this one's packages are added at the end. What cannot be installed here is left out, by name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from integration import support

APP = """
import os, sys, time
def work(n): return sum(i * i for i in range(n)) + len(bytearray(n))
def main():
    with open(os.environ["PID_FILE"] + ".part", "w") as file: file.write(str(os.getpid()))
    os.rename(os.environ["PID_FILE"] + ".part", os.environ["PID_FILE"])
    total = 0
    for number in range(60):
        total += work(20_000 + number)
        time.sleep(0.05)
    while os.path.exists(os.environ["PID_FILE"] + ".lasts"): time.sleep(0.05)
    print("total", total, flush=True)
    return 3
if __name__ == "__main__": sys.exit(main())
"""
"""It works for some four seconds, and until it was attached to, writes its process id first, and ends with 3."""

SERVER = """
import os
def application(environment, start_response):
    with open(os.environ["PID_FILE"], "w") as file: file.write(str(os.getpid()))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(sum(i * i for i in range(50_000))).encode()]
"""
DRIVER = """
import http.client, os, signal, subprocess, sys, time
socket = os.path.join(os.getcwd(), "http")
import socket as sockets
with sockets.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = subprocess.Popen([*sys.argv[1:], "--http-socket", f"127.0.0.1:{port}"])
bodies, end = [], time.monotonic() + 60
while len(bodies) < 60 and time.monotonic() < end:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/")
        bodies.append(connection.getresponse().read())
    except ConnectionRefusedError:
        pass
    time.sleep(0.05)
while os.path.exists(os.environ["PID_FILE"] + ".lasts"): time.sleep(0.05)
server.send_signal(signal.SIGINT)
print(len(bodies), set(bodies), server.wait(), flush=True)
"""
"""Starts a server, asks it for some four seconds, and ends it, not before it was attached to."""

LONGEST_S = 180
LONGEST_MADE_S = 600
ATTACHED_S = 1


class ImpossibleError(Exception):
    """What a case needs cannot be had here; why."""


@dataclass(frozen=True)
class Case:
    """A program of a kind: the packages that it needs, and how its command line is made in a folder."""

    packages: tuple[str, ...]
    make: Callable[[Path, str], Sequence[str]]
    may_refuse: bool = False
    """attach may refuse it, in one line: there is no interpreter of its own."""
    unrecorded: str = ""
    """The reason in the line of ``record`` that it was not recorded; empty where it is to be."""
    remarks: str = ""
    """How a line begins by which the program itself remarks on the preloaded library."""


def _made(*command: str | Path, cwd: Path, **variables: str) -> None:
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_MADE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ImpossibleError(f"{Path(str(command[0])).name} took more than {LONGEST_MADE_S} s") from error
    if done.returncode != 0:
        raise ImpossibleError(f"{Path(str(command[0])).name} failed: {' '.join(done.stderr.split())[-200:]}")


def _app(folder: Path, before: str = "", inside: str = "") -> Path:
    """The program, with lines before it and at the beginning of its work."""
    path = folder / "app.py"
    path.write_text(before + APP.replace("    total = 0\n", f"{inside}    total = 0\n"), encoding="utf-8")
    return path


def _script(before: str = "", inside: str = "") -> Callable[[Path, str], Sequence[str]]:
    return lambda folder, python: [python, str(_app(folder, before, inside))]


def _nuitka(folder: Path, python: str) -> Sequence[str]:
    """Not optimized: most of what is compiled is Nuitka's own library, and what it does is the same."""
    _app(folder).rename(folder / "compiled.py")
    nuitka = [python, "-m", "nuitka", "--module", "--nofollow-imports", "--lto=no", "--quiet"]
    _made(*nuitka, "--assume-yes-for-downloads", "compiled.py", cwd=folder, CFLAGS="-O0")
    (folder / "compiled.py").unlink()
    return [python, "-c", "import sys, compiled; sys.exit(compiled.main())"]


def _pyinstaller(folder: Path, python: str) -> Sequence[str]:
    _made(python, "-m", "PyInstaller", "--onedir", "--log-level", "ERROR", _app(folder), cwd=folder)
    return [str(folder / "dist" / "app" / "app")]


def _pex(folder: Path, python: str) -> Sequence[str]:
    sources = folder / "sources"
    sources.mkdir()
    _app(sources)
    _made(python, "-m", "pex", "-D", sources, "-m", "app", "-o", "app.pex", cwd=folder)
    return [python, str(folder / "app.pex")]


def _shiv(folder: Path, python: str) -> Sequence[str]:
    sources = folder / "sources"
    sources.mkdir()
    _app(sources)
    _made(python, "-m", "shiv", "--site-packages", sources, "-e", "app:main", "-o", "app.pyz", cwd=folder)
    return [python, str(folder / "app.pyz")]


def _uwsgi(folder: Path, python: str) -> Sequence[str]:
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    program = str(Path(python).parent / "pyuwsgi")
    return [
        python, "driver.py", program, "--master", "--processes", "2", "--enable-threads", "--lazy-apps",
        "--wsgi-file", "server.py", "--disable-logging", "--logto", "/dev/null",
    ]  # fmt: skip


def _embedding(source: str) -> Callable[[Path, str], Sequence[str]]:
    def make(folder: Path, python: str) -> Sequence[str]:
        library = sysconfig.get_config_var("LIBDIR")
        flags = [
            "-Wl,--no-as-needed",
            f"-I{sysconfig.get_path('include')}",
            f"-L{library}",
            f"-lpython{sysconfig.get_python_version()}",
        ]
        if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
            raise ImpossibleError("this Python has no shared library")
        native = Path(support.__file__).parent / "native" / source
        program = support.compile_program(native, folder, *flags, f"-Wl,-rpath,{library}")
        if program is None:
            raise ImpossibleError("no C compiler")
        code = f"import sys; sys.path.insert(0, {str(folder)!r}); import app; assert app.main() == 3"
        _app(folder)
        return [str(program), str(folder / "started"), code]

    return make


def _own_malloc(folder: Path, python: str) -> Sequence[str]:
    """A library that is preloaded and has all of malloc's functions."""
    library = support.compile_library(Path(__file__).parent / "native" / "bump_malloc.c", folder)
    if library is None:
        raise ImpossibleError("no C compiler")
    return ["env", f"LD_PRELOAD={library}", python, str(_app(folder))]


PATCHES_GEVENT = "from gevent import monkey; monkey.patch_all()\n"
PATCHES_EVENTLET = "import eventlet; eventlet.monkey_patch()\n"
RUNS_V8 = "    from py_mini_racer import MiniRacer; assert MiniRacer().eval('6 * 7') == 42\n"
TRACKS = (
    "    import memray; tracker = memray.Tracker(f\"{os.environ['PID_FILE']}.{os.getpid()}.memray\")\n"
    "    tracker.__enter__()\n"
    "    import atexit; atexit.register(tracker.__exit__, None, None, None)\n"
)
CASES: Mapping[str, Case] = {
    "nuitka": Case(("nuitka",), _nuitka),
    "pyinstaller": Case(("pyinstaller",), _pyinstaller, may_refuse=True, unrecorded="frozen application"),
    "pex": Case(("pex",), _pex),
    "shiv": Case(("shiv",), _shiv),
    "uwsgi": Case(("pyuwsgi",), _uwsgi),
    "gevent early": Case(("gevent",), _script(PATCHES_GEVENT)),
    "gevent late": Case(("gevent",), _script("import threading\n", f"    {PATCHES_GEVENT}")),
    "eventlet early": Case(("eventlet",), _script(PATCHES_EVENTLET)),
    "eventlet late": Case(("eventlet",), _script("import threading\n", f"    {PATCHES_EVENTLET}")),
    "memray": Case(("memray",), _script(inside=TRACKS), remarks="Memray WARNING: Correcting symbol for mmap "),
    "mini-racer": Case(("mini-racer",), _script(inside=RUNS_V8)),
    "embedding": Case((), _embedding("embeds_service.c"), may_refuse=True),
    "own malloc": Case((), _own_malloc),
}


def run(folder: Path, names: Sequence[str] = ()) -> tuple[int, list[str], list[str]]:
    """How many cases did the same in all three ways, what differed, and what is not possible here."""
    same, different, impossible = 0, [], []
    for name in names or CASES:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        try:
            differences = compare(place, CASES[name])
        except ImpossibleError as error:
            impossible.append(f"{name} ({error})")
            continue
        same += not differences
        different += [f"{name}: {each}" for each in differences]
    return same, different, impossible


def compare(folder: Path, case: Case) -> list[str]:
    """What differs where a case is recorded, or attached to."""
    python = _environment(folder / "environment", case.packages)
    command = list(case.make(folder, python))
    bare = _outcome(folder, command)
    if not bare.stdout:
        raise ImpossibleError(f"bare: {bare.status}, {(bare.stderr or bare.stdout)[-200:]!r}")
    recorded = _outcome(folder, [*support.COMMAND, "record", "-q", "-o", str(folder / "run.tacho"), *command])
    if case.remarks:
        lines = recorded.stderr.splitlines(keepends=True)
        recorded = replace(recorded, stderr="".join(each for each in lines if not each.startswith(case.remarks)))
    line = bare.stderr if not case.unrecorded else recorded.stderr
    found = [] if recorded == replace(bare, stderr=line) else [f"recorded {recorded}, bare {bare}"]
    if case.unrecorded and (line.count("\n") != 1 or case.unrecorded not in line):
        found.append(f"record does not say why: {line}")
    if not (folder / "run.tacho" / "manifest.json").exists():
        found.append("there is no recording")
    told: list[support.Outcome] = []
    attached = _outcome(folder, command, lambda pid: told.append(_attach(folder, pid)))
    if attached != bare:
        found.append(f"attached to {attached}, bare {bare}")
    refused = case.may_refuse and told and told[0].status == 2 and len(told[0].stderr.splitlines()) == 1
    if not refused and (not told or told[0].status != 0):
        found.append(f"attach: {told}")
    return found


def _environment(place: Path, packages: Sequence[str]) -> str:
    """The interpreter of a virtual environment with the packages."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = str(place / "bin" / "python")
    version = sysconfig.get_python_version()
    ours = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (place / "lib" / f"python{version}" / "site-packages" / "zz_tachograph.pth").write_text(ours, encoding="utf-8")
    if packages:
        _made(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages, cwd=place)
    return python


def _attach(folder: Path, pid: int) -> support.Outcome:
    line = ["attach", str(pid), "--duration", f"{ATTACHED_S}s", "-q", "-o", str(folder / "attached.tacho")]
    done = support.tachograph(*line, cwd=folder, timeout=LONGEST_S)
    return support.Outcome(done.returncode, done.stdout, done.stderr)


def _outcome(folder: Path, command: Sequence[str], meanwhile: Callable[[int], object] | None = None) -> support.Outcome:
    """What a command did; ``meanwhile`` is called with the process id that its program has written."""
    place, lasts = folder / "pid", folder / "pid.lasts"
    place.unlink(missing_ok=True)
    if meanwhile is not None:
        lasts.touch()
    environment = support.environment(PID_FILE=str(place), PEX_ROOT=str(folder / "pex"), SHIV_ROOT=str(folder / "shiv"))
    with subprocess.Popen(
        list(command), cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        if meanwhile is not None:
            end = time.monotonic() + LONGEST_S
            while not place.exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.5)
            if place.exists():
                meanwhile(int(place.read_text(encoding="utf-8")))
            lasts.unlink()
        try:
            stdout, stderr = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
        return support.Outcome(process.returncode, stdout, stderr)
