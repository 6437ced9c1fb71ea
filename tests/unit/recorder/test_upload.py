"""Recordings on their way to a store: URLs, archives, what is tried again, and what is kept."""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import tachograph.analyzer
from tachograph.format import FormatError
from tachograph.format.manifest import MAX_MANIFEST_SIZE
from tachograph.recorder.command.command_line import read
from tachograph.recorder.command.upload import upload
from tachograph.recorder.problems import Refused
from tachograph.recorder.upload import destination as destination_module
from tachograph.recorder.upload import sender as uploads_module
from tachograph.recorder.upload.archive import answer_for, pack
from tachograph.recorder.upload.destination import Destination, check_installed, parse_output, without_secrets
from tachograph.recorder.upload.sender import LONGEST_S, Answer, Sender, Uploads, patience_s
from unit.analyzer.recordings import Builder

CREATED, UUID = "2026-11-23T10:15:00+00:00", "1a2b3c4d-0000-4000-8000-000000000000"


def recording(path: Path, uuid: str = UUID) -> Path:
    builder = Builder(path, uuid=uuid, created_utc=CREATED)
    code = builder.code(builder.file("/srv/shop.py", "work()\n"), "<module>", 1)
    for _ in range(5):
        builder.cpu(builder.stack((code, 0)), 10)
    path.parent.mkdir(parents=True, exist_ok=True)
    return builder.write()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("out.tacho", "out.tacho"),
        ("./s3://x", "./s3://x"),
        ("a/b://c", "a/b://c"),
        ("a.tacho/", "a.tacho"),
        ("", "."),
        ("s3://bucket/shop", Destination("s3://bucket/shop")),
        ("file:///mnt/shop/", Destination("file:///mnt/shop/")),
        ("simplecache::s3://b/c", "simplecache::s3://b/c"),
    ],
)
def test_a_path_or_a_url(typed: str, meant: str | Destination) -> None:
    assert parse_output(typed) == meant


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--output s3:// a.py", "names no place in the store"),
        ("--output s3://b/a.tacho --rotate 10m a.py", "--rotate makes many recordings"),
        ("--output s3://b/x --rotate 10m --keep 3 a.py", "--keep is about windows on this disk"),
    ],
)
def test_what_cannot_be_sent_is_refused(line: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read(line.split()).options({})


def test_where_a_recording_goes() -> None:
    def goes(url: str) -> str:
        return Destination(url).recording("shop", CREATED, UUID)

    assert goes("s3://b/shop") == goes("s3://b/shop/") == "s3://b/shop/shop-20261123T101500Z-1a2b3c4d.tacho.zip"
    assert goes("s3://b/best.tacho") == goes("s3://b/best.tacho.zip") == "s3://b/best.tacho.zip"
    assert goes("https://h/x?key=1") == "https://h/x/shop-20261123T101500Z-1a2b3c4d.tacho.zip?key=1"
    assert Destination("s3://b/best.tacho").folder == "s3://b"
    assert Destination("ftp://me:secret@h/shop").folder == "ftp://***@h/shop"
    # What a manifest says does not lead out of the folder.
    assert Destination("s3://b").recording("x", "../../..", "../../etc") == "s3://b/x-ec.tacho.zip"


def test_nothing_secret_is_said() -> None:
    text = "cannot reach ftp://me:secret@host/a?token=abc and https://h/b?X-Amz-Signature=abc"
    assert without_secrets(text) == "cannot reach ftp://***@host/a?*** and https://h/b?***"


@pytest.mark.parametrize(
    ("url", "missing", "message"),
    [
        ("s3://b/x", ("fsspec", "s3fs"), r"^s3:// needs fsspec and s3fs: pip install 'tachograph\[upload\]'$"),
        ("s3://b/x", ("s3fs",), r"^s3:// needs s3fs: pip install 'tachograph\[upload\]'$"),
        ("gs://b/x", ("gcsfs",), "^gs:// needs gcsfs: pip install gcsfs$"),
        ("file:///x", ("fsspec",), r"^file:// needs fsspec: pip install 'tachograph\[upload\]'$"),
    ],
)
def test_what_is_missing_is_named(
    url: str, missing: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else object())
    with pytest.raises(Refused, match=message):
        check_installed(Destination(url))
    assert set(missing) <= {"fsspec", *destination_module.BY_PROTOCOL.values()}


def test_an_archive_is_the_recording(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.tacho")
    for name in ("one.zip", "two.zip"):
        pack(path, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert (tmp_path / "one.zip").stat().st_mode & 0o777 == 0o600
    with tachograph.analyzer.open(path) as whole, tachograph.analyzer.open(tmp_path / "one.zip") as packed:
        assert packed.lines().equals(whole.lines())


def test_links_in_a_recording_are_not_followed(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.tacho")
    (tmp_path / "secret").write_text("secret")
    (path / "zz.parquet").symlink_to(tmp_path / "secret")
    answer = answer_for(path, Destination(f"file://{tmp_path}/store"), None, force=False)
    assert "url" not in answer
    assert not (tmp_path / "store").exists()
    assert not (path / ".tmp-upload.zip").exists()


def test_a_file_of_the_store_is_whole_or_not_there(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.tacho")
    answer = answer_for(path, Destination(f"file://{tmp_path}/store"), "shop", force=False)
    (sent,) = (tmp_path / "store").iterdir()
    assert answer == {"url": f"file://{tmp_path}/store/shop-20261123T101500Z-1a2b3c4d.tacho.zip", "uuid": UUID}
    with tachograph.analyzer.open(sent) as opened:
        assert len(opened.lines())
    exact = Destination(f"file://{tmp_path}/best.tacho")
    assert "url" in answer_for(path, exact, None, force=False)
    again = answer_for(path, exact, None, force=False)
    assert again["problem"].endswith("best.tacho.zip is there already: --force replaces it")
    assert not again["again"]
    assert "url" in answer_for(path, exact, None, force=True)


class Scripted(Sender):
    """A sender whose store takes a recording only at the given try."""

    def __init__(self, tries: int, *, again: bool = True) -> None:
        super().__init__(Destination("s3://b/shop"), "shop", force=False)
        self.left, self.again, self.asked = tries, again, 0

    def send(self, recordings: Sequence[Path], *, aside: bool) -> list[Answer]:
        self.asked += 1
        self.left -= 1
        if self.left > 0:
            return [Answer(path, problem="503 Slow Down", again=self.again) for path in recordings]
        return [Answer(path, f"s3://b/shop/{path.name}", UUID) for path in recordings]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between tries at the end."""
    monkeypatch.setattr(uploads_module, "LAST_PAUSES_S", (0.0, 0.0, 0.0))


def test_a_recording_is_removed_when_the_store_has_it(tmp_path: Path, quick: None) -> None:
    path = recording(tmp_path / "a.tacho")
    sender = Scripted(3)
    told = Uploads(sender).finish(path)
    assert (told.url, told.left, sender.asked) == ("s3://b/shop/a.tacho", (), 3)
    assert not path.exists()


def test_what_the_store_does_not_take_is_kept(tmp_path: Path, quick: None) -> None:
    path = recording(tmp_path / "a.tacho")
    told = Uploads(Scripted(9)).finish(path)
    assert (told.url, told.left, told.problem) == (None, (path,), "503 Slow Down")
    assert path.is_dir()
    # Where another try does not help, the caller does not wait for one.
    sender = Scripted(9, again=False)
    assert Uploads(sender).finish(path).left == (path,)
    assert sender.asked == 1


def test_windows_are_tried_again_and_then_deleted(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "FIRST_PAUSE_S", 0.01)
    windows = [recording(tmp_path / f"a.{number:04}.tacho") for number in range(3)]
    sender = Scripted(4)
    uploads = Uploads(sender)
    for window in windows[:2]:
        uploads.add(window, UUID)
    uploads.add(windows[2], "another one has taken its place")
    last = recording(tmp_path / "a.tacho")
    patience = time.monotonic() + 20
    while not sender.asked:  # the first try is made beside the program
        assert time.monotonic() < patience
        time.sleep(0.001)
    told = uploads.finish(last)
    assert (told.sent, told.left, told.dropped) == (3, (), 0)
    assert [path.exists() for path in (*windows, last)] == [False, False, True, False]


def test_too_many_windows_wait(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "MOST_WAITING", 2)
    windows = [recording(tmp_path / f"a.{number:04}.tacho") for number in range(3)]
    uploads = Uploads(Scripted(99))
    for window in windows:
        uploads.add(window, UUID)
    told = uploads.finish(None)
    assert (told.dropped, told.left, told.url) == (1, tuple(windows[1:]), None)
    assert [path.exists() for path in windows] == [False, True, True]


@pytest.mark.broad
def test_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recording(tmp_path / "a.tacho")
    recording(tmp_path / "b.tacho", UUID.replace("1a", "2b"))
    store = f"file://{tmp_path}/store"
    told = CliRunner().invoke(upload, ["a.tacho", "b.tacho", store])
    assert told.exit_code == 0, told.output
    assert f"sent 2 recordings to {store}; next: tachograph fleet top {store}" in told.output
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == [
        "a-20261123T101500Z-1a2b3c4d.tacho.zip",
        "b-20261123T101500Z-2b2b3c4d.tacho.zip",
    ]
    assert CliRunner().invoke(upload, ["--remove", "--quiet", "a.tacho", f"{store}/x.tacho"]).output == ""
    assert not (tmp_path / "a.tacho").exists()
    assert (tmp_path / "store" / "x.tacho.zip").is_file()


@pytest.mark.broad
def test_upload_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recording(tmp_path / "a.tacho")
    unfinished = recording(tmp_path / "b.tacho") / "manifest.json"
    unfinished.write_text(json.dumps({**json.loads(unfinished.read_text()), "state": "recording"}))
    for arguments, message in (
        (["a.tacho", "nowhere"], "is not a URL such as"),
        (["c.tacho", "file:///x"], "there is no recording c.tacho"),
        (["b.tacho", "file:///x"], "b.tacho is unfinished: tachograph recover b.tacho comes first"),
        (["a.tacho", "a.tacho", "file:///x.tacho"], "several recordings cannot have one URL"),
        (["a.tacho", "nope://x"], "Protocol not known: nope"),
        (["a.tacho", "file:///proc/nothing"], "a.tacho was not sent: "),
    ):
        raised = CliRunner().invoke(upload, arguments).exception
        assert isinstance(raised, (Refused, FormatError)), arguments
        assert message in str(raised), arguments
    assert os.listdir(tmp_path / "a.tacho")


def make_hostile(folder: Path, what: str) -> str:
    """A recording that no reader takes, by its kind; its name."""
    if what == "bomb":
        with zipfile.ZipFile(folder / "a.tacho.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.tacho/manifest.json", b" " * (MAX_MANIFEST_SIZE + 1))
        return "a.tacho.zip"
    table = recording(folder / "a.tacho") / "cpu.parquet"
    if what == "larger":
        os.truncate(table, 1 << 40)
        return "a.tacho"
    table.unlink()
    match what:
        case "fifo":
            os.mkfifo(table)
        case "link":
            table.symlink_to("/dev/zero")
        case "folder":
            table.mkdir()
    return "a.tacho"


@pytest.mark.parametrize("what", ["fifo", "link", "folder", "larger", "bomb"])
def test_what_would_never_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    name = make_hostile(tmp_path, what)
    result = CliRunner().invoke(upload, [name, f"file://{tmp_path}/store"])
    assert isinstance(result.exception, Refused), result.exception
    assert name in result.exception.message
    assert not list((tmp_path / "store").iterdir())
    assert "problem" in answer_for(tmp_path / name, Destination(f"file://{tmp_path}/store"), None, force=False)
    assert not list((tmp_path / "store").iterdir())


def test_patience_has_an_end(tmp_path: Path) -> None:
    """A size that a file only claims is more seconds than any clock has."""
    path = recording(tmp_path / "a.tacho")
    os.truncate(path / "cpu.parquet", 1 << 42)
    assert patience_s([path]) == LONGEST_S
