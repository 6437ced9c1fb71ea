"""The rules by which a Python stack and a native path become one, on recordings built by hand."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tachograph.analyzer import Question, build_profile
from tachograph.analyzer.recording.call_tree import load_tree
from tachograph.analyzer.recording.native_names import native_label, plain_name, short_library, short_name
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.samples.call_paths import CallPaths, labels
from tachograph.analyzer.samples.stream import Stream
from tachograph.format.enumerations import NativePath
from unit.analyzer.recordings import NATIVE_FRAME, OTHER_FRAME, PYTHON_FRAME, Builder, table

WHOLE, GUESSED, TRUNCATED, TORN = NativePath.WHOLE, NativePath.GUESSED, NativePath.TRUNCATED, NativePath.TORN


class Made:
    """``main`` (line 1) calls ``f`` calls ``g``; native functions are called by name."""

    def __init__(self, path: Path) -> None:
        self.builder = Builder(path)
        file = self.builder.file("/srv/a.py")
        codes = {name: self.builder.code(file, name, 10 * n + 1) for n, name in enumerate("mfg")}
        frames = [(codes[name], 0) for name in "mfg"]
        self.m, self.f, self.g = (self.builder.stack(*frames[: n + 1]) for n in range(3))
        self._frames = {"LOOP": PYTHON_FRAME, "list_sort": OTHER_FRAME, "deflate": NATIVE_FRAME}

    def frame(self, name: str) -> int:
        if name not in self._frames:
            module = 1 if name.startswith("z_") else 0
            symbol = None if name.startswith("z_none") else name
            self._frames[name] = self.builder._add("native_frames", module=module, offset=99 + len(name), symbol=symbol)
        return self._frames[name]

    def native(self, *calls: tuple[str, int | None] | str) -> int:
        """A native path, outermost call first; a tuple is an activation."""
        parent = None
        for each in calls:
            name, stack = each if isinstance(each, tuple) else (each, None)
            parent = self.builder._add("native_stacks", parent=parent, native_frame=self.frame(name), stack=stack)
        assert parent is not None
        return parent

    def path(
        self, stack: int | None, last: str, native: int | None, how: NativePath = WHOLE, state: int | None = None
    ) -> str:
        """The path of a single sample."""
        more = {} if state is None else {"stack_state": state}
        self.builder.cpu(stack, native_frame=self.frame(last), native_stack=native, native_path=how, **more)
        with Recording(self.builder.write()) as recording:
            calls = load_tree(recording)
            paths = CallPaths(recording, calls)
            (batch,) = Stream(recording).cpu(times=False)
            stacks = [-1 if stack is None else stack]
            columns = (np.array(stacks), batch.state, batch.native, batch.native_stack, batch.native_path)
            (node,) = paths.nodes(*columns).tolist()
            tree, names = paths.tree(), []
            while node >= 0:
                if tree.stack[node] >= 0:
                    names.append(calls.function_names[calls.function[tree.stack[node]]])
                elif tree.native[node] >= 0:
                    names.append(paths.functions.names[tree.native[node]])
                else:
                    names.append(labels()[tree.label[node]])
                node = tree.parent[node]
        return " ".join(names[::-1])


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run.tacho")


def test_c_between_two_activations(made: Made) -> None:
    native = made.native("Py_RunMain", ("LOOP", made.m), "list_sort", "_PyObject_Call", ("LOOP", made.f))
    assert made.path(made.f, "z_fast", native) == "m list_sort f z_fast"


def test_frames_of_no_activation_are_the_interrupted_frame_s(made: Made) -> None:
    native = made.native("Py_RunMain", ("LOOP", made.m), "list_sort")
    assert made.path(made.g, "LOOP", native) == "m list_sort f g"


def test_an_activation_runs_several_frames(made: Made) -> None:
    native = made.native(("LOOP", made.g), "list_sort")
    assert made.path(made.g, "deflate", native) == "m f g list_sort deflate"


def test_of_a_whole_path_what_starts_the_thread_is_folded(made: Made) -> None:
    assert made.path(made.g, "LOOP", made.native("z_start", "list_sort")) == "m f g"


def test_of_a_cut_path_what_the_innermost_frame_called_is_there(made: Made) -> None:
    assert made.path(made.g, "deflate", made.native("z_a", "list_sort"), TRUNCATED) == "m f g z_a list_sort deflate"


def test_of_a_cut_path_what_may_stand_anywhere_is_left_out(made: Made) -> None:
    native = made.native("z_a", ("LOOP", made.f), "list_sort", ("LOOP", made.g))
    assert made.path(made.g, "deflate", native, TORN) == "m f list_sort g deflate"


def test_a_cut_path_to_the_loop_itself_has_no_place_for_its_callers(made: Made) -> None:
    assert made.path(made.g, "LOOP", made.native("z_a", "list_sort"), TRUNCATED) == "m f g"


def test_a_cut_path_to_what_may_be_the_loop_too(made: Made) -> None:
    frame = made.builder._add("native_frames", module=0, offset=7777, symbol=None)
    made._frames["stripped"] = frame
    assert made.path(made.g, "stripped", made.native("z_a"), TRUNCATED) == "m f g"


def test_threads_without_python(made: Made) -> None:
    native = made.native("z_pool", "z_work")
    assert made.path(None, "deflate", native) == "<no Python stack> z_pool z_work deflate"


def test_a_torn_stack_has_what_was_called_last(made: Made) -> None:
    native = made.native("z_a", ("LOOP", made.f), "list_sort")
    assert made.path(None, "deflate", native, state=2) == "<torn stack> list_sort deflate"


def test_an_activation_that_contradicts_the_stack_is_not_believed(made: Made) -> None:
    other = made.builder.stack((made.builder.code(0, "other", 90), 0))
    native = made.native(("LOOP", other), "list_sort")
    assert made.path(made.g, "deflate", native) == "m f g deflate"


def test_without_a_path_the_innermost_function_is_known(made: Made) -> None:
    assert made.path(made.g, "deflate", None, NativePath.UNRECORDED) == "m f g deflate"


def test_calls_within_a_library_without_names_are_one(made: Made) -> None:
    native = made.native(("LOOP", made.m), "z_none1", "z_none22", "list_sort", "z_none333")
    assert made.path(made.m, "z_none4444", native) == "m [libz.so] list_sort [libz.so]"


def test_native_functions_have_self_and_total(made: Made) -> None:
    builder = made.builder
    sorting = made.native(("LOOP", made.m), "list_sort")
    keyed = made.native(("LOOP", made.m), "list_sort", ("LOOP", made.f), "deflate")
    deflate = made.frame("deflate")
    builder.cpu(made.m, 10, native_frame=made.frame("z_fast"), native_stack=sorting, native_path=WHOLE)
    builder.cpu(made.f, 20, native_frame=deflate, native_stack=keyed, native_path=GUESSED)
    builder.cpu(made.f, 40, native_frame=PYTHON_FRAME, native_stack=sorting, native_path=WHOLE)
    with Recording(builder.write()) as recording:
        profile = build_profile(recording, Question(scope="all"))
    rows = profile.native_functions
    assert table(rows, "function", "library", "cpu_s", "total_cpu_s", "guessed_s") == [
        ("deflate", "libz.so", 0.02, 0.02, 0.02),  # it called itself: it counts once
        ("z_fast", "libz.so", 0.01, 0.01, 0.0),
        ("list_sort", "python3.13", 0.0, 0.07, 0.02),
    ]
    assert profile.functions["cpu_s"].sum() == pytest.approx(profile.totals.cpu_s)
    functions = json.loads("".join(pieces(document(profile))))["functions"]
    assert [(row["function"], row["language"], row["library"]) for row in functions] == [
        ("f", "python", None),
        ("deflate", "native", "libz.so"),
        ("m", "python", None),
        ("z_fast", "native", "libz.so"),
        ("list_sort", "native", "python3.13"),
    ]
    assert {row["guessed_s"] for row in functions if row["language"] == "python"} == {None}


def test_native_functions_begin_in_their_sources(made: Made) -> None:
    frames = made.builder.rows["native_frames"]
    inner = made.builder.native_frame(1, "deflate")
    frames[inner] |= {"function_source": "../zlib/deflate.c", "function_line": 12}
    for frame in (made.frame("deflate"), inner, made.frame("z_fast")):
        made.builder.cpu(made.m, 10, native_frame=frame)
    with Recording(made.builder.write()) as recording:
        profile = build_profile(recording, Question(scope="all"))
    # Of one of its program counters it is known, so it is known of the function.
    found = [("deflate", "../zlib/deflate.c", 12), ("z_fast", None, None)]
    assert table(profile.native_functions, "function", "file", "line") == found
    functions = json.loads("".join(pieces(document(profile))))["functions"]
    native = [(row["function"], row["file"], row["line"]) for row in functions if row["language"] == "native"]
    assert native == found
    markdown = summary(profile)
    assert re.search(r"\| deflate in \S+ from \.\./zlib/deflate\.c:12\n", markdown), markdown
    assert re.search(r"\| z_fast in \S+\n", markdown), markdown


def test_without_paths_what_native_functions_called_is_unknown(made: Made) -> None:
    made.builder.cpu(made.m, 10, native_frame=NATIVE_FRAME)
    with Recording(made.builder.write()) as recording:
        profile = build_profile(recording, Question(scope="all"))
    assert table(profile.native_functions, "function", "cpu_s", "total_cpu_s", "guessed_s") == [
        ("deflate", 0.01, None, None)
    ]
    (row,) = [row for row in json.loads("".join(pieces(document(profile))))["functions"] if row["language"] == "native"]
    assert row["total_samples"] is None


def test_the_terminal_lists_native_functions(made: Made) -> None:
    sorting = made.native(("LOOP", made.m), "list_sort")
    made.builder.cpu(made.m, 10, native_frame=made.frame("z_fast"), native_stack=sorting, native_path=GUESSED)
    with Recording(made.builder.write()) as recording:
        profile = build_profile(recording, Question(scope="all"))
    out = io.StringIO()
    show(profile, Console(file=out, width=100, highlight=False, markup=False, emoji=False))
    assert re.search(r"100 +100 .* z_fast +libz +\(100% guessed\)", out.getvalue()), out.getvalue()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("dgemm_kernel", "dgemm_kernel"),
        ("void f<int>(int, char*)", "f<>"),
        ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector<>::push_back"),
        ("bool operator<(A, B)", "bool operator<(A, B)"),
        ("(anonymous namespace)::run(int)", "::run"),
        ("f(int) const", "f"),
        ("ns::f<int, std::vec…", "ns::f<>"),
        ("ns::f<int>(std::vector<int, std::all…", "ns::f<>"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (None, ""),
        ("/lib/x86_64-linux-gnu/libc.so.6", "libc"),
        ("/v/lib/python3.11/site-packages/numpy/_core/_umath.cpython-311-x86_64-linux-gnu.so", "numpy/_umath"),
        ("/v/site-packages/numpy.libs/libscipy_openblas64_-32a4b2a6.so", "numpy/libscipy_openblas64_"),
        ("/v/site-packages/polars/polars.abi3.so", "polars/polars"),
        ("[vdso]", "[vdso]"),
    ],
)
def test_short_libraries(path: str | None, short: str) -> None:
    assert short_library(path) == short


@pytest.mark.parametrize(
    ("name", "path", "label"),
    [
        ("gemm", "/lib/libgomp.so.1", "gemm"),
        ("[libgomp-a34b3233.so.1.0.0]", "/v/site-packages/torch.libs/libgomp-a34b3233.so.1.0.0", "[torch/libgomp]"),
        ("[libpython3.11.so.1.0]", "/usr/lib/libpython3.11.so.1.0", "[libpython3.11]"),
        ("[lib.so]", "/v/site-packages/pandas/_libs/lib.cpython-311-x86_64-linux-gnu.so", "[pandas/lib]"),
        ("[[vdso]]", "[vdso]", "[vdso]"),
        ("[unknown]", None, "[unknown]"),
    ],
)
def test_native_labels(name: str, path: str | None, label: str) -> None:
    assert native_label(name, short_library(path)) == label


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("loop.isra.0", "loop"),
        ("loop.constprop.0.isra.2", "loop"),
        ("f(int) [clone .cold]", "f(int)"),
        ("f(int) [clone .isra.0] [clone .cold]", "f(int)"),
        ("core::slice::sort::h0123456789abcdef", "core::slice::sort"),
        (".part.0", ".part.0"),
        ("x.y", "x.y"),
    ],
)
def test_what_compilers_append_is_no_name(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name
