"""A folder that is held is the same one, whatever takes its name."""

import gc
import os
import stat
from pathlib import Path

import pytest

from tachograph.recorder.collect.held_folder import HeldFolder, ReplacedError, hold_parent


def swap(path: Path) -> Path:
    """Another folder takes the name; where the first one is now."""
    moved = path.with_name("moved")
    path.rename(moved)
    path.mkdir()
    return moved


def test_work_goes_on_in_the_folder_that_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    with HeldFolder.open(path) as folder:
        assert folder.has_its_name()
        assert folder.present_path() == str(path)
        moved = swap(path)
        Path(folder.here, "new").write_text("x")
        assert not folder.has_its_name()
        assert folder.present_path() == str(moved)
    assert (moved / "new").read_text() == "x"
    assert not list(path.iterdir())


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    with HeldFolder.open(path) as folder:
        path.rmdir()
        assert not folder.has_its_name()
        assert folder.present_path() is None
        with pytest.raises(FileNotFoundError):
            Path(folder.here, "new").touch()


def test_links_are_not_followed_but_above_it(tmp_path: Path) -> None:
    (tmp_path / "real" / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "b").symlink_to("a")
    with HeldFolder.open(tmp_path / "link" / "a") as folder:
        assert folder.identity == ((status := (tmp_path / "real" / "a").stat()).st_dev, status.st_ino)
    for path in (tmp_path / "link", tmp_path / "link" / "b"):
        with pytest.raises(NotADirectoryError):
            HeldFolder.open(path)


def test_another_folder_is_told_by_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    with HeldFolder.open(path) as folder:
        identity = folder.identity
    HeldFolder.open(path, identity).close()
    swap(path)
    with pytest.raises(ReplacedError, match="another one is in its place"):
        HeldFolder.open(path, identity)


def test_a_folder_that_is_made(tmp_path: Path) -> None:
    parent, name = hold_parent(tmp_path / "a")
    before = os.umask(0o777)
    try:
        folder = parent.make(name).take_parent()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    with pytest.raises(FileExistsError):
        parent.make(name)
    folder.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_that_took_the_name_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could plant anything in it."""
    make = os.mkdir

    def make_and_lose(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        os.rename(path, f"{path}.moved")
        make(path, 0o777)
        os.chown(path, 65534, 65534)

    parent, name = hold_parent(tmp_path / "a")
    monkeypatch.setattr(os, "mkdir", make_and_lose)
    with pytest.raises(ReplacedError, match="at once"):
        parent.make(name)
    assert not list((tmp_path / "a").iterdir())
    parent.close()


def test_nothing_is_held_after_the_end(tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left has descriptors
    before = os.listdir("/proc/self/fd")
    with HeldFolder.open(tmp_path) as folder:
        assert len(os.listdir("/proc/self/fd")) == len(before) + 2
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(FileNotFoundError):
        Path(folder.here, "new").touch()


def test_working_directory_and_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    for path, name in ((".", "inner"), ("..", tmp_path.name), ("x/", "x"), ("../inner", "inner")):
        parent, found = hold_parent(path)
        assert found == name
        parent.close()
