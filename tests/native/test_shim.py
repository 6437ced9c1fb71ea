"""The C++ tests, each in a process of its own, plain and under the sanitizers; and what they wrote, read back."""

import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from native import building
from support import spools as segments
from tachograph.format.spool import layout

TEST = re.compile(r"^TEST\((\w+)\)", re.MULTILINE)
SKIPPED, NO_SUCH_TEST = 77, 65
NOT_BY_THEMSELVES = {"spool_no_space_left", "spool_appends_until_killed"}
NAMES = sorted(name for path in Path(__file__).parent.glob("*_test.cpp") for name in TEST.findall(path.read_text()))


def environment(variant: building.Variant) -> dict[str, str]:
    return {**os.environ, **dict(variant.environment)}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_BY_THEMSELVES])
def test_shim(program: Path, variant: building.Variant, name: str, tmp_path: Path) -> None:
    command = [str(program), name, str(tmp_path)]
    done = subprocess.run(command, env=environment(variant), capture_output=True, text=True, timeout=240, check=False)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    if done.returncode == NO_SUCH_TEST:
        pytest.skip(f"not for {variant.name}")
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[:6000]}"
    check = CHECKS.get(name) or CHECKS.get("_".join(name.split("_")[:2])) or CHECKS.get(name.partition("_")[0])
    if check:
        check(tmp_path, done.stdout)


def appended(folder: Path, output: str) -> None:
    """Every record that was committed is there exactly once, whole; what was not is counted."""
    wanted = {int(t): int(committed) for t, committed, _ in (line.split() for line in output.splitlines())}
    dropped = sum(int(line.split()[2]) for line in output.splitlines())
    found = segments.appended(folder)
    for thread, count in wanted.items():
        assert sorted(found[thread]) == list(range(count)), f"thread {thread}"
    if wanted:
        assert segments.torn(folder) == 0
        assert segments.losses(folder)["records_dropped"] >= dropped


def every_kind(folder: Path, _: str) -> None:
    """The decoder of tachograph.format finds in each field what the shim's structures had in it."""
    records = segments.records(folder)
    start = (layout.THREAD_START, (3, 4711, 11, True))
    name = (layout.THREAD_NAME, (3, 2, "Fäden"))
    end = (layout.THREAD_END, (3, 12, 13))
    stack = (layout.STACK, (21, 0xFFFFFFFF, 22, -1, None))
    task = (layout.TASK_STACK, (23, 21, 24, 26, "≠🙂"))
    module = (layout.MODULE, (31, True, 0x7F0000001000, 0x7F0000002000, 0x3000, 32, "abcd", "/a/b/"))
    cpu = (layout.CPU, (41, 42, -1, 0xFFFFFFFF00000001, 43, 44, 45, 1, 46, 1, 3, 47, 4, 2, 0))
    wait = (layout.WAIT, (51, 52, 53, 54, 55, 0xFFFFFFFF, -1, 4, 2, 0, 0, 0))
    state = (layout.STATE, (61, 4, 62))
    meta = (layout.META, ("key", "word"))
    assert [(kind, tuple(fields)) for kind, fields in records] == [
        start, name, end, stack, task, module, cpu, wait, state, meta,
    ]  # fmt: skip
    assert segments.torn(folder) == 0
    assert segments.losses(folder)["forks_unrecorded"] == 5


def lives(folder: Path, output: str) -> None:
    """Each thread has one id, one start and one end; ids count up from 0."""
    records = segments.records(folder)
    starts = Counter(fields[0] for kind, fields in records if kind == layout.THREAD_START)
    ends = Counter(fields[0] for kind, fields in records if kind == layout.THREAD_END)
    least, most = map(int, output.split())
    assert starts == ends == Counter(range(len(starts)))
    assert least <= len(starts) <= most


def named_threads(folder: Path, _: str) -> None:
    records = segments.records(folder)
    names = [tuple(fields) for kind, fields in records if kind == layout.THREAD_NAME]
    assert names == [(0, 1, "first")]
    ends = [tuple(fields[:2]) for kind, fields in records if kind == layout.THREAD_END]
    assert ends == [(0, 200), (1, 400)]  # of the third nothing is known


def whole_recording(folder: Path, output: str) -> None:
    """Threads have one end each, and their samples no more CPU time than their ends say that they used."""
    control = segments.control(folder)
    if output.strip():
        lives(folder, output)
    assert control.state == layout.ControlState.ENDED
    assert segments.torn(folder) == 0
    records = segments.records(folder)
    used = {fields[0]: fields[2] for kind, fields in records if kind == layout.THREAD_END}
    sampled: Counter[int] = Counter()
    for kind, fields in records:
        if kind == layout.CPU:
            sampled[fields[4]] += fields[1]
    assert sampled.total() > 0, segments.losses(folder)
    for thread, cpu_ns in sampled.items():
        assert cpu_ns <= used[thread] + 100_000, f"thread {thread}"
    stacks = {fields[0] for kind, fields in records if kind == layout.STACK}
    rows = [fields[5] for kind, fields in records if kind in (layout.CPU, layout.WAIT)]
    assert {stack for stack in rows if stack != 0xFFFFFFFF} <= stacks


def pauses(folder: Path, _: str) -> None:
    events = [fields[1] for kind, fields in segments.records(folder) if kind == layout.STATE]
    assert events == [1, 2] * 20
    assert segments.control(folder).state == layout.ControlState.ENDED


Check = Callable[[Path, str], None]


def counters(folder: Path, output: str) -> None:
    """The flows of all rows add up to what the program counted itself, and so does the last footprint."""
    allocated, freed = map(int, output.split())
    rows = [fields for kind, fields in segments.records(folder) if kind == layout.MEMORY]
    assert sum(sum(row[3:13:2]) for row in rows) == allocated
    assert sum(sum(row[4:13:2]) for row in rows) == freed
    assert rows[-1][1] == allocated - freed
    assert len(rows) > 2, "the threshold was crossed"
    assert max(row[2] for row in rows) >= allocated - freed


def estimates(folder: Path, output: str, least: int = 51) -> None:
    """Sums over the sampled blocks, each by what it stands for, are within four standard errors of the truth."""
    allocated, alive = map(int, output.split())
    records = segments.records(folder)
    deaths = {fields[1] for kind, fields in records if kind == layout.FREED}
    weighted = []
    for kind, fields in records:
        if kind == layout.BLOCK:
            _, size, _, mean, weight, _, block = fields[:7]
            weighted.append((block, weight, weight * size / math.expm1(size / mean)))
    for chosen, truth in (
        (weighted, allocated),
        ([row for row in weighted if row[0] not in deaths], alive),
    ):
        assert len(chosen) >= least
        error = math.sqrt(sum(variance for _, _, variance in chosen))
        assert abs(sum(size for _, size, _ in chosen) - truth) < 4 * error


def few_estimates(folder: Path, output: str) -> None:
    """The same of fewer blocks, none of which has died."""
    estimates(folder, output, least=15)


def grown(folder: Path, output: str, most: int = 20_000) -> None:
    """What lives is exact and on its last line; all that was allocated is estimated; rows are no more than usual."""
    allocated, alive, stack = map(int, output.split())
    records = segments.records(folder)
    deaths = {fields[1] for kind, fields in records if kind == layout.FREED}
    born = [fields for kind, fields in records if kind == layout.BLOCK]
    living = [row for row in born if row[6] not in deaths]
    assert sum(row[1] for row in living) == sum(row[4] for row in living) == alive
    assert {row[8] for row in living} == {stack}
    assert len(born) < most
    error = math.sqrt(sum(weight * size / math.expm1(size / mean) for _, size, _, mean, weight, *_ in born))
    assert abs(sum(row[4] for row in born) - allocated) < 4 * error + 0.001 * allocated


def without_room(folder: Path, output: str) -> None:
    """Bytes that are in no row of a block are told; the counters have all."""
    allocated, released, dead, unborn = map(int, output.split())
    records = segments.records(folder)
    born = {fields[6]: fields[4] for kind, fields in records if kind == layout.BLOCK}
    died = sum(born[fields[1]] for kind, fields in records if kind == layout.FREED)
    assert sum(born.values()) == allocated - unborn
    assert died == released - dead
    control = segments.control(folder)
    assert segments.losses(folder)["block_bytes_dropped"] == dead + unborn
    counted = [fields[3:13] for kind, fields in records if kind == layout.MEMORY]
    unrecorded = control.unrecorded_bytes
    assert sum(sum(row[::2]) for row in counted) + sum(unrecorded[::2]) == allocated
    assert sum(sum(row[1::2]) for row in counted) + sum(unrecorded[1::2]) == released


def deaths(folder: Path, _: str) -> None:
    """Every block that died had been written, and died once; but for what the spool had no room for, and counted."""
    records = segments.records(folder)
    born = [fields[6] for kind, fields in records if kind == layout.BLOCK]
    died = [fields[1] for kind, fields in records if kind == layout.FREED]
    assert len(set(born)) == len(born) > 100
    assert len(set(died)) == len(died)
    assert len(set(died) ^ set(born)) <= segments.losses(folder)["records_dropped"]


def families(folder: Path, _: str) -> None:
    """Each process of a tree has a spool of its own, and each is whole."""
    names = set()
    for spool in segments.by_process(folder):
        whole_recording(spool, "")
        records = segments.records(spool)
        names.add(next(fields[2] for kind, fields in records if kind == layout.THREAD_NAME))
        assert next(fields[0] for kind, fields in records if kind == layout.THREAD_START) == 0
    assert names == {"MainThread", "child", "grandchild"}


def inherited_counters(folder: Path, output: str) -> None:
    """A child's footprint begins at its parent's and ends with what it did; only its own blocks die in it."""
    size = int(output)
    children = 0
    for spool in segments.by_process(folder):
        records = segments.records(spool)
        rows = [fields for kind, fields in records if kind == layout.MEMORY]
        named = [fields[2] for kind, fields in records if kind == layout.THREAD_NAME]
        if "child" not in named:
            continue
        children += 1
        first, last = rows[0], rows[-1]
        assert first[1] in (2 * size, 3 * size)  # the other thread may have been between its two
        assert sum(first[3:13:2]) == first[1]
        assert sum(first[4:13:2]) == 0
        assert last[1] == first[1]
        born = {fields[6] for kind, fields in records if kind == layout.BLOCK}
        died = {fields[1] for kind, fields in records if kind == layout.FREED}
        assert len(born) == 2
        assert len(died) == 1
        assert died < born
    assert children == 8


CHECKS: dict[str, Check] = {
    "fork_children_are_recorded": families,
    "fork_counters_go_on": inherited_counters,
    "heap_counters_balance": counters,
    "heap_estimates_are_unbiased": estimates,
    "heap_long_walks_are_few": few_estimates,
    "heap_grows": grown,
    "heap_two": grown,
    "heap_bytes_without_room_are_told": without_room,
    "heap_blocks_die_while_they_are_written": deaths,
    "layout_every_kind": every_kind,
    "spool": appended,
    "threads_come_and_go": lives,
    "threads_slots_are_used_again": named_threads,
    "recording_threads_come_and_go": whole_recording,
    "recording_threads_from_before": whole_recording,
    "recording_threads_gone_without_waits": whole_recording,
    "recording_clone_without_handlers": whole_recording,
    "recording_exit_while_threads_run": whole_recording,
    "recording_pauses_and_goes_on": pauses,
}


def test_killed_in_the_middle(program: Path, variant: building.Variant, tmp_path: Path) -> None:
    """SIGKILL while four threads append: all that was committed is read back."""
    command = [str(program), "spool_appends_until_killed", str(tmp_path)]
    progress = tmp_path / "progress"
    for round_number in range(3):
        for path in tmp_path.iterdir():
            path.unlink()
        with subprocess.Popen(command, env=environment(variant), stderr=subprocess.PIPE, text=True) as process:
            end = time.monotonic() + 20
            while not (progress.exists() and sum(segments.words(progress)) > 300) and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(0.05 * round_number)
            process.kill()
            _, errors = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL, errors
        found = segments.appended(tmp_path)
        for thread, committed in enumerate(segments.words(progress)):
            numbers = sorted(found[thread])
            # The last one may have been committed and not yet been noted.
            assert numbers in (list(range(committed)), list(range(committed + 1))), f"thread {thread}"
        assert segments.torn(tmp_path) <= 4  # one for each thread that was in the middle of an append


def test_no_space_left(program: Path, variant: building.Variant, tmp_path: Path) -> None:
    """On a file system that fills up, what finds no room is counted and the process lives."""
    unshare, folder = shutil.which("unshare"), tmp_path / "small"
    folder.mkdir()
    script = f"mount -t tmpfs -o size=300k none {folder} && {program} spool_no_space_left {folder}"
    script += f" && cp -r {folder} {tmp_path}/kept"
    if unshare is None:
        pytest.skip("no unshare command")
    space = [unshare, "--user", "--map-root-user", "--mount"]
    trial = [*space, "mount", "-t", "tmpfs", "none", str(folder)]
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        pytest.skip("no mounts without privileges here")
    done = subprocess.run(
        [*space, "sh", "-c", script], env=environment(variant), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    appended(tmp_path / "kept", done.stdout)
