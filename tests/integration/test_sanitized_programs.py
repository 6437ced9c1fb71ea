"""Programs built with AddressSanitizer, which do not start with another library before its runtime, are left alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asan")
    source, target = folder / "program.c", folder / "program"
    source.write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 3; }\n', encoding="utf-8")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    built = subprocess.run([compiler, "-fsanitize=address", str(source), "-o", str(target)], check=False, timeout=120)
    if built.returncode != 0 or support.run([str(target)], folder).status != 3:
        pytest.skip("the compiler has no AddressSanitizer that works here")
    return target


def test_as_the_first_program(tmp_path: Path, program: Path) -> None:
    recorded = support.record([program], tmp_path)
    assert (recorded.status, recorded.stdout) == (3, "ran\n")
    assert "AddressSanitizer" in recorded.stderr
    assert len(recorded.stderr.splitlines()) == 1


def test_as_a_child(tmp_path: Path, program: Path) -> None:
    code = "import subprocess, sys; print(subprocess.run([sys.argv[1]]).returncode, flush=True)"
    bare = support.bare(["-c", code, program], tmp_path)
    assert bare == support.Outcome(0, "ran\n3\n", "")
    assert support.record(["-c", code, program], tmp_path) == bare
