"""Native call paths against two judges: libgcc's unwinder at random moments, and, between instructions, all calls."""

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from native import building

WALKS = Path(__file__).parent / "judge" / "walks.py"


@dataclass(frozen=True)
class Judge:
    """The judge, built together with the unwinder, and code for it to look at."""

    module: Path
    subjects: Path

    def walks(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._run([], name))
        return found

    def by_gdb(self, name: str, samples: int) -> dict[str, Any]:
        """What gdb finds at so many samples."""
        gdb = ["gdb", "-nx", "-batch", "-x", str(WALKS.with_name("gdb_walks.py")), "--args"]
        output = self._run(gdb, f"watch:{name}:{samples}").rstrip().rpartition("\n")[2]
        if not output.startswith("{"):
            pytest.skip(f"gdb cannot run a program here: {output[:200]}")
        found: dict[str, Any] = json.loads(output)
        return found

    def _run(self, under: list[str], name: str) -> str:
        # The kernels for this type of processor have no unwind rows; those for later ones have.
        env = {**os.environ, "OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}
        command = [*under, sys.executable, str(WALKS), str(self.module), str(self.subjects), name]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout


steps = pytest.mark.skipif(platform.machine() != "x86_64", reason="steps by x86-64's trap flag")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    if building.compiler() is None:
        pytest.skip("no C++ compiler")
    return Judge(*building.judge(tmp_path_factory.mktemp("judge")))


@pytest.mark.parametrize(
    "name",
    [
        "pure",
        "numpy",
        "pyarrow",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("standard", "pandas", "openblas")),
    ],
)
def test_as_the_full_unwinder_says(judge: Judge, name: str) -> None:
    module = {"pure": "sys", "standard": "json", "openblas": "numpy"}.get(name, name)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"no {module} here")
    found = judge.walks(f"interrupt:{name}")
    with_rows = sum(count for state, count in found["others"].items() if state.endswith(", rows"))
    assert found["wrong"] == 0, found
    assert found["agree"] > (150 if name == "openblas" else 300), found  # half of its time is in code without rows
    assert found["leaves"] > 50, found
    assert found["agree"] >= 0.99 * (found["agree"] + with_rows), found
    assert found["misled"] <= 0.01 * found["agree"], found


@pytest.mark.skipif(platform.machine() != "aarch64", reason="return addresses are signed on aarch64")
@pytest.mark.parametrize(
    "flags", [(), ("-s",), ("-mbranch-protection=standard",), ("-mbranch-protection=standard", "-s")]
)
def test_signed_return_addresses(judge: Judge, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Code whose return addresses are signed, or not, stripped of its symbols or not."""
    other = Judge(judge.module, building.subjects(tmp_path / "subjects.so", *flags))
    found = other.walks("interrupt:subjects")
    with_rows = sum(count for state, count in found["others"].items() if state.endswith(", rows"))
    assert found["wrong"] == 0, found
    assert found["agree"] > 300, found
    assert found["leaves"] > 50, found
    assert found["agree"] >= 0.99 * (found["agree"] + with_rows), found
    assert found["misled"] <= 0.05 * found["agree"], found  # at the end of throws, and at libffi's calls


@steps
@pytest.mark.parametrize("name", ["realigned", "exceptions", "tail_calls", "library", "python", "numpy"])
def test_after_every_instruction(judge: Judge, name: str) -> None:
    if name == "numpy" and importlib.util.find_spec("numpy") is None:
        pytest.skip("no numpy here")
    found = judge.walks(f"step:{name}")
    assert found["wrong"] == 0, found
    assert found["agree"] > 200, found
    assert found["agree"] >= 0.99 * (found["agree"] + sum(found["others"].values())) or name == "numpy", found
    # numpy calls OpenBLAS' kernels, which have no rows
    right = found["agree"] + found["others"].get("guessed, right", 0)
    assert right >= 0.99 * (right + sum(found["others"].values()) - found["others"].get("guessed, right", 0)), found


@steps
def test_a_path_out_of_code_without_rows_is_called_guessed(judge: Judge) -> None:
    found = judge.walks("step:without_rows")
    assert found["wrong"] == 0, found
    assert found["others"].get("guessed, right", 0) >= 10, found
    assert set(found["others"]) == {"guessed, right"}, found


def test_greenlets_end_where_they_begin(judge: Judge) -> None:
    """What lies on the stack beyond a greenlet is not its callers: its paths are not whole."""
    if importlib.util.find_spec("greenlet") is None:
        pytest.skip("no greenlet here")
    found = judge.walks("interrupt:greenlet")
    states = found["others"]
    assert states["truncated, no rows"] > 0.8 * sum(states.values()), found


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
@pytest.mark.parametrize(
    "name",
    [
        *("recursive", "exceptions", "realigned", "tail_calls", "numpy"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("standard", "pyarrow")),
    ],
)
def test_as_gdb_says(judge: Judge, name: str) -> None:
    """A judge that shares no code and no state with the process that it judges."""
    if name in ("numpy", "pyarrow") and importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name} here")
    found = judge.by_gdb(name, samples=40)
    with_rows = sum(count for state, count in found["others"].items() if state != "guessed")
    assert found["wrong"] == 0, json.dumps(found)  # a text is shown whole, with its examples
    assert found["agree"] + found["misled"] + sum(found["others"].values()) >= 40, found
    assert found["agree"] >= 0.9 * (found["agree"] + found["misled"] + with_rows), found
