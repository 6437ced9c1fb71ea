"""Interpreters in which tachograph.pth does not run, that the extension module does not fit, or that are embedded."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from integration import support
from integration.test_process_tree import Tree, make_tree, names_and_environments, said

pytestmark = pytest.mark.native

UNSEEN = 5
"""Place in the format's enumeration ``stack_state``."""


@pytest.fixture(scope="module")
def latecomers(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder = tmp_path_factory.mktemp("latecomers")
    other = folder / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True, timeout=120)
    return make_tree(folder, [support.PROGRAMS / "latecomers.py", other])


def test_as_without_us(latecomers: Tree) -> None:
    """Nothing that an interpreter knows of itself is changed by the door that it came through."""
    assert latecomers.bare.status == 0, latecomers.bare.stderr
    assert latecomers.recorded.status == 0, latecomers.recorded.stderr
    assert latecomers.recorded.stderr == latecomers.bare.stderr
    assert names_and_environments(latecomers.recorded) == names_and_environments(latecomers.bare)
    states = [
        [{**line, "pid": 0} for line in said(outcome) if line["name"] == "state"]
        for outcome in (latecomers.bare, latecomers.recorded)
    ]
    assert len(states[0]) == 2
    assert states[0] == states[1]


@pytest.mark.parametrize(
    "name",
    [
        "without_site",
        "isolated_without_site",
        "with_debug_allocators",
        "with_code",
        "with_module",
        "in_another_environment",
    ],
)
def test_armed(latecomers: Tree, name: str) -> None:
    row = latecomers.row(name)
    assert row["origin"] == "exec"
    assert row["end_ns"] is not None


def test_every_python_is_recorded(latecomers: Tree) -> None:
    """Also one that ends at once: it is armed before its first line."""
    assert len(latecomers.processes) == 10
    assert {row["recorded"] for row in latecomers.processes} == {"python"}
    assert any(row["command"].endswith("-S -c pass") for row in latecomers.processes)
    assert not support.losses(support.analyze(latecomers.recording, cwd=latecomers.recording.parent)).keys() & {
        "processes_unarmed",
        "interpreter_unsupported",
    }


def foreign_interpreter() -> str:
    """The latest interpreter of another minor version, 3.9 or later; the test is skipped if there is none."""
    beside = Path(sys.base_prefix).resolve().parent.glob("3.*/bin/python3")
    system = Path("/usr/bin")
    found = [about(path) for path in {*beside, *system.glob("python3.?"), *system.glob("python3.??")}]
    fitting = [
        (version, path) for version, gil, path in found if gil and version >= (3, 9) and version != sys.version_info[:2]
    ]
    if not fitting:
        pytest.skip("no interpreter of another version is installed beside this one")
    return max(fitting)[1]


def about(python: Path) -> tuple[tuple[int, int], bool, str]:
    """An interpreter's version, and whether it has the GIL; version 0 if it does not run."""
    code = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    output = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=60).stdout
    words = output.split()
    version = (int(words[0]), int(words[1])) if len(words) == 3 else (0, 0)
    return version, words[2:] == ["0"], str(python)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> tuple[support.Outcome, support.Outcome, Path]:
    folder = tmp_path_factory.mktemp("foreign")
    command = [foreign_interpreter(), "-W", "always", str(support.PROGRAMS / "foreign.py")]
    return support.run(command, folder), support.record(command, folder, "--interval", "2"), folder / "run.tacho"


def test_a_foreign_interpreter_runs_as_without_us(
    foreign: tuple[support.Outcome, support.Outcome, Path],
) -> None:
    plain, recorded, _ = foreign
    assert (recorded.status, recorded.stderr) == (plain.status, plain.stderr) == (0, "")
    a, b = (json.loads(outcome.stdout) for outcome in (plain, recorded))
    assert a["child"] == b["child"] == 5
    assert a["environment"] == b["environment"]


def test_a_foreign_interpreter_is_recorded_without_stacks(
    foreign: tuple[support.Outcome, support.Outcome, Path],
) -> None:
    recording = foreign[2]
    processes = support.rows(recording, "processes")
    assert [row["recorded"] for row in processes] == ["native"] * 3
    assert [row["origin"] for row in processes] == ["first", "fork", "fork"]
    assert all(row["python_version"] and row["sampler"] == "native" for row in processes)
    cpu = support.rows(recording, "cpu")
    assert {row["stack"] for row in cpu} == {None}
    assert {row["stack_state"] for row in cpu} == {UNSEEN}
    assert {row["gil"] for row in cpu} == {None}
    threads = {row["thread"]: row["process"] for row in support.rows(recording, "threads")}
    spent = dict.fromkeys(range(3), 0)
    for row in cpu:
        spent[threads[row["thread"]]] += row["cpu_ns"]
    assert spent[0] > 200_000_000
    assert min(spent[1], spent[2]) > 50_000_000
    assert any(row["native_frame"] is not None for row in cpu)
    memory = [row for row in support.rows(recording, "memory") if row["process"] == 0]
    assert 128 << 20 <= max(row["peak_bytes"] for row in memory) < 192 << 20
    assert memory[-1]["footprint_bytes"] is not None
    copied = sum(row["bytes"] for row in support.rows(recording, "copies"))
    assert copied > 32 << 20


def test_a_report_says_what_is_missing(foreign: tuple[support.Outcome, support.Outcome, Path]) -> None:
    recording = foreign[2]
    profile = support.analyze(recording, cwd=recording.parent)
    assert support.losses(profile)["interpreter_unsupported"] == 3
    shown = support.tachograph("analyze", "--processes", recording, cwd=recording.parent)
    assert shown.returncode == 0, shown.stderr
    assert "no extension module" in " ".join(shown.stdout.split())
    assert shown.stdout.count("without") >= 3
    assert "Traceback" not in shown.stderr


def shared_library() -> tuple[Path, Path]:
    """The library of this Python and the folder of its headers; the test is skipped where one is missing."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY") or ""
    include = Path(sysconfig.get_path("include"))
    library = Path(folder) / name
    if not sysconfig.get_config_var("Py_ENABLE_SHARED") or not library.exists():
        pytest.skip("this Python has no shared library to link with")
    if not (include / "Python.h").exists():
        pytest.skip("this Python's headers are not installed")
    return library, include


def compile_embedding(source: str, folder: Path, include: Path, *options: str) -> Path:
    program = folder / Path(source).stem
    path = Path(__file__).with_name("native") / source
    subprocess.run(["cc", "-O1", path, f"-I{include}", "-o", program, *options], check=True, timeout=120)
    return program


def compile_linked(folder: Path, *options: str) -> Path:
    return compile_linked_with("embeds.c", folder, *options)


def compile_linked_with(source: str, folder: Path, *options: str) -> Path:
    """A C program that is linked with this Python's library; what it is linked with as well comes first."""
    library, include = shared_library()
    name = library.name.removeprefix("lib").removesuffix(".so")
    link = [f"-L{library.parent}", f"-l{name}", f"-Wl,-rpath,{library.parent}"]
    return compile_embedding(source, folder, include, *options, *link)


@pytest.fixture(scope="module")
def embedding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_linked(tmp_path_factory.mktemp("embedding"))


def embedding_command(program: Path, *arguments: str) -> list[str]:
    """The command that runs a program which embeds Python, and finds the standard library of this one."""
    return ["env", f"PYTHONHOME={sys.base_prefix}", str(program), *arguments]


def embedded(program: Path, *arguments: str) -> tuple[support.Outcome, Tree]:
    """The program, bare and recorded, with a recording of each way's own."""
    folder = program.parent / arguments[0]
    folder.mkdir()
    command = embedding_command(program, *arguments)
    plain = support.run(command, folder)
    recorded = support.record(command, folder, "--interval", "2")
    return plain, Tree(folder / "run.tacho", plain, recorded)


def names(outcome: support.Outcome) -> list[Any]:
    return [line["name"] for line in said(outcome)]


@pytest.mark.parametrize(("how", "count"), [("once", 1), ("twice", 2)])
def test_embedded(embedding: Path, how: str, count: int) -> None:
    """Started, run and taken down by a C program, once or twice: it is recorded, and ends as it would have."""
    lives = ["in_first_life", "in_second_life"][:count]
    plain, tree = embedded(embedding, how)
    assert plain.status == tree.recorded.status == 42, tree.recorded.stderr
    assert tree.recorded.stderr == plain.stderr
    assert names(tree.recorded) == names(plain) == lives
    for name in lives:
        assert tree.row(name)["exit_status"] == 42


def test_interrupted_while_it_is_armed(embedding: Path) -> None:
    """Ctrl-C just before the program's first line is the program's, and shows nothing of ours."""
    plain, tree = embedded(embedding, "interrupted")
    assert "KeyboardInterrupt" in plain.stderr
    assert tree.recorded == plain


def test_embedded_main(embedding: Path) -> None:
    plain, tree = embedded(embedding, "main", str(support.PROGRAMS / "work.py"), "in_embedded_main")
    assert plain.status == tree.recorded.status == 0, tree.recorded.stderr
    assert tree.row("in_embedded_main")["command"].endswith("in_embedded_main")


HELD = 64 << 20
IN_LATE_PYTHON = f"""
import ctypes, time
def in_late_python():
    end = time.process_time() + 0.3
    while time.process_time() < end: sum(range(5000))
hold = ctypes.CDLL(None).hold
hold.argtypes, hold.restype = [ctypes.c_size_t], ctypes.c_void_p
in_late_python()
print(bool(hold({HELD})))
"""


def test_loaded_late(tmp_path: Path) -> None:
    """A program without a Python is left to itself until it loads one: its calls of malloc come back to the hooks."""
    library, include = shared_library()
    program = compile_embedding("embeds_late.c", tmp_path, include, "-rdynamic", "-ldl")
    command = [str(program), str(library), sys.executable, IN_LATE_PYTHON]
    plain = support.run(command, tmp_path)
    assert plain == support.Outcome(42, "True\n", "")
    assert support.record(command, tmp_path) == plain
    recording = tmp_path / "run.tacho"
    (process,) = support.rows(recording, "processes")
    assert (process["recorded"], process["exit_status"]) == ("python", 42)
    functions = {row["function"] for row in support.analyze(recording, cwd=tmp_path)["lines"] if row["cpu_s"]}
    assert "in_late_python" in functions
    # Its thread-local variables are in a block of their own, where the loader must not be asked for them.
    assert [row["gil"] for row in support.rows(recording, "cpu") if row["stack"] is not None].count(True) > 0
    # What it held before is not known, and so is no sum; what it took since then is.
    memory = support.rows(recording, "memory")
    assert {row["peak_bytes"] for row in memory} == {None}
    assert HELD <= sum(row["native_allocated_bytes"] for row in memory) < 2 * HELD
