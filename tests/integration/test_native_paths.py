"""Native call paths in recordings of real programs: the Python frames stand in them where they really were."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = support.PROGRAMS / "native_paths.py"
WHOLE, GUESSED, TRUNCATED, TORN = 1, 2, 3, 4


@dataclass(frozen=True)
class Recorded:
    """A recording, read with nothing but pyarrow."""

    path: Path

    def rows(self, table: str) -> list[dict[str, Any]]:
        return support.rows(self.path, table)

    @cached_property
    def samples(self) -> list[dict[str, Any]]:
        return self.rows("cpu")

    @cached_property
    def stacks(self) -> list[dict[str, Any]]:
        return self.rows("stacks")

    @cached_property
    def native_stacks(self) -> list[dict[str, Any]]:
        return self.rows("native_stacks")

    @cached_property
    def names(self) -> list[str]:
        """Names of functions of the program by code; of others, their file's."""
        files = [Path(row["path"]).name for row in self.rows("files")]
        own = PROGRAM.name
        return [row["qualname"] if files[row["file"]] == own else files[row["file"]] for row in self.rows("codes")]

    def python(self, stack: int | None) -> list[int]:
        """A Python stack, the innermost node first."""
        found = []
        while stack is not None:
            found.append(stack)
            stack = self.stacks[stack]["parent"]
        return found

    def native(self, sample: dict[str, Any]) -> list[dict[str, Any]]:
        """The path of a sample's callers, the innermost first."""
        found = []
        node = sample["native_stack"]
        while node is not None:
            found.append(self.native_stacks[node])
            node = found[-1]["parent"]
        return found

    def name(self, stack: int) -> str:
        code = self.stacks[stack]["code"]
        return "?" if code is None else self.names[code]


@pytest.fixture(scope="module", params=["as it is", "stripped"])
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Recorded:
    """Python and native frames are paired by address: without symbols all is as it is with them."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder = tmp_path_factory.mktemp("native-paths")
    if request.param == "as it is":
        done = support.record([PROGRAM, "2"], folder, "--interval", "1", "--cpu-only")
    else:
        env = {**support.environment(), **support.stripped_interpreter(folder)}
        command = [str(folder / "bin" / "python3"), str(PROGRAM), "2"]
        done = support.record(command, folder, "--interval", "1", "--cpu-only", env=env)
    assert (done.status, done.stderr) == (0, "")
    return Recorded(folder / "run.tacho")


def test_nearly_all_paths_are_whole(recorded: Recorded) -> None:
    states = Counter(sample["native_path"] for sample in recorded.samples)
    assert states.total() > 150  # of 4,000 where the machine has time for them
    assert states[WHOLE] > 0.95 * states.total(), states
    for sample in recorded.samples:
        # Before Python begins and after it has ended a path may be as short as that of `exit`.
        if sample["native_path"] == WHOLE and sample["stack"] is not None:
            assert len(recorded.native(sample)) > 3


def test_each_activation_runs_its_own_frames(recorded: Recorded) -> None:
    """Where C called Python, and nowhere else, another activation of the evaluation loop begins."""
    judged, through_c = 0, 0
    for sample in recorded.samples:
        if sample["stack_state"] != 0 or sample["native_path"] != WHOLE:
            continue
        frames = recorded.python(sample["stack"])
        names = [recorded.name(frame) for frame in frames]
        if "work" not in names:
            continue  # imports, and the end
        # The frames up to `work`: what runs that is the machinery of threads.
        until = names.index("work")
        if names[0] == "c_generate" and names[1] == "by_generator":
            continue  # it may be the call that makes the generator: that is Python's, and the next one is C's
        expected = [frames[0]] + [frames[at + 1] for at in range(until) if names[at].startswith("c_")]
        found = [node["stack"] for node in recorded.native(sample) if node["stack"] is not None]
        if found[: len(expected)] != expected:
            # The innermost activation may be the interrupted frame itself, or one that is just being entered.
            assert [frames[0], *found][: len(expected)] == expected, (names, [recorded.name(at) for at in found])
        judged += 1
        through_c += len(expected) > 1
    assert judged > 100
    assert through_c > 50


def test_threads_say_where_they_come_from(recorded: Recorded) -> None:
    threads = recorded.rows("threads")
    frames, modules = recorded.rows("native_frames"), recorded.rows("modules")
    (main,) = [row for row in threads if row["main"]]
    (other,) = [row for row in threads if not row["main"]]
    assert (main["creator"], main["start_frame"]) == (None, None)
    assert other["creator"] == main["thread"]
    interpreter = next(row["path"] for row in modules if row["interpreter"])
    assert modules[frames[other["start_frame"]]["module"]]["path"] == interpreter


def test_the_depth_is_bounded(tmp_path: Path) -> None:
    done = support.record([PROGRAM, "0.5"], tmp_path, "--interval", "1", "--cpu-only", "--native-depth", "4")
    assert (done.status, done.stderr) == (0, "")
    short = Recorded(tmp_path / "run.tacho")
    depths = Counter(len(short.native(sample)) for sample in short.samples)
    assert max(depths) == 3  # and the interrupted frame
    assert Counter(sample["native_path"] for sample in short.samples)[TRUNCATED] > 0.9 * len(short.samples)


def test_none_are_taken_where_none_are_wanted(tmp_path: Path) -> None:
    done = support.record([PROGRAM, "0.3"], tmp_path, "--interval", "1", "--native-depth", "0")
    assert (done.status, done.stderr) == (0, "")
    without = Recorded(tmp_path / "run.tacho")
    assert not (without.path / "native_stacks.parquet").exists()
    assert {(sample["native_stack"], sample["native_path"]) for sample in without.samples} == {(None, 0)}


@pytest.mark.parametrize("depth", ["-1", "1001", "many", "1.5"])
def test_a_depth_that_is_none_is_refused(tmp_path: Path, depth: str) -> None:
    done = support.record(["-c", "pass"], tmp_path, "--native-depth", depth)
    assert done.status == 2
    assert "is not a number of frames" in done.stderr
    assert not (tmp_path / "run.tacho").exists()


CLOSES = """
import ctypes, _ctypes, shutil, sys, time
def use(path):
    library = ctypes.CDLL(path)
    library.turn.argtypes = [ctypes.c_long]
    library.turn(12_000_000)  # long enough that the helper has seen the new library for most of it
    _ctypes.dlclose(library._handle)
end = time.process_time() + 1.5
while time.process_time() < end:
    for path in sys.argv[1:]: use(path)
"""
SOURCE = """
static long one_step(long n, volatile long *to) { %s *to += n; return n; }
void turn(long n) { volatile long sum = 0; while (n--) one_step(n, &sum); }
"""


def test_no_path_goes_by_the_rows_of_a_library_that_was_closed(tmp_path: Path) -> None:
    """Libraries that take each other's places, with frames of different sizes."""
    paths = []
    for name, body in (("a", ""), ("b", "char large[200]; large[n & 127] = 1; *to += large[3];")):
        source, library = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
        source.write_text(SOURCE % body, encoding="utf-8")
        built = subprocess.run(
            ["cc", "-O1", "-fno-inline", "-fPIC", "-shared", str(source), "-o", str(library)], check=False
        )
        if built.returncode != 0:
            pytest.skip("no C compiler")
        paths.append(library)
    (tmp_path / "closes.py").write_text(CLOSES, encoding="utf-8")
    done = support.record([tmp_path / "closes.py", *paths], tmp_path, "--interval", "1", "--cpu-only")
    assert (done.status, done.stderr) == (0, ""), sys.version
    found = Recorded(tmp_path / "run.tacho")
    states = Counter(sample["native_path"] for sample in found.samples)
    assert states[WHOLE] > 0.3 * states.total(), states
    frames, modules = found.rows("native_frames"), found.rows("modules")
    roots: Counter[str] = Counter()
    for sample in found.samples:
        path = found.native(sample)
        if sample["native_path"] == WHOLE and path:
            module = frames[path[-1]["native_frame"]]["module"]
            roots[Path(modules[module]["path"]).name] += 1
    assert all(name.startswith(("python", "libc", "ld-")) for name in roots), roots


ALLOCATES = """
kept = []
def c_key(value):
    kept.append(bytearray(6_000_000))
    kept.append(bytes(kept[-1]))
    return value
def allocate():
    sorted(range(4), key=c_key)
allocate()
"""


def test_blocks_and_copies_have_the_path_of_their_callers(tmp_path: Path) -> None:
    """Each is on a path from C (the block's own type) over two activations, sorted() between them."""
    (tmp_path / "allocates.py").write_text(ALLOCATES, encoding="utf-8")
    done = support.record([tmp_path / "allocates.py"], tmp_path)
    assert (done.status, done.stderr) == (0, "")
    found = Recorded(tmp_path / "run.tacho")
    names = [row["qualname"] for row in found.rows("codes")]
    for table, most in (("allocations", 8), ("copies", 4)):
        large = [row for row in found.rows(table) if row["size_bytes"] > 5_000_000]
        whole = [row for row in large if row["native_path"] == WHOLE]
        # The first one may come before the program's libraries are known to the unwinder.
        assert len(whole) >= max(len(large) - 1, most / 2), (table, [row["native_path"] for row in large])
        for row in whole:
            activations = [node["stack"] for node in found.native(row) if node["stack"] is not None]
            assert [names[found.stacks[stack]["code"]] for stack in activations[:2]] == ["c_key", "allocate"], table
            assert activations[0] == row["stack"], table


WAITS = """
import socket, threading, time
lock = threading.Lock()
lock.acquire()
near, far = socket.socketpair()
def c_key(value):
    lock.acquire()
    return value
def locked():
    sorted([0], key=c_key)
def received():
    list(map(far.recv, [1]))
threads = [threading.Thread(target=function) for function in (locked, received)]
for thread in threads: thread.start()
time.sleep(1.5)
lock.release()
near.send(b"x")
for thread in threads: thread.join()
"""


def test_waits_have_the_path_of_the_call_that_waits(tmp_path: Path) -> None:
    """Of a waiting thread only the program counter and the stack pointer are known: its stack has all the rest.

    From 3.15 on Python is built with frame pointers: then its paths are guesses, and are right.
    """
    (tmp_path / "waits.py").write_text(WAITS, encoding="utf-8")
    done = support.record([tmp_path / "waits.py"], tmp_path, "--cpu-only", "--interval", "1")
    assert (done.status, done.stderr) == (0, "")
    found = Recorded(tmp_path / "run.tacho")
    names = [row["qualname"] for row in found.rows("codes")]
    frames, modules = found.rows("native_frames"), found.rows("modules")
    waited: Counter[str] = Counter()
    for row in found.rows("waits"):
        if row["stack"] is None or row["syscall"] is None:
            continue
        function = names[found.stacks[row["stack"]]["code"]]
        if function not in ("c_key", "received", "<module>"):
            continue
        if row["native_path"] in (WHOLE, GUESSED):
            waited[function] += row["off_cpu_ns"]
            path = found.native(row)
            activations = [node["stack"] for node in path if node["stack"] is not None]
            expected = ["c_key", "locked"] if function == "c_key" else [function]
            assert activations[0] == row["stack"]
            assert [names[found.stacks[stack]["code"]] for stack in activations][: len(expected)] == expected
            assert Path(modules[frames[row["native_frame"]]["module"]]["path"]).name.startswith("libc")
        waited["all"] += row["off_cpu_ns"]
    assert min(waited[name] for name in ("c_key", "received", "<module>")) > 0, waited
    assert sum(waited.values()) - waited["all"] > 0.9 * waited["all"], waited


MUCH = """
import sys, time
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    for _ in range(20):
        [bytearray(9_000) for _ in range(100)]
"""


def test_no_path_ends_in_the_recorder_s_own_code(tmp_path: Path) -> None:
    """Hooks of the allocators look at stacks, on a stack of the recorder's own: samples fall into that as well."""
    (tmp_path / "much.py").write_text(MUCH, encoding="utf-8")
    done = support.record([tmp_path / "much.py", "2"], tmp_path, "--interval", "1")
    assert (done.status, done.stderr) == (0, "")
    found = Recorded(tmp_path / "run.tacho")
    frames, modules = found.rows("native_frames"), found.rows("modules")

    def ours(frame: int | None) -> bool:
        module = None if frame is None else frames[frame]["module"]
        return module is not None and Path(modules[module]["path"]).name.startswith(("libtachograph", "_native"))

    through: Counter[int] = Counter()
    for sample in found.samples:
        path = [sample["native_frame"], *(node["native_frame"] for node in found.native(sample))]
        if any(map(ours, path)):
            through[sample["native_path"]] += 1
            # It is cut there only before the unwinder knows the program's libraries.
            assert sample["native_path"] != TORN or not ours(path[-1]), [frames[frame] for frame in path]
    assert through[WHOLE] > 10, through
