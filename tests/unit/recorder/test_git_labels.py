"""Commit and changes of a repository: git itself is the judge, and where it gives no answer there is none."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tachograph.recorder.labels.git_repository import find_repository, is_dirty, read_commit
from tachograph.recorder.labels.labels import gather_labels

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")

SECONDS = 30.0
Git = Callable[..., str]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path / "repository"


@pytest.fixture
def git(top: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in a repository with two commits, one file of which is executable and one a link."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.org")
    top.mkdir()

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=top, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    for name in ("a.py", "a/b.py", "a/c/d.py", "a.b/e.py", "a-b", "z/empty", "tool.sh", "ä.py"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("" if name == "z/empty" else f"# {name}\n")
    (top / "tool.sh").chmod(0o755)
    (top / "link").symlink_to("a.py")
    git("add", ".")
    git("commit", "-qm", "one")
    (top / "a.py").write_text("# more\n")
    git("commit", "-qam", "two")
    return git


def seen(top: Path) -> tuple[str | None, bool | None]:
    """What we say of the repository."""
    repository = find_repository(top)
    assert repository is not None
    commit = read_commit(repository)
    return commit, None if commit is None else is_dirty(repository, commit, SECONDS)


def judged(git: Git) -> tuple[str, bool]:
    """What git says."""
    return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "-uno"))


def test_a_clean_repository(git: Git, top: Path) -> None:
    (top / "untracked").touch()
    assert seen(top / "a") == judged(git) == (git("rev-parse", "HEAD"), False)


def _write(top: Path) -> None:
    (top / "a/b.py").write_text("other\n")


def _same_length_at_once(top: Path) -> None:
    (top / "a/b.py").write_text("# a/B.py\n")


def _remove(top: Path) -> None:
    (top / "a/c/d.py").unlink()


def _remove_folder(top: Path) -> None:
    shutil.rmtree(top / "a")
    (top / "a").write_text("a file now")


def _mode(top: Path) -> None:
    (top / "tool.sh").chmod(0o644)


def _link(top: Path) -> None:
    (top / "link").unlink()
    (top / "link").symlink_to("b.py")


def _file_for_link(top: Path) -> None:
    (top / "link").unlink()
    (top / "link").write_text("a.py")


@pytest.mark.parametrize(
    "change", [_write, _same_length_at_once, _remove, _remove_folder, _mode, _link, _file_for_link]
)
def test_a_changed_file(git: Git, top: Path, change: Callable[[Path], None]) -> None:
    change(top)
    assert seen(top) == judged(git)
    assert seen(top)[1] is True


def test_a_staged_change(git: Git, top: Path) -> None:
    _write(top)
    git("add", ".")
    assert seen(top) == judged(git)
    assert seen(top)[1] is True
    git("commit", "-qm", "three")
    assert seen(top) == judged(git)
    assert seen(top)[1] is False


def test_only_the_time_has_changed(git: Git, top: Path) -> None:
    os.utime(top / "a.py", (1, 1))
    os.utime(top / "link", (1, 1), follow_symlinks=False)
    assert seen(top)[1] is False
    os.utime(top / "a.py", ns=(time.time_ns() + 10**12,) * 2)
    assert seen(top)[1] is False


def test_a_merge_that_stopped(git: Git, top: Path) -> None:
    git("checkout", "-qb", "other", "HEAD~1")
    (top / "a.py").write_text("# otherwise\n")
    git("commit", "-qam", "other")
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "main")
    assert seen(top) == judged(git)
    assert seen(top)[1] is True


@pytest.mark.parametrize(
    "how",
    [
        ["gc", "-q"],
        ["pack-refs", "--all"],
        ["repack", "-qad", "--depth=50"],
        ["update-index", "--index-version", "4"],
        ["update-index", "--index-version", "2"],
        ["update-index", "--skip-worktree", "a.py"],
        ["update-index", "--untracked-cache"],
        ["checkout", "-q", "--detach"],
        ["checkout", "-qb", "täst/x.y-z+1"],
        ["read-tree", "HEAD"],
        ["commit-graph", "write"],
    ],
    ids=" ".join,
)
def test_however_it_is_stored(git: Git, top: Path, how: list[str]) -> None:
    git(*how)
    assert seen(top) == (git("rev-parse", "HEAD"), False)
    (top / "a/b.py").unlink()
    assert seen(top)[1] is True


def test_another_worktree(git: Git, top: Path, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"), "HEAD~1")
    commit = git("rev-parse", "HEAD~1")
    assert seen(tmp_path / "beside" / "a") == (commit, False)
    (tmp_path / "beside" / "a.py").unlink()
    assert seen(tmp_path / "beside") == (commit, True)
    assert seen(top)[1] is False


def test_a_borrowing_clone(git: Git, top: Path, tmp_path: Path) -> None:
    git("gc", "-q")
    git("clone", "-q", "--shared", str(top), str(tmp_path / "clone"))
    assert seen(tmp_path / "clone") == (git("rev-parse", "HEAD"), False)


def test_a_submodule(git: Git, top: Path, tmp_path: Path) -> None:
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(top), "inner")
    git("commit", "-qm", "with a submodule")
    assert seen(top) == (git("rev-parse", "HEAD"), False)
    assert seen(top / "inner")[1] is False


@pytest.mark.parametrize(
    "how",
    [["update-index", "--split-index"], ["sparse-checkout", "set", "--cone", "--sparse-index", "a"]],
    ids=["split", "sparse"],
)
def test_indexes_of_other_kinds(git: Git, top: Path, how: list[str]) -> None:
    git(*how)
    assert seen(top) == (git("rev-parse", "HEAD"), False)
    (top / "a/b.py").unlink()
    assert seen(top)[1] is True


def test_files_that_git_converts(git: Git, top: Path) -> None:
    (top / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (top / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git("add", ".")
    git("commit", "-qm", "lines")
    os.utime(top / "a.txt", (2, 2))
    assert seen(top) == judged(git)
    assert seen(top)[1] is False


def test_nothing_is_written(git: Git, top: Path) -> None:
    """git would renew its index where only times have changed; that is the user's to do."""
    os.utime(top / "a.py", (1, 1))
    before = {path: path.stat().st_mtime_ns for path in (top / ".git").rglob("*")}
    assert seen(top)[1] is False
    assert {path: path.stat().st_mtime_ns for path in (top / ".git").rglob("*")} == before


def test_no_program_of_the_repository_watches_its_files(git: Git, top: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    monitor = top / ".git/monitor"
    monitor.write_text(f"#!/bin/sh\necho ran >> {trace}\n")
    monitor.chmod(0o755)
    git("config", "core.fsmonitor", str(monitor))
    assert seen(top)[1] is False
    assert not trace.exists()


def test_variables_that_lead_elsewhere(git: Git, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(top)
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert seen(top)[1] is True


def stand_in(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another git in front of the machine's."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_git_that_does_not_answer(git: Git, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended in time, with what it has started, whatever holds its output open."""
    repository = find_repository(top)
    assert repository is not None
    commit = git("rev-parse", "HEAD")
    stand_in(tmp_path / "bin", f"sleep 60 & echo $! > {tmp_path}/child; wait", monkeypatch)
    began = time.monotonic()
    assert is_dirty(repository, commit, 1.0) is None
    assert time.monotonic() - began < 20
    status = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() - began < 30
        time.sleep(0.01)


@pytest.mark.parametrize("text", ["exit 0", "echo '# branch.oid '; exit 0", "exit 128"])
def test_half_an_answer_is_none(
    git: Git, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    stand_in(tmp_path / "bin", text, monkeypatch)
    assert seen(top)[1] is None


def test_another_commit_by_now(git: Git, top: Path) -> None:
    repository = find_repository(top)
    assert repository is not None
    assert is_dirty(repository, git("rev-parse", "HEAD~1"), SECONDS) is None


def test_without_git(git: Git, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git("rev-parse", "HEAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert seen(top) == (commit, None)


def test_a_repository_without_a_commit(top: Path, tmp_path: Path) -> None:
    assert find_repository(tmp_path / "none") is None
    subprocess.run(["git", "init", "-q", str(top)], check=True, capture_output=True)
    repository = find_repository(top)
    assert repository is not None
    assert read_commit(repository) is None
    assert gather_labels([], {}, [str(top)]).of_repository() == {}


def test_the_labels(git: Git, top: Path, tmp_path: Path) -> None:
    labels = gather_labels([], {}, [str(tmp_path / "nowhere"), str(top)])
    assert labels.of_repository()["git.commit"] == git("rev-parse", "HEAD")


def test_damaged_files_are_unknown_and_no_error(git: Git, top: Path) -> None:
    """Whatever git's files hold there is an answer, if only that it is unknown."""
    chance = random.Random(5)
    git("gc", "-q")
    _write(top)
    commit = git("rev-parse", "HEAD")
    names = [".git/index", ".git/HEAD", ".git/packed-refs", ".git/config"]
    names += [str(path.relative_to(top)) for path in (top / ".git/objects/pack").iterdir()]
    for name in names:
        path = top / name
        good = path.read_bytes()
        path.chmod(0o644)
        for _ in range(8):
            bad = bytearray(good)
            for _ in range(chance.randrange(1, 8)):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            path.write_bytes(bad[: chance.randrange(len(bad) + 1)])
            found, dirty = seen(top) if find_repository(top) is not None else (None, None)
            assert found in (commit, None) or name != ".git/index"
            assert dirty is not False or name == ".git/index"  # git does not check its sum
        path.write_bytes(good)


@pytest.mark.parametrize("what", ["fifo", "huge"])
def test_files_that_are_no_files_keep_it_from_nothing(git: Git, top: Path, what: str) -> None:
    path = top / ".git/index"
    path.unlink()
    if what == "fifo":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 34)
    repository = find_repository(top)
    assert repository is not None
    assert is_dirty(repository, git("rev-parse", "HEAD"), 1.0) is None
