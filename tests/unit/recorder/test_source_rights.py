"""Root keeps the sources that the processes which named them may read themselves."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tachograph.recorder.collect.source_rights import EVERY_USERS, EVERYTHING, Rights, SourceRights, rights_of
from tachograph.recorder.collect.sources import SourceStore

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
    assert store.withheld(str(module))
    monkeypatch.setattr("tachograph.recorder.collect.source_rights._LIBRARY", library)
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
    assert [store.read_with(rights, str(path)) for path in allowed] == [b"text"] * len(allowed)
    for path in [*refused, open_folder / "link"]:
        assert store.read_with(rights, str(path)) is None
        assert store.read_with(EVERYTHING, str(path)) == b"text"
