"""What programs do to signals, limits, descriptors, folders, rights and interpreters: recorded, all comes out as bare.

Each program of ``programs/conditions`` reports what it met; its output, its complaints and its status must be those of
the bare run, and the recording must hold it, or say where and why it ends.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

CONDITIONS = support.PROGRAMS / "conditions"
NOT_LOST = {"sampler_late", "slow_reads", "forks_unrecorded", "samples_remote"}
"""Losses that mean no missing data, or none of the process that is looked at."""


def same(folder: Path, name: str, *arguments: str, status: int = 0, may_lose: Iterable[str] = ()) -> dict[str, Any]:
    """The manifest, after the program came out the same bare and recorded, with no loss beside ``may_lose``."""
    outcomes = []
    for run in (support.bare, support.record):
        place = folder / run.__name__
        place.mkdir()
        place.chmod(0o755)
        outcomes.append(run([CONDITIONS / f"{name}.py", *arguments], place))
    plain, recorded = outcomes
    assert plain.status == status, plain.stderr
    assert recorded == plain
    recording = folder / "record" / "run.tacho"
    manifest: dict[str, Any] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"
    assert {entry["loss"] for entry in manifest["quality"]} <= NOT_LOST | set(may_lose)
    assert manifest["tables"]["cpu"]["rows"] > 0
    return manifest


CLOCK_NANOSLEEP = 230


def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can")


@pytest.mark.parametrize(
    "name", ["signalfd", "sigwait", "wakeup_fd", "watchers", "closed_files", "kept_from_children", "ptrace_child"]
)
def test_nothing_is_different(tmp_path: Path, name: str) -> None:
    same(tmp_path, name)


@pytest.mark.slow
def test_processes_that_begin_in_unusual_ways(tmp_path: Path) -> None:
    """Some end before it is known what they may read: files that they alone name have no text then."""
    manifest = same(tmp_path, "births", status=9, may_lose={"sources_withheld"})
    assert manifest["tables"]["processes"]["rows"] >= 9


@pytest.mark.slow
def test_what_a_program_sets_for_itself(tmp_path: Path) -> None:
    """A thread that begins where no signal may be pending any more has no timer: it is sampled from outside."""
    same(tmp_path, "own_limits", status=3, may_lose={"timers_refused"})


def test_memory_that_is_kept_out_of_children_with_the_signal_sampler(tmp_path: Path) -> None:
    """It has no library in the program that sees what is kept out: the child looks for the holes."""
    target = [CONDITIONS / "kept_from_children.py"]
    assert support.record(target, tmp_path, "--sampler", "signal") == support.bare(target, tmp_path)
    processes = {row["pid"] for row in support.rows(tmp_path / "run.tacho", "processes")}
    assert len(processes) == 3
    assert {row["process"] for row in support.rows(tmp_path / "run.tacho", "threads")} == {0, 1, 2}


@pytest.mark.parametrize("options", [(), ("--sampler", "signal"), ("--sampler", "signal", "--rotate", "1s")], ids=str)
def test_descriptors_that_were_all_closed_are_the_programs(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With the signal sampler each segment that was full closed one, and each fork two."""
    target = [CONDITIONS / "closes_all.py"]
    assert support.record(target, tmp_path, *options) == support.bare(target, tmp_path)
    assert (tmp_path / "text.txt").read_text(encoding="utf-8") == "complete"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--calls",), ("--redundancy",)], ids=["default", "calls", "redundancy"])
@pytest.mark.parametrize("name", ["served_pages", "traced_by_child", "wait_kinds"])
def test_nothing_is_different_with_any_option(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    target = [CONDITIONS / f"{name}.py"]
    assert support.record(target, tmp_path, *options) == support.bare(target, tmp_path)
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"
    # Who is traced cannot be given watchpoints for a while, and the recording says so.
    may_lose = {"watching_stopped"} if "--redundancy" in options else set()
    assert {entry["loss"] for entry in manifest["quality"]} <= NOT_LOST | may_lose
    assert manifest["tables"]["cpu"]["rows"] > 0


def test_a_program_that_its_parent_traces(tmp_path: Path) -> None:
    """It would stand still at every signal of ours: its thread gets none, and its CPU time is read from outside."""
    same(tmp_path, "ptrace_me")


def test_a_program_that_its_parent_traces_behind_our_back(tmp_path: Path) -> None:
    """Through a library that has looked it up in libc, where nothing of ours stands: the command lets it go on."""
    library = support.compile_library(support.PROGRAMS.parent / "native" / "looks_up.c", tmp_path)
    if library is None:
        pytest.skip("there is no C compiler")
    same(tmp_path, "ptrace_me", str(library))


def test_a_program_that_its_parent_traces_as_ctypes_looks_it_up_in_libc(tmp_path: Path) -> None:
    same(tmp_path, "ptrace_me", "libc.so.6")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        pytest.param(("seccomp_strict",), 5, id="strict"),
        pytest.param(("seccomp_filter", "prctl"), 3, id="prctl", marks=pytest.mark.slow),
        pytest.param(("seccomp_filter", "seccomp"), 3, id="seccomp"),
    ],
)
def test_seccomp(tmp_path: Path, arguments: tuple[str, ...], status: int) -> None:
    """Recording ends before the filter is there, as our calls would be the program's end; and says so."""
    manifest = same(tmp_path, *arguments, status=status, may_lose={"recording_stopped"})
    assert any("seccomp" in note for note in manifest["notes"])


def test_hooks_make_no_system_calls_behind_a_seccomp_filter(tmp_path: Path) -> None:
    """The filter kills at calls that the program does not make, as one who writes it for the program would have it."""
    same(tmp_path, "seccomp_hooks", may_lose={"recording_stopped", "allocator_pages", "page_scans_cut"})


SCHED_GETAFFINITY = "204"


def test_the_count_of_cpus_is_a_secret(tmp_path: Path, sampler: str) -> None:
    """It is unknown then; it was a traceback before the program started."""
    command = [sys.executable, str(support.PROGRAMS / "forbid.py"), SCHED_GETAFFINITY]
    command += [
        sys.executable,
        "-m",
        "tachograph",
        "record",
        "--sampler",
        sampler,
        "-qo",
        "run.tacho",
        "-c",
        "print('ran')",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["cpu_count"] is None
    for way in ("analyze", "info"):
        assert support.tachograph(way, "run.tacho", cwd=tmp_path).returncode == 0


UNSHARE, CLOSE_RANGE = "272", "436"
OPEN_FILES = """
import os, time
seen = set()
end = time.process_time() + 0.8
while time.process_time() < end:
    for number in [*range(3, 20)] * 20:
        try: os.fstat(number)
        except OSError: continue
        seen.add(number)
print(sorted(seen))
"""


def test_no_table_of_descriptors_of_our_own(tmp_path: Path) -> None:
    """Old kernels without close_range, containers that forbid unshare: no file of ours is ever open in the program."""
    script = tmp_path / "program.py"
    script.write_text(OPEN_FILES, encoding="utf-8")
    forbid = [sys.executable, str(support.PROGRAMS / "forbid.py"), f"{UNSHARE},{CLOSE_RANGE}"]
    done = support.run([*forbid, *support.COMMAND, "record", "-qo", "run.tacho", str(script)], tmp_path, timeout=60)
    assert done == support.Outcome(0, "[]\n", "")
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert support.losses(report)["helper_refused"] == 1
    assert report["totals"]["cpu_s"] > 0.6


@pytest.mark.parametrize("how", ["chroot", pytest.param("chdir", marks=pytest.mark.slow)])
def test_another_root_and_working_folder(tmp_path: Path, how: str) -> None:
    """The recording goes on to the end: what fills more than its first two segments is in it."""
    if how == "chroot":
        root()
    manifest = same(tmp_path, "chroot", how, may_lose={"records_dropped"})
    assert manifest["tables"]["spans"]["rows"] > 800  # three segments, those from before, would have room for 750


def test_a_program_that_gives_up_its_rights(tmp_path: Path) -> None:
    """The user ``nobody`` cannot write into root's recording, and is recorded: more in test_another_user.py."""
    root()
    tmp_path.chmod(0o755)
    same(tmp_path, "drops_rights", may_lose={"records_dropped"})


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("no_new_privs", "function"),
        ("capabilities", "syscall"),
        ("landlock", "syscall"),
        pytest.param("securebits", "function", marks=pytest.mark.slow),
        pytest.param("no_new_privs", "syscall", marks=pytest.mark.slow),
        pytest.param("capabilities", "function", marks=pytest.mark.slow),
        pytest.param("bounding", "function", marks=pytest.mark.slow),
    ],
)
def test_rights_that_one_thread_gives_up(tmp_path: Path, what: str, how: str) -> None:
    """The recorder's thread has no right that the program gave up: another one begins, as a child of that thread."""
    if what in {"securebits", "bounding"}:
        root()
    same(tmp_path, "rights", what, how)
    bare, recorded = (tmp_path / name / "threads.json" for name in ("bare", "record"))
    assert json.loads(bare.read_text(encoding="utf-8")) == [[], []]
    before, after = json.loads(recorded.read_text(encoding="utf-8"))
    assert len(before) == len(after) == 1
    assert before != after
    waits = support.rows(tmp_path / "record" / "run.tacho", "waits")
    assert sum(row["off_cpu_ns"] for row in waits if row["syscall"] == CLOCK_NANOSLEEP) > 200_000_000  # of 300


def test_a_program_that_may_open_no_file(tmp_path: Path) -> None:
    """Nor may the recorder's thread then; the recording goes on to the end."""
    same(tmp_path, "rights", "nothing-readable", "syscall")
    cpu = support.rows(tmp_path / "record" / "run.tacho", "cpu")
    assert sum(row["cpu_ns"] for row in cpu) > 400_000_000  # 100 before and 500 after


@pytest.mark.parametrize(
    ("limit", "losses"),
    [
        ("files", ()),
        ("size", ("recording_stopped", "records_dropped")),
        ("stack", ()),
        ("signals", ("timers_refused",)),
        ("processes", ()),
    ],
)
def test_limits_that_the_program_sets(tmp_path: Path, limit: str, losses: tuple[str, ...]) -> None:
    manifest = same(tmp_path, "limits", limit, may_lose=losses)
    told = {entry["loss"] for entry in manifest["quality"]}
    if limit == "signals":
        assert "timers_refused" in told
    if "recording_stopped" in told:  # on a slow machine the prepared segments may have had room for all
        assert any("file too large" in note for note in manifest["notes"])


def test_two_thousand_threads(tmp_path: Path) -> None:
    """All of them alive at once: each is in the recording, from its start to its end."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft not in (-1, resource.RLIM_INFINITY) and soft < 5000:
        pytest.skip("so many threads are not allowed here")
    same(tmp_path, "many_threads")
    threads = support.rows(tmp_path / "record" / "run.tacho", "threads")
    ours = {row["name"]: row for row in threads if (row["name"] or "").startswith("one-")}
    assert len(ours) == 2000
    assert all(row["end_ns"] >= row["start_ns"] for row in ours.values())


@pytest.mark.parametrize("how", ["raw", "pthread"])
def test_the_first_thread_ends_first(tmp_path: Path, how: str) -> None:
    """Our own thread must not keep a process alive whose last thread has ended, nor change its status."""
    same(tmp_path, "last_thread", how, status=7 if how == "raw" else 0)


@pytest.mark.parametrize("library", ["gevent", pytest.param("eventlet", marks=pytest.mark.slow), "greenlet", "uvloop"])
def test_green_threads_and_loops(tmp_path: Path, library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    # libuv's child takes back every signal, ours too, before it becomes another program. Greenlets change places in
    # several steps: a sample in the midst of them is torn, and counted as that.
    may_lose = "signal_conflicts" if library == "uvloop" else "stacks_torn"
    manifest = same(tmp_path, "loops", library, may_lose=[may_lose])
    assert sum(entry["count"] for entry in manifest["quality"] if entry["loss"] == "stacks_torn") <= 1
    report = support.analyze(tmp_path / "record" / "run.tacho", cwd=tmp_path)
    assert "burn" in {row["function"] for row in report["lines"] if row["cpu_s"]}


def test_interpreters_in_the_interpreter(tmp_path: Path) -> None:
    """Four at once, each at work: what they ran is seen."""
    same(tmp_path, "interpreters")
    recording = tmp_path / "record" / "run.tacho"
    codes = {row["code"]: row["qualname"] for row in support.rows(recording, "codes")}
    at_work = {row["stack"] for row in support.rows(recording, "stacks") if codes.get(row["code"]) == "inner"}
    seen = {row["thread"] for row in support.rows(recording, "cpu") if row["stack"] in at_work}
    assert len(seen) == 5


@pytest.mark.parametrize("where", [pytest.param("main", marks=pytest.mark.slow), "sub"])
def test_a_function_where_another_one_lay_has_its_own_name(tmp_path: Path, where: str) -> None:
    """In CPython 3.11, and in subinterpreters of all versions, it had the first one's."""
    output = support.record([support.PROGRAMS / "code_churn.py", where], tmp_path, "--interval", "1").stdout
    ran = [(name, int(begin), int(end)) for name, begin, end, _ in map(str.split, output.splitlines())]
    assert len(set(output.split()[3::4])) < len(ran) / 2, "hardly any code object lay where another one had"
    recording = tmp_path / "run.tacho"
    names = {row["code"]: row["qualname"] for row in support.rows(recording, "codes")}
    stacks = {row["stack"]: row for row in support.rows(recording, "stacks")}
    seen = 0
    for sample in support.rows(recording, "cpu"):
        leaf = stacks.get(sample["stack"])
        found = names.get(leaf["code"], "") if leaf else ""
        there = [name for name, begin, end in ran if begin < sample["time_ns"] < end]
        if there and found.startswith("made"):
            assert found == there[0]
            seen += 1
    assert seen > len(ran) / 10


BLOCKING = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
results = {}
def call(kind): results[kind] = library.blocking_calls(kind, 1000)
threads = [threading.Thread(target=call, args=(kind,)) for kind in range(7)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print([kind for kind in range(7) if results[kind] < 3])
"""


@pytest.fixture(scope="module")
def blocking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = support.compile_library(
        Path(__file__).parent / "native" / "blocking.c", tmp_path_factory.mktemp("blocking")
    )
    if built is None:
        pytest.skip("no C or C++ compiler")
    return built


def test_no_blocking_call_is_interrupted(tmp_path: Path, blocking: Path) -> None:
    """poll, select, epoll_wait, nanosleep, read, accept, connect with timeouts, between bursts of CPU time, in C."""
    target: list[str | Path] = ["-c", BLOCKING, blocking]
    assert support.bare(target, tmp_path) == support.Outcome(0, "[]\n", "")
    assert support.record(target, tmp_path, "--interval", "1") == support.Outcome(0, "[]\n", "")
    assert len({row["thread"] for row in support.rows(tmp_path / "run.tacho", "cpu")}) > 5
