"""Others that put allocators of their own in the place of the program's, or call them in ways of their own: the program
runs as without a recording, and what is not seen of its memory is in the ledger."""

import sys
from pathlib import Path

import pytest

from integration import support
from integration.test_allocators import run
from integration.test_process_tree_arming import compile_linked_with, embedding_command

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
RAW, MEM, OBJ = range(3)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = support.compile_library(NATIVE / "foreign_allocators.c", tmp_path_factory.mktemp("native"))
    if built is None:
        pytest.skip("no C compiler")
    return built


ALLOCATE = """
for number in range(300):
    x, y = bytearray(300_000 + number * 4096), b"x" * (150_000 + number * 8192)
    x.extend(y)
    z = [str(each) for each in range(100)]
print(len(x), len(y), z[-1])
"""


def test_another_raw_allocator(tmp_path: Path, foreign: Path) -> None:
    """Its large blocks lie where nothing can be read in front of them."""
    report, _ = run(tmp_path, f"import ctypes\nctypes.PyDLL({str(foreign)!r}).replace_raw()\n" + ALLOCATE)
    assert "allocator_foreign" in support.losses(report)


@pytest.mark.parametrize("blocked", [False, True], ids=["", "signals blocked"])
@pytest.mark.recording
def test_other_functions_in_the_import_tables(tmp_path: Path, foreign: Path, blocked: bool) -> None:
    """As memory profilers put theirs there: while a recording from inside is on, in the place of the recorder's."""
    block = "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())" if blocked else "pass"
    program = f"""
import ctypes, signal
from tachograph.recorder import record
foreign = ctypes.PyDLL({str(foreign)!r})
with record("run.tacho", gpu=False):
    foreign.replace_imports()
    {block}
{ALLOCATE.replace(chr(10), chr(10) + "    ")}
print("ended")
"""
    done = support.bare(["-c", program], tmp_path)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.endswith("ended\n")
    assert "allocator_foreign" in support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))


@pytest.mark.parametrize("allocator", ["pymalloc", "malloc"])
def test_calls_without_the_context(tmp_path: Path, foreign: Path, allocator: str) -> None:
    """Of an allocator that has none, as modules that were compiled by Nuitka call it."""
    code = f"import ctypes\nforeign = ctypes.PyDLL({str(foreign)!r})\n"
    code += f"print([foreign.call_without_context(domain) for domain in ({RAW}, {MEM}, {OBJ})])\n"
    report, recording = run(tmp_path, code, PYTHONMALLOC=allocator)
    assert "allocator_foreign" not in support.losses(report)
    rows = support.rows(recording, "memory")[1:]
    assert sum(row["obj_allocated_bytes"] for row in rows) > 200_000


WHOSE = """
import ctypes
class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]
found = Allocator()
for domain in range(3):
    ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(found))
    for line in open("/proc/self/maps"):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if begin <= found.malloc < end: print("tachograph" in line)
"""


def test_allocators_are_left_alone_beside_scalene(tmp_path: Path, foreign: Path) -> None:
    """Its library calls itself without an end where Python's allocators are wrapped. This one has the name alone."""
    library = tmp_path / "libscalene.so"
    library.write_bytes(foreign.read_bytes())
    assert support.record(["-c", WHOSE], tmp_path, output="other.tacho").stdout == "True\n" * 3
    report, _ = run(tmp_path, WHOSE, LD_PRELOAD=str(library))
    assert "allocators_left_alone" in support.losses(report)


@pytest.mark.slow
def test_scalene(tmp_path: Path) -> None:
    """The real one, where it is installed."""
    pytest.importorskip("scalene")
    program = tmp_path / "program.py"
    program.write_text("import json\nprint(sum(len(json.dumps(list(range(50)))) for _ in range(20_000)))\n")
    target: list[str | Path] = ["-m", "scalene", "run", "--outfile", "scalene.json", program]
    plain = support.bare(target, tmp_path)
    assert plain.status == 0, plain.stderr
    assert support.record([sys.executable, *target], tmp_path).status == 0


def test_an_allocator_that_is_part_of_the_program(tmp_path: Path) -> None:
    """It has no reallocarray, of which the recorder's is the first then: that calls realloc by name, as libc's does."""
    library = support.compile_library(NATIVE / "grows.c", tmp_path)
    program = support.compile_program(NATIVE / "own_malloc.c", tmp_path, "-rdynamic", "-ldl")
    if library is None or program is None:
        pytest.skip("no C compiler")
    plain = support.run([str(program), str(library)], tmp_path)
    assert plain == support.Outcome(0, "grown in the program's own pool: 1\n", "")
    code = f"import subprocess; print(subprocess.run([{str(program)!r}, {str(library)!r}]).returncode, flush=True)"
    assert support.record(["-c", code], tmp_path) == support.Outcome(0, plain.stdout + "0\n", "")


def test_a_program_with_python_and_an_allocator(tmp_path: Path) -> None:
    program = compile_linked_with("own_malloc.c", tmp_path, "-DEMBEDS", "-rdynamic", "-ldl")
    command = embedding_command(program)
    plain = support.run(command, tmp_path)
    assert plain == support.Outcome(0, "grown in the program's own pool: 1\n", "")
    assert support.record(command, tmp_path) == plain
    assert "native_unseen" in support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
