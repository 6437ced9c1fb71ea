"""Sources that the recorder collects; as root, only those that the process which named them may read itself."""

import os
import struct
import subprocess
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tachograph.format import SpoolDirectory
from tachograph.format.spool.codes_table import CodeLines
from tachograph.recorder.collect import source_texts
from tachograph.recorder.collect.source_texts import (
    EVERY_USERS,
    EVERYTHING,
    Rights,
    SourceRights,
    SourceScout,
    SourceStore,
    rights_of,
)
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
    monkeypatch.setattr(source_texts, "MAX_FILE", 10)
    monkeypatch.setattr(source_texts, "MAX_TOTAL", 15)
    for name, size in [("a", 11), ("b", 10), ("c", 6), ("d", 5)]:
        (tmp_path / name).write_bytes(bytes(size))
    store = SourceStore(tmp_path)
    assert [len(store.read(name) or b"") for name in "abcd"] == [0, 10, 0, 5]
    too_large = "sources_too_large"
    assert [store.unread(name) for name in ("a", "b", "c", "d", "missing")] == [too_large, None, too_large, None, None]


def test_a_later_edit_is_not_what_ran(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    os.utime(tmp_path / "a.py", ns=(1000, 1000))
    store = SourceStore(tmp_path, not_after_ns=999)
    assert (store.read("a.py"), store.unread("a.py")) == (None, "sources_changed")
    assert SourceStore(tmp_path, not_after_ns=1000).read("a.py") == b"x"


def lines_of(text: str) -> list[CodeLines]:
    code = compile(text, "a.py", "exec").co_consts[0]
    return [CodeLines(code.co_qualname, code.co_firstlineno, code.co_linetable, is_generated=False)]


def test_a_text_that_is_not_what_ran(tmp_path: Path) -> None:
    """Unless it was read too early, and what ran is there now."""
    ran, other = "def f(): return 1\n", "\n\ndef f(): return 1\n"
    file = tmp_path / "a.py"
    file.write_text(other)
    store = SourceStore(tmp_path, began_ns=0)
    assert (store.read("a.py", lines_of(ran)), store.unread("a.py")) == (None, "sources_changed")
    assert (store.read("a.py", lines_of(other)), store.unread("a.py")) == (other.encode(), None)
    file.write_text(ran)
    assert (store.read("a.py", lines_of(ran)), store.unread("a.py")) == (ran.encode(), None)
    file.write_text("def f():\n    return 1\n")
    assert SourceStore(tmp_path, began_ns=0).read("a.py", lines_of(ran)) is None
    began = time.time_ns() + 1_000_000_000  # after the change: the file is what was imported
    assert SourceStore(tmp_path, began_ns=began).read("a.py", lines_of(ran)) is not None


def test_the_scout_reads_files_as_they_turn_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_texts, "CHUNK", 256)  # so that records lie across reads
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
    monkeypatch.setattr(source_texts, "MAX_TRIED", 1_000)
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


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

USER = 65534


@pytest.fixture
def another_user() -> Iterator[int]:
    """The process id of a program of another user."""
    with subprocess.Popen(["sleep", "60"], user=USER, group=USER, extra_groups=[USER - 1]) as process:
        yield process.pid
        process.kill()


def make(path: Path, mode: int, *, user: int = 0, group: int = 0) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("text")
    os.chown(path, user, group)
    path.chmod(mode)
    return path


def test_rights(another_user: int) -> None:
    assert rights_of(another_user) == Rights(users=frozenset({USER}), groups=frozenset({USER, USER - 1}))
    assert rights_of(os.getpid()) == EVERYTHING
    assert rights_of(1 << 22) is None


def test_root_without_its_capabilities() -> None:
    """Modes count for a root that may not override them."""
    with subprocess.Popen(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "sleep", "60"]) as process:
        while "sleep" not in Path(f"/proc/{process.pid}/comm").read_text():
            pass
        rights = rights_of(process.pid)
        process.kill()
    assert rights is not None
    assert (rights.everything, rights.users) == (False, frozenset({0}))


def test_whose_rights(another_user: int) -> None:
    rights, now = SourceRights(), time.monotonic_ns()
    assert rights.of(os.getpid(), now) == EVERYTHING
    assert rights.of(another_user, now) == rights_of(another_user)
    assert rights.of(another_user, 0) == EVERY_USERS  # that was another process of the same id
    assert rights.of(1 << 22, now) == EVERY_USERS
    assert rights.of_unknown == EVERY_USERS


def test_the_rights_of_what_has_ended() -> None:
    rights = SourceRights()
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        rights.look_at_last(process.pid)
    assert rights.of(process.pid, time.monotonic_ns()) == EVERYTHING


def test_root_reads_everything(open_folder: Path) -> None:
    with make(open_folder / "a", 0o000).open("rb") as file:
        assert EVERYTHING.allow(file.fileno())
        assert not EVERY_USERS.allow(file.fileno())


def test_the_standard_library_is_no_secret(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the interpreter was installed in a folder that is root's alone; packages beside it may be secret."""
    library = open_folder / "python3"
    module, package = make(library / "json.py", 0o600), make(library / "site-packages" / "a.py", 0o600)
    store = SourceStore(open_folder, rights=SourceRights())
    assert store.read(str(module)) is None
    assert store.unread(str(module)) == "sources_withheld"
    monkeypatch.setattr("tachograph.recorder.collect.source_texts._LIBRARY", library)
    store = SourceStore(open_folder, rights=SourceRights())
    assert store.read(str(module)) == b"text"
    (library / "link.py").symlink_to(package)
    assert store.read(str(package)) is None
    assert store.read(str(library / "link.py")) is None


def test_what_another_user_may_read(open_folder: Path, another_user: int) -> None:
    allowed = [
        make(open_folder / "everybody", 0o604),
        make(open_folder / "his", 0o400, user=USER),
        make(open_folder / "group", 0o640, group=USER - 1),
    ]
    refused = [
        make(open_folder / "root", 0o600),
        make(open_folder / "roots_group", 0o640),
        make(open_folder / "not_even_he", 0o040, user=USER),
        make(open_folder / "closed" / "everybody", 0o644),
        make(open_folder / "other", 0o600, user=USER - 2, group=USER - 2),
    ]
    (open_folder / "closed").chmod(0o700)
    (open_folder / "link").symlink_to(refused[0])
    store, rights = SourceStore(open_folder), rights_of(another_user)
    assert rights is not None
    for path in allowed:
        store.read_with(rights, str(path))
        assert store.unread(str(path)) is None
    for path in [*refused, open_folder / "link"]:
        store.read_with(rights, str(path))
        assert store.unread(str(path)) == "sources_withheld"
        store.read_with(EVERYTHING, str(path))
        assert (store.unread(str(path)), store.read(str(path))) == (None, b"text")


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    """To open it lets a process go on that waits for a reader, as it starts some devices."""
    fifo = tmp_path / "named.py"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", 'echo begun > "$0"', fifo])
    try:
        time.sleep(0.3)
        assert SourceStore(tmp_path).read("named.py") is None
        time.sleep(0.3)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
