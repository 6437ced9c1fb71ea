"""Root keeps the sources that the recorded processes may read, once one of them is another user."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tachograph.recorder.collect.source_rights import SourceRights, credentials_of
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


def test_credentials(another_user: int) -> None:
    assert credentials_of(another_user) == ({USER}, {USER, USER - 1})
    assert credentials_of(os.getpid()) == ({0}, {0, *os.getgroups()})
    assert credentials_of(1 << 22) is None


def test_root_alone_reads_everything(open_folder: Path) -> None:
    rights = SourceRights()
    rights.look_at(os.getpid())
    rights.look_at(1 << 22)
    with make(open_folder / "a", 0o000).open("rb") as file:
        assert rights.allow(file.fileno())


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
    before, store = SourceStore(open_folder), SourceStore(open_folder)
    store.rights.look_at(another_user)
    for path in [*allowed, *refused, open_folder / "link"]:
        assert before.read(str(path)) == b"text"
    assert [store.read(str(path)) for path in allowed] == [b"text"] * len(allowed)
    assert [store.read(str(path)) for path in [*refused, open_folder / "link"]] == [None] * (len(refused) + 1)
