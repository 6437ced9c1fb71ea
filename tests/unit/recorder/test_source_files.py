"""Source files and members of archives are read within bounds, and only if they may be."""

import os
import py_compile
import time
import zipfile
from pathlib import Path

import pytest

from tachograph.recorder.collect import source_files
from tachograph.recorder.collect.source_files import UnreadError, read_source

TEXT = b"def f(): pass\n"


def archive(path: Path, before: bytes = b"", **members: bytes) -> Path:
    with path.open("wb") as file:
        file.write(before)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name.replace("__slash__", "/") + ".py", content)
    return path


@pytest.mark.parametrize("before", [b"", b"#!/usr/bin/env python3\n"])
def test_members_of_archives(tmp_path: Path, before: bytes) -> None:
    app = archive(tmp_path / "app.pyz", before, hot=TEXT, package__slash__module=b"x = 1\n")
    member = read_source(f"{app}/package/module.py", 1000)
    assert member is not None
    assert (member.content, member.compiled_from_another) == (b"x = 1\n", False)
    assert member.changed_ns >= app.stat().st_mtime_ns
    assert (whole := read_source(f"{app}/hot.py", len(TEXT))) is not None
    assert whole.content == TEXT
    for missing in ("gone.py", "package/gone.py", "hot.py/deeper.py", ""):
        assert read_source(f"{app}/{missing}", 1000) is None


def test_archives_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = archive(tmp_path / "good.zip", hot=TEXT).read_bytes()
    for number, content in enumerate([b"", b"no archive", good[:-30], good[:40] + b"\0" * 20 + good[60:]]):
        (tmp_path / f"{number}.zip").write_bytes(content)
        assert read_source(f"{tmp_path}/{number}.zip/hot.py", 1000) is None
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe/hot.py", "\0/hot.py", "missing/hot.py"):
        assert read_source(f"{tmp_path}/{path}", 1000) is None
    assert read_source("/dev/null/hot.py", 1000) is None
    monkeypatch.setattr(source_files, "MAX_DIRECTORY", 20)
    assert read_source(f"{tmp_path}/good.zip/hot.py", 1000) is None


def test_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(TEXT)
    app = archive(tmp_path / "app.pyz", bomb=b"#" * 50_000_000)
    for path in (f"{tmp_path}/a.py", f"{app}/bomb.py"):
        with pytest.raises(UnreadError, match="sources_too_large"):
            read_source(path, len(TEXT) - 1)


def test_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(TEXT)
    for path in (f"{tmp_path}/a.py", f"{archive(tmp_path / 'app.pyz', hot=TEXT)}/hot.py"):
        asked: list[str] = []

        def allowed(descriptor: int, asked: list[str] = asked) -> bool:
            asked.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            return False

        with pytest.raises(UnreadError, match="sources_withheld"):
            read_source(path, 1000, allowed=allowed)
        assert path.startswith(asked[0])
        with pytest.raises(UnreadError, match="sources_changed"):
            read_source(path, 1000, not_after_ns=time.time_ns() - 60_000_000_000)


def test_compiled_files_tell_of_another_source(tmp_path: Path) -> None:
    module = tmp_path / "a.py"
    module.write_bytes(TEXT)
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    assert (same := read_source(str(module), 1000)) is not None
    assert not same.compiled_from_another
    module.write_bytes(TEXT.replace(b"pass", b"None"))
    os.utime(module, (1, 1))
    assert (other := read_source(str(module), 1000)) is not None
    assert other.compiled_from_another
    assert other.changed_ns > 1_000_000_000_000  # the time of a file may be set, that of its change may not
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert (hashed := read_source(str(module), 1000)) is not None
    assert not hashed.compiled_from_another


def test_paths_of_one_file(tmp_path: Path) -> None:
    """Links and spellings lead to one file. Hard links do not: equal files of different packages may be linked."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "hot.py").write_bytes(TEXT)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "hot.py").symlink_to("real/hot.py")
    (tmp_path / "copy.py").write_bytes(TEXT)

    def identities(*paths: str) -> list[object]:
        found = [read_source(f"{tmp_path}/{path}", 1000) for path in paths]
        return [each and each.identity for each in found]

    one = ("real/hot.py", "link/hot.py", "hot.py", "link/../real/hot.py", ".//real/hot.py")
    assert len({None, *identities(*one)}) == 2
    assert len({*identities("hot.py", "copy.py")}) == 2
    os.link(tmp_path / "real" / "hot.py", tmp_path / "hard.py")
    assert len({None, *identities(*one)}) == 2
    assert len({*identities("hot.py", "hard.py")}) == 2
    archive(tmp_path / "app.pyz", hot=TEXT)
    assert identities("app.pyz/hot.py") == [None]
