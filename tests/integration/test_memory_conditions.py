"""Allocation where it is hard: nothing changes for the program, and the counters stay in balance."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import support
from tachograph.format.enumerations import DOMAINS

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
START, END = 0, 3
"""Places in the format's enumeration ``memory_event``."""
Compare = Callable[..., Path]


@pytest.fixture(scope="module")
def conditions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("conditions.c", tmp_path_factory)


@pytest.fixture(scope="module")
def constructors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("constructors.cpp", tmp_path_factory)


def compiled(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = support.compile_library(NATIVE / source, tmp_path_factory.mktemp("native"))
    if built is None:
        pytest.skip("no C or C++ compiler")
    return built


@pytest.fixture
def same(tmp_path: Path) -> Compare:
    """``same(code, *arguments, prints=..., **environment)``: run bare and recorded, nothing differs; the recording."""

    def compare(code: str, *arguments: str | Path, prints: str | None = None, **changes: str) -> Path:
        script, environment = tmp_path / "program.py", support.environment(**changes)
        script.write_text(code, encoding="utf-8")
        plain = support.bare([script, *arguments], tmp_path, env=environment)
        assert plain.status == 0, plain.stderr
        assert prints is None or plain.stdout == prints  # the program itself proves that it does what it means to
        recorded = support.record([script, *arguments], tmp_path, env=environment)
        assert recorded == plain
        return tmp_path / "run.tacho"

    return compare


def counters(recording: Path) -> list[dict[str, Any]]:
    """The first process's rows of table memory; every process's balance, and never say that less than nothing is held.

    Blocks may be freed whose allocation was not seen: then more was held at first than was known, and that is said.
    """
    found = support.rows(recording, "memory")
    for process in {row["process"] for row in found}:
        balance(recording, [row for row in found if row["process"] == process])
    first = [row for row in found if row["process"] == 0]
    assert first[-1]["event"] == END
    return first


def balance(recording: Path, rows: list[dict[str, Any]]) -> None:
    """Assert that the rows of one process balance, from what it was born with."""
    assert rows[0]["event"] == START
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    losses = {entry["loss"] for entry in manifest["quality"]}
    told = "baseline_unknown" in losses
    held = unknown = 0
    for row in rows:
        for domain in DOMAINS:
            assert row[f"{domain}_allocated_bytes"] >= 0
            assert row[f"{domain}_freed_bytes"] >= 0
            held += row[f"{domain}_allocated_bytes"] - row[f"{domain}_freed_bytes"]
        if row["footprint_bytes"] is None:
            assert losses & {"allocator_unseen", "native_unseen", "allocators_left_alone"}
            continue
        assert row["footprint_bytes"] >= 0
        if told:
            unknown, before = row["footprint_bytes"] - held, unknown
            assert unknown >= before
        assert row["footprint_bytes"] == held + unknown


def total(rows: list[dict[str, Any]], column: str) -> int:
    """The sum of a column over all rows but the first, which has what was there before."""
    return sum(int(row[column]) for row in rows[1:])


INTERPRETERS_OWN = 64 << 10
"""Bytes: what the interpreter and ctypes map for themselves meanwhile, and give back of what they had: some pages."""


def check_mapped(rows: list[dict[str, Any]], size: int) -> None:
    """The program mapped so many bytes and unmapped them all."""
    for way in ("allocated", "freed"):
        assert total(rows, f"mapped_{way}_bytes") == pytest.approx(size, rel=0, abs=INTERPRETERS_OWN), way


LOAD = "import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\n"


@pytest.mark.parametrize("function", ["hard_malloc_in_handler", "hard_map_in_handler"])
def test_in_signal_handlers(same: Compare, conditions: Path, function: str) -> None:
    """A handler every millisecond, over code that allocates where that is allowed."""
    recording = same(LOAD + f"print(library.{function}(700) > 100)", conditions, prints="True\n")
    rows = counters(recording)
    check_mapped(rows, total(rows, "mapped_allocated_bytes"))
    if function == "hard_map_in_handler":
        assert total(rows, "mapped_allocated_bytes") > 100 * (9 << 20)


def test_in_handlers_written_in_python(same: Compare) -> None:
    code = (
        "import signal, time\n"
        "kept = []\n"
        "def handler(number, frame):\n"
        "    kept.append(bytearray(50_000)); del kept[:-20]\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end or len(kept) < 20: [str(i) for i in range(100)]\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(len(kept))\n"
    )
    counters(same(code))


def test_in_destructors_at_the_end_of_threads(same: Compare, conditions: Path) -> None:
    """pthread keys, three rounds of them, after our own counters of the thread may be closed."""
    recording = same(LOAD + "print(library.hard_thread_end(40))", conditions, prints="480\n")
    rows = counters(recording)
    kept = total(rows, "native_allocated_bytes") - total(rows, "native_freed_bytes")
    assert abs(kept) < 4 << 20  # what the threads allocated they also freed: a lost half would be tens of MB
    assert total(rows, "native_allocated_bytes") > 100 << 20


@pytest.mark.parametrize(
    ("kind", "statuses"), [(0, 25 * 7), (1, 0), (2, 25 * 3)], ids=["fork", "fork and exec", "fork behind libc's back"]
)
def test_between_fork_and_exec(same: Compare, conditions: Path, kind: int, statuses: int) -> None:
    recording = same(LOAD + f"print(library.hard_fork({kind}, 25))", conditions, prints=f"{statuses}\n")
    rows = counters(recording)
    check_mapped(rows, 0)  # the children's mappings are not the parent's


def test_between_fork_and_exec_in_python(same: Compare) -> None:
    code = (
        "import os, subprocess, sys, threading\n"
        "def allocate():\n"
        "    return len([bytes(i) for i in range(0, 200_000, 1000)])\n"
        "def churn():\n"
        "    while not done: allocate()\n"
        "done = []\n"
        "threads = [threading.Thread(target=churn) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for number in range(8):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        allocate()\n"
        "        os._exit(number) if number % 2 else os.execvp('true', ['true'])\n"
        "    print(os.waitpid(pid, 0)[1], flush=True)\n"
        "for _ in range(4):\n"
        "    print(subprocess.run(['echo', 'hello'], preexec_fn=allocate, capture_output=True).stdout, flush=True)\n"
        "done.append(1)\n"
        "for thread in threads: thread.join()\n"
    )
    counters(same(code, PYTHONWARNINGS="ignore"))


def test_in_constructors_of_a_library_that_is_opened(same: Compare, constructors: Path) -> None:
    """Static objects of C++ allocate in dlopen, and free in dlclose."""
    code = LOAD + (
        "import _ctypes\n"
        "print(library.early_join(), library.early_release(), library.early_release())\n"
        "_ctypes.dlclose(library._handle)\n"
        "for _ in range(5):\n"
        "    again = ctypes.CDLL(sys.argv[1])\n"
        "    print(again.early_join())\n"
        "    _ctypes.dlclose(again._handle)\n"
    )
    rows = counters(same(code, constructors, prints="1 1 0\n" + 5 * "1\n"))
    assert total(rows, "native_allocated_bytes") >= 6 * (64 << 20)
    assert total(rows, "native_freed_bytes") >= 6 * (64 << 20)
    check_mapped(rows, 6 * (16 << 20))


def test_in_constructors_before_ours(same: Compare, constructors: Path) -> None:
    """A preload of the program's own allocates before the recorder is there; the program frees it while recorded."""
    code = LOAD + (
        "import time\ntime.sleep(0.05)\nprint(library.early_join(), library.early_release())\nbytearray(30_000_000)\n"
    )
    counters(same(code, constructors, prints="1 1\n", LD_PRELOAD=str(constructors)))


def test_in_destructors_after_the_interpreter(same: Compare, constructors: Path) -> None:
    """What was not released is freed by static destructors, when Python is gone."""
    counters(same(LOAD + "print(library.early_join())", constructors, LD_PRELOAD=str(constructors)))


ODD = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for name in ("malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign", "valloc", "__libc_malloc",
             "__libc_memalign", "__libc_calloc", "strdup"):
    getattr(libc, name).restype = ctypes.c_void_p
size = ctypes.c_size_t
pointer = ctypes.c_void_p
def tried(function, *arguments):
    ctypes.set_errno(0)
    found = function(*arguments)
    return bool(found), ctypes.get_errno()
most = size(2**63 - 1)
print("too large", tried(libc.malloc, most), tried(libc.calloc, size(2**40), size(2**40)),
      tried(libc.realloc, None, most), tried(libc.reallocarray, None, size(2**40), size(2**40)),
      tried(libc.aligned_alloc, size(64), most), tried(libc.memalign, size(64), most))
place = pointer()
print("bad alignment", libc.posix_memalign(ctypes.byref(place), size(3), size(100)), place.value)
block = libc.malloc(size(100))
print("too large to grow", tried(libc.realloc, pointer(block), most), libc.malloc_usable_size(pointer(block)) >= 100)
ctypes.memset(block, 1, 100)
libc.free(pointer(block))
print("nothing", libc.free(None), bool(libc.malloc(size(0))), bool(libc.realloc(None, size(0))))
block = libc.malloc(size(50))
print("to nothing", libc.realloc(pointer(block), size(0)))
def least(n):  # a block that was free may be a little larger than was asked for
    return min(libc.malloc_usable_size(pointer(libc.malloc(size(n)))) for _ in range(300))
print("usable", [least(n) for n in (0, 1, 24, 25, 100, 1000, 30_000)])
print("aligned", [libc.memalign(size(n), size(100)) % n for n in (16, 64, 4096, 65536)])
# blocks from behind the shim's back, and from inside the C library
for number in range(200):
    libc.free(pointer(libc.__libc_malloc(size(500_000))))
    libc.free(pointer(libc.__libc_memalign(size(256), size(100_000))))
    libc.free(pointer(libc.realloc(pointer(libc.__libc_calloc(size(3), size(30_000))), size(200_000))))
    libc.free(pointer(libc.strdup(b"x" * 100_000)))
lines = pointer(), size(0)
print("printed", libc.asprintf(ctypes.byref(place), b"%0100000d", 7))
libc.free(place)
"""


def test_foreign_pointers_and_odd_arguments(same: Compare) -> None:
    """Results, errno, usable sizes and alignment are the C library's own."""
    counters(same(ODD))


FOREIGN_MAPPINGS = """
import ctypes, sys
own = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
own.hard_raw_map.restype = libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
size = 12 << 20
def unmap(address, function=libc.munmap):
    assert function(ctypes.c_void_p(address), ctypes.c_size_t(size)) == 0
for number in range(20):
    unmap(own.hard_raw_map(ctypes.c_size_t(size)))  # never seen to come
    address = libc.mmap(None, size, 3, 0x22, -1, 0)
    unmap(address, own.hard_raw_unmap)  # never seen to go
    again = libc.mmap(address, size, 3, 0x22, -1, 0)  # in the same place
    unmap(again)
    unmap(again)  # nothing there: no error
ctypes.set_errno(0)
print(libc.munmap(ctypes.c_void_p(1), ctypes.c_size_t(5)), ctypes.get_errno())
print(libc.mmap(None, 0, 3, 0x22, -1, 0) == ctypes.c_void_p(-1).value, ctypes.get_errno())
"""


def test_mappings_from_behind_our_back(same: Compare, conditions: Path) -> None:
    """Freed twice, freed unseen, mapped again in the same place: held at the end is nothing."""
    rows = counters(same(FOREIGN_MAPPINGS, conditions))
    check_mapped(rows, 40 * (12 << 20))


HUGE = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.mmap.restype = libc.realloc.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for number in range(3):
    block = libc.malloc(ctypes.c_size_t(5 << 30))
    if not block:
        print("no room")
        break
    block = libc.realloc(ctypes.c_void_p(block), ctypes.c_size_t(7 << 30))
    libc.free(ctypes.c_void_p(block))
mapping = libc.mmap(None, 6 << 30, 3, 0x22, -1, 0)
print(mapping != ctypes.c_void_p(-1).value)
libc.munmap(ctypes.c_void_p(mapping), ctypes.c_size_t(6 << 30))
"""


def test_more_than_32_bits(same: Compare, tmp_path: Path) -> None:
    rows = counters(same(HUGE))
    if "True" in support.bare(["-c", HUGE], tmp_path).stdout:
        check_mapped(rows, 0)  # it is never touched
    if "no room" not in support.bare(["-c", HUGE], tmp_path).stdout:
        assert total(rows, "native_allocated_bytes") >= 36 << 30
        report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
        (line,) = (row for row in report["lines"] if row["line"] == 7)
        assert line["allocated_bytes"] == pytest.approx(15 << 30, rel=0.001)
        assert report["memory"]["peak_bytes"] == pytest.approx(7 << 30, rel=0.01)


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 9)", "os._exit(3)", "libc.free(p); libc.free(p)"])
def test_abrupt_ends_are_as_ever(tmp_path: Path, end: str) -> None:
    """The C library finds a double free as it always does; whatever ends the program, the recording is whole."""
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "kept = [bytearray(100_000) for _ in range(1000)]\n"
        "p = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(100)))\n"
        f"{end}\n"
    )
    plain, recorded = support.bare(["-c", code], tmp_path), support.record(["-c", code], tmp_path)
    assert recorded.status == plain.status != 0
    assert recorded.stdout == plain.stdout
    assert plain.stderr in recorded.stderr
    rows = support.rows(tmp_path / "run.tacho", "memory")
    assert max(row["footprint_bytes"] for row in rows) > 80_000_000
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["allocated_bytes"] > 80_000_000


def test_sub_interpreters_and_late_threads(same: Compare) -> None:
    """Threads that outlive the main thread's last line, and an interpreter within the interpreter, if there is one."""
    code = (
        "import threading, time\n"
        "try:\n"
        "    import _xxsubinterpreters as interpreters\n"
        "except ImportError:\n"
        "    try: import _interpreters as interpreters\n"
        "    except ImportError: interpreters = None\n"
        "if interpreters:\n"
        "    other = interpreters.create()\n"
        "    text = 'x = [str(i) for i in range(200_000)]'\n"
        "    interpreters.run_string(other, text) if hasattr(interpreters, 'run_string')"
        " else interpreters.exec(other, text)\n"
        "    interpreters.destroy(other)\n"
        "def late():\n"
        "    time.sleep(0.1)\n"
        "    print(len([bytearray(10_000) for _ in range(2000)]))\n"
        "threading.Thread(target=late).start()\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    counters(same(code))


def test_limits_on_address_space(tmp_path: Path) -> None:
    """Under RLIMIT_AS the program has the room that it had: what the recorder reserves is small, or is not reserved."""
    code = (
        "import resource\n"
        "kept = []\n"
        "try:\n"
        "    while len(kept) < 400: kept.append(bytearray(1 << 20))\n"
        "except MemoryError: pass\n"
        "print(len(kept))\n"
    )
    limit = 600 << 20
    inner = [sys.executable, "-c", code]
    wrapper = f"import os, resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); "
    plain = wrapper + f"os.execv({inner[0]!r}, {inner!r})"
    command = [*support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", code]
    recorded = wrapper + f"os.execv({command[0]!r}, {command!r})"
    bare, found = support.bare(["-c", plain], tmp_path), support.bare(["-c", recorded], tmp_path)
    assert bare.status == 0, bare.stderr
    assert found.status == 0, found.stderr
    assert int(found.stdout) >= min(int(bare.stdout), 400) - 100
    counters(tmp_path / "run.tacho")


LOCKED = """
import ctypes, json, os, sys, threading, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")  # a fork beside a thread, whose warning has a process id in it
library = ctypes.CDLL(None, use_errno=True)
def memory():
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0][:-1]: int(line[1]) >> 10 for line in lines if line[0] in {"VmRSS:", "VmLck:"}}
def work():
    end = time.process_time() + 0.1
    while time.process_time() < end: [bytes(5000) for _ in range(50)]
work()
done = [library.mlockall(int(sys.argv[1])), ctypes.get_errno()]
work()
threading.Thread(target=work).start()
kept = bytearray(64 << 20)
found = memory()
if os.fork() == 0:
    work()
    os._exit(0)
done.append(os.wait()[1])
Path(sys.argv[2]).write_text(json.dumps(found))
print(done)
"""
CURRENT, FUTURE, WHEN_TOUCHED = 1, 2, 4


@pytest.mark.parametrize(
    "flags",
    [
        CURRENT | FUTURE,
        CURRENT | FUTURE | WHEN_TOUCHED,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (CURRENT, FUTURE)),
    ],
)
def test_locked_memory(tmp_path: Path, flags: int) -> None:
    """Of the recorder's tables what is in use is locked: they are for programs much larger than this one."""
    bare = support.bare(["-c", LOCKED, str(flags), "bare.json"], tmp_path)
    if bare.stdout != "[0, 0, 0]\n":
        pytest.skip("memory cannot be locked here")
    assert support.record(["-c", LOCKED, str(flags), "recorded.json"], tmp_path) == bare
    before, after = (
        json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("bare.json", "recorded.json")
    )
    assert after["VmRSS"] - before["VmRSS"] < 24
    locked = before["VmLck"]
    assert after["VmLck"] >= locked
    if flags == CURRENT | FUTURE:
        assert locked > 64
    counters(tmp_path / "run.tacho")


SMALL_PAGES = r"""
import os, re
def large():
    text = open("/proc/self/smaps").read()
    found = []
    for mapping in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", text):
        flags = mapping.partition("VmFlags:")[2].split()
        size = int(re.search(r"Size: +(\d+) kB", mapping)[1])
        if "rw-p 00000000 00:00 0" in mapping and "nr" in flags and size >= 2048:
            found.append("nh" in flags)
    return found
child = os.fork()
os.write(1, f"{child == 0} {large()}\n".encode())
if child: os.waitpid(child, 0)
"""


def test_tables_never_take_huge_pages(tmp_path: Path) -> None:
    """Where they are always given, a worker that a server forks would hold megabytes of nothing."""
    if not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists():
        pytest.skip("this kernel has no huge pages")
    assert sorted(support.bare(["-c", SMALL_PAGES], tmp_path).stdout.splitlines()) == ["False []", "True []"]
    lines = support.record(["-c", SMALL_PAGES], tmp_path).stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "True" in line.partition("[")[2], "no table of ours was found"
        assert "False" not in line.partition("[")[2]
