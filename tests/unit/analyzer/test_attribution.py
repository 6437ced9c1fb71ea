from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tachograph.analyzer import Attribution, Profile
from tachograph.analyzer.recording.compat.linetable import OpcodeClass, classes_of, versions
from tachograph.analyzer.report_data.headline import collections
from tachograph.analyzer.samples.attribution import CELLS, Division, Verdict, native_rule, opcode_rule, pc_only_rule
from tachograph.analyzer.samples.counter_classes import COLLECTOR, HOOKED, LOOP, MACHINERY, RUNTIME, FrameClass
from tachograph.format import FormatError
from tachograph.recorder.collect.unrecorded_pythons import NEWEST, OLDEST
from unit.analyzer.recordings import (
    BINARY_OP,
    CALL,
    CALL_BUILTIN,
    GPU_FRAME,
    LIST_APPEND,
    MACHINERY_FRAME,
    MS,
    NATIVE_FRAME,
    OTHER_FRAME,
    PYTHON_FRAME,
    START,
    Builder,
    table,
)

PYTHON, NATIVE, UNKNOWN = Verdict.PYTHON, Verdict.NATIVE, Verdict.UNKNOWN


def facts(**columns: int) -> dict[str, NDArray[np.int64]]:
    defaults = {"origin": 0, "stack_state": 0, "opcode_class": OpcodeClass.OTHER, "frame_class": FrameClass.LOOP}
    defaults["foreign_caller"] = False
    return {name: np.array([value]) for name, value in (defaults | columns).items()}


@pytest.mark.parametrize(
    ("frame", "opcode", "verdict"),
    [
        (FrameClass.LOOP, OpcodeClass.OTHER, PYTHON),
        (FrameClass.LOOP, OpcodeClass.NATIVE_CALL, PYTHON),
        (FrameClass.LOOP, OpcodeClass.UNKNOWN, PYTHON),
        (FrameClass.OUTSIDE, OpcodeClass.OTHER, NATIVE),  # an operator of an array type: no call
        (FrameClass.OUTSIDE, OpcodeClass.UNKNOWN, NATIVE),
        (FrameClass.INTERIOR, OpcodeClass.OTHER, PYTHON),  # a dictionary lookup, say
        (FrameClass.INTERIOR, OpcodeClass.NATIVE_CALL, NATIVE),  # sorted(), say
        (FrameClass.INTERIOR, OpcodeClass.ANY_CALL, NATIVE),
        (FrameClass.INTERIOR, OpcodeClass.UNKNOWN, UNKNOWN),
        (FrameClass.MACHINERY, OpcodeClass.ANY_CALL, PYTHON),  # a Python function is being called
        (FrameClass.MACHINERY, OpcodeClass.NATIVE_CALL, NATIVE),  # the C function calls something
        (FrameClass.MACHINERY, OpcodeClass.OTHER, PYTHON),
        (FrameClass.RUNTIME, OpcodeClass.INTERNAL, PYTHON),  # a list grows
        (FrameClass.RUNTIME, OpcodeClass.OTHER, NATIVE),  # an array is copied, or a string: it cannot be told
        (FrameClass.RUNTIME, OpcodeClass.NATIVE_CALL, NATIVE),
        (FrameClass.RUNTIME, OpcodeClass.UNKNOWN, NATIVE),
        (FrameClass.OUTSIDE, OpcodeClass.INTERNAL, NATIVE),  # an array is freed
        (FrameClass.COLLECTOR, OpcodeClass.NATIVE_CALL, PYTHON),  # the C function allocated, and set off a collection
        (FrameClass.COLLECTOR, OpcodeClass.UNKNOWN, PYTHON),
        (FrameClass.JIT, OpcodeClass.INTERNAL, PYTHON),
        (FrameClass.JIT, OpcodeClass.OTHER, PYTHON),
        (FrameClass.JIT, OpcodeClass.ANY_CALL, UNKNOWN),  # of the interpreter's JIT compiler, or of another's
        (FrameClass.JIT, OpcodeClass.UNKNOWN, UNKNOWN),
        (FrameClass.UNKNOWN, OpcodeClass.OTHER, UNKNOWN),
        (FrameClass.UNKNOWN, OpcodeClass.NATIVE_CALL, UNKNOWN),
    ],
)
def test_native_rule(frame: FrameClass, opcode: OpcodeClass, verdict: Verdict) -> None:
    assert native_rule(facts(frame_class=frame, opcode_class=opcode)).tolist() == [verdict]


@pytest.mark.parametrize(
    ("frame", "opcode", "verdict"),
    [
        (FrameClass.INTERIOR, OpcodeClass.OTHER, NATIVE),  # an extension's number makes another one
        (FrameClass.INTERIOR, OpcodeClass.INTERNAL, NATIVE),
        (FrameClass.INTERIOR, OpcodeClass.UNKNOWN, NATIVE),
        (FrameClass.MACHINERY, OpcodeClass.ANY_CALL, NATIVE),  # an extension is about to call Python
        (FrameClass.RUNTIME, OpcodeClass.INTERNAL, NATIVE),  # an array is freed
        (FrameClass.LOOP, OpcodeClass.OTHER, PYTHON),
        (FrameClass.COLLECTOR, OpcodeClass.OTHER, PYTHON),
        (FrameClass.UNKNOWN, OpcodeClass.OTHER, UNKNOWN),
        (FrameClass.JIT, OpcodeClass.ANY_CALL, UNKNOWN),
    ],
)
def test_native_rule_where_foreign_code_called(frame: FrameClass, opcode: OpcodeClass, verdict: Verdict) -> None:
    columns = facts(frame_class=frame, opcode_class=opcode, foreign_caller=True)
    assert native_rule(columns).tolist() == [verdict]
    assert (pc_only_rule(columns) == pc_only_rule(facts(frame_class=frame, opcode_class=opcode))).all()


WHOLE_PATH, GUESSED_PATH, TORN_PATH = 1, 2, 4


@pytest.mark.parametrize(
    ("callers", "how", "native_s"),
    [
        ((), WHOLE_PATH, 0.0),  # the activation's own function called
        (("PyNumber_Add",), WHOLE_PATH, 0.0),  # the interpreter did
        (("deflate",), WHOLE_PATH, 0.01),
        (("deflate", "PyObject_Malloc"), WHOLE_PATH, 0.01),  # and the interpreter in between
        (("deflate",), TORN_PATH, 0.01),  # what is torn lies further out
        (("deflate",), GUESSED_PATH, 0.0),
        (("deflate", "callback"), WHOLE_PATH, 0.0),  # the extension called Python: that runs the leaf
        (("callback", "deflate"), WHOLE_PATH, 0.01),
    ],
)
def test_the_native_path_shows_who_called(
    builder: Builder, profile: Callable[..., Profile], callers: tuple[str, ...], how: int, native_s: float
) -> None:
    """A sample in the interpreter's allocator, below functions of the interpreter, of zlib and of the loop."""
    code = builder.code(builder.file("/srv/a.py"))
    outer, stack = builder.stack((code, 1)), builder.stack((code, 1), (code, 2))
    leaf = stack if "callback" in callers else outer
    path = builder.native_stack(None, builder.native_frame(1, "main"))
    path = builder.native_stack(path, PYTHON_FRAME, outer)
    for name in callers:
        frame = PYTHON_FRAME if name == "callback" else builder.native_frame(int(name == "deflate"), name)
        path = builder.native_stack(path, frame, stack if name == "callback" else None)
    allocator = builder.native_frame(0, "_PyObject_Malloc")
    builder.cpu(leaf, 10, native_frame=allocator, native_stack=path, native_path=how)
    totals = profile().totals
    assert totals.native_s == native_s
    assert totals.python_s == pytest.approx(0.01 - native_s)


def test_a_frame_that_no_activation_on_the_path_runs_is_not_served(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """The interpreter was just about to run it: what lies further out called its caller, or started the interpreter."""
    code = builder.code(builder.file("/srv/a.py"))
    outer, inner = builder.stack((code, 1)), builder.stack((code, 1), (code, 2))
    started = builder.native_stack(None, builder.native_frame(1, "main"))
    called = builder.native_stack(started, PYTHON_FRAME, outer)
    called = builder.native_stack(called, builder.native_frame(1, "deflate"))
    interior = builder.native_frame(0, "take_ownership")
    builder.cpu(outer, 10, native_frame=interior, native_stack=started, native_path=WHOLE_PATH)
    builder.cpu(inner, 10, native_frame=interior, native_stack=called, native_path=WHOLE_PATH)
    builder.cpu(None, 10, native_frame=interior, native_stack=called, native_path=WHOLE_PATH)
    assert profile().totals.native_s == 0.0


def test_native_rule_without_python_frames() -> None:
    starting = facts(frame_class=FrameClass.INTERIOR, opcode_class=OpcodeClass.UNKNOWN, stack_state=1)
    torn = facts(frame_class=FrameClass.INTERIOR, opcode_class=OpcodeClass.UNKNOWN, stack_state=2)
    assert native_rule(starting).tolist() == [PYTHON]
    assert native_rule(torn).tolist() == [UNKNOWN]


def test_other_rules() -> None:
    assert opcode_rule(facts(opcode_class=OpcodeClass.ANY_CALL)).tolist() == [NATIVE]
    assert opcode_rule(facts(opcode_class=OpcodeClass.OTHER)).tolist() == [PYTHON]
    assert opcode_rule(facts(opcode_class=OpcodeClass.UNKNOWN)).tolist() == [UNKNOWN]
    assert pc_only_rule(facts(frame_class=FrameClass.INTERIOR)).tolist() == [PYTHON]
    assert pc_only_rule(facts(frame_class=FrameClass.OUTSIDE)).tolist() == [NATIVE]
    assert pc_only_rule(facts(frame_class=FrameClass.UNKNOWN)).tolist() == [UNKNOWN]
    assert pc_only_rule(facts(frame_class=FrameClass.JIT)).tolist() == [UNKNOWN]


@pytest.mark.parametrize("rule", [Attribution.AUTO, Attribution.NATIVE, Attribution.OPCODE, Attribution.PC_ONLY])
def test_parts_add_up(rule: Attribution) -> None:
    division, cells = Division(rule), np.arange(CELLS)
    weight, system, delay = np.full(CELLS, 10.0), np.full(CELLS, 3.0), np.full(CELLS, 9.0)
    for parts in (division.parts(cells, weight, system, delay), division.parts(cells, weight, None, None)):
        assert (np.sum(parts, axis=0) == weight).all()
        assert min(map(np.min, parts)) >= 0


def test_opcode_classes_of_every_version() -> None:
    assert list(versions()) == [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    for minor in versions():
        classes = classes_of(f"{minor}.1")
        assert (classes == OpcodeClass.ANY_CALL).any()
        assert (classes == OpcodeClass.NATIVE_CALL).any()
        assert 90 < (classes == OpcodeClass.INTERNAL).sum() < 160
        assert not (classes[1:] == OpcodeClass.UNKNOWN).any()
    assert (classes_of("3.99.0") == OpcodeClass.UNKNOWN).all()
    assert (classes_of(None) == OpcodeClass.UNKNOWN).all()
    assert classes_of("3.13.0")[CALL_BUILTIN] == OpcodeClass.NATIVE_CALL
    assert classes_of("3.13.0")[CALL] == OpcodeClass.ANY_CALL
    assert classes_of("3.13.0")[BINARY_OP] == OpcodeClass.OTHER


@pytest.mark.parametrize(
    ("name", "runtime"),
    [
        ("libc.so.6", True),
        ("libc-2.31.so", True),
        ("libm.so.6", True),
        ("ld-linux-x86-64.so.2", True),
        ("[vdso]", True),
        ("libcrypto.so.3", False),
        ("libcublas.so", False),
        ("libmkl.so", False),
        ("libm_extra.so", False),
    ],
)
def test_modules_of_the_c_library(builder: Builder, profile: Callable[..., Profile], name: str, runtime: bool) -> None:
    path = name if name.startswith("[") else f"/usr/lib/{name}"
    builder._add("modules", process=0, path=path, start=5, end=6, file_offset=0, time_ns=0, interpreter=False)
    frame = builder._add("native_frames", module=3, offset=6, symbol="memcpy")
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=frame, opcode=LIST_APPEND)
    builder.cpu(stack, 20, native_frame=frame, opcode=BINARY_OP)
    totals = profile().totals
    assert (totals.python_s, totals.native_s) == ((0.01, 0.02) if runtime else (0.0, 0.03))


@pytest.mark.parametrize(
    ("file", "symbol", "python_s"),
    [
        ("libtachograph.so", None, 0.03),
        ("libtachograph.so", "tachograph::domains::(anonymous namespace)::release", 0.03),
        ("libtachograph.so", "memcpy", 0.01),
        ("_native.cpython-311-x86_64-linux-gnu.so", "tachograph::Walker::walk", 0.03),
    ],
)
def test_hooks_of_the_recorder(
    builder: Builder, profile: Callable[..., Profile], file: str, symbol: str | None, python_s: float
) -> None:
    """Time in the recorder's own hooks is whose call they stand before: the interpreter's allocator, or libc."""
    path = f"/usr/lib/python3/site-packages/tachograph/recorder/{file}"
    builder._add("modules", process=0, path=path, start=5, end=6, file_offset=0, time_ns=0, interpreter=False)
    frame = builder._add("native_frames", module=3, offset=6, symbol=symbol)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=frame, opcode=LIST_APPEND)
    builder.cpu(stack, 20, native_frame=frame, opcode=BINARY_OP)
    totals = profile().totals
    assert totals.python_s == python_s
    assert totals.native_s == pytest.approx(0.03 - python_s)


def test_native_recording(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    first, second, third = (builder.stack((code, line)) for line in range(3))
    builder.cpu(first, 10, native_frame=PYTHON_FRAME, system_ns=2 * MS)
    builder.cpu(first, 20, native_frame=OTHER_FRAME, opcode=BINARY_OP)
    builder.cpu(second, 10, native_frame=OTHER_FRAME, opcode=CALL_BUILTIN)
    builder.cpu(second, 10, native_frame=NATIVE_FRAME, opcode=BINARY_OP, system_ns=10 * MS)
    builder.cpu(third, 10, native_frame=MACHINERY_FRAME, opcode=CALL)
    builder.cpu(third, 10, native_frame=None)
    lines = profile().lines
    assert table(lines, "line", "samples", "python_s", "native_s", "kernel_s", "unknown_s") == [
        (1, 2, 0.028, 0.0, 0.002, 0.0),
        (2, 2, 0.0, 0.01, 0.01, 0.0),
        (3, 2, 0.01, 0.0, 0.0, 0.01),
    ]


def test_modules_of_the_interpreter_file_are_the_interpreter(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder._add(
        "modules", process=0, path="/usr/bin/python3.13", start=5, end=6, file_offset=5, time_ns=0, interpreter=False
    )
    frame = builder._add("native_frames", module=3, offset=6, symbol="PyDict_Next")
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)), 10, native_frame=frame)
    assert profile().totals.python_s == 0.01


def test_unmapped_code_is_native_and_a_missing_symbol_is_the_interior(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    generated = builder._add("native_frames", module=None, offset=0x7000, symbol=None)
    stripped = builder._add("native_frames", module=0, offset=99, symbol=None)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=generated, opcode=BINARY_OP)
    builder.cpu(stack, 10, native_frame=stripped, opcode=CALL)
    builder.cpu(stack, 30, native_frame=stripped, opcode=BINARY_OP)
    found = profile()
    assert (found.totals.native_s, found.totals.python_s) == (0.02, 0.03)
    assert found.totals.gc_s is None, "the collector would be without a name as well"


@pytest.mark.parametrize(
    ("symbol", "collector"),
    [
        ("gc_collect_main", True),
        ("visit_decref", True),
        ("subtype_traverse", True),
        ("dict_traverse", True),
        ("deduce_unreachable", True),
        ("PyObject_IS_GC", True),
        ("_Py_RunGC", True),
        ("dict_dealloc", False),
        ("list_sort", False),
        ("os_listdir", False),
    ],
)
def test_garbage_collection_is_told(
    builder: Builder, profile: Callable[..., Profile], symbol: str, collector: bool
) -> None:
    frame = builder._add("native_frames", module=0, offset=77, symbol=symbol)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=frame, opcode=CALL_BUILTIN)
    totals = profile().totals
    assert (totals.gc_s, totals.native_s) == ((0.01, 0.0) if collector else (0.0, 0.01))


@pytest.mark.parametrize(
    ("symbol", "python", "collected"),
    [
        (None, 0.01, 0.01),  # a stripped interpreter
        ("dict_dealloc", 0.01, 0.01),
        ("PyObject_Vectorcall", 0.01, 0.01),
        ("_PyEval_EvalFrameDefault", 0.01, 0.0),  # a finalizer's Python code
    ],
)
def test_what_runs_in_a_collection_is_the_collectors(
    builder: Builder, profile: Callable[..., Profile], symbol: str | None, python: float, collected: float
) -> None:
    frame = builder._add("native_frames", module=0, offset=77, symbol=symbol)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=frame, opcode=CALL_BUILTIN, collecting=True)
    builder.cpu(stack, 20, native_frame=frame, opcode=CALL_BUILTIN, collecting=False)
    answer = profile()
    loop = symbol == "_PyEval_EvalFrameDefault"
    assert (answer.totals.python_s, answer.totals.gc_s) == pytest.approx((0.03 if loop else python, collected))
    assert answer.lines["gc_s"].tolist() == [collected]


def test_no_name_is_the_collectors_outside_of_collections(builder: Builder, profile: Callable[..., Profile]) -> None:
    """``PyObject_IS_GC`` is asked about by more than the collector."""
    frame = builder._add("native_frames", module=0, offset=77, symbol="PyObject_IS_GC")
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=frame, opcode=BINARY_OP, collecting=False)
    totals = profile().totals
    assert (totals.python_s, totals.gc_s) == (0.01, 0.0)


@pytest.mark.parametrize("rest_ms", [900, 9000])
def test_lines_that_set_collections_off_are_named(
    builder: Builder, profile: Callable[..., Profile], rest_ms: int
) -> None:
    """Those that set off a quarter or more, if it is worth mentioning at all."""
    frame = builder._add("native_frames", module=0, offset=77, symbol=None)
    code = builder.code(builder.file("/srv/a.py"))
    for line, ms, collecting in ((1, 60, True), (2, 30, True), (3, 10, True), (4, rest_ms, False)):
        builder.cpu(builder.stack((code, line - 1)), ms, collecting=collecting, native_frame=frame)
    found = collections(profile())
    if rest_ms == 9000:
        assert found is None
    else:
        assert found is not None
        assert (found.seconds, found.share) == pytest.approx((0.1, 0.1))
        assert found.places == ["on a.py:1", "on a.py:2"]


def test_collections_at_the_end_are_named_as_such(builder: Builder, profile: Callable[..., Profile]) -> None:
    frame = builder._add("native_frames", module=0, offset=77, symbol=None)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 40, collecting=True, native_frame=frame)
    builder.cpu(None, 60, collecting=True, native_frame=frame)
    found = collections(profile())
    assert found is not None
    assert found.places == ["at interpreter shutdown", "on a.py:1"]


def test_foreign_code_in_a_collection_is_native(builder: Builder, profile: Callable[..., Profile]) -> None:
    """An extension's object that a collection frees."""
    outside = builder._add("native_frames", module=None, offset=0x7000, symbol=None)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, native_frame=outside, opcode=BINARY_OP, collecting=True)
    totals = profile().totals
    assert (totals.native_s, totals.gc_s) == (0.01, 0.0)


def test_unknown_kernel_time_is_null_and_not_zero(builder: Builder, profile: Callable[..., Profile]) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 10, system_ns=None)
    answer = profile()
    assert answer.lines["kernel_s"].isna().all()
    assert answer.totals.kernel_s is None
    assert answer.totals.python_s == 0.01


def test_delay_rule(builder: Builder, profile: Callable[..., Profile]) -> None:
    """q = 10 ms: a tick after 10 ms is all Python, one after 100 ms has 90 ms of delay."""
    builder.sampler = builder.rows["processes"][0]["sampler"] = "signal"
    code = builder.code(builder.file("/srv/a.py"))
    first, second = (builder.stack((code, line)) for line in range(2))
    for ms in (10, 9):
        builder.cpu(first, ms, origin=2, native_frame=None, system_ns=None)
    builder.cpu(second, 100, origin=2, native_frame=None, system_ns=None)
    answer = profile()
    assert table(answer.lines, "line", "python_s", "native_s", "unknown_s") == [
        (2, 0.01, 0.09, 0.0),
        (1, 0.019, 0.0, 0.0),
    ]
    assert answer.totals.kernel_s is None
    assert table(profile(attribution=Attribution.DELAY).lines, "native_s") == [(0.09,), (0.0,)]


def test_ticks_are_shared_out_among_threads(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.sampler = builder.rows["processes"][0]["sampler"] = "signal"
    builder.thread("worker-1")
    builder.thread("worker-2")
    code = builder.code(builder.file("/srv/a.py"))
    first, second, third = (builder.stack((code, line)) for line in range(3))
    common = {"time_ns": START + 5, "native_frame": None, "system_ns": None}
    builder.cpu(first, 30, origin=2, **common)
    builder.cpu(second, 30, origin=3, thread=1, opcode=CALL, **common)
    builder.cpu(third, 30, origin=3, thread=2, opcode=BINARY_OP, **common)
    answer = profile()
    assert table(answer.lines.sort_values("line"), "line", "python_s", "native_s") == [
        (1, round(10 / 3e3, 9), round(20 / 3e3, 9)),
        (2, 0.0, 0.01),
        (3, 0.01, 0.0),
    ]
    assert answer.totals.cpu_s == pytest.approx(0.03)


def test_delay_needs_the_signal_sampler(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.cpu(None)
    with pytest.raises(FormatError, match="--attribution delay needs a recording of the signal sampler"):
        profile(attribution=Attribution.DELAY)


def test_signal_rows_need_the_interval(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.sampler = builder.rows["processes"][0]["sampler"] = "signal"
    builder.parameters["interval_ns"] = None
    builder.cpu(None, origin=2)
    with pytest.raises(FormatError, match="interval_ns is missing"):
        profile()


def test_gpu_waits_are_told_apart(builder: Builder, profile: Callable[..., Profile]) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.wait(stack, 0, 100, native_frame=GPU_FRAME)
    builder.wait(stack, 200, 300, target=5)
    builder.wait(stack, 400, 1000, target=2, native_frame=NATIVE_FRAME)
    answer = profile()
    assert table(answer.lines, "wait_s", "main_wait_s", "gpu_wait_s") == [(0.8, 0.8, 0.2)]


def test_the_specification_has_the_same_names() -> None:
    text = (Path(__file__).parents[3] / "format-spec" / "SPEC.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(LOOP .*?)^```", text, re.MULTILINE | re.DOTALL)
    entries = re.findall(r"^([A-Z]+)(.*(?:\n .*)*)", block, re.MULTILINE)
    stated = {name: re.sub(r"\s", "", rest) for name, rest in entries}
    ours = {"LOOP": LOOP, "CALL": MACHINERY, "GC": COLLECTOR, "LIBC": RUNTIME, "HOOKED": HOOKED}
    assert {name: stated[name] for name in ours} == {name: pattern.pattern for name, pattern in ours.items()}
