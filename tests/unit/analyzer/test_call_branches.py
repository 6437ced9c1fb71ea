"""``--tree`` and ``--line``: what is shown, what is folded, and that nothing is lost."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.api import open as open_recording
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.exports import Metric, prepare
from tachograph.analyzer.profile.awaiters import Awaiting
from tachograph.analyzer.profile.call_branches import Branch, call_tree, line_calls
from tachograph.analyzer.profile.path_frame import COLUMNS
from tachograph.analyzer.report_data.native_callees import Waiter, native_waiters
from tachograph.analyzer.samples.summary import OUT_OF_SCOPE
from tachograph.format import FormatError
from tachograph.format.enumerations import NativePath
from unit.analyzer.recordings import NATIVE_FRAME, PYTHON_FRAME, Builder

NUMPY = "/v/lib/python3.13/site-packages/numpy/"


class Made:
    """``main`` calls numpy's ``sort`` through its dispatcher on line 3, and sorts with ``key`` on line 5."""

    def __init__(self, path: Path) -> None:
        builder = self.builder = Builder(path)
        own, library = builder.file("/srv/main.py", "1\n2\nnp.sort(a)\n"), builder.file(NUMPY + "fromnumeric.py")
        main, key = builder.code(own, "main", 1), builder.code(own, "key", 20)
        sort = builder.code(library, "sort", 900)
        umath = builder._add(
            "modules", process=0, path=NUMPY + "_umath.so", start=9, end=10, file_offset=0, time_ns=0, interpreter=False
        )
        frames = {"loop": PYTHON_FRAME}
        for number, (module, symbol) in enumerate(
            [
                (umath, "dispatcher"),
                (umath, "array_sort"),
                (umath, "qs<int>(int)"),
                (0, "builtin_sorted"),
                (0, "long_add"),
            ]
        ):
            frames[symbol] = builder._add("native_frames", module=module, offset=500 + number, symbol=symbol)
        line3, line5 = builder.stack((main, 2)), builder.stack((main, 4))
        sorting, keyed = builder.stack((main, 2), (sort, 5)), builder.stack((main, 4), (key, 1))

        def native(*calls: tuple[str, int | None]) -> int:
            parent = None
            for name, stack in calls:
                parent = builder._add("native_stacks", parent=parent, native_frame=frames[name], stack=stack)
            assert parent is not None
            return parent

        deep = [("loop", line3), ("dispatcher", None), ("loop", sorting), ("array_sort", None)]
        whole = {"native_path": NativePath.WHOLE}
        builder.cpu(sorting, 40, native_frame=frames["qs<int>(int)"], native_stack=native(*deep), **whole)
        guessed = native(*deep, ("qs<int>(int)", None))
        builder.cpu(
            sorting, 10, native_frame=frames["qs<int>(int)"], native_stack=guessed, native_path=NativePath.GUESSED
        )
        builder.cpu(sorting, 5, native_frame=PYTHON_FRAME, native_stack=native(*deep[:2]), **whole)
        builder.cpu(None, 5, native_frame=NATIVE_FRAME, native_stack=None, **whole)
        passed = native(("loop", line5), ("builtin_sorted", None))
        builder.cpu(keyed, 30, native_frame=PYTHON_FRAME, native_stack=passed, **whole)
        added = native(("loop", line5), ("builtin_sorted", None), ("loop", keyed))
        builder.cpu(keyed, 8, native_frame=frames["long_add"], native_stack=added, **whole)
        builder.cpu(line5, 2, native_frame=PYTHON_FRAME, native_stack=None, **whole)

    def profile(self, **question: object) -> Profile:
        with Recording(self.builder.write()) as recording:
            return build_profile(recording, Question(**question))  # type: ignore[arg-type]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run.tacho")


def shown(branches: list[Branch]) -> list[tuple[int, str, float, float]]:
    """Depth, name, total and own milliseconds."""
    return [
        (depth, each.name, round(each.cpu_s * 1e3), round(each.own_cpu_s * 1e3))
        for branch in branches
        for depth, each in branch.walk()
    ]


def test_the_tree_folds_libraries_and_helpers(made: Made) -> None:
    branches = call_tree(made.profile(scope="project"))
    assert shown(branches) == [
        (0, "main", 95, 2),
        (1, "sort", 55, 5),
        (2, "qs<int>(int)", 50, 50),
        (1, "builtin_sorted", 38, 0),
        (2, "key", 38, 38),  # with what the interpreter added for it
        (0, "<no Python stack>", 5, 0),
        (1, "deflate", 5, 5),
    ]
    assert sum(each.cpu_s for each in branches) == pytest.approx(0.1)
    (quick,) = branches[0].children[0].children
    known = asdict(quick)
    assert [known[name] for name in ("library", "module", "language")] == ["_umath.so", "numpy/_umath", "native"]
    assert quick.guessed_s == pytest.approx(0.01)


@pytest.mark.parametrize("scope", ["project", "all", "numpy"])
def test_own_times_add_up(made: Made, scope: str) -> None:
    branches = call_tree(made.profile(scope=scope))
    assert sum(each.own_cpu_s for branch in branches for _, each in branch.walk()) == pytest.approx(0.1)


def test_a_line_and_what_it_called(made: Made) -> None:
    calls = line_calls(made.profile(scope="project"), "main.py:3")
    assert (calls.file, calls.line, calls.source) == ("/srv/main.py", 3, "np.sort(a)")
    assert shown([calls.whole]) == [
        (0, "", 55, 0),
        (1, "dispatcher", 55, 0),
        (2, "sort", 55, 5),
        (3, "array_sort", 50, 0),
        (4, "qs<int>(int)", 50, 50),  # that which called itself too
    ]


def test_of_files_of_one_name_the_one_with_time_on_the_line_is_meant(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "run.tacho")
    own, library = builder.file("/srv/main.py"), builder.file(NUMPY + "main.py")
    main, other = builder.code(own, "main", 1), builder.code(library, "other", 1)
    builder.cpu(builder.stack((main, 2), (other, 7)), 10)
    with Recording(builder.write()) as recording:
        profiles = {scope: build_profile(recording, Question(scope=scope)) for scope in ("project", "all")}
    assert line_calls(profiles["project"], "main.py:3").file == "/srv/main.py"
    assert line_calls(profiles["all"], "main.py:8").file == NUMPY + "main.py"
    with pytest.raises(FormatError, match="may be several files"):
        line_calls(profiles["project"], "main.py:4")


def test_the_report_says_how_to_look_into_libraries(made: Made) -> None:
    """Line 3 has 55 % of the time, in numpy; what it calls can be looked at."""
    runner, path = CliRunner(), str(made.builder.write())
    told = "most of the time is in libraries that main.py:3 calls: --line main.py:3 shows what"
    assert told in " ".join(runner.invoke(analyze, [path, "--scope", "project"]).output.split())
    for options in (["--scope", "all"], ["--scope", "project", "--memory"], ["--scope", "numpy"]):
        assert "most of the time is in libraries" not in runner.invoke(analyze, [path, *options]).output


def test_calls_of_functions_in_scope_are_not_the_line_s(made: Made) -> None:
    assert shown([line_calls(made.profile(scope="project"), "srv/main.py:5").whole]) == [(0, "", 2, 2)]


def test_lines_agree_with_the_profile(made: Made) -> None:
    profile = made.profile(scope="project")
    for row in profile.lines[profile.lines["line"].notna() & (profile.lines["cpu_s"] > 0)].itertuples():
        assert line_calls(profile, f"{row.file}:{row.line}").whole.cpu_s == pytest.approx(row.cpu_s)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("main.py", "is not FILE:N"),
        ("main.py:x", "is not FILE:N"),
        (":3", "is not FILE:N"),
        ("main.py:" + "9" * 30, "is not FILE:N"),
        ("other.py:3", "no recorded file is 'other.py'"),
        ("main.py:4", "no time was charged"),
        ("\x1b.py:4", r"no recorded file is '\\x1b.py'"),
    ],
)
def test_a_line_that_is_none_is_refused(made: Made, where: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        line_calls(made.profile(), where)


def test_commands(made: Made, tmp_path: Path) -> None:
    path = str(made.builder.write())
    runner = CliRunner()
    tree = runner.invoke(analyze, [path, "--tree"]).output
    assert "qs<>  numpy/_umath  (20% guessed)" in tree
    assert "builtin_sorted  python3.13" in tree
    assert "sort  numpy/fromnumeric.py:900" in tree
    assert "├ " in tree
    assert "└ " in tree
    assert "and 5 more rows" in runner.invoke(analyze, [path, "--tree", "--top", "2"]).output
    line = runner.invoke(analyze, [path, "--line", "main.py:3"]).output
    assert "array_sort → qs<>  numpy/_umath" in line
    assert "55 ms of CPU time, 55.0 % of all" in line
    key = runner.invoke(analyze, [path, "--line", "main.py:21"]).output
    assert "called at main.py:5 in main (100 %)" in key
    documents = [
        json.loads(runner.invoke(analyze, [path, *view, "--json", "-"]).output)
        for view in (["--tree"], ["--line", "main.py:3"])
    ]
    assert [each["tachograph"]["document"] for each in documents] == ["tree", "line"]
    assert documents[1]["line"]["cpu_s"] == pytest.approx(0.055)
    assert documents[1]["native_paths"]["guessed"] == pytest.approx(0.01)
    text = (Path(__file__).parents[3] / "docs" / "reference" / "calls-json.md").read_text("utf-8")
    text, _, tasks = text.partition("## Tasks that await one another")
    documented = {each.split("`")[1] for each in text.splitlines() if each.startswith("| `")}
    assert documented == set(documents[0]) | set(documents[1]) | set(documents[1]["calls"][0])
    awaiting = {
        name for each in tasks.splitlines() if each.startswith("| `") for name in each.split("|")[1].split("`")[1::2]
    }
    assert awaiting == {"depth", *(each.name for each in fields(Awaiting) if each.name != "children")}
    for wrong in (["--tree", "--line", "a:1"], ["--tree", "--where"], ["--line", "a:1", "--html", "x.html"]):
        result = runner.invoke(analyze, [path, *wrong])
        assert (result.exit_code, "views of their own" in result.output) == (2, True)
    result = runner.invoke(analyze, [path, "--line", "none.py:1"])
    assert (result.exit_code, result.output) == (2, "tachograph: no recorded file is 'none.py'\n")


def test_callpaths(made: Made) -> None:
    with open_recording(made.builder.write()) as recording:
        paths = recording.callpaths()
        total = recording.profile().totals.cpu_s
    assert paths["cpu_s"].sum() == pytest.approx(total)
    assert list(paths.columns) == list(COLUMNS)
    best = paths.iloc[0]
    assert best["path"] == ("main", "dispatcher", "sort", "array_sort", "qs<int>(int)")
    assert (best["function"], best["language"], best["python_function"], best["line"]) == (
        *("qs<int>(int)", "native", "sort"),
        905,
    )
    assert (best["cpu_s"], best["guessed_s"], best["depth"], best["samples"]) == (pytest.approx(0.04), 0.0, 5, 1)
    assert paths["guessed_s"].sum() == pytest.approx(0.01)
    text = (Path(__file__).parents[3] / "docs" / "reference" / "api.md").read_text("utf-8")
    section = text.partition("## `callpaths`")[2].partition("\n## ")[0]
    named = {name for line in section.splitlines() if line.startswith("| `") for name in line.split("|")[1].split("`")}
    assert {name for name in named if name.strip(" ,")} == set(COLUMNS)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (
            "all",
            {
                "main dispatcher sort array_sort qs<int>(int)": 40,
                "main dispatcher sort array_sort qs<int>(int) qs<int>(int)": 10,
                "main dispatcher sort": 5,
                "main builtin_sorted key": 30,
                "main builtin_sorted key long_add": 8,
                "main": 2,
                "<no Python stack> deflate": 5,
            },
        ),
        (
            "project",
            {
                "main dispatcher array_sort qs<int>(int)": 40,
                "main dispatcher array_sort qs<int>(int) qs<int>(int)": 10,
                "main dispatcher": 5,
                "main builtin_sorted key": 30,
                "main builtin_sorted key long_add": 8,
                "main": 2,
                "<no Python stack> deflate": 5,
            },
        ),
        (
            "numpy",
            {
                "sort array_sort qs<int>(int)": 40,
                "sort array_sort qs<int>(int) qs<int>(int)": 10,
                "sort": 5,
                f"{OUT_OF_SCOPE} long_add": 8,
                OUT_OF_SCOPE: 32,
                "<no Python stack> deflate": 5,
            },
        ),
    ],
)
def test_exports_have_whole_paths(made: Made, scope: str, expected: dict[str, int]) -> None:
    with Recording(made.builder.write()) as recording:
        extract = prepare(recording, Metric.CPU, scope=scope)
        tree = extract.tree(lines=False, native=True)
        sums = extract.sums(tree)
    paths = {
        " ".join(tree.functions[tree.frames[frame].function].name for frame in tree.path(node)): round(weight / 1e6)
        for node, weight in zip(sums["node"].tolist(), sums["weight"].tolist(), strict=True)
    }
    assert paths == expected


def test_waits_of_a_line_and_where_functions_begin(tmp_path: Path) -> None:
    """Line 3 waits 50 ms in ``sock_recv``, which calls the C library's ``recv``, and 10 ms by itself."""
    builder = Builder(tmp_path / "run.tacho")
    main = builder.code(builder.file("/srv/main.py", "1\n2\nsocket.recv(1)\n"), "main", 1)
    line3 = builder.stack((main, 2))
    module = builder.module("/v/lib/_socket.so")
    place = {"source": "./Modules/clinic.h", "line": 7, "function_source": "./Modules/socketmodule.c"}
    called = builder._add("native_frames", module=module, offset=900, symbol="sock_recv", **place, function_line=3551)
    inner = builder.native_frame(builder.module("/lib/libc.so.6"), "recv")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, line3), called)
    builder.cpu(line3, 4, native_frame=PYTHON_FRAME, native_stack=None, native_path=NativePath.WHOLE)
    builder.wait(line3, 100, 150, native_frame=inner, native_stack=path, native_path=NativePath.WHOLE)
    builder.wait(line3, 200, 210, native_path=NativePath.UNRECORDED)
    builder.wait(line3, 300, 400, native_frame=inner, native_stack=path, native_path=NativePath.WHOLE, target=7)
    recorded = builder.write()
    with Recording(recorded) as recording:
        profile = build_profile(recording, Question())
    calls = line_calls(profile, "main.py:3")
    known = [
        (depth, each.name, round((each.wait_s or 0) * 1e3), each.file, each.line) for depth, each in calls.whole.walk()
    ]
    source = "./Modules/socketmodule.c"
    assert known == [
        (0, "", 60, None, None),
        (1, "sock_recv", 50, source, 3551),
        (2, "recv", 50, None, None),
    ]
    assert calls.own["wait_s"] == pytest.approx(0.01)
    ((waiter,),) = native_waiters(profile, profile.lines)
    assert waiter == Waiter("sock_recv", "_socket", f"{source}:3551", waiter.wait_s)
    assert waiter.wait_s == pytest.approx(0.05)
    shown = CliRunner().invoke(analyze, [str(recorded), "--line", "main.py:3"]).output
    assert "waiting 60 ms" in shown
    assert "sock_recv  _socket  socketmodule.c:3551" in shown
    with open_recording(recorded) as recording:
        named = recording.frame("native_frames")
    assert named["function_line"].dropna().tolist() == [3551]


def test_functions_that_import_a_module_are_one_row(builder: Builder) -> None:
    machinery = builder.file("<frozen importlib._bootstrap>")
    main, module = (builder.file(f"/srv/{name}.py") for name in ("main", "module"))
    steps = [builder.code(machinery, name) for name in ("_find_and_load", "_load_unlocked", "_call")]
    frames = [builder.code(main, "start"), *steps, builder.code(module, "<module>")]
    builder.cpu(builder.stack(*((code, 0) for code in frames)), 90)
    tree = CliRunner().invoke(analyze, [str(builder.write()), "--tree", "--scope", "all"]).output
    assert "_find_and_load → … → _call  <frozen importlib._bootstrap>:1" in tree
    assert "_load_unlocked" not in tree
    assert tree.index("start") < tree.index("_find_and_load") < tree.index("<module>")


def test_a_chain_of_callers_that_wait_is_one_row(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "run.tacho")
    own, library = builder.file("/srv/main.py", "ask()\n"), builder.file("/usr/lib/python3.13/client.py")
    callees = [(builder.code(library, name, 10 * number), 0) for number, name in enumerate(("get", "send", "read"))]
    stack = builder.stack((builder.code(own, "main", 1), 0), *callees)
    builder.cpu(stack)
    builder.wait(stack, 100, 2320, syscall=45)
    result = CliRunner().invoke(analyze, [str(builder.write()), "--line", "main.py:1"])
    waiting = result.output.partition(" Waiting ")[2].splitlines()
    assert [row.split()[:4] for row in waiting if "2.22s" in row] == [["2.22s", "get", "→", "…"]]
    assert "read" in waiting[2]


def test_figures_of_a_line_stay_with_their_units(tmp_path: Path) -> None:
    """In a narrow terminal too."""
    builder = Builder(tmp_path / "run.tacho")
    stack = builder.stack((builder.code(builder.file("/srv/main.py", "ask()\n"), "main", 1), 0))
    for frame, system_ns in ((PYTHON_FRAME, 0), (NATIVE_FRAME, 0), (NATIVE_FRAME, 5_000_000)):
        builder.cpu(stack, 1000, native_frame=frame, system_ns=system_ns)
    builder.wait(stack, 100, 2320, syscall=45)
    path = str(builder.write())
    for width in range(40, 100, 3):
        result = CliRunner().invoke(analyze, [path, "--line", "main.py:1"], env={"COLUMNS": str(width)})
        head = result.output.partition("total %")[0].splitlines()
        assert any("of CPU time" in row for row in head)
        assert not [row for row in head if row.lstrip().startswith(("%", "s ", "·"))], width


def test_compiling_is_one_branch(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "run.tacho")
    own = builder.code(builder.file("/srv/main.py", "step(1)\n"), "main", 1)
    folder = "/v/lib/python3.13/site-packages/numba/core/"
    compiling = builder.code(builder.file(f"{folder}dispatcher.py"), "_DispatcherBase._compile_for_args", 400)
    passes = [builder.code(builder.file(f"{folder}{name}.py"), name, 10) for name in ("compiler", "lowering")]
    builder.cpu(builder.stack((own, 0), (compiling, 0)), 10)
    for code in passes:
        builder.cpu(builder.stack((own, 0), (compiling, 0), (code, 0), (passes[0], 3)), 100)
    builder.cpu(builder.stack((own, 0), (passes[1], 0)), 50)
    with Recording.open(builder.write()) as recording:
        whole = line_calls(build_profile(recording, Question()), "main.py:1").whole
    branches = [(child.name, round(child.cpu_s * 1e3), len(child.children)) for child in whole.children]
    assert branches == [("compilation by numba", 210, 0), ("lowering", 50, 0)]


def test_compiling_is_one_branch_of_its_line(tmp_path: Path) -> None:
    """Whether the native code in which numba calls its compiler was on the stack that was read, or not."""
    builder = Builder(tmp_path / "run.tacho")
    own = builder.code(builder.file("/srv/main.py", "step(1)\n"), "main", 1)
    site = "/v/lib/python3.13/site-packages/numba/"
    compiling = builder.code(builder.file(f"{site}core/dispatcher.py"), "_DispatcherBase._compile_for_args", 400)
    outer, inner = builder.stack((own, 0)), builder.stack((own, 0), (compiling, 0))
    module = builder.module(f"{site}_dispatcher.cpython-313-x86_64-linux-gnu.so")
    calling = builder.native_stack(None, PYTHON_FRAME, outer)
    for name in ("Dispatcher_call", "compile_and_invoke"):
        calling = builder.native_stack(calling, builder.native_frame(module, name))
    whole_path = builder.native_stack(calling, PYTHON_FRAME, inner)
    builder.cpu(inner, 100, native_stack=whole_path, native_path=NativePath.WHOLE)
    builder.cpu(inner, 50)
    builder.cpu(outer, 20, native_frame=len(builder.rows["native_frames"]) - 1, native_stack=calling, native_path=1)
    with Recording.open(builder.write()) as recording:
        whole = line_calls(build_profile(recording, Question()), "main.py:1").whole
    branches = [(child.name, round(child.cpu_s * 1e3)) for child in whole.children]
    assert branches == [("compilation by numba", 150), ("Dispatcher_call", 20)]


def test_the_report_names_the_few_lines_that_have_most_of_the_time_together(tmp_path: Path) -> None:
    """Two of 43 % each, in a library; not if the second is the project's own work."""
    for name, second, expected in (("a", True, True), ("b", False, False)):
        builder = Builder(tmp_path / f"{name}.tacho")
        main = builder.code(builder.file("/srv/main.py"), "main", 1)
        library = builder.code(builder.file(NUMPY + "core.py"), "get", 1)
        for line, count, calls in ((2, 43, True), (3, 43, second), (4, 14, True)):
            builder.cpu(builder.stack((main, line), *(((library, 0),) if calls else ())), count)
        output = " ".join(CliRunner().invoke(analyze, [str(builder.write()), "--scope", "project"]).output.split())
        assert ("most of the time is in libraries that main.py:3 and main.py:4 call" in output) == expected
