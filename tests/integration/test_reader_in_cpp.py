"""A reader in another language, written from SPEC.md alone, finds what the vectors' expected.json says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from support.vectors import VECTORS

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("native") / "plain_reader.cpp"
OPCODES = ROOT / "format-spec" / "opcodes.json"


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built against the Arrow that pyarrow brings."""
    include = Path(pa.get_include())
    libraries = [
        path
        for name in ("libparquet", "libarrow")
        for path in include.parent.glob(f"{name}.so.*")
        if re.fullmatch(rf"{name}\.so\.\d+", path.name)
    ]
    if shutil.which("c++") is None or not (include / "parquet").is_dir() or len(libraries) != 2:
        pytest.skip("needs a C++ compiler and the headers of Arrow that pyarrow brings")
    program = tmp_path_factory.mktemp("reader") / "plain_reader"
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", str(include)]
    linked = [*map(str, libraries), f"-Wl,-rpath,{include.parent}"]
    built = subprocess.run(
        ["c++", *flags, str(SOURCE), *linked, "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return program


def read(reader: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [reader, VECTORS / f"{name}.tacho", OPCODES]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["whole", "extra", "memory", "tree", "weights", "signal"])
def test_what_follows_from_the_tables(reader: Path, name: str) -> None:
    done = read(reader, name)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads((VECTORS / f"{name}.expected.json").read_text(encoding="utf-8"))
    assert json.loads(done.stdout) == answer["derived"]


@pytest.mark.parametrize("name", ["killed", "memory-killed", "tree-killed", "gpu", "newer-major"])
def test_what_is_not_for_it(reader: Path, name: str) -> None:
    done = read(reader, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
