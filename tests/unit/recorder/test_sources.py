import os
import struct
import tracemalloc
from pathlib import Path

import pytest

from tachograph.format import SpoolDirectory
from tachograph.recorder.collect import sources
from tachograph.recorder.collect.sources import SourceScout, SourceStore
from tachograph.recorder.inprocess.spool_layout import CODE, STATE
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body


def test_files_are_read_once(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("first")
    store = SourceStore(tmp_path)
    assert store.read("a.py") == b"first"
    file.write_text("second")
    assert store.read("a.py") == b"first"
    assert store.read(str(file)) == b"second"


def test_code_of_the_command_line(tmp_path: Path) -> None:
    assert SourceStore(tmp_path, code="pass\udc80").read("<string>") == b"pass\x80"
    assert SourceStore(tmp_path).read("<string>") is None


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = SourceStore(tmp_path)
    for path in ("<frozen importlib._bootstrap>", "missing.py", ".", "pipe", "/dev/zero", "a\0b", "", "x" * 5000):
        assert store.read(path) is None


def test_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_FILE", 10)
    monkeypatch.setattr(sources, "MAX_TOTAL", 15)
    for name, size in [("a", 11), ("b", 10), ("c", 6), ("d", 5)]:
        (tmp_path / name).write_bytes(bytes(size))
    store = SourceStore(tmp_path)
    assert [len(store.read(name) or b"") for name in "abcd"] == [0, 10, 0, 5]


def test_a_later_edit_is_not_what_ran(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    os.utime(tmp_path / "a.py", ns=(1000, 1000))
    assert SourceStore(tmp_path, not_after_ns=999).read("a.py") is None
    assert SourceStore(tmp_path, not_after_ns=1000).read("a.py") == b"x"


def test_the_scout_reads_files_as_they_turn_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK", 256)  # so that records lie across reads
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = SpoolWriter(str(spool), 4096)
    store = SourceStore(tmp_path)
    scout = SourceScout(store)
    for number in range(60):  # over several segments
        file = tmp_path / f"file{number}.py"
        file.write_text("as it ran")
        writer.append(STATE, struct.pack("<qII", number, 1, 0))
        writer.append(CODE, code_body(number, compile("pass" + " \n" * number, str(file), "exec")))
        if number % 7 == 0:
            scout.look(SpoolDirectory(spool).processes())
            file.write_text("edited")
    scout.look(SpoolDirectory(spool).processes())
    assert len(list(spool.glob("*.seg"))) > 1
    for number in range(60):
        (tmp_path / f"file{number}.py").write_text("edited")
        assert store.read(str(tmp_path / f"file{number}.py")) == b"as it ran"


@pytest.mark.broad
def test_names_of_no_file_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of code that is made at run time named hundreds of thousands of them."""
    monkeypatch.setattr(sources, "MAX_TRIED", 1_000)
    store = SourceStore(tmp_path)
    tracemalloc.start()
    try:
        for number in range(20_000):
            store.read(f"<made {number}>")
        generated = tracemalloc.get_traced_memory()[0]
        for number in range(20_000):
            store.read(f"gone/{number}.py")
        gone = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert generated < 50_000
    assert gone < 500_000
