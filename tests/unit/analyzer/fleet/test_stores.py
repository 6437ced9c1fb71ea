"""Stores that fail, an S3 server, a Dask cluster and its killed workers: the answer is right, or says what it lacks."""

from __future__ import annotations

import io
import os
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tachograph.analyzer.fleet as fleets
from support.s3 import s3_server
from tachograph.analyzer.fleet import index as engine_module
from tachograph.analyzer.fleet import index as index_module
from tachograph.analyzer.fleet import store as store_module
from tachograph.format import FormatError
from unit.analyzer.fleet.fleets import one

pytestmark = pytest.mark.broad


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six recordings."""
    folder = tmp_path_factory.mktemp("fleet") / "shop"
    for number in range(6):
        one(folder, number, {2: 100, 3: 50 + 10 * number})
    return folder


@pytest.fixture(scope="module")
def truth(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The answer where nothing fails."""
    return fleets.open(str(shop), index=str(tmp_path_factory.mktemp("index"))).top(level="lines")


class Flaky(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store in memory that fails: every twentieth request, and each request for a path with ``gone`` in it."""

    protocol = "flaky"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    requests = 0
    gone = "never"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("flaky://").strip("/")

    def _request(self, path: object = "") -> None:
        Flaky.requests += 1
        if Flaky.requests % 20 == 0 or Flaky.gone in str(path):
            raise OSError("503 Slow Down")

    def find(self, *args: Any, **more: Any) -> Any:
        self._request()
        return super().find(*args, **more)

    def get_file(self, rpath: str, lpath: str, **more: Any) -> Any:
        self._request(rpath)
        return super().get_file(rpath, lpath, **more)

    def cat_file(self, path: str, **more: Any) -> Any:
        self._request(path)
        return super().cat_file(path, **more)

    def pipe_file(self, path: str, value: bytes, **more: Any) -> Any:
        self._request(path)
        return super().pipe_file(path, value, **more)


@pytest.fixture
def flaky(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of the recordings in a store that fails now and then."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    monkeypatch.setattr(store_module, "PAUSE_S", 0.0)
    files = fsspec.filesystem("flaky")
    for path in shop.rglob("*"):
        if path.is_file() and ".tachograph" not in path.parts:
            MemoryFileSystem.pipe_file(files, f"/shop/{path.relative_to(shop)}", path.read_bytes())
    Flaky.requests, Flaky.gone = 0, "never"
    yield "flaky://shop"
    Flaky.store.clear()


def test_a_folder_is_listed_as_fsspec_lists_it(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the listing of our own and by that of other stores: the same recordings, with the same numbers."""
    folder = Path(shutil.copytree(shop, tmp_path / "all" / "shop", ignore=shutil.ignore_patterns(".tachograph")))
    shutil.make_archive(str(folder / "spool" / "run-9.tacho"), "zip", folder / "run-001.tacho")
    for name in (".tmp-run.tacho", ".tachograph", "not-yet.tacho"):
        shutil.copytree(folder / "run-002.tacho", folder / name)
    (folder / "not-yet.tacho" / "manifest.json").unlink()
    (folder / "run-000.tacho" / "spool").mkdir()
    (folder / "run-000.tacho" / "spool" / "0.log").write_bytes(b"x")
    (folder / "run-001.tacho" / ".tmp-cpu.parquet").write_bytes(b"x")
    (folder / "up").symlink_to(tmp_path)
    (folder / "nowhere").symlink_to(tmp_path / "nothing")
    store = store_module.Store(str(tmp_path / "all"))
    found = store.recordings()
    monkeypatch.setattr(store, "local", False)
    assert found == store.recordings()
    assert [each.path for each in found] == [
        "shop/not-yet.tacho",
        *(f"shop/run-{number:03}.tacho" for number in range(6)),
        "shop/spool/run-9.tacho.zip",
    ]


def test_one_request_in_twenty_fails(flaky: str, truth: pd.DataFrame) -> None:
    found = fleets.open(flaky)
    assert Flaky.requests > 60
    assert found.left_out.empty
    pd.testing.assert_frame_equal(found.top(level="lines"), truth)


def test_uploads_that_are_not_whole_in_a_store_that_fails(flaky: str, shop: Path, truth: pd.DataFrame) -> None:
    """The answer is that of the whole recordings, and each other is named with what it lacks, until it is there."""
    files, folder = fsspec.filesystem("flaky"), shop / "run-001.tacho"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.iterdir()):
            data = path.read_bytes()
            text = data.replace(b"uuid-", b"UUID-") if path.name == "manifest.json" else data
            file.writestr(f"whole.tacho/{path.name}", text)
    whole = archive.getvalue()
    put = MemoryFileSystem.pipe_file
    put(files, "/shop/half.tacho.zip", whole[: len(whole) // 2])
    put(files, "/shop/none.tacho.zip", b"")
    put(files, "/shop/.tmp-coming.tacho.zip", whole[:1000])  # how tachograph itself sends one to a folder
    for member in ("manifest.json", "processes.parquet"):  # a folder is copied by another tool, its manifest first
        put(files, f"/shop/begun.tacho/{member}", (folder / member).read_bytes().replace(b"uuid-", b"Uuid-"))
    put(files, "/shop/later.tacho/cpu.parquet", (folder / "cpu.parquet").read_bytes())
    damaged = bytearray((folder / "cpu.parquet").read_bytes())
    damaged[8:24] = bytes(16)
    for path in folder.iterdir():
        data = bytes(damaged) if path.name == "cpu.parquet" else path.read_bytes().replace(b"uuid-", b"uUid-")
        put(files, f"/shop/damaged.tacho/{path.name}", data)
    found = fleets.open(flaky)
    pd.testing.assert_frame_equal(found.top(level="lines"), truth)
    reasons = found.left_out.set_index("path")["reason"].to_dict()
    assert sorted(reasons) == ["begun.tacho", "damaged.tacho", "half.tacho.zip", "later.tacho", "none.tacho.zip"]
    for name, lacks in (("begun.tacho", "parquet"), ("damaged.tacho", "cpu.parquet"), ("later.tacho", "manifest.json")):
        assert lacks in reasons[name]
    assert all("not a recording" in reasons[name] for name in ("half.tacho.zip", "none.tacho.zip"))
    put(files, "/shop/half.tacho.zip", whole)  # the rest has come
    again = fleets.open(flaky)
    assert len(again.recordings) == 7
    assert "half.tacho.zip" not in set(again.left_out["path"])


def test_what_the_store_does_not_give_is_left_out_until_it_does(flaky: str, truth: pd.DataFrame) -> None:
    Flaky.gone = "run-003.tacho/cpu.parquet"
    found = fleets.open(flaky)
    assert found.left_out.values.tolist() == [["run-003.tacho", "cannot read cpu.parquet: 503 Slow Down"]]
    assert len(found.recordings) == 5
    Flaky.gone = "never"
    pd.testing.assert_frame_equal(fleets.open(flaky).top(level="lines"), truth)


def test_an_s3_server(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run-000.tacho", "run-001.tacho"):  # each is a dozen requests, twice
        shutil.copytree(shop / name, tmp_path / "shop" / name)
    shop, index = tmp_path / "shop", tmp_path / "index"
    truth = fleets.open(str(shop), index=str(index)).top(level="lines")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    with s3_server() as url:
        options = {"endpoint_url": url}
        files = fsspec.filesystem("s3", **options)
        files.mkdir("profiles")
        for path in shop.rglob("*"):
            if path.is_file() and ".tachograph" not in path.parts:
                files.pipe_file(f"profiles/shop/{path.relative_to(shop)}", path.read_bytes())
        for _ in range(2):  # the second time from the index
            found = fleets.open("s3://profiles/shop", storage_options=options)
            assert found.left_out.empty
            pd.testing.assert_frame_equal(found.top(level="lines"), truth)
        assert files.exists("profiles/shop/.tachograph")


def test_a_store_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    pytest.importorskip("s3fs")
    monkeypatch.setattr(store_module, "PAUSE_S", 0.0)
    asked = []

    def fails() -> None:
        asked.append(1)
        raise exceptions.EndpointConnectionError(endpoint_url="http://127.0.0.1:9")

    with pytest.raises(store_module.StoreError, match=r"^cannot list: Could not connect to the endpoint URL"):
        store_module.Store("memory://x").retried("cannot list", fails)
    assert len(asked) == store_module.TRIES
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FormatError, match=r"^s3://bucket/x: cannot list: Unable to locate credentials$"):
        fleets.open("s3://bucket/x", storage_options={"endpoint_url": "http://127.0.0.1:9"})


class Killer:
    """Kills a process when the first recording has been read."""

    def __init__(self, pid: int) -> None:
        self._pid, self.killed = pid, False

    def step(self, what: str) -> None:
        if what.startswith("indexing: 1 of"):
            os.kill(self._pid, 9)
            self.killed = True

    def read(self, table: str, done: int, of: int) -> None: ...


def test_a_store_that_is_away_is_one_line_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither botocore, nor s3fs, nor we go on asking: 150 attempts took more than a minute."""
    pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(store_module, "PATIENCE_S", 2.0)
    began = time.monotonic()
    with pytest.raises(FormatError, match=r"^s3://bucket/x: cannot list: Could not connect to the endpoint URL"):
        fleets.open("s3://bucket/x", storage_options={"endpoint_url": "http://127.0.0.1:11"})
    assert time.monotonic() - began < 20


def test_a_store_that_hardly_answers_ends_with_what_it_lacks(
    flaky: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failing request is made again, until all of them have taken a while; then once."""
    monkeypatch.setattr(store_module, "ALL_PATIENCE_S", 0.5)
    monkeypatch.setattr(store_module, "PAUSE_S", 0.1)
    Flaky.gone = ".parquet"
    found = fleets.open(flaky, index=str(tmp_path / "index"))
    assert found.recordings.empty
    assert len(found.left_out) == 6
    assert all("503 Slow Down" in reason for reason in found.left_out["reason"])
    assert Flaky.requests < 60


@pytest.mark.slow
def test_workers_of_a_cluster_one_of_which_is_killed(
    shop: Path, truth: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle: when the first recording has been read."""
    monkeypatch.setattr(index_module, "BATCH", 1)
    distributed = pytest.importorskip("distributed")
    folder = Path(shutil.copytree(shop, tmp_path / "shop", ignore=shutil.ignore_patterns(".tachograph")))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = Killer(next(iter(cluster.workers.values())).pid)
        found = fleets.open(str(folder), cluster=client, watcher=killer)
        failed = list(engine_module.run([engine_module.Task(int, ("x",))], client))
    assert [(each.result, each.error) for each in failed] == [
        (None, "ValueError: invalid literal for int() with base 10: 'x'")
    ]
    assert killer.killed
    assert found.left_out.empty
    pd.testing.assert_frame_equal(found.top(level="lines"), truth)
