"""record, start and stop from inside a program: what is recorded, what is left, and what is refused."""

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from integration import support
from integration.test_process_tree_arming import compile_linked, embedding_command

pytestmark = [pytest.mark.native, pytest.mark.recording]

WORK = """
import os, sys, threading, time
from tachograph.recorder import RecordingError, record, start, stop
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(5000))
def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except RecordingError as error:
        assert "\\n" not in str(error)
        print(error)
    else:
        raise AssertionError("not refused")
"""


def python(program: str, folder: Path, *, status: int = 0) -> str:
    """The output of a program that must end with ``status`` and write no error."""
    done = support.bare(["-c", WORK + program], folder)
    assert (done.status, done.stderr) == (status, ""), done.stderr
    return done.stdout


def manifest(recording: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    return found


def wait_until_complete(recording: Path) -> None:
    """The process beside a program goes on when the program has ended."""
    support.wait_for(lambda: not (recording / "spool").exists(), "the end of the recording", timeout=60)
    assert manifest(recording)["state"] == "complete"


def functions(recording: Path) -> dict[str, int]:
    """CPU ns by function, where it or one that it calls was met."""
    stacks, codes = support.rows(recording, "stacks"), support.rows(recording, "codes")
    found: dict[str, int] = {}
    for row in support.rows(recording, "cpu"):
        names, stack = set(), row["stack"]
        while stack is not None:
            names.add(codes[stacks[stack]["code"]]["qualname"])
            stack = stacks[stack]["parent"]
        for name in names:
            found[name] = found.get(name, 0) + row["cpu_ns"]
    return found


@pytest.fixture(scope="module")
def threads_and_restarts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of one process, with a thread that ran before the first and one that began in it."""
    folder = tmp_path_factory.mktemp("attached")
    program = """
done, begun = threading.Event(), threading.Event()
def idle():
    begun.set()
    done.wait()
def early():
    idle()
def late():
    burn(0.3)
threading.Thread(target=early, name="was-there").start()
begun.wait()
def first():
    worker = threading.Thread(target=late, name="came-later")
    worker.start()
    burn(0.6)
    worker.join()
def between(): burn(0.3)
def second(): burn(0.3)
with record("first.tacho", memory=False) as path:
    assert path.is_absolute()
    first()
between()
start("second.tacho", memory=False)
second()
print(stop().name)
between()
done.set()
"""
    assert python(program, folder) == "second.tacho\n"
    return folder


def test_what_runs_while_it_is_on_is_recorded_and_nothing_else(threads_and_restarts: Path) -> None:
    first = functions(threads_and_restarts / "first.tacho")
    second = functions(threads_and_restarts / "second.tacho")
    assert {"first", "late"} <= first.keys()
    assert not {"between", "second"} & first.keys()
    assert "second" in second
    assert not {"between", "first", "late"} & second.keys()
    for name in ("first", "second"):
        assert manifest(threads_and_restarts / f"{name}.tacho")["state"] == "complete"


def test_threads_have_their_names(threads_and_restarts: Path) -> None:
    names = {row["name"] for row in support.rows(threads_and_restarts / "first.tacho", "threads")}
    assert {"MainThread", "was-there", "came-later"} <= names
    names = {row["name"] for row in support.rows(threads_and_restarts / "second.tacho", "threads")}
    assert {"MainThread", "was-there"} <= names
    assert "came-later" not in names


def test_a_recording_from_inside_is_analyzed_like_another(threads_and_restarts: Path) -> None:
    for name in ("first.tacho", "second.tacho"):
        found = support.analyze(threads_and_restarts / name, cwd=threads_and_restarts)
        assert found["totals"]["cpu_s"] > 0


MEMORY = """
before = [bytearray(3_000_000) for _ in range(4)]
def grow():
    return [bytearray(2_000_000) for _ in range(20)]
def small():
    return [str(number) for number in range(200_000)]
for name in ("one.tacho", "two.tacho"):
    with record(name, memory_threshold="1M"):
        kept = grow(), small()
        burn(0.05)
    del kept
"""


def test_memory_is_recorded_while_it_is_on(tmp_path: Path) -> None:
    python(MEMORY, tmp_path)
    assert_memory_is_recorded(tmp_path)


LIKE_THESE_TESTS = f"""
import site, sys
site.addsitedir({sysconfig.get_path("purelib")!r})
sys.executable = {sys.executable!r}
"""
"""A program that embeds Python has no environment: packages, and what starts the process beside it, are ours."""


def test_memory_of_a_program_at_a_fixed_address(tmp_path: Path) -> None:
    """dlsym finds an entry of the program's own for malloc and free: its large blocks are no small ones, unseen."""
    program = compile_linked(tmp_path, "-fno-pie", "-no-pie")
    done = support.run(embedding_command(program, "main", "-c", LIKE_THESE_TESTS + WORK + MEMORY), tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert_memory_is_recorded(tmp_path)


LINKED = """
#include <stdlib.h>
#include <string.h>
void copy_often(size_t size, int times) {
    char* from = malloc(size);
    char* to = malloc(size);
    memset(from, 1, size);
    for (int i = 0; i < times; i++) memcpy(to, from, size);
    free(from);
    free(to);
}
"""

COPIES = """
import ctypes
copy_often = ctypes.CDLL(None).copy_often
with record("one.tacho"):
    copy_often(ctypes.c_size_t(10_000_000), 20)
"""


def test_what_a_library_of_the_program_never_called_before_is_met(tmp_path: Path) -> None:
    """Debian's python3 is linked with libz, whose calls of memcpy are not bound before the first."""
    (tmp_path / "linked.c").write_text(LINKED, encoding="utf-8")
    linked = support.compile_library(tmp_path / "linked.c", tmp_path, "-fno-builtin", "-Wl,-z,lazy")
    assert linked is not None
    program = compile_linked(tmp_path, "-Wl,--no-as-needed", str(linked), f"-Wl,-rpath,{tmp_path}")
    done = support.run(embedding_command(program, "main", "-c", LIKE_THESE_TESTS + WORK + COPIES), tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert sum(row["bytes"] for row in support.rows(tmp_path / "one.tacho", "copies")) >= 20 * 10_000_000


def assert_memory_is_recorded(folder: Path) -> None:
    for name in ("one.tacho", "two.tacho"):
        stacks, codes = support.rows(folder / name, "stacks"), support.rows(folder / name, "codes")

        def names(stack: int | None, stacks: Any = stacks, codes: Any = codes) -> list[str]:
            found = []
            while stack is not None:
                found.append(codes[stacks[stack]["code"]]["qualname"])
                stack = stacks[stack]["parent"]
            return found

        sampled = [row for row in support.rows(folder / name, "allocations") if "grow" in names(row["stack"])]
        # All of them are larger than what is sampled by chance.
        assert sum(row["size_bytes"] for row in sampled) >= 20 * 2_000_000
        flows = support.rows(folder / name, "memory")
        allocated = sum(row["obj_allocated_bytes"] + row["mem_allocated_bytes"] for row in flows)
        assert allocated > 200_000 * 40


def test_an_allocator_that_is_put_around_ours_goes_on(tmp_path: Path) -> None:
    """tracemalloc, begun while it is on and ended after the next: our own stay below it, and are used again."""
    program = """
import tracemalloc
def grow(): return [str(number) for number in range(50_000)]
with record("first.tacho", gpu=False):
    tracemalloc.start()
    kept = grow()
assert tracemalloc.get_traced_memory()[0] > 1_000_000
with record("second.tacho", gpu=False):
    kept = grow()
tracemalloc.stop()
for name in ("third.tacho", "fourth.tacho"):
    with record(name, gpu=False):
        kept = grow()
    del kept
print(len(grow()))
"""
    assert python(program, tmp_path) == "50000\n"
    for name in ("first.tacho", "second.tacho", "third.tacho", "fourth.tacho"):
        flows = support.rows(tmp_path / name, "memory")
        allocated = sum(row["obj_allocated_bytes"] + row["mem_allocated_bytes"] for row in flows)
        assert allocated > 50_000 * 40, name


@pytest.mark.parametrize("times", [6, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_left_after_many(tmp_path: Path, times: int) -> None:
    """Threads, descriptors, mappings, handlers, timers, children, and the program's own import tables."""
    program = """
import shutil, signal
def state():
    with open("/proc/self/maps") as file: maps = file.read()
    with open("/proc/self/timers") as file: timers = file.read()
    with open("/proc/self/status") as file:
        status = {key: value.split() for key, _, value in (line.partition(":") for line in file)}
    return {
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd")),
        "records": maps.count("memfd:tachograph"), "timers": timers,
        **{name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt", "ShdPnd", "SigPnd")},
    }, len(maps.splitlines()), int(status["VmRSS"][0])
def once(number):
    with record(f"{number}.tacho", memory=number % 2 == 0, gpu=False, force=True):
        thread = threading.Thread(target=sum, args=(range(1000),))
        thread.start()
        thread.join()
    shutil.rmtree(f"{number}.tacho")
threading.Thread(target=sum, args=(range(1000),)).start()  # glibc takes a signal for itself with the first
while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.001)
before = state()
handlers = [signal.getsignal(number) for number in signal.valid_signals()]
for number in range(2): once(number)
settled = state()
for number in range(int(sys.argv[1])): once(number)
after = state()
assert after[0] == before[0], (before, after)
assert [signal.getsignal(number) for number in signal.valid_signals()] == handlers
assert after[1] <= settled[1] + 4, (settled[1], after[1])
assert after[2] <= settled[2] * 1.05 + 1000, (settled[2], after[2])
try:
    os.wait()
except ChildProcessError:
    print("no child")
"""
    done = support.run([sys.executable, "-c", WORK + program, str(times)], tmp_path, timeout=60 + 5 * times)
    assert (done.status, done.stdout, done.stderr) == (0, "no child\n", "")


def test_paths_and_variables_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    code = f"{WORK}\nwith record('run.tacho'): burn(0.2)"
    env = support.environment() | {"ODD": os.fsdecode(b"\xff\xfe")}
    done = support.run([sys.executable, "-c", code], folder, env=env)
    assert done == support.Outcome(0, "", "")
    readable = folder.rename(tmp_path / "d")  # pyarrow takes no such path
    assert functions(readable / "run.tacho")["burn"] > 0


def test_a_killed_program_loses_nothing(tmp_path: Path) -> None:
    program = """
import signal
def doomed(): burn(0.4)
start("run.tacho", memory=False)
doomed()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = support.bare(["-c", WORK + program], tmp_path)
    assert done.status == 128 + 9
    wait_until_complete(tmp_path / "run.tacho")
    assert functions(tmp_path / "run.tacho")["doomed"] > 200_000_000


def test_a_program_that_ends_without_stop_is_recorded_to_its_end(tmp_path: Path) -> None:
    python("start('run.tacho', memory=False)\ndef last(): burn(0.2)\nlast()\nprint('done')\n", tmp_path)
    wait_until_complete(tmp_path / "run.tacho")
    assert "last" in functions(tmp_path / "run.tacho")


def test_an_error_in_the_block_goes_on_and_the_recording_is_complete(tmp_path: Path) -> None:
    program = """
try:
    with record("run.tacho", memory=False):
        burn(0.1)
        raise KeyError("mine")
except KeyError as error:
    print(error.args[0])
"""
    assert python(program, tmp_path) == "mine\n"
    assert manifest(tmp_path / "run.tacho")["state"] == "complete"


def test_forks_are_recorded_and_cannot_end_it(tmp_path: Path) -> None:
    program = """
with record("run.tacho", memory=False):
    burn(0.1)
    child = os.fork()
    if child == 0:
        def in_child(): burn(0.3)
        in_child()
        refused(stop)
        refused(start, "other.tacho")
        sys.stdout.flush()
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    burn(0.1)
"""
    said = python(program, tmp_path)
    assert said.splitlines() == [
        "the recording is of the process that this one was forked from, which ends it",
        "this process was forked from one that is being recorded; start it anew to record it",
    ]
    assert "in_child" in functions(tmp_path / "run.tacho")
    recorded = [row["recorded"] for row in support.rows(tmp_path / "run.tacho", "processes")]
    assert recorded == ["python", "python"]


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    program = """
refused(stop)
os.mkdir("there"); open("there/file", "w").close()
refused(start, "there")
refused(start, "no/such/folder/x.tacho")
refused(start, "x.tacho", rotate="10m")
refused(start, "x.tacho", intervall=5)
refused(start, "x.tacho", interval="often")
refused(start, "x.tacho", memory="yes")
start("run.tacho", memory=False)
refused(start, "other.tacho")
stop()
refused(stop)
print(sorted(os.listdir()))
"""
    said = python(program, tmp_path).splitlines()
    assert said[0] == "this process is not being recorded: start() begins a recording"
    assert said[1] == f"{tmp_path}/there exists; use force=True to replace it, or name another place"
    assert said[2].startswith("cannot write the recording ")
    assert "rotate" in said[3]
    assert "intervall" in said[4]
    assert "stop() ends that" in said[7]
    assert said[-1] == "['run.tacho', 'there']"


def test_record_inside_record_is_refused(tmp_path: Path) -> None:
    done = support.record(["-c", WORK + "refused(start, 'x.tacho')"], tmp_path)
    assert done.stdout == "this process is being recorded already, by 'tachograph record'\n"
    assert not (tmp_path / "x.tacho").exists()


def test_the_program_keeps_its_signals_and_its_output(tmp_path: Path) -> None:
    program = """
import signal, subprocess
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
with record("run.tacho"):
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGSEGV, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGSEGV) is signal.SIG_IGN
    # It takes its own descriptors and no variable of ours.
    shown = subprocess.run([sys.executable, "-c", "import os; print(sorted(k for k in os.environ if 'TACHO' in k))"],
                           capture_output=True, text=True, check=True).stdout
    print(shown, end="")
    os.write(1, b"raw\\n")
with open("/proc/self/status") as file:
    ignored = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
print(got, bool(ignored >> signal.SIGSEGV - 1 & 1))
"""
    assert python(program, tmp_path) == "[]\nraw\n[1] True\n"


def test_the_process_beside_the_program_is_gone_when_the_recording_is_complete(tmp_path: Path) -> None:
    program = """
with record("run.tacho", memory=False):
    burn(0.05)
"""
    python(program, tmp_path)
    mine = str(tmp_path / "run.tacho").encode()

    def beside() -> list[str]:
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mine in each.read_bytes():
                    found.append(each.parent.name)
            except OSError:
                continue
        return found

    support.wait_for(lambda: not beside(), "the end of the process beside the program", timeout=60)


def test_a_native_part_that_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    program = """
sys.modules["tachograph.recorder._native"] = None
refused(start, "run.tacho")
"""
    assert python(program, tmp_path).startswith("cannot record here: ")
    assert list(tmp_path.iterdir()) == []
