"""The reader in JavaScript, ``format-spec/reader``, finds what the vectors' expected.json says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

FORMAT = Path(__file__).resolve().parents[2] / "format-spec"
COMPLETE = ("whole", "extra", "memory", "tree", "weights", "signal", "attribution", "lines", "window")
PARTS = ("cpu_ns", "python_ns", "native_ns", "kernel_ns", "unknown_ns")


def plain_copy(vector: Path, folder: Path) -> Path:
    """The same recording with plain pages: Parquet is not what is tested."""
    folder.mkdir()
    shutil.copy(vector / "manifest.json", folder)
    for path in vector.glob("*.parquet"):
        pq.write_table(pq.read_table(path), folder / path.name, compression="none", use_dictionary=False)
    return folder


def cpu(sums: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sums.items() if key in PARTS and value}


def test_it_finds_what_it_must(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    folders = [plain_copy(FORMAT / "vectors" / f"{name}.tacho", tmp_path / name) for name in COMPLETE]
    command: list[str | Path] = [node, FORMAT / "reader" / "cpu_by_line.mjs", *folders]
    answers = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
    for name, answer in zip(COMPLETE, answers, strict=True):
        wanted = json.loads((FORMAT / "vectors" / f"{name}.expected.json").read_text(encoding="utf-8"))
        derived = wanted["derived"]
        assert cpu(answer["totals"]) == cpu(derived["totals"]), name
        lines = {(each["file"], each["line"]): cpu(each) for each in answer["lines"]}
        assert lines == {(each["file"], each["line"]): cpu(each) for each in derived["lines"] if cpu(each)}, name
        assert all(answer["line_of_stack"][each["stack"]] == each["line"] for each in wanted["lines"]), name


@pytest.mark.parametrize(("name", "reason"), [("killed", "state recording"), ("newer-major", "version 2.0")])
def test_it_refuses_what_is_not_for_it(name: str, reason: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    command: list[str | Path] = [node, FORMAT / "reader" / "cpu_by_line.mjs", FORMAT / "vectors" / f"{name}.tacho"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert reason in done.stderr
