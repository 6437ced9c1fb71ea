"""Which line is charged with the work of native threads: the rule, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from tachograph.analyzer import Profile
from tachograph.analyzer.recording.question_options import PoolRule
from tachograph.analyzer.render import json_document
from unit.analyzer.recordings import MS, OTHER_FRAME, START, Builder

BLAS = "/site-packages/numpy.libs/libopenblas.so"


class Program:
    """A program with two Python threads and a pool of one worker, whose rows a test adds."""

    def __init__(self, builder: Builder, library: str = BLAS, start: str = "blas_thread_server") -> None:
        self.builder = builder
        code = builder.code(builder.file("/srv/app.py"))
        self.first, self.second, self.sleep, self.new = (builder.stack((code, line)) for line in range(4))
        self.other = builder.thread("other")
        module = builder.module(library)
        self.kernel, self.begin = builder.native_frame(module, "kernel"), builder.native_frame(module, start)
        libc = builder.module("/lib/libc.so.6")
        self.start_thread, self.yields = builder.native_frame(libc, "start_thread"), builder.native_frame(libc, "yield")
        root = builder.native_stack(None, self.start_thread)
        self.root, self.path = root, builder.native_stack(root, self.begin)
        self.worker = self.more_workers()
        self.at = 0

    def more_workers(self, creator: int | None = 0) -> int:
        return self.builder.thread(None, python_name=None, creator=creator, start_frame=self.begin)

    def called(self, stack: int, thread: int = 0, ms: float = 1) -> None:
        """A Python thread's own sample in the library."""
        self.at += 10
        values = {"native_frame": self.kernel, "thread": thread, "time_ns": START + self.at * MS}
        self.builder.cpu(stack, ms, **values)

    def worked(
        self,
        *positions: tuple[int, int, float, bool],
        worker: int | None = None,
        holder: int | None = None,
        **values: int | None,
    ) -> None:
        """A worker's sample of 10 ms, and where threads were: thread, stack, ms of its CPU clock, whether it ran.

        Its work lies on the stack of ``holder``, if that is known.
        """
        self.at += 10
        sampled = self.worker if worker is None else worker
        known = {"native_frame": self.kernel, "native_stack": self.path, "native_path": 1}
        known |= {"thread": sampled, "time_ns": START + self.at * MS}
        self.builder.cpu(None, 10, **{**known, **values})
        for thread, stack, cpu_ms, running in positions:
            holds = None if holder is None else thread == holder
            self.builder.position(sampled, thread, stack, self.at, cpu_ms, running=running, holds_work=holds)


def charged(profile: Profile) -> dict[object, float]:
    """Milliseconds by offset of the line; None is what is not on a line."""
    rows = profile.lines[profile.lines["pool_cpu_s"] > 0]
    lines = [None if pd.isna(line) else int(line) - 1 for line in rows["line"]]
    assert profile.lines["pool_cpu_s"].sum() == pytest.approx(profile.totals.pool_cpu_s)
    return dict(zip(lines, (rows["pool_cpu_s"] * 1e3).round(6), strict=True))


Answer = Callable[..., Profile]


@pytest.fixture
def program(builder: Builder) -> Program:
    return Program(builder)


@pytest.fixture
def answer(builder: Builder) -> Answer:
    return partial(builder.answer, scope="all")


def test_the_line_that_called_the_library_is_charged(program: Program, answer: Answer) -> None:
    program.called(program.first)
    for _ in range(3):
        program.worked((0, program.first, 0, False), (program.other, program.sleep, 0, False))
    profile = answer()
    assert charged(profile) == {0: 30}
    totals = profile.totals
    assert totals.pool_cpu_s == pytest.approx(0.03)
    assert (totals.pool_unattributed_s, totals.pool_shared_s) == (0, 0)
    own = profile.lines.set_index("function")["cpu_s"]
    assert own["<no Python stack>"] == pytest.approx(0.03)
    assert own["f"] == pytest.approx(0.001)


def test_a_sleep_after_the_call_is_charged_nothing(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.called(program.sleep)
    program.builder.rows["cpu"][-1]["native_frame"] = OTHER_FRAME
    program.worked((0, program.sleep, 0, False))
    profile = answer()
    assert charged(profile) == {None: 10}
    assert profile.totals.pool_unattributed_s == pytest.approx(0.01)


def test_one_that_ran_asked_and_one_that_stood_did_not(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.called(program.second, program.other)
    program.worked((0, program.first, 0, True), (program.other, program.second, 0, False))
    program.worked((0, program.first, 5, False), (program.other, program.second, 0, True))
    program.worked((0, program.first, 6, True), (program.other, program.second, 9, True))
    profile = answer()
    assert charged(profile) == {0: 15, 1: 15}
    assert profile.totals.pool_shared_s == pytest.approx(0.01)


def test_one_on_whose_stack_the_work_lies_asked_for_it(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.called(program.second, program.other)
    both = (0, program.first, 0, True), (program.other, program.second, 5, False)
    program.worked(*both, holder=program.other)
    program.worked(*both, holder=0)
    program.worked(*both)
    profile = answer()
    assert charged(profile) == {0: 20, 1: 10}
    assert profile.totals.pool_shared_s == 0


def test_an_address_that_is_left_over_says_nothing_where_another_thread_calls(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.worked((0, program.first, 0, False), (program.other, program.sleep, 0, False), holder=program.other)
    # Where none calls the library, as far as is known, it is all that there is.
    program.worked((0, program.new, 0, False), (program.other, program.sleep, 0, False), holder=program.other)
    assert charged(answer()) == {0: 10, 2: 10}


def test_a_team_of_openmp_works_at_what_lies_on_a_stack(builder: Builder, answer: Answer) -> None:
    """Though another thread has made it."""
    program = Program(builder, "/lib/libgomp.so.1", "gomp_thread_start")
    body = builder.native_frame(builder.module("/srv/fast.so"), "work._omp_fn.0")
    program.called(program.first)
    program.called(program.second, program.other)
    both = (0, program.first, 0, True), (program.other, program.second, 0, False)
    program.worked(*both, holder=program.other, native_frame=body)
    assert charged(answer()) == {1: 10}


def test_several_that_stood_share_by_what_each_has_used(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.called(program.second, program.other)
    program.worked((0, program.first, 100, False), (program.other, program.second, 50, False))  # nothing known: evenly
    program.worked((0, program.first, 109, False), (program.other, program.second, 51, False))
    program.worked((0, program.first, 109, False), (program.other, program.second, 54, False))
    profile = answer()
    assert charged(profile) == {0: 5 + 9, 1: 5 + 1 + 10}
    assert profile.totals.pool_shared_s == pytest.approx(0.02)


def test_a_call_that_was_never_sampled_asked_if_it_ran(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.worked((0, program.sleep, 0, False), (program.other, program.new, 0, True))
    program.worked((0, program.sleep, 0, False), (program.other, program.new, 5, False))
    assert charged(answer()) == {3: 10, None: 10}


def test_a_wait_in_the_library_tells_of_a_call(program: Program, answer: Answer) -> None:
    program.builder.wait(program.first, 0, 5, native_frame=program.kernel)
    program.worked((0, program.first, 0, False), (program.other, program.sleep, 0, False))
    assert charged(answer()) == {0: 10}


def test_the_instruction_that_calls_the_library_does_so_from_elsewhere_too(program: Program, answer: Answer) -> None:
    """The wrapper of a library waits below two lines; only below one of them it was sampled in the library."""
    builder = program.builder
    wrapper = builder.code(builder.file("/site-packages/polars.py"), "collect")
    top = builder.code(builder.file("/srv/top.py"), "top")
    known, unseen, slept = (builder.stack((top, line), (wrapper, 7)) for line in range(3))
    elsewhere = builder.stack((top, 1), (wrapper, 9))
    program.called(known)
    program.worked((0, unseen, 0, False))
    program.worked((0, elsewhere, 0, False))  # the wrapper's next line: that may be anything
    # What is known to do something else does not call: it waits outside of the library.
    builder.wait(slept, 0, 5, native_frame=OTHER_FRAME)
    program.worked((0, slept, 0, False))
    # Who is known to call is preferred.
    program.worked((0, unseen, 0, False), (program.other, known, 0, False))
    rows = answer().lines.set_index("line")["total_pool_cpu_s"]
    assert (rows[2], rows[1]) == pytest.approx((0.01, 0.01))
    assert answer().totals.pool_unattributed_s == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("symbol", "library", "waits"),
    [
        ("blas_thread_server", BLAS, True),
        ("kernel", BLAS, False),
        ("inner_thread", BLAS, False),
        ("gomp_team_barrier_wait_end", "/lib/libgomp.so.1", True),
        (None, "/venv/scikit_learn.libs/libgomp-24e2ab19.so.1.0.0", True),
        ("__kmp_wait_4", "/lib/libiomp5.so", True),
        ("rayon_core::registry::WorkerThread::wait_until_cold", "/polars.abi3.so", True),
        ("polars_core::sum", "/polars.abi3.so", False),
        (None, "/polars.abi3.so", False),
    ],
)
def test_workers_that_wait_are_told_from_those_that_work(
    symbol: str | None, library: str, waits: bool, program: Program, answer: Answer
) -> None:
    frame = program.builder.native_frame(program.builder.module(library), symbol)
    program.called(program.first)
    program.worked((0, program.first, 0, False), native_frame=frame)
    profile = answer()
    assert charged(profile) == ({None: 10} if waits else {0: 10})
    assert profile.totals.pool_waiting_s == pytest.approx(0.01 if waits else 0)


def test_a_worker_that_yields_waits_where_its_own_routine_yields(program: Program, answer: Answer) -> None:
    inside = program.builder.native_stack(program.path, program.kernel)
    program.called(program.first)
    program.worked((0, program.first, 0, False), native_frame=program.yields)
    program.worked((0, program.first, 0, False), native_frame=program.yields, native_stack=inside)
    assert charged(answer()) == {0: 10, None: 10}


def test_a_team_of_openmp_belongs_to_the_thread_that_made_it(builder: Builder, answer: Answer) -> None:
    program = Program(builder, "/lib/libgomp.so.1", "gomp_thread_start")
    body = builder.native_frame(builder.module("/srv/fast.so"), "work._omp_fn.0")
    mine, nested = program.more_workers(program.other), program.more_workers(None)
    builder.rows["threads"][nested]["creator"] = mine
    program.called(program.first)
    program.called(program.second, program.other)
    both = ((0, program.first, 0, True), (program.other, program.second, 0, False))
    program.worked(*both, native_frame=body)
    program.worked(*both, worker=mine, native_frame=body)
    program.worked(*both, worker=nested, native_frame=body)
    program.worked((0, program.first, 0, False), worker=mine, native_frame=body)  # made by one, used by another
    profile = answer()
    assert charged(profile) == {0: 20, 1: 20}
    assert profile.totals.pool_shared_s == 0


def test_threads_of_llvms_openmp_change_teams(builder: Builder, answer: Answer) -> None:
    program = Program(builder, "/lib/libomp.so.5", "__kmp_launch_worker")
    body = builder.native_frame(builder.module("/srv/fast.so"), "work.omp_outlined")
    mine = program.more_workers(program.other)
    program.called(program.first)
    program.called(program.second, program.other)
    program.worked(
        (0, program.first, 0, True), (program.other, program.second, 0, False), worker=mine, native_frame=body
    )
    assert charged(answer()) == {0: 10}


def test_rayon_in_names_of_rust_s_own_mangling_waits(builder: Builder, answer: Answer) -> None:
    program = Program(builder)
    for symbol in (
        "_RNvMs4_NtCs7q0g3jU0gIq_10rayon_core8registryNtB5_12WorkerThread15wait_until_cold",
        "_RNvMNtCs7q0g3jU0gIq_10rayon_core5sleepNtB2_5Sleep5sleep",
    ):
        program.called(program.first)
        program.worked((0, program.first, 0, False), native_frame=builder.native_frame(1, symbol))
    assert charged(answer()) == {None: 20}


def test_threads_that_begin_in_a_runtime_are_known_by_their_paths(builder: Builder, answer: Answer) -> None:
    program = Program(builder)
    routine = builder.native_frame(builder.module("/lib/libstdc++.so.6"), "execute_native_thread_routine")
    builder.rows["threads"][program.worker]["start_frame"] = routine
    path = builder.native_stack(builder.native_stack(program.root, routine), program.kernel)
    program.called(program.first)
    program.worked((0, program.first, 0, False), native_stack=path)
    assert charged(answer()) == {0: 10}


def test_another_librarys_workers_are_not_charged_to_the_call(program: Program, answer: Answer) -> None:
    builder = program.builder
    frame = builder.native_frame(builder.module("/srv/logger.so"), "write_log")
    logger = builder.thread(None, python_name=None, start_frame=builder.native_frame(1, "begin"))
    builder.rows["threads"][logger]["start_frame"] = frame
    program.called(program.first)
    program.worked((0, program.first, 0, True), worker=logger, native_frame=frame, native_stack=None)
    profile = answer()
    assert charged(profile) == {None: 10}


def test_nothing_is_charged_where_that_is_asked_for(program: Program, answer: Answer, tmp_path: Path) -> None:
    program.called(program.first)
    program.worked((0, program.first, 0, False))
    profile = answer(pools=PoolRule.NONE)
    assert charged(profile) == {None: 10}
    json_document.write(profile, str(tmp_path / "profile.json"), top=None, sort="cpu")
    document = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    assert document["question"]["pools"] == "none"
    assert document["totals"]["pool_cpu_s"] == document["totals"]["pool_unattributed_s"] == 0.01
    assert [row["pool_cpu_s"] for row in document["lines"] if row["pool_cpu_s"]] == [0.01]


def test_the_window_and_the_scope_hold_for_native_threads_too(program: Program, answer: Answer) -> None:
    program.called(program.first)
    program.worked((0, program.first, 0, False))
    program.worked((0, program.first, 0, False))
    profile = answer(start_s=0.025)
    assert charged(profile) == {0: 10}
    assert charged(answer(thread="main")) == {}


def test_more_batches_than_one(program: Program, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    from tachograph.analyzer.samples import stream

    program.called(program.first)
    program.called(program.second, program.other)
    for number in range(50):
        program.worked((0, program.first, 9 * number, False), (program.other, program.second, number, False))
    whole = charged(answer())
    monkeypatch.setattr(stream, "BATCH_ROWS", 14)
    assert charged(answer()) == whole
    assert whole == {0: 5 + 9 * 49, 1: 5 + 49}


def test_memory_of_a_pool_goes_to_the_line_that_asked_for_the_work(program: Program, answer: Answer) -> None:
    """By the samples of the worker, or of another one of its pool, that are nearest in time."""
    builder, mb = program.builder, 1_000_000
    second = program.more_workers()
    program.called(program.first)
    program.called(program.second)
    program.worked((0, program.first, 0, False))  # at 30 ms
    program.at = 1000
    program.worked((0, program.second, 0, False))  # at 1010 ms
    builder.memory("start", 0, 0)
    sizes = {25: (program.worker, 1), 60: (second, 2), 1100: (program.worker, 4), 5000: (program.worker, 8)}
    for ms, (thread, size) in sizes.items():
        builder.block(None, size * mb, ms, thread=thread, native_frame=program.kernel)
    builder.copy(None, 3 * mb, 1005, thread=second, native_frame=program.kernel)
    builder.memory("end", 6000, 15 * mb, obj_allocated_bytes=15 * mb)
    profile = answer()
    held = dict(zip(profile.lines["function"], profile.lines["live_at_end_bytes"], strict=True))
    assert held["<kernel in libopenblas.so>"] == 8 * mb
    lines = profile.lines.dropna(subset="line").set_index("line")
    assert (lines.loc[1, "live_at_end_bytes"], lines.loc[2, "live_at_end_bytes"]) == (3 * mb, 4 * mb)
    assert lines.loc[2, "copied_bytes"] == 3 * mb
    apart = answer(pools=PoolRule.NONE).lines
    assert apart.dropna(subset="line")["live_at_end_bytes"].fillna(0).sum() == 0


def test_a_call_that_is_over_asks_for_no_more_memory(program: Program, answer: Answer) -> None:
    """What comes after the asking thread was seen elsewhere is of its next call, though no worker was sampled yet."""
    builder, mb = program.builder, 1_000_000
    program.called(program.first)
    program.called(program.second)
    program.worked((0, program.first, 0, False))  # at 30 ms
    program.at = 130
    program.worked((0, program.second, 0, False))  # at 140 ms
    builder.wait(program.first, 31, 40)
    builder.wait(program.sleep, 41, 50)
    builder.wait(program.second, 52, 60)
    builder.memory("start", 0, 0)
    for ms, size in {35: 1, 44: 2, 48: 4, 55: 8, 70: 16}.items():
        builder.block(None, size * mb, ms, thread=program.worker, native_frame=program.kernel)
    builder.memory("end", 1000, 31 * mb, obj_allocated_bytes=31 * mb)
    lines = answer().lines.dropna(subset="line").set_index("line")
    assert (lines.loc[1, "live_at_end_bytes"], lines.loc[2, "live_at_end_bytes"]) == (3 * mb, 28 * mb)


def test_pages_that_are_found_in_a_collection_belong_to_the_callers_of_the_pool(
    program: Program, builder: Builder, answer: Answer
) -> None:
    """A collection touches no new pages of a library's allocator; threads of the library do."""
    mb = 1_000_000
    program.called(program.first)
    program.worked((0, program.first, 0, False))  # at 20 ms
    builder.cpu(program.second, 30, time_ns=START + 60 * MS, native_frame=builder.native_frame(0, "gc_collect_main"))
    builder.memory("start", 0, 0)
    for ms in (60, 900):
        builder.block(program.second, 4096, ms, domain=1, weight_bytes=5 * mb)
    builder.memory("end", 1000, 10 * mb, mapped_allocated_bytes=10 * mb)
    lines = answer().lines.dropna(subset="line").set_index("line")
    # Behind 0.25 s there is no sample of a worker.
    assert lines.loc[1, "allocated_bytes"] == pytest.approx(5 * mb, rel=0.01)
    assert lines.loc[2, "allocated_bytes"] == pytest.approx(5 * mb, rel=0.01)
